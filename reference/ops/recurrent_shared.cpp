// The shared half of RNN, GRU and LSTM.
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/ops/elementary.h"
#include "reference/ops/indexing.h"
#include "reference/ops/matrix.h"
#include "reference/ops/products_kernel.h"
#include "reference/ops/recurrent.h"
#include "reference/ops/widest.h"

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
    if (row == std::end(kActivations)) return unsupported(fmt::format("activation '{}'", name));
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
  return execution_error(fmt::format("input {} has shape {}, it must have {}", index,
                                     op.input(index).shape().to_string(), wanted.to_string()));
}

// The numbers of an optional input, zeros where it is not there.
Result<std::vector<double>> read_weights(const OpContext& op, size_t index, std::initializer_list<int64_t> dims) {
  const Shape wanted = PX_TRY(make_shape(dims));
  PX_TRY(expect_shape(op, index, dims));
  std::vector<double> numbers(static_cast<size_t>(wanted.element_count()));
  if (op.has_input(index)) load<double>(op.input(index), 0, numbers);
  return numbers;
}

// Panels of the units of a gate, the last one filled up with zeros.
int64_t panels_of(const Recurrence& plan) { return (plan.hidden + kPanelWidth - 1) / kPanelWidth; }

// R as it is given, [directions, gates * hidden, hidden of h], in panels.
Scratch<double> in_panels(const Recurrence& plan, const Tensor& r) {
  const int64_t panels = panels_of(plan), size = plan.hidden * kPanelWidth;
  const int64_t count = plan.directions * plan.gates * panels;
  Scratch<double> numbers(static_cast<size_t>(count * size));
  parallel_for(count, size, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const StoredMatrix<double> gate{r, index / panels * plan.hidden * plan.hidden, plan.hidden, plan.hidden, true};
      const int64_t first = index % panels * kPanelWidth, width = std::min(kPanelWidth, plan.hidden - first);
      double* panel = numbers.data() + index * size;
      gate.load_columns(first, width, std::span(panel, static_cast<size_t>(size)));
      if (width < kPanelWidth) spread_panel(panel, plan.hidden, width);
    }
  });
  return numbers;
}

PX_WIDEST void add(const double* a, const double* b, int64_t count, double* __restrict out) {
  for (int64_t index = 0; index < count; ++index) out[index] = a[index] + b[index];
}
PX_WIDEST void add(const double* a, const double* b, const double* c, int64_t count, double* __restrict out) {
  if (count == kPanelWidth) {  // most are: a loop of known length is over soonest
    for (int64_t index = 0; index < kPanelWidth; ++index) out[index] = a[index] + (b[index] + c[index]);
  } else {
    for (int64_t index = 0; index < count; ++index) out[index] = a[index] + (b[index] + c[index]);
  }
}

// X W^T + Wb of all steps at once.
Scratch<double> project(const Recurrence& plan, const Tensor& x, const Tensor& w) {
  const int64_t places = plan.steps * plan.batch, width = plan.gates * plan.hidden;
  Scratch<double> projected(static_cast<size_t>(plan.directions * places * width));
  for (int64_t direction = 0; direction < plan.directions; ++direction) {
    const StoredMatrix<double> inputs{x, 0, places, plan.inputs};
    const StoredMatrix<double> weights{w, direction * width * plan.inputs, plan.inputs, width, true};
    const double* bias = plan.b.data() + direction * 2 * width;
    multiply_stored(inputs, weights, [&](const SumsBlock<double>& sums) {
      for (int64_t place = 0; place < sums.rows; ++place) {
        double* target = projected.data() + (direction * places + sums.row + place) * width + sums.column;
        add(sums.line(place).data(), bias + sums.column, sums.columns, target);
      }
    });
  }
  return projected;
}

}  // namespace

