// SPDX-License-Identifier: Apache-2.0
// Slices and elements.
#include "gui/viewmodel/view_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gui/viewmodel/view_tensor_internal.h"
#include "inspector/diff/metrics/metrics.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"

namespace parallax {
namespace {

constexpr std::array<TensorModeInfo, 7> kModes = {{
    {TensorMode::a, "a", "A", "the expected side", false},
    {TensorMode::b, "b", "B", "the other side", true},
    {TensorMode::difference, "difference", "A-B", "signed difference", true},
    {TensorMode::absolute, "absolute", "|A-B|", "absolute difference", true},
    {TensorMode::relative, "relative", "rel", "|a-b| / |a|", true},
    {TensorMode::ulp, "ulp", "ULP", "difference in units in the last place", true},
    {TensorMode::severity, "severity", "sev", "difference as a multiple of its limit", true},
}};

std::string bits_text(const TensorView& view, int64_t element) {
  if (is_sub_byte(view.dtype)) {
    return fmt::format("{:x}", load_packed(view.data, bits_of(view.dtype), element));
  }
  const auto size = static_cast<size_t>(bits_of(view.dtype) / 8);
  const auto* bytes = reinterpret_cast<const uint8_t*>(view.data) + static_cast<size_t>(element) * size;
  std::string text;
  for (size_t i = size; i > 0; --i) text += fmt::format("{:02x}", bytes[i - 1]);
  return text;
}

// The element alone, copied: what the comparison says of it is what it says of whole tensors.
Tensor single(const TensorView& view, int64_t element) {
  const Shape one{1};
  Tensor tensor = Tensor::zeros(view.dtype, one).take();
  if (is_sub_byte(view.dtype)) {
    const int bits = bits_of(view.dtype);
    store_packed(tensor.mutable_data(), bits, 0, load_packed(view.data, bits, element));
  } else {
    const auto size = static_cast<size_t>(bits_of(view.dtype) / 8);
    std::copy_n(view.data + static_cast<size_t>(element) * size, size, tensor.mutable_data());
  }
  return tensor;
}

Tensor single_double(const TensorView& view, int64_t element) {
  const Shape one{1};
  const double number = element_as_double(view, element);
  return Tensor::from<double>(one, std::span(&number, 1));
}

// Floats of two widths compare as the comparison takes them, as doubles; but a unit in the last place is the narrower
// one's, which is the one that rounded.
Metrics metrics_of(const Tensor& a, const Tensor& b, int64_t element, const Limit& limit) {
  const Tolerance tolerance{limit.rtol, limit.atol};
  if (a.dtype() == b.dtype()) return compare_views(single(a, element), single(b, element), tolerance);
  return compare_views(single_double(a, element), single_double(b, element), tolerance, nullptr,
                       narrower_of(a.dtype(), b.dtype()));
}

// True for equal element types, or floats, which doubles hold.
bool can_overlay(const Tensor& a, const Tensor& b) {
  const bool are_floats = is_floating(a.dtype()) && is_floating(b.dtype());
  return a.shape() == b.shape() && (a.dtype() == b.dtype() || are_floats);
}

// As exact as the command line prints it, with exponents as they stand in all other numbers.
std::string element_text(const TensorView& view, int64_t element) {
  const std::string text = element_to_string(view, element);
  return is_floating(view.dtype) ? trimmed_exponent(text) : text;
}

// The last two axes; the two largest, the later of equals, where those would show one row or one column.
std::pair<int, int> axes_to_show(const Shape& shape) {
  const auto last = static_cast<int>(shape.rank()) - 1;
  const auto length = [&](int axis) { return shape[static_cast<size_t>(axis)]; };
  if (length(last) > 1 && length(last - 1) > 1) return {last - 1, last};
  int first = last, second = -1;
  for (int axis = last - 1; axis >= 0; --axis) {
    if (length(axis) > length(first)) {
      second = std::exchange(first, axis);
    } else if (second < 0 || length(axis) > length(second)) {
      second = axis;
    }
  }
  return std::minmax({first, second});
}

double distance_of(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)) ? 0 : a - b; }

