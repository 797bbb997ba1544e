// One CPU engine for the process, one stream for each thread.
#include "runtime/device/onednn.h"

#include <vector>

#include "runtime/device/weight_cache.h"

namespace parallax::runtime {

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  static thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

dnnl::memory onednn_reordered(const dnnl::memory::desc& from, const float* data, const dnnl::memory::desc& to) {
  dnnl::memory source(from, onednn_engine(), const_cast<float*>(data));
  if (from == to) return source;
  dnnl::memory target(to, onednn_engine());
  dnnl::reorder(source, target).execute(onednn_stream(), source, target);
  onednn_stream().wait();
  return target;
}

dnnl::memory onednn_packed(Queue<Cpu>& queue, const dnnl::memory::desc& from, const float* data,
                           const dnnl::memory::desc& to) {
  struct Packed {
    dnnl::memory::desc from;
    dnnl::memory weights;
  };
  WeightCache& cache = queue.weights();
  const auto known = cache.get<std::vector<Packed>>(CacheKey("packed").add(data).text(),
                                                    [] { return std::make_shared<std::vector<Packed>>(); });
  for (const Packed& packed : *known) {
    if (packed.from == from && packed.weights.get_desc() == to) return packed.weights;
  }
  known->push_back({from, onednn_reordered(from, data, to)});
  if (from != to) cache.add_bytes(static_cast<int64_t>(to.get_size()));
  return known->back().weights;
}

}  // namespace parallax::runtime
