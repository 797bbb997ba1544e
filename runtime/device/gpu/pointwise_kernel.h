// SPDX-License-Identifier: Apache-2.0
// Several pointwise steps in one walk over their tensors on a GPU: small programs of operators, and rotations of rows.
// A thread takes 16 bytes of the result at a time. Each step is rounded to the element type S before the next one reads
// it, so the bits are those of kernels of their own.
#pragma once

#include <array>
#include <bit>

#include "runtime/device/cpu/map.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {

template <class S>
PX_HD float rounded_to(float value) {
  return storage::from_storage<float>(storage::to_storage<S>(value));
}

// Calls visit with a null pointer of the storage type of a float that is computed in float32.
template <class Visit>
auto visit_narrow_float(DType dtype, const Visit& visit) {
  if (dtype == DType::float16) return visit(static_cast<Float16*>(nullptr));
  if (dtype == DType::bfloat16) return visit(static_cast<BFloat16*>(nullptr));
  return visit(static_cast<float*>(nullptr));
}

namespace gpu {

struct alignas(16) Words16 {
  uint32_t words[4];
};

// N elements that are loaded and stored at once: 16 bytes as words, or one element.
template <class S, int N>
using Group = std::conditional_t<N == 1, S, Words16>;

template <class Device, class S, int N>
PX_HD void load_group(const S* data, float (&values)[N]) {
  struct Elements16 {
    S elements[N];
  };
  const auto group = Elements<Device, const Group<S, N>>{reinterpret_cast<const Group<S, N>*>(data)}[0];
  const auto all = std::bit_cast<Elements16>(group);
  for (int j = 0; j < N; ++j) values[j] = storage::from_storage<float>(all.elements[j]);
}
template <class Device, class S, int N>
PX_HD void store_group(S* data, const float (&values)[N]) {
  struct Elements16 {
    S elements[N];
  };
  Elements16 all;
  for (int j = 0; j < N; ++j) all.elements[j] = storage::to_storage<S>(values[j]);
  Elements<Device, Group<S, N>>{reinterpret_cast<Group<S, N>*>(data)}[0] = std::bit_cast<Group<S, N>>(all);
}

inline bool is_aligned(const std::byte* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// The axes of a result, and how far each operand moves along them, in elements.
template <int kOperands>
struct OperandWalk {
  int axes = 0;
  bool fits_32_bits = false;  // the number of elements: divisions are then of 32 bits
  int64_t dims[kMaxAxes] = {};
  int64_t strides[kOperands][kMaxAxes] = {};

  OperandWalk() = default;
  OperandWalk(const Ints& own_dims, std::span<const Ints> own_strides)
      : axes(static_cast<int>(own_dims.size())), fits_32_bits(product(own_dims) <= INT32_MAX) {
    for (int axis = 0; axis < axes; ++axis) dims[axis] = own_dims[axis];
    for (size_t operand = 0; operand < own_strides.size(); ++operand) {
      for (int axis = 0; axis < axes; ++axis) strides[operand][axis] = own_strides[operand][axis];
    }
  }

  PX_HD int64_t offset(int operand, int64_t index) const {
    return fits_32_bits ? offset_by<uint32_t>(operand, static_cast<uint32_t>(index))
                        : offset_by<uint64_t>(operand, static_cast<uint64_t>(index));
  }
  // True where the operand's offsets differ by multiples of `group` along all axes but the last.
  bool moves_by(int operand, int64_t group) const {
    for (int axis = 0; axis + 1 < axes; ++axis) {
      if (strides[operand][axis] % group != 0) return false;
    }
    return true;
  }

 private:
  template <class Index>
  PX_HD int64_t offset_by(int operand, Index rest) const {
    int64_t offset = 0;
    for (int axis = axes - 1; axis > 0; --axis) {
      const Index dim = static_cast<Index>(dims[axis]);
      offset += static_cast<int64_t>(rest % dim) * strides[operand][axis];
      rest /= dim;
    }
    return offset + static_cast<int64_t>(rest) * strides[operand][0];
  }
};

}  // namespace gpu

// ---- Programs ----

// Step i is operator `code` of the operands a and b, which are numbered: inputs first, then results.
struct DeviceProgram {
  static constexpr int kMostSteps = 16, kMostInputs = 8;
  struct Step {
    uint8_t code = 0, a = 0, b = 0;
    bool has_b = false;
    bool is_kept = false;  // a later step than the next one reads its result
  };
  int step_count = 0, input_count = 0;
  Step steps[kMostSteps];
};

namespace gpu {

// How an input is read for a group of the result.
enum class Reading : uint8_t {
  contiguous,  // the very elements of the result, aligned
  row,         // a group of its own, aligned: the group of the result is within one run of the last axis
  repeated,    // one element: the input does not move along the last axis, and the group is within one run of it
  scattered,   // element by element
};

// Operators: a struct with `template <int N> static void apply(uint8_t code, float (&x)[N], const float (&y)[N])`,
// which leaves the result of x and y in x.
template <class Device, class S, class Operators>
struct ProgramKernel {
  static constexpr const char* kName = "pointwise";
  static constexpr int kGroup = 16 / sizeof(S);
  DeviceProgram program;
  const S* inputs[DeviceProgram::kMostInputs];
  Reading readings[DeviceProgram::kMostInputs];
  S* out;
  bool is_out_aligned;
  int64_t count;
  OperandWalk<DeviceProgram::kMostInputs> walk;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, (count + kGroup - 1) / kGroup, [&](int64_t group) { run(group * kGroup); });
  }

