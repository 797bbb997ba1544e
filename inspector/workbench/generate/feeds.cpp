// SPDX-License-Identifier: Apache-2.0
// Tokens, masks, positions and caches as tensors of the types that the model declares.
#include "inspector/workbench/generate/feeds.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "inspector/tensor/elements.h"

namespace parallax::generate {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

// Numbers that the model takes as floats, integers or bool.
Result<Value> numbers(DType dtype, const Shape& shape, std::span<const double> values) {
  Tensor tensor = PX_TRY(Tensor::allocate(dtype, shape));
  if (is_floating(dtype)) {
    store_doubles(tensor, 0, values);
  } else {
    std::vector<int64_t> integers(values.begin(), values.end());
    store_int64s(tensor, 0, integers);
  }
  return Value(std::move(tensor));
}

std::vector<double> flat(const Rows& rows) {
  std::vector<double> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  return values;
}

size_t rank_of(const ValueDef& input) { return input.type.dims.has_value() ? input.type.dims->size() : 2; }

// [rows, total], or [rows, 1, length, total] for causal attention: floats are added to scores, bool and integers say
// who is seen.
Result<Value> mask_value(const ValueDef& input, const Rows& mask, int64_t length) {
  const auto rows = static_cast<int64_t>(mask.size());
  const int64_t total = rows == 0 ? 0 : static_cast<int64_t>(mask.front().size());
  const DType dtype = input.type.dtype;
  if (rank_of(input) != 4) return numbers(dtype, Shape{rows, total}, flat(mask));
  const double seen = is_floating(dtype) ? 0 : 1;
  const double hidden = is_floating(dtype) ? (dtype == DType::float16 ? -65504.0 : -3.3895313892515355e38) : 0;
  std::vector<double> values;
  for (const auto& row : mask) {
    for (int64_t position = 0; position < length; ++position) {
      const int64_t last = total - length + position;
      for (int64_t other = 0; other < total; ++other) {
        const bool is_seen = other <= last && row[static_cast<size_t>(other)] != 0;
        values.push_back(is_seen ? seen : hidden);
      }
    }
  }
  return numbers(dtype, Shape{rows, 1, length, total}, values);
}

// Counted without padding, which has position 0.
Result<Value> positions(const ValueDef& input, const StepState& state) {
  std::vector<double> values;
  for (const auto& row : state.mask) {
    int64_t count = 0;
    for (size_t index = 0; index < row.size(); ++index) {
      if (static_cast<int64_t>(index) >= state.past) values.push_back(row[index] != 0 ? static_cast<double>(count) : 0);
      count += row[index] != 0 ? 1 : 0;
    }
  }
  const size_t rank = rank_of(input);
  if (rank == 1) {
    values.resize(static_cast<size_t>(state.length));
    return numbers(input.type.dtype, Shape{state.length}, values);
  }
  if (rank == 3) {  // one position for each of time, height and width
    const std::vector<double> once = values;
    for (int repeat = 0; repeat < 2; ++repeat) values.insert(values.end(), once.begin(), once.end());
    return numbers(input.type.dtype, Shape{3, state.rows, state.length}, values);
  }
  return numbers(input.type.dtype, Shape{state.rows, state.length}, values);
}

Result<Value> single(const ValueDef& input, double value) {
  const bool is_scalar = input.type.dims.has_value() && input.type.dims->empty();
  return numbers(input.type.dtype, is_scalar ? Shape{} : Shape{1}, std::vector<double>{value});
}

Result<Value> sequence_lengths(const ValueDef& input, const StepState& state) {
  std::vector<double> values;
  for (const auto& row : state.mask)
    values.push_back(static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}) - 1));
  return numbers(input.type.dtype,
                 rank_of(input) == 2 && input.type.dims.has_value() ? Shape{state.rows, 1} : Shape{state.rows}, values);
}

Result<Value> cache_positions(const ValueDef& input, const StepState& state) {
  std::vector<double> values(static_cast<size_t>(state.length));
  std::iota(values.begin(), values.end(), static_cast<double>(state.past));
  return numbers(input.type.dtype, Shape{state.length}, values);
}

