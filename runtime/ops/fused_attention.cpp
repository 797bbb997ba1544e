// SPDX-License-Identifier: Apache-2.0
// Attention of parallax.fused: what rewriting makes of the two products, the softmax between them and what moves their
// operands about. The operands stay where they are; only the way they are walked is known here.
#include <array>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/growable.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/attention.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/gpu/attention/attention_kernel.h"
#include "runtime/device/gpu/attention/flash_attention.h"
#include "runtime/ops/fused_families.h"

namespace parallax::runtime {
namespace {

enum AttentionInput : int64_t { kQ, kK, kV, kAdded, kAddedAgain, kHidden };

// A tensor as matrices: batch axes, then rows and columns, with the stride of each.
struct Operand {
  Ints dims, strides;
  int64_t rows() const { return dims[dims.size() - 2]; }
  int64_t columns() const { return dims.back(); }
};

// Axis i of the operand is axis order[i] of the tensor.
Result<Operand> operand_of(const OpCall& op, int64_t input, std::string_view name) {
  const Ints dims(op.input(input).shape());
  const Ints strides = element_strides(op.input(input).view());
  const Ints order = op.find_integers(name).value_or(Ints());
  if (dims.size() < 2 || (!order.empty() && order.size() != dims.size()))
    return wrong_input(op, input, "have rank 2 or more, and the rank of its order, {}", order.size());
  if (order.empty()) return Operand{dims, strides};
  Operand operand;
  for (int64_t axis : order) {
    if (axis < 0 || axis >= dims.size())
      return invalid_model(
          fmt::format("attribute '{}' names axis {}; it must name axes in [0, {})", name, axis, dims.size()));
    operand.dims.push_back(dims[axis]);
    operand.strides.push_back(strides[axis]);
  }
  return operand;
}

// The offset of matrix `index` within the operand, whose axes are aligned with the last of `batch`; of its last batch
// axis each matrix is repeated `groups` times in a row.
int64_t location_of(const Operand& operand, int64_t groups, const Ints& batch, int64_t index) {
  const int64_t own = operand.dims.size() - 2;
  int64_t location = 0;
  for (int64_t back = 0; back < batch.size(); ++back) {
    const int64_t dim = batch[batch.size() - 1 - back];
    const int64_t position = index % dim;
    index /= dim;
    if (back >= own) continue;
    const int64_t axis = own - 1 - back;
    const int64_t shared = back == 0 ? position / groups : position;
    if (operand.dims[axis] != 1) location += shared * operand.strides[axis];
  }
  return location;
}

MatrixOffsets locations_of(const Operand& operand, int64_t groups, const Ints& batch) {
  MatrixOffsets locations{Ints(product(batch)), operand.strides[operand.dims.size() - 2], operand.strides.back()};
  for (int64_t i = 0; i < locations.offsets.size(); ++i) locations.offsets[i] = location_of(operand, groups, batch, i);
  return locations;
}

// An operand that is added to the scores, or masks them: read with stride 0 where it is broadcast.
struct Broadcast {
  bool is_given = false;
  Ints dims;  // with two axes at least
  MatrixOffsets locations;
};

// Dimensions that broadcast together, from the last one on.
Status widen(Ints& dims, const Ints& other, std::string_view name) {
  while (dims.size() < other.size()) dims.insert(0, 1);
  for (int64_t back = 0; back < other.size(); ++back) {
    int64_t& own = dims[dims.size() - 1 - back];
    const int64_t dim = other[other.size() - 1 - back];
    if (own != dim && own != 1 && dim != 1)
      return wrong_shape(name, other, "broadcast with the scores, {}", dims_text(dims));
    if (own == 1) own = dim;
  }
  return {};
}

struct Layout {
  AttentionProblem problem;
  std::array<Broadcast, 3> changes;  // of the inputs from kAdded on
  Ints batch;
};

// Batch axes alone.
Ints batch_of(const Operand& operand, int64_t groups) {
  Ints dims = operand.dims;
  dims.truncate(dims.size() - 2);
  if (!dims.empty()) dims[dims.size() - 1] *= groups;
  return dims;
}

Result<Layout> layout_of(const OpCall& op) {
  const Operand q = PX_TRY(operand_of(op, kQ, "q_order"));
  const Operand k = PX_TRY(operand_of(op, kK, "k_order"));
  const Operand v = PX_TRY(operand_of(op, kV, "v_order"));
  const int64_t k_groups = op.integer("k_groups"), v_groups = op.integer("v_groups");
  if (k_groups < 1 || v_groups < 1)
    return invalid_model(
        fmt::format("k_groups and v_groups are {} and {}; they must be 1 or more", k_groups, v_groups));
  if (q.columns() != k.rows()) return wrong_value("the size of a query", q.columns(), "be that of a key, {}", k.rows());
  Layout layout;
  Ints scores = batch_of(q, 1);
  PX_TRY(widen(scores, batch_of(k, k_groups), "K"));
  scores.push_back(q.rows());
  scores.push_back(k.columns());
  for (int64_t input = kAdded; input <= kHidden; ++input) {
    if (!op.has_input(input)) continue;
    Broadcast& change = layout.changes[static_cast<size_t>(input - kAdded)];
    change.is_given = true;
    change.dims = Ints(op.input(input).shape());
    PX_TRY(widen(scores, change.dims, fmt::format("input {}", input)));
  }
  AttentionProblem& problem = layout.problem;
  problem.queries = scores[scores.size() - 2];
  problem.keys = scores.back();
  problem.size = q.columns();
  problem.value_size = v.columns();
  problem.scale = op.real("scale");
  problem.no_number_is_zero = op.integer("no_number_is_zero") != 0;
  if (v.rows() != problem.keys)
    return wrong_value("the number of values", v.rows(), "be that of the keys, {}", problem.keys);
  scores.truncate(scores.size() - 2);
  PX_TRY(widen(scores, batch_of(v, v_groups), "V"));
  layout.batch = scores;
  problem.q = locations_of(q, 1, layout.batch);
  problem.k = locations_of(k, k_groups, layout.batch);
  problem.v = locations_of(v, v_groups, layout.batch);
  if (q.rows() != problem.queries) problem.q.row = 0;
  if (k.columns() != problem.keys) problem.k.column = 0;
  for (Broadcast& change : layout.changes) {
    if (!change.is_given) continue;
    while (change.dims.size() < 2) change.dims.insert(0, 1);
    Operand operand{change.dims, row_major_strides(change.dims)};
    change.locations = locations_of(operand, 1, layout.batch);
    if (operand.rows() == 1) change.locations.row = 0;
    if (operand.columns() == 1) change.locations.column = 0;
  }
  return layout;
}

// ---- What changes the scores ----

template <class Device, class T>
struct Change {
  Elements<Device, const T> data;  // none: nothing
  Elements<Device, const int64_t> offsets;
  int64_t row = 0, column = 0;
  PX_HD int64_t start(int64_t matrix, int64_t query) const { return offsets[matrix] + query * row; }
};

template <class Device>
struct ScoreChanges {
  std::array<Change<Device, float>, 2> added;
  Change<Device, uint8_t> hidden;
  bool hides_where = true;
  float hidden_value = 0;

