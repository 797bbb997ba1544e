// SPDX-License-Identifier: Apache-2.0
// Every case of every family on every executor: one test for each pair, named <executor>/<family>.<case>.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "inspector/base/text.h"
#include "inspector/model/link.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/model/opset/opset_registry.h"
#include "reference/ops/table.h"
#include "reference/reference.h"
#include "runtime/ops/table.h"
#include "runtime/plan/control_flow.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/runtime.h"
#include "tests/ops/op_case.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/emulation.h"

namespace parallax::tests {
namespace {

struct NamedExecutor {
  std::string name;
  std::unique_ptr<Executor> (*make)();
  bool runs_everything;  // else what it has no kernel for is skipped
  bool is_double;        // carries floats as double, but for what casts narrow
};

const NamedExecutor kExecutors[] = {
    {"reference", [] { return make_reference_executor(ReferencePrecision::declared); }, true, false},
    {"reference_double", [] { return make_reference_executor(ReferencePrecision::double_); }, true, true},
    {"cpu", [] { return make_cpu_executor(); }, false, false},
    {"emulated", [] { return make_emulated_executor(); }, false, false},
    {"cuda", [] { return make_cuda_executor().take(); }, false, false},  // where there is a GPU
};

// The names of the cases that each executor has run, and of those it has no kernel for, in this process.
std::set<std::string>& run_by(const std::string& executor) {
  static std::map<std::string, std::set<std::string>> names;
  return names[executor];
}
std::set<std::string>& skipped_by(const std::string& executor) {
  static std::map<std::string, std::set<std::string>> names;
  return names[executor];
}

// The names of the cases that launched a kernel of the emulated device.
std::set<std::string>& with_kernels() {
  static std::set<std::string> names;
  return names;
}

void add_operators(const Graph& graph, std::set<std::string>& operators) {
  for (const Node& node : graph.nodes) {
    if (node.schema != nullptr)
      operators.insert(std::string(node.schema->domain) + "/" + std::string(node.schema->name));
    for (const Graph* body : bodies_of(node)) add_operators(*body, operators);
  }
}

std::set<std::string> operators_of(const OpCase& op_case) {
  std::set<std::string> operators;
  add_operators(op_case.model->graph, operators);
  for (const auto& function : op_case.model->functions) add_operators(function->body, operators);
  return operators;
}

// The operators that `cpu` leaves to the reference, and why.
const std::map<std::string, std::string> kReferenceOnly = {
    {"ai.onnx/ImageDecoder", "formats of files"}, {"ai.onnx/RegexFullMatch", "strings"},
    {"ai.onnx/StringConcat", "strings"},          {"ai.onnx/StringNormalizer", "strings"},
    {"ai.onnx/StringSplit", "strings"},           {"com.microsoft/Tokenizer", "strings"},
};
bool is_reference_only(const std::string& name) {
  return kReferenceOnly.count(name) != 0 || name.starts_with("ai.onnx.ml/") ||
         name.starts_with("ai.onnx.preview.training/");
}

bool holds_strings(const Value& value) {
  if (value.is_tensor()) return value.tensor().dtype() == DType::string;
  return value.is_sequence() &&
         std::any_of(value.sequence().items.begin(), value.sequence().items.end(), holds_strings);
}

// True where a case is about strings or of a domain that `cpu` leaves to the reference.
bool is_reference_only(const OpCase& op_case) {
  const std::set<std::string> operators = operators_of(op_case);
  return std::any_of(operators.begin(), operators.end(),
                     [](const std::string& name) { return is_reference_only(name); }) ||
         std::any_of(op_case.inputs.begin(), op_case.inputs.end(), holds_strings) ||
         std::any_of(op_case.expected.begin(), op_case.expected.end(), holds_strings) ||
         op_case.name.find("string") != std::string::npos;  // inside the case alone
}

class OpCaseTest : public testing::Test {
 public:
  OpCaseTest(const OpCase& op_case, const NamedExecutor& executor) : case_(op_case), executor_(executor) {}

  void TestBody() override {
    if (executor_.is_double && !case_.not_double.empty()) GTEST_SKIP() << case_.not_double;
    RunOptions options;
    options.keep_casts = executor_.is_double;
    const auto executor = executor_.make();
    const int64_t launches_before = runtime::emulation::launch_count();
    const auto problem = problem_with(case_, *executor, options);
    if (!problem.ok() && problem.error().code == ErrorCode::unsupported && !executor_.runs_everything) {
      skipped_by(executor_.name).insert(case_.name);
      const bool may_skip = executor_.name != "cpu" || is_reference_only(case_);
      ASSERT_TRUE(may_skip) << problem.error().message << repeat();
      GTEST_SKIP() << problem.error().message;
    }
    run_by(executor_.name).insert(case_.name);
    if (runtime::emulation::launch_count() > launches_before) with_kernels().insert(case_.name);
    ASSERT_TRUE(problem.ok()) << problem.error().message << repeat();
    EXPECT_EQ(*problem, "") << case_.from << repeat();
  }

