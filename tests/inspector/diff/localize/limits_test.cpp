// SPDX-License-Identifier: Apache-2.0
// Limits of `auto` and the verdicts that follow: the same from running executors as from their dumps, with all values
// dumped or few; and those of values that were accepted as rounding.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/compare/stream_compare.h"
#include "inspector/diff/diagnose/find_causes.h"
#include "inspector/diff/localize/accumulated_rounding.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/exec/tee_observer.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace limits_test {

namespace fs = std::filesystem;
using testing::finished_model, testing::GraphBuilder, testing::sines;

struct Sides {
  Comparison streamed, dumped;
  std::shared_ptr<const DumpReader> a, b;
};

class Limits : public testing::DumpTest {
 protected:
  void run(const std::shared_ptr<const Model>& model, const std::string& with, const Tensor& x, Observer& comparer,
           const std::vector<std::string>& only, const std::string& file) const {
    const auto executor = make_executor(with).take();
    RunOptions run_options;
    run_options.observe_all = observe_all_;
    const auto session = executor->prepare(model, run_options).take();
    DumpWriterOptions options;
    options.only = only;
    const auto writer = DumpWriter::create((folder_ / file).string(), options).take();
    TeeObserver observer({writer.get(), &comparer});
    RunInfo info = describe_run(*executor, {}, model);
    info.model_sha256 = fmt::format("{}", fmt::ptr(model.get()));
    EXPECT_TRUE(observer.begin_run(info).ok());
    EXPECT_TRUE(session->run(std::vector<Value>{x}, observer).ok());
    EXPECT_TRUE(observer.end_run(true).ok());
    EXPECT_TRUE(writer->finish().ok());
  }

  // As `run MODEL --dump` does, and `diff` of what it writes.
  Sides compare(const std::shared_ptr<const Model>& model, const std::string& with_a, const std::string& with_b,
                const Tensor& x, const std::vector<std::string>& only = {}) const {
    StreamOptions options;
    options.only = only;
    StreamComparer comparer({}, options);
    // One after the other: what B shows first is compared first.
    run(model, with_a, x, comparer.side_a(), only, "a.plx");
    run(model, with_b, x, comparer.side_b(), only, "b.plx");
    Sides sides;
    sides.a = DumpReader::open((folder_ / "a.plx").string()).take();
    sides.b = DumpReader::open((folder_ / "b.plx").string()).take();
    sides.streamed = comparer.finish();
    sides.dumped = compare_dumps(*sides.a, *sides.b, {}, {}).take();
    return sides;
  }

  // Both models on the reference, their dumps compared and looked into.
  Comparison concluded(const std::shared_ptr<const Model>& a, const std::shared_ptr<const Model>& b, const Tensor& x,
                       const std::string& with_a = "reference", const std::string& with_b = "reference") const {
    NullObserver nobody;
    run(a, with_a, x, nobody, {}, "a.plx");
    run(b, with_b, x, nobody, {}, "b.plx");
    BlameRequest request;
    request.a = {DumpReader::open((folder_ / "a.plx").string()).take(), a, {}, {}};
    request.b = {DumpReader::open((folder_ / "b.plx").string()).take(), b, {}, {}};
    request.oracle = make_executor("reference:double").take();
    Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, {}, {}).take();
    EXPECT_TRUE(testing::diagnose(request, comparison).ok());
    return comparison;
  }

  bool observe_all_ = false;  // nothing is fused
};

const ValueComparison* value_at_path(const Comparison& comparison, std::string_view path) {
  const auto found = std::ranges::find(comparison.values, path, &ValueComparison::path);
  return found == comparison.values.end() ? nullptr : &*found;
}

// ---- Two executors ----

