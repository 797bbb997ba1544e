// SPDX-License-Identifier: Apache-2.0
// Several pointwise steps in one walk over their tensors on a GPU: small programs of operators, and rotations of rows.
// A thread takes 16 bytes of the result at a time. Each step is rounded to the element type S before the next one reads
// it, so the bits are those of kernels of their own.
#pragma once

#include <algorithm>
#include <array>

#include "runtime/device/cpu/map.h"
#include "runtime/device/gpu/index_walk.h"
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

// N neighbors as numbers, by one access.
template <class Device, class S, int N>
PX_HD void load_group(const S* data, float (&values)[N]) {
  const auto pack = load_pack<Device, S, N>(reinterpret_cast<const std::byte*>(data), 0, false);
  for (int j = 0; j < N; ++j) values[j] = storage::from_storage<float>(pack.template get<S>(j));
}
template <class Device, class S, int N>
PX_HD void store_group(S* data, const float (&values)[N]) {
  using Group = Pack<N* static_cast<int>(sizeof(S))>;
  Group group{};
  for (int j = 0; j < N; ++j) group.template set<S>(j, storage::to_storage<S>(values[j]));
  Elements<Device, Group>{reinterpret_cast<Group*>(data)}[0] = group;
}

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

// The reading of an input of so many `elements`, for a result of `count`. `has_whole_groups`: runs of the last axis are
// whole groups.
inline Reading reading_of(int64_t elements, int64_t count, const Ints& strides, bool has_whole_groups, bool is_aligned,
                          int64_t group) {
  if (elements == 1 || (has_whole_groups && strides.back() == 0)) return Reading::repeated;
  if (is_aligned && elements == count) return Reading::contiguous;
  bool moves_by_groups = true;
  for (int64_t axis = 0; axis + 1 < strides.size(); ++axis) moves_by_groups &= strides[axis] % group == 0;
  return is_aligned && has_whole_groups && moves_by_groups ? Reading::row : Reading::scattered;
}

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
  uint32_t count;
  Walk<DeviceProgram::kMostInputs> walk;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, (count + kGroup - 1) / kGroup, [&](uint32_t group) { run(group * kGroup); });
  }

 private:
  PX_HD void run(uint32_t index) const {
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

  PX_HD void fetch(int operand, int step, uint32_t index, const float (&last)[kGroup],
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
  PX_HD static float element(const S* data, int32_t index) {
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
  strides.fill(Ints(dims.size()));
  for (size_t input = 0; input < inputs.size(); ++input)
    strides[input] = broadcast_strides(inputs[input].shape, out.shape);
  merge_axes(dims, strides);
  visit_narrow_float(out.dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    using Kernel = gpu::ProgramKernel<Gpu, S, Operators>;
    auto* target = reinterpret_cast<S*>(out.data);
    for (const gpu::WalkPart& part : gpu::narrow_parts(dims, strides, Queue<Gpu>::kMostNarrow)) {
      const auto part_count = static_cast<uint32_t>(product(part.dims));
      Kernel kernel{program,
                    {},
                    {},
                    target,
                    gpu::is_aligned(reinterpret_cast<const std::byte*>(target), 16),
                    part_count,
                    {part.dims, strides}};
      const bool has_whole_groups = part.dims.back() % Kernel::kGroup == 0;
      for (size_t input = 0; input < inputs.size(); ++input) {
        const std::byte* data =
            inputs[input].data + part.offsets[static_cast<int64_t>(input)] * static_cast<int64_t>(sizeof(S));
        kernel.inputs[input] = reinterpret_cast<const S*>(data);
        kernel.readings[input] = gpu::reading_of(inputs[input].shape.element_count(), count, strides[input],
                                                 has_whole_groups, gpu::is_aligned(data, 16), Kernel::kGroup);
      }
      launch(queue, kernel, gpu::size_for_items(queue, (part_count + Kernel::kGroup - 1) / Kernel::kGroup));
      target += part_count;
    }
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
  uint32_t rows;
  int64_t half;
  Divisor groups;  // of half a row
  Walk<3> walk;    // of rows

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, rows * groups.value, [&](int64_t item) {
      const int64_t row = groups.quotient(item);
      const int64_t at = (item - row * groups.value) * N;
      int32_t begins[3];
      walk.offsets(static_cast<uint32_t>(row), begins);
      const S* from = x + begins[0] + at;
      const S* by_cosine = cosine + begins[1] + at;
      const S* by_sine = sine + begins[2] + at;
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
void launch_rotation(Queue<Gpu>& queue, const std::array<const std::byte*, 3>& in, std::byte* y, const Ints& dims,
                     const std::array<Ints, 3>& strides, int64_t half) {
  auto* target = reinterpret_cast<S*>(y);
  for (const WalkPart& part : narrow_parts(dims, strides, Queue<Gpu>::kMostNarrow)) {
    const auto of = [&](size_t operand) {
      return reinterpret_cast<const S*>(in[operand]) + part.offsets[static_cast<int64_t>(operand)];
    };
    const auto rows = static_cast<uint32_t>(product(part.dims));
    const RotateKernel<Gpu, S, N> kernel{
        of(0), of(1), of(2), target, rows, half, Divisor(half / N), {part.dims, strides}};
    launch(queue, kernel, size_for_items(queue, rows * kernel.groups.value));
    target += rows * 2 * half;
  }
}

}  // namespace gpu

// y = x * cosine + rotated(x) * sine, where the two halves (a, b) of a row are rotated to (-b, a). The rows of y are
// contiguous; `dims` are its axes without the last, `strides` those of x, cosine and sine along them, whose last axis
// is contiguous. Float32, float16 and bfloat16, all of y's type.
template <GpuDevice Gpu>
void rotate_rows(Queue<Gpu>& queue, const MutableView& y, const std::array<const std::byte*, 3>& in, Ints dims,
                 std::array<Ints, 3> strides, int64_t half) {
  if (product(dims) == 0 || half == 0) return;
  merge_axes(dims, strides);
  visit_narrow_float(y.dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    constexpr int kGroup = 16 / sizeof(S);
    bool is_wide = half % kGroup == 0 && gpu::is_aligned(y.data, 16);
    for (size_t operand = 0; operand < in.size(); ++operand) {
      const auto& own = strides[operand];
      is_wide = is_wide && gpu::is_aligned(in[operand], 16) &&
                std::all_of(own.begin(), own.end(), [](int64_t stride) { return stride % kGroup == 0; });
    }
    if (is_wide) return gpu::launch_rotation<S, kGroup>(queue, in, y.data, dims, strides, half);
    gpu::launch_rotation<S, 1>(queue, in, y.data, dims, strides, half);
  });
}

}  // namespace parallax::runtime
