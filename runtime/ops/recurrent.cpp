// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: one large product for the inputs of all steps, then a small one and the cell for each step.
#include <algorithm>
#include <array>
#include <span>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/recurrent_cells.h"

namespace parallax::runtime {
namespace {

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
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3)
    return wrong_input(op, x.rank() != 3 ? 0 : w.rank() != 3 ? 1 : 2, "have rank 3");
  RecurrentShape shape;
  shape.gates = gates;
  shape.batch_first = op.find_integer("layout").value_or(0) != 0;
  shape.steps = x[shape.batch_first ? 1 : 0];
  shape.batch = x[shape.batch_first ? 0 : 1];
  shape.input = x[2];
  shape.hidden = r[2];
  if (const auto hidden = op.find_integer("hidden_size"); hidden.has_value() && *hidden != shape.hidden)
    return wrong_attribute("hidden_size", *hidden, "be the last dimension of R {}", r.to_string());
  if (!checked_mul(gates, shape.hidden)) return wrong_input(op, 2, "have {} rows for each hidden unit", gates);
  const std::string direction = op.text("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return wrong_attribute("direction", direction, "be forward, reverse or bidirectional");
  shape.directions = direction == "bidirectional" ? 2 : 1;
  shape.reversed[0] = direction == "reverse";
  shape.reversed[1] = true;
  const Shape w_wanted{shape.directions, gates * shape.hidden, shape.input};
  const Shape r_wanted{shape.directions, gates * shape.hidden, shape.hidden};
  if (!(w == w_wanted) || !(r == r_wanted))
    return wrong_input(op, w == w_wanted ? 2 : 1, "have shape {}", (w == w_wanted ? r_wanted : w_wanted).to_string());
  return shape;
}

// The operands of one run as C; the states of all steps.
template <class Device, class C>
struct RecurrentData {
  std::shared_ptr<const C> x, w, r, bias, peepholes;
  Elements<Device, const int64_t> lengths;
  MutableView h;  // [directions, steps + 1, batch, hidden], the initial state first
  MutableView c;  // [directions, batch, hidden]
  int64_t state_size = 0;

