// com.microsoft.MoE on the host: tokens go through the experts that their router prefers. Definition:
// ContribOperators.md.
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "runtime/device/blocks.h"
#include "runtime/device/gemm.h"
#include "runtime/device/math.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/microsoft_families.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

float silu(float x) { return x * math::sigmoid(x); }
float relu(float x) { return x > 0.0F ? x : 0.0F; }
float same(float x) { return x; }
float exact_gelu(float x) { return math::gelu(x); }

struct Function {
  float (*apply)(float);
  float operator()(float x) const { return apply(x); }
};

// One layer of all experts: weights [experts, out, in] and perhaps a bias [experts, out].
struct Layer {
  std::shared_ptr<const float> weights;
  std::vector<float> bias;
  int64_t experts = 0, out = 0, in = 0;

  static Result<Layer> create(Context& op, int64_t input) {
    const Shape& shape = op.input(input).shape();
    if (shape.rank() != 3) return execution_error(fmt::format("input {} has shape {}", input, shape.to_string()));
    Layer layer{PX_TRY(converted<float>(op.queue(), op.input(input).view(), op.is_constant(input))),
                {},
                shape[0],
                shape[1],
                shape[2]};
    if (!op.has_input(input + 1)) return layer;
    layer.bias = floats_of(op.input(input + 1));
    if (static_cast<int64_t>(layer.bias.size()) != layer.experts * layer.out)
      return execution_error(fmt::format("the bias of input {} does not fit", input));
    return layer;
  }

  // y = x W^T + b for `rows` rows.
  Status apply(Context& op, int64_t expert, int64_t rows, const float* x, std::vector<float>& y) const {
    y.resize(static_cast<size_t>(rows * out));
    GemmProblem problem;
    problem.m = rows;
    problem.n = out;
    problem.k = in;
    problem.transpose_b = true;
    PX_TRY(gemm(op.queue(), problem, x, weights.get() + expert * out * in, y.data()));
    for (int64_t i = 0; !bias.empty() && i < rows * out; ++i) y.data()[i] += bias.data()[expert * out + i % out];
    return {};
  }
};

struct Experts {
  Layer first, second, third;  // the third of none: there is none
  Function activate{same};
  bool is_swiglu = false;
  int64_t fusion = 0;  // of SwiGLU's two halves in the first layer: none, interleaved, side by side
  float alpha = 1, beta = 0, limit = std::numeric_limits<float>::infinity();

  // G * sigmoid(alpha * G) * (L + beta), G = min(g, limit), L = clamp(l, -limit, limit)
  float swiglu(float g, float l) const {
    const float gate = std::min(g, limit);
    return gate * math::sigmoid(alpha * gate) * (std::clamp(l, -limit, limit) + beta);
  }
};

Result<Experts> read_experts(Context& op, int64_t hidden) {
  Experts experts;
  const std::string name = op.text("activation_type");
  experts.is_swiglu = name == "swiglu";
  if (name == "relu") {
    experts.activate = {relu};
  } else if (name == "gelu") {
    experts.activate = {exact_gelu};
  } else if (name == "silu") {
    experts.activate = {silu};
  } else if (name != "identity" && !experts.is_swiglu) {
    return execution_error("activation_type is '" + name + "'");
  }
  experts.fusion = op.integer("swiglu_fusion");
  experts.alpha = static_cast<float>(op.real("activation_alpha"));
  experts.beta = static_cast<float>(op.real("activation_beta"));
  if (const auto limit = op.find_real("swiglu_limit")) experts.limit = static_cast<float>(*limit);
  if (experts.fusion < 0 || experts.fusion > 2 || !(experts.limit >= 0))
    return execution_error("swiglu_fusion or swiglu_limit is out of range");
  experts.first = PX_TRY(Layer::create(op, 2));
  experts.second = PX_TRY(Layer::create(op, 4));
  if (op.has_input(6)) experts.third = PX_TRY(Layer::create(op, 6));
  const bool is_fused = experts.is_swiglu && experts.fusion > 0;
  if (experts.is_swiglu && !is_fused && experts.third.experts == 0)
    return execution_error("swiglu without fusion needs fc3");
  const Layer &first = experts.first, &second = experts.second, &third = experts.third;
  const bool fits = first.in == hidden && second.out == hidden && second.in * (is_fused ? 2 : 1) == first.out &&
                    second.experts == first.experts;
  const bool third_fits = third.experts == 0 ||
                          (!is_fused && third.experts == first.experts && third.in == hidden && third.out == second.in);
  if (!fits || !third_fits) return execution_error("the experts' layers do not fit each other");
  return experts;
}

