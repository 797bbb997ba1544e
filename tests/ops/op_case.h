// OpCase: one operator, its inputs and what it must give, as data. Every case runs on every executor (ops_test.cpp);
// how far a result may be off is the comparison policy's business, never the case's.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "inspector/exec/executor.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax::tests {

struct CaseAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>, Value>
      value;
};

struct OpCase {
  std::string name;
  std::string op;  // of ai.onnx
  int64_t opset;
  std::vector<CaseAttribute> attributes;
  std::vector<Value> inputs;  // an absent one is an omitted optional input
  std::vector<Value> expected;
};

// The cases by family; all_op_cases() joins them.
std::vector<OpCase> elementwise_cases();
std::vector<OpCase> movement_cases();
std::vector<OpCase> reduction_cases();
std::vector<OpCase> products_cases();
std::vector<OpCase> sequential_cases();
std::vector<OpCase> all_op_cases();

// A model of one node, inputs in0, in1, ... and outputs out0, out1, ...
std::shared_ptr<const Model> model_of(const OpCase& op_case);

// Runs the case and says what is wrong with the result, or nothing. Errors: those of the executor.
Result<std::string> problem_with(const OpCase& op_case, Executor& executor);

// Values from numbers in row-major order. Halves and bfloat16 are given as doubles.
using Dims = std::vector<int64_t>;
Value f32(const Dims& dims, const std::vector<double>& values);
Value f64(const Dims& dims, const std::vector<double>& values);
Value f16(const Dims& dims, const std::vector<double>& values);
Value i64(const Dims& dims, const std::vector<int64_t>& values);
Value i32(const Dims& dims, const std::vector<int64_t>& values);
Value i8(const Dims& dims, const std::vector<int64_t>& values);
Value u8(const Dims& dims, const std::vector<int64_t>& values);
Value u64(const Dims& dims, const std::vector<uint64_t>& values);
Value boolean(const Dims& dims, const std::vector<bool>& values);
Value text(const Dims& dims, const std::vector<std::string>& values);
inline Value absent() { return {}; }

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace parallax::tests
