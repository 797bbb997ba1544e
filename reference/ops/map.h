// SPDX-License-Identifier: Apache-2.0
// Elementwise operators: one function applied to every element, or to the elements of several broadcast inputs.
#pragma once

#include <array>
#include <optional>
#include <type_traits>

#include "reference/kernels/lanes.h"
#include "reference/kernels/numbers.h"
#include "reference/ops/indexing.h"
#include "reference/ops/op_context.h"

namespace parallax::reference {

// An input repeated to the shape of the output, read in blocks.
class BroadcastInput {
 public:
  BroadcastInput(const TensorView& view, const Shape& to)
      : view_(view), dims_(to.begin(), to.end()), strides_(broadcast_strides(view.shape, to)) {
    merge_axes();
  }

  // Elements [begin, begin + out.size()) of the repeated input.
  template <class T>
  void read(int64_t begin, std::span<T> out) const {
    if (out.empty()) return;
    const int64_t run = dims_.back();
    const int64_t stride = strides_.back();
    std::vector<int64_t> outer_dims(dims_.begin(), dims_.end() - 1);
    Walk<1> outer(outer_dims, {std::span<const int64_t>(strides_.data(), outer_dims.size())}, begin / run);
    int64_t within = begin % run;
    for (size_t done = 0; done < out.size(); within = 0, outer.next()) {
      const size_t count = std::min(out.size() - done, static_cast<size_t>(run - within));
      const std::span<T> part = out.subspan(done, count);
      if (stride == 0) {
        load<T>(view_, outer.offset(), part.first(1));
        std::fill(part.begin() + 1, part.end(), part[0]);
      } else {
        load<T>(view_, outer.offset() + within, part);
      }
      done += count;
    }
  }

  // The distance of two neighboring elements of the output here, if it is the same everywhere: 1 or 0.
  std::optional<int64_t> only_stride() const { return dims_.size() == 1 ? std::optional(strides_[0]) : std::nullopt; }

