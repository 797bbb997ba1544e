// SPDX-License-Identifier: Apache-2.0
// Operators that map and move elements, on an executor of a GPU device against the host's, in each layout that has a
// kernel or a width of access of its own.
#pragma once

#include "tests/runtime/sorting_cases.h"

namespace parallax::elementwise_cases {

using model_text::integer_attribute;
using model_text::integers_attribute;
using model_text::node;
using model_text::value;
using sorting_cases::numbers;
using sorting_cases::SortingCase;

inline SortingCase one_node(const std::string& op, DType out, const std::vector<Tensor>& inputs,
                            const std::string& more = "") {
  SortingCase made{op, "", 16, {}};
  std::vector<std::string> names;
  std::string values;
  for (const Tensor& each : inputs) {
    names.push_back("x" + std::to_string(names.size()));
    values += value("input", names.back(), static_cast<int>(each.dtype()));
    made.name += " " + std::string(name_of(each.dtype())) + " " + each.shape().to_string();
    made.inputs.emplace_back(each);
  }
  made.graph = node(op, names, {"y"}, more) + values + value("output", "y", static_cast<int>(out));
  return made;
}

inline Tensor conditions(const Shape& shape) {
  std::vector<uint8_t> flags(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = i * 7 % 3 == 0 ? 1 : 0;
  Tensor tensor = Tensor::allocate(DType::bool_, shape).take();
  std::copy(flags.begin(), flags.end(), reinterpret_cast<uint8_t*>(tensor.mutable_data()));
  return tensor;
}

// Two operands: packs and what is left of them, one element for all, each axis broadcast, rows of whole packs and not.
inline std::vector<std::pair<Shape, Shape>> operand_shapes() {
  return {{{1}, {1}},
          {{3}, {3}},
          {{16}, {16}},
          {{1021}, {1021}},
          {{0, 3}, {0, 3}},
          {{1021}, {}},
          {{}, {37}},
          {{5, 16}, {5, 1}},
          {{5, 16}, {1, 16}},
          {{5, 16}, {16}},
          {{7, 1}, {1, 24}},
          {{3, 5, 32}, {5, 1}},
          {{3, 5, 32}, {3, 1, 32}},
          {{3, 5, 49}, {5, 1}},
          {{4, 1, 8}, {1, 6, 8}},
          {{2, 3, 1, 16}, {1, 3, 4, 1}}};
}

inline std::vector<SortingCase> elementwise_cases() {
  std::vector<SortingCase> cases;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::int64, DType::int32}) {
    for (const auto& [a, b] : operand_shapes()) {
      cases.push_back(one_node("Add", dtype, {numbers(dtype, a), numbers(dtype, b, 101)}));
      cases.push_back(one_node("Greater", DType::bool_, {numbers(dtype, a), numbers(dtype, b, 101)}));
      cases.push_back(one_node("Where", dtype, {conditions(a), numbers(dtype, a), numbers(dtype, b)}));
    }
  }
  for (const DType dtype : {DType::int8, DType::float16, DType::float32, DType::float64}) {
    const auto transposed = [&](const Shape& shape, const std::vector<int64_t>& order) {
      cases.push_back(one_node("Transpose", dtype, {numbers(dtype, shape)}, integers_attribute("perm", order)));
    };
    transposed({37, 70}, {1, 0});
    transposed({3, 67, 9}, {0, 2, 1});
    transposed({2, 35, 3, 16}, {0, 2, 1, 3});  // rows stay together
    transposed({2, 9, 33, 5}, {0, 3, 1, 2});
    transposed({2, 33, 3, 65}, {3, 2, 0, 1});
    transposed({5, 4}, {1, 0});  // too small for tiles
    for (const DType to : {DType::float32, DType::float16, DType::bfloat16, DType::int64}) {
      if (to == dtype) continue;
      cases.push_back(
          one_node("Cast", to, {numbers(dtype, Shape{133})}, integer_attribute("to", static_cast<int>(to))));
    }
    for (const int64_t width : {16, 3}) {
      const Tensor parts[] = {numbers(dtype, Shape{6, width}), numbers(dtype, Shape{6, 2 * width})};
      cases.push_back(one_node("Concat", dtype, {parts[0], parts[1]}, integer_attribute("axis", 1)));
      cases.push_back(one_node("Gather", dtype, {parts[1], sorting_cases::indices(11, 6)}));
    }
  }
  return cases;
}

}  // namespace parallax::elementwise_cases
