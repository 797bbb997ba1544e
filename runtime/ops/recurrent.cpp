// RNN, GRU and LSTM: one large product for the inputs of all steps, then a small one and the cell for each step.
#include <fmt/format.h>

#include "runtime/device/copy.h"
#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/ops/families.h"
#include "runtime/ops/recurrent_cells.h"

namespace parallax::runtime {
namespace {

struct NamedActivation {
  std::string_view name;
  Activation::Kind kind;
  double alpha;
  double beta;
};

// Defaults as in the specification of RNN.
constexpr NamedActivation kActivations[] = {
    {"relu", Activation::Kind::relu, 0, 0},
    {"tanh", Activation::Kind::tanh, 0, 0},
    {"sigmoid", Activation::Kind::sigmoid, 0, 0},
    {"affine", Activation::Kind::affine, 1, 0},
    {"leakyrelu", Activation::Kind::leaky_relu, 0.01, 0},
    {"thresholdedrelu", Activation::Kind::thresholded_relu, 1, 0},
    {"scaledtanh", Activation::Kind::scaled_tanh, 1, 1},
    {"hardsigmoid", Activation::Kind::hard_sigmoid, 0.2, 0.5},
    {"elu", Activation::Kind::elu, 1, 0},
    {"softsign", Activation::Kind::softsign, 0, 0},
    {"softplus", Activation::Kind::softplus, 0, 0},
};

bool takes_alpha(Activation::Kind kind) {
  return kind != Activation::Kind::relu && kind != Activation::Kind::tanh && kind != Activation::Kind::sigmoid &&
         kind != Activation::Kind::softsign && kind != Activation::Kind::softplus;
}
bool takes_beta(Activation::Kind kind) {
  return kind == Activation::Kind::affine || kind == Activation::Kind::scaled_tanh ||
         kind == Activation::Kind::hard_sigmoid;
}

enum class Cell : uint8_t { rnn, gru, lstm };

struct RecurrentShape {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1, gates = 1;
  bool batch_first = false;
  bool reversed[2] = {false, false};
};

Result<RecurrentShape> recurrent_shape(const OpCall& op, int64_t gates) {
  const Shape& x = op.input(0).shape();
  const Shape& w = op.input(1).shape();
  const Shape& r = op.input(2).shape();
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3) return execution_error("X, W and R must have rank 3");
  RecurrentShape shape;
  shape.gates = gates;
  shape.batch_first = op.find_integer("layout").value_or(0) != 0;
  shape.steps = x[shape.batch_first ? 1 : 0];
  shape.batch = x[shape.batch_first ? 0 : 1];
  shape.input = x[2];
  shape.hidden = r[2];
  const std::string direction = op.text("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return execution_error("attribute 'direction' is '" + direction + "'");
  }
  shape.directions = direction == "bidirectional" ? 2 : 1;
  shape.reversed[0] = direction == "reverse";
  shape.reversed[1] = true;
  const Shape w_wanted{shape.directions, gates * shape.hidden, shape.input};
  const Shape r_wanted{shape.directions, gates * shape.hidden, shape.hidden};
  if (!(w == w_wanted) || !(r == r_wanted)) {
    return execution_error(fmt::format("W is {}, R is {}, needed are {} and {}", w.to_string(), r.to_string(),
                                       w_wanted.to_string(), r_wanted.to_string()));
  }
  return shape;
}

// The inputs and outputs of one run, converted to C. States are [directions, batch, hidden], y [steps, directions,
// batch, hidden].
template <class C>
struct RecurrentData {
  std::shared_ptr<const C> x, w, r, bias, peepholes;
  std::vector<C> h, c, y;
  Ints lengths;
};

template <class C, class Device>
Status load_state(OpContext<Device>& op, const RecurrentShape& shape, int64_t input, std::vector<C>& state) {
  state.assign(static_cast<size_t>(shape.directions * shape.batch * shape.hidden), C(0));
  if (!op.has_input(input)) return {};
  const Tensor& given = op.input(input);
  if (given.element_count() != static_cast<int64_t>(state.size()))
    return execution_error(fmt::format("input {} has the wrong shape", input));
  for (int64_t i = 0; i < given.element_count(); ++i) {
    const int64_t row = i / shape.hidden;
    const int64_t place = shape.batch_first ? row % shape.directions * shape.batch + row / shape.directions : row;
    state.data()[place * shape.hidden + i % shape.hidden] = load_element<C>(given.dtype(), given.view().data, i);
  }
  return {};
}

template <class C, class Device>
Result<RecurrentData<C>> load_data(OpContext<Device>& op, const RecurrentShape& shape, bool is_lstm) {
  RecurrentData<C> data;
  data.w = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  data.r = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
  TensorView x = op.input(0).view();
  if (shape.batch_first) {
    const Ints dims{shape.steps, shape.batch, shape.input};
    const MutableView turned = PX_TRY(op.scratch(x.dtype, shape_of(dims)));
    copy_strided(op.queue(), element_bytes(x.dtype), dims, {turned.data, row_major_strides(dims), 0},
                 {x.data, {shape.input, shape.steps * shape.input, 1}, 0});
    x = TensorView(turned);
  }
  data.x = PX_TRY(converted<C>(op.queue(), x, false));
  if (op.has_input(3)) {
    if (op.input(3).element_count() != shape.directions * 2 * shape.gates * shape.hidden)
      return execution_error("B has the wrong shape");
    data.bias = PX_TRY(converted<C>(op.queue(), op.input(3).view(), op.is_constant(3)));
  }
  if (is_lstm && op.has_input(7)) {
    if (op.input(7).element_count() != shape.directions * 3 * shape.hidden)
      return execution_error("P has the wrong shape");
    data.peepholes = PX_TRY(converted<C>(op.queue(), op.input(7).view(), op.is_constant(7)));
  }
  data.lengths = op.has_input(4) ? PX_TRY(op.integers_of_input(4)) : Ints(shape.batch, shape.steps);
  if (data.lengths.size() != shape.batch)
    return execution_error("sequence_lens must have one length for each batch entry");
  for (int64_t length : data.lengths) {
    if (length < 0 || length > shape.steps) return execution_error(fmt::format("a sequence length is {}", length));
  }
  PX_TRY(load_state(op, shape, 5, data.h));
  if (is_lstm) {
    PX_TRY(load_state(op, shape, 6, data.c));
  } else {
    data.c.assign(data.h.size(), C(0));
  }
  data.y.assign(static_cast<size_t>(shape.steps * shape.directions * shape.batch * shape.hidden), C(0));
  return data;
}

// GRU's gates are z, r, h. The hidden one multiplies the reset state before or after the product with R.
template <class C, class Device>
Status gru_step(OpContext<Device>& op, const CellParameters<C>& cell, const C* r_weights, const C* x_gates,
                const C* h_gates, C* h) {
  const int64_t n = cell.hidden;
  std::vector<C> update(static_cast<size_t>(n)), reset(static_cast<size_t>(n)), product_h(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const auto gate = [&](int64_t at) {
      return x_gates[at] + h_gates[at] + bias_at(cell.input_bias, at) + bias_at(cell.recurrent_bias, at);
    };
    update.data()[i] = cell.activations[0](clipped(gate(i), cell.clip));
    reset.data()[i] = cell.activations[0](clipped(gate(n + i), cell.clip));
  }
  if (cell.linear_before_reset) {
    for (int64_t i = 0; i < n; ++i) {
      product_h.data()[i] = reset.data()[i] * (h_gates[2 * n + i] + bias_at(cell.recurrent_bias, 2 * n + i));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) reset.data()[i] *= h[i];
    GemmProblem problem;
    problem.m = 1;
    problem.n = n;
    problem.k = n;
    problem.transpose_b = true;
    PX_TRY(gemm(op.queue(), problem, reset.data(), r_weights + 2 * n * n, product_h.data()));
    for (int64_t i = 0; i < n; ++i) product_h.data()[i] += bias_at(cell.recurrent_bias, 2 * n + i);
  }
  for (int64_t i = 0; i < n; ++i) {
    const C sum = x_gates[2 * n + i] + product_h.data()[i] + bias_at(cell.input_bias, 2 * n + i);
    const C candidate = cell.activations[1](clipped(sum, cell.clip));
    const C z = update.data()[i];
    h[i] = (C(1) - z) * candidate + z * h[i];
  }
  return {};
}

template <class C, class Device>
Status run_direction(OpContext<Device>& op, Cell kind, const RecurrentShape& shape, const CellParameters<C>& cell,
                     int64_t direction, RecurrentData<C>& data) {
  const int64_t width = shape.gates * shape.hidden;
  const C* w = data.w.get() + direction * width * shape.input;
  const C* r = data.r.get() + direction * width * shape.hidden;
  std::vector<C> x_gates(static_cast<size_t>(shape.steps * shape.batch * width));
  std::vector<C> h_gates(static_cast<size_t>(shape.batch * width));
  GemmProblem inputs;
  inputs.m = shape.steps * shape.batch;
  inputs.n = width;
  inputs.k = shape.input;
  inputs.transpose_b = true;
  PX_TRY(gemm(op.queue(), inputs, data.x.get(), w, x_gates.data()));
  GemmProblem recurrent = inputs;
  recurrent.m = shape.batch;
  recurrent.k = shape.hidden;
  C* h = data.h.data() + direction * shape.batch * shape.hidden;
  C* c = data.c.data() + direction * shape.batch * shape.hidden;
  for (int64_t step = 0; step < shape.steps; ++step) {
    PX_TRY(gemm(op.queue(), recurrent, h, r, h_gates.data()));
    for (int64_t entry = 0; entry < shape.batch; ++entry) {
      const int64_t length = data.lengths[entry];
      if (step >= length) continue;  // beyond its end the output is zero and the state stays
      const int64_t time = shape.reversed[direction] ? length - 1 - step : step;
      const C* from_x = x_gates.data() + (time * shape.batch + entry) * width;
      const C* from_h = h_gates.data() + entry * width;
      C* own_h = h + entry * shape.hidden;
      if (kind == Cell::rnn) rnn_cell(cell, from_x, from_h, own_h, static_cast<C*>(nullptr));
      if (kind == Cell::lstm) lstm_cell(cell, from_x, from_h, own_h, c + entry * shape.hidden);
      if (kind == Cell::gru) PX_TRY(gru_step(op, cell, r, from_x, from_h, own_h));
      C* out = data.y.data() + ((time * shape.directions + direction) * shape.batch + entry) * shape.hidden;
      std::copy_n(own_h, shape.hidden, out);
    }
  }
  return {};
}

// Stores [a, b, c, hidden] as it is, or with the batch (axis `batch_axis`) brought to the front.
template <class C, class Device>
Status store_output(OpContext<Device>& op, const RecurrentShape& shape, int64_t output, const std::vector<C>& values,
                    bool with_steps) {
  if (!op.wants_output(output)) return {};
  Ints dims{shape.steps, shape.directions, shape.batch, shape.hidden};
  Ints order = shape.batch_first ? Ints{2, 0, 1, 3} : Ints{0, 1, 2, 3};
  if (!with_steps) {
    dims = Ints{shape.directions, shape.batch, shape.hidden};
    order = shape.batch_first ? Ints{1, 0, 2} : Ints{0, 1, 2};
  }
  const Ints from = row_major_strides(dims);
  Ints walk, strides;
  for (int64_t axis : order) {
    walk.push_back(dims[axis]);
    strides.push_back(from[axis]);
  }
  const MutableView out = PX_TRY(op.make_output(output, op.input(0).dtype(), shape_of(walk)));
  const MutableView turned = out.dtype == storage_of<C>() ? out : PX_TRY(op.scratch(storage_of<C>(), out.shape));
  copy_strided(op.queue(), sizeof(C), walk, {turned.data, row_major_strides(walk), 0},
               {reinterpret_cast<const std::byte*>(values.data()), strides, 0});
  if (turned.data == out.data) return {};
  store_block<C>(out.dtype, out.data, 0, out.element_count(), reinterpret_cast<const C*>(turned.data));
  return {};
}

template <class C, Cell kind, class Device>
Status recurrent_as(OpContext<Device>& op, const RecurrentShape& shape) {
  const std::vector<std::string> defaults = kind == Cell::lstm  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                            : kind == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                                : std::vector<std::string>{"Tanh"};
  const std::vector<Activation> activations = PX_TRY(activations_of(op, defaults, shape.directions));
  RecurrentData<C> data = PX_TRY((load_data<C>(op, shape, kind == Cell::lstm)));
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    CellParameters<C> cell;
    cell.hidden = shape.hidden;
    cell.batch = shape.batch;
    const int64_t width = shape.gates * shape.hidden;
    if (data.bias != nullptr) {
      cell.input_bias = data.bias.get() + direction * 2 * width;
      cell.recurrent_bias = cell.input_bias + width;
    }
    if (data.peepholes != nullptr) cell.peepholes = data.peepholes.get() + direction * 3 * shape.hidden;
    cell.activations = activations.data() + direction * static_cast<int64_t>(defaults.size());
    cell.clip = static_cast<C>(op.find_real("clip").value_or(0.0));
    cell.linear_before_reset = op.find_integer("linear_before_reset").value_or(0) != 0;
    cell.input_forget = op.find_integer("input_forget").value_or(0) != 0;
    PX_TRY(run_direction(op, kind, shape, cell, direction, data));
  }
  PX_TRY(store_output(op, shape, 0, data.y, true));
  PX_TRY(store_output(op, shape, 1, data.h, false));
  return kind == Cell::lstm ? store_output(op, shape, 2, data.c, false) : Status{};
}

