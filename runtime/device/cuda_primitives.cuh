// map, fold_rows and index_map for Queue<Cuda>: the same functors, folds and index maps as on the host, one kernel
// template each. Only nvcc reads it.
#pragma once

#include <array>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "runtime/device/ints.h"
#include "runtime/device/queue_cuda.h"

namespace parallax::runtime::cuda {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65535;
constexpr int kMaxAxes = 16;

inline unsigned blocks_for(int64_t items) {
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : (blocks > kMaxBlocks ? kMaxBlocks : blocks));
}

// Every launch is checked here.
inline Status launched(const char* primitive) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return {};
  return execution_error(std::string("cuda: ") + primitive + ": " + cudaGetErrorString(error));
}

inline cudaStream_t stream_of(Queue<Cuda>& queue) { return static_cast<cudaStream_t>(queue.stream()); }

// One element between storage and arithmetic types; the switch is the same for all threads of a launch.
template <class C>
__device__ C load(DType dtype, const std::byte* data, int64_t index) {
  switch (dtype) {
    case DType::float32:
      return static_cast<C>(reinterpret_cast<const float*>(data)[index]);
    case DType::float64:
      return static_cast<C>(reinterpret_cast<const double*>(data)[index]);
    case DType::float16:
      return static_cast<C>(__half2float(reinterpret_cast<const __half*>(data)[index]));
    case DType::bfloat16:
      return static_cast<C>(__bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[index]));
    case DType::int8:
      return static_cast<C>(reinterpret_cast<const int8_t*>(data)[index]);
    case DType::int16:
      return static_cast<C>(reinterpret_cast<const int16_t*>(data)[index]);
    case DType::int32:
      return static_cast<C>(reinterpret_cast<const int32_t*>(data)[index]);
    case DType::int64:
      return static_cast<C>(reinterpret_cast<const int64_t*>(data)[index]);
    case DType::uint16:
      return static_cast<C>(reinterpret_cast<const uint16_t*>(data)[index]);
    case DType::uint32:
      return static_cast<C>(reinterpret_cast<const uint32_t*>(data)[index]);
    case DType::uint64:
      return static_cast<C>(reinterpret_cast<const uint64_t*>(data)[index]);
    default:  // uint8 and bool
      return static_cast<C>(reinterpret_cast<const uint8_t*>(data)[index]);
  }
}

template <class C>
__device__ void store(DType dtype, std::byte* data, int64_t index, C value) {
  switch (dtype) {
    case DType::float32:
      reinterpret_cast<float*>(data)[index] = static_cast<float>(value);
      return;
    case DType::float64:
      reinterpret_cast<double*>(data)[index] = static_cast<double>(value);
      return;
    case DType::float16:
      reinterpret_cast<__half*>(data)[index] = __float2half_rn(static_cast<float>(value));
      return;
    case DType::bfloat16:
      reinterpret_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16_rn(static_cast<float>(value));
      return;
    case DType::int8:
    case DType::uint8:
      reinterpret_cast<uint8_t*>(data)[index] = static_cast<uint8_t>(static_cast<int64_t>(value));
      return;
    case DType::int16:
    case DType::uint16:
      reinterpret_cast<uint16_t*>(data)[index] = static_cast<uint16_t>(static_cast<int64_t>(value));
      return;
    case DType::int32:
    case DType::uint32:
      reinterpret_cast<uint32_t*>(data)[index] = static_cast<uint32_t>(static_cast<int64_t>(value));
      return;
    case DType::int64:
    case DType::uint64:
      reinterpret_cast<int64_t*>(data)[index] = static_cast<int64_t>(value);
      return;
    default:  // bool
      reinterpret_cast<bool*>(data)[index] = value != C(0);
  }
}

struct Operand {
  const std::byte* data;
  DType dtype;
  int64_t strides[kMaxAxes];
};

template <size_t N>
struct MapArguments {
  Operand in[N];
  std::byte* out;
  DType out_dtype;
  int64_t count;
  int axes;
  int64_t dims[kMaxAxes];
};

template <class C, class F, size_t N, size_t... I>
__device__ auto call(const F& f, const MapArguments<N>& arguments, const int64_t* offsets, std::index_sequence<I...>) {
  return f(load<C>(arguments.in[I].dtype, arguments.in[I].data, offsets[I])...);
}

