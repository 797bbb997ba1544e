// SPDX-License-Identifier: Apache-2.0
// The tensor model against elements that are known: slices, measures, ranges, pictures, worst elements.
#include "gui/viewmodel/view_tensor.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace parallax {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from<float>(shape, std::span<const float>(values));
}

Tensor counted(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()));
  std::iota(values.begin(), values.end(), 0.0F);
  return floats(shape, values);
}

Limit limit_of(double rtol, double atol) {
  Limit limit;
  limit.rtol = rtol;
  limit.atol = atol;
  return limit;
}

TensorModel model_of(const Tensor& a, const Tensor& b = {}) { return TensorModel::make(a, b, limit_of(0, 0.5)).take(); }

Color pixel(const HeatImage& image, int row, int column) {
  const uint32_t p = image.pixels[static_cast<size_t>(row * image.width + column)];
  return {static_cast<uint8_t>(p), static_cast<uint8_t>(p >> 8), static_cast<uint8_t>(p >> 16)};
}

TEST(TensorModel, ShowsTheLastTwoAxesAndStepsThroughTheOthers) {
  TensorModel model = model_of(counted(Shape{2, 3, 4, 5}));
  EXPECT_EQ(model.rows(), 4);
  EXPECT_EQ(model.columns(), 5);
  EXPECT_EQ(model.slice_text(), "0,0,:,:");
  EXPECT_EQ(model.element_at(1, 2), 7);
  EXPECT_TRUE(model.step_slice(1));
  EXPECT_EQ(model.slice_text(), "0,1,:,:");
  EXPECT_EQ(model.element_at(0, 0), 20);
  EXPECT_TRUE(model.step_slice(1));
  EXPECT_TRUE(model.step_slice(1));  // carries into the axis before
  EXPECT_EQ(model.slice_text(), "1,0,:,:");
  EXPECT_EQ(model.element_at(3, 4), 79);
  EXPECT_EQ(model.element_at(4, 0), -1);
}

TEST(TensorModel, AnyTwoAxesMayBeShownAndNeverOneTwice) {
  TensorModel model = model_of(counted(Shape{2, 3, 4}));
  model.set_axes(0, 2);
  EXPECT_EQ(model.rows(), 2);
  EXPECT_EQ(model.element_at(1, 3), 15);
  model.set_axes(2, 2);
  EXPECT_NE(model.row_axis(), model.column_axis());
  model.set_axes(0, 9);
  EXPECT_LT(model.column_axis(), 3);
}

TEST(TensorModel, VectorsAreFoldedAndScalarsAreOneCell) {
  const TensorModel vector = model_of(counted(Shape{100}));
  EXPECT_EQ(vector.rows(), 2);
  EXPECT_EQ(vector.columns(), 64);
  EXPECT_EQ(vector.element_at(1, 35), 99);
  EXPECT_EQ(vector.element_at(1, 36), -1);
  EXPECT_EQ(vector.location_of(70), std::pair(int64_t{1}, int64_t{6}));
  const TensorModel scalar = model_of(floats(Shape{}, {2.5F}));
  EXPECT_EQ(scalar.rows() * scalar.columns(), 1);
  EXPECT_EQ(scalar.describe(0).a, "2.5");
}

TEST(TensorModel, ShowBringsAnElementIntoThePicture) {
  TensorModel model = model_of(counted(Shape{2, 3, 4, 5}));
  model.show(119);
  EXPECT_EQ(model.slice_text(), "1,2,:,:");
  EXPECT_EQ(model.location_of(119), std::pair(int64_t{3}, int64_t{4}));
  const std::vector<int64_t> index = {1, 2, 3, 4}, outside = {1, 2, 3, 5};
  EXPECT_EQ(model.element_of(index), 119);
  EXPECT_EQ(model.element_of(outside), -1);
}