// Scores, a mask of -1e9, Softmax: what a cpu fuses into one node. After it another product.
std::shared_ptr<const Model> attention() {
  GraphBuilder builder(17);
  builder.input("x", "float32[1,2,8,16]");
  Tensor mask = Tensor::allocate(DType::float32, Shape{8, 8}).take();
  for (int64_t index = 0; index < 64; ++index)
    mask.mutable_as<float>()[static_cast<size_t>(index)] = index % 8 > index / 8 ? -1e9F : 0;
  builder.initializer("mask", std::move(mask)).initializer("scale", Tensor::scalar(0.25F));
  builder.initializer("w", sines(Shape{16, 16}, 0.4, 0.77));
  builder.node("MatMul", {"x", "w"}, {"v"});
  builder.node("Transpose", {"x"}, {"t"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  builder.node("MatMul", {"v", "t"}, {"scores"}).node("Mul", {"scores", "scale"}, {"scaled"});
  builder.node("Add", {"scaled", "mask"}, {"masked"});
  builder.node("Softmax", {"masked"}, {"weights"}, {{"axis", int64_t{-1}}});
  builder.node("MatMul", {"weights", "v"}, {"read"}).node("MatMul", {"read", "w"}, {"y"});
  for (const std::string name : {"scores", "scaled", "masked", "weights"}) builder.declare(name, "float32[1,2,8,8]");
  for (const std::string name : {"v", "read", "y"}) builder.declare(name, "float32[1,2,8,16]");
  builder.declare("t", "float32[1,2,16,8]");
  builder.output("y");
  return finished_model(builder);
}

// A sum and its norm, which a cpu computes at once. The sum is equal on both sides: what is added is too small.
std::shared_ptr<const Model> residual() {
  GraphBuilder builder(17);
  builder.input("x", "float32[8,64]").initializer("w", sines(Shape{64, 64}, 1e-12, 0.77));
  builder.initializer("scale", sines(Shape{64}, 1.0, 0.3)).initializer("bias", sines(Shape{64}, 1.0, 0.7));
  builder.node("MatMul", {"x", "w"}, {"product"}).node("Add", {"x", "product"}, {"sum"});
  builder.node("LayerNormalization", {"sum", "scale", "bias"}, {"norm"}, {{"axis", int64_t{-1}}});
  builder.node("MatMul", {"norm", "w"}, {"again"}).node("Add", {"sum", "again"}, {"y"}).output("y");
  for (const std::string name : {"product", "sum", "norm", "again", "y"}) builder.declare(name, "float32[8,64]");
  return finished_model(builder);
}

void expect_same(const Comparison& streamed, const Comparison& dumped) {
  ASSERT_EQ(streamed.values.size(), dumped.values.size());
  for (size_t index = 0; index < streamed.values.size(); ++index) {
    const ValueComparison &run = streamed.values[index], &diff = dumped.values[index];
    EXPECT_EQ(run.path, diff.path);
    EXPECT_EQ(run.verdict, diff.verdict) << run.path;
    EXPECT_EQ(run.severity, diff.severity) << run.path;
    EXPECT_EQ(run.limit.rtol, diff.limit.rtol) << run.path;
    EXPECT_EQ(run.limit.atol, diff.limit.atol) << run.path;
  }
}

TEST_F(Limits, AreTheSameInRunAndDiff) {
  const Sides residuals = compare(residual(), "reference", "cpu", sines(Shape{8, 64}, 1.0, 1.3));
  expect_same(residuals.streamed, residuals.dumped);
  const Sides sides = compare(attention(), "reference", "cpu", sines(Shape{1, 2, 8, 16}, 1.0, 1.3));
  ASSERT_EQ(value_at_path(sides.streamed, "masked")->verdict, Verdict::not_compared) << "nothing was fused";
  expect_same(sides.streamed, sides.dumped);
  EXPECT_LT(value_at_path(sides.dumped, "y")->limit.rtol, 1e-4);
}

TEST_F(Limits, DoNotDependOnTheReportedNode) {
  const Tensor x = sines(Shape{1, 2, 8, 16}, 1.0, 1.3);
  const Sides all = compare(attention(), "reference", "cpu", x),
              few = compare(attention(), "reference", "cpu", x, {"v"});
  ASSERT_EQ(few.streamed.values.size(), 2U);
  for (const std::string_view path : {"v", "y"}) {
    const ValueComparison* const reported = value_at_path(few.streamed, path);
    ASSERT_NE(reported, nullptr);
    EXPECT_EQ(reported->limit.atol, value_at_path(all.streamed, path)->limit.atol) << path;
  }
  // The dumps hold what was compared.
  EXPECT_EQ(few.dumped.verdict, OverallVerdict::pass);
  EXPECT_EQ(few.dumped.values.size(), 2U);
}

TEST_F(Limits, OfWhatOnlyMovesAllowForRoundingThatNobodySaw) {
  observe_all_ = true;
  for (const std::string op : {"Relu", "Neg", "Abs", "Identity", "Flatten"}) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,32]").initializer("w", sines(Shape{32, 32}, 0.4, 0.77));
    builder.node("MatMul", {"x", "w"}, {"product"}).node(op, {"product"}, {"moved"});
    builder.node("MatMul", {"moved", "w"}, {"y"}).output("y");
    for (const std::string name : {"product", "moved", "y"}) builder.declare(name, "float32[4,32]");
    const auto model = finished_model(builder);
    const Sides sides = compare(model, "reference", "cpu", sines(Shape{4, 32}, 1.0, 1.3), {"moved"});
    EXPECT_EQ(sides.dumped.verdict, OverallVerdict::pass) << op;
    const ValueComparison* const moved = value_at_path(sides.dumped, "moved");
    ASSERT_NE(moved, nullptr) << op;
    ASSERT_EQ(moved->verdict, Verdict::pass) << op;
    EXPECT_GT(moved->limit.atol, 0) << op;
    EXPECT_LT(moved->limit.rtol, 1e-4) << op;
  }
}

