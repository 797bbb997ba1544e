// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN. Each shape's primitive and, for constant filters, their reordered copy are made once.
#include "runtime/device/cpu/products/conv.h"

#include <optional>
#include <string_view>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/library_threads.h"
#include "runtime/device/cpu/products/conv_loops.h"
#include "runtime/device/cpu/products/conv_plain.h"
#include "runtime/device/cpu/products/exact_products.h"
#include "runtime/device/cpu/products/onednn.h"
#include "runtime/device/cpu/products/panel_conv.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {
namespace {

using dnnl::memory;

memory::dims dims_of(std::initializer_list<int64_t> lead, const Ints& spatial) {
  memory::dims dims(lead);
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

memory::dims plain(const Ints& values) { return {values.begin(), values.end()}; }

// oneDNN counts dilation from 0.
memory::dims dilations_of(const ConvProblem& problem) {
  memory::dims dilations = plain(problem.dilations);
  for (auto& dilation : dilations) --dilation;
  return dilations;
}

memory::desc row_major(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  for (size_t axis = dims.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * dims[axis];
  return {dims, memory::data_type::f32, strides};
}

memory::desc any_layout(const memory::dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::any}; }

// [batch, channels, spatial...] in channels-last order.
memory::desc channels_last(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  int64_t stride = dims[1];
  for (size_t axis = dims.size() - 1; axis > 1; --axis) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  strides[0] = stride;
  return {dims, memory::data_type::f32, strides};
}

memory::desc any_but(bool is_channels_last, const memory::dims& dims) {
  return is_channels_last ? channels_last(dims) : any_layout(dims);
}

memory::desc laid_out(const memory::dims& dims, bool is_channels_last) {
  return is_channels_last ? channels_last(dims) : row_major(dims);
}

memory::dims source_dims(const ConvProblem& problem) {
  return dims_of({problem.batch, problem.in_channels}, problem.in_spatial);
}
memory::dims target_dims(const ConvProblem& problem) {
  return dims_of({problem.batch, problem.out_channels}, problem.out_spatial);
}
memory::dims filter_dims(const ConvProblem& problem) {
  if (problem.groups == 1) return dims_of({problem.out_channels, problem.in_channels}, problem.kernel);
  return dims_of({problem.groups, problem.out_channels / problem.groups, problem.in_channels / problem.groups},
                 problem.kernel);
}

// The filters as ONNX stores them, described to oneDNN; those of the transpose have inputs before outputs.
memory::desc stored_filters(const ConvProblem& problem, bool transposed) {
  if (!transposed) return row_major(filter_dims(problem));
  const int64_t taps = product(problem.kernel);
  const int64_t out_per_group = problem.out_channels / problem.groups;
  const int64_t in_per_group = problem.in_channels / problem.groups;
  memory::dims strides;
  if (problem.groups > 1) strides.push_back(in_per_group * out_per_group * taps);
  strides.push_back(taps);
  strides.push_back(out_per_group * taps);
  const Ints inner = row_major_strides(problem.kernel);
  strides.insert(strides.end(), inner.begin(), inner.end());
  return {filter_dims(problem), memory::data_type::f32, strides};
}

// One shape, ready to run.
struct PreparedConv {
  dnnl::primitive primitive;
  memory::desc source;
  memory::desc target;
  memory::desc filters;
  memory::desc scratchpad;
  bool activates = false;  // the primitive applies the activation itself
  bool loses_nan = false;  // in doing so
};

template <class Forward>
void describe(PreparedConv& prepared, const typename Forward::primitive_desc& description) {
  prepared.primitive = Forward(description);
  prepared.source = description.src_desc();
  prepared.target = description.dst_desc();
  prepared.filters = description.weights_desc();
  prepared.scratchpad = description.scratchpad_desc();
}

// The working memory of a queue's primitives, of which one runs at a time. That of oneDNN's own is the thread's that
// made the primitive, and missing or too small where another thread runs it.
struct Workspace {
  memory block;
  size_t size = 0;

  memory as(const memory::desc& wanted) {
    if (wanted.get_size() > size) {
      block = memory(wanted, onednn_engine());
      size = wanted.get_size();
    }
    return {wanted, onednn_engine(), size == 0 ? nullptr : block.get_data_handle()};
  }
};

std::shared_ptr<Workspace> workspace_of(Queue<Cpu>& queue) {
  return queue.weights().get<Workspace>("workspace", [] { return std::make_shared<Workspace>(); });
}

// Which activations the primitive may apply itself, as it stores.
enum class ConvEpilogue : uint8_t {
  sound,  // those that keep NaN
  any     // also Relu and Clip, in which oneDNN turns NaN into 0 or a bound
};

struct Eltwise {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;  // undef: oneDNN does not have it
  float alpha = 0, beta = 0;
  bool loses_nan = false;
};

Eltwise eltwise_of(const Activation& activation) {
  using Kind = Activation::Kind;
  using dnnl::algorithm;
  switch (activation.kind) {
    case Kind::relu:
      return {algorithm::eltwise_relu, 0, 0, true};
    case Kind::clip:
      if (!(activation.alpha <= activation.beta)) return {};
      return {algorithm::eltwise_clip, activation.alpha, activation.beta, true};
    case Kind::leaky_relu:
      if (activation.alpha == 0) return {};
      return {algorithm::eltwise_relu, activation.alpha, 0};
    case Kind::hard_swish:  // x * max(0, min(1, x / 6 + 1 / 2))
      return {algorithm::eltwise_hardswish};
    default:
      return {};
  }
}

using Convolution = dnnl::convolution_forward;

// oneDNN's reference, a hundred times slower than the others.
bool is_plain_loops(const Convolution::primitive_desc& description) {
  return std::string_view(description.impl_info_str()).substr(0, 3) == "ref";
}

// The primitive with the activation in it. A residual is not added there: with it appended, oneDNN 2.6 takes older
// implementations that lose more than a walk over the result costs, and errs on processors without AVX.
std::optional<Convolution::primitive_desc> activating(const Convolution::desc& wanted,
                                                      const Convolution::primitive_desc& plain, const Eltwise& eltwise,
                                                      dnnl::primitive_attr attributes) {
  if (eltwise.algorithm == dnnl::algorithm::undef) return std::nullopt;
  dnnl::post_ops operations;
  operations.append_eltwise(1.0F, eltwise.algorithm, eltwise.alpha, eltwise.beta);
  attributes.set_post_ops(operations);
  Convolution::primitive_desc made(wanted, attributes, onednn_engine());
  if (std::string_view(made.impl_info_str()) != plain.impl_info_str()) return std::nullopt;
  return made;
}

std::shared_ptr<PreparedConv> prepare(const ConvProblem& problem, bool transposed, bool with_bias,
                                      ConvEpilogue epilogue) {
  auto prepared = std::make_shared<PreparedConv>();
  const auto wanted_source = any_but(problem.x_channels_last, source_dims(problem));
  const auto target = any_but(problem.y_channels_last, target_dims(problem));
  const auto weights = any_layout(filter_dims(problem));
  const auto bias = with_bias ? row_major({problem.out_channels}) : memory::desc();
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto strides = plain(problem.strides);
  const auto begin = plain(problem.pads_begin);
  const auto end = plain(problem.pads_end);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (transposed) {
    describe<dnnl::deconvolution_forward>(
        *prepared, {{kind, dnnl::algorithm::deconvolution_direct, wanted_source, weights, bias, target, strides,
                     dilations_of(problem), begin, end},
                    attributes,
                    onednn_engine()});
  } else {
    const auto describe_from = [&](const memory::desc& source) {
      return Convolution::desc(kind, dnnl::algorithm::convolution_direct, source, weights, bias, target, strides,
                               dilations_of(problem), begin, end);
    };
    Convolution::desc wanted = describe_from(wanted_source);
    Convolution::primitive_desc plain(wanted, attributes, onednn_engine());
    if (is_plain_loops(plain) && problem.y_channels_last && !problem.x_channels_last) {
      // Without AVX-512 oneDNN has channels last on both sides or on none.
      wanted = describe_from(channels_last(source_dims(problem)));
      plain = Convolution::primitive_desc(wanted, attributes, onednn_engine());
    }
    const Eltwise eltwise = eltwise_of(problem.activation);
    const bool may_activate = !eltwise.loses_nan || epilogue == ConvEpilogue::any;
    const auto whole = may_activate ? activating(wanted, plain, eltwise, attributes) : std::nullopt;
    prepared->activates = whole.has_value();
    prepared->loses_nan = prepared->activates && eltwise.loses_nan;
    describe<Convolution>(*prepared, whole.value_or(plain));
  }
  return prepared;
}

std::string key_of(const ConvProblem& problem, bool transposed, bool with_bias, ConvEpilogue epilogue) {
  CacheKey key(transposed ? "deconv" : "conv");
  key.add(problem.batch).add(problem.in_channels).add(problem.out_channels).add(problem.groups).add(with_bias);
  key.add_all(problem.in_spatial).add_all(problem.out_spatial).add_all(problem.kernel).add_all(problem.strides);
  key.add(problem.activation.kind).add(problem.activation.alpha).add(problem.activation.beta);
  key.add(problem.x_channels_last).add(problem.y_channels_last).add(epilogue);
  key.add_all(problem.dilations).add_all(problem.pads_begin).add_all(problem.pads_end);
  return key.text();
}

void activate(const ConvProblem& problem, float* y) {
  if (problem.activation.kind == Activation::Kind::none) return;
  const int64_t count = problem.batch * problem.out_channels * product(problem.out_spatial);
  visit_activation(problem.activation, [&](auto apply) {
    parallel_for(count, 2, [&](int64_t begin, int64_t end) {
      vectorized(begin, end, [=](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) y[i] = apply(y[i]);
      });
    });
  });
}

using Arguments = std::unordered_map<int, memory>;

Arguments arguments_of(const ConvProblem& problem, const memory& source, const memory& weights, const float* bias,
                       const memory& target) {
  Arguments arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, target}};
  if (bias != nullptr) {
    arguments.emplace(DNNL_ARG_BIAS,
                      memory(row_major({problem.out_channels}), onednn_engine(), const_cast<float*>(bias)));
  }
  return arguments;
}

