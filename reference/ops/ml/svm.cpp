// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml's support vector machines: SVMClassifier, SVMRegressor. The pages name the attributes only; the formulas
// are those of libsvm (Chang and Lin, "LIBSVM: A Library for Support Vector Machines", sections 2 and 8), whose models
// these operators hold.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/ml/shared.h"

namespace parallax::reference {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

class Kernel {
 public:
  static Result<Kernel> create(const OpContext& op) {
    Kernel kernel;
    const std::string name = op.string_attribute("kernel_type");
    const auto types = {std::pair("LINEAR", Type::linear), std::pair("POLY", Type::poly), std::pair("RBF", Type::rbf),
                        std::pair("SIGMOID", Type::sigmoid)};
    const auto* found = std::find_if(types.begin(), types.end(), [&](const auto& type) { return name == type.first; });
    if (found == types.end())
      return as_invalid_model(wrong_attribute("kernel_type", name, "be LINEAR, POLY, RBF or SIGMOID"));
    kernel.type_ = found->second;
    const auto parameters = op.find_floats("kernel_params").value_or(std::vector<double>{});
    if (parameters.empty()) return kernel;
    PX_TRY(expect_count("kernel_params", parameters.size(), 3));
    kernel.gamma_ = parameters[0];
    kernel.coef0_ = parameters[1];
    kernel.degree_ = parameters[2];
    return kernel;
  }

  double operator()(std::span<const double> a, std::span<const double> b) const {
    switch (type_) {
      case Type::linear:
        return dot(a, b);
      case Type::poly:
        return std::pow(gamma_ * dot(a, b) + coef0_, degree_);
      case Type::sigmoid:
        return std::tanh(gamma_ * dot(a, b) + coef0_);
      case Type::rbf:
        break;
    }
    double squares = 0;
    for (size_t k = 0; k < a.size(); ++k) squares += (a[k] - b[k]) * (a[k] - b[k]);
    return std::exp(-gamma_ * squares);
  }

 private:
  enum class Type { linear, poly, rbf, sigmoid };
  Type type_ = Type::linear;
  double gamma_ = 0, coef0_ = 0, degree_ = 0;
};

// A classifier with support vectors.
struct PairwiseClassifier {
  Kernel kernel;
  std::vector<double> vectors;              // [vectors, features], those of a class together
  std::vector<double> coefficients;         // [classes - 1, vectors]
  std::vector<double> rho, prob_a, prob_b;  // one for each pair of classes i < j
  std::vector<int64_t> first;               // vector of each class, and after the last

  int64_t classes() const { return static_cast<int64_t>(first.size()) - 1; }
  int64_t pairs() const { return classes() * (classes() - 1) / 2; }

  // The decision value of every pair: positive for its first class.
  std::vector<double> decide(std::span<const double> x) const {
    std::vector<double> values;
    for (int64_t index = 0; index < first.back(); ++index) {
      values.push_back(kernel(x, std::span(vectors).subspan(static_cast<size_t>(index) * x.size(), x.size())));
    }
    const auto part = [&](int64_t row, int64_t of) {
      const auto begin = static_cast<size_t>(first[static_cast<size_t>(of)]);
      const size_t count = static_cast<size_t>(first[static_cast<size_t>(of) + 1]) - begin;
      const auto offset = static_cast<size_t>(row * first.back());
      return dot(std::span(coefficients).subspan(offset + begin, count), std::span(values).subspan(begin, count));
    };
    std::vector<double> decisions;
    for (int64_t i = 0; i < classes(); ++i) {
      for (int64_t j = i + 1; j < classes(); ++j) {
        decisions.push_back(part(j - 1, i) + part(i, j) + rho[decisions.size()]);
      }
    }
    return decisions;
  }

  std::vector<double> votes(const std::vector<double>& decisions) const {
    std::vector<double> votes(static_cast<size_t>(classes()), 0.0);
    size_t pair = 0;
    for (size_t i = 0; i < votes.size(); ++i) {
      for (size_t j = i + 1; j < votes.size(); ++j) ++votes[decisions[pair++] > 0 ? i : j];
    }
    return votes;
  }