// Integers beyond 2^53 are no doubles; their distance is exact modulo 2^64.
double exact_distance_of(const Tensor& a, const Tensor& b, int64_t element) {
  const auto x = static_cast<uint64_t>(element_as_int64(a, element)),
             y = static_cast<uint64_t>(element_as_int64(b, element));
  if (x == y) return 0;
  const bool is_greater = a.dtype() == DType::uint64 ? x > y : static_cast<int64_t>(x) > static_cast<int64_t>(y);
  return is_greater ? static_cast<double>(x - y) : -static_cast<double>(y - x);
}

}  // namespace

std::span<const TensorModeInfo> tensor_modes() { return kModes; }

Result<TensorModel> TensorModel::make(Tensor a, Tensor b, Limit limit) {
  if (a.dtype() == DType::string) return usage_error("strings have no numbers to look at; select a value of numbers");
  if (b.defined() && !can_overlay(a, b))
    return usage_error(fmt::format("A is {}{} and B is {}{}; they must have one shape to be laid over each other",
                                   name_of(a.dtype()), a.shape().to_string(), name_of(b.dtype()),
                                   b.shape().to_string()));
  return TensorModel(std::move(a), std::move(b), limit);
}

TensorModel::TensorModel(Tensor a, Tensor b, Limit limit) : a_(std::move(a)), b_(std::move(b)), limit_(limit) {
  const auto rank = static_cast<int>(a_.shape().rank());
  if (rank >= 2) {
    std::tie(row_axis_, column_axis_) = axes_to_show(a_.shape());
  }
  index_.assign(a_.shape().rank(), 0);
  strides_.assign(a_.shape().rank(), 1);
  for (size_t axis = a_.shape().rank(); axis-- > 1;) strides_[axis - 1] = strides_[axis] * a_.shape()[axis];
}

TensorModel TensorModel::as_one_slice() const {
  const Shape all{a_.element_count()};
  TensorModel whole(a_.reshaped(all), b_.defined() ? b_.reshaped(all) : Tensor(), limit_);
  whole.stop_ = stop_;
  return whole;
}

std::string TensorModel::type_text() const {
  std::string text(name_of(a_.dtype()));
  if (b_.defined() && b_.dtype() != a_.dtype()) text += fmt::format(" | {}", name_of(b_.dtype()));
  return text + shape().to_string();
}

int64_t TensorModel::tile_rows() const {
  const int64_t count = a_.element_count();
  if (row_axis_ < 0) return (count + kFold - 1) / kFold;
  return a_.shape()[static_cast<size_t>(row_axis_)];
}

int64_t TensorModel::tile_columns() const {
  if (column_axis_ < 0) return std::min(a_.element_count(), kFold);
  return a_.shape()[static_cast<size_t>(column_axis_)];
}

int64_t TensorModel::tile_count() const {
  return montage_axis_ < 0 ? 1 : a_.shape()[static_cast<size_t>(montage_axis_)];
}

int64_t TensorModel::rows() const {
  if (montage_axis_ < 0) return tile_rows();
  const int64_t down = (tile_count() + tiles_across_ - 1) / tiles_across_;
  return std::max<int64_t>(0, down * (tile_rows() + 1) - 1);
}

int64_t TensorModel::columns() const {
  if (montage_axis_ < 0) return tile_columns();
  return std::max<int64_t>(0, std::min(tiles_across_, tile_count()) * (tile_columns() + 1) - 1);
}

void TensorModel::set_axes(int row_axis, int column_axis) {
  const auto rank = static_cast<int>(a_.shape().rank());
  if (rank < 2 || row_axis < 0 || column_axis < 0 || row_axis >= rank || column_axis >= rank) return;
  if (row_axis == column_axis) {
    if (row_axis == row_axis_) {
      row_axis = column_axis_;
    } else {
      column_axis = row_axis_;
    }
  }
  row_axis_ = row_axis;
  column_axis_ = column_axis;
  if (montage_axis_ >= 0) set_montage(true);
}

bool TensorModel::can_tile() const {
  for (size_t axis = 0; axis < index_.size(); ++axis) {
    const auto i = static_cast<int>(axis);
    if (i != row_axis_ && i != column_axis_ && a_.shape()[axis] > 1) return row_axis_ >= 0;
  }
  return false;
}

