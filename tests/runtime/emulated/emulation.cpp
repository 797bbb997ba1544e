// SPDX-License-Identifier: Apache-2.0
// The scheduler of fibers: every thread of a block runs in turn until it waits; what waits goes on when all that it
// waits for have come.
#include "tests/runtime/emulated/emulation.h"

#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "inspector/base/check.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime::emulation {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr int kMostThreads = 256;
constexpr int kPoison = 0xFB;

// ---- Device memory ----

// Added to every address that is handed out: no address of x86-64 or AArch64 user space has these bits, so the host
// stops at once where it follows one.
constexpr uintptr_t kDeviceBit = uintptr_t{1} << 62;

struct Allocations {
  std::map<uintptr_t, size_t> sizes;  // by true address
  int64_t live_bytes = 0;
  int64_t count = 0;
};
Allocations& allocations() {
  static Allocations instance;
  return instance;
}

std::optional<uintptr_t> find_address(const std::byte* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if ((address & kDeviceBit) == 0) return std::nullopt;
  const uintptr_t real = address & ~kDeviceBit;
  const auto& sizes = allocations().sizes;
  auto found = sizes.upper_bound(real);
  if (found == sizes.begin()) return std::nullopt;
  --found;
  if (real + bytes > found->first + found->second) return std::nullopt;
  return real;
}

// ---- Fibers ----

std::string problem_text;
bool has_problem = false;
std::set<std::string> names_run;
int64_t launches = 0;

enum class Wait : uint8_t { none, barrier, warp, done };

struct Fiber {
  ucontext_t context{};
  std::byte* stack = nullptr;
  Wait wait = Wait::none;
};

}  // namespace

class Block {
 public:
  Block(const gpu::LaunchSize& size, Body body, const void* kernel)
      : size_(size),
        body_(body),
        kernel_(kernel),
        shared_(size.shared_bytes),
        exchanged_(kMostThreads),
        fragments_(kMostThreads) {}

  void run(int64_t index);
  void wait(int thread, Wait what) {
    Fiber& fiber = fiber_at(thread);
    fiber.wait = what;
    swapcontext(&fiber.context, &scheduler_);
  }
  std::byte* shared(size_t offset, size_t bytes) {
    if (offset + bytes <= shared_.size()) return shared_.data() + offset;
    report(fmt::format("shared memory: {} bytes are asked for, the launch has {}", offset + bytes, shared_.size()));
    return nullptr;
  }
  uint64_t& slot(int thread) { return exchanged_[static_cast<size_t>(thread)]; }
  Fragments& fragments(int thread) { return fragments_[static_cast<size_t>(thread)]; }

 private:
  static Fiber& fiber_at(int thread);
  static void start(unsigned high, unsigned low);
  bool release_warps();
  bool release_barrier();
  void prepare(Fiber& fiber);
  int count(Wait what) const;

  const gpu::LaunchSize size_;
  Body body_;
  const void* kernel_;
  std::vector<std::byte> shared_;
  std::vector<uint64_t> exchanged_;
  std::vector<Fragments> fragments_;
  ucontext_t scheduler_{};
  int64_t index_ = 0;
  int running_ = 0;
};

// Stacks are made once and used by every block of every launch.
Fiber& Block::fiber_at(int thread) {
  static std::vector<Fiber> fibers(kMostThreads);
  Fiber& fiber = fibers[static_cast<size_t>(thread)];
  if (fiber.stack == nullptr) {
    void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PX_CHECK(memory != MAP_FAILED);
    fiber.stack = static_cast<std::byte*>(memory);
  }
  return fiber;
}

void Block::start(unsigned high, unsigned low) {
  auto* block = reinterpret_cast<Block*>((uintptr_t{high} << 32) | low);
  const int thread = block->running_;
  gpu::LaunchEmulated launch(*block, block->index_, block->size_.blocks, thread, block->size_.threads);
  block->body_(launch, block->kernel_);
  block->wait(thread, Wait::done);
}

int Block::count(Wait what) const {
  int found = 0;
  for (int thread = 0; thread < size_.threads; ++thread) found += fiber_at(thread).wait == what ? 1 : 0;
  return found;
}

// Warps all of whose threads wait for the exchange go on.
bool Block::release_warps() {
  bool released = false;
  for (int first = 0; first < size_.threads; first += gpu::kWarp) {
    int waiting = 0;
    for (int lane = 0; lane < gpu::kWarp; ++lane) waiting += fiber_at(first + lane).wait == Wait::warp ? 1 : 0;
    if (waiting < gpu::kWarp) continue;
    for (int lane = 0; lane < gpu::kWarp; ++lane) fiber_at(first + lane).wait = Wait::none;
    released = true;
  }
  return released;
}

bool Block::release_barrier() {
  if (count(Wait::barrier) != size_.threads) return false;
  for (int thread = 0; thread < size_.threads; ++thread) fiber_at(thread).wait = Wait::none;
  return true;
}

// On its own: getcontext may return twice, for all a compiler knows.
void Block::prepare(Fiber& fiber) {
  const auto self = reinterpret_cast<uintptr_t>(this);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  fiber.wait = Wait::none;
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Block::start), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

