// SPDX-License-Identifier: Apache-2.0
// Parts that every file that calls oneDNN shares: the engine, a stream of the calling thread, reorders, and the
// function where its exceptions end. Private to runtime/device.
#pragma once

#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "inspector/base/result.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

dnnl::engine& onednn_engine();
dnnl::stream& onednn_stream();

// The payload in another layout: a copy, or the payload itself where the layouts agree.
dnnl::memory onednn_reordered(const dnnl::memory::desc& from, const float* data, const dnnl::memory::desc& to);

// The packed form of a weight that never changes, kept in the queue's cache: one copy for each layout, however many
// shapes of the other operands it serves.
dnnl::memory onednn_packed(Queue<Cpu>& queue, const dnnl::memory::desc& from, const float* data,
                           const dnnl::memory::desc& to);

// Runs `call`, turning an exception of oneDNN into an Error.
template <class Call>
Status guard_onednn(const Call& call) {
  try {
    call();
    return {};
  } catch (const dnnl::error& error) {
    const std::string message = std::string("oneDNN: ") + error.what();
    if (error.status == dnnl_out_of_memory) return out_of_memory(message);
    return execution_error(message);
  }
}

}  // namespace parallax::runtime