TEST(TensorModel, MeasuresAreThoseOfTheComparison) {
  const TensorModel model =
      model_of(floats(Shape{1, 4}, {2, -4, 1, 0}), floats(Shape{1, 4}, {3, -4, std::nextafter(1.0F, 2.0F), 0.25F}));
  EXPECT_DOUBLE_EQ(model.number(TensorMode::difference, 0), -1);
  EXPECT_DOUBLE_EQ(model.number(TensorMode::absolute, 0), 1);
  EXPECT_DOUBLE_EQ(model.number(TensorMode::relative, 0), 0.5);
  EXPECT_DOUBLE_EQ(model.number(TensorMode::severity, 0), 2);
  EXPECT_DOUBLE_EQ(model.number(TensorMode::severity, 3), 0.5);
  EXPECT_DOUBLE_EQ(model.number(TensorMode::ulp, 2), 1);
  for (const TensorModeInfo& info : tensor_modes()) {
    EXPECT_EQ(model.number(info.mode, 1), info.mode < TensorMode::difference ? -4 : 0) << info.name;
  }
}

TEST(TensorModel, FloatsOfTwoWidthsAreLaidOverEachOther) {
  const std::vector<double> wide = {1 + 0x1p-24, -0x1p-150, 3};
  const Tensor b = Tensor::from<double>(Shape{1, 3}, std::span<const double>(wide));
  const TensorModel model = model_of(floats(Shape{1, 3}, {1, 0, 2}), b);
  EXPECT_EQ(model.type_text(), "float32 | float64[1,3]");
  EXPECT_EQ(model.number(TensorMode::difference, 0), -0x1p-24);
  EXPECT_EQ(model.number(TensorMode::difference, 1), 0x1p-150);
  EXPECT_EQ(model.number(TensorMode::relative, 2), 0.5);
  EXPECT_EQ(model.number(TensorMode::ulp, 0), 0.5);  // of float32
  EXPECT_EQ(model.number(TensorMode::ulp, 1), 0.5);  // whose numbers end at 2^-149
  EXPECT_EQ(model.worst(TensorMode::absolute, 1), std::vector<int64_t>{2});
  const ElementView view = model.describe(0);
  EXPECT_EQ(view.hex_a, "3f800000");
  EXPECT_EQ(view.hex_b, "3ff0000010000000");
  const TensorModel permuted = model_of(b, floats(Shape{1, 3}, {1, 0, 2}));
  EXPECT_EQ(permuted.number(TensorMode::ulp, 0), 0.5);
}

TEST(TensorModel, AnElementIsShownExactlyWithItsBits) {
  const TensorModel model = model_of(floats(Shape{1, 1}, {1}), floats(Shape{1, 1}, {1.5F}));
  const ElementView view = model.describe(0);
  EXPECT_EQ(view.index, "[0,0]");
  EXPECT_EQ(view.hex_a, "3f800000");
  EXPECT_EQ(view.hex_b, "3fc00000");
  EXPECT_EQ(view.b, "1.5");
  EXPECT_EQ(view.severity, "1");
}

TEST(TensorModel, EqualInfinitiesDifferByNothing) {
  const TensorModel model = model_of(floats(Shape{1, 2}, {kInf, kInf}), floats(Shape{1, 2}, {kInf, -kInf}));
  EXPECT_EQ(model.number(TensorMode::difference, 0), 0);
  EXPECT_EQ(model.number(TensorMode::severity, 1), INFINITY);
}

TEST(TensorModel, NaNOnBothSidesDiffersByNothing) {
  const TensorModel model = model_of(floats(Shape{1, 2}, {kNan, kNan}), floats(Shape{1, 2}, {kNan, 1}));
  EXPECT_EQ(model.number(TensorMode::absolute, 0), 0);
  EXPECT_TRUE(std::isnan(model.number(TensorMode::absolute, 1)));
  EXPECT_EQ(model.worst(TensorMode::absolute, 9), std::vector<int64_t>{1});
}