  C* h_at(const RecurrentShape& shape, int64_t direction, int64_t step) const {
    return reinterpret_cast<C*>(h.data) + (direction * (shape.steps + 1) + step) * state_size;
  }
};

// A contiguous part of memory of C as something to be filled.
template <class C>
MutableView part_of(const MutableView& whole, C* begin, int64_t count) {
  return {storage_of<C>(), Shape{count}, reinterpret_cast<std::byte*>(begin), whole.device};
}

// A given state [directions, batch, hidden], or [batch, directions, hidden], or zeros.
template <class Device, class C>
struct InitialState {
  Source given;
  int64_t direction, directions, batch, hidden;
  bool batch_first;
  PX_HD C operator()(int64_t element) const {
    if (given.data == nullptr) return C(0);
    const int64_t entry = element / hidden;
    const int64_t row = batch_first ? entry * directions + direction : direction * batch + entry;
    return element_of<Device, C>(given, row * hidden + element % hidden);
  }
};

template <class C, class Device>
Status load_states(OpContext<Device>& op, const RecurrentShape& shape, bool is_lstm, RecurrentData<Device, C>& data) {
  data.state_size = shape.batch * shape.hidden;
  data.h = PX_TRY(op.scratch(storage_of<C>(), shape_of({shape.directions, shape.steps + 1, data.state_size})));
  data.c = PX_TRY(op.scratch(storage_of<C>(), shape_of({shape.directions, data.state_size})));
  for (const int64_t input : {5, 6}) {
    if (input == 6 && !is_lstm) continue;
    if (op.has_input(input) && op.input(input).element_count() != shape.directions * data.state_size)
      return wrong_input(op, input, "have {} elements: {} directions, batch {}, hidden size {}",
                         shape.directions * data.state_size, shape.directions, shape.batch, shape.hidden);
    const Source given = op.has_input(input) ? source_of(op.input(input).view()) : Source{};
    for (int64_t direction = 0; direction < shape.directions; ++direction) {
      const InitialState<Device, C> state{given,       direction,    shape.directions,
                                          shape.batch, shape.hidden, shape.batch_first};
      C* target =
          input == 5 ? data.h_at(shape, direction, 0) : reinterpret_cast<C*>(data.c.data) + direction * data.state_size;
      tabulate<C>(op.queue(), state, part_of(data.h, target, data.state_size));
    }
  }
  return {};
}

template <class C, class Device>
Result<RecurrentData<Device, C>> load_data(OpContext<Device>& op, const RecurrentShape& shape, bool is_lstm) {
  RecurrentData<Device, C> data;
  data.w = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  data.r = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
  TensorView x = op.input(0).view();
  if (shape.batch_first) {
    const Ints dims{shape.steps, shape.batch, shape.input};
    const MutableView permuted = PX_TRY(op.scratch(x.dtype, shape_of(dims)));
    copy_strided(op.queue(), element_bytes(x.dtype), dims, {permuted.data, row_major_strides(dims), 0},
                 {x.data, {shape.input, shape.steps * shape.input, 1}, 0});
    x = TensorView(permuted);
  }
  data.x = PX_TRY(converted<C>(op.queue(), x, false));
  if (op.has_input(3)) {
    if (op.input(3).element_count() != shape.directions * 2 * shape.gates * shape.hidden)
      return wrong_input(op, 3, "be [{},{}]", shape.directions, 2 * shape.gates * shape.hidden);
    data.bias = PX_TRY(converted<C>(op.queue(), op.input(3).view(), op.is_constant(3)));
  }
  if (is_lstm && op.has_input(7)) {
    if (op.input(7).element_count() != shape.directions * 3 * shape.hidden)
      return wrong_input(op, 7, "be [{},{}]", shape.directions, 3 * shape.hidden);
    data.peepholes = PX_TRY(converted<C>(op.queue(), op.input(7).view(), op.is_constant(7)));
  }
  Ints lengths = op.has_input(4) ? PX_TRY(op.integers_of_input(4)) : Ints(shape.batch, shape.steps);
  if (lengths.size() != shape.batch)
    return wrong_input(op, 4, "have {} elements, one length for each batch entry", shape.batch);
  for (int64_t length : lengths) {
    if (length < 0 || length > shape.steps)
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the number of steps", shape.steps);
  }
  data.lengths = PX_TRY(op.table(std::move(lengths)));
  PX_TRY(load_states(op, shape, is_lstm, data));
  return data;
}

// f(e, u) as element (e, u), or what it was before where the sequence of e has ended.
template <class Device, class C, class F>
struct CellValue {
  static constexpr int64_t kWork = F::kWork;
  F f;
  Elements<Device, const C> before;
  PX_HD C operator()(int64_t element) const {
    const int64_t entry = element / f.cell.hidden;
    return f.cell.has_ended(entry) ? before[element] : f(entry, element % f.cell.hidden);
  }
};

template <class C, class Device, class F>
void run_cells(Queue<Device>& queue, const F& f, const Elements<Device, const C>& before, const MutableView& out) {
  if constexpr (GpuDevice<Device>) {
    tabulate<C>(queue, CellValue<Device, C, F>{f, before}, out);
  } else {
    const int64_t hidden = f.cell.hidden;
    parallel_for(out.element_count(), F::kWork / 4, [&, hidden](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t entry = begin / hidden, first = entry * hidden, stop = std::min(end, first + hidden);
        C* const line = reinterpret_cast<C*>(out.data) + first;
        if (f.cell.has_ended(entry)) {
          const C* const old = before.data;
          if (line != old + first) std::copy(old + begin, old + stop, line + (begin - first));
        } else {
          vectorized(begin - first, stop - first, [=, &f](int64_t from, int64_t to) {
            const F own = f;
            C* const target = line;
            const int64_t its_entry = entry;
            PX_INDEPENDENT_ITERATIONS
            for (int64_t unit = from; unit < to; ++unit) target[unit] = own(its_entry, unit);
          });
        }
        begin = stop;
      }
    });
  }
}