void Block::run(int64_t index) {
  index_ = index;
  std::memset(shared_.data(), kPoison, shared_.size());
  for (int thread = 0; thread < size_.threads; ++thread) prepare(fiber_at(thread));
  while (count(Wait::done) < size_.threads) {
    for (running_ = 0; running_ < size_.threads; ++running_) {
      Fiber& fiber = fiber_at(running_);
      if (fiber.wait == Wait::none) swapcontext(&scheduler_, &fiber.context);
    }
    if (release_warps() || release_barrier() || count(Wait::done) == size_.threads) continue;
    const int at_barrier = count(Wait::barrier);
    report(at_barrier > 0
               ? fmt::format("a barrier is reached by {} of {} threads", at_barrier, size_.threads)
               : fmt::format("an exchange is reached by {} of {} threads", count(Wait::warp), size_.threads));
    return;  // the stacks of what still waits are given up
  }
}

void report(const std::string& problem) {
  if (!has_problem) problem_text = problem;
  has_problem = true;
}

std::shared_ptr<const std::byte> allocate(size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  PX_CHECK(memory != nullptr);
  std::memset(memory, kPoison, bytes);
  const auto real = reinterpret_cast<uintptr_t>(memory);
  allocations().sizes[real] = bytes;
  allocations().live_bytes += static_cast<int64_t>(bytes);
  ++allocations().count;
  return {reinterpret_cast<const std::byte*>(real | kDeviceBit), [real, bytes](const std::byte*) {
            allocations().sizes.erase(real);
            allocations().live_bytes -= static_cast<int64_t>(bytes);
            std::free(reinterpret_cast<void*>(real));
          }};
}

Result<std::byte*> true_address(const std::byte* pointer, size_t bytes) {
  const auto found = find_address(pointer, bytes);
  if (!found.has_value()) return execution_error(fmt::format("{} bytes that are not on the device", bytes));
  return reinterpret_cast<std::byte*>(*found);
}

int64_t allocation_count() { return allocations().count; }

void poison(std::byte* memory, size_t bytes) {
  const auto real = find_address(memory, bytes);
  PX_CHECK(real.has_value());
  std::memset(reinterpret_cast<void*>(*real), kPoison, bytes);
}

// The upper 10 bits of the fraction.
uint32_t to_tf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? 0x7FFFFFFFU : (bits + 0x1000U) & ~0x1FFFU;
}

int64_t live_bytes() { return allocations().live_bytes; }

Status run(const char* name, const gpu::LaunchSize& size, Body body, const void* kernel) {
  names_run.insert(name);
  ++launches;
  if (size.threads < 1 || size.threads > kMostThreads || size.threads % gpu::kWarp != 0 || size.blocks < 1) {
    return execution_error(fmt::format("emulated: {}: {} blocks of {} threads", name, size.blocks, size.threads));
  }
  has_problem = false;
  Block block(size, body, kernel);
  for (int64_t index = 0; index < size.blocks && !has_problem; ++index) block.run(index);
  if (has_problem) return execution_error(fmt::format("emulated: {}: {}", name, problem_text));
  return {};
}

const std::set<std::string>& kernels_run() { return names_run; }
int64_t launch_count() { return launches; }

}  // namespace parallax::runtime::emulation

namespace parallax::runtime {

std::byte* emulated_address(const std::byte* pointer, size_t bytes, size_t alignment) {
  alignas(64) static std::byte spare[64];
  const auto found = emulation::find_address(pointer, bytes);
  if (found.has_value() && *found % alignment == 0) return reinterpret_cast<std::byte*>(*found);
  emulation::report(
      found.has_value()
          ? fmt::format("device memory: {} bytes at an address that is no multiple of {}", bytes, alignment)
          : fmt::format("device memory: {} bytes out of bounds of every allocation", bytes));
  return spare;
}

}  // namespace parallax::runtime

namespace parallax::runtime::gpu {

void LaunchEmulated::barrier() { owner_.wait(thread_, emulation::Wait::barrier); }

std::byte* LaunchEmulated::take_shared(size_t offset, size_t bytes) { return owner_.shared(offset, bytes); }

uint64_t LaunchEmulated::exchange(uint64_t own, int from_thread) {
  owner_.slot(thread_) = own;
  owner_.wait(thread_, emulation::Wait::warp);
  const uint64_t value = owner_.slot(from_thread);
  owner_.wait(thread_, emulation::Wait::warp);  // nobody writes again before all have read
  return value;
}

const emulation::Fragments* LaunchEmulated::exchange(const emulation::Fragments& own) {
  owner_.fragments(thread_) = own;
  owner_.wait(thread_, emulation::Wait::warp);
  return &owner_.fragments(thread_ / kWarp * kWarp);
}
void LaunchEmulated::release() { owner_.wait(thread_, emulation::Wait::warp); }

uint32_t LaunchEmulated::ballot(bool flag) {
  const int first = thread_ / kWarp * kWarp;
  owner_.slot(thread_) = flag ? 1 : 0;
  owner_.wait(thread_, emulation::Wait::warp);
  uint32_t bits = 0;
  for (int lane = 0; lane < kWarp; ++lane) bits |= owner_.slot(first + lane) != 0 ? uint32_t{1} << lane : 0U;
  owner_.wait(thread_, emulation::Wait::warp);
  return bits;
}

}  // namespace parallax::runtime::gpu
