// SPDX-License-Identifier: Apache-2.0
// The input of a fused activation is shown to an observer that wants it, and computed for no other; the outputs of the
// fused node are the same either way. On the host, and on the emulated device with a library that keeps such sums or
// not.
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/queue_emulated.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/rewrite/graph_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::runtime::pre_activation_test {
namespace {

using session_values::Recorder;

// Keeps everything, or one value alone; and the names of what is announced as fused.
class Viewer final : public Recorder {
 public:
  explicit Viewer(std::string only = "") : only_(std::move(only)) {}
  CaptureLevel wants(const ValueInfo& value_info) override {
    return only_.empty() || value_info.name == only_ ? CaptureLevel::all : CaptureLevel::none;
  }
  Status absent(const ValueInfo& value_info, const Absence& absence) override {
    if (absence.kind == Absence::Kind::fused) fused.insert(std::string(value_info.name));
    return {};
  }
  std::set<std::string> fused;

 private:
  std::string only_;
};

class KeepingSums {
 public:
  explicit KeepingSums(bool keeps) : before_(emulated_library().kept_products) {
    emulated_library().keeps_sums = keeps;
  }
  ~KeepingSums() { emulated_library().keeps_sums = true; }
  int64_t products() const { return emulated_library().kept_products - before_; }

 private:
  int64_t before_;
};

// r = activation(x w + b), or y, that plus z; in float16 between casts.
std::shared_ptr<const Model> model_of(const std::string& activation, bool has_residual, bool in_half_precision) {
  const std::string half = "attribute { name: \"to\" type: INT i: 10 } ";
  const std::string tanh = "attribute { name: \"approximate\" type: STRING s: \"tanh\" } ";
  std::vector<double> w, b;
  for (int i = 0; i < 128; ++i) w.push_back((i * 7 + 3) % 17 / 8.0 - 1);
  for (int i = 0; i < 8; ++i) b.push_back(i / 4.0 - 1);
  std::string graph = graph_input("x", {5, 16}) + weight_of("w", {16, 8}, w) + weight_of("b", {8}, b);
  if (has_residual) graph += graph_input("z", {5, 8});
  const std::string suffix = in_half_precision ? "h" : "";
  for (const std::string name : {"x", "w", "b", "z"}) {
    if (in_half_precision && (name != "z" || has_residual)) graph += graph_node("Cast", {name}, name + "h", half);
  }
  graph += graph_node("MatMul", {"x" + suffix, "w" + suffix}, "p") + graph_node("Add", {"b" + suffix, "p"}, "q") +
           graph_node(activation == "TanhGelu" ? "Gelu" : activation, {"q"}, "r", activation == "TanhGelu" ? tanh : "");
  if (has_residual) graph += graph_node("Add", {"r", "z" + suffix}, "y");
  const std::string type = in_half_precision ? "10" : "1";
  graph += "output { name: \"" + std::string(has_residual ? "y" : "r") + "\" type { tensor_type { elem_type: " + type +
           " } } } ";
  return model_text::model_of(graph, 20);
}

struct Case {
  std::string activation;
  bool has_residual = false;
  bool in_half_precision = false;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string activation : {"Relu", "Gelu", "TanhGelu", "Tanh"}) {
    for (const bool has_residual : {false, true}) {
      for (const bool in_half_precision : {false, true}) cases.push_back({activation, has_residual, in_half_precision});
    }
  }
  return cases;
}

std::vector<Value> inputs_of(const Case& test) {
  std::vector<Value> inputs{session_values::filled({5, 16}, 1)};
  if (test.has_residual) inputs.push_back(session_values::filled({5, 8}, 2));
  return inputs;
}

Value output_of(Session& session, const Case& test, Observer& observer) {
  auto outputs = session.run(inputs_of(test), observer);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  return outputs.ok() ? outputs->front() : Value();
}

// The values near those of x w + b, computed by nodes of their own.
void expect_near_parts(Executor& executor, const Case& test, const Tensor& seen) {
  RunOptions options;
  options.observe_all = true;
  const auto session =
      executor.prepare(model_of(test.activation, test.has_residual, test.in_half_precision), options).take();
  Recorder recorder;
  output_of(*session, test, recorder);
  const Tensor& wanted = recorder.values.at("q");
  ASSERT_EQ(seen.shape(), wanted.shape());
  ASSERT_EQ(seen.dtype(), wanted.dtype());
  for (int64_t i = 0; i < wanted.element_count(); ++i) {
    EXPECT_NEAR(element_as_double(seen.view(), i), element_as_double(wanted.view(), i),
                test.in_half_precision ? 1e-2 : 1e-5);
  }
}

void expect_shown(Executor& executor, const Case& test) {
  SCOPED_TRACE(test.activation + (test.has_residual ? ", residual" : "") +
               (test.in_half_precision ? ", half precision" : ""));
  const auto model = model_of(test.activation, test.has_residual, test.in_half_precision);
  ASSERT_NE(model, nullptr);
  const auto session = executor.prepare(model, {}).take();
  NullObserver nobody;
  const Value unseen = output_of(*session, test, nobody);
  for (int run = 0; run < 2; ++run) output_of(*session, test, nobody);  // memory is planned from here on
  Viewer all;
  EXPECT_TRUE(session_values::same(output_of(*session, test, all), unseen));
  ASSERT_TRUE(all.values.contains("q"));
  EXPECT_FALSE(all.values.contains("//p"));
  EXPECT_EQ(all.fused, (test.has_residual ? std::set<std::string>{"p", "r"} : std::set<std::string>{"p"}));
  expect_near_parts(executor, test, all.values.at("q"));
  Viewer one("q");
  EXPECT_TRUE(session_values::same(output_of(*session, test, one), unseen));
  ASSERT_EQ(one.values.size(), 1U);
  EXPECT_TRUE(session_values::same(one.values.at("q"), all.values.at("q")));
  Viewer other(test.has_residual ? "y" : "r");
  EXPECT_TRUE(session_values::same(output_of(*session, test, other), unseen));
  EXPECT_EQ(other.values.size(), 1U);
  EXPECT_TRUE(session_values::same(output_of(*session, test, nobody), unseen));
}

TEST(PreActivation, IsShownOnTheHost) {
  const auto cpu = make_cpu_executor({.poison_buffers = true});
  for (const Case& test : all_cases()) expect_shown(*cpu, test);
}

TEST(PreActivation, IsShownOnADeviceWhoseLibraryKeepsIt) {
  const KeepingSums library(true);
  for (const Case& test : all_cases()) expect_shown(*tests::make_emulated_executor(), test);
  EXPECT_EQ(library.products(), 2 * (1 + 2)) << "two types, each with a probe and with two runs that show it";
}

TEST(PreActivation, IsShownOnADeviceWhoseLibraryDoesNot) {
  const KeepingSums library(false);
  for (const Case& test : all_cases()) expect_shown(*tests::make_emulated_executor(), test);
  EXPECT_EQ(library.products(), 0);
}

}  // namespace
}  // namespace parallax::runtime::pre_activation_test
