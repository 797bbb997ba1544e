// SPDX-License-Identifier: Apache-2.0
// The interpreter on PTX that is written here: what it computes, and what each of its checks says of a wrong kernel.
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/runtime/ptx/block.h"
#include "tests/runtime/ptx/module.h"

namespace parallax::ptx {
namespace {

// Kernels of (input, output): element i of the block is loaded, `body` makes %f2 of %f1, and it is stored at %rd6.
std::string kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + R"((
  .param .u64 )" +
         name + R"(_param_0,
  .param .u64 )" +
         name + R"(_param_1
)
{
  .reg .pred %p<4>;
  .reg .f32 %f<8>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b8 block_memory[256];
  ld.param.u64 %rd1, [)" +
         name + R"(_param_0];
  ld.param.u64 %rd2, [)" +
         name + R"(_param_1];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  ld.global.f32 %f1, [%rd5];
)" + body +
         R"(
  st.global.f32 [%rd6], %f2;
  ret;
}
)";
}

// Element i is exchanged with element 63 - i through shared memory.
std::string reversal(const std::string& between) {
  return "mov.u32 %r2, block_memory; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3; st.shared.f32 [%r4], %f1;\n" +
         between + "\nsub.s32 %r5, 252, %r3; add.s32 %r6, %r2, %r5; ld.shared.f32 %f2, [%r6];";
}

// A lane's fragments are made of its number l: both words of b are of l, and those of a of l, 1, 2 and 3; c is 100. The
// result is that of one of the lane's four numbers: l % 4.
std::string product(const std::string& type, const std::string& shape) {
  const std::string convert = "cvt." + std::string(type == "tf32" ? "rna." : "rn.") + type + ".f32 ";
  const auto word = [&](const std::string& target, const std::string& source) {
    return convert + target + ", " + source + (type == "tf32" ? ";\n" : ", " + source + ";\n");
  };
  return ".reg .b32 %a<6>; .reg .f32 %d<4>;\n" + word("%a0", "%f1") + word("%a1", "0f3F800000") +
         word("%a2", "0f40000000") + word("%a3", "0f40400000") + word("%a4", "%f1") + word("%a5", "%f1") +
         "mov.f32 %d0, 0f42C80000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;\n" + "mma.sync.aligned." +
         shape + " {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%d0, %d1, %d2, %d3};\n" +
         "and.b32 %r2, %r1, 3; mov.f32 %f2, %d0; setp.eq.u32 %p1, %r2, 1; @%p1 mov.f32 %f2, %d1;\n"
         "setp.eq.u32 %p1, %r2, 2; @%p1 mov.f32 %f2, %d2; setp.eq.u32 %p1, %r2, 3; @%p1 mov.f32 %f2, %d3;\n";
}

class Interpreter : public testing::Test {
 protected:
  static constexpr uint32_t kThreads = 64;

