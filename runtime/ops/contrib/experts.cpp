// SPDX-License-Identifier: Apache-2.0
// com.microsoft.MoE: tokens go through the experts that their router prefers. Definition: ContribOperators.md.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/indices.h"

namespace parallax::runtime {
namespace {

// ---- Which expert takes which tokens ----

// The assignment of tokens to experts, a row for each pair of a token and an expert that it chose. The rows of an
// expert follow each other, after those of earlier experts.
struct Routes {
  Ints tokens;                  // of each row
  Ints experts;                 // of each row
  Ints begins;                  // the first row of each expert, and the number of rows
  Ints rows;                    // of each token, in the order of experts: [tokens, k]
  std::vector<double> weights;  // of each row
};

// Each token takes the k experts of greatest probability, the softmax of the router's row; the first of equals.
Routes route(const std::vector<float>& router, int64_t tokens, int64_t count, int64_t k, bool normalize) {
  struct Choice {
    int64_t token;
    float weight;
  };
  std::vector<std::vector<Choice>> chosen_by(static_cast<size_t>(count));
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
      const double weight = exponential(expert) / (normalize ? chosen : sum);
      chosen_by.data()[expert].push_back({token, static_cast<float>(weight)});
    }
  }
  Routes routes;
  routes.rows = Ints(tokens * k);
  Ints taken(tokens);
  for (int64_t expert = 0; expert < count; ++expert) {
    routes.begins.push_back(routes.tokens.size());
    for (const Choice& choice : chosen_by.data()[expert]) {
      routes.rows[choice.token * k + taken[choice.token]++] = routes.tokens.size();
      routes.tokens.push_back(choice.token);
      routes.experts.push_back(expert);
      routes.weights.push_back(static_cast<double>(choice.weight));
    }
  }
  routes.begins.push_back(routes.tokens.size());
  return routes;
}

// ---- The experts ----

// One layer of all experts: weights [experts, out, in] and perhaps a bias [experts, out].
template <class Device>
struct Layer {
  std::shared_ptr<const float> weights, bias;
  int64_t experts = 0, out = 0, in = 0;

  static Result<Layer> create(OpContext<Device>& op, int64_t input) {
    const Shape& shape = op.input(input).shape();
    if (shape.rank() != 3) return wrong_input(op, input, "have rank 3: [experts,out,in]");
    Layer layer;
    layer.experts = shape[0];
    layer.out = shape[1];
    layer.in = shape[2];
    layer.weights = PX_TRY(converted<float>(op.queue(), op.input(input).view(), op.is_constant(input)));
    if (!op.has_input(input + 1)) return layer;
    if (op.input(input + 1).element_count() != layer.experts * layer.out)
      return wrong_input(op, input + 1, "have {} elements: {} experts of {} outputs", layer.experts * layer.out,
                         layer.experts, layer.out);
    layer.bias = PX_TRY(converted<float>(op.queue(), op.input(input + 1).view(), op.is_constant(input + 1)));
    return layer;
  }

  // y = x W^T, each expert for its rows.
  Status apply(OpContext<Device>& op, const Routes& routes, const float* x, float* y) const {
    GemmProblem problem;
    problem.n = out;
    problem.k = in;
    problem.transpose_b = true;
    for (int64_t expert = 0; expert < experts; ++expert) {
      const int64_t begin = routes.begins[expert];
      problem.m = routes.begins[expert + 1] - begin;
      if (problem.m == 0) continue;
      PX_TRY(gemm(op.queue(), problem, x + begin * in, weights.get() + expert * out * in, y + begin * out));
    }
    return {};
  }
};

// The products of a layer with its bias.
template <class Device>
struct LayerResult {
  Elements<Device, const float> products, bias;  // either may be missing
  int64_t out = 0;
  PX_HD float at(int64_t expert, int64_t row, int64_t column) const {
    const float product = products[row * out + column];
    return bias ? product + bias[expert * out + column] : product;
  }
};

enum class ExpertActivation : uint8_t { identity, relu, gelu, silu, swiglu };

PX_HD float activated(ExpertActivation activation, float x) {
  switch (activation) {
    case ExpertActivation::relu:
      return x > 0.0F ? x : 0.0F;
    case ExpertActivation::gelu:
      return math::gelu(x);
    case ExpertActivation::silu:
      return math::times_sigmoid(x, x);
    case ExpertActivation::identity:
    case ExpertActivation::swiglu:
      break;
  }
  return x;
}

