// Every case of every family on every executor: one test for each pair, named <executor>.<case>.
#include <algorithm>

#include <gtest/gtest.h>

#include "reference/reference.h"
#include "tests/ops/op_case.h"

namespace parallax::tests {
namespace {

struct NamedExecutor {
  std::string name;
  std::unique_ptr<Executor> (*make)();
};

const NamedExecutor kExecutors[] = {
    {"reference", [] { return make_reference_executor(ReferencePrecision::declared); }},
    {"reference_double", [] { return make_reference_executor(ReferencePrecision::double_); }},
};

class OpCaseTest : public testing::Test {
 public:
  OpCaseTest(OpCase op_case, const NamedExecutor& executor) : case_(std::move(op_case)), executor_(executor) {}

  void TestBody() override {
    const auto executor = executor_.make();
    const auto problem = problem_with(case_, *executor);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    EXPECT_EQ(*problem, "");
  }

 private:
  OpCase case_;
  const NamedExecutor& executor_;
};

// The names of cases are part of test names: they must be unique.
TEST(OpCases, HaveUniqueNamesAndOutputs) {
  std::vector<std::string> names;
  for (const OpCase& op_case : all_op_cases()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), op_case.name), 0) << op_case.name;
    EXPECT_FALSE(op_case.expected.empty()) << op_case.name;
    names.push_back(op_case.name);
  }
  EXPECT_GE(names.size(), 150U);
}

// A wrong expectation must be noticed: the comparison is not satisfied by anything.
TEST(OpCases, FailOnWrongResults) {
  const auto executor = make_reference_executor(ReferencePrecision::declared);
  for (OpCase op_case : {OpCase{"add", "Add", 14, {}, {f32({2}, {1, 2}), f32({2}, {3, 4})}, {f32({2}, {4, 6.1})}},
                         OpCase{"add", "Add", 14, {}, {i64({1}, {1}), i64({1}, {3})}, {i64({1}, {5})}}}) {
    const auto problem = problem_with(op_case, *executor);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    EXPECT_NE(*problem, "");
  }
}

void register_cases() {
  for (const NamedExecutor& executor : kExecutors) {
    for (const OpCase& op_case : all_op_cases()) {
      testing::RegisterTest(executor.name.c_str(), op_case.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [op_case, &executor]() -> testing::Test* { return new OpCaseTest(op_case, executor); });
    }
  }
}

}  // namespace
}  // namespace parallax::tests

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  parallax::tests::register_cases();
  return RUN_ALL_TESTS();
}