// Large numbers, whose rounding is large as well: in relation to them it is what it is in the body.
TEST_F(Limits, OfASequenceMapAreThoseOfItsBody) {
  GraphBuilder body(17), builder(17);
  body.input("t", "float32[1,64]").initializer("w", sines(Shape{64, 64}, 1e6, 0.77));
  body.node("MatMul", {"t", "w"}, {"product"}).node("Relu", {"product"}, {"o"}).output("o");
  for (const std::string name : {"product", "o"}) body.declare(name, "float32[1,64]");
  const std::shared_ptr<Graph> linked = body.body();
  link_graph(*linked);
  builder.input("x", "float32[4,64]").node("SplitToSequence", {"x"}, {"s"}, {{"axis", int64_t{0}}});
  builder.node("SequenceMap", {"s"}, {"e"}, {{"body", linked}});
  builder.node("ConcatFromSequence", {"e"}, {"y"}, {{"axis", int64_t{0}}}).output("y");
  const Sides sides = compare(finished_model(builder), "reference", "cpu", sines(Shape{4, 64}, 1.0, 1.3));
  expect_same(sides.streamed, sides.dumped);
  const ValueComparison *inside = value_at_path(sides.dumped, "SequenceMap_1.body[0]//o"),
                        *outside = value_at_path(sides.dumped, "e");
  ASSERT_TRUE(inside != nullptr && outside != nullptr);
  EXPECT_EQ(outside->verdict, Verdict::pass) << outside->severity;
  EXPECT_GE(outside->limit.rtol, 0.9 * inside->limit.rtol);
  EXPECT_LT(outside->limit.rtol, 4 * inside->limit.rtol);
}

// ---- Two models ----

