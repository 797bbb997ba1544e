// SPDX-License-Identifier: Apache-2.0
// The stand-in as a tool of NVTX's memory extension: the runtime announces the values in its planned memory, and what
// is announced becomes work of the stream whose memory it is.
#include <algorithm>
#include <iterator>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include "tests/runtime/ptx/device.h"

using namespace parallax::ptx;

namespace {

// The handle of a heap is its first address.
void* memory_of(nvtxMemHeapHandle_t heap) { return heap; }

void submit_for(const void* block, std::function<void()> change) {
  if (Stream* stream = stream_of_memory(block)) device().submit(*stream, {std::move(change), nullptr, nullptr, false});
}

nvtxMemHeapHandle_t begin_heap(nvtxDomainHandle_t, const nvtxMemHeapDesc_t* heap) {
  const std::lock_guard lock(device().mutex());
  const auto& range = *static_cast<const nvtxMemVirtualRangeDesc_t*>(heap->typeSpecificDesc);
  auto* block = const_cast<void*>(range.ptr);
  submit_for(block, [block, bytes = range.size] { device_memory().begin_values(block, bytes); });
  return static_cast<nvtxMemHeapHandle_t>(block);
}

void end_heap(nvtxDomainHandle_t, nvtxMemHeapHandle_t heap) {
  const std::lock_guard lock(device().mutex());
  submit_for(heap, [block = memory_of(heap)] { device_memory().end_values(block); });
}

void begin_regions(nvtxDomainHandle_t, const nvtxMemRegionsRegisterBatch_t* batch) {
  const std::lock_guard lock(device().mutex());
  const auto* ranges = static_cast<const nvtxMemVirtualRangeDesc_t*>(batch->regionDescElements);
  for (size_t i = 0; i < batch->regionCount; ++i) {
    auto* value = const_cast<void*>(ranges[i].ptr);
    submit_for(memory_of(batch->heap), [value, bytes = ranges[i].size] { device_memory().add_value(value, bytes); });
  }
}

// The value is freed before the last kernel that the host has launched, which may still read it.
void free_too_early(Stream& stream, Work change) {
  const auto last =
      std::find_if(stream.work.rbegin(), stream.work.rend(), [](const Work& work) { return work.is_launch; });
  stream.work.insert(last == stream.work.rend() ? stream.work.end() : std::prev(last.base()), std::move(change));
}

void end_regions(nvtxDomainHandle_t, const nvtxMemRegionsUnregisterBatch_t* batch) {
  const std::lock_guard lock(device().mutex());
  for (size_t i = 0; i < batch->refCount; ++i) {
    auto* value = const_cast<void*>(batch->refElements[i].pointer);
    const void* block = device_memory().allocation_of(value);
    const auto remove = [value] { device_memory().remove_value(value); };
    Stream* stream = stream_of_memory(block);
    if (device().fault() == Fault::early_value_free && stream != nullptr && stream->recording == nullptr) {
      free_too_early(*stream, {remove, nullptr, nullptr, false});
    } else {
      submit_for(block, remove);
    }
  }
}

template <class Function>
void set_slot(const nvtxExtModuleInfo_t& module, size_t slot, Function* function) {
  if (slot < module.segments[0].slotCount)
    module.segments[0].functionSlots[slot] = reinterpret_cast<intptr_t>(function);
}

}  // namespace

extern "C" {

// NVTX's headers leave the visibility of what follows them changed. Ranges are of no use here; the extension is asked
// for after this one has answered.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t) { return 1; }

__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_MODULEID_MEM || module->segmentsCount < 1) return 1;
  set_slot(*module, NVTX3EXT_CBID_nvtxMemHeapRegister, begin_heap);
  set_slot(*module, NVTX3EXT_CBID_nvtxMemHeapUnregister, end_heap);
  set_slot(*module, NVTX3EXT_CBID_nvtxMemRegionsRegister, begin_regions);
  set_slot(*module, NVTX3EXT_CBID_nvtxMemRegionsUnregister, end_regions);
  return 1;
}

}  // extern "C"
