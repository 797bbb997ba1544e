// SPDX-License-Identifier: Apache-2.0
// Operands of the scores of com.microsoft's attention, as functors of an element index: masks as numbers to be added, a
// cache with its new rows, the scores that are shown.
#include <cmath>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/contrib/group.h"
#include "runtime/ops/contrib/heads.h"

namespace parallax::runtime {
namespace {

using IndicesOnDevice = Elements<CompiledDevice, const int64_t>;

// ---- Masks ----

enum class MaskKind : uint8_t { none, ends, ends_and_begins, by_key, by_query, by_location };

// 0 where a query sees a key, else `filter`; an element of [batch, 1, rows, keys].
template <class Device>
struct AddedMask {
  Elements<Device, const int64_t> numbers;
  MaskKind kind;
  ScoreShape shape;
  int64_t rows;                     // of the result: one for each query, or one
  int64_t mask_rows, mask_columns;  // the last two axes of a mask by position
  float filter;

  PX_HD bool sees(int64_t batch, int64_t query, int64_t key) const {
    switch (kind) {
      case MaskKind::ends:
        return key < numbers[batch];
      case MaskKind::ends_and_begins:
        return key < numbers[batch] && key >= numbers[shape.batch + batch];
      case MaskKind::by_key:
        return numbers[batch * shape.keys + key] > 0;
      case MaskKind::by_query:
        return numbers[(batch * shape.queries + query) * shape.keys + key] > 0;
      case MaskKind::by_location:
        return numbers[(batch * mask_rows + shape.past + query) * mask_columns + key] > 0;
      case MaskKind::none:
        break;
    }
    return true;
  }
  PX_HD float operator()(int64_t i) const {
    const int64_t row = i / shape.keys;
    return sees(row / rows, row % rows, i % shape.keys) ? 0.0F : filter;
  }
};

// The kind of a mask of these dimensions; empty dimensions are no mask.
MaskKind mask_kind(const Ints& dims, const ScoreShape& shape) {
  if (dims == Ints{shape.batch, shape.keys}) return MaskKind::by_key;
  if (dims == Ints{shape.batch, shape.queries, shape.keys}) return MaskKind::by_query;
  if (dims.size() == 1 && dims[0] == 2 * shape.batch) return MaskKind::ends_and_begins;
  if (dims.size() == 1 && (dims[0] == shape.batch || dims[0] == 3 * shape.batch + 2)) return MaskKind::ends;
  const bool by_location = dims.size() == 4 && dims[0] == shape.batch && dims[1] == 1 &&
                           dims[2] >= shape.past + shape.queries && dims[3] >= shape.keys;
  return by_location ? MaskKind::by_location : MaskKind::none;
}

// ---- GroupQueryAttention ----

// An element of [batch, heads, capacity, size].
template <class Device>
struct ExtendedCache {
  Source past, fresh;
  Elements<Device, const int64_t> kept;  // rows of each sample's past
  int64_t heads, cached, sequence, capacity, size;

  PX_HD float operator()(int64_t i) const {
    const int64_t at = i % size, row = i / size % capacity, head = i / size / capacity;
    const int64_t before = kept[head / heads];
    if (row < before) return element_of<Device, float>(past, (head * cached + row) * size + at);
    if (row >= before + sequence) return 0.0F;
    return element_of<Device, float>(fresh, (head * sequence + row - before) * size + at);
  }
};

// ---- Quantized caches ----

// The scale of an element of [batch, heads, rows, size].
template <class Device>
struct ElementScale {
  Source scales;
  int64_t count, heads, rows, size;
  PX_HD float operator()(int64_t i) const {
    return element_of<Device, float>(scales, count == 1 ? 0 : i / size / rows % heads * size + i % size);
  }
};

// A number in units of its scale, as far as the cache's numbers reach.
template <class Device>
struct InUnits {
  Elements<Device, const float> numbers;
  ElementScale<Device> scale;
  float lowest, greatest;
  bool is_whole;
  PX_HD float operator()(int64_t i) const {
    const float units = numbers[i] / scale(i);
    const float rounded = is_whole ? std::nearbyint(units) : units;
    return rounded < lowest ? lowest : (greatest < rounded ? greatest : rounded);
  }
};

template <class Device>
struct FromUnits {
  Elements<Device, const float> units;
  ElementScale<Device> scale;
  PX_HD float operator()(int64_t i) const { return units[i] * scale(i); }
};

// 4 bits are the number + 8, the even element in the low bits of a byte.
template <class Device>
struct Int4Number {
  Elements<Device, const uint8_t> bytes;
  PX_HD float operator()(int64_t i) const {
    const int byte = bytes[i / 2];
    return static_cast<float>((i % 2 == 0 ? byte & 15 : byte >> 4) - 8);
  }
};
template <class Device>
struct Int4Pair {
  Elements<Device, const float> units;
  PX_HD int64_t operator()(int64_t i) const {
    return (static_cast<int64_t>(units[2 * i]) + 8) + 16 * (static_cast<int64_t>(units[2 * i + 1]) + 8);
  }
};

// An element of [batch, heads, sequence, width]; the sinks follow the keys.
template <class Device>
struct GroupMask {
  Source bias, sinks;  // may be missing
  Elements<Device, const int64_t> past, total;
  int64_t heads, sequence, keys, width, window;
  bool is_causal;