 private:
  std::string repeat() const {
    return "\nagain: ops_test --gtest_filter='" + executor_.name + "/" + case_.family + "." + case_.name + "'";
  }

  const OpCase& case_;
  const NamedExecutor& executor_;
};

// The cases live as long as the program: tests are registered before they run, and refer to them.
const std::vector<OpCase>& all_cases() {
  static const Result<std::vector<OpCase>> cases = read_op_cases();
  if (!cases.ok()) {
    std::fprintf(stderr, "ops_test: %s\n", cases.error().message.c_str());
    std::exit(1);
  }
  return *cases;
}

const OpCase& case_named(const std::string& name) {
  const auto& cases = all_cases();
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const OpCase& item) { return item.name == name; });
  EXPECT_NE(found, cases.end()) << name;
  return *found;
}

// The names of cases are part of test names: they must be unique.
TEST(OpCases, HaveUniqueNamesAndSources) {
  std::set<std::string> names;
  for (const OpCase& op_case : all_cases()) {
    EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name;
    EXPECT_TRUE(op_case.from.rfind("spec: ", 0) == 0 || op_case.from.rfind("agree: ", 0) == 0) << op_case.name;
    EXPECT_FALSE(op_case.expected.empty()) << op_case.name;
  }
  EXPECT_GE(names.size(), 1400U);
}

// Nothing but zeros, or one value throughout, is what a wrong result may be as well: such a case says why it stands.
TEST(OpCases, TellRightFromConstantResults) {
  for (const OpCase& op_case : all_cases()) {
    if (is_constant(op_case))
      EXPECT_NE(op_case.constant, "") << op_case.name << " expects nothing but one value";
    else
      EXPECT_EQ(op_case.constant, "") << op_case.name << " expects more than one value";
  }
}

// Operators of the reference without a case, and where they are tested instead.
const std::map<std::string, std::string> kWithoutCase = {
    {"ai.onnx/ImageDecoder", "tests/reference: images are files"},
    {"ai.onnx.preview/FlexAttention", "onnx's own cases: its bodies are graphs of scores"},
};

TEST(OpCases, HoldEveryOperatorOfTheReference) {
  std::set<std::string> operators;
  for (const OpCase& op_case : all_cases()) operators.merge(operators_of(op_case));
  for (const reference::OpRow& row : reference::op_rows()) {
    const std::string name = std::string(row.domain) + "/" + std::string(row.op);
    EXPECT_NE(operators.count(name), kWithoutCase.count(name)) << name << " has a case, or a reason, but not both";
  }
}

// True where `cpu` has a row, or the planner a function, for this version of an operator.
bool cpu_has(const OpSchema& schema) {
  Node node;
  node.op_type = std::string(schema.name);
  node.schema = &schema;
  if (runtime::find_control(node) != nullptr) return true;
  const auto rows = runtime::kernel_table<runtime::Cpu>();
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    return row.op == schema.name && row.domain == schema.domain && row.since_first <= schema.since_version &&
           schema.since_version <= row.since_last;
  });
}

TEST(OpCases, GpusHaveEveryOperatorOfMicrosoft) {
  std::set<std::string_view> on_gpus;
  for (const auto& row : runtime::kernel_table<runtime::Emulated>()) {
    if (row.domain == "com.microsoft") on_gpus.insert(row.op);
  }
  for (const reference::OpRow& row : reference::op_rows()) {
    if (row.domain != "com.microsoft" || kReferenceOnly.contains("com.microsoft/" + std::string(row.op))) continue;
    EXPECT_EQ(on_gpus.count(row.op), 1U) << row.op;
  }
}

// Constants are values of the plan, not calls.
const std::set<std::string> kWithoutCall = {"ai.onnx/Constant"};

TEST(OpCases, CpuHasEveryOperatorOfTheReference) {
  for (const reference::OpRow& row : reference::op_rows()) {
    const std::string name = std::string(row.domain) + "/" + std::string(row.op);
    if (kWithoutCall.count(name) != 0) continue;
    for (const OpSchema& schema : OpsetRegistry::standard().versions(row.domain, row.op)) {
      if (schema.since_version < row.first_version || schema.since_version > row.last_version) continue;
      EXPECT_NE(cpu_has(schema), is_reference_only(name)) << name << "-" << schema.since_version;
    }
  }
}