  struct Row {
    const ScoreChanges* all;
    std::array<int64_t, 2> added_start;
    int64_t hidden_start;
    PX_HD float operator()(float score, int64_t key) const {
      for (size_t i = 0; i < 2; ++i) {
        const Change<Device, float>& change = all->added[i];
        if (change.data) score += change.data[added_start[i] + key * change.column];
      }
      const Change<Device, uint8_t>& by = all->hidden;
      if (by.data && (by.data[hidden_start + key * by.column] != 0) == all->hides_where) score = all->hidden_value;
      return score;
    }
  };
  PX_HD Row row(int64_t matrix, int64_t query) const {
    Row made{this, {}, hidden.data ? hidden.start(matrix, query) : 0};
    for (size_t i = 0; i < 2; ++i) made.added_start[i] = added[i].data ? added[i].start(matrix, query) : 0;
    return made;
  }

  void change(int64_t matrix, int64_t query, int64_t first_key, float* scores, int64_t count) const {
    for (const Change<Device, float>& each : added) {
      if (each.data) add(each, each.data.data + each.start(matrix, query) + first_key * each.column, scores, count);
    }
    if (!hidden.data) return;
    const uint8_t* flags = hidden.data.data + hidden.start(matrix, query) + first_key * hidden.column;
    const uint8_t wanted = hides_where ? 1 : 0;
    vectorized(0, count, [=, step = hidden.column, value = hidden_value](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) scores[i] = (flags[i * step] != 0 ? 1 : 0) == wanted ? value : scores[i];
    });
  }