  static void SetUpTestSuite() {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "interpreter_test";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "kernels.ptx")
        << ".version 9.0\n.target sm_90\n.address_size 64\n"
        << kernel("multiply_add", "fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;")
        << kernel("add_toward_zero", "add.rz.f32 %f2, %f1, 0f33C00000;") << kernel("reverse", reversal("bar.sync 0;"))
        << kernel("reverse_in_a_race", reversal("")) << kernel("shift_up", "add.s64 %rd6, %rd6, 4; mov.f32 %f2, %f1;")
        << kernel("misalign", "add.s64 %rd6, %rd6, 2; mov.f32 %f2, %f1;")
        << kernel("race_in_device_memory", "mov.u64 %rd6, %rd2; mov.f32 %f2, %f1;")
        << kernel("wait_for_ever", std::string("setp.gt.u32 %p1, %r1, 15; @%p1 bra $L_barrier; bar.warp.sync -1;\n") +
                                       "$L_barrier:\nbar.sync 0; mov.f32 %f2, %f1;")
        << kernel("unknown", "wgmma.fence.sync.aligned; mov.f32 %f2, %f1;")
        << kernel("divide_by_zero", "mov.u32 %r2, 0; div.u32 %r3, %r1, %r2; mov.f32 %f2, %f1;")
        << kernel("overflow_shared", "mov.u32 %r2, block_memory; st.shared.f32 [%r2+256], %f1; mov.f32 %f2, %f1;")
        << kernel("mma_f16", product("f16x2", "m16n8k16.row.col.f32.f16.f16.f32"))
        << kernel("mma_bf16", product("bf16x2", "m16n8k16.row.col.f32.bf16.bf16.f32"))
        << kernel("mma_tf32", product("tf32", "m16n8k8.row.col.f32.tf32.tf32.f32"))
        << kernel("mma_f64", product("f16x2", "m16n8k16.row.col.f32.f64.f64.f32"))
        << kernel("mma_of_half_a_warp", "setp.gt.u32 %p1, %r1, 15; @%p1 bra $L_end;\n" +
                                            product("f16x2", "m16n8k16.row.col.f32.f16.f16.f32") + "$L_end:\n")
        << kernel("round_to_tf32", "cvt.rna.tf32.f32 %r2, %f1; mov.b32 %f2, %r2;")
        << kernel("round_to_f16", "cvt.rn.f16x2.f32 %r2, %f1, 0fC0000000; cvt.rn.f32.u32 %f2, %r2;")
        << kernel("round_to_bf16",
                  "cvt.rn.bf16x2.f32 %r2, %f1, 0f3F800000; shr.u32 %r2, %r2, 16; cvt.rn.f32.u32 %f2, "
                  "%r2;")
        << kernel("sum_of_warp",
                  "mov.b32 %r2, %f1; shfl.sync.down.b32 %r3|%p1, %r2, 1, 31, -1; mov.b32 %f3, %r3; add.f32 %f2, %f1, "
                  "%f3;");
    load_modules(folder.string());
    std::filesystem::remove_all(folder);
  }

  void SetUp() override {
    input_ = device_memory().allocate(kThreads * sizeof(float));
    output_ = device_memory().allocate(kThreads * sizeof(float));
    for (uint32_t i = 0; i < kThreads; ++i) {
      const auto value = static_cast<float>(i);
      std::memcpy(input_ + i * sizeof value, &value, sizeof value);
    }
  }
  void TearDown() override {
    EXPECT_EQ(device_memory().free(input_), "");
    EXPECT_EQ(device_memory().free(output_), "");
  }

  std::string run(const std::string& name, const void* output) {
    const void* arguments[] = {input_, output};
    std::vector<std::byte> bytes(sizeof arguments);
    std::memcpy(bytes.data(), arguments, sizeof arguments);
    Function* found = find_kernel(name);
    EXPECT_NE(found, nullptr) << name;
    return found == nullptr ? "" : run_kernel(*found, {{}, {kThreads, 1, 1}, 0}, bytes, true, work_);
  }
  std::string run(const std::string& name) { return run(name, output_); }

  float result(uint32_t index) const {
    float value = 0;
    std::memcpy(&value, output_ + index * sizeof value, sizeof value);
    return value;
  }

  // Every word must be in the problem.
  static void expect_words(const std::string& problem, const std::vector<std::string>& words) {
    for (const std::string& word : words)
      EXPECT_NE(problem.find(word), std::string::npos) << word << " in: " << problem;
  }

  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  LaunchWork work_;  // of the last run
};

TEST_F(Interpreter, ComputesAndExchanges) {
  EXPECT_EQ(run("multiply_add"), "");
  EXPECT_EQ(result(5), 11.0F);
  EXPECT_EQ(run("add_toward_zero"), "");
  EXPECT_EQ(result(1), 1.0F) << "1 + 1.5 * 2^-24 is nearer to the next number";
  EXPECT_EQ(run("reverse"), "");
  EXPECT_EQ(result(5), 58.0F);
  EXPECT_EQ(run("sum_of_warp"), "");
  EXPECT_EQ(result(5), 11.0F);
  EXPECT_EQ(result(31), 62.0F) << "a lane past the end is its own";
}

// Number i of lane l is in row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2 (PTX ISA): its sum goes over the four lanes
// of that row of a, and of that column of b.
TEST_F(Interpreter, MultipliesMatrices) {
  for (const auto& [name, in_word] : {std::pair{"mma_f16", 2.0F}, {"mma_bf16", 2.0F}, {"mma_tf32", 1.0F}}) {
    EXPECT_EQ(run(name), "");
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      const uint32_t warp = thread / 32 * 32, lane = thread % 32, i = lane % 4;
      const uint32_t row = lane / 4 * 4, column = (lane % 4 * 2 + i % 2) * 4;
      float sum = 100;
      for (uint32_t k = 0; k < 4; ++k) {
        const float first = i / 2 == 0 ? static_cast<float>(warp + row + k) + 2 : 1 + 3;
        sum += in_word * first * static_cast<float>(warp + column + k);
      }
      EXPECT_EQ(result(thread), sum) << name << ", thread " << thread;
    }
  }
  expect_words(run("mma_of_half_a_warp"), {"not all lanes of the warp multiply the matrices"});
  expect_words(run("mma_f64"), {"matrices of this shape and type are not known"});
}