// True where some row of `cpu` for this version takes elements of this type at the input that its rows are chosen by.
bool cpu_takes(const OpSchema& schema, int64_t input, DType dtype) {
  const auto rows = runtime::kernel_table<runtime::Cpu>();
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    return row.op == schema.name && row.domain == schema.domain && row.since_first <= schema.since_version &&
           schema.since_version <= row.since_last &&
           (row.dtype_input != input || (row.dtypes & runtime::dtype_bit(dtype)) != 0);
  });
}

// The inputs by whose type `cpu` chooses among its rows.
std::set<int64_t> telling_inputs(const OpSchema& schema) {
  std::set<int64_t> inputs;
  for (const auto& row : runtime::kernel_table<runtime::Cpu>()) {
    if (row.op == schema.name && row.domain == schema.domain && row.arguments == runtime::Arguments::tensors)
      inputs.insert(row.dtype_input);
  }
  return inputs;
}

// Types of the schemas that `cpu` does not take, and where: formats that it moves and converts but does not compute
// with, and integers that the reference does not take either.
bool is_left_to_reference(std::string_view op, DType dtype) {
  if (op == "Col2Im" && dtype == DType::bool_) return true;  // a sum of truths
  if (op == "Col2Im" || op == "NonZero" || op == "Unique") return is_complex(dtype);
  if (op == "Erf") return is_integer(dtype);
  return op == "TensorScatter" && is_sub_byte(dtype);
}

TEST(OpCases, CpuTakesEveryTypeOfTheReference) {
  for (const reference::OpRow& row : reference::op_rows()) {
    const std::string name = std::string(row.domain) + "/" + std::string(row.op);
    if (is_reference_only(name)) continue;
    for (const OpSchema& schema : OpsetRegistry::standard().versions(row.domain, row.op)) {
      if (schema.since_version < row.first_version || schema.since_version > row.last_version) continue;
      for (const int64_t input : telling_inputs(schema)) {
        const FormalParameter* parameter = schema.input(static_cast<size_t>(input));
        if (parameter == nullptr) continue;
        for (const DTypeInfo& info : all_dtypes()) {
          if (info.dtype == DType::string || !parameter->types->contains_tensor(info.dtype)) continue;
          EXPECT_NE(cpu_takes(schema, input, info.dtype), is_left_to_reference(schema.name, info.dtype))
              << name << "-" << schema.since_version << " " << info.name;
        }
      }
    }
  }
}

// A wrong expectation must be noticed: the comparison is not satisfied by anything.
TEST(OpCases, FailOnWrongResults) {
  const auto executor = make_reference_executor(ReferencePrecision::declared);
  for (const char* name : {"add_broadcast", "add_uint64_large"}) {
    OpCase op_case = case_named(name);
    op_case.expected = {op_case.inputs[0]};
    const auto problem = problem_with(op_case, *executor);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    EXPECT_NE(*problem, "");
  }
}

bool changes(const runtime::Pattern& pattern, const Graph& graph, const runtime::EvaluateNode& evaluate) {
  runtime::GraphEdit edit = runtime::begin_edit(graph);
  pattern.apply(edit, {evaluate});
  return edit.nodes.size() != graph.order.size() || !edit.made.empty() || !edit.absences.empty();
}

// Every case that a pattern changes anything in, after that pattern alone.
TEST(OpCases, StayRightAfterEachPatternAlone) {
  const auto executor = make_cpu_executor();
  const runtime::EvaluateNode evaluate = runtime::host_evaluation();
  int changed = 0;
  for (const OpCase& op_case : all_cases()) {
    for (const runtime::Pattern& pattern : runtime::rewrite_patterns()) {
      if (!changes(pattern, op_case.model->graph, evaluate)) continue;
      RunOptions options;
      options.rewrite.base = RewriteChoice::Base::none;
      const auto plain = problem_with(op_case, *executor, options);
      if (!plain.ok() && plain.error().code == ErrorCode::unsupported) continue;
      options.rewrite.changes = {{std::string(pattern.name), true}};
      const auto problem = problem_with(op_case, *executor, options);
      ++changed;
      ASSERT_TRUE(problem.ok()) << op_case.name << " after " << pattern.name << ": " << problem.error().message;
      EXPECT_EQ(*problem, "") << op_case.name << " after " << pattern.name;
    }
  }
  std::printf("%d cases are changed by some pattern\n", changed);
  EXPECT_GE(changed, 20);
}