std::shared_ptr<PreparedConv> prepared_for(Queue<Cpu>& queue, const ConvProblem& problem, bool transposed,
                                           bool with_bias, ConvEpilogue epilogue) {
  return queue.weights().get<PreparedConv>(key_of(problem, transposed, with_bias, epilogue),
                                           [&] { return prepare(problem, transposed, with_bias, epilogue); });
}

void run(Queue<Cpu>& queue, const ConvProblem& problem, bool transposed, const float* x, const float* filters,
         const float* bias, float* y) {
  const auto prepared = prepared_for(queue, problem, transposed, bias != nullptr, ConvEpilogue::sound);
  const memory source = onednn_reordered(laid_out(source_dims(problem), problem.x_channels_last), x, prepared->source);
  const memory::desc stored = stored_filters(problem, transposed);
  const memory weights = problem.filters_are_constant ? onednn_packed(queue, stored, filters, prepared->filters)
                                                      : onednn_reordered(stored, filters, prepared->filters);
  memory wanted_target(laid_out(target_dims(problem), problem.y_channels_last), onednn_engine(), y);
  const bool direct = prepared->target == wanted_target.get_desc();
  memory target = direct ? wanted_target : memory(prepared->target, onednn_engine());
  Arguments arguments = arguments_of(problem, source, weights, bias, target);
  arguments.emplace(DNNL_ARG_SCRATCHPAD, workspace_of(queue)->as(prepared->scratchpad));
  prepared->primitive.execute(onednn_stream(), arguments);
  if (!direct) dnnl::reorder(target, wanted_target).execute(onednn_stream(), target, wanted_target);
  onednn_stream().wait();
  if (!prepared->activates) activate(problem, y);
}