 private:
  PX_HD void run(int64_t index) const {
    float kept[DeviceProgram::kMostSteps][kGroup];
    float last[kGroup] = {}, x[kGroup], y[kGroup];
    for (int i = 0; i < program.step_count; ++i) {
      const DeviceProgram::Step step = program.steps[i];
      fetch(step.a, i, index, last, kept, x);
      if (step.has_b) fetch(step.b, i, index, last, kept, y);
      Operators::apply(step.code, x, y);
      for (int j = 0; j < kGroup; ++j) last[j] = rounded_to<S>(x[j]);
      if (!step.is_kept) continue;
      for (int j = 0; j < kGroup; ++j) kept[i][j] = last[j];
    }
    if (is_out_aligned && index + kGroup <= count) return store_group<Device>(out + index, last);
    for (int j = 0; j < kGroup && index + j < count; ++j)
      Elements<Device, S>{out}[index + j] = storage::to_storage<S>(last[j]);
  }

  PX_HD void fetch(int operand, int step, int64_t index, const float (&last)[kGroup],
                   const float (&kept)[DeviceProgram::kMostSteps][kGroup], float (&values)[kGroup]) const {
    const int result = operand - program.input_count;
    if (result >= 0) {
      for (int j = 0; j < kGroup; ++j) values[j] = result + 1 == step ? last[j] : kept[result][j];
      return;
    }
    const S* data = inputs[operand];
    const Reading reading = readings[operand];
    const bool is_whole = index + kGroup <= count;
    if (reading == Reading::contiguous && is_whole) return load_group<Device>(data + index, values);
    if (reading == Reading::row) return load_group<Device>(data + walk.offset(operand, index), values);
    if (reading == Reading::repeated) {
      const float value = element(data, walk.offset(operand, index));
      for (int j = 0; j < kGroup; ++j) values[j] = value;
      return;
    }
    for (int j = 0; j < kGroup; ++j)
      values[j] = index + j < count ? element(data, walk.offset(operand, index + j)) : 0.0F;
  }
  PX_HD static float element(const S* data, int64_t index) {
    return storage::from_storage<float>(Elements<Device, const S>{data}[index]);
  }
};

}  // namespace gpu

// out = the last result of the program over inputs of out's element type, which are broadcast to its shape. Float32,
// float16 and bfloat16.
template <class Operators, GpuDevice Gpu>
void run_program(Queue<Gpu>& queue, const DeviceProgram& program, const MutableView& out,
                 std::span<const TensorView> inputs) {
  const int64_t count = out.element_count();
  if (count == 0) return;
  Ints dims = out.shape;
  std::array<Ints, DeviceProgram::kMostInputs> strides;
  for (size_t input = 0; input < inputs.size(); ++input)
    strides[input] = broadcast_strides(inputs[input].shape, out.shape);
  merge_axes(dims, std::span(strides).first(inputs.size()));
  visit_narrow_float(out.dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    using Kernel = gpu::ProgramKernel<Gpu, S, Operators>;
    Kernel kernel{program,
                  {},
                  {},
                  reinterpret_cast<S*>(out.data),
                  gpu::is_aligned(out.data),
                  count,
                  {dims, std::span(strides).first(inputs.size())}};
    const bool has_whole_groups = dims.back() % Kernel::kGroup == 0;
    for (size_t input = 0; input < inputs.size(); ++input) {
      const std::byte* data = inputs[input].data;
      kernel.inputs[input] = reinterpret_cast<const S*>(data);
      gpu::Reading& reading = kernel.readings[input];
      reading = gpu::Reading::scattered;
      if (inputs[input].shape.element_count() == 1 || (has_whole_groups && strides[input].back() == 0)) {
        reading = gpu::Reading::repeated;
      } else if (gpu::is_aligned(data)) {
        const bool moves_by_groups = kernel.walk.moves_by(static_cast<int>(input), Kernel::kGroup);
        if (inputs[input].shape.element_count() == count)
          reading = gpu::Reading::contiguous;
        else if (has_whole_groups && moves_by_groups)
          reading = gpu::Reading::row;
      }
    }
    launch(queue, kernel, gpu::size_for_items(queue, (count + Kernel::kGroup - 1) / Kernel::kGroup));
  });
}