void TensorModel::set_montage(bool is_on) {
  montage_axis_ = -1;
  if (is_on && can_tile()) {
    for (size_t axis = 0; axis < index_.size(); ++axis) {
      const auto i = static_cast<int>(axis);
      if (i != row_axis_ && i != column_axis_ && a_.shape()[axis] > 1) montage_axis_ = i;
    }
  }
  arrange_tiles();
}

// So that the picture is about 1.5 times as wide as it is high, as panes are.
void TensorModel::arrange_tiles() {
  constexpr double kAspect = 1.5;
  const double height = static_cast<double>(tile_rows()) + 1, width = static_cast<double>(tile_columns()) + 1;
  const double across = std::sqrt(static_cast<double>(tile_count()) * height / width * kAspect);
  tiles_across_ = std::clamp<int64_t>(std::llround(across), 1, std::max<int64_t>(1, tile_count()));
}

void TensorModel::set_index(int axis, int64_t at) {
  const auto i = static_cast<size_t>(axis);
  if (i < index_.size()) index_[i] = std::clamp<int64_t>(at, 0, std::max<int64_t>(0, a_.shape()[i] - 1));
}

bool TensorModel::step_slice(int step) {
  for (auto axis = static_cast<int>(index_.size()) - 1; axis >= 0; --axis) {
    const auto i = static_cast<size_t>(axis);
    if (is_shown_whole(axis)) continue;
    const int64_t next = index_[i] + step;
    if (next >= 0 && next < a_.shape()[i]) {
      index_[i] = next;
      return true;
    }
    index_[i] = step > 0 ? 0 : std::max<int64_t>(0, a_.shape()[i] - 1);
  }
  return false;
}

std::string TensorModel::slice_text() const {
  if (row_axis_ < 0) return index_.empty() ? "" : ":";
  std::string text;
  for (size_t axis = 0; axis < index_.size(); ++axis) {
    const bool is_whole = is_shown_whole(static_cast<int>(axis));
    text += (axis == 0 ? "" : ",") + (is_whole ? std::string(":") : std::to_string(index_[axis]));
  }
  return text;
}

void TensorModel::show(int64_t element) {
  if (element < 0 || element >= a_.element_count()) return;
  const auto multi = multi_index(element);
  for (size_t axis = 0; axis < multi.size(); ++axis) index_[axis] = multi[axis];
}

int64_t TensorModel::base() const {
  int64_t element = 0;
  for (size_t axis = 0; axis < index_.size(); ++axis) {
    if (!is_shown_whole(static_cast<int>(axis))) element += index_[axis] * strides_[axis];
  }
  return element;
}

int64_t TensorModel::element_at(int64_t row, int64_t column) const {
  if (row < 0 || column < 0 || row >= rows() || column >= columns()) return -1;
  if (row_axis_ < 0) {
    const int64_t element = row * kFold + column;
    return element < a_.element_count() ? element : -1;
  }
  if (a_.element_count() == 0) return -1;
  int64_t element = base();
  if (montage_axis_ >= 0) {
    const int64_t high = tile_rows() + 1, wide = tile_columns() + 1;  // a tile and the gap next to it
    const int64_t tile = row / high * tiles_across_ + column / wide;
    row %= high;
    column %= wide;
    if (row + 1 == high || column + 1 == wide || tile >= tile_count()) return -1;
    element += tile * strides_[static_cast<size_t>(montage_axis_)];
  }
  return element + row * strides_[static_cast<size_t>(row_axis_)] +
         column * strides_[static_cast<size_t>(column_axis_)];
}

std::pair<int64_t, int64_t> TensorModel::location_of(int64_t element) const {
  if (row_axis_ < 0) return {element / kFold, element % kFold};
  const auto multi = multi_index(element);
  const int64_t tile = montage_axis_ < 0 ? 0 : multi[static_cast<size_t>(montage_axis_)];
  return {tile / tiles_across_ * (tile_rows() + 1) + multi[static_cast<size_t>(row_axis_)],
          tile % tiles_across_ * (tile_columns() + 1) + multi[static_cast<size_t>(column_axis_)]};
}

int64_t TensorModel::slice_count() const {
  if (row_axis_ < 0) return a_.element_count();
  return tile_rows() * tile_columns() * tile_count();
}