bool fits_onednn(const ConvProblem& problem) {
  const bool has_work = problem.batch > 0 && product(problem.in_spatial) > 0 && product(problem.out_spatial) > 0 &&
                        problem.in_channels > 0 && product(problem.kernel) > 0;
  bool pads_fit = true;  // negative ones crop: for the loops
  for (int64_t axis = 0; axis < problem.spatial_rank(); ++axis) {
    pads_fit = pads_fit && problem.pads_begin[axis] >= 0 && problem.pads_end[axis] >= 0;
  }
  return has_work && pads_fit && problem.spatial_rank() >= 1 && problem.spatial_rank() <= 3;
}

bool is_depthwise(const ConvProblem& problem) {
  return problem.groups == problem.in_channels && problem.groups == problem.out_channels;
}

// In multiply-adds of dense filters. One channel at a time, oneDNN is slower by a factor of about this.
constexpr double kDepthwiseFactor = 6;
double work_of(const ConvProblem& problem) {
  return (is_depthwise(problem) ? kDepthwiseFactor : 1.0) *
         static_cast<double>(problem.batch * problem.out_channels * product(problem.out_spatial)) *
         static_cast<double>(problem.in_channels / problem.groups * product(problem.kernel));
}

}  // namespace

// A primitive with its operands.
struct ReadyPrimitive {
  std::shared_ptr<PreparedConv> prepared;
  Arguments arguments;
};