 private:
  static void add(const Change<Device, float>& change, const float* values, float* scores, int64_t count) {
    if (change.column == 0) {
      vectorized(0, count, [=, value = *values](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) scores[i] += value;
      });
      return;
    }
    vectorized(0, count, [=](int64_t begin, int64_t end) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = begin; i < end; ++i) scores[i] += values[i];
    });
  }
};

// ---- The operator ----

// The values of an operand as float, and where they are: packed anew when no library takes them as stored.
struct Values {
  std::shared_ptr<const float> data;
  const float* begin = nullptr;
};

template <class Device>
Result<Values> values_of(OpContext<Device>& op, int64_t input, MatrixOffsets& locations, int64_t rows,
                         int64_t columns) {
  Values values;
  Tensor stored = op.input(input);
  if (is_growable(stored) && stored.dtype() != DType::float32) {  // only row-major numbers are converted
    for (int64_t& offset : locations.offsets) offset = offset_without_room(stored, offset);
    locations.row = offset_without_room(stored, locations.row);
    locations.column = offset_without_room(stored, locations.column);
    stored = PX_TRY(without_room(op.queue(), stored));
  }
  values.data = PX_TRY(converted<float>(op.queue(), stored.view(), op.is_constant(input)));
  values.begin = values.data.get();
  if (std::is_same_v<Device, Cpu> && !is_attention_layout(locations, rows, columns)) {
    const int64_t batch = locations.offsets.size();
    const MutableView packed = PX_TRY(op.scratch(DType::float32, Shape{batch, rows, columns}));
    for (int64_t i = 0; i < batch; ++i) {
      copy_strided(
          op.queue(), sizeof(float), {rows, columns}, {packed.data, {columns, 1}, i * rows * columns},
          {reinterpret_cast<const std::byte*>(values.begin), {locations.row, locations.column}, locations.offsets[i]});
      locations.offsets[i] = i * rows * columns;
    }
    locations.row = columns;
    locations.column = 1;
    values.begin = reinterpret_cast<const float*>(packed.data);
  }
  return values;
}

template <class Device>
Result<ScoreChanges<Device>> score_changes(OpContext<Device>& op, const Layout& layout,
                                           std::array<std::shared_ptr<const float>, 2>& kept) {
  ScoreChanges<Device> changes;
  for (size_t i = 0; i < 2; ++i) {
    const Broadcast& change = layout.changes[i];
    if (!change.is_given) continue;
    const auto input = kAdded + static_cast<int64_t>(i);
    kept[i] = PX_TRY(converted<float>(op.queue(), op.input(input).view(), op.is_constant(input)));
    changes.added[i] = {
        {kept[i].get()}, PX_TRY(op.table(change.locations.offsets)), change.locations.row, change.locations.column};
  }
  const Broadcast& hidden = layout.changes[2];
  if (hidden.is_given) {
    if (op.input(kHidden).dtype() != DType::bool_)
      return wrong_input(op, kHidden, "be bool: it says which scores are hidden");
    changes.hidden = {{reinterpret_cast<const uint8_t*>(op.input(kHidden).view().data)},
                      PX_TRY(op.table(hidden.locations.offsets)),
                      hidden.locations.row,
                      hidden.locations.column};
  }
  changes.hides_where = op.integer("hides_where") != 0;
  changes.hidden_value = static_cast<float>(op.real("hidden_value"));
  return changes;
}

// y in the order it is wanted in, and where its matrices begin.
template <class Device>
Result<MutableView> make_result(OpContext<Device>& op, Layout& layout) {
  Ints dims = layout.batch;
  dims.push_back(layout.problem.queries);
  dims.push_back(layout.problem.value_size);
  Ints order = op.find_integers("y_order").value_or(Ints());
  if (order.empty()) {
    for (int64_t axis = 0; axis < dims.size(); ++axis) order.push_back(axis);
  }
  if (order.size() != dims.size())
    return wrong_length("attribute 'y_order'", order.size(), "have {}, one for each axis of the result", dims.size());
  if (order.back() != dims.size() - 1)
    return invalid_model(fmt::format("attribute 'y_order' ends with axis {}; it must end with {}, the last axis",
                                     order.back(), dims.size() - 1));
  Ints out;
  for (int64_t axis : order) out.push_back(dims[axis]);
  const Ints strides = row_major_strides(out);
  Operand y{dims, dims};
  for (int64_t axis = 0; axis < order.size(); ++axis) y.strides[order[axis]] = strides[axis];
  layout.problem.y = locations_of(y, 1, layout.batch);
  return op.make_output(0, op.input(kQ).dtype(), shape_of(out));
}