// They are no doubles, and differ all the same.
TEST(TensorModel, LargeIntegersDifferExactly) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  const std::vector<int64_t> a = {kLarge, kLarge, INT64_MIN}, b = {kLarge, kLarge + 1, INT64_MAX};
  const TensorModel model = model_of(Tensor::from<int64_t>(Shape{1, 3}, std::span<const int64_t>(a)),
                                     Tensor::from<int64_t>(Shape{1, 3}, std::span<const int64_t>(b)));
  EXPECT_EQ(model.number(TensorMode::difference, 0), 0);
  EXPECT_EQ(model.number(TensorMode::difference, 1), -1);
  EXPECT_EQ(model.number(TensorMode::severity, 1), INFINITY);
  EXPECT_EQ(model.number(TensorMode::absolute, 2), 18446744073709551615.0);
  EXPECT_EQ(model.worst(TensorMode::absolute, 9), (std::vector<int64_t>{1, 2}));  // exact: both at once
}

TEST(TensorModel, ComplexNumbersDifferByThePartThatDiffersMore) {
  const std::vector<std::complex<float>> a = {{1, 2}, {3, 4}}, b = {{1, 5}, {3, 4}};
  const TensorModel model =
      model_of(Tensor::from<std::complex<float>>(Shape{1, 2}, std::span<const std::complex<float>>(a)),
               Tensor::from<std::complex<float>>(Shape{1, 2}, std::span<const std::complex<float>>(b)));
  EXPECT_EQ(model.number(TensorMode::difference, 0), -3);
  EXPECT_EQ(model.number(TensorMode::severity, 0), 6);
  EXPECT_EQ(model.worst(TensorMode::absolute, 9), std::vector<int64_t>{0});
}

TEST(TensorModel, RangesIgnoreWhatIsNotFinite) {
  const TensorModel model = model_of(floats(Shape{1, 4}, {-2, kNan, 6, kInf}), floats(Shape{1, 4}, {-2, 0, 9, 0}));
  EXPECT_EQ(model.autofit(TensorMode::a).low, -2);
  EXPECT_EQ(model.autofit(TensorMode::a).high, 9);  // A and B share theirs
  EXPECT_EQ(model.autofit(TensorMode::difference).low, -model.autofit(TensorMode::difference).high);
  EXPECT_EQ(model.autofit(TensorMode::absolute).low, 0);
}

TEST(TensorModel, SpecialsHaveColorsOfTheirOwn) {
  const TensorModel model = model_of(floats(Shape{1, 4}, {kNan, kInf, -kInf, 1}));
  const HeatImage image = model.image(TensorMode::a, {0, 2});
  EXPECT_EQ(pixel(image, 0, 0), kNanColor);
  EXPECT_EQ(pixel(image, 0, 1), kPositiveInfColor);
  EXPECT_EQ(pixel(image, 0, 2), kNegativeInfColor);
  EXPECT_EQ(pixel(image, 0, 3), value_color(0.5));
}

TEST(TensorModel, ASingleBadElementIsSeenInAPictureOfFewerPixels) {
  std::vector<float> values(512 * 512, 1), other = values;
  other[300 * 512 + 77] = 2;
  const TensorModel model = model_of(floats(Shape{512, 512}, values), floats(Shape{512, 512}, other));
  for (const TensorMode mode : {TensorMode::absolute, TensorMode::severity, TensorMode::ulp}) {
    const ValueRange range = mode == TensorMode::absolute ? ValueRange{0, 1} : ValueRange{0, 2};
    const HeatImage image = model.image(mode, range, {}, 64);
    EXPECT_EQ(image.width, 64);
    EXPECT_EQ(image.block_rows, 8);
    const Color bad = pixel(image, 300 / 8, 77 / 8), good = pixel(image, 0, 0);
    EXPECT_NE(bad, good);
    EXPECT_EQ(std::count(image.pixels.begin(), image.pixels.end(), image.pixels[0]), 64 * 64 - 1);
  }
}

TEST(TensorModel, WorstElementsComeWorstFirst) {
  const TensorModel model =
      model_of(floats(Shape{2, 3}, {0, 0, 0, 0, 0, 0}), floats(Shape{2, 3}, {0, 3, kNan, 1, 0, -5}));
  EXPECT_EQ(model.worst(TensorMode::absolute, 10), (std::vector<int64_t>{2, 5, 1, 3}));
  EXPECT_EQ(model.worst(TensorMode::absolute, 2), (std::vector<int64_t>{2, 5}));
}

