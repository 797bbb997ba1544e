// SPDX-License-Identifier: Apache-2.0
// com.microsoft.MoE: each token goes through the k experts its router prefers, whose answers are weighted and added.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

struct Choice {
  size_t expert;
  double weight;
};

// One layer of all experts: weights [experts, out, in] and perhaps a bias [experts, out].
struct Layer {
  std::vector<double> weights, bias;
  int64_t experts = 0, out = 0, in = 0;

  static Result<Layer> create(const OpContext& op, size_t index) {
    const Shape& shape = op.input(index).shape();
    if (shape.rank() != 3) return wrong_input(op, index, "have rank 3: [experts,out,in]");
    Layer layer;
    layer.experts = shape[0];
    layer.out = shape[1];
    layer.in = shape[2];
    layer.weights = PX_TRY(broadcast_input(op, index, shape));
    if (!op.has_input(index + 1)) return layer;
    PX_TRY(expect_shape(op, index + 1, Shape{layer.experts, layer.out}));
    layer.bias = PX_TRY(broadcast_input(op, index + 1, Shape{layer.experts, layer.out}));
    return layer;
  }

  std::vector<double> operator()(size_t expert, std::span<const double> x) const {
    std::vector<double> y;
    for (size_t row = 0; row < static_cast<size_t>(out); ++row) {
      const size_t location = expert * static_cast<size_t>(out) + row;
      double sum = 0;
      for (size_t k = 0; k < x.size(); ++k) sum += weights[location * x.size() + k] * x[k];
      y.push_back(sum + (bias.empty() ? 0.0 : bias[location]));
    }
    return y;
  }
};

struct SwiGlu {
  double alpha = 1, beta = 0;
  double limit = std::numeric_limits<double>::infinity();

  // G * sigmoid(alpha * G) * (L + beta), G = min(g, limit), L = clamp(l, -limit, limit)
  double operator()(double g, double l) const {
    const double gate = std::min(g, limit);
    return gate * sigmoid(alpha * gate) * (std::clamp(l, -limit, limit) + beta);
  }
};

class Experts {
 public:
  static Result<Experts> create(const OpContext& op, int64_t hidden) {
    Experts experts;
    experts.activation_ = op.string_attribute("activation_type");
    const bool known = experts.is("relu") || experts.is("gelu") || experts.is("silu") || experts.is("swiglu") ||
                       experts.is("identity");
    if (!known)
      return as_invalid_model(
          wrong_attribute("activation_type", experts.activation_, "be identity, relu, gelu, silu or swiglu"));
    experts.fusion_ = op.int_attribute("swiglu_fusion");
    if (experts.fusion_ < 0 || experts.fusion_ > 2)
      return as_invalid_model(wrong_attribute("swiglu_fusion", experts.fusion_, "be 0, 1 or 2"));
    experts.swiglu_ = {op.float_attribute("activation_alpha"), op.float_attribute("activation_beta"),
                       op.find_float("swiglu_limit").value_or(std::numeric_limits<double>::infinity())};
    if (!(experts.swiglu_.limit >= 0))
      return as_invalid_model(wrong_value("attribute 'swiglu_limit'", experts.swiglu_.limit, "be 0 or more"));
    experts.first_ = PX_TRY(Layer::create(op, 2));
    experts.second_ = PX_TRY(Layer::create(op, 4));
    if (op.has_input(6)) experts.third_ = PX_TRY(Layer::create(op, 6));
    const bool fused = experts.is("swiglu") && experts.fusion_ > 0;
    if (experts.is("swiglu") && !fused && !op.has_input(6))
      return wrong_input(op, 6, "be given for swiglu with 'swiglu_fusion' 0");
    const int64_t inner = experts.first_.out / (fused ? 2 : 1);
    const bool fits = experts.first_.in == hidden && experts.second_.out == hidden && experts.second_.in == inner &&
                      experts.first_.out % (fused ? 2 : 1) == 0 && experts.second_.experts == experts.first_.experts;
    const Layer& third = experts.third_;
    const bool third_fits = third.experts == 0 || (!fused && third.experts == experts.first_.experts &&
                                                   third.in == hidden && third.out == inner);
    if (!fits || !third_fits)
      return execution_error(
          fmt::format("the experts' layers are [experts,out,in] [{},{},{}], [{},{},{}] and [{},{},{}]; they must lead "
                      "from hidden size {} back to it, with as many experts each",
                      experts.first_.experts, experts.first_.out, experts.first_.in, experts.second_.experts,
                      experts.second_.out, experts.second_.in, third.experts, third.out, third.in, hidden));
    return experts;
  }