template <class Device, Cell kind>
Status recurrent(OpContext<Device>& op) {
  const RecurrentShape shape = PX_TRY(recurrent_shape(op, kind == Cell::lstm ? 4 : kind == Cell::gru ? 3 : 1));
  if (op.input(0).dtype() == DType::float64) return recurrent_as<double, kind>(op, shape);
  return recurrent_as<float, kind>(op, shape);
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"GRU", kFloats, recurrent<Device, Cell::gru>, 7},
    {"LSTM", kFloats, recurrent<Device, Cell::lstm>, 7},
    {"RNN", kFloats, recurrent<Device, Cell::rnn>, 7},
};

}  // namespace

Result<std::vector<Activation>> activations_of(const OpCall& op, const std::vector<std::string>& defaults,
                                               int64_t directions) {
  std::vector<std::string> names = op.texts("activations");
  if (names.empty()) {
    for (int64_t direction = 0; direction < directions; ++direction)
      names.insert(names.end(), defaults.begin(), defaults.end());
  }
  const size_t needed = defaults.size() * static_cast<size_t>(directions);
  if (names.size() < needed) return execution_error("'activations' is too short");
  names.resize(needed);  // the schema's default of RNN names one for each of two directions
  const std::vector<float> alphas = op.find_reals("activation_alpha").value_or(std::vector<float>{});
  const std::vector<float> betas = op.find_reals("activation_beta").value_or(std::vector<float>{});
  size_t next_alpha = 0, next_beta = 0;  // the lists name only the functions that take a value
  std::vector<Activation> result;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    const auto* found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const auto& each) { return each.name == name; });
    if (found == std::end(kActivations)) return execution_error("there is no activation '" + name + "'");
    Activation activation{found->kind, found->alpha, found->beta};
    if (takes_alpha(found->kind) && next_alpha < alphas.size())
      activation.alpha = static_cast<double>(alphas[next_alpha++]);
    if (takes_beta(found->kind) && next_beta < betas.size()) activation.beta = static_cast<double>(betas[next_beta++]);
    result.push_back(activation);
  }
  return result;
}

template <>
std::span<const KernelRow<CompiledDevice>> recurrent_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