  PX_HD float operator()(int64_t i) const {
    const int64_t row = i / width, key = i % width;
    if (key == keys) return element_of<Device, float>(sinks, row / sequence % heads);
    const int64_t sample = row / sequence / heads;
    const int64_t own = past[sample] + row % sequence, end = total[sample] - 1;
    const int64_t last = is_causal && own < end ? own : end;
    const int64_t first = window > 0 ? own - window + 1 : 0;
    if (key < first || key > last) return -std::numeric_limits<float>::infinity();
    return bias.data == nullptr ? 0.0F : element_of<Device, float>(bias, row * keys + key);
  }
};

template <class Device>
struct ShownScore {
  Source scores;
  int64_t width, longest, capacity;

  PX_HD float operator()(int64_t i) const {
    const int64_t key = i % capacity;
    if (key >= longest) return 0.0F;
    const float score = element_of<Device, float>(scores, i / capacity * width + key);
    return score == -std::numeric_limits<float>::infinity() ? 0.0F : score;
  }
};

Result<IndicesOnDevice> indices_on_device(ChainContext& op, const std::vector<CachePosition>& locations,
                                          int64_t CachePosition::*member) {
  Ints numbers;
  for (const CachePosition& location : locations) numbers.push_back(location.*member);
  return op.table(std::move(numbers));
}

Source source_or_none(const Tensor& tensor) { return tensor.defined() ? source_of(tensor.view()) : Source{}; }

}  // namespace

Result<Tensor> added_mask(ChainContext& op, const Tensor& mask, const ScoreShape& shape, double filter) {
  const Ints dims(mask.shape());
  const MaskKind kind = mask_kind(dims, shape);
  if (kind == MaskKind::none)
    return wrong_shape("the mask", mask.shape(), "fit {} batch entries, {} queries and {} keys", shape.batch,
                       shape.queries, shape.keys);
  const bool by_location = kind == MaskKind::by_location;
  const int64_t rows = by_location || kind == MaskKind::by_query ? shape.queries : 1;
  const Tensor given = PX_TRY(op.resident(mask));
  const Tensor numbers = PX_TRY(inner_cast(op, given, DType::int64));
  const Shape out = PX_TRY(shape_of({shape.batch, 1, rows, shape.keys}));
  Tensor added = PX_TRY(op.queue().allocate(DType::float32, out));
  const AddedMask<CompiledDevice> sees{{reinterpret_cast<const int64_t*>(numbers.view().data)},
                                       kind,
                                       shape,
                                       rows,
                                       by_location ? dims[2] : 0,
                                       by_location ? dims[3] : 0,
                                       static_cast<float>(filter)};
  tabulate<float>(op.queue(), sees, writable(added));
  return added;
}

Result<Tensor> extended_numbers(ChainContext& op, const Tensor& past, const Tensor& fresh, const CacheRows& rows,
                                DType dtype) {
  const Ints dims = past.defined() ? Ints(past.shape()) : Ints{rows.batch, rows.heads, 0, rows.size};
  if (dims.size() != 4 || dims[0] != rows.batch || dims[1] != rows.heads || dims[3] != rows.size ||
      dims[2] > rows.capacity)
    return wrong_shape("the past", dims, "be [{},{},at most {},{}], to be joined with the new tokens", rows.batch,
                       rows.heads, rows.capacity, rows.size);
  const Shape shape = PX_TRY(shape_of({rows.batch, rows.heads, rows.capacity, rows.size}));
  Tensor cache = PX_TRY(op.queue().allocate(dtype, shape));
  const IndicesOnDevice kept = PX_TRY(indices_on_device(op, rows.locations, &CachePosition::past));
  const ExtendedCache<CompiledDevice> element{
      source_or_none(past), source_of(fresh.view()), kept,     rows.heads, dims[2],
      rows.sequence,        rows.capacity,           rows.size};
  tabulate<float>(op.queue(), element, writable(cache));
  return cache;
}

namespace {

using FloatsOnDevice = Elements<CompiledDevice, const float>;

FloatsOnDevice floats_at(const Tensor& tensor) { return {reinterpret_cast<const float*>(tensor.view().data)}; }

Result<Tensor> units_of_past(ChainContext& op, const QuantizedCache& cache) {
  if (!cache.format.has_int4()) return inner_cast(op, cache.past, DType::float32);
  Ints dims(cache.past.shape());
  if (dims.size() != 4) return wrong_shape("the past", dims, "have rank 4");
  dims[3] *= 2;
  const Shape shape = PX_TRY(shape_of(dims));
  Tensor units = PX_TRY(op.queue().allocate(DType::float32, shape));
  const Int4Number<CompiledDevice> number{{reinterpret_cast<const uint8_t*>(cache.past.view().data)}};
  tabulate<float>(op.queue(), number, writable(units));
  return units;
}

// New numbers as the cache will hold them.
Result<Tensor> units_of_fresh(ChainContext& op, const QuantizedCache& cache, const Tensor& fresh,
                              const ElementScale<CompiledDevice>& scale) {
  constexpr float kGreatestFloat8 = 448;  // of float8e4m3fn
  const bool is_whole = is_integer(cache.format.dtype());
  const float greatest = !is_whole ? kGreatestFloat8 : cache.format.has_int4() ? 7.0F : 127.0F;
  const Tensor units = PX_TRY(op.queue().allocate(DType::float32, fresh.shape()));
  const InUnits<CompiledDevice> number{floats_at(fresh), scale, is_whole ? -greatest - 1 : -greatest, greatest,
                                       is_whole};
  tabulate<float>(op.queue(), number, writable(units));
  if (is_whole) return units;
  const Tensor held = PX_TRY(inner_cast(op, units, cache.format.dtype()));
  return inner_cast(op, held, DType::float32);
}

Result<Tensor> held_units(ChainContext& op, const CacheFormat& format, const Tensor& units) {
  if (!format.has_int4()) return inner_cast(op, units, format.dtype());
  Ints dims(units.shape());
  dims[3] /= 2;
  const Shape shape = PX_TRY(shape_of(dims));
  Tensor held = PX_TRY(op.queue().allocate(format.dtype(), shape));
  tabulate<int64_t>(op.queue(), Int4Pair<CompiledDevice>{floats_at(units)}, writable(held));
  return held;
}

}  // namespace

Result<Tensor> extended_quantized(ChainContext& op, const QuantizedCache& cache, const Tensor& fresh,
                                  const CacheRows& rows, int64_t output) {
  ElementScale<CompiledDevice> scale{source_of(cache.scale.view()), cache.format.scale_count(), rows.heads,
                                     rows.sequence, rows.size};
  const Tensor past = PX_TRY(units_of_past(op, cache));
  const Tensor added = PX_TRY(units_of_fresh(op, cache, fresh, scale));
  const Tensor units = PX_TRY(extended_numbers(op, past, added, rows, DType::float32));
  if (output >= 0) op.set_output(output, PX_TRY(held_units(op, cache.format, units)));
  scale.rows = rows.capacity;
  Tensor numbers = PX_TRY(op.queue().allocate(DType::float32, units.shape()));
  tabulate<float>(op.queue(), FromUnits<CompiledDevice>{floats_at(units), scale}, writable(numbers));
  return numbers;
}

Result<Tensor> group_mask(ChainContext& op, const GroupShape& shape, const Tensor& bias, const Tensor& sinks) {
  const int64_t heads = bias.defined() || sinks.defined() ? shape.heads : 1;
  const int64_t width = shape.longest + (sinks.defined() ? 1 : 0);
  const Shape dims = PX_TRY(shape_of({shape.batch, heads, shape.sequence, width}));
  Tensor mask = PX_TRY(op.queue().allocate(DType::float32, dims));
  const IndicesOnDevice past = PX_TRY(indices_on_device(op, shape.locations, &CachePosition::past));
  const IndicesOnDevice total = PX_TRY(indices_on_device(op, shape.locations, &CachePosition::total));
  const GroupMask<CompiledDevice> element{
      source_or_none(bias), source_or_none(sinks), past,  total,        heads,
      shape.sequence,       shape.longest,         width, shape.window, shape.is_causal};
  tabulate<float>(op.queue(), element, writable(mask));
  return mask;
}

Status set_shown_scores(ChainContext& op, const GroupShape& shape, const Tensor& scores) {
  const Shape dims = PX_TRY(shape_of({shape.batch, shape.heads, shape.sequence, shape.capacity}));
  const MutableView out = PX_TRY(op.make_output(3, op.input(0).dtype(), dims));
  const ShownScore<CompiledDevice> element{source_of(scores.view()), dim_of(scores.shape(), 3), shape.longest,
                                           shape.capacity};
  tabulate<float>(op.queue(), element, out);
  return {};
}

}  // namespace parallax::runtime
