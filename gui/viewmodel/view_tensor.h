// SPDX-License-Identifier: Apache-2.0
// TensorModel: one value of both sides, element by element: which two axes are looked at, in which measure, in which
// range, and the element at each position.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/viewmodel/view_colors.h"
#include "inspector/base/cancel.h"
#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

enum class TensorMode : uint8_t { a, b, difference, absolute, relative, ulp, severity };
struct TensorModeInfo {
  TensorMode mode;
  std::string_view name;   // in states
  std::string_view title;  // on buttons
  std::string_view meaning;
  bool needs_both;
};
std::span<const TensorModeInfo> tensor_modes();

struct ValueRange {
  double low = 0;
  double high = 1;
  bool operator==(const ValueRange&) const = default;
};

constexpr int32_t kMostPixels = 1024;  // of a side of a heat map

// Colors of a slice, one pixel an element, or a block of elements where there are more than pixels: then the pixel
// shows the worst of its block, so that a single bad element is seen.
struct HeatImage {
  int32_t width = 0, height = 0;
  std::vector<uint32_t> pixels;  // RGBA, red in the lowest byte
  int64_t block_rows = 1, block_columns = 1;
};

struct ElementView {
  std::string index;  // "[0,3,5]"
  std::string a, b;
  std::string hex_a, hex_b;  // bits, most significant first
  std::string difference, relative, ulp, severity;
};

// Which elements count: the others are grayed in pictures and left out of lists.
struct ElementFilter {
  bool specials_only = false;       // NaN and infinities, of either side where A or B is shown
  std::optional<ValueRange> brush;  // of A or B where these are shown, else of the measure
  bool is_set() const { return specials_only || brush.has_value(); }
  bool operator==(const ElementFilter&) const = default;
};

// Counts of the slice's elements in equal bins of what is measured: values of both sides, or one difference. Numbers
// that are not finite are counted separately, as are zeros on a logarithmic axis of magnitudes.
struct SliceHistogram {
  double low = 0, high = 0;  // of values, not of logarithms
  bool is_logarithmic = false;
  double unit = 0;            // of numbers of both signs the axis is asinh(value / unit): about linear below it; else 0
  std::vector<int64_t> a, b;  // b: of values only
  int64_t nan_a = 0, nan_b = 0, inf_a = 0, inf_b = 0;
  int64_t zeros = 0;
  double location(double value) const;  // on the axis
  double at(double share) const;        // the value at a share of the axis, 0 to 1
};

// Figures of the elements at one index of an axis.
struct ChannelRow {
  int64_t index = 0;
  double min = 0, max = 0, mean = 0, std = 0;  // of A's finite elements
  double max_abs = 0;                          // of |a-b|
  int64_t nan = 0, inf = 0;                    // of A
};

class TensorModel {
 public:
  // B may be undefined: then only the first is shown, in mode a or b by whose it is. Floats of two widths are laid over
  // each other. Errors: usage, when the shapes or else the element types differ, or for strings, whose elements have no
  // scale.
  static Result<TensorModel> make(Tensor a, Tensor b, Limit limit);

  bool has_b() const { return b_.defined(); }
  const Tensor& a() const { return a_; }
  const Tensor& b() const { return b_; }
  DType dtype() const { return a_.dtype(); }
  const Shape& shape() const { return a_.shape(); }
  std::string type_text() const;  // "float32[2,3]", "float32 | float64[2,3]"

