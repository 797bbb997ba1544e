// One CPU engine for the process, one stream for each thread.
#include "runtime/device/onednn.h"

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

}  // namespace parallax::runtime