// As the inspector, which has it from the metrics.
TEST(TensorModel, TheWorstElementHasTheLargestErrorOverLimit) {
  const Tensor a = floats(Shape{1, 4}, {100, 1, 0, 5}), b = floats(Shape{1, 4}, {103, 2, 0.05F, 5});
  const TensorModel model = TensorModel::make(a, b, limit_of(0.1, 0.1)).take();
  const Metrics metrics = compare_views(a.view(), b.view(), {0.1, 0.1});
  for (const TensorMode mode : {TensorMode::a, TensorMode::difference, TensorMode::absolute, TensorMode::severity}) {
    EXPECT_EQ(model.worst(mode, 9), (std::vector<int64_t>{1, 2, 0}));
    EXPECT_EQ(model.worst(mode, 1).front(), model.element_of(metrics.worst_index));
  }
  EXPECT_EQ(model.number(TensorMode::severity, 1), metrics.severity);
  EXPECT_EQ(model.worst(TensorMode::relative, 9), (std::vector<int64_t>{2, 1, 0}));
  EXPECT_EQ(model.order_of_worst(TensorMode::relative), TensorMode::relative);
}

TEST(TensorModel, TheTwoLargestAxesAreShownWhereTheLastHoldOneElement) {
  const TensorModel pooled = model_of(counted(Shape{2, 672, 1, 1}));
  EXPECT_EQ(pooled.rows(), 2);
  EXPECT_EQ(pooled.columns(), 672);
  EXPECT_EQ(pooled.slice_text(), ":,:,0,0");
  EXPECT_EQ(model_of(counted(Shape{4, 9, 1, 7})).slice_text(), "0,:,0,:");
  EXPECT_EQ(model_of(counted(Shape{9, 9, 2, 3})).slice_text(), "0,0,:,:");
  EXPECT_EQ(model_of(counted(Shape{1, 1, 1})).slice_text(), "0,:,:");
}

TEST(TensorModel, AsOneSliceFiguresAreOfAllElements) {
  TensorModel model = model_of(counted(Shape{2, 3, 4, 5}));
  model.show(119);
  const TensorModel whole = model.as_one_slice();
  EXPECT_EQ(model.slice_count(), 20);
  EXPECT_EQ(whole.slice_count(), 120);
  EXPECT_EQ(whole.element_in_slice(119), 119);
  EXPECT_EQ(model.histogram(TensorMode::a).low, 100);
  EXPECT_EQ(whole.histogram(TensorMode::a).low, 0);
  EXPECT_EQ(whole.histogram(TensorMode::a).high, 119);
}

TEST(TensorModel, SpecialsAreThoseOfEitherSideWhereOneIsShown) {
  const TensorModel model = model_of(floats(Shape{4}, {1, kNan, 3, 4}), floats(Shape{4}, {1, 2, kInf, 4}));
  ElementFilter filter;
  filter.specials_only = true;
  for (const TensorMode mode : {TensorMode::a, TensorMode::b, TensorMode::absolute}) {
    EXPECT_EQ(model.worst(mode, 4, filter).size(), 2U);
    EXPECT_TRUE(model.passes(filter, mode, 1) && model.passes(filter, mode, 2));
    EXPECT_FALSE(model.passes(filter, mode, 0) || model.passes(filter, mode, 3));
  }
}

TEST(TensorModel, HistogramsCountEveryElementOnce) {
  const TensorModel model =
      model_of(floats(Shape{2, 3}, {0, 1, 2, 3, kNan, kInf}), floats(Shape{2, 3}, {0, 0, 0, 0, 0, 4}));
  const SliceHistogram histogram = model.histogram(TensorMode::a, 4);
  EXPECT_EQ(std::accumulate(histogram.a.begin(), histogram.a.end(), int64_t{0}), 4);
  EXPECT_EQ(std::accumulate(histogram.b.begin(), histogram.b.end(), int64_t{0}), 6);
  EXPECT_EQ(histogram.nan_a, 1);
  EXPECT_EQ(histogram.inf_a, 1);
  EXPECT_EQ(histogram.b.front(), 5);
  EXPECT_EQ(histogram.high, 4);
}

