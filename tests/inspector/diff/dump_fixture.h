// SPDX-License-Identifier: Apache-2.0
// Parts that tests of verdicts and causes share: models as the importer finishes them, and dumps of their runs.
#pragma once

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/diff/compare/apply_diagnosis.h"
#include "inspector/diff/compare/compare.h"
#include "inspector/diff/diagnose/find_causes.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/link.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax::testing {

// Finds the causes of a comparison and applies the diagnosis to it.
inline Status diagnose(const BlameRequest& request, Comparison& comparison) {
  apply(PX_TRY(find_causes(request, comparison)), comparison);
  return {};
}

// scale * sin(step * i), i from 1.
inline Tensor sines(const Shape& shape, double scale, double step) {
  Tensor tensor = Tensor::allocate(DType::float32, shape).take();
  int64_t index = 0;
  for (float& value : tensor.mutable_as<float>())
    value = static_cast<float>(scale * std::sin(step * static_cast<double>(++index)));
  return tensor;
}

// Linked, with the types of its nodes' attributes.
inline std::shared_ptr<const Model> finished_model(const GraphBuilder& builder) {
  auto model = std::make_shared<Model>(builder.model());
  for (Node& node : model->graph.nodes) {
    for (Attribute& attribute : node.attributes) {
      if (std::holds_alternative<int64_t>(attribute.value)) attribute.type = AttributeType::int_;
      if (std::holds_alternative<float>(attribute.value)) attribute.type = AttributeType::float_;
      if (std::holds_alternative<std::string>(attribute.value)) attribute.type = AttributeType::string;
      if (std::holds_alternative<std::vector<int64_t>>(attribute.value)) attribute.type = AttributeType::ints;
      if (std::holds_alternative<std::shared_ptr<Graph>>(attribute.value)) attribute.type = AttributeType::graph;
    }
  }
  link_graph(model->graph);
  return model;
}

// A folder of the test's own, for dumps.
class DumpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
    folder_ = std::filesystem::temp_directory_path() / fmt::format("parallax-{}-{}", test, ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A run of a model with one input. The dump counts as one of a model of its own, named by the file. `shown`: what
  // stands between the run and the writer; none: nothing does.
  std::shared_ptr<const DumpReader> run_into_dump(
      const std::shared_ptr<const Model>& model, const std::string& file, const Tensor& x,
      const std::string& with = "reference", DumpWriterOptions options = {},
      const std::function<std::unique_ptr<Observer>(DumpWriter&)>& shown = {}) const {
    const std::string path = (folder_ / file).string();
    const auto executor = make_executor(with).take();
    const auto session = executor->prepare(model, {}).take();
    const auto writer = DumpWriter::create(path, std::move(options)).take();
    RunInfo info = describe_run(*executor, {}, model);
    info.model_sha256 = file;
    EXPECT_TRUE(writer->begin_run(info).ok());
    const std::unique_ptr<Observer> between = shown ? shown(*writer) : nullptr;
    Observer& observer = between != nullptr ? *between : static_cast<Observer&>(*writer);
    EXPECT_TRUE(session->run(std::vector<Value>{x}, observer).ok());
    EXPECT_TRUE(writer->end_run(true).ok());
    EXPECT_TRUE(writer->finish().ok());
    return DumpReader::open(path).take();
  }

  // Two models run on one input, compared, and the causes found.
  Comparison blame_on(const Tensor& x, const GraphBuilder& a, const GraphBuilder& b, const Policy& policy = {}) const {
    return blame_on(x, finished_model(a), finished_model(b), policy);
  }
  Comparison blame_on(const Tensor& x, const std::shared_ptr<const Model>& a, const std::shared_ptr<const Model>& b,
                      const Policy& policy = {}, const std::string& with = "reference") const {
    BlameRequest request;
    request.a.model = a;
    request.b.model = b;
    request.a.dump = run_into_dump(a, "a.plx", x, with);
    request.b.dump = run_into_dump(b, "b.plx", x, with);
    request.oracle = make_executor("reference:double").take();
    request.policy = policy;
    Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, policy, {}).take();
    EXPECT_TRUE(diagnose(request, comparison).ok());
    return comparison;
  }

  std::filesystem::path folder_;
};

}  // namespace parallax::testing
