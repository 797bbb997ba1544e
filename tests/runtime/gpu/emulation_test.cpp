// SPDX-License-Identifier: Apache-2.0
// The emulation itself: it computes what a GPU computes, and notices what a GPU would leave undefined.
#include "tests/runtime/emulated/emulation.h"

#include <gtest/gtest.h>

#include "runtime/device/elements.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax::runtime::emulation_test {
namespace {

using EmulatedIntegers = Elements<Emulated, int64_t>;

// A kernel from a function of the launch.
template <class F>
struct Plain {
  static constexpr const char* kName = "plain";
  F f;
  template <class Launch>
  void operator()(Launch& launch) const {
    f(launch);
  }
};

template <class F>
Status run(const gpu::LaunchSize& size, const F& f) {
  Queue<Emulated> queue;
  launch(queue, Plain<F>{f}, size);
  return queue.take_failure();
}

struct Memory {
  explicit Memory(int64_t count) : tensor(queue.allocate(DType::int64, Shape{count}).take()) {}
  EmulatedIntegers elements() const { return {reinterpret_cast<int64_t*>(tensor.storage().get())}; }
  std::vector<int64_t> read() {
    const Tensor host = queue.to_host(tensor).take();
    const auto values = host.as<int64_t>();
    return {values.begin(), values.end()};
  }
  Queue<Emulated> queue;
  Tensor tensor;
};

// Every thread reads what its neighbor wrote before the barrier.
TEST(Emulation, BarriersSeparateWritesFromReads) {
  Memory memory(128);
  const EmulatedIntegers out = memory.elements();
  const Status status = run({2, 64, 64 * sizeof(int64_t)}, [=](auto& launch) {
    const auto shared = launch.template shared<int64_t>(64);
    shared[launch.thread()] = launch.block() * 1000 + launch.thread();
    launch.barrier();
    out[launch.block() * 64 + launch.thread()] = shared[(launch.thread() + 1) % 64];
  });
  ASSERT_TRUE(status.ok()) << status.error().message;
  const std::vector<int64_t> values = memory.read();
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[63], 0);
  EXPECT_EQ(values[64], 1001);
  EXPECT_EQ(values[126], 1063);
}

TEST(Emulation, NoticesAddressesThatAreNotAligned) {
  Memory memory(4);
  const Elements<Emulated, int32_t> words{reinterpret_cast<int32_t*>(memory.tensor.storage().get())};
  const Status status = run({1, 32, 0}, [=](auto&) {
    const auto* odd = reinterpret_cast<const std::byte*>(words.data) + 2;
    words[0] = Elements<Emulated, const int32_t>{reinterpret_cast<const int32_t*>(odd)}[0];
  });
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("4 bytes at an address that is no multiple of 4"), std::string::npos)
      << status.error().message;
}

TEST(Emulation, ShufflesReachDownTheWarp) {
  Memory memory(64);
  const EmulatedIntegers out = memory.elements();
  const Status status = run(
      {1, 64, 0}, [=](auto& launch) { out[launch.thread()] = launch.shuffle_down(int64_t{10} * launch.thread(), 4); });
  ASSERT_TRUE(status.ok()) << status.error().message;
  const std::vector<int64_t> values = memory.read();
  EXPECT_EQ(values[0], 40);
  EXPECT_EQ(values[27], 310);
  EXPECT_EQ(values[28], 280);  // past the end of the warp: its own
  EXPECT_EQ(values[32], 360);
}

TEST(Emulation, VotesCountEachWarpForItself) {
  Memory memory(2);
  const EmulatedIntegers out = memory.elements();
  const Status status = run({1, 64, 0}, [=](auto& launch) {
    const uint32_t votes = launch.ballot(launch.thread() % 3 == 0);
    if (launch.thread() % gpu::kWarp == 0) out[launch.thread() / gpu::kWarp] = votes;
  });
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(memory.read(), (std::vector<int64_t>{0x49249249, 0x92492492}));
}