int64_t TensorModel::element_in_slice(int64_t position) const {
  if (position < 0 || position >= slice_count()) return -1;
  if (row_axis_ < 0) return position;
  const int64_t in_tile = tile_rows() * tile_columns(), at = position % in_tile;
  int64_t element = base() + at / tile_columns() * strides_[static_cast<size_t>(row_axis_)] +
                    at % tile_columns() * strides_[static_cast<size_t>(column_axis_)];
  if (montage_axis_ >= 0) element += position / in_tile * strides_[static_cast<size_t>(montage_axis_)];
  return element;
}

std::vector<int64_t> TensorModel::multi_index(int64_t element) const { return a_.shape().index_of(element); }

int64_t TensorModel::element_of(std::span<const int64_t> multi) const {
  if (multi.size() != index_.size()) return -1;
  int64_t element = 0;
  for (size_t axis = 0; axis < multi.size(); ++axis) {
    if (multi[axis] < 0 || multi[axis] >= a_.shape()[axis]) return -1;
    element += multi[axis] * strides_[axis];
  }
  return element;
}

bool TensorModel::is_short(TensorMode mode) const {
  // Units in the last place cost some fifty times what differences do.
  const bool is_slow = mode == TensorMode::ulp || is_complex(dtype());
  return slice_count() <= (is_slow ? int64_t{1} << 14 : int64_t{1} << 18);
}

// Equal infinities, and NaN against NaN, differ by nothing. Of complex numbers, by the part that differs more.
double TensorModel::difference(int64_t element) const {
  if (is_complex(dtype())) {
    const auto a = element_as_complex(a_, element), b = element_as_complex(b_, element);
    const double real = distance_of(a.real(), b.real()), imaginary = distance_of(a.imag(), b.imag());
    return std::abs(real) >= std::abs(imaginary) || std::isnan(real) ? real : imaginary;
  }
  if (dtype() == DType::int64 || dtype() == DType::uint64) return exact_distance_of(a_, b_, element);
  return distance_of(element_as_double(a_, element), element_as_double(b_, element));
}

// As metrics have it (diff/metrics/metrics.h): |a-b| / (atol + rtol |a|) of floats; all else is exact.
double TensorModel::severity(int64_t element, double distance) const {
  if (is_complex(dtype())) return metrics_of(a_, b_, element, limit_).severity;
  if (!is_floating(dtype()) || !std::isfinite(distance)) return kInfinity;
  return std::abs(distance) / (limit_.atol + limit_.rtol * std::abs(element_as_double(a_, element)));
}

double TensorModel::number(TensorMode mode, int64_t element) const {
  if (!b_.defined() || mode == TensorMode::a) return element_as_double(a_, element);
  if (mode == TensorMode::b) return element_as_double(b_, element);
  const double distance = difference(element);
  if (mode == TensorMode::difference) return distance;
  if (mode == TensorMode::absolute) return std::abs(distance);
  if (distance == 0) return 0;
  if (mode == TensorMode::ulp) return metrics_of(a_, b_, element, limit_).max_ulp;
  if (mode == TensorMode::severity) return severity(element, distance);
  return is_complex(dtype()) ? metrics_of(a_, b_, element, limit_).max_rel
                             : std::abs(distance) / std::abs(element_as_double(a_, element));
}

ElementView TensorModel::describe(int64_t element) const {
  ElementView view;
  view.index = fmt::format("[{}]", fmt::join(multi_index(element), ","));
  view.a = element_text(a_, element);
  view.hex_a = bits_text(a_, element);
  if (!b_.defined()) return view;
  view.b = element_text(b_, element);
  view.hex_b = bits_text(b_, element);
  view.difference = short_number(number(TensorMode::difference, element), 6);
  const Metrics metrics = metrics_of(a_, b_, element, limit_);
  view.relative = short_number(metrics.max_rel, 4);
  view.ulp = short_number(metrics.max_ulp, 4);
  view.severity = short_number(metrics.severity, 4);
  return view;
}

std::string TensorModel::cell_text(TensorMode mode, int64_t element) const {
  const bool is_value = mode == TensorMode::a || mode == TensorMode::b;
  if (is_value && !is_floating(dtype())) return element_to_string(mode == TensorMode::b && has_b() ? b_ : a_, element);
  return short_number(number(mode, element));
}

}  // namespace parallax