Result<Value> feed(const ValueDef& input, InputRole role, const StepState& state) {
  switch (role) {
    case InputRole::input_ids: {
      const std::vector<double> values(state.tokens.begin(), state.tokens.end());
      return numbers(input.type.dtype, Shape{state.rows, state.length}, values);
    }
    case InputRole::attention_mask:
      return mask_value(input, state.mask, state.length);
    case InputRole::position_ids:
      return positions(input, state);
    case InputRole::cache_position:
      return cache_positions(input, state);
    case InputRole::use_cache:
      return single(input, state.uses_cache ? 1 : 0);
    case InputRole::encoder_hidden_states:
      return state.encoder_states;
    case InputRole::encoder_attention_mask:
      return mask_value(input, state.encoder_mask, state.length);
    case InputRole::sequence_lengths:
      return sequence_lengths(input, state);
    case InputRole::total_sequence_length:
      return single(input, static_cast<double>(state.past + state.length));
    case InputRole::logits_to_keep:
      return single(input, 0);
    case InputRole::past:
    case InputRole::none:
      return Value();
  }
  return Value();
}

}  // namespace

Result<Value> empty_cache(const CacheSlot& slot, int64_t rows, const std::string& model) {
  std::vector<int64_t> dims = slot.dims;
  if (dims.empty())
    return unsupported(fmt::format(
        "the shape of input '{}' of '{}' is not known, so that no empty cache can be made; the model must declare it",
        slot.name, model));
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (static_cast<int>(axis) == slot.batch_axis) {
      dims[axis] = rows;
    } else if (static_cast<int>(axis) == slot.axis) {
      dims[axis] = 0;
    } else if (dims[axis] < 0) {
      return unsupported(fmt::format(
          "dimension {} of input '{}' of '{}' is not fixed by the model, so that no empty cache can be made. Put its "
          "genai_config.json (num_key_value_heads, head_size) or config.json (num_key_value_heads, head_dim) next to "
          "it",
          axis, slot.name, model));
    }
  }
  const Shape shape = PX_TRY(Shape::create(dims));
  return Value(PX_TRY(Tensor::allocate(slot.dtype, shape)));
}

Result<std::vector<Value>> make_feeds(const Model& model, const ModelRoles& roles, const StepState& state,
                                      std::span<const Value> caches, bool session_keeps_caches) {
  std::vector<Value> feeds(model.graph.inputs.size());
  for (size_t index = 0; index < feeds.size(); ++index)
    feeds[index] = PX_TRY(feed(value_at(model.graph, model.graph.inputs[index]), roles.inputs[index], state));
  for (size_t slot = 0; slot < roles.past.size(); ++slot) {
    const CacheSlot& past = roles.past[slot];
    const bool is_kept = session_keeps_caches && !past.is_cross;
    if (is_kept) continue;
    const bool is_given = slot < caches.size() && !caches[slot].is_absent();
    feeds[past.index] = is_given ? caches[slot] : PX_TRY(empty_cache(past, state.rows, model.path));
  }
  return feeds;
}

Result<Value> gather_rows(const Value& value, int axis, std::span<const int32_t> rows) {
  if (!value.is_tensor()) return value;
  const Tensor& tensor = value.tensor();
  std::vector<int64_t> dims(tensor.shape().begin(), tensor.shape().end());
  const auto at = static_cast<size_t>(axis);
  const int64_t old_rows = dims[at];
  dims[at] = static_cast<int64_t>(rows.size());
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor result = PX_TRY(Tensor::allocate(tensor.dtype(), shape));
  int64_t outer = 1, inner = 1;
  for (size_t index = 0; index < at; ++index) outer *= dims[index];
  for (size_t index = at + 1; index < dims.size(); ++index) inner *= dims[index];
  const size_t bytes = byte_size(tensor.dtype(), inner);
  if (bytes == 0) return Value(std::move(result));
  const std::byte* source = tensor.view().data;
  std::byte* target = result.mutable_data();
  for (int64_t block = 0; block < outer; ++block) {
    for (size_t row = 0; row < rows.size(); ++row) {
      std::memcpy(target, source + static_cast<size_t>(block * old_rows + rows[row]) * bytes, bytes);
      target += bytes;
    }
  }
  return Value(std::move(result));
}

}  // namespace parallax::generate