bool is_plain(const Value& value) {
  if (!value.is_tensor()) return false;
  const DType dtype = value.tensor().dtype();
  return (is_integer(dtype) && !is_sub_byte(dtype)) || dtype == DType::bool_ ||
         (is_floating(dtype) && bits_of(dtype) >= 16);
}

// Floats and integers throughout, and no operator of another domain.
bool is_plain(const OpCase& op_case) {
  for (const std::string& name : operators_of(op_case)) {
    if (name.rfind("ai.onnx/", 0) != 0) return false;
  }
  const auto plain = [](const Value& value) { return is_plain(value); };
  return std::all_of(op_case.inputs.begin(), op_case.inputs.end(), plain) &&
         std::all_of(op_case.expected.begin(), op_case.expected.end(), plain);
}

constexpr int kLeastPercent = 85;  // of the plain cases that the emulated device must have kernels for

// Kernels of GPUs of our own: all of them must be reached by the cases.
constexpr std::string_view kGpuKernels =
    "block_weights choose conv conv_transpose copy_strided fill flash_attention flash_merge fold_columns "
    "fold_rows gemm held_rows index_map map pointwise radix_keys rotate scan_rows scatter select "
    "sort_keys sort_rows tabulate top_of_rows transpose unbounded_tiles window_fold";

// Runs after all cases of the emulated device: what they came to.
class EmulatedCoverage : public testing::Test {
  void TestBody() override {
    const auto& run = run_by("emulated");
    const auto& skipped = skipped_by("emulated");
    if (run.size() + skipped.size() < all_cases().size()) GTEST_SKIP() << "only after all cases: emulated/*";
    const auto known = split(kGpuKernels, ' ');
    EXPECT_EQ(runtime::emulation::kernels_run(), std::set<std::string>(known.begin(), known.end()));
    int plain = 0;
    int plain_run = 0;
    int plain_with_kernels = 0;  // without one: views, shape arithmetic, what the host draws
    for (const OpCase& op_case : all_cases()) {
      if (!is_plain(op_case)) continue;
      ++plain;
      plain_run += run.count(op_case.name) != 0 ? 1 : 0;
      plain_with_kernels += with_kernels().count(op_case.name) != 0 ? 1 : 0;
    }
    std::printf("emulated: %d of %d cases of floats and integers run, %d of them by kernels\n", plain_run, plain,
                plain_with_kernels);
    EXPECT_GE(plain_with_kernels * 100, plain * kLeastPercent);
  }
};

// In place of the cases of an executor that is not to be had.
class MissingExecutor : public testing::Test {
 public:
  explicit MissingExecutor(std::string reason) : reason_(std::move(reason)) {}
  void TestBody() override { GTEST_SKIP() << reason_; }

 private:
  std::string reason_;
};

void register_cases() {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) {
    testing::RegisterTest("cuda/all", "need_a_gpu", nullptr, nullptr, __FILE__, __LINE__,
                          []() -> testing::Test* { return new MissingExecutor(make_cuda_executor().error().message); });
  }
  for (const NamedExecutor& executor : kExecutors) {
    if (executor.name == "cuda" && !cuda.ok()) continue;
    for (const OpCase& op_case : all_cases()) {
      testing::RegisterTest((executor.name + "/" + op_case.family).c_str(), op_case.name.c_str(), nullptr, nullptr,
                            __FILE__, __LINE__,
                            [&op_case, &executor]() -> testing::Test* { return new OpCaseTest(op_case, executor); });
    }
  }
  testing::RegisterTest("emulated/all", "reach_every_kernel", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test* { return new EmulatedCoverage; });
}

// Ends the output with what was not run, by executor.
class SkipCounter : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    const std::string suite = test.test_suite_name();
    if (suite.find('/') == std::string::npos) return;
    Counts& counts = counts_[suite.substr(0, suite.find('/'))];
    ++counts.all;
    if (test.result()->Skipped()) ++counts.skipped;
  }
  void OnTestProgramEnd(const testing::UnitTest&) override {
    for (const auto& [executor, counts] : counts_)
      std::printf("%s: %d cases, %d skipped\n", executor.c_str(), counts.all, counts.skipped);
  }

  struct Counts {
    int all = 0;
    int skipped = 0;
  };
  std::map<std::string, Counts> counts_;
};

}  // namespace
}  // namespace parallax::tests

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  parallax::tests::register_cases();
  testing::UnitTest::GetInstance()->listeners().Append(new parallax::tests::SkipCounter);
  return RUN_ALL_TESTS();
}