// One step: `cell` knows its states before; `h` is the state after it, `c` is overwritten.
template <class C, Cell kind, class Device, class Step>
Status run_step(OpContext<Device>& op, const Step& cell, const C* r, const MutableView (&scratch)[2],
                const MutableView& h, const MutableView& c) {
  Queue<Device>& queue = op.queue();
  const Elements<Device, const C> before = cell.h;
  if constexpr (kind == Cell::rnn) {
    run_cells(queue, RnnHidden<C, Step>{cell}, before, h);
  } else if constexpr (kind == Cell::lstm) {
    const Elements<Device, const C> state{reinterpret_cast<const C*>(c.data)};
    run_cells(queue, LstmState<C, Step>{cell, state}, state, c);
    run_cells(queue, LstmHidden<C, Step>{cell, state}, before, h);
  } else if (cell.linear_before_reset) {
    run_cells(queue, GruHidden<C, Step, true>{cell}, before, h);
  } else {  // the reset state is what R of the hidden gate multiplies
    run_cells(queue, GruResetState<C, Step>{cell}, before, scratch[0]);
    GemmProblem problem;
    problem.m = cell.batch;
    problem.n = problem.k = cell.hidden;
    problem.transpose_b = true;
    problem.b_is_constant = op.is_constant(2);
    C* product_h = reinterpret_cast<C*>(scratch[1].data);
    PX_TRY(gemm(queue, problem, reinterpret_cast<const C*>(scratch[0].data), r + 2 * cell.hidden * cell.hidden,
                product_h));
    Step gru = cell;
    gru.product_h = {product_h};
    run_cells(queue, GruHidden<C, Step, false>{gru}, before, h);
  }
  return {};
}

template <class C, Cell kind, class Device, class Step>
Status run_direction(OpContext<Device>& op, const RecurrentShape& shape, Step cell, int64_t direction,
                     const RecurrentData<Device, C>& data) {
  const int64_t width = shape.gates * shape.hidden;
  const C* w = data.w.get() + direction * width * shape.input;
  const C* r = data.r.get() + direction * width * shape.hidden;
  const MutableView x_gates = PX_TRY(op.scratch(storage_of<C>(), shape_of({shape.steps * shape.batch, width})));
  const MutableView h_gates = PX_TRY(op.scratch(storage_of<C>(), shape_of({shape.batch, width})));
  const Shape state = PX_TRY(shape_of({data.state_size}));
  const MutableView scratch[] = {PX_TRY(op.scratch(storage_of<C>(), state)),
                                 PX_TRY(op.scratch(storage_of<C>(), state))};
  GemmProblem inputs;
  inputs.m = shape.steps * shape.batch;
  inputs.n = width;
  inputs.k = shape.input;
  inputs.transpose_b = true;
  inputs.b_is_constant = op.is_constant(1);
  PX_TRY(gemm(op.queue(), inputs, data.x.get(), w, reinterpret_cast<C*>(x_gates.data)));
  GemmProblem recurrent = inputs;
  recurrent.m = shape.batch;
  recurrent.k = shape.hidden;
  recurrent.b_is_constant = op.is_constant(2);
  cell.x_gates = {reinterpret_cast<const C*>(x_gates.data)};
  cell.h_gates = {reinterpret_cast<const C*>(h_gates.data)};
  C* c = reinterpret_cast<C*>(data.c.data) + direction * data.state_size;
  for (cell.step = 0; cell.step < shape.steps; ++cell.step) {
    const C* before = data.h_at(shape, direction, cell.step);
    PX_TRY(gemm(op.queue(), recurrent, before, r, reinterpret_cast<C*>(h_gates.data)));
    cell.h = {before};
    const MutableView after = part_of(data.h, data.h_at(shape, direction, cell.step + 1), data.state_size);
    PX_TRY((run_step<C, kind>(op, cell, r, scratch, after, part_of(data.c, c, data.state_size))));
  }
  return {};
}

// ---- Outputs, from the states of all steps ----