  // Section 8 of the paper: Platt's sigmoid for each pair, joined by Wu, Lin and Weng's second method: the p that
  // minimizes sum (r_ji p_i - r_ij p_j)^2, by the iteration and the stopping rule of libsvm, which are part of what its
  // users see.
  std::vector<double> probabilities(const std::vector<double>& decisions) const {
    constexpr double kLeast = 1e-7;
    const auto count = static_cast<size_t>(classes());
    std::vector<double> r(count * count, 0.0);
    size_t pair = 0;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = i + 1; j < count; ++j, ++pair) {
        const double won = 1.0 / (1.0 + std::exp(decisions[pair] * prob_a[pair] + prob_b[pair]));
        r[i * count + j] = std::clamp(won, kLeast, 1 - kLeast);
        r[j * count + i] = 1 - r[i * count + j];
      }
    }
    return join(r, count);
  }

 private:
  static std::vector<double> join(const std::vector<double>& r, size_t count) {
    std::vector<double> q(count * count, 0.0);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        if (i == j) continue;
        q[i * count + i] += r[j * count + i] * r[j * count + i];
        q[i * count + j] = -r[j * count + i] * r[i * count + j];
      }
    }
    std::vector<double> p(count, 1.0 / static_cast<double>(count));
    const int rounds = static_cast<int>(std::max<size_t>(100, count));
    for (int round = 0; round < rounds; ++round) {
      std::vector<double> qp(count, 0.0);
      double pqp = 0;
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < count; ++j) qp[i] += q[i * count + j] * p[j];
        pqp += p[i] * qp[i];
      }
      double error = 0;
      for (double value : qp) error = std::max(error, std::fabs(value - pqp));
      if (error < 0.005 / static_cast<double>(count)) break;
      for (size_t i = 0; i < count; ++i) {
        const double step = (pqp - qp[i]) / q[i * count + i];
        p[i] += step;
        pqp = (pqp + step * (step * q[i * count + i] + 2 * qp[i])) / (1 + step) / (1 + step);
        for (size_t j = 0; j < count; ++j) {
          qp[j] = (qp[j] + step * q[i * count + j]) / (1 + step);
          p[j] /= 1 + step;
        }
      }
    }
    return p;
  }
};

Result<PairwiseClassifier> read_pairwise(const OpContext& op, const std::vector<int64_t>& vectors_per_class,
                                         int64_t features, int64_t classes) {
  PairwiseClassifier model;
  model.kernel = PX_TRY(Kernel::create(op));
  PX_TRY(expect_count("vectors_per_class", vectors_per_class.size(), classes));
  model.vectors = op.find_floats("support_vectors").value_or(std::vector<double>{});
  const auto limit = static_cast<int64_t>(model.vectors.size());
  model.first.push_back(0);
  for (int64_t count : vectors_per_class) {
    if (count < 0 || count > limit - model.first.back())
      return invalid_model(fmt::format(
          "an entry of attribute 'vectors_per_class' is {}; it must be in [0, {}], the support vectors that are left",
          count, limit - model.first.back()));
    model.first.push_back(model.first.back() + count);
  }
  model.coefficients = op.find_floats("coefficients").value_or(std::vector<double>{});
  model.rho = op.find_floats("rho").value_or(std::vector<double>{});
  model.prob_a = op.find_floats("prob_a").value_or(std::vector<double>{});
  model.prob_b = op.find_floats("prob_b").value_or(std::vector<double>{});
  PX_TRY(expect_count("support_vectors", model.vectors.size(), model.first.back(), features));
  PX_TRY(expect_count("coefficients", model.coefficients.size(), classes - 1, model.first.back()));
  PX_TRY(expect_count("rho", model.rho.size(), model.pairs()));
  if (!model.prob_a.empty() || !model.prob_b.empty()) {
    PX_TRY(expect_count("prob_a", model.prob_a.size(), model.pairs()));
    PX_TRY(expect_count("prob_b", model.prob_b.size(), model.pairs()));
  }
  return model;
}

// One row of scores before the transform, and the class chosen.
struct Decision {
  int64_t chosen = 0;
  std::vector<double> scores;
};

Decision decide(const PairwiseClassifier& model, std::span<const double> x) {
  const std::vector<double> decisions = model.decide(x);
  Decision result{index_of_greatest(model.votes(decisions)), decisions};
  if (!model.prob_a.empty()) {
    result.scores = model.probabilities(decisions);
  } else if (decisions.size() == 1) {
    result.scores = two_scores(decisions[0], false);
  }
  return result;
}

