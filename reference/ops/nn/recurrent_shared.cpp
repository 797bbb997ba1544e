// SPDX-License-Identifier: Apache-2.0
// The shared half of RNN, GRU and LSTM.
#include <algorithm>
#include <array>
#include <cmath>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"
#include "reference/kernels/elementary.h"
#include "reference/kernels/lanes.h"
#include "reference/kernels/products_kernel.h"
#include "reference/ops/indexing.h"
#include "reference/ops/matrix.h"
#include "reference/ops/nn/recurrent.h"

namespace parallax::reference {
namespace {

// The functions that the specification of the recurrent operators lists, with its defaults of alpha and beta.
struct ActivationRow {
  std::string_view name;
  bool has_alpha;
  bool has_beta;
  double alpha;
  double beta;
  void (*function)(std::span<double> values, double alpha, double beta);
};

// A function of one number as a function of many.
template <class F>
constexpr auto each(F) {
  return +[](std::span<double> values, double alpha, double beta) {
    for (double& x : values) x = F{}(x, alpha, beta);
  };
}

constexpr ActivationRow kActivations[] = {
    {"Relu", false, false, 0, 0, each([](double x, double, double) { return x < 0 ? 0.0 : x; })},
    {"Tanh", false, false, 0, 0, [](std::span<double> values, double, double) { tanh_each(values); }},
    {"Sigmoid", false, false, 0, 0, [](std::span<double> values, double, double) { sigmoid_each(values); }},
    {"Affine", true, true, 1, 0, each([](double x, double a, double b) { return a * x + b; })},
    {"LeakyRelu", true, false, 0.01, 0, each([](double x, double a, double) { return x < 0 ? a * x : x; })},
    {"ThresholdedRelu", true, false, 1, 0, each([](double x, double a, double) { return x > a ? x : 0.0; })},
    {"ScaledTanh", true, true, 1, 1, each([](double x, double a, double b) { return a * std::tanh(b * x); })},
    {"HardSigmoid", true, true, 0.2, 0.5,
     each([](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); })},
    {"Elu", true, false, 1, 0, each([](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; })},
    {"Softsign", false, false, 0, 0, each([](double x, double, double) { return x / (1.0 + std::fabs(x)); })},
    {"Softplus", false, false, 0, 0,
     each([](double x, double, double) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); })},
};

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

// activation_alpha and activation_beta are consumed in order by those functions that have the parameter.
Result<std::vector<Activation>> read_activations(const OpContext& op, const std::vector<std::string>& names) {
  const std::vector<double> alphas = op.find_floats("activation_alpha").value_or(std::vector<double>{});
  const std::vector<double> betas = op.find_floats("activation_beta").value_or(std::vector<double>{});
  size_t next_alpha = 0;
  size_t next_beta = 0;
  std::vector<Activation> activations;
  for (const std::string& name : names) {
    const auto* row = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const ActivationRow& candidate) { return same_name(candidate.name, name); });
    if (row == std::end(kActivations))
      return unsupported(fmt::format("activation '{}' is none that the specification names", name));
    const double alpha = row->has_alpha && next_alpha < alphas.size() ? alphas[next_alpha++] : row->alpha;
    const double beta = row->has_beta && next_beta < betas.size() ? betas[next_beta++] : row->beta;
    activations.emplace_back([row, alpha, beta](std::span<double> values) { row->function(values, alpha, beta); });
  }
  return activations;
}

// That an input has the shape wanted, or is not there.
Status expect_shape(const OpContext& op, size_t index, std::initializer_list<int64_t> dims) {
  const Shape wanted = PX_TRY(make_shape(dims));
  if (!op.has_input(index) || op.input(index).shape() == wanted) return {};
  return wrong_input(op, index, "have shape {}", wanted.to_string());
}

// The numbers of an optional input, zeros where it is not there.
Result<std::vector<double>> read_weights(const OpContext& op, size_t index, std::initializer_list<int64_t> dims) {
  const Shape wanted = PX_TRY(make_shape(dims));
  PX_TRY(expect_shape(op, index, dims));
  std::vector<double> numbers(static_cast<size_t>(wanted.element_count()));
  if (op.has_input(index)) load<double>(op.input(index), 0, numbers);
  return numbers;
}

void add(const double* a, const double* b, int64_t count, double* __restrict out) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (int64_t index = 0; index < count; ++index) out[index] = a[index] + b[index];
  });
}
void add(const double* a, const double* b, const double* c, int64_t count, double* __restrict out) {
  with_widest_vectors([&](auto) PX_INLINE {
    if (count == kPanelWidth) {  // most are: a loop of known length is over soonest
      for (int64_t index = 0; index < kPanelWidth; ++index) out[index] = a[index] + (b[index] + c[index]);
    } else {
      for (int64_t index = 0; index < count; ++index) out[index] = a[index] + (b[index] + c[index]);
    }
  });
}