  // The picture: the last two axes, or the two largest where one of those has a single element. A tensor of rank 0 or 1
  // is laid in rows of kFold elements.
  static constexpr int64_t kFold = 64;
  int64_t rows() const;
  int64_t columns() const;
  int row_axis() const { return row_axis_; }
  int column_axis() const { return column_axis_; }
  void set_axes(int row_axis, int column_axis);              // swaps where they would be equal
  std::span<const int64_t> index() const { return index_; }  // of the axes that are not shown
  void set_index(int axis, int64_t at);                      // kept within the axis
  bool step_slice(int step);                                 // along the last axis not shown; false where there is none
  // All slices along the last axis that is not shown, side by side as tiles, with a gap of one element.
  bool can_tile() const;
  void set_montage(bool is_on);
  int montage_axis() const { return montage_axis_; }  // -1: one slice alone
  int64_t tiles_across() const { return tiles_across_; }
  std::string slice_text() const;  // "0,3,:,:" as --slice of `parallax tensor` takes it
  void show(int64_t element);      // brings an element into the picture
  // Index of the element at a position; -1 outside.
  int64_t element_at(int64_t row, int64_t column) const;
  std::pair<int64_t, int64_t> location_of(int64_t element) const;  // its row and column, if shown
  std::vector<int64_t> multi_index(int64_t element) const;
  int64_t element_of(std::span<const int64_t> multi_index) const;  // -1 when it is none

  // A copy whose slice holds all elements, in order: figures of it are of the whole value, and elements are the same.
  TensorModel as_one_slice() const;
  // True where the figures of the whole slice in this measure take so little time that a frame can wait for them.
  bool is_short(TensorMode mode) const;
  // Copies that compute in other threads end early, with results of no use.
  void stop_when(CancelToken token) { stop_ = std::move(token); }

  double number(TensorMode mode, int64_t element) const;
  ElementView describe(int64_t element) const;
  std::string cell_text(TensorMode mode, int64_t element) const;
  ValueRange autofit(TensorMode mode) const;  // of the slice; symmetric about 0 for differences
  HeatImage image(TensorMode mode, ValueRange range, const ElementFilter& filter = {},
                  int32_t greatest_side = kMostPixels, bool is_dark = false) const;
  static constexpr size_t kBins = 64;
  // The axis is logarithmic for measures of magnitude, which span many powers of ten; `flips_axis`: for the others.
  SliceHistogram histogram(TensorMode mode, size_t bins = kBins, bool flips_axis = false) const;
  bool passes(const ElementFilter& filter, TensorMode mode, int64_t element) const;
  // Elements of the slice that are out of the ordinary in this measure, worst first, at most `count`.
  std::vector<int64_t> worst(TensorMode mode, size_t count, const ElementFilter& filter = {}) const;
  // The measure that they are ordered by: error / limit, which decides what a comparison calls worst, unless relative
  // errors or units in the last place are looked at.
  TensorMode order_of_worst(TensorMode mode) const;
  // The slice as a list, row by row.
  int64_t slice_count() const;
  int64_t element_in_slice(int64_t position) const;
  // Elements of the slice that pass, in its order, at most `count`; `total` is how many there are.
  std::vector<int64_t> passing(const ElementFilter& filter, TensorMode mode, size_t count, int64_t& total) const;
  std::vector<ChannelRow> channels(int axis) const;  // of the whole tensor
  int channel_axis() const;  // that is most likely to hold channels: 1 of images, else the last; -1 for a scalar
  static Color color_of(TensorMode mode, double number, ValueRange range, bool is_dark = false);

 private:
  TensorModel(Tensor a, Tensor b, Limit limit);
  double difference(int64_t element) const;
  double severity(int64_t element, double distance) const;
  template <class Visit>
  void for_each(Visit visit) const;  // visit(row, column, element) over the slice
  int64_t base() const;              // of the slice: the element at row 0, column 0
  int64_t tile_rows() const;
  int64_t tile_columns() const;
  int64_t tile_count() const;
  void arrange_tiles();
  bool is_shown_whole(int axis) const { return axis == row_axis_ || axis == column_axis_ || axis == montage_axis_; }

  Tensor a_, b_;
  Limit limit_;
  int row_axis_ = -1, column_axis_ = -1, montage_axis_ = -1;
  int64_t tiles_across_ = 1;
  std::vector<int64_t> index_;
  std::vector<int64_t> strides_;
  CancelToken stop_;
};

}  // namespace parallax