// Scores of about 1 next to a mask of -1e4, or next to boxes in pixels. B multiplies the scores by a factor more.
std::shared_ptr<const Model> head(bool is_masked, float factor, bool is_folded = false) {
  GraphBuilder builder(17);
  builder.input("x", "float32[8,16]");
  const double scale = is_folded ? 0.3 * static_cast<double>(factor) : 0.3;
  builder.initializer("w", sines(Shape{16, 8}, scale, 0.77)).initializer("v", sines(Shape{16, 4}, 0.5, 1.1));
  builder.initializer("factor", Tensor::scalar(factor)).initializer("size", Tensor::scalar(1280.0F));
  builder.initializer("low", Tensor::scalar(-1e4F));
  Tensor hidden = Tensor::allocate(DType::bool_, Shape{8, 8}).take();
  for (int64_t index = 0; index < 64; ++index)
    hidden.mutable_as<bool>()[static_cast<size_t>(index)] = index % 8 > index / 8;
  builder.initializer("hidden", std::move(hidden));
  const bool has_factor = factor != 1 && !is_folded;
  builder.node("MatMul", {"x", "w"}, {"scores"});
  if (has_factor) builder.node("Mul", {"scores", "factor"}, {"scaled"});
  const std::string read = has_factor ? "scaled" : "scores";
  if (is_masked) {
    builder.node("Where", {"hidden", "low", read}, {"y"});
  } else {
    builder.node("MatMul", {"x", "v"}, {"corners"}).node("Sigmoid", {"corners"}, {"shares"});
    builder.node("Mul", {"shares", "size"}, {"boxes"});
    builder.node("Concat", {"boxes", read}, {"y"}, {{"axis", int64_t{1}}});
  }
  builder.output("y");
  return finished_model(builder);
}

TEST_F(Limits, AnInsertedNodeShowsNextToLargerElements) {
  const Tensor x = sines(Shape{8, 16}, 1.0, 1.3);
  for (const bool is_masked : {true, false}) {
    const Comparison comparison = concluded(head(is_masked, 1), head(is_masked, 1.001F), x);
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << is_masked;
    ASSERT_FALSE(comparison.causes.empty());
    EXPECT_EQ(comparison.causes.front().op, "Mul") << comparison.causes.front().why;
  }
}

TEST_F(Limits, AFoldedFactorIsRoundingNextToLargerElements) {
  const Tensor x = sines(Shape{8, 16}, 1.0, 1.3);
  for (const bool is_masked : {true, false}) {
    const Comparison comparison = concluded(head(is_masked, 0.7F), head(is_masked, 0.7F, true), x);
    EXPECT_EQ(comparison.verdict, OverallVerdict::pass) << is_masked;
    for (const ValueComparison& value : comparison.values) {
      EXPECT_TRUE(value.verdict != Verdict::pass || value.severity <= 1 || value.accepted.has_value()) << value.path;
    }
  }
}

// Moves elements alone, and none of them by a computation that would round: in float32; in float16; and in float32
// between casts, as converters leave operators that they do not know in float16.
enum class MovedIn : uint8_t { floats, float16s, blocked };

std::shared_ptr<const Model> moved(MovedIn how, int64_t start, bool has_round_trip = false) {
  const bool is_cast = how != MovedIn::floats;
  constexpr int64_t kHalf = 10, kFloat = 1;
  GraphBuilder builder(17);
  builder.input("x", "float32[4,8]").numbers("start", {start}).numbers("end", {start + 2}).numbers("axis", {0});
  std::string last = "x";
  const auto node = [&](const std::string& op, const std::string& made, std::string_view type, int64_t to = 0) {
    const bool is_slice = op == "Slice";
    builder.node(op, is_slice ? std::vector<std::string>{last, "start", "end", "axis"} : std::vector{last}, {made});
    if (op == "Cast") builder.last_node().attributes.push_back(int_attribute("to", to));
    builder.declare(made, type);
    last = made;
  };
  if (is_cast || has_round_trip) node("Cast", "narrow", "float16[4,8]", kHalf);
  if (how == MovedIn::blocked || has_round_trip) node("Cast", "wide", "float32[4,8]", kFloat);
  const std::string_view type = how == MovedIn::float16s ? "float16[2,8]" : "float32[2,8]";
  node("Slice", is_cast ? "moved" : "part", type);
  node("Neg", is_cast ? "transposed" : "y", type);
  if (how == MovedIn::blocked) node("Cast", "narrow_again", "float16[2,8]", kHalf);
  if (is_cast) node("Cast", "y", "float32[2,8]", kFloat);
  return builder.output("y"), finished_model(builder);
}