int64_t panels_in(int64_t units) { return (units + kPanelWidth - 1) / kPanelWidth; }

// The number of panels of units that threads divide among themselves where there are fewer blocks of samples than
// threads. Such threads wait for each other at every step, which takes some hundred nanoseconds.
int64_t panels_of_share(const Recurrence& plan) {
  constexpr int64_t kProductsANanosecond = 16, kLeastOfAStep = 400, kLeastInAll = 50'000;  // nanoseconds
  const int64_t panels = std::max<int64_t>(1, panels_in(plan.hidden));
  const int64_t blocks = std::max<int64_t>(1, plan.directions * ((plan.batch + kTileRows - 1) / kTileRows));
  const int64_t step = plan.gates * plan.hidden * plan.hidden / kProductsANanosecond;
  if (step * plan.steps < kLeastInAll) return panels;
  const int64_t shares = std::clamp<int64_t>(std::min(thread_count() / blocks, step / kLeastOfAStep), 1, panels);
  return (panels + shares - 1) / shares;
}

}  // namespace

Result<Recurrence> Recurrence::create(const OpContext& op, int64_t gates,
                                      const std::vector<std::string>& default_activations) {
  const Shape& x_shape = op.input(0).shape();
  const Shape& r_shape = op.input(2).shape();
  if (x_shape.rank() != 3 || r_shape.rank() != 3) return wrong_input(op, x_shape.rank() != 3 ? 0 : 2, "have rank 3");
  Recurrence plan;
  plan.gates = gates;
  plan.batch_first = op.find_int("layout").value_or(0) != 0;
  plan.steps = x_shape[plan.batch_first ? 1 : 0];
  plan.batch = x_shape[plan.batch_first ? 0 : 1];
  plan.inputs = x_shape[2];
  plan.hidden = r_shape[2];
  if (const auto hidden = op.find_int("hidden_size"); hidden.has_value() && *hidden != plan.hidden)
    return wrong_attribute("hidden_size", *hidden, "be the last dimension of R {}", r_shape.to_string());
  if (!checked_mul(2 * gates, plan.hidden)) return wrong_input(op, 2, "have {} rows for each hidden unit", gates);
  std::string direction = op.string_attribute("direction");
  if (direction == "foward") direction = "forward";  // the default of GRU-1, as misspelt there
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return wrong_attribute("direction", direction, "be forward, reverse or bidirectional");
  plan.directions = direction == "bidirectional" ? 2 : 1;
  plan.reverse_only = direction == "reverse";
  plan.clip = op.find_float("clip").value_or(0.0);
  plan.dtype = op.input(0).dtype();
  const int64_t width = gates * plan.hidden;
  PX_TRY(expect_shape(op, 1, {plan.directions, width, plan.inputs}));
  PX_TRY(expect_shape(op, 2, {plan.directions, width, plan.hidden}));
  plan.b = PX_TRY(read_weights(op, 3, {plan.directions, 2 * width}));
  PX_TRY(make_shape({plan.steps, plan.directions, plan.batch, width}));
  plan.share_units = panels_of_share(plan) * kPanelWidth;
  plan.shares = std::max<int64_t>(1, (plan.hidden + plan.share_units - 1) / plan.share_units);
  plan.lay_out(op.input(0), op.input(1), op.input(2));
  plan.lengths.assign(static_cast<size_t>(plan.batch), plan.steps);
  if (op.has_input(4)) plan.lengths = PX_TRY(op.int64s_of_input(4));
  if (static_cast<int64_t>(plan.lengths.size()) != plan.batch)
    return wrong_input(op, 4, "have {} elements, one length for each batch entry", plan.batch);
  for (int64_t length : plan.lengths) {
    if (length < 0 || length > plan.steps)
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the number of steps", plan.steps);
  }
  plan.initial_h = PX_TRY(read_state(op, 5, plan));
  std::vector<std::string> names = op.find_strings("activations").value_or(std::vector<std::string>{});
  for (int64_t index = 0;
       names.size() < default_activations.size() * static_cast<size_t>(plan.directions) && index < plan.directions;
       ++index) {
    names.insert(names.end(), default_activations.begin(), default_activations.end());
  }
  if (names.size() != default_activations.size() * static_cast<size_t>(plan.directions))
    return wrong_length("attribute 'activations'", names.size(), "have {}",
                        default_activations.size() * static_cast<size_t>(plan.directions));
  plan.activations = PX_TRY(read_activations(op, names));
  return plan;
}

