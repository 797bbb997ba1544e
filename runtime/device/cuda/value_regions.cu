// SPDX-License-Identifier: Apache-2.0
// NVTX's memory extension, where the toolkit has it.
#include <iterator>
#include <map>
#include <mutex>

#include <nvtx3/nvToolsExt.h>

#include "runtime/device/cuda/value_regions.h"

#if __has_include(<nvtx3/nvToolsExtMem.h>)
#include <nvtx3/nvToolsExtMem.h>
#endif

namespace parallax::runtime {

#ifdef NVTX_MEM_CONTENTS_V1

namespace {

constexpr size_t kGapBytes = 256;  // between two values

struct Heaps {
  std::mutex mutex;
  std::map<const std::byte*, nvtxMemHeapHandle_t> by_block;
};
Heaps& heaps() {
  static auto* all = new Heaps;  // as long as the process, whose exit still frees blocks
  return *all;
}

nvtxMemHeapHandle_t register_heap(const std::byte* memory, size_t bytes) {
  const nvtxMemVirtualRangeDesc_t range{bytes, memory};
  nvtxMemHeapDesc_t heap{};
  heap.extCompatID = NVTX_EXT_COMPATID_MEM;
  heap.structSize = sizeof heap;
  heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
  heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  heap.typeSpecificDescSize = sizeof range;
  heap.typeSpecificDesc = &range;
  return nvtxMemHeapRegister(nullptr, &heap);
}

// A tool that follows memory answers with a handle.
bool has_memory_tool() {
  static const bool has = [] {
    static const std::byte asked{};
    nvtxMemHeapHandle_t heap = register_heap(&asked, sizeof asked);
    // NVTX_MEM_HEAP_HANDLE_NO_TOOL, which is -1, is no pointer to C++.
    if (heap == nullptr || reinterpret_cast<intptr_t>(heap) == -1) return false;
    nvtxMemHeapUnregister(nullptr, heap);
    return true;
  }();
  return has;
}

void announce(const std::byte* memory, size_t bytes) {
  const nvtxMemVirtualRangeDesc_t range{bytes, memory};
  nvtxMemRegionHandle_t handle = nullptr;
  nvtxMemRegionsRegisterBatch_t batch{};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof batch;
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.regionCount = 1;
  batch.regionDescElementSize = sizeof range;
  batch.regionDescElements = &range;
  batch.regionHandleElementsOut = &handle;
  {
    const std::lock_guard lock(heaps().mutex);
    const auto after = heaps().by_block.upper_bound(memory);
    if (after == heaps().by_block.begin()) return;
    batch.heap = std::prev(after)->second;
  }
  nvtxMemRegionsRegister(nullptr, &batch);
}

void retract(const std::byte* memory) {
  nvtxMemRegionRef_t region{};
  region.pointer = memory;
  nvtxMemRegionsUnregisterBatch_t batch{};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof batch;
  batch.refType = NVTX_MEM_REGION_REF_TYPE_POINTER;
  batch.refCount = 1;
  batch.refElementSize = sizeof region;
  batch.refElements = &region;
  nvtxMemRegionsUnregister(nullptr, &batch);
}

}  // namespace

void announce_block(const std::byte* block, int64_t bytes) {
  if (!has_memory_tool()) return;
  const std::lock_guard lock(heaps().mutex);
  heaps().by_block[block] = register_heap(block, static_cast<size_t>(bytes));
}

void retract_block(const std::byte* block) {
  const std::lock_guard lock(heaps().mutex);
  const auto found = heaps().by_block.find(block);
  if (found == heaps().by_block.end()) return;
  nvtxMemHeapUnregister(nullptr, found->second);
  heaps().by_block.erase(found);
}

BufferWatch announcing_watch() {
  if (!has_memory_tool()) return {};
  return {[](std::byte* memory, size_t bytes) { announce(memory, bytes); },
          [](std::byte* memory, size_t) { retract(memory); }, kGapBytes};
}

#else

void announce_block(const std::byte*, int64_t) {}
void retract_block(const std::byte*) {}
BufferWatch announcing_watch() { return {}; }

#endif

}  // namespace parallax::runtime