TEST_F(Limits, RoundsWhatIsMovedInHalfPrecision) {
  const Tensor x = sines(Shape{4, 8}, 1.0, 1.3);
  for (const MovedIn how : {MovedIn::float16s, MovedIn::blocked}) {
    const Comparison same = concluded(moved(MovedIn::floats, 1), moved(how, 1), x);
    EXPECT_EQ(same.verdict, OverallVerdict::pass);
    EXPECT_LT(value_at_path(same, "y")->limit.rtol, 0.02);
    const Comparison other = concluded(moved(MovedIn::floats, 1), moved(how, 2), x);
    EXPECT_EQ(other.verdict, OverallVerdict::diverged);
    ASSERT_FALSE(other.causes.empty());
    EXPECT_EQ(other.causes.front().op, "Slice") << other.causes.front().why;
  }
  const Comparison through_half = concluded(moved(MovedIn::floats, 1), moved(MovedIn::floats, 1, true), x);
  EXPECT_EQ(through_half.verdict, OverallVerdict::diverged) << "a model of floats does not go through float16";
}

// Nothing that is computed is a float.
std::shared_ptr<const Model> index_of_largest(bool is_in_half) {
  constexpr int64_t kHalf = 10;
  GraphBuilder builder(17);
  builder.input("x", "float32[4,8]");
  if (is_in_half) {
    builder.node("Cast", {"x"}, {"narrow"});
    builder.last_node().attributes.push_back(int_attribute("to", kHalf));
    builder.declare("narrow", "float16[4,8]");
  }
  builder.node("ArgMax", {is_in_half ? "narrow" : "x"}, {"y"}).declare("y", "int64[1,8]");
  return builder.output("y"), finished_model(builder);
}

TEST_F(Limits, RoundsWhatIsReadInHalfPrecisionThoughNothingIsComputedInIt) {
  const Tensor x = sines(Shape{4, 8}, 1.0, 1.3);
  EXPECT_EQ(concluded(index_of_largest(false), index_of_largest(true), x).verdict, OverallVerdict::pass);
  EXPECT_EQ(concluded(index_of_largest(true), index_of_largest(false), x).verdict, OverallVerdict::pass);
}

// Rows of a constant, transposed: nothing is computed. `change`: of one element, in relation to its size. In doubles,
// the constant may be stored in floats all the same.
std::shared_ptr<const Model> picked(DType dtype, double change = 0, DType stored_in = DType::undefined) {
  constexpr int64_t kDouble = 11;
  if (stored_in == DType::undefined) stored_in = dtype;
  const std::string type(name_of(dtype));
  std::vector<double> numbers;
  for (int index = 0; index < 20; ++index) numbers.push_back(std::sin(1.3 * (index + 1)));
  numbers[6] *= 1 + change;
  Tensor rows = Tensor::allocate(stored_in, Shape{5, 4}).take();
  store_doubles(rows, 0, numbers);
  GraphBuilder builder(17);
  builder.input("x", "int64[5]").initializer("w", std::move(rows));
  builder.declare("w", fmt::format("{}[5,4]", name_of(stored_in)));
  if (stored_in != dtype) {
    builder.node("Cast", {"w"}, {"wide"}).declare("wide", type + "[5,4]");
    builder.last_node().attributes.push_back(int_attribute("to", kDouble));
  }
  builder.node("Gather", {stored_in == dtype ? "w" : "wide", "x"}, {"some"}).declare("some", type + "[5,4]");
  builder.node("Transpose", {"some"}, {"y"}).declare("y", type + "[4,5]");
  return builder.output("y"), finished_model(builder);
}