// What an expert makes of `rows` tokens.
Status answer(Context& op, const Experts& experts, int64_t expert, int64_t rows, const std::vector<float>& x,
              std::vector<float>& y) {
  std::vector<float> first, third;
  PX_TRY(experts.first.apply(op, expert, rows, x.data(), first));
  if (experts.third.experts > 0) PX_TRY(experts.third.apply(op, expert, rows, x.data(), third));
  const int64_t width = experts.second.in;
  std::vector<float> inner(static_cast<size_t>(rows * width));
  for (int64_t i = 0; i < rows * width; ++i) {
    const int64_t row = i / width * experts.first.out, k = i % width;
    float& target = inner.data()[i];
    if (!experts.is_swiglu) {
      target = experts.activate(first.data()[row + k]) * (third.empty() ? 1.0F : third.data()[i]);
    } else if (experts.fusion == 0) {
      target = experts.swiglu(first.data()[row + k], third.data()[i]);
    } else {
      const bool interleaved = experts.fusion == 1;
      target = experts.swiglu(first.data()[row + (interleaved ? 2 * k : k)],
                              first.data()[row + (interleaved ? 2 * k + 1 : width + k)]);
    }
  }
  return experts.second.apply(op, expert, rows, inner.data(), y);
}

struct Routed {
  int64_t token;
  float weight;
};

// For each expert the tokens that chose it: the k of greatest probability, the softmax of the router's row; the first
// of equals.
std::vector<std::vector<Routed>> route(const std::vector<float>& router, int64_t tokens, int64_t count, int64_t k,
                                       bool normalise) {
  std::vector<std::vector<Routed>> routed(static_cast<size_t>(count));
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t token = 0; token < tokens; ++token) {
    const float* row = router.data() + token * count;
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
    double sum = 0, chosen = 0;
    const auto exponential = [&](int64_t expert) { return std::exp(static_cast<double>(row[expert] - row[order[0]])); };
    for (int64_t expert = 0; expert < count; ++expert) sum += exponential(expert);
    for (int64_t i = 0; i < k; ++i) chosen += exponential(order.data()[i]);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t expert = order.data()[i];
      routed.data()[expert].push_back({token, static_cast<float>(exponential(expert) / (normalise ? chosen : sum))});
    }
  }
  return routed;
}

// The page calls the router's input probabilities; the kernels take it for logits and apply a softmax before they
// choose. fc3, where it is given without SwiGLU, multiplies the activated fc1.
Status mixture_of_experts(Context& op) {
  const Ints dims(op.input(0).shape());
  if (dims.size() < 2 || dims.size() > 3) return execution_error("input has shape " + op.input(0).shape().to_string());
  if (op.integer("use_sparse_mixer") != 0)
    return unsupported("use_sparse_mixer: the operator's page does not define it");
  const int64_t hidden = dims.back(), tokens = product(dims, 0, dims.size() - 1);
  const Experts experts = PX_TRY(read_experts(op, hidden));
  const int64_t count = experts.first.experts, k = op.integer("k");
  if (!(Ints(op.input(1).shape()) == Ints{tokens, count})) return execution_error("the router's input does not fit");
  if (k < 1 || k > count) return execution_error(fmt::format("k is {} of {} experts", k, count));
  const std::vector<float> x = floats_of(op.input(0));
  const auto routed = route(floats_of(op.input(1)), tokens, count, k, op.integer("normalize_routing_weights") != 0);
  std::vector<float> results(x.size(), 0.0F), rows, answers;
  for (int64_t expert = 0; expert < count; ++expert) {
    const std::vector<Routed>& own = routed.data()[expert];
    if (own.empty()) continue;
    rows.clear();
    for (const Routed& each : own)
      rows.insert(rows.end(), x.begin() + each.token * hidden, x.begin() + (each.token + 1) * hidden);
    PX_TRY(answer(op, experts, expert, static_cast<int64_t>(own.size()), rows, answers));
    for (size_t i = 0; i < answers.size(); ++i) {
      const Routed& each = own[i / static_cast<size_t>(hidden)];
      results.data()[each.token * hidden + static_cast<int64_t>(i) % hidden] += each.weight * answers[i];
    }
  }
  const MutableView y = PX_TRY(op.make_output(0, op.input(0).dtype(), op.input(0).shape()));
  store_block<float>(y.dtype, y.data, 0, y.element_count(), results.data());
  return {};
}

constexpr KernelRow<Cpu> kMsExpertRows[] = {contributed_row("MoE", kNarrowFloats, mixture_of_experts)};

}  // namespace

template <>
Rows<Cpu> ms_expert_rows() {
  return kMsExpertRows;
}

}  // namespace parallax::runtime