struct Gate {
  ExpertActivation activation = ExpertActivation::identity;
  int64_t fusion = 0;  // of SwiGLU's two halves in the first layer: none, interleaved, side by side
  float alpha = 1, beta = 0, limit = std::numeric_limits<float>::infinity();
  bool is_swiglu() const { return activation == ExpertActivation::swiglu; }
  bool is_fused() const { return is_swiglu() && fusion > 0; }

  // G * sigmoid(alpha * G) * (L + beta), G = min(g, limit), L = clamp(l, -limit, limit)
  PX_HD float swiglu(float g, float l) const {
    const float gate = limit < g ? limit : g;
    const float linear = l < -limit ? -limit : (limit < l ? limit : l);
    return math::times_sigmoid(gate, alpha * gate) * (linear + beta);
  }
};

// A row of the second layer's input; the third layer, where it exists without SwiGLU, multiplies the activated first.
template <class Device>
struct GatedRow {
  static constexpr int64_t kWork = 20;
  LayerResult<Device> first, third;
  Elements<Device, const int64_t> experts;  // of each row
  Gate gate;
  int64_t width;
  PX_HD float operator()(int64_t i) const {
    const int64_t row = i / width, k = i % width, expert = experts[row];
    if (gate.activation != ExpertActivation::swiglu) {
      const float value = activated(gate.activation, first.at(expert, row, k));
      return third.products ? value * third.at(expert, row, k) : value;
    }
    if (gate.fusion == 0) return gate.swiglu(first.at(expert, row, k), third.at(expert, row, k));
    const bool interleaved = gate.fusion == 1;
    return gate.swiglu(first.at(expert, row, interleaved ? 2 * k : k),
                       first.at(expert, row, interleaved ? 2 * k + 1 : width + k));
  }
};

// The weighted answers of a token's experts.
template <class Device>
struct JoinedAnswer {
  static constexpr int64_t kWork = 20;
  LayerResult<Device> answers;
  Elements<Device, const int64_t> rows, experts;
  Elements<Device, const double> weights;
  int64_t k;
  PX_HD float operator()(int64_t i) const {
    const int64_t token = i / answers.out, column = i % answers.out;
    float sum = 0;
    for (int64_t choice = 0; choice < k; ++choice) {
      const int64_t row = rows[token * k + choice];
      sum += static_cast<float>(weights[row]) * answers.at(experts[row], row, column);
    }
    return sum;
  }
};

// ---- The operator ----

template <class Device>
struct Experts {
  Layer<Device> first, second, third;  // the third of none: there is none
  Gate gate;
};

Result<Gate> read_gate(const OpCall& op) {
  constexpr std::pair<std::string_view, ExpertActivation> kExpertActivations[] = {
      {"identity", ExpertActivation::identity},
      {"relu", ExpertActivation::relu},
      {"gelu", ExpertActivation::gelu},
      {"silu", ExpertActivation::silu},
      {"swiglu", ExpertActivation::swiglu}};
  const std::string name = op.text("activation_type");
  const auto* found = std::find_if(std::begin(kExpertActivations), std::end(kExpertActivations),
                                   [&](const auto& each) { return each.first == name; });
  if (found == std::end(kExpertActivations))
    return wrong_attribute("activation_type", name, "be identity, relu, gelu, silu or swiglu");
  Gate gate;
  gate.activation = found->second;
  gate.fusion = op.integer("swiglu_fusion");
  gate.alpha = static_cast<float>(op.real("activation_alpha"));
  gate.beta = static_cast<float>(op.real("activation_beta"));
  if (const auto limit = op.find_real("swiglu_limit")) gate.limit = static_cast<float>(*limit);
  if (gate.fusion < 0 || gate.fusion > 2 || !(gate.limit >= 0))
    return execution_error(
        fmt::format("attribute 'swiglu_fusion' is {} and 'swiglu_limit' is {}; they must be 0, 1 or 2, and 0 or more",
                    gate.fusion, gate.limit));
  return gate;
}

