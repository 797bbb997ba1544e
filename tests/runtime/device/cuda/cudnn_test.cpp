// SPDX-License-Identifier: Apache-2.0
// cuDNN is where a program that was built with it finds it, has every function that is called, and makes plans of the
// graphs it is given: for a GPU that is described to it, so that none is needed.
#ifdef PX_WITH_CUDNN

#include "runtime/device/cuda/cudnn.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/device/cuda/attention_graph.h"
#include "runtime/device/cuda/conv_graph.h"
#include "tests/runtime/device/products/attention_cases.h"
#include "tests/runtime/device/products/conv_cases.h"

namespace parallax::runtime {
namespace {

TEST(Cudnn, IsFoundWithAllItsFunctionsOrSaidToBeMissing) {
  const Status status = load_cudnn();
  if (!status.ok()) {
    EXPECT_EQ(cudnn_version(), "not found");
    EXPECT_NE(status.error().message.find("install cuDNN"), std::string::npos) << status.error().message;
    GTEST_SKIP() << status.error().message;
  }
  EXPECT_EQ(cudnn_version().substr(0, cudnn_version().find('.')), std::to_string(CUDNN_MAJOR));
  EXPECT_STRNE(cudnn().cudnnGetErrorString(CUDNN_STATUS_NOT_SUPPORTED),
               cudnn().cudnnGetErrorString(CUDNN_STATUS_SUCCESS));
}

#if CUDNN_VERSION >= 90800

// An H100, as cuDNN writes such a description of a GPU that it has.
constexpr std::string_view kH100 = R"({"deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000,
  "cudaDeviceId": 0, "multiProcessorCount": 132, "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
  "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800,
  "totalGlobalMem": 85000000000})";

// Null where this cuDNN does not take the description.
CudnnDescriptor described_gpu() {
  cudnnBackendDescriptor_t made = nullptr;
  if (cudnn().cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &made) != CUDNN_STATUS_SUCCESS) {
    return {cudnn(), nullptr};
  }
  CudnnDescriptor gpu(cudnn(), made);
  const bool is_taken =
      cudnn().cudnnBackendSetAttribute(made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, kH100.size(),
                                       kH100.data()) == CUDNN_STATUS_SUCCESS &&
      cudnn().cudnnBackendFinalize(made) == CUDNN_STATUS_SUCCESS;
  return is_taken ? std::move(gpu) : CudnnDescriptor(cudnn(), nullptr);
}

LibraryConv unlocated(const ConvCase& given, DType dtype) {
  const ConvShapes shapes = shapes_of(given);
  LibraryConv conv{problem_of(given), given.is_transposed, {}, {}, {}, {}};
  conv.x.dtype = conv.filters.dtype = conv.y.dtype = dtype;
  conv.x.shape = shapes.x;
  conv.filters.shape = shapes.filters;
  conv.y.shape = shapes.y;
  if (given.has_bias && !given.is_transposed) conv.bias.dtype = dtype;
  return conv;
}

// The layers of ResNet-50 that differ, biases (of its folded normalizations) included; two of MobileNet and a U-Net's.
// clang-format off
const std::vector<ConvCase> kLayers = {
    {"stem", 8, 3, 64, 1, {224, 224}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, true},
    {"reduce", 8, 256, 64, 1, {56, 56}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, true},
    {"square", 8, 128, 128, 1, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, true},
    {"halve", 8, 256, 256, 1, {28, 28}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, true},
    {"expand", 8, 512, 2048, 1, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, true},
    {"no_bias", 8, 64, 64, 1, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise", 1, 96, 96, 96, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"same_pads", 1, 32, 64, 1, {112, 112}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, true},
    {"up", 1, 64, 32, 1, {28, 28}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, false, true, {0, 0}},
};
// clang-format on

class CudnnForAnH100 : public testing::TestWithParam<ConvCase> {};

TEST_P(CudnnForAnH100, HasAPlanThatKeepsTheRules) {
  if (!load_cudnn().ok()) GTEST_SKIP() << load_cudnn().error().message;
  const CudnnDescriptor gpu = described_gpu();
  if (gpu.get() == nullptr) GTEST_SKIP() << "cuDNN " << cudnn_version() << " takes another description of a GPU";
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const LibraryConv conv = unlocated(GetParam(), dtype);
    EXPECT_TRUE(suits_cudnn(conv));
    for (const bool tf32 : {false, true}) {
      const CudnnChoice choice = choose_conv_plan(cudnn(), {.properties = gpu.get()}, conv, tf32);
      EXPECT_NE(choice.plan, nullptr) << name_of(dtype) << (tf32 ? ", TF32: " : ": ") << choice.refusal;
    }
  }
}

