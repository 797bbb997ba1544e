// SPDX-License-Identifier: Apache-2.0
// The activations of recurrent operators by name.
#include <algorithm>
#include <string_view>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/recurrent_cells.h"

namespace parallax::runtime {
namespace {

struct NamedActivation {
  std::string_view name;
  CellActivation::Kind kind;
  double alpha;
  double beta;
};

// Defaults as in the specification of RNN.
constexpr NamedActivation kActivations[] = {
    {"relu", CellActivation::Kind::relu, 0, 0},
    {"tanh", CellActivation::Kind::tanh, 0, 0},
    {"sigmoid", CellActivation::Kind::sigmoid, 0, 0},
    {"affine", CellActivation::Kind::affine, 1, 0},
    {"leakyrelu", CellActivation::Kind::leaky_relu, 0.01, 0},
    {"thresholdedrelu", CellActivation::Kind::thresholded_relu, 1, 0},
    {"scaledtanh", CellActivation::Kind::scaled_tanh, 1, 1},
    {"hardsigmoid", CellActivation::Kind::hard_sigmoid, 0.2, 0.5},
    {"elu", CellActivation::Kind::elu, 1, 0},
    {"softsign", CellActivation::Kind::softsign, 0, 0},
    {"softplus", CellActivation::Kind::softplus, 0, 0},
};

bool takes_alpha(CellActivation::Kind kind) {
  return kind != CellActivation::Kind::relu && kind != CellActivation::Kind::tanh &&
         kind != CellActivation::Kind::sigmoid && kind != CellActivation::Kind::softsign &&
         kind != CellActivation::Kind::softplus;
}
bool takes_beta(CellActivation::Kind kind) {
  return kind == CellActivation::Kind::affine || kind == CellActivation::Kind::scaled_tanh ||
         kind == CellActivation::Kind::hard_sigmoid;
}

}  // namespace

Result<std::vector<CellActivation>> cell_activations(const OpCall& op, const std::vector<std::string>& defaults,
                                                     int64_t directions) {
  std::vector<std::string> names = op.texts("activations");
  if (names.empty()) {
    for (int64_t direction = 0; direction < directions; ++direction)
      names.insert(names.end(), defaults.begin(), defaults.end());
  }
  const size_t needed = defaults.size() * static_cast<size_t>(directions);
  if (names.size() < needed) return wrong_length("attribute 'activations'", names.size(), "have {} or more", needed);
  names.resize(needed);  // the schema's default of RNN names one for each of two directions
  const std::vector<float> alphas = op.find_reals("activation_alpha").value_or(std::vector<float>{});
  const std::vector<float> betas = op.find_reals("activation_beta").value_or(std::vector<float>{});
  size_t next_alpha = 0, next_beta = 0;  // the lists name only the functions that take a value
  std::vector<CellActivation> result;
  for (const std::string& given : names) {
    std::string name = given;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char character) { return static_cast<char>(std::tolower(character)); });
    const auto* found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const auto& each) { return each.name == name; });
    if (found == std::end(kActivations))
      return unsupported(fmt::format("activation '{}' has no kernel here; --fallback=reference runs it", given));
    CellActivation activation{found->kind, found->alpha, found->beta};
    if (takes_alpha(found->kind) && next_alpha < alphas.size())
      activation.alpha = static_cast<double>(alphas[next_alpha++]);
    if (takes_beta(found->kind) && next_beta < betas.size()) activation.beta = static_cast<double>(betas[next_beta++]);
    result.push_back(activation);
  }
  return result;
}

}  // namespace parallax::runtime