// Rows of Y [steps, directions, batch, hidden] or [batch, steps, directions, hidden]: where the states of row `row`
// are, counted in rows of the states; none after a sequence's end.
template <class Device>
struct OutputOfStep {
  Elements<Device, const int64_t> lengths;
  RecurrentShape shape;
  PX_HD int64_t operator()(int64_t row) const {
    const int64_t entry = shape.batch_first ? row / shape.directions / shape.steps : row % shape.batch;
    const int64_t direction = shape.batch_first ? row % shape.directions : row / shape.batch % shape.directions;
    const int64_t time =
        shape.batch_first ? row / shape.directions % shape.steps : row / shape.batch / shape.directions;
    if (time >= lengths[entry]) return -1;
    const int64_t step = shape.reversed[direction] ? lengths[entry] - 1 - time : time;
    return (direction * (shape.steps + 1) + step + 1) * shape.batch + entry;
  }
};

// Rows of Y_h or Y_c [directions, batch, hidden] or [batch, directions, hidden].
struct LastState {
  int64_t stride, offset;  // the states of direction d begin at row d * stride + offset
  RecurrentShape shape;
  PX_HD int64_t operator()(int64_t row) const {
    const int64_t entry = shape.batch_first ? row / shape.directions : row % shape.batch;
    const int64_t direction = shape.batch_first ? row % shape.directions : row / shape.batch;
    return direction * stride + offset + entry;
  }
};

// Element of an output: row_of(its row) among the states, or 0.
template <class Device, class C, class RowOf>
struct StateElement {
  Elements<Device, const C> states;
  RowOf row_of;
  int64_t hidden;
  PX_HD C operator()(int64_t element) const {
    const int64_t row = row_of(element / hidden);
    return row < 0 ? C(0) : states[row * hidden + element % hidden];
  }
};

template <class C, class Device, class RowOf>
void store_states(Queue<Device>& queue, const C* states, const RowOf& row_of, int64_t hidden, const MutableView& out) {
  if constexpr (!GpuDevice<Device>) {
    if (out.dtype == storage_of<C>() && hidden > 0) {
      parallel_for(out.element_count() / hidden, hidden / 4 + 8, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          C* const target = reinterpret_cast<C*>(out.data) + row * hidden;
          const int64_t source = row_of(row);
          if (source < 0) {
            std::fill_n(target, hidden, C(0));
          } else {
            std::copy_n(states + source * hidden, hidden, target);
          }
        }
      });
      return;
    }
  }
  tabulate<C>(queue, StateElement<Device, C, RowOf>{{states}, row_of, hidden}, out);
}

template <class C, class Device>
Status store_outputs(OpContext<Device>& op, const RecurrentShape& shape, const RecurrentData<Device, C>& data) {
  const DType dtype = op.input(0).dtype();
  const Ints steps = shape.batch_first ? Ints{shape.batch, shape.steps, shape.directions, shape.hidden}
                                       : Ints{shape.steps, shape.directions, shape.batch, shape.hidden};
  const Ints last = shape.batch_first ? Ints{shape.batch, shape.directions, shape.hidden}
                                      : Ints{shape.directions, shape.batch, shape.hidden};
  const C* const h = reinterpret_cast<const C*>(data.h.data);
  const C* const c = reinterpret_cast<const C*>(data.c.data);
  if (op.wants_output(0)) {
    const MutableView y = PX_TRY(op.make_output(0, dtype, shape_of(steps)));
    store_states(op.queue(), h, OutputOfStep<Device>{data.lengths, shape}, shape.hidden, y);
  }
  if (op.wants_output(1)) {
    const MutableView y_h = PX_TRY(op.make_output(1, dtype, shape_of(last)));
    const LastState rows{(shape.steps + 1) * shape.batch, shape.steps * shape.batch, shape};
    store_states(op.queue(), h, rows, shape.hidden, y_h);
  }
  if (op.wants_output(2)) {
    const MutableView y_c = PX_TRY(op.make_output(2, dtype, shape_of(last)));
    store_states(op.queue(), c, LastState{shape.batch, 0, shape}, shape.hidden, y_c);
  }
  return {};
}