TEST(Emulation, AtomicsAddUp) {
  Queue<Emulated> queue;
  const uint32_t start[] = {7};
  const Tensor counter = queue.to_device(Tensor::vector<uint32_t>(start)).take();
  const Elements<Emulated, uint32_t> count{reinterpret_cast<uint32_t*>(counter.storage().get())};
  ASSERT_TRUE(run({3, 64, 0}, [=](auto& launch) { launch.atomic_add(&count[0], 2); }).ok());
  EXPECT_EQ(queue.to_host(counter).take().as<uint32_t>()[0], 7U + 2 * 3 * 64);
}

std::string problem_of(const Status& status) { return status.ok() ? "none" : status.error().message; }

TEST(Emulation, NoticesABarrierNotReachedByAll) {
  const Status status = run({1, 64, 0}, [](auto& launch) {
    if (launch.thread() < 40) launch.barrier();
  });
  EXPECT_EQ(problem_of(status), "emulated: plain: a barrier is reached by 40 of 64 threads");
}

TEST(Emulation, NoticesAnExchangeNotReachedByAll) {
  const Status status = run({1, 32, 0}, [](auto& launch) {
    if (launch.thread() != 5) launch.ballot(true);
  });
  EXPECT_EQ(problem_of(status), "emulated: plain: an exchange is reached by 31 of 32 threads");
}

TEST(Emulation, NoticesSharedMemoryOutOfBounds) {
  const Status status = run({1, 32, 32 * sizeof(int)}, [](auto& launch) {
    const auto shared = launch.template shared<int>(32);
    shared[launch.thread() + 1] = 1;
  });
  EXPECT_EQ(problem_of(status), "emulated: plain: shared memory: element 32 of 32");
}

TEST(Emulation, NoticesMoreSharedMemoryThanTheLaunchHas) {
  const Status status = run({1, 32, 64}, [](auto& launch) { launch.template shared<double>(32); });
  EXPECT_EQ(problem_of(status), "emulated: plain: shared memory: 256 bytes are asked for, the launch has 64");
}

TEST(Emulation, NoticesDeviceMemoryOutOfBounds) {
  Memory memory(64);
  const EmulatedIntegers out = memory.elements();
  const Status status = run({1, 64, 0}, [=](auto& launch) { out[launch.thread() + 1] = 1; });
  EXPECT_EQ(problem_of(status), "emulated: plain: device memory: 8 bytes out of bounds of every allocation");
}

TEST(Emulation, NoticesMemoryOfTheHostInAKernel) {
  int64_t on_host = 0;
  const EmulatedIntegers out{&on_host};
  const Status status = run({1, 32, 0}, [=](auto& launch) { out[0] = launch.thread(); });
  EXPECT_EQ(problem_of(status), "emulated: plain: device memory: 8 bytes out of bounds of every allocation");
  EXPECT_EQ(on_host, 0);
}

TEST(Emulation, NoticesMemoryThatHasBeenFreed) {
  EmulatedIntegers out;
  {
    const Memory memory(64);
    out = memory.elements();
  }
  const Status status = run({1, 32, 0}, [=](auto& launch) { out[0] = launch.thread(); });
  EXPECT_NE(problem_of(status), "none");
}

TEST(EmulationDeathTest, HostCodeCannotFollowAddressesOfTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Memory memory(4);
  EXPECT_DEATH(
      {
        volatile int64_t read = *reinterpret_cast<const int64_t*>(memory.tensor.view().data);
        static_cast<void>(read);
      },
      "");
}

// A failed launch does not spoil the next one.
TEST(Emulation, GoesOnAfterAProblem) {
  ASSERT_FALSE(run({1, 64, 0}, [](auto& launch) {
                 if (launch.thread() == 0) launch.barrier();
               }).ok());
  Memory memory(1);
  const EmulatedIntegers out = memory.elements();
  ASSERT_TRUE(run({1, 32, 0}, [=](auto& launch) {
                if (launch.thread() == 0) out[0] = 5;
              }).ok());
  EXPECT_EQ(memory.read()[0], 5);
}

}  // namespace
}  // namespace parallax::runtime::emulation_test