TEST_F(Interpreter, RoundsToNarrowNumbers) {
  const float tie = 1 + 0x1p-11F, above = 1 + 0x1.8p-9F;
  std::memcpy(input_, &tie, sizeof tie);
  std::memcpy(input_ + sizeof tie, &above, sizeof above);
  EXPECT_EQ(run("round_to_tf32"), "");
  EXPECT_EQ(result(0), 1 + 0x1p-10F) << "ties go away from zero";
  EXPECT_EQ(result(1), above);
  EXPECT_EQ(run("round_to_f16"), "");
  EXPECT_EQ(result(0), static_cast<float>(0x3C00C000U)) << "ties go to even";
  EXPECT_EQ(run("round_to_bf16"), "");
  EXPECT_EQ(result(1), static_cast<float>(0x3F80U));
  EXPECT_EQ(result(40), static_cast<float>(0x4220U));
}

TEST_F(Interpreter, CountsEachByteOnce) {
  EXPECT_EQ(run("reverse"), "");
  EXPECT_EQ(work_.bytes_read, static_cast<int64_t>(kThreads * sizeof(float)));
  EXPECT_EQ(work_.bytes_written, static_cast<int64_t>(kThreads * sizeof(float)));
  EXPECT_GT(work_.instructions, int64_t{5} * kThreads);
}

TEST_F(Interpreter, NamesKernelLineThreadAndAddress) {
  expect_words(run("shift_up"),
               {"kernel shift_up, line ", "kernels.ptx, thread 63 of block 0: illegal address: 4 bytes at 0x",
                "0 bytes past the end of an allocation of 256 bytes", "st.global.f32 [%rd6], %f2"});
}

TEST_F(Interpreter, FindsRaces) {
  expect_words(run("reverse_in_a_race"), {"race in shared memory at 0x", " with no barrier between"});
  expect_words(run("race_in_device_memory"), {"thread 1 of block 0: race in device memory at 0x",
                                              ": written here and written by thread 0 of block 0"});
}

TEST_F(Interpreter, RefusesWhatTheHardwareDoesNotPromise) {
  expect_words(run("misalign"), {"are misaligned", "thread 0"});
  expect_words(run("wait_for_ever"), {"the block waits for ever: "});
  expect_words(run("unknown"), {"kernel unknown, line ", "'wgmma.fence.sync.aligned' is not an instruction"});
  expect_words(run("divide_by_zero"), {"an integer is divided by zero"});
  expect_words(run("overflow_shared"), {"4 bytes at 0x100 are outside of shared memory, which has 256"});
}

TEST_F(Interpreter, ComparesAccessesWithOneValueOfTheBlock) {
  constexpr size_t kValueBytes = kThreads * sizeof(float);
  std::byte* block = device_memory().allocate(4 * kValueBytes);
  device_memory().begin_values(block, 4 * kValueBytes);
  expect_words(run("multiply_add", block), {"are in planned memory, before every value that it holds now"});
  device_memory().add_value(block, kValueBytes);
  EXPECT_EQ(run("multiply_add", block), "");
  expect_words(run("shift_up", block), {"0 bytes past the end of a value of 256 bytes"});
  EXPECT_EQ(device_memory().check_guards(), "");
  block[kValueBytes] = std::byte{0};
  expect_words(device_memory().check_guards(), {"was written over, which is between two values"});
  block[kValueBytes] = static_cast<std::byte>(kFreedByte);
  device_memory().remove_value(block);
  EXPECT_EQ(block[0], static_cast<std::byte>(kFreedByte));
  device_memory().end_values(block);
  EXPECT_EQ(run("multiply_add", block), "") << "without values the whole block may be reached";
  EXPECT_EQ(device_memory().free(block), "");
  expect_words(run("multiply_add", block), {"are in memory that was freed"});
  expect_words(device_memory().free(block), {"is freed and is no allocation"});
}

TEST_F(Interpreter, FindsWritesAroundAllocations) {
  output_[-1] = std::byte{1};
  expect_words(device_memory().check_guards(), {"was written over, which is before an allocation"});
  output_[-1] = static_cast<std::byte>(kGuardByte);
  output_[kThreads * sizeof(float)] = std::byte{1};
  expect_words(device_memory().check_guards(), {"was written over, which is after an allocation"});
  output_[kThreads * sizeof(float)] = static_cast<std::byte>(kGuardByte);
  EXPECT_EQ(device_memory().check_guards(), "");
}

}  // namespace
}  // namespace parallax::ptx