// Without support vectors: one row of coefficients a class, and one rho for all or one for each.
Result<std::vector<Decision>> decide_linearly(const OpContext& op, const Features& x, int64_t classes) {
  const auto coefficients = op.find_floats("coefficients").value_or(std::vector<double>{});
  const auto rho = op.find_floats("rho").value_or(std::vector<double>{});
  PX_TRY(expect_count("coefficients", coefficients.size(), classes, x.columns));
  if (rho.size() != 1) PX_TRY(expect_count("rho", rho.size(), classes));
  std::vector<Decision> decisions;
  for (int64_t row = 0; row < x.rows; ++row) {
    Decision decision;
    for (size_t index = 0; index < static_cast<size_t>(classes); ++index) {
      const auto columns = static_cast<size_t>(x.columns);
      const auto own = std::span(coefficients).subspan(index * columns, columns);
      decision.scores.push_back(dot(x.row(row), own) + rho[rho.size() == 1 ? 0 : index]);
    }
    decision.chosen = classes > 1 ? index_of_greatest(decision.scores) : decision.scores[0] > 0 ? 0 : kNoClass;
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

// ai.onnx.ml SVMClassifier-1. The label is the class with most votes (the first of equals), also where probabilities
// are given. Scores: probabilities of the classes with prob_a and prob_b; else (-d, d) for two classes, as the peers
// have it; else the decision values of the pairs, for which the page promises one a class.
Status op_ml_svm_classifier(OpContext& op) {
  const Features x = PX_TRY(read_features(op, 0));
  const ClassLabels labels = PX_TRY(ClassLabels::create(op, "classlabels_ints"));
  const PostTransform transform = PX_TRY(post_transform_of(op));
  const std::vector<int64_t> vectors_per_class = ints_or_empty(op, "vectors_per_class");
  const bool linear = std::all_of(vectors_per_class.begin(), vectors_per_class.end(), [](int64_t n) { return n == 0; });
  std::vector<Decision> decisions;
  if (linear) {
    decisions = PX_TRY(decide_linearly(op, x, labels.size()));
  } else {
    const auto model = PX_TRY(read_pairwise(op, vectors_per_class, x.columns, labels.size()));
    for (int64_t row = 0; row < x.rows; ++row) decisions.push_back(decide(model, x.row(row)));
  }
  std::vector<int64_t> chosen;
  std::vector<double> scores;
  for (Decision& decision : decisions) {
    apply_post_transform(transform, decision.scores);
    chosen.push_back(decision.chosen);
    scores.insert(scores.end(), decision.scores.begin(), decision.scores.end());
  }
  return set_classes(op, labels, chosen, scores);
}

// ai.onnx.ml SVMRegressor-1: sum over the support vectors of coefficient * kernel(x, vector), plus rho; without support
// vectors x * coefficients + rho. With one_class 1 where that is positive, else -1.
Status op_ml_svm_regressor(OpContext& op) {
  const Features x = PX_TRY(read_features(op, 0));
  const PostTransform transform = PX_TRY(post_transform_of(op));
  const int64_t supports = op.int_attribute("n_supports");
  const auto coefficients = op.find_floats("coefficients").value_or(std::vector<double>{});
  const auto vectors = op.find_floats("support_vectors").value_or(std::vector<double>{});
  const auto rho = op.find_floats("rho").value_or(std::vector<double>{});
  if (supports < 0 || supports > static_cast<int64_t>(coefficients.size()))
    return as_invalid_model(
        wrong_attribute("n_supports", supports, "be in [0, {}], the number of coefficients", coefficients.size()));
  PX_TRY(expect_count("rho", rho.size(), 1));
  PX_TRY(expect_count("coefficients", coefficients.size(), supports > 0 ? supports : x.columns));
  if (supports > 0) PX_TRY(expect_count("support_vectors", vectors.size(), supports, x.columns));
  const Kernel kernel = PX_TRY(Kernel::create(op));
  std::vector<double> results;
  for (int64_t row = 0; row < x.rows; ++row) {
    double sum = supports > 0 ? 0.0 : dot(x.row(row), coefficients);
    for (size_t index = 0; index < static_cast<size_t>(supports); ++index) {
      const auto columns = static_cast<size_t>(x.columns);
      sum += coefficients[index] * kernel(x.row(row), std::span(vectors).subspan(index * columns, columns));
    }
    sum += rho[0];
    if (op.int_attribute("one_class") != 0) sum = sum > 0 ? 1 : -1;
    apply_post_transform(transform, std::span(&sum, 1));
    results.push_back(sum);
  }
  return op.set_output(0, DType::float32, Shape{x.rows, 1}, std::span<const double>(results));
}

constexpr OpRow kMlSvmRows[] = {
    {"SVMClassifier", kMl, 1, 1, op_ml_svm_classifier},
    {"SVMRegressor", kMl, 1, 1, op_ml_svm_regressor},
};

}  // namespace

OpRows ml_svm_rows() { return kMlSvmRows; }

}  // namespace parallax::reference