 private:
  // Joins neighboring axes that are walked as one, so that runs are long. Leaves at least one axis; the last has
  // stride 0 or 1, since the input is contiguous.
  void merge_axes() {
    for (size_t axis = dims_.size(); axis-- > 1;) {
      const bool both_repeated = strides_[axis] == 0 && strides_[axis - 1] == 0;
      const bool contiguous = strides_[axis] != 0 && strides_[axis - 1] == strides_[axis] * dims_[axis];
      const bool trivial = dims_[axis] == 1;
      if (!both_repeated && !contiguous && !trivial && dims_[axis - 1] != 1) continue;
      if (!both_repeated && !contiguous && !trivial) strides_[axis - 1] = strides_[axis];
      if (contiguous) strides_[axis - 1] = strides_[axis];
      dims_[axis - 1] *= dims_[axis];
      dims_.erase(dims_.begin() + static_cast<std::ptrdiff_t>(axis));
      strides_.erase(strides_.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    if (dims_.empty()) {
      dims_.push_back(1);
      strides_.push_back(0);
    }
  }

  TensorView view_;
  std::vector<int64_t> dims_;
  std::vector<int64_t> strides_;
};

// to[i] = f(from[i]) for i of [begin, end), which are a block's at most.
template <class T, class R, class F>
void map_block(const TensorView& from, int64_t begin, int64_t end, Tensor& to, const F& f) {
  const auto count = static_cast<size_t>(end - begin);
  if constexpr (std::is_same_v<T, double> && std::is_same_v<R, double>) {
    if (from.dtype == DType::float32 && to.dtype() == DType::float32) {
      const float* __restrict in = from.as<float>().data() + begin;
      float* __restrict out = to.mutable_as<float>().data() + begin;
      return with_widest_vectors([=, &f](auto) PX_INLINE {
        for (size_t index = 0; index < count; ++index)
          out[index] = static_cast<float>(f(static_cast<double>(in[index])));
      });
    }
  }
  std::array<T, kBlock> in;
  std::array<R, kBlock> out;
  load<T>(from, begin, std::span(in).first(count));
  for (size_t index = 0; index < count; ++index) out[index] = static_cast<R>(f(in[index]));
  store<R>(to, begin, std::span(out).first(count));
}

// out[i] = f(in[i]), computed in T, stored as `declared`. f may return another kind of number than it takes.
template <class T, class F>
Status map_one(OpContext& op, const Tensor& input, DType declared, int64_t work, F f) {
  using R = std::conditional_t<std::is_same_v<std::invoke_result_t<F, T>, bool>, int64_t, std::invoke_result_t<F, T>>;
  Tensor output = PX_TRY(op.allocate(declared, input.shape()));
  for_blocks(input.element_count(), work,
             [&](int64_t begin, int64_t end) { map_block<T, R>(input, begin, end, output, f); });
  return op.set_output(0, std::move(output));
}

// A floating input and an output of its type.
template <class F>
Status map_floats(OpContext& op, F f) {
  constexpr int64_t kWork = 10;  // a transcendental function
  if (!is_floating(op.input(0).dtype()))
    return unsupported(
        fmt::format("the element type is {}; only floats have a function here", name_of(op.input(0).dtype())));
  return map_one<double>(op, op.input(0), op.input(0).dtype(), kWork, f);
}

// A floating input and an output of its type; f replaces the numbers of a block.
template <class F>
Status map_blocks(OpContext& op, F f) {
  const Tensor& input = op.input(0);
  if (!is_floating(input.dtype()))
    return unsupported(fmt::format("the element type is {}; only floats have a function here", name_of(input.dtype())));
  Tensor output = PX_TRY(op.allocate(input.dtype(), input.shape()));
  for_blocks(input.element_count(), 2, [&](int64_t begin, int64_t end) {
    std::array<double, kBlock> numbers;
    const auto block = std::span(numbers).first(static_cast<size_t>(end - begin));
    load<double>(input, begin, block);
    f(block);
    store<double>(output, begin, block);
  });
  return op.set_output(0, std::move(output));
}

// Any numbers, and an output of their type; f is generic.
template <class F>
Status map_numbers(OpContext& op, F f) {
  const Tensor& input = op.input(0);
  return with_number_type(input.dtype(),
                          [&](auto number) { return map_one<decltype(number)>(op, input, input.dtype(), 2, f); });
}

// out[i] = f(a[i * step_a], b[i * step_b]) for i < count, computed in double; a step is 0 or 1.
template <class F>
void map_two_floats(const float* a, int64_t step_a, const float* b, int64_t step_b, int64_t count,
                    float* __restrict out, const F& f) {
  const auto number = [](float x) PX_INLINE { return static_cast<double>(x); };
  with_widest_vectors([=, &f](auto) PX_INLINE {
    if (step_a == 0) {
      const double left = number(*a);
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(f(left, number(b[i * step_b])));
    } else if (step_b == 0) {
      const double right = number(*b);
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(f(number(a[i]), right));
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(f(number(a[i]), number(b[i])));
    }
  });
}

// out[i] = f(a[i], b[i]) over the broadcast of inputs 0 and 1, which have one element type.
template <class T, class F>
Status map_two(OpContext& op, const Tensor& a, const Tensor& b, DType declared, F f) {
  using R = std::conditional_t<std::is_same_v<std::invoke_result_t<F, T, T>, bool>, int64_t, T>;
  const Shape shape = PX_TRY(broadcast_shapes(a.shape(), b.shape()));
  Tensor output = PX_TRY(op.allocate(declared, shape));
  const BroadcastInput in_a(a, shape);
  const BroadcastInput in_b(b, shape);
  const auto step_a = in_a.only_stride(), step_b = in_b.only_stride();
  for_blocks(shape.element_count(), 3, [&](int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(end - begin);
    if constexpr (std::is_same_v<T, double> && std::is_same_v<R, double>) {
      const auto is_float = [](const Tensor& tensor) { return tensor.dtype() == DType::float32; };
      if (step_a.has_value() && step_b.has_value() && is_float(a) && is_float(b) && is_float(output)) {
        return map_two_floats(a.as<float>().data() + begin * *step_a, *step_a, b.as<float>().data() + begin * *step_b,
                              *step_b, end - begin, output.mutable_as<float>().data() + begin, f);
      }
    }
    std::array<T, kBlock> left;
    std::array<T, kBlock> right;
    std::array<R, kBlock> out;
    in_a.read<T>(begin, std::span(left).first(count));
    in_b.read<T>(begin, std::span(right).first(count));
    for (size_t index = 0; index < count; ++index) out[index] = static_cast<R>(f(left[index], right[index]));
    store<R>(output, begin, std::span(out).first(count));
  });
  return op.set_output(0, std::move(output));
}

template <class F>
Status map_two_numbers(OpContext& op, F f) {
  const DType dtype = op.input(0).dtype();
  return with_number_type(
      dtype, [&](auto number) { return map_two<decltype(number)>(op, op.input(0), op.input(1), dtype, f); });
}

}  // namespace parallax::reference
