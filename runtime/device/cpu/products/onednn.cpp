// SPDX-License-Identifier: Apache-2.0
// One CPU engine for the process, one stream for each thread.
#include "runtime/device/cpu/products/onednn.h"

#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "inspector/base/payload_memory.h"
#include "runtime/device/cpu/library_threads.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  static thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

namespace {

void reorder(dnnl::memory& source, dnnl::memory& target) {
  dnnl::reorder(source, target).execute(onednn_stream(), source, target);
  onednn_stream().wait();
}

// Runs a primitive that is worth two threads, and tells whether a region of ours was begun for it.
bool try_library_threads() {
  constexpr int64_t kElements = int64_t{1} << 16;
  const LibraryThreads two(2);
  const int64_t before = library_regions();
  const Status ran = guard_onednn([] {
    std::vector<float> data(kElements, 1.0F);
    const dnnl::memory::desc layout({kElements}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a);
    const dnnl::memory memory(layout, onednn_engine(), data.data());
    const dnnl::eltwise_forward::desc relu(dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_relu, layout,
                                           0.0F);
    const dnnl::eltwise_forward forward(dnnl::eltwise_forward::primitive_desc(relu, onednn_engine()));
    forward.execute(onednn_stream(), {{DNNL_ARG_SRC, memory}, {DNNL_ARG_DST, memory}});
    onednn_stream().wait();
  });
  return ran.ok() && library_regions() > before;
}

}  // namespace

bool has_own_library_threads() {
  static const bool is_own = try_library_threads();
  return is_own;
}

dnnl::memory onednn_reordered(const dnnl::memory::desc& from, const float* data, const dnnl::memory::desc& to) {
  dnnl::memory source(from, onednn_engine(), const_cast<float*>(data));
  if (from == to) return source;
  dnnl::memory target(to, onednn_engine());
  reorder(source, target);
  return target;
}

dnnl::memory onednn_packed(Queue<Cpu>& queue, const dnnl::memory::desc& from, const float* data,
                           const dnnl::memory::desc& to) {
  struct Packed {
    dnnl::memory::desc from;
    std::shared_ptr<std::byte> payload;
    dnnl::memory weights;
  };
  // One weight's layouts, which sessions share.
  struct Layouts {
    std::mutex mutex;
    std::vector<Packed> known;
  };
  WeightCache& cache = queue.weights();
  const auto layouts =
      cache.get_shared<Layouts>(CacheKey("packed").add(data).text(), [] { return std::make_shared<Layouts>(); });
  const std::lock_guard lock(layouts->mutex);
  for (const Packed& packed : layouts->known) {
    if (packed.from == from && packed.weights.get_desc() == to) return packed.weights;
  }
  dnnl::memory source(from, onednn_engine(), const_cast<float*>(data));
  if (from == to) return layouts->known.emplace_back(Packed{from, nullptr, source}).weights;
  const auto payload = shared_payload(to.get_size());
  if (payload == nullptr) throw std::bad_alloc();
  dnnl::memory target(to, onednn_engine(), payload.get());
  reorder(source, target);
  cache.add_bytes(static_cast<int64_t>(to.get_size()));
  return layouts->known.emplace_back(Packed{from, payload, target}).weights;
}

}  // namespace parallax::runtime