TEST(TensorModel, TilesShowEveryChannelOnceWithGapsBetweenThem) {
  TensorModel model = model_of(counted(Shape{2, 6, 4, 5}));
  ASSERT_TRUE(model.can_tile());
  model.set_index(0, 1);
  model.set_montage(true);
  EXPECT_EQ(model.montage_axis(), 1);
  EXPECT_EQ(model.slice_text(), "1,:,:,:");
  std::vector<int> seen(static_cast<size_t>(model.shape().element_count()), 0);
  int64_t gaps = 0;
  for (int64_t row = 0; row < model.rows(); ++row) {
    for (int64_t column = 0; column < model.columns(); ++column) {
      const int64_t element = model.element_at(row, column);
      if (element < 0) {
        ++gaps;
        continue;
      }
      ++seen[static_cast<size_t>(element)];
      EXPECT_EQ(model.location_of(element), std::pair(row, column));
    }
  }
  EXPECT_GT(gaps, 0);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i < 120 ? 0 : 1) << i;
  EXPECT_TRUE(model.step_slice(-1));
  EXPECT_EQ(model.slice_text(), "0,:,:,:");
  model.set_montage(false);
  EXPECT_EQ(model.rows(), 4);
  EXPECT_FALSE(model_of(counted(Shape{4, 5})).can_tile());
}

TEST(TensorModel, TheSliceIsAListRowByRow) {
  TensorModel model = model_of(counted(Shape{2, 3, 4}));
  model.set_index(0, 1);
  EXPECT_EQ(model.slice_count(), 12);
  EXPECT_EQ(model.element_in_slice(0), 12);
  EXPECT_EQ(model.element_in_slice(11), 23);
  EXPECT_EQ(model.element_in_slice(12), -1);
  model.set_axes(2, 1);
  EXPECT_EQ(model.element_in_slice(1), 16);  // down the first column
  model.set_montage(true);
  EXPECT_EQ(model.slice_count(), 24);
  EXPECT_EQ(model.element_in_slice(23), 23);
}

TEST(TensorModel, ABrushChoosesValuesOfEitherSideOrDifferences) {
  const TensorModel model = model_of(floats(Shape{1, 4}, {1, 2, 3, kNan}), floats(Shape{1, 4}, {1, 9, 3.5F, 0}));
  ElementFilter filter;
  filter.brush = ValueRange{8, 10};
  EXPECT_TRUE(model.passes(filter, TensorMode::a, 1));  // by B
  EXPECT_FALSE(model.passes(filter, TensorMode::a, 0));
  filter.brush = ValueRange{0.4, 0.6};
  EXPECT_TRUE(model.passes(filter, TensorMode::absolute, 2));
  EXPECT_FALSE(model.passes(filter, TensorMode::absolute, 1));
  EXPECT_FALSE(model.passes(filter, TensorMode::absolute, 3));
  int64_t total = 0;
  EXPECT_EQ(model.passing(filter, TensorMode::absolute, 10, total), std::vector<int64_t>{2});
  EXPECT_EQ(total, 1);
  EXPECT_EQ(model.worst(TensorMode::absolute, 10, filter), std::vector<int64_t>{2});
  const HeatImage image = model.image(TensorMode::absolute, {0, 8}, filter);
  const Color kept = pixel(image, 0, 2), left_out = pixel(image, 0, 1);
  EXPECT_EQ(kept, TensorModel::color_of(TensorMode::absolute, 0.5, {0, 8}));
  EXPECT_EQ(left_out.r, left_out.g);
  EXPECT_EQ(left_out.g, left_out.b);
  filter = {true, std::nullopt};
  EXPECT_EQ(model.passing(filter, TensorMode::absolute, 10, total), std::vector<int64_t>{3});
}

