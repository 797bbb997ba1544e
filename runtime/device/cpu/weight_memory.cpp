// SPDX-License-Identifier: Apache-2.0
// Weights are cut from blocks one after the other; a block lives as long as one of them.
#include "runtime/device/cpu/weight_memory.h"

#include <mutex>

#include "inspector/base/memory_budget.h"
#include "inspector/base/payload_memory.h"

namespace parallax::runtime {
namespace {

constexpr size_t kWeightBlock = size_t{16} << 20;  // eight huge pages; those that nothing was cut from take no memory
constexpr size_t kLargeWeight = kWeightBlock / 2;  // has a block of its own

// The block that weights are cut from at present.
class WeightBlock {
 public:
  static WeightBlock& instance() {
    static auto* const block = new WeightBlock;  // weights may outlive every static object
    return *block;
  }

  std::shared_ptr<std::byte> cut(size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<std::byte> block = block_.lock();
    if (block == nullptr || used_ + bytes > kWeightBlock) {
      block = shared_payload(kWeightBlock);
      if (block == nullptr) return nullptr;
      block_ = block;
      used_ = 0;
    }
    std::byte* const begin = block.get() + used_;
    used_ += (bytes + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
    return {std::move(block), begin};
  }

 private:
  std::mutex mutex_;
  std::weak_ptr<std::byte> block_;
  size_t used_ = 0;
};

}  // namespace

std::shared_ptr<std::byte> weight_memory(size_t bytes) {
#ifdef PARALLAX_SANITIZED
  return shared_payload(bytes);  // whose end is watched
#else
  // A block that several jobs share would be charged to one of them.
  const bool is_alone = bytes >= kLargeWeight || MemoryBudget::current() != nullptr;
  return is_alone ? shared_payload(bytes) : WeightBlock::instance().cut(bytes);
#endif
}

}  // namespace parallax::runtime