template <class Device>
Result<Experts<Device>> read_experts(OpContext<Device>& op, int64_t hidden) {
  Experts<Device> experts;
  experts.gate = PX_TRY(read_gate(op));
  experts.first = PX_TRY(Layer<Device>::create(op, 2));
  experts.second = PX_TRY(Layer<Device>::create(op, 4));
  if (op.has_input(6)) experts.third = PX_TRY(Layer<Device>::create(op, 6));
  const bool is_fused = experts.gate.is_fused();
  if (experts.gate.is_swiglu() && !is_fused && experts.third.experts == 0)
    return wrong_input(op, 6, "be given for swiglu with 'swiglu_fusion' 0");
  const Layer<Device>&first = experts.first, &second = experts.second, &third = experts.third;
  const bool fits = first.in == hidden && second.out == hidden && second.in * (is_fused ? 2 : 1) == first.out &&
                    second.experts == first.experts;
  const bool third_fits = third.experts == 0 ||
                          (!is_fused && third.experts == first.experts && third.in == hidden && third.out == second.in);
  if (!fits || !third_fits)
    return execution_error(
        fmt::format("the experts' layers are [experts,out,in] [{},{},{}], [{},{},{}] and [{},{},{}]; they must lead "
                    "from hidden size {} back to it, with as many experts each",
                    first.experts, first.out, first.in, second.experts, second.out, second.in, third.experts, third.out,
                    third.in, hidden));
  return experts;
}

// A layer's products for the rows `x`.
template <class Device>
Result<LayerResult<Device>> products_of(OpContext<Device>& op, const Layer<Device>& layer, const Routes& routes,
                                        const MutableView& x) {
  const MutableView y = PX_TRY(op.scratch(DType::float32, shape_of({routes.tokens.size(), layer.out})));
  PX_TRY(layer.apply(op, routes, reinterpret_cast<const float*>(x.data), reinterpret_cast<float*>(y.data)));
  return LayerResult<Device>{{reinterpret_cast<const float*>(y.data)}, {layer.bias.get()}, layer.out};
}

template <class Device>
Status run_experts(OpContext<Device>& op, const Experts<Device>& experts, const Routes& routes, const MutableView& y) {
  const int64_t hidden = experts.first.in, rows = routes.tokens.size(), width = experts.second.in;
  const auto expert_of = PX_TRY(op.table(routes.experts));
  const MutableView x = PX_TRY(op.scratch(DType::float32, shape_of({rows, hidden})));
  const auto tokens = PX_TRY(converted<float>(op.queue(), op.input(0).view(), op.is_constant(0)));
  const TableIndex<Device> token{PX_TRY(op.table(routes.tokens))};
  index_map(op.queue(), token, x, reinterpret_cast<const std::byte*>(tokens.get()), hidden);
  GatedRow<Device> gated{{}, {}, expert_of, experts.gate, width};
  gated.first = PX_TRY(products_of(op, experts.first, routes, x));
  if (experts.third.experts > 0) gated.third = PX_TRY(products_of(op, experts.third, routes, x));
  const MutableView inner = PX_TRY(op.scratch(DType::float32, shape_of({rows, width})));
  if (inner.element_count() > 0) tabulate<float>(op.queue(), gated, inner);
  const JoinedAnswer<Device> answer{PX_TRY(products_of(op, experts.second, routes, inner)),
                                    PX_TRY(op.table(routes.rows)), expert_of, PX_TRY(op.table(routes.weights)),
                                    op.integer("k")};
  tabulate<float>(op.queue(), answer, y);
  return {};
}

// The page calls the router's input probabilities; the kernels take it for logits and apply a softmax before they
// choose.
template <class Device>
Status mixture_of_experts(OpContext<Device>& op) {
  const Ints dims(op.input(0).shape());
  if (dims.size() < 2 || dims.size() > 3) return wrong_input(op, 0, "have rank 2 or 3");
  if (op.integer("use_sparse_mixer") != 0)
    return unsupported(
        "attribute 'use_sparse_mixer' is set; only 0 has a kernel here, as the operator's page does not define it");
  const int64_t hidden = dims.back(), tokens = product(dims, 0, dims.size() - 1);
  const Experts<Device> experts = PX_TRY(read_experts(op, hidden));
  const int64_t count = experts.first.experts, k = op.integer("k");
  if (!(Ints(op.input(1).shape()) == Ints{tokens, count}))
    return wrong_input(op, 1, "be [{},{}], tokens and experts", tokens, count);
  if (k < 1 || k > count) return wrong_attribute("k", k, "be in [1, {}], the number of experts", count);
  const MutableView y = PX_TRY(op.make_output(0, op.input(0).dtype(), op.input(0).shape()));
  if (y.element_count() == 0) return {};
  const Routes routes = route(floats_of(op.input(1)), tokens, count, k, op.integer("normalize_routing_weights") != 0);
  return run_experts(op, experts, routes, y);
}

template <class Device>
constexpr KernelRow<Device> kContribExpertRows[] = {
    of_microsoft(reads_on_host<Device>({1}, {"MoE", kNarrowFloats, mixture_of_experts<Device>})),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_expert_rows() {
  return kContribExpertRows<CompiledDevice>;
}

}  // namespace parallax::runtime
