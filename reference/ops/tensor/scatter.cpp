// SPDX-License-Identifier: Apache-2.0
// Operators that write at indices: ScatterElements, ScatterND, TensorScatter, OneHot. Where indices repeat, updates
// take effect in their order.
#include <cmath>
#include <complex>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// Complex numbers have sums and products, but no order.
Status combine_complex(OpContext& op, const Tensor& data, const Tensor& updates, const std::vector<int64_t>& positions,
                       const std::string& reduction) {
  if (reduction != "add" && reduction != "mul")
    return unsupported(
        fmt::format("attribute 'reduction' is '{}'; add and mul have a function for complex numbers", reduction));
  std::vector<double> real, imaginary;
  for (int64_t index = 0; index < data.element_count(); ++index) {
    const std::complex<double> value = element_as_complex(data, index);
    real.push_back(value.real());
    imaginary.push_back(value.imag());
  }
  for (size_t index = 0; index < positions.size(); ++index) {
    const auto target = static_cast<size_t>(positions[index]);
    const std::complex<double> held(real[target], imaginary[target]);
    const std::complex<double> update = element_as_complex(updates, static_cast<int64_t>(index));
    const std::complex<double> combined = reduction == "add" ? held + update : held * update;
    real[target] = combined.real();
    imaginary[target] = combined.imag();
  }
  Tensor output = PX_TRY(op.allocate(data.dtype(), data.shape()));
  store_complex(output, real, imaginary);
  return op.set_output(0, std::move(output));
}

// Update u goes to positions[u] of a copy of data: replaced, or combined as the attribute `reduction` says.
Status apply_updates(OpContext& op, const Tensor& data, const Tensor& updates, const std::vector<int64_t>& positions) {
  const std::string reduction = op.find_string("reduction").value_or("none");
  if (reduction == "none") {
    Tensor output = PX_TRY(op.allocate(data.dtype(), data.shape()));
    copy_run(data, 0, output, 0, data.element_count());
    for (size_t index = 0; index < positions.size(); ++index)
      copy_run(updates, static_cast<int64_t>(index), output, positions[index], 1);
    return op.set_output(0, std::move(output));
  }
  if (reduction != "add" && reduction != "mul" && reduction != "max" && reduction != "min")
    return wrong_attribute("reduction", reduction, "be none, add, mul, max or min");
  if (is_complex(data.dtype())) return combine_complex(op, data, updates, positions, reduction);
  return with_number_type(data.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    const Numbers<T> old(data);
    const Numbers<T> given(updates);
    std::vector<T> results(old.span().begin(), old.span().end());
    const auto is_nan = [](T value) { return value != value; };
    for (size_t index = 0; index < positions.size(); ++index) {
      T& target = results[static_cast<size_t>(positions[index])];
      const T update = given[static_cast<int64_t>(index)];
      if (reduction == "add")
        target = wrapping_add(target, update);
      else if (reduction == "mul")
        target = wrapping_multiply(target, update);
      else if (reduction == "max")
        target = is_nan(target) || target >= update ? target : update;
      else
        target = is_nan(target) || target <= update ? target : update;
    }
    return op.set_output(0, data.dtype(), data.shape(), std::span<const T>(results));
  });
}

Error out_of_range(int64_t index, int64_t dim) {
  return wrong_value("an index", index, "be in [{}, {}), the axis has {} elements", -dim, dim, dim);
}

// output[index with `axis` replaced by indices[index]] = updates[index]. Also Scatter, its earlier name.
Status op_scatter_elements(OpContext& op) {
  const Tensor& data = op.input(0);
  const Tensor& indices = op.input(1);
  const size_t rank = data.shape().rank();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), rank));
  if (!(indices.shape() == op.input(2).shape()) || indices.shape().rank() != rank)
    return wrong_input(op, 1, "have the shape of updates, {}, and the rank of data, {}",
                       op.input(2).shape().to_string(), rank);
  for (size_t other = 0; other < rank; ++other) {
    if (other != axis && indices.shape()[other] > data.shape()[other])
      return wrong_input(op, 1, "be no larger than data {} along axis {}", data.shape().to_string(), other);
  }
  std::vector<int64_t> strides = strides_of(data.shape());
  const int64_t along = strides[axis];
  strides[axis] = 0;
  std::vector<int64_t> positions = to_int64s(indices);
  Walk<1> walk(indices.shape().dims(), {strides});
  for (int64_t& position : positions) {
    const int64_t dim = data.shape()[axis];
    if (position < -dim || position >= dim) return out_of_range(position, dim);
    position = walk.offset() + (position < 0 ? position + dim : position) * along;
    walk.next();
  }
  return apply_updates(op, data, op.input(2), positions);
}