TEST_F(Limits, WhatIsMovedInFloatsIsRoundedToThem) {
  const Tensor x = Tensor::vector<int64_t>(std::vector<int64_t>{4, 3, 2, 1, 0});
  EXPECT_EQ(concluded(picked(DType::float64), picked(DType::float32), x).verdict, OverallVerdict::pass);
  EXPECT_EQ(concluded(picked(DType::float32), picked(DType::float64), x).verdict, OverallVerdict::pass);
  const Comparison other = concluded(picked(DType::float64), picked(DType::float32, 4e-7), x);
  EXPECT_EQ(other.verdict, OverallVerdict::diverged);
  ASSERT_EQ(other.causes.size(), 1U);
  EXPECT_EQ(other.causes.front().why.find("it reads another constant 'w': element [1,2] is "), 0U)
      << "and not all that is rounded: " << other.causes.front().why;
  // A model in doubles may not: that this is rounding is seen by looking into it.
  const Comparison stored = concluded(picked(DType::float64), picked(DType::float64, 0, DType::float32), x);
  EXPECT_TRUE(value_at_path(stored, "y")->accepted.has_value());
  EXPECT_EQ(value_at_path(stored, "y")->limit.from, LimitSource::table);
}

// A product with a bias and an activation, which `cpu` runs as one; a weight may be a little off.
std::shared_ptr<const Model> activated_product(float change) {
  GraphBuilder builder(17);
  Tensor weights = sines(Shape{32, 16}, 0.2, 0.77);
  weights.mutable_as<float>()[3] += change;
  builder.input("x", "float32[4,32]").initializer("w", weights).initializer("b", sines(Shape{16}, 0.1, 0.3));
  builder.node("MatMul", {"x", "w"}, {"product"}).node("Add", {"product", "b"}, {"sum"}).node("Relu", {"sum"}, {"y"});
  for (const std::string name : {"product", "sum", "y"}) builder.declare(name, "float32[4,16]");
  return builder.output("y"), finished_model(builder);
}

// Though what is made with it differs by no more than rounding.
TEST_F(Limits, AnotherWeightIsADivergenceWhereItsReaderIsFused) {
  const Tensor x = sines(Shape{4, 32}, 1.0, 1.3);
  for (const char* with_b : {"reference", "cpu"}) {
    for (const char* with_a : {"reference", "cpu"}) {
      const Comparison other = concluded(activated_product(0), activated_product(1e-6F), x, with_a, with_b);
      EXPECT_EQ(value_at_path(other, "w")->verdict, Verdict::diverged) << with_a << ", " << with_b;
      EXPECT_EQ(value_at_path(other, "y")->verdict, Verdict::pass) << with_a << ", " << with_b;
      const Comparison same = concluded(activated_product(0), activated_product(0), x, with_a, with_b);
      EXPECT_EQ(same.verdict, OverallVerdict::pass) << with_a << ", " << with_b;
    }
  }
}

// ---- Accepted as rounding ----

TEST(AcceptedAsRounding, NotWhereOneSideHoldsNaN) {
  Comparison comparison;
  ValueComparison& value = comparison.values.emplace_back();
  value.verdict = Verdict::diverged;
  value.severity = std::numeric_limits<double>::infinity();  // the limit is 0, and element 0 differs a little
  value.metrics.emplace();
  value.metrics->worst_index = {0};
  value.metrics->worst_a = 1;
  value.metrics->worst_b = 1.0000001;
  EXPECT_FALSE(diff::find_left_range(comparison).has_value());
  value.metrics->nan_b = 1;
  const auto cause = diff::find_left_range(comparison);
  ASSERT_TRUE(cause.has_value());
  EXPECT_EQ(cause->side, Side::b);
  EXPECT_NE(cause->why.find("1 and 0 in B"), std::string::npos) << cause->why;
}

}  // namespace limits_test
}  // namespace parallax