Result<Recurrence> Recurrence::create(const OpContext& op, int64_t gates,
                                      const std::vector<std::string>& default_activations) {
  const Shape& x_shape = op.input(0).shape();
  const Shape& r_shape = op.input(2).shape();
  if (x_shape.rank() != 3 || r_shape.rank() != 3) return execution_error("X, W and R must have 3 axes");
  Recurrence plan;
  plan.gates = gates;
  plan.batch_first = op.find_int("layout").value_or(0) != 0;
  plan.steps = x_shape[plan.batch_first ? 1 : 0];
  plan.batch = x_shape[plan.batch_first ? 0 : 1];
  plan.inputs = x_shape[2];
  plan.hidden = op.find_int("hidden_size").value_or(r_shape[2]);
  std::string direction = op.string_attribute("direction");
  if (direction == "foward") direction = "forward";  // the default of GRU-1, as misspelt there
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return execution_error("attribute direction is '" + direction + "'");
  plan.directions = direction == "bidirectional" ? 2 : 1;
  plan.reverse_only = direction == "reverse";
  plan.clip = op.find_float("clip").value_or(0.0);
  plan.dtype = op.input(0).dtype();
  const int64_t width = gates * plan.hidden;
  PX_TRY(expect_shape(op, 1, {plan.directions, width, plan.inputs}));
  PX_TRY(expect_shape(op, 2, {plan.directions, width, plan.hidden}));
  plan.b = PX_TRY(read_weights(op, 3, {plan.directions, 2 * width}));
  plan.recurrent = in_panels(plan, op.input(2));
  plan.projected = project(plan, op.input(0), op.input(1));
  PX_TRY(make_shape({plan.steps, plan.directions, plan.batch, plan.hidden}));
  plan.lengths.assign(static_cast<size_t>(plan.batch), plan.steps);
  if (op.has_input(4)) plan.lengths = PX_TRY(op.int64s_of_input(4));
  if (static_cast<int64_t>(plan.lengths.size()) != plan.batch)
    return execution_error("sequence_lens needs one length for each sample");
  for (int64_t length : plan.lengths) {
    if (length < 0 || length > plan.steps)
      return execution_error(fmt::format("a sequence length of {}, there are {} steps", length, plan.steps));
  }
  plan.initial_h = PX_TRY(read_state(op, 5, plan));
  std::vector<std::string> names = op.find_strings("activations").value_or(std::vector<std::string>{});
  for (int64_t index = 0;
       names.size() < default_activations.size() * static_cast<size_t>(plan.directions) && index < plan.directions;
       ++index) {
    names.insert(names.end(), default_activations.begin(), default_activations.end());
  }
  if (names.size() != default_activations.size() * static_cast<size_t>(plan.directions))
    return execution_error(fmt::format("{} activations are given", names.size()));
  plan.activations = PX_TRY(read_activations(op, names));
  return plan;
}

std::span<const double> Recurrence::input_sums(int64_t direction, int64_t gate, int64_t step, int64_t sample) const {
  const int64_t place = batch_first ? sample * steps + step : step * batch + sample;
  const int64_t first = ((direction * steps * batch + place) * gates + gate) * hidden;
  return std::span(projected).subspan(static_cast<size_t>(first), static_cast<size_t>(hidden));
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
    from_input[index] =
        input_sums(share.direction, which.first, time, share.first + static_cast<int64_t>(index)).data();
  }
  add_hidden(share, which, step, h, from_input, sums);
}

// Each sum runs over h upward from 0, then comes the bias.
void Recurrence::add_hidden(const Share& share, Gates which, const Step& step, std::span<const double> h,
                            std::span<const double* const> others, std::span<double> sums) const {
  const RowsKernel kernel = rounded_rows_kernel(share.count);
  const double* turned = h.data();
  Scratch<double> side_by_side;  // h as the kernel reads the rows of a tile
  if (kernel.rows > 1) {
    side_by_side.assign(static_cast<size_t>(kernel.rows * hidden), 0.0);
    for (int64_t sample = 0; sample < share.count; ++sample) {
      for (int64_t k = 0; k < hidden; ++k)
        side_by_side[static_cast<size_t>(k * kernel.rows + sample)] = h[static_cast<size_t>(sample * hidden + k)];
    }
    turned = side_by_side.data();
  }
  const int64_t panels = (share.units + kPanelWidth - 1) / kPanelWidth, all = which.count() * panels;
  alignas(64) std::array<double, kTileRows * kPanelWidth> tile;
  for (int64_t index = 0; index < all; ++index) {
    // Forth and back in turn: the panels that were read last in a step still lie in the first-level cache in the next.
    const int64_t place = step.count % 2 == 0 ? index : all - 1 - index;
    const int64_t gate = place / panels, unit = place % panels * kPanelWidth;  // of those wanted
    const int64_t row = (share.direction * gates + which.first + gate) * panels_of(*this);
    const double* weights = recurrent.data() + (row + (share.first_unit + unit) / kPanelWidth) * hidden * kPanelWidth;
    kernel.run(turned, weights, hidden, tile.data(), kPanelWidth, false);
    const int64_t width = std::min(kPanelWidth, share.units - unit), from = gate * hidden + share.first_unit + unit;
    const double* bias = b.data() + ((share.direction * 2 + 1) * gates + which.first) * hidden + from;
    for (int64_t sample = 0; sample < share.count; ++sample) {
      const double* own = tile.data() + sample * kPanelWidth;
      const double* other = others[static_cast<size_t>(sample)];
      double* out = sums.data() + (sample * which.count() + gate) * share.units + unit;
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
  std::vector<double> turned(state.size());
  for (int64_t row = 0; row < plan.batch * plan.directions; ++row) {
    const int64_t source = row % plan.directions * plan.batch + row / plan.directions;
    std::copy_n(state.begin() + source * plan.hidden, plan.hidden, turned.begin() + row * plan.hidden);
  }
  return op.set_output(index, plan.dtype, Shape{plan.batch, plan.directions, plan.hidden},
                       std::span<const double>(turned));
}

}  // namespace parallax::reference