  int64_t count() const { return first_.experts; }

  std::vector<double> answer(size_t expert, std::span<const double> x) const {
    const std::vector<double> first = first_(expert, x);
    std::vector<double> inner(static_cast<size_t>(second_.in));
    const std::vector<double> third = third_.experts > 0 ? third_(expert, x) : std::vector<double>();
    for (size_t k = 0; k < inner.size(); ++k) {
      if (is("swiglu")) {
        const double g = fusion_ == 0 ? first[k] : fusion_ == 1 ? first[2 * k] : first[k];
        const double l = fusion_ == 0 ? third[k] : fusion_ == 1 ? first[2 * k + 1] : first[inner.size() + k];
        inner[k] = swiglu_(g, l);
      } else {
        inner[k] = activate(first[k]) * (third.empty() ? 1.0 : third[k]);
      }
    }
    return second_(expert, inner);
  }

 private:
  bool is(std::string_view name) const { return activation_ == name; }
  double activate(double x) const {
    if (is("relu")) return std::max(x, 0.0);
    if (is("gelu")) return gelu_exact(x);
    if (is("silu")) return x * sigmoid(x);
    return x;
  }

  std::string activation_;
  int64_t fusion_ = 0;
  SwiGlu swiglu_;
  Layer first_, second_, third_;
};

// The k experts of greatest probability, the softmax of the router's row; the first of equals.
std::vector<Choice> choose(std::span<const double> row, size_t k, bool normalize) {
  const double highest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double logit : row) sum += std::exp(logit - highest);
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  std::vector<Choice> chosen;
  double total = 0;
  for (size_t index = 0; index < k; ++index) {
    chosen.push_back({order[index], std::exp(row[order[index]] - highest) / sum});
    total += chosen.back().weight;
  }
  for (Choice& choice : chosen) choice.weight /= normalize ? total : 1.0;
  return chosen;
}

// ContribOperators.md, com.microsoft.MoE. The page calls the router's input probabilities; the kernels take it for
// logits and apply a softmax before they choose. fc3, where it is given without SwiGLU, multiplies the activated fc1.
// "gelu" is com.microsoft.Gelu; onnxruntime's kernels take its tanh approximation.
Status op_contrib_moe(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() < 2 || shape.rank() > 3) return wrong_input(op, 0, "have rank 2 or 3");
  if (op.int_attribute("use_sparse_mixer") != 0) return unsupported("use_sparse_mixer: the page does not define it");
  const int64_t hidden = shape[shape.rank() - 1];
  const int64_t tokens = count_of(shape, 0, shape.rank() - 1);
  const Experts experts = PX_TRY(Experts::create(op, hidden));
  PX_TRY(expect_shape(op, 1, Shape{tokens, experts.count()}));
  const int64_t k = op.int_attribute("k");
  if (k < 1 || k > experts.count())
    return wrong_attribute("k", k, "be in [1, {}], the number of experts", experts.count());
  const bool normalize = op.int_attribute("normalize_routing_weights") != 0;
  const Numbers<double> x(op.input(0)), router(op.input(1));
  std::vector<double> results(static_cast<size_t>(x.size()), 0.0);
  parallel_for(tokens, 1000 * k, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const auto count = static_cast<size_t>(experts.count());
      const auto width = static_cast<size_t>(hidden);
      const auto at = static_cast<size_t>(token);
      for (const Choice& choice : choose(router.span().subspan(at * count, count), static_cast<size_t>(k), normalize)) {
        const std::vector<double> answer = experts.answer(choice.expert, x.span().subspan(at * width, width));
        for (size_t index = 0; index < width; ++index) results[at * width + index] += choice.weight * answer[index];
      }
    }
  });
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results));
}

constexpr OpRow kContribExpertsRows[] = {
    {"MoE", kMicrosoft, 1, 1, op_contrib_moe},
};

}  // namespace

OpRows contrib_experts_rows() { return kContribExpertsRows; }

}  // namespace parallax::reference