Share Recurrence::share_of(int64_t direction, int64_t share, int64_t first_sample, int64_t sample_count) const {
  const int64_t first_unit = share * share_units;
  return {.direction = direction,
          .first = first_sample,
          .count = sample_count,
          .first_unit = first_unit,
          .units = std::clamp<int64_t>(hidden - first_unit, 0, share_units)};
}

// The thread that writes a share will go through time with it, if the threads come in the same order: then it is in
// that processor's caches. Where there are fewer shares than threads, all of them work at one.
void Recurrence::lay_out(const Tensor& x, const Tensor& w, const Tensor& r) {
  recurrent.resize(static_cast<size_t>(directions * shares * gates * share_units * hidden));
  projected.resize(static_cast<size_t>(directions * steps * batch * gates * hidden));
  const auto lay_out_shares = [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const Share share = share_of(index / shares, index % shares, 0, batch);
      lay_out_recurrent(share, r);
      project(share, x, w);
    }
  };
  const int64_t count = directions * shares;
  if (count < thread_count()) return lay_out_shares(0, count);
  constexpr int64_t kProductsANanosecond = 16;
  const int64_t products = gates * share_units * steps * batch * inputs;
  parallel_for(count, products / kProductsANanosecond + gates * share_units * hidden, lay_out_shares);
}

int64_t Recurrence::panel_offset(const Share& share, int64_t gate, int64_t first_unit) const {
  const int64_t index = share.direction * shares + share.first_unit / share_units;
  return ((index * gates + gate) * share_units + first_unit) * hidden;
}

// R is given as [directions, gates * hidden, hidden of h]. A panel that the units do not fill is filled up with zeros.
void Recurrence::lay_out_recurrent(const Share& share, const Tensor& r) {
  const int64_t panels = panels_in(share.units);
  parallel_for(gates * panels, hidden * kPanelWidth / 4, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t gate = index / panels, unit = index % panels * kPanelWidth;
      const int64_t width = std::min(kPanelWidth, share.units - unit);
      const StoredMatrix<double> weights{r, (share.direction * gates + gate) * hidden * hidden, hidden, hidden, true};
      double* panel = recurrent.data() + panel_offset(share, gate, unit);
      if (width < kPanelWidth) std::fill_n(panel, hidden * kPanelWidth, 0.0);
      weights.load_columns(share.first_unit + unit, width, std::span(panel, static_cast<size_t>(hidden * kPanelWidth)),
                           kPanelWidth);
    }
  });
}

// X W^T + Wb of all steps at once, in one product of [steps * batch, inputs] by [inputs, gates * units].
void Recurrence::project(const Share& share, const Tensor& x, const Tensor& w) {
  const int64_t locations = steps * batch;
  const StoredMatrix<double> all_inputs{x, 0, locations, inputs};
  std::vector<double> bias;
  for (int64_t gate = 0; gate < gates; ++gate) {
    const auto of_gate = b.begin() + (share.direction * 2 * gates + gate) * hidden + share.first_unit;
    bias.insert(bias.end(), of_gate, of_gate + share.units);
  }
  double* const sums_of_share = projected.data() + (share.direction * hidden + share.first_unit) * locations * gates;
  ProductSpec<double> spec;
  spec.has_exact_products = have_exact_products(x.dtype(), w.dtype());
  spec.rows = locations;
  spec.columns = gates * share.units;
  spec.depth = inputs;
  spec.load_row = [&](int64_t row, std::span<double> values) { all_inputs.load_row(row, values); };
  spec.load_columns = [&](int64_t first, int64_t width, std::span<double> panel) {
    for (int64_t column = first; column < first + width;) {  // some of one gate, some of the next
      const int64_t gate = column / share.units, unit = column % share.units;
      const int64_t count = std::min(share.units - unit, first + width - column);
      const StoredMatrix<double> weights{w, (share.direction * gates + gate) * hidden * inputs, inputs, hidden, true};
      weights.load_columns(share.first_unit + unit, count, panel.subspan(static_cast<size_t>(column - first)), width);
      column += count;
    }
  };
  spec.store = [&](const SumsBlock<double>& sums) {
    for (int64_t row = 0; row < sums.rows; ++row) {
      double* target = sums_of_share + (sums.row + row) * spec.columns + sums.column;
      add(sums.line(row).data(), bias.data() + sums.column, sums.columns, target);
    }
  };
  sum_products(spec);
}

std::span<const double> Recurrence::input_sums(const Share& share, int64_t gate, int64_t step, int64_t sample) const {
  const int64_t location = batch_first ? (share.first + sample) * steps + step : step * batch + share.first + sample;
  const int64_t first = (share.direction * hidden + share.first_unit) * steps * batch + location * share.units;
  return std::span(projected).subspan(static_cast<size_t>(first * gates + gate * share.units),
                                      static_cast<size_t>(share.units));
}

