// SPDX-License-Identifier: Apache-2.0
// Every version of every operator that an executor has, called as no valid program calls it: the answer is a result or
// a sentence. A crash names its call after `hostile_calls_test --trace --gtest_filter=...`.
#include "tests/ops/hostile_calls.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/base/shown_text.h"
#include "inspector/base/thread_pool.h"
#include "inspector/model/io/import.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "reference/ops/table.h"
#include "reference/reference.h"
#include "runtime/ops/table.h"
#include "runtime/plan/control_flow.h"
#include "runtime/plan/runtime.h"

namespace parallax::tests {
namespace {

bool is_tracing = false;

constexpr size_t kCallsOfVersion = 2;
constexpr int64_t kMemoryLimitBytes = int64_t{1} << 26;
constexpr int kMostBodies = 100;

// Ends what loops for ever.
class BodyCounter final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::none; }
  Status enter_body(const NodeLocation&, const Frame&) override {
    if (++bodies_ > kMostBodies) return execution_error("it runs more bodies than this test waits for");
    return {};
  }

 private:
  int bodies_ = 0;
};

// Reads every byte of a value: a sanitizer then sees what was never stored.
size_t touch(const Value& value) {
  size_t sum = 0;
  if (value.is_tensor()) {
    if (value.tensor().dtype() == DType::string) {
      for (const std::string& text : value.tensor().as<std::string>()) sum += text.size();
    } else {
      for (const std::byte byte : value.tensor().view().bytes()) sum += static_cast<size_t>(byte);
    }
  } else if (value.is_sequence()) {
    for (const Value& item : value.sequence().items) sum += touch(item);
  }
  return sum;
}

// The defect of a refusal, as people see it, in words, or nothing.
std::string defect_of(std::string_view message) {
  if (one_safe_line(message).size() < 10) return "says nothing";
  return message.find("internal error") != std::string_view::npos ? "is an internal error" : "";
}

struct NamedExecutor {
  std::string name;
  std::unique_ptr<Executor> (*make)();
  bool (*has)(const OpSchema& schema);
};

bool reference_has(const OpSchema& schema) {
  const auto rows = reference::op_rows();
  return std::ranges::any_of(rows, [&](const reference::OpRow& row) {
    return row.op == schema.name && row.domain == schema.domain && row.first_version <= schema.since_version &&
           schema.since_version <= row.last_version;
  });
}

bool cpu_has(const OpSchema& schema) {
  Node node;
  node.op_type = std::string(schema.name);
  node.schema = &schema;
  if (runtime::find_control(node) != nullptr) return true;
  const auto rows = runtime::kernel_table<runtime::Cpu>();
  return std::ranges::any_of(rows, [&](const auto& row) {
    return row.op == schema.name && row.domain == schema.domain && row.since_first <= schema.since_version &&
           schema.since_version <= row.since_last;
  });
}

const NamedExecutor kExecutors[] = {
    {"reference", [] { return make_reference_executor(ReferencePrecision::declared); }, reference_has},
    {"double", [] { return make_reference_executor(ReferencePrecision::double_); }, reference_has},
    {"cpu", [] { return make_cpu_executor(); }, cpu_has},
};

const std::vector<OpCase>& all_cases() {
  static const Result<std::vector<OpCase>> cases = read_op_cases();
  if (!cases.ok()) {
    std::fprintf(stderr, "hostile_calls_test: %s\n", cases.error().message.c_str());
    std::exit(1);
  }
  return *cases;
}

// A model without types of its inputs is refused at import, but values of unknown type come out of bodies and
// functions.
bool is_refused(const Model& model, KnownInputs known) {
  for (const ModelProblem& problem : check_model(model)) {
    if (known != KnownInputs::nothing || !problem.node.empty()) return true;
  }
  return false;
}

class HostileCalls : public testing::Test {
 public:
  HostileCalls(const OpSchema& schema, const NamedExecutor& executor) : schema_(schema), executor_(executor) {}

  void TestBody() override {
    for (const OperatorCall& call : calls_of(schema_, all_cases(), kCallsOfVersion)) {
      for (const CallMutation& mutation : mutations_of(call)) {
        for (const KnownInputs known : {KnownInputs::nothing, KnownInputs::types, KnownInputs::values})
          answer(mutated(call, mutation, known), known, mutation.name);
      }
      for (const CallMutation& mutation : attribute_type_mutations_of(call))
        answer(mutated(call, mutation, KnownInputs::in_function), KnownInputs::in_function, mutation.name);
    }
  }

 private:
  void answer(OperatorCall call, KnownInputs known, const std::string& mutation) {
    constexpr const char* kKnown[] = {"unknown types", "declared types", "constants", "in a function"};
    const std::string what = fmt::format("{} on {}: {}, {}", schema_.versioned_name(), executor_.name, mutation,
                                         kKnown[static_cast<size_t>(known)]);
    if (is_tracing) std::fprintf(stderr, "%s\n", what.c_str());
    Model& model = *call.model;
    for (const ModelProblem& problem : check_model(model)) EXPECT_EQ(defect_of(problem.message), "") << what;
    if (is_refused(model, known)) return;
    fill_types(model, infer_types(model));
    for (const ModelProblem& problem : check_shapes(model)) EXPECT_EQ(defect_of(problem.message), "") << what;
    RunOptions options;
    options.memory_limit_bytes = kMemoryLimitBytes;
    const auto executor = executor_.make();
    const auto session = executor->prepare(call.model, options);
    if (!session.ok()) {
      EXPECT_EQ(defect_of(session.error().message), "") << what << ": " << session.error().message;
      return;
    }
    BodyCounter observer;
    const auto outputs = (*session)->run(call.inputs, observer);
    if (!outputs.ok()) {
      EXPECT_EQ(defect_of(outputs.error().message), "") << what << ": " << outputs.error().message;
      return;
    }
    EXPECT_EQ(outputs->size(), model.graph.outputs.size()) << what;
    for (const Value& output : *outputs) touched_ += touch(output);
  }

  const OpSchema& schema_;
  const NamedExecutor& executor_;
  size_t touched_ = 0;
};

// Every operator that some executor has is called, but for those whose attributes are graphs without a case.
TEST(HostileCallsOf, EveryOperator) {
  const std::vector<std::string> without = {"ai.onnx.preview/FlexAttention", "ai.onnx/ImageDecoder"};
  for (const OpSchema& schema : OpsetRegistry::standard().all()) {
    if (schema.deprecated || (!reference_has(schema) && !cpu_has(schema))) continue;
    const std::string name = fmt::format("{}/{}", schema.domain, schema.name);
    if (std::ranges::find(without, name) != without.end()) continue;
    EXPECT_FALSE(calls_of(schema, all_cases(), 1).empty()) << schema.domain << " " << schema.versioned_name();
  }
}

void register_calls() {
  for (const NamedExecutor& executor : kExecutors) {
    for (const OpSchema& schema : OpsetRegistry::standard().all()) {
      if (!executor.has(schema)) continue;
      testing::RegisterTest(fmt::format("{}/{}", executor.name, schema.domain).c_str(),
                            fmt::format("{}_{}", schema.name, schema.since_version).c_str(), nullptr, nullptr, __FILE__,
                            __LINE__,
                            [&schema, &executor]() -> testing::Test* { return new HostileCalls(schema, executor); });
    }
  }
}

}  // namespace
}  // namespace parallax::tests

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  parallax::tests::is_tracing = argc > 1 && std::strcmp(argv[1], "--trace") == 0;
  parallax::set_thread_count(1);  // calls are small: more threads would only wait for each other
  parallax::tests::register_calls();
  return RUN_ALL_TESTS();
}