struct ReadyConv {
  ConvProblem problem;
  const float* filters = nullptr;
  const float* bias = nullptr;
  memory::desc source;                      // of what is handed in
  ReadyPrimitive first;                     // as fast as it gets; may lose NaN
  std::optional<ReadyPrimitive> sound;      // from the first NaN on that the other one has seen
  std::shared_ptr<const PanelConv> panels;  // instead of both, where they serve better
};

// oneDNN has groups of several channels in a layout of its own.
bool suits_channels_last(const ConvProblem& problem) {
  if (!fits_onednn(problem)) return false;
  if (problem.groups == 1 || is_depthwise(problem)) return true;
  ConvProblem in_panels = problem;
  in_panels.x_channels_last = in_panels.y_channels_last = true;
  return suits_panels(in_panels);
}

bool gains_from_channels_last_copy(const ConvProblem& problem) {
  constexpr int64_t kFewest = 16;  // channels
  if (problem.in_channels < kFewest) return false;
  ConvProblem copied = problem;
  copied.x_channels_last = true;
  return suits_panels(copied);
}

namespace {

ReadyPrimitive make_primitive(Queue<Cpu>& queue, const ReadyConv& ready, ConvEpilogue epilogue) {
  const ConvProblem& problem = ready.problem;
  const auto prepared = prepared_for(queue, problem, false, ready.bias != nullptr, epilogue);
  const memory weights = onednn_packed(queue, stored_filters(problem, false), ready.filters, prepared->filters);
  const memory source(prepared->source, onednn_engine(), DNNL_MEMORY_NONE);
  const memory target(prepared->target, onednn_engine(), DNNL_MEMORY_NONE);
  return {prepared, arguments_of(problem, source, weights, ready.bias, target)};
}

// Row-major x with its channels last where the primitive wants it so: oneDNN 2.6 takes several times as long. Null
// where there is nothing to turn, or no memory.
std::shared_ptr<std::byte> permuted_source(Queue<Cpu>& queue, const ReadyConv& ready, const memory::desc& wanted,
                                           const float* x) {
  const ConvProblem& problem = ready.problem;
  constexpr int64_t kLeastTransposed = 16;  // channels
  if (problem.x_channels_last || problem.in_channels < kLeastTransposed) return nullptr;
  if (wanted != channels_last(source_dims(problem))) return nullptr;
  const int64_t channels = problem.in_channels, locations = product(problem.in_spatial);
  auto made = queue.pool().allocate(static_cast<size_t>(problem.batch * channels * locations) * sizeof(float));
  if (!made.ok()) return nullptr;
  const Ints order{problem.batch, locations, channels};
  copy_strided(queue, sizeof(float), order, {made->get(), row_major_strides(order), 0},
               {reinterpret_cast<const std::byte*>(x), {channels * locations, 1, locations}, 0});
  return made.take();
}

void execute(Queue<Cpu>& queue, const ReadyConv& ready, ReadyPrimitive& chosen, const float* x, float* y) {
  const PreparedConv& prepared = *chosen.prepared;
  memory& source = chosen.arguments.at(DNNL_ARG_SRC);
  const auto permuted = permuted_source(queue, ready, prepared.source, x);
  if (ready.source == prepared.source || permuted != nullptr) {
    source.set_data_handle(permuted == nullptr ? const_cast<float*>(x) : reinterpret_cast<float*>(permuted.get()));
  } else {
    source = onednn_reordered(ready.source, x, prepared.source);
  }
  chosen.arguments.at(DNNL_ARG_DST).set_data_handle(y);
  chosen.arguments.insert_or_assign(DNNL_ARG_SCRATCHPAD, workspace_of(queue)->as(prepared.scratchpad));
  prepared.primitive.execute(onednn_stream(), chosen.arguments);
  onednn_stream().wait();
  if (!prepared.activates) activate(ready.problem, y);
}

}  // namespace