template <class C, class F, size_t N>
__global__ void map_kernel(F f, MapArguments<N> arguments) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < arguments.count; i += step) {
    int64_t offsets[N] = {};
    int64_t rest = i;
    for (int axis = arguments.axes - 1; axis >= 0; --axis) {
      const int64_t position = rest % arguments.dims[axis];
      rest /= arguments.dims[axis];
      for (size_t operand = 0; operand < N; ++operand)
        offsets[operand] += position * arguments.in[operand].strides[axis];
    }
    using R = decltype(call<C>(f, arguments, offsets, std::make_index_sequence<N>()));
    const R result = call<C>(f, arguments, offsets, std::make_index_sequence<N>());
    store(arguments.out_dtype, arguments.out, i, result);
  }
}

// Sums run along a row in one order inside each thread, then over threads in a fixed tree: the same bits in every run.
template <class C, class Fold>
__global__ void fold_rows_kernel(Fold fold, const std::byte* in, DType in_dtype, std::byte* out, DType out_dtype,
                                 int64_t rows, int64_t length, int64_t inner) {
  __shared__ C partial[kThreads];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t start = row / inner * length * inner + row % inner;
    C accumulator = fold.template init<C>();
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      accumulator = fold.step(accumulator, load<C>(in_dtype, in, start + i * inner));
    }
    partial[threadIdx.x] = accumulator;
    __syncthreads();
    for (unsigned width = kThreads / 2; width > 0; width /= 2) {
      if (threadIdx.x < width) partial[threadIdx.x] = fold.merge(partial[threadIdx.x], partial[threadIdx.x + width]);
      __syncthreads();
    }
    if (threadIdx.x == 0) store(out_dtype, out, row, fold.finish(partial[0], length));
    __syncthreads();
  }
}

// Element i of the output is element f(i) of the source, or the fill element where f(i) < 0. T stands for the element's
// size.
template <class T, class F>
__global__ void index_map_kernel(F f, T* out, const T* source, T fill, int64_t count) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t index = f(i);
    out[i] = index < 0 ? fill : source[index];
  }
}

// Views hold device addresses; C is the arithmetic type as on the host.
template <class C, class F, size_t N>
Status map_as(Queue<Cuda>& queue, const F& f, const MutableView& out, const std::array<TensorView, N>& in) {
  if (out.element_count() == 0) return {};
  MapArguments<N> arguments{};
  arguments.out = out.data;
  arguments.out_dtype = out.dtype;
  arguments.count = out.element_count();
  arguments.axes = static_cast<int>(out.shape.rank());
  for (int axis = 0; axis < arguments.axes; ++axis) arguments.dims[axis] = out.shape[static_cast<size_t>(axis)];
  for (size_t operand = 0; operand < N; ++operand) {
    arguments.in[operand] = {in[operand].data, in[operand].dtype, {}};
    const Ints strides = broadcast_strides(in[operand].shape, out.shape);
    for (int axis = 0; axis < arguments.axes; ++axis) arguments.in[operand].strides[axis] = strides[axis];
  }
  map_kernel<C><<<blocks_for(arguments.count), kThreads, 0, stream_of(queue)>>>(f, arguments);
  return launched("map");
}

template <class C, class Fold>
Status fold_rows(Queue<Cuda>& queue, const Fold& fold, int64_t outer, int64_t length, int64_t inner,
                 const MutableView& out, const TensorView& in) {
  const int64_t rows = outer * inner;
  if (rows == 0) return {};
  const auto blocks = static_cast<unsigned>(rows < kMaxBlocks ? rows : kMaxBlocks);
  fold_rows_kernel<C>
      <<<blocks, kThreads, 0, stream_of(queue)>>>(fold, in.data, in.dtype, out.data, out.dtype, rows, length, inner);
  return launched("fold_rows");
}

template <class T, class F>
Status index_map(Queue<Cuda>& queue, const F& f, const MutableView& out, const std::byte* source, T fill) {
  if (out.element_count() == 0) return {};
  index_map_kernel<T><<<blocks_for(out.element_count()), kThreads, 0, stream_of(queue)>>>(
      f, reinterpret_cast<T*>(out.data), reinterpret_cast<const T*>(source), fill, out.element_count());
  return launched("index_map");
}

}  // namespace parallax::runtime::cuda