// ---- Rotations ----

namespace gpu {

// y = x * cosine + rotated(x) * sine; a thread takes N elements of the first half of a row and those of the second.
template <class Device, class S, int N>
struct RotateKernel {
  static constexpr const char* kName = "rotate";
  const S *x, *cosine, *sine;
  S* y;
  int64_t rows, half;
  OperandWalk<3> walk;  // of rows

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const int64_t groups = half / N;
    for_each_item(launch, rows * groups, [&](int64_t item) {
      const int64_t row =
          walk.fits_32_bits ? static_cast<uint32_t>(item) / static_cast<uint32_t>(groups) : item / groups;
      const int64_t at = (item - row * groups) * N;
      const S* from = x + walk.offset(0, row) + at;
      const S* by_cosine = cosine + walk.offset(1, row) + at;
      const S* by_sine = sine + walk.offset(2, row) + at;
      float a[N], b[N], first[2][N], second[2][N];
      load_group<Device>(from, a);
      load_group<Device>(from + half, b);
      load_group<Device>(by_cosine, first[0]);
      load_group<Device>(by_cosine + half, second[0]);
      load_group<Device>(by_sine, first[1]);
      load_group<Device>(by_sine + half, second[1]);
      for (int j = 0; j < N; ++j) {
        const float one = a[j], other = b[j];
        a[j] = rounded_to<S>(one * first[0][j]) + rounded_to<S>(-other * first[1][j]);
        b[j] = rounded_to<S>(other * second[0][j]) + rounded_to<S>(one * second[1][j]);
      }
      S* const to = y + row * 2 * half + at;
      store_group<Device>(to, a);
      store_group<Device>(to + half, b);
    });
  }
};

template <class S, int N, GpuDevice Gpu>
void launch_rotation(Queue<Gpu>& queue, const std::array<const std::byte*, 3>& in, std::byte* y, int64_t rows,
                     int64_t half, OperandWalk<3> walk) {
  const int64_t items = rows * (half / N);
  walk.fits_32_bits = items <= INT32_MAX;
  const auto of = [](const std::byte* data) { return reinterpret_cast<const S*>(data); };
  const RotateKernel<Gpu, S, N> kernel{of(in[0]), of(in[1]), of(in[2]), reinterpret_cast<S*>(y), rows, half, walk};
  launch(queue, kernel, size_for_items(queue, items));
}

}  // namespace gpu

// y = x * cosine + rotated(x) * sine, where the two halves (a, b) of a row are rotated to (-b, a). The rows of y are
// contiguous; `dims` are its axes without the last, `strides` those of x, cosine and sine along them, whose last axis
// is contiguous. Float32, float16 and bfloat16, all of y's type.
template <GpuDevice Gpu>
void rotate_rows(Queue<Gpu>& queue, const MutableView& y, const std::array<const std::byte*, 3>& in, Ints dims,
                 std::array<Ints, 3> strides, int64_t half) {
  const int64_t rows = product(dims);
  if (rows == 0 || half == 0) return;
  merge_axes(dims, strides);
  const gpu::OperandWalk<3> walk(dims, strides);
  visit_narrow_float(y.dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    constexpr int kGroup = 16 / sizeof(S);
    bool is_wide = half % kGroup == 0 && gpu::is_aligned(y.data);
    for (size_t operand = 0; operand < in.size(); ++operand) {
      const auto& own = strides[operand];
      is_wide = is_wide && gpu::is_aligned(in[operand]) &&
                std::all_of(own.begin(), own.end(), [](int64_t stride) { return stride % kGroup == 0; });
    }
    if (is_wide) return gpu::launch_rotation<S, kGroup>(queue, in, y.data, rows, half, walk);
    gpu::launch_rotation<S, 1>(queue, in, y.data, rows, half, walk);
  });
}

}  // namespace parallax::runtime