// The engines of attention are compiled when a plan is made, and then handed to the driver. Without one, the toolkit's
// stand-in for it lets them come so far, and it is what refuses.
bool has_driver_or_stand_in() {
  return ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr ||
         ::dlopen(PX_CUDA_STAND_IN, RTLD_NOW | RTLD_GLOBAL) != nullptr;
}

// As a transformer has it, its keys and values in a cache, and few queries; and with padding masked.
// clang-format off
const std::vector<std::pair<AttentionCase, DType>> kTransformers = {
    {{"bert", 8, 12, 12, 384, 384, 64, 64, true, AttentionCase::Added::one_row, true, 0.125}, DType::float16},
    {{"gpt", 1, 16, 16, 1024, 1024, 64, 64, false, AttentionCase::Added::one, false, 0.125}, DType::bfloat16},
    {{"llama_step", 2, 32, 8, 1, 777, 128, 128}, DType::bfloat16},
    {{"vision", 8, 12, 12, 197, 197, 64, 64, true}, DType::float16},
    {{"diffusion", 2, 8, 8, 4096, 77, 40, 40}, DType::float16},
};
// clang-format on

class CudnnAttentionForAnH100 : public testing::TestWithParam<std::pair<AttentionCase, DType>> {
 protected:
  void SetUp() override {
    if (!load_cudnn().ok()) GTEST_SKIP() << load_cudnn().error().message;
    if (!has_driver_or_stand_in()) GTEST_SKIP() << "neither NVIDIA's driver nor the toolkit's stand-in for it is there";
  }
  // Empty where an engine has been compiled, else why not.
  static std::string refusal_of(const LibraryAttention& attention, const AttentionOffsets& locations,
                                const CudnnDescriptor& gpu) {
    const CudnnChoice choice = choose_attention_plan(cudnn(), {.properties = gpu.get()}, attention, locations);
    const bool is_compiled = choice.plan != nullptr || choice.refusal.find("cuLibraryLoadData") != std::string::npos;
    return is_compiled ? "" : choice.refusal;
  }
};

TEST_P(CudnnAttentionForAnH100, KnowsThePattern) {
  const CudnnDescriptor gpu = described_gpu();
  if (gpu.get() == nullptr) GTEST_SKIP() << "cuDNN " << cudnn_version() << " takes another description of a GPU";
  alignas(16) static constexpr std::byte kSomewhere[16] = {};
  const auto& [given, dtype] = GetParam();
  LibraryAttention attention = attention_of(given, dtype);
  if (given.added != AttentionCase::Added::nothing) attention.added = kSomewhere;
  const auto locations = suits_cudnn(attention, CUDNN_VERSION);
  ASSERT_TRUE(locations.has_value());
  EXPECT_EQ(refusal_of(attention, *locations, gpu), "");
  attention.problem.size = 20;
  EXPECT_NE(refusal_of(attention, *locations, gpu), "") << "cuDNN knows multiples of 8 alone";
}

const auto kName = [](const auto& given) { return std::string(given.param.name); };
INSTANTIATE_TEST_SUITE_P(Transformers, CudnnAttentionForAnH100, testing::ValuesIn(kTransformers),
                         [](const auto& given) { return std::string(given.param.first.name); });
INSTANTIATE_TEST_SUITE_P(Layers, CudnnForAnH100, testing::ValuesIn(kLayers), kName);
INSTANTIATE_TEST_SUITE_P(Cases, CudnnForAnH100, testing::ValuesIn(kConvCases), kName);

#endif

}  // namespace
}  // namespace parallax::runtime

#endif