// The last axis of indices names a slice of data; updates holds one slice for each.
Status op_scatter_nd(OpContext& op) {
  const Tensor& data = op.input(0);
  const Shape& shape = data.shape();
  const Shape& asked = op.input(1).shape();
  if (asked.rank() < 1 || asked[asked.rank() - 1] > static_cast<int64_t>(shape.rank()))
    return wrong_input(op, 1, "have rank 1 or more and a last axis of at most {}, the rank of data", shape.rank());
  const auto width = static_cast<size_t>(asked[asked.rank() - 1]);
  const int64_t tuples = count_of(asked, 0, asked.rank() - 1);
  const int64_t run = count_of(shape, width, shape.rank());
  if (op.input(2).element_count() != tuples * run)
    return wrong_input(op, 2, "have {} elements for indices {}", tuples * run, asked.to_string());
  const std::vector<int64_t> strides = strides_of(shape);
  const std::vector<int64_t> indices = to_int64s(op.input(1));
  std::vector<int64_t> positions;
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t base = 0;
    for (size_t axis = 0; axis < width; ++axis) {
      const int64_t index = indices[static_cast<size_t>(tuple) * width + axis];
      if (index < -shape[axis] || index >= shape[axis]) return out_of_range(index, shape[axis]);
      base += (index < 0 ? index + shape[axis] : index) * strides[axis];
    }
    for (int64_t within = 0; within < run; ++within) positions.push_back(base + within);
  }
  return apply_updates(op, data, op.input(2), positions);
}

// A cache updated in place of each sample's write index, linear (must fit) or circular (wraps), along `axis`.
Status op_tensor_scatter(OpContext& op) {
  const Tensor& past = op.input(0);
  const Tensor& update = op.input(1);
  const Shape& shape = past.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const std::string mode = op.string_attribute("mode");
  if (axis == 0 || update.shape().rank() != shape.rank() || (mode != "linear" && mode != "circular"))
    return wrong_input(
        op, 1,
        "have the rank of past_cache, {}; 'axis' ({}) must not be 0 and 'mode' ('{}') must be linear or circular",
        shape.rank(), axis, mode);
  for (size_t other = 0; other < shape.rank(); ++other) {
    if (other == axis ? update.shape()[other] > shape[other] : update.shape()[other] != shape[other])
      return wrong_input(op, 1, "have the shape of past_cache, {}, and be no longer along axis {}", shape.to_string(),
                         axis);
  }
  std::vector<int64_t> starts(static_cast<size_t>(shape[0]), 0);
  if (op.has_input(2)) starts = PX_TRY(op.int64s_of_input(2));
  if (static_cast<int64_t>(starts.size()) != shape[0])
    return wrong_input(op, 2, "have {} elements, one for each batch entry", shape[0]);
  const int64_t length = update.shape()[axis];
  const int64_t inner = count_of(shape, axis + 1, shape.rank());
  const int64_t middle = count_of(shape, 1, axis);
  Tensor output = PX_TRY(op.allocate(past.dtype(), shape));
  copy_run(past, 0, output, 0, past.element_count());
  for (int64_t lead = 0; lead < shape[0] * middle; ++lead) {
    const int64_t start = starts[static_cast<size_t>(lead / middle)];
    if (start < 0 || (mode == "linear" && start > shape[axis] - length)) return out_of_range(start, shape[axis]);
    for (int64_t index = 0; index < length; ++index) {
      const int64_t target = (start % shape[axis] + index) % shape[axis];
      copy_run(update, (lead * length + index) * inner, output, (lead * shape[axis] + target) * inner, inner);
    }
  }
  return op.set_output(0, std::move(output));
}

// values[1] at the index, values[0] elsewhere, along a new axis of length depth. An index outside [-depth, depth) gives
// a row of values[0] alone.
Status op_one_hot(OpContext& op) {
  const Tensor& indices = op.input(0);
  const Tensor& values = op.input(2);
  const size_t rank = indices.shape().rank();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), rank + 1));
  if (values.element_count() != 2) return wrong_input(op, 2, "be [off,on]");
  const double given_depth = PX_TRY(op.double_of_input(1));
  if (!(given_depth >= 0 && given_depth < 1e15))
    return wrong_value("input 'depth'", given_depth, "be 0 or more and below 1e15");
  const auto depth = static_cast<int64_t>(given_depth);
  std::vector<int64_t> dims(indices.shape().begin(), indices.shape().end());
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), depth);
  const Shape shape = PX_TRY(Shape::create(dims));
  std::vector<int64_t> hot(static_cast<size_t>(indices.element_count()));
  if (is_floating(indices.dtype())) {
    const Numbers<double> numbers(indices);
    for (size_t index = 0; index < hot.size(); ++index)
      hot[index] = truncate_to_int64(std::trunc(numbers[static_cast<int64_t>(index)]));
  } else {
    hot = to_int64s(indices);
  }
  Tensor output = PX_TRY(op.allocate(values.dtype(), shape));
  const int64_t inner = count_of(shape, axis + 1, shape.rank());
  gather_elements(values, output, [&](int64_t index) -> int64_t {
    const int64_t asked = hot[static_cast<size_t>(index / inner / depth * inner + index % inner)];
    return (asked < 0 ? wrapping_add(asked, depth) : asked) == index / inner % depth ? 1 : 0;
  });
  return op.set_output(0, std::move(output));
}

constexpr OpRow kScatterRows[] = {
    {"OneHot", kOnnx, 9, 28, op_one_hot},
    {"Scatter", kOnnx, 9, 11, op_scatter_elements},
    {"ScatterElements", kOnnx, 11, 18, op_scatter_elements},
    {"ScatterND", kOnnx, 11, 18, op_scatter_nd},
    {"TensorScatter", kOnnx, 24, 24, op_tensor_scatter},
};

}  // namespace

OpRows scatter_rows() { return kScatterRows; }

}  // namespace parallax::reference