// The operator's default activations.
constexpr std::array<CellActivation::Kind, 3> own_activations(Cell kind) {
  using Kind = CellActivation::Kind;
  return kind == Cell::rnn ? std::array{Kind::tanh, Kind::tanh, Kind::tanh}
                           : std::array{Kind::sigmoid, Kind::tanh, Kind::tanh};
}

// The parameters of one direction.
template <bool kUsual, class C, class Device>
CellStep<Device, C, kUsual> cell_of(const OpContext<Device>& op, const RecurrentShape& shape,
                                    const RecurrentData<Device, C>& data, int64_t direction,
                                    std::span<const CellActivation> activations) {
  CellStep<Device, C, kUsual> cell;
  cell.hidden = shape.hidden;
  cell.batch = shape.batch;
  cell.gates = shape.gates;
  cell.reversed = shape.reversed[direction];
  cell.lengths = data.lengths;
  const int64_t width = shape.gates * shape.hidden;
  if (data.bias != nullptr) {
    cell.input_bias = {data.bias.get() + direction * 2 * width};
    cell.recurrent_bias = {cell.input_bias.data + width};
  }
  if (data.peepholes != nullptr) cell.peepholes = {data.peepholes.get() + direction * 3 * shape.hidden};
  std::copy(activations.begin(), activations.end(), std::begin(cell.activations));
  cell.clip = static_cast<C>(op.find_real("clip").value_or(0.0));
  cell.linear_before_reset = op.find_integer("linear_before_reset").value_or(0) != 0;
  cell.input_forget = op.find_integer("input_forget").value_or(0) != 0;
  return cell;
}

template <Cell kind, class Step>
bool is_usual(const Step& cell, size_t activations) {
  for (size_t i = 0; i < activations; ++i) {
    if (cell.activations[i].kind != own_activations(kind)[i]) return false;
  }
  return cell.input_bias && !cell.peepholes && !cell.input_forget && !(cell.clip > 0);
}

template <class C, Cell kind, class Device>
Status recurrent_as(OpContext<Device>& op, const RecurrentShape& shape) {
  const std::vector<std::string> defaults = kind == Cell::lstm  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                            : kind == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                                : std::vector<std::string>{"Tanh"};
  const std::vector<CellActivation> activations = PX_TRY(cell_activations(op, defaults, shape.directions));
  const auto data = PX_TRY((load_data<C>(op, shape, kind == Cell::lstm)));
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    const auto first = activations.begin() + direction * static_cast<int64_t>(defaults.size());
    const std::span<const CellActivation> own(first, defaults.size());
    const auto cell = cell_of<false>(op, shape, data, direction, own);
    if constexpr (!GpuDevice<Device>) {
      if (is_usual<kind>(cell, own.size())) {
        PX_TRY((run_direction<C, kind>(op, shape, cell_of<true>(op, shape, data, direction, own), direction, data)));
        continue;
      }
    }
    PX_TRY((run_direction<C, kind>(op, shape, cell, direction, data)));
  }
  return store_outputs(op, shape, data);
}

template <class Device, Cell kind>
Status recurrent(OpContext<Device>& op) {
  const RecurrentShape shape = PX_TRY(recurrent_shape(op, kind == Cell::lstm ? 4 : kind == Cell::gru ? 3 : 1));
  if (op.input(0).dtype() == DType::float64) return recurrent_as<double, kind>(op, shape);
  return recurrent_as<float, kind>(op, shape);
}

template <class Device>
constexpr KernelRow<Device> kRecurrentRows[] = {
    reads_on_host<Device>({4}, {"GRU", kFloats, recurrent<Device, Cell::gru>}),
    reads_on_host<Device>({4}, {"LSTM", kFloats, recurrent<Device, Cell::lstm>}),
    reads_on_host<Device>({4}, {"RNN", kFloats, recurrent<Device, Cell::rnn>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> recurrent_rows() {
  return kRecurrentRows<CompiledDevice>;
}

}  // namespace parallax::runtime