// By a GPU's library, else by our own kernel: operands as they are stored, and no scores. The library knows scores to
// which one tensor is added, none that are hidden.
template <class Device>
Result<bool> attend_as_stored(OpContext<Device>& op, const Layout& layout, const MutableView& y) {
  if constexpr (GpuDevice<Device>) {
    if (op.input(kK).dtype() != y.dtype || op.input(kV).dtype() != y.dtype) return false;
    FlashAttention attention;
    attention.problem = layout.problem;
    attention.rule.keys = layout.problem.keys;
    attention.heads = layout.batch.empty() ? 1 : layout.batch.back();
    attention.samples = attention.heads == 0 ? 0 : layout.problem.batch() / attention.heads;
    attention.dtype = y.dtype;
    attention.q = op.input(kQ).view().data;
    attention.k = op.input(kK).view().data;
    attention.v = op.input(kV).view().data;
    attention.y = y.data;
    std::shared_ptr<const float> kept[2];
    for (const int64_t input : {int64_t{kAdded}, int64_t{kAddedAgain}}) {
      if (!op.has_input(input)) continue;
      const TensorView& view = op.input(input).view();
      const auto index = static_cast<size_t>(input - kAdded);
      const bool is_first = attention.added == nullptr;
      const bool is_known = view.dtype == DType::float32 || view.dtype == y.dtype;
      if (!is_known) kept[index] = PX_TRY(converted<float>(op.queue(), view, op.is_constant(input)));
      const std::byte* data = is_known ? view.data : reinterpret_cast<const std::byte*>(kept[index].get());
      (is_first ? attention.added_dtype : attention.added_again_dtype) = is_known ? view.dtype : DType::float32;
      (is_first ? attention.added : attention.added_again) = data;
      (is_first ? attention.added_locations : attention.added_again_locations) = layout.changes[index].locations;
    }
    if (op.has_input(kHidden)) {
      if (op.input(kHidden).dtype() != DType::bool_) return false;
      attention.hiding = op.input(kHidden).view().data;
      attention.hiding_locations = layout.changes[2].locations;
      attention.hides_where = op.integer("hides_where") != 0;
      attention.hidden_value = static_cast<float>(op.real("hidden_value"));
    }
    const bool is_plain = attention.hiding == nullptr && attention.added_again == nullptr;
    if (is_plain && PX_TRY(is_left_to_library(op.queue(), attention)) &&
        PX_TRY(library_attention(op.queue(), attention))) {
      PX_TRY(store_hidden_queries(op.queue(), attention, std::numeric_limits<float>::quiet_NaN()));
      return true;
    }
    return flash_attention(op.queue(), attention);
  } else {
    return false;
  }
}

template <class Device>
Status fused_attention(OpContext<Device>& op) {
  Layout layout = PX_TRY(layout_of(op));
  AttentionProblem& problem = layout.problem;
  const MutableView y = PX_TRY(make_result(op, layout));
  if (y.element_count() == 0) return {};
  if (problem.keys == 0) return fill(op.queue(), y, nullptr), Status{};
  if (PX_TRY(attend_as_stored(op, layout, y))) return {};
  const Values q = PX_TRY(values_of(op, kQ, problem.q, problem.queries, problem.size));
  const Values k = PX_TRY(values_of(op, kK, problem.k, problem.size, problem.keys));
  const Values v = PX_TRY(values_of(op, kV, problem.v, problem.keys, problem.value_size));
  std::array<std::shared_ptr<const float>, 2> kept;
  const ScoreChanges<Device> changes = PX_TRY(score_changes(op, layout, kept));
  const bool direct = y.dtype == DType::float32;
  const MutableView wide = direct ? y : PX_TRY(op.scratch(DType::float32, y.shape));
  PX_TRY(attention(op.queue(), problem, changes, q.begin, k.begin, v.begin, reinterpret_cast<float*>(wide.data)));
  if (direct) return {};
  map_as<float, float>(op.queue(), Same{}, y, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

template <class Device>
constexpr KernelRow<Device> attention_row() {
  KernelRow<Device> row{"Attention", kNarrowFloats, fused_attention<Device>};
  row.domain = "parallax.fused";
  return row;
}

template <class Device>
constexpr KernelRow<Device> kFusedAttentionRows[] = {attention_row<Device>()};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> fused_attention_rows() {
  return kFusedAttentionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