TEST(TensorModel, HistogramsOfDifferencesSpanPowersOfTen) {
  const TensorModel model = model_of(floats(Shape{1, 4}, {0, 0, 0, kNan}), floats(Shape{1, 4}, {0.001F, 0.1F, 0, 1}));
  const SliceHistogram histogram = model.histogram(TensorMode::absolute, 2);
  EXPECT_TRUE(histogram.is_logarithmic);
  EXPECT_EQ(histogram.a, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(histogram.zeros, 1);
  EXPECT_EQ(histogram.nan_a, 1);
  EXPECT_NEAR(histogram.at(0.5), 0.01, 1e-6);
  const SliceHistogram differences = model.histogram(TensorMode::difference, 3);
  EXPECT_FALSE(differences.is_logarithmic);
  EXPECT_FLOAT_EQ(static_cast<float>(differences.low), -0.1F);
  EXPECT_EQ(differences.high, 0);
}

TEST(TensorModel, TheAxisOfAHistogramIsChosen) {
  const TensorModel values = model_of(floats(Shape{1, 4}, {-1, 0.01F, 0.1F, 1}));
  EXPECT_EQ(values.histogram(TensorMode::a, 4).a, (std::vector<int64_t>{1, 0, 2, 1}));
  const SliceHistogram flipped = values.histogram(TensorMode::a, 4, true);
  EXPECT_TRUE(flipped.is_logarithmic);
  EXPECT_EQ(flipped.a, (std::vector<int64_t>{1, 0, 1, 2}));
  EXPECT_NEAR(flipped.at(0.5), 0, 1e-12);
  EXPECT_NEAR(flipped.at(0.75), 1e-3 * std::sinh(std::asinh(1e3) / 2), 1e-9);
  EXPECT_NEAR(flipped.at(1), 1, 1e-9);
  const TensorModel pair = model_of(floats(Shape{1, 3}, {0, 0, 0}), floats(Shape{1, 3}, {0.001F, 0.1F, 0}));
  const SliceHistogram linear = pair.histogram(TensorMode::absolute, 2, true);
  EXPECT_FALSE(linear.is_logarithmic);
  EXPECT_EQ(linear.a, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(linear.zeros, 0);
}

TEST(TensorModel, ChannelsHaveTheirOwnFigures) {
  const TensorModel model = model_of(floats(Shape{2, 2}, {1, 3, kNan, 5}), floats(Shape{2, 2}, {1, 4, 0, 5}));
  const auto rows = model.channels(0);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].mean, 2);
  EXPECT_EQ(rows[0].max_abs, 1);
  EXPECT_EQ(rows[0].std, 1);
  EXPECT_TRUE(std::isnan(rows[1].max_abs));
  EXPECT_EQ(model_of(counted(Shape{2, 3, 4, 5})).channel_axis(), 1);
  EXPECT_EQ(model_of(counted(Shape{2, 3, 4})).channel_axis(), 2);
  EXPECT_EQ(rows[1].nan, 1);
  EXPECT_EQ(rows[1].min, 5);
}

TEST(TensorModel, NarrowTypesAndIntegersAreRead) {
  Tensor packed = Tensor::zeros(DType::int4, Shape{1, 3}).take();
  packed.mutable_data()[0] = std::byte{0x87};  // 7, -8
  packed.mutable_data()[1] = std::byte{0x01};
  const TensorModel model = model_of(packed);
  EXPECT_EQ(model.number(TensorMode::a, 0), 7);
  EXPECT_EQ(model.number(TensorMode::a, 1), -8);
  EXPECT_EQ(model.describe(1).hex_a, "8");
  EXPECT_EQ(model.cell_text(TensorMode::a, 2), "1");
}

TEST(TensorModel, RefusesWhatCannotBeLaidOverEachOther) {
  EXPECT_EQ(TensorModel::make(counted(Shape{2, 3}), counted(Shape{3, 2}), {}).error().code, ErrorCode::usage);
  EXPECT_FALSE(TensorModel::make(counted(Shape{2}), Tensor::scalar<int32_t>(1), {}).ok());
}

}  // namespace
}  // namespace parallax