void Recurrence::hidden_sums(const Share& share, Gates which, const Step& step, std::span<const double> h,
                             std::span<double> sums) const {
  const std::array<const double*, kTileRows> none{};
  add_hidden(share, which, step, h, none, sums);
}

void Recurrence::gate_sums(const Share& share, Gates which, const Step& step, std::span<const double> h,
                           std::span<double> sums) const {
  std::array<const double*, kTileRows> from_input{};
  for (size_t index = 0; index < step.times.size(); ++index) {
    const int64_t time = step.times[index];
    if (time < 0) continue;
    from_input[index] = input_sums(share, which.first, time, static_cast<int64_t>(index)).data();
  }
  add_hidden(share, which, step, h, from_input, sums);
}

// Each sum runs over h upward from 0, then comes the bias.
void Recurrence::add_hidden(const Share& share, Gates which, const Step& step, std::span<const double> h,
                            std::span<const double* const> others, std::span<double> sums) const {
  const RowsKernel kernel = rounded_rows_kernel(share.count);
  const double* permuted = h.data();
  Scratch<double> side_by_side;  // h as the kernel reads the rows of a tile
  if (kernel.rows > 1) {
    side_by_side.assign(static_cast<size_t>(kernel.rows * hidden), 0.0);
    for (int64_t sample = 0; sample < share.count; ++sample) {
      for (int64_t k = 0; k < hidden; ++k)
        side_by_side[static_cast<size_t>(k * kernel.rows + sample)] = h[static_cast<size_t>(sample * hidden + k)];
    }
    permuted = side_by_side.data();
  }
  const int64_t panels = panels_in(share.units), all = which.count() * panels;
  alignas(64) std::array<double, kTileRows * kPanelWidth> tile;
  for (int64_t index = 0; index < all; ++index) {
    // Forth and back in turn: the panels that were read last in a step are still in the first-level cache in the next.
    const int64_t location = step.count % 2 == 0 ? index : all - 1 - index;
    const int64_t gate = location / panels, unit = location % panels * kPanelWidth;  // of those wanted
    const double* weights = recurrent.data() + panel_offset(share, which.first + gate, unit);
    kernel.run(permuted, weights, hidden, tile.data(), kPanelWidth, false);
    const int64_t width = std::min(kPanelWidth, share.units - unit), from = gate * share.units + unit;
    const int64_t bias_row = (share.direction * 2 + 1) * gates + which.first + gate;
    const double* bias = b.data() + bias_row * hidden + share.first_unit + unit;
    for (int64_t sample = 0; sample < share.count; ++sample) {
      const double* own = tile.data() + sample * kPanelWidth;
      const double* other = others[static_cast<size_t>(sample)];
      double* out = sums.data() + sample * which.count() * share.units + from;
      if (other == nullptr)
        add(own, bias, width, out);
      else
        add(other + from, own, bias, width, out);
    }
  }
}

void Recurrence::activate(const Activation& function, std::span<double> values) const {
  if (clip > 0) {
    for (double& value : values) value = std::clamp(value, -clip, clip);
  }
  function(values);
}

Result<std::vector<double>> read_state(const OpContext& op, size_t index, const Recurrence& plan) {
  if (!plan.batch_first) return read_weights(op, index, {plan.directions, plan.batch, plan.hidden});
  const std::vector<double> given = PX_TRY(read_weights(op, index, {plan.batch, plan.directions, plan.hidden}));
  std::vector<double> state(given.size());
  for (int64_t row = 0; row < plan.batch * plan.directions; ++row) {
    const int64_t target = row % plan.directions * plan.batch + row / plan.directions;
    std::copy_n(given.begin() + row * plan.hidden, plan.hidden, state.begin() + target * plan.hidden);
  }
  return state;
}

Status set_state(OpContext& op, size_t index, const Recurrence& plan, const std::vector<double>& state) {
  if (!plan.batch_first) {
    return op.set_output(index, plan.dtype, Shape{plan.directions, plan.batch, plan.hidden},
                         std::span<const double>(state));
  }
  std::vector<double> permuted(state.size());
  for (int64_t row = 0; row < plan.batch * plan.directions; ++row) {
    const int64_t source = row % plan.directions * plan.batch + row / plan.directions;
    std::copy_n(state.begin() + source * plan.hidden, plan.hidden, permuted.begin() + row * plan.hidden);
  }
  return op.set_output(index, plan.dtype, Shape{plan.batch, plan.directions, plan.hidden},
                       std::span<const double>(permuted));
}

}  // namespace parallax::reference