Result<std::shared_ptr<ReadyConv>> make_ready(Queue<Cpu>& queue, const ConvProblem& problem, const float* filters,
                                              const float* bias) {
  PX_CHECK(problem.y_channels_last && problem.filters_are_constant);
  auto ready = std::make_shared<ReadyConv>();
  PX_TRY(guard_onednn([&] {
    // Primitives run on as many threads as were allowed when they were made.
    const LibraryThreads threads(library_thread_count(work_of(problem)));
    ready->problem = problem;
    ready->filters = filters;
    ready->bias = bias;
    ready->panels = make_panel_conv(queue, problem, filters, bias);
    if (ready->panels != nullptr) return;
    ready->source = laid_out(source_dims(problem), problem.x_channels_last);
    ready->first = make_primitive(queue, *ready, kInvalidTellsNan ? ConvEpilogue::any : ConvEpilogue::sound);
  }));
  return ready;
}

Status conv(Queue<Cpu>& queue, ReadyConv& ready, const float* x, const Addend& addend, float* y) {
  if (ready.panels != nullptr) return run_panel_conv(queue, *ready.panels, x, addend, y);
  PX_TRY(guard_onednn([&] {
    const LibraryThreads threads(library_thread_count(work_of(ready.problem)));
    if (!ready.sound.has_value()) {
      const InvalidOperations invalid;
      execute(queue, ready, ready.first, x, y);
      if (!ready.first.prepared->loses_nan || !invalid.seen()) return;
      ready.sound = make_primitive(queue, ready, ConvEpilogue::sound);
    }
    execute(queue, ready, *ready.sound, x, y);
  }));
  const ConvProblem& problem = ready.problem;
  const int64_t count = problem.batch * problem.out_channels * product(problem.out_spatial);
  if (addend.values != nullptr) finish_sum<float>(count, addend.values, addend.activation, y);
  return {};
}

Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const float* x, const float* filters, const float* bias,
            float* y) {
  if (!fits_onednn(problem)) {
    conv_loops(problem, x, filters, bias, y);
    activate(problem, y);
    return {};
  }
  if (!problem.y_channels_last) {
    if (is_pointwise_conv(problem)) return pointwise_conv(queue, problem, x, filters, bias, y);
    if (is_depthwise_conv(problem, filters)) return depthwise_conv(problem, x, filters, bias, y), Status{};
  }
  return guard_onednn([&] {
    const LibraryThreads threads(library_thread_count(work_of(problem)));
    run(queue, problem, false, x, filters, bias, y);
  });
}

Status conv_transpose(Queue<Cpu>& queue, const ConvProblem& problem, const float* x, const float* filters,
                      const float* bias, float* y) {
  if (!fits_onednn(problem)) return conv_transpose_loops(problem, x, filters, bias, y), Status{};
  return guard_onednn([&] {
    const LibraryThreads threads(library_thread_count(work_of(problem)));
    run(queue, problem, true, x, filters, bias, y);
  });
}

Status conv(Queue<Cpu>&, const ConvProblem& problem, const double* x, const double* filters, const double* bias,
            double* y) {
  return conv_loops(problem, x, filters, bias, y), Status{};
}

Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const int64_t* x, const int64_t* filters,
            const int64_t* bias, int64_t* y) {
  if (PX_TRY(conv_in_floats(queue, problem, x, filters, bias, y))) return {};
  return conv_loops(problem, x, filters, bias, y), Status{};
}

Status conv_transpose(Queue<Cpu>&, const ConvProblem& problem, const double* x, const double* filters,
                      const double* bias, double* y) {
  return conv_transpose_loops(problem, x, filters, bias, y), Status{};
}

}  // namespace parallax::runtime
