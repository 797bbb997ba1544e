// The shared half of RNN, GRU and LSTM.
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/ops/elementary.h"
#include "reference/ops/indexing.h"
#include "reference/ops/matrix.h"
#include "reference/ops/products_kernel.h"
#include "reference/ops/recurrent.h"

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

int64_t panels_of(int64_t hidden) { return (hidden + kPanelWidth - 1) / kPanelWidth; }

// R as it is given, [directions, gates * hidden, hidden of h], in panels of kPanelWidth units of a gate, the last one
// filled up with zeros.
std::vector<double> in_panels(const Tensor& r, int64_t gates, int64_t hidden) {
  const int64_t panels = panels_of(hidden);
  std::vector<double> turned(static_cast<size_t>(gates * panels * hidden * kPanelWidth));
  std::vector<double> units(static_cast<size_t>(hidden * kPanelWidth));
  for (int64_t panel = 0; panel < gates * panels; ++panel) {
    const int64_t first = panel % panels * kPanelWidth;
    const int64_t count = std::min(kPanelWidth, hidden - first);
    load<double>(r, (panel / panels * hidden + first) * hidden,
                 std::span(units).first(static_cast<size_t>(count * hidden)));
    double* line = turned.data() + panel * hidden * kPanelWidth;
    for (int64_t k = 0; k < hidden; ++k, line += kPanelWidth) {
      for (int64_t unit = 0; unit < count; ++unit) line[unit] = units[static_cast<size_t>(unit * hidden + k)];
    }
  }
  return turned;
}

// X W^T + Wb of all steps at once.
std::vector<double> project(const Recurrence& plan, const Tensor& x, const Tensor& w) {
  const int64_t places = plan.steps * plan.batch, width = plan.gates * plan.hidden;
  std::vector<double> projected(static_cast<size_t>(plan.directions * places * width));
  for (int64_t direction = 0; direction < plan.directions; ++direction) {
    const StoredMatrix<double> inputs{x, 0, places, plan.inputs};
    const StoredMatrix<double> weights{w, direction * width * plan.inputs, plan.inputs, width, true};
    const double* bias = plan.b.data() + direction * 2 * width;
    multiply_stored(inputs, weights, [&](int64_t place, int64_t first, std::span<const double> sums) {
      double* target = projected.data() + (direction * places + place) * width + first;
      for (size_t index = 0; index < sums.size(); ++index)
        target[index] = sums[index] + bias[static_cast<size_t>(first) + index];
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
  plan.recurrent = in_panels(op.input(2), plan.directions * gates, plan.hidden);
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

// Each sum runs over h upward from 0, the bias comes last.
void Recurrence::hidden_sums(int64_t direction, int64_t gate, std::span<const double> h, std::span<double> sums) const {
  const TileKernel<double> kernel = rounded_row_kernel();
  const double* bias = b.data() + ((direction * 2 + 1) * gates + gate) * hidden;
  const double* panel = recurrent.data() + (direction * gates + gate) * panels_of(hidden) * hidden * kPanelWidth;
  for (int64_t first = 0; first < hidden; first += kPanelWidth, panel += hidden * kPanelWidth) {
    std::array<double, kPanelWidth> line{};
    kernel(h.data(), panel, hidden, line.data());
    for (int64_t unit = first; unit < std::min(hidden, first + kPanelWidth); ++unit)
      sums[static_cast<size_t>(unit)] = line[static_cast<size_t>(unit - first)] + bias[unit];
  }
}

void Recurrence::gate_sums(int64_t direction, int64_t gate, int64_t step, int64_t sample, std::span<const double> h,
                           std::span<double> sums) const {
  const auto from_input = input_sums(direction, gate, step, sample);
  hidden_sums(direction, gate, h, sums);
  for (size_t unit = 0; unit < sums.size(); ++unit) sums[unit] = from_input[unit] + sums[unit];
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

// A sample runs for its own length; Y is 0 beyond it and Y_h is its state after its last step.
Status run_recurrence(OpContext& op, const Recurrence& plan, const MakeCell& make_cell) {
  std::vector<double> states = plan.initial_h;
  std::vector<double> y(static_cast<size_t>(plan.steps * plan.directions * plan.batch * plan.hidden), 0.0);
  parallel_for(plan.directions * plan.batch, plan.steps * plan.hidden * plan.gates * (plan.inputs + plan.hidden),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const int64_t direction = row / plan.batch;
                   const int64_t sample = row % plan.batch;
                   const auto h = std::span(states).subspan(static_cast<size_t>(row * plan.hidden),
                                                            static_cast<size_t>(plan.hidden));
                   const int64_t length = plan.lengths[static_cast<size_t>(sample)];
                   const CellStep step = make_cell(direction, sample);
                   const bool backward = plan.reverse_only || direction == 1;
                   for (int64_t count = 0; count < length; ++count) {
                     const int64_t time = backward ? length - 1 - count : count;
                     step(time, h);
                     // Y is [steps, directions, batch, hidden], or [batch, steps, directions, hidden] with the batch
                     // first.
                     const int64_t target = plan.batch_first
                                                ? (sample * plan.steps + time) * plan.directions + direction
                                                : (time * plan.directions + direction) * plan.batch + sample;
                     std::copy(h.begin(), h.end(), y.begin() + target * plan.hidden);
                   }
                 }
               });
  const Shape shape = plan.batch_first ? Shape{plan.batch, plan.steps, plan.directions, plan.hidden}
                                       : Shape{plan.steps, plan.directions, plan.batch, plan.hidden};
  PX_TRY(op.set_output(0, plan.dtype, shape, std::span<const double>(y)));
  return set_state(op, 1, plan, states);
}

}  // namespace parallax::reference
