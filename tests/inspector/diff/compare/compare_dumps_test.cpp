// SPDX-License-Identifier: Apache-2.0
// Two dumps compared: the same verdicts as of two running executors, by payload, sample or statistics.
#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/diff/compare/player.h"

namespace parallax {
namespace {

class Dumps : public ::testing::Test {
 protected:
  // Tests run side by side, each in a process of its own.
  Dumps()
      : folder_(std::filesystem::temp_directory_path() /
                ("parallax_compare_dumps_test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Dumps() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<const DumpReader> dump(const std::string& name, const std::function<void(Player&)>& fill,
                                         DumpWriterOptions options = {}) {
    options.ring_bytes = size_t{1} << 20;
    const std::string path = (folder_ / name).string();
    auto writer = DumpWriter::create(path, options).take();
    Player player(*writer, name);
    fill(player);
    player.play();
    EXPECT_TRUE(writer->finish().ok());
    return DumpReader::open(path).take();
  }

  static Comparison compare(const DumpReader& a, const DumpReader& b, Policy policy = {Tolerance{0, 0.25}, {}}) {
    return compare_dumps(a, b, policy).take();
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Dumps, NameTheFirstThatDiverges) {
  const auto a = dump(
      "a.plx", [](Player& player) { player.sees("x", tensor_of(1)).sees("y", tensor_of(1)).sees("z", tensor_of(1)); });
  const auto b = dump(
      "b.plx", [](Player& player) { player.sees("x", tensor_of(1)).sees("y", tensor_of(2)).sees("z", tensor_of(3)); });
  const Comparison comparison = compare(*a, *b);
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  EXPECT_EQ(comparison.first_divergence->path, "y");
  EXPECT_EQ(comparison.values[1].severity, 4);
  EXPECT_EQ(comparison.values[2].severity, 8);
  EXPECT_EQ(comparison.executions[0].name, "a.plx");
  EXPECT_EQ(compare(*a, *a).verdict, OverallVerdict::pass);
}

TEST_F(Dumps, SamplesAreNotAll) {
  DumpWriterOptions options;
  options.level = CaptureLevel::sample;
  options.sample_elements = 4;
  const auto with = [&](const std::string& name, int64_t other) {
    Tensor tensor = tensor_of(1, 64).tensor().clone().take();
    if (other >= 0) tensor.mutable_as<float>()[static_cast<size_t>(other)] += 9;
    return dump(
        name, [&](Player& player) { player.sees("y", tensor); }, options);
  };
  const auto a = with("a.plx", -1), same = with("same.plx", -1), b = with("b.plx", 5);  // 0, 16, 32 and 48 are kept
  EXPECT_EQ(compare(*a, *same).verdict, OverallVerdict::pass);
  EXPECT_EQ(compare(*a, *same).values[0].reason, "compared by a sample of elements");
  const Comparison comparison = compare(*a, *b);
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  EXPECT_EQ(comparison.values[0].metrics->max_abs, 0);
  EXPECT_EQ(comparison.values[0].reason, "compared by statistics");
}

// A sample compared with the whole value, and with a sample of another size: the elements that both have, named by
// their indices in the value.
TEST_F(Dumps, WithSamplesCompareTheElementsThatBothHave) {
  const auto with = [&](const std::string& name, int64_t kept, int64_t other, DType dtype = DType::float32) {
    DumpWriterOptions options;
    options.level = kept > 0 ? CaptureLevel::sample : CaptureLevel::all;
    options.sample_elements = std::max<int64_t>(1, kept);
    Tensor tensor = Tensor::zeros(dtype, Shape{4, 4, 4}).take();
    std::vector<double> numbers(64);
    for (size_t index = 0; index < 64; ++index) numbers[index] = static_cast<double>(index % 7);
    if (other >= 0) numbers[static_cast<size_t>(other)] = 7;
    store_doubles(tensor, 0, numbers);
    return dump(
        name, [&](Player& player) { player.sees("y", tensor); }, options);
  };
  const auto whole = with("whole.plx", 0, -1), eight = with("eight.plx", 8, -1), twelve = with("twelve.plx", 12, -1);
  for (const auto& [a, b, count] : {std::tuple(&whole, &eight, 8), {&eight, &whole, 8}, {&twelve, &eight, 4}}) {
    const Comparison same = compare(**a, **b);
    EXPECT_EQ(same.values[0].verdict, Verdict::pass);
    EXPECT_EQ(same.values[0].reason, "compared by a sample of elements");
    ASSERT_TRUE(same.values[0].metrics.has_value());
    EXPECT_EQ(same.values[0].metrics->count, count);
    EXPECT_EQ(same.values[0].shape, (std::vector<int64_t>{4, 4, 4}));
  }
  const auto wrong = with("wrong.plx", 8, 48);  // the seventh of every eighth, and the tenth of twelve
  for (const auto& other : {whole, eight, twelve}) {
    const ValueComparison value = compare(*other, *wrong).values[0];
    EXPECT_EQ(value.verdict, Verdict::diverged);
    EXPECT_EQ(value.reason, "compared by a sample of elements");
    EXPECT_EQ(value.metrics->worst_index, (std::vector<int64_t>{3, 0, 0}));
    EXPECT_EQ(value.metrics->worst_a, 48 % 7);
    EXPECT_EQ(value.metrics->worst_b, 7);
    EXPECT_EQ(value.metrics->mismatches, 1);
  }
  const auto hidden = with("hidden.plx", 0, 49);  // no sample has it: the statistics tell
  EXPECT_EQ(compare(*eight, *hidden).values[0].reason, "compared by statistics");
  const auto int4_values = with("int4.plx", 0, -1, DType::int4), few = with("few.plx", 8, 8, DType::int4);
  const ValueComparison packed = compare(*int4_values, *few).values[0];
  EXPECT_EQ(packed.metrics->worst_index, (std::vector<int64_t>{0, 2, 0}));
  EXPECT_EQ(packed.verdict, Verdict::diverged);
}

TEST_F(Dumps, SayWhyAValueWasNotCompared) {
  const auto a = dump("a.plx", [](Player& player) {
    player.sees("x", tensor_of(1))
        .sees("gone", tensor_of(1))
        .sees("only_a", tensor_of(1))
        .sees("shape", tensor_of(1, 4));
    player.sees("dtype", Tensor::scalar(1.0)).sees("end", tensor_of(1));
  });
  const auto b = dump("b.plx", [](Player& player) {
    player.sees("x", tensor_of(1))
        .sees("only_b", tensor_of(1))
        .sees("shape", tensor_of(1, 5))
        .sees("dtype", Tensor::scalar(1.0F));
    player.lacks("gone", {Absence::Kind::fused, "conv_relu"}).sees("end", tensor_of(1));
  });
  const Comparison comparison = compare(*a, *b);
  std::vector<std::string> lines;
  for (const ValueComparison& value : comparison.values) lines.push_back(value.path + ": " + value.reason);
  EXPECT_EQ(lines,
            (std::vector<std::string>{"x: ", "only_b: absent in A", "gone: fused into conv_relu", "only_a: absent in B",
                                      "shape: shape differs", "dtype: dtype differs", "end: "}));
  EXPECT_EQ(comparison.summary.compared, 2);
  const auto shape = std::ranges::find(comparison.values, "shape", &ValueComparison::path);
  ASSERT_NE(shape, comparison.values.end());
  EXPECT_EQ(reason_text(*shape), "shape differs: [4] in A and [5] in B");
}

TEST_F(Dumps, OfStatisticsAloneCompareByStatistics) {
  DumpWriterOptions statistics;
  statistics.level = CaptureLevel::stats;
  const auto full = [](float first) { return [first](Player& player) { player.sees("x", tensor_of(first, 1000)); }; };
  const auto baseline = dump("baseline.plx", full(1), statistics);
  const auto same = dump("same.plx", full(1)), other = dump("other.plx", full(3));
  const Comparison healthy = compare(*baseline, *same);
  EXPECT_EQ(healthy.verdict, OverallVerdict::pass);
  EXPECT_EQ(healthy.values[0].reason, "compared by statistics");
  EXPECT_FALSE(healthy.values[0].metrics.has_value());
  EXPECT_EQ(compare(*baseline, *other).verdict, OverallVerdict::diverged);
}

// Three tensors, each element times `factor`.
Value sequence_of(float factor) {
  SequenceValue sequence{TypeInfo::tensor(DType::float32), {}};
  for (int item = 0; item < 3; ++item) {
    Tensor tensor = tensor_of(static_cast<float>(item), 64).tensor().clone().take();
    for (float& element : tensor.mutable_as<float>()) element *= factor;
    sequence.items.emplace_back(std::move(tensor));
  }
  return sequence;
}

TEST_F(Dumps, OfStatisticsOfSequencesHaveTheLimitOfTheirTensors) {
  DumpWriterOptions statistics;
  statistics.level = CaptureLevel::stats;
  const auto with = [&](const std::string& name, float factor) {
    return dump(
        name, [&](Player& player) { player.sees("s", sequence_of(factor)); }, statistics);
  };
  const auto a = with("a.plx", 1), near = with("near.plx", 1 + 0x1p-22F), far = with("far.plx", 1.001F);
  const Comparison healthy = compare(*a, *near, {});
  EXPECT_EQ(healthy.verdict, OverallVerdict::pass);
  EXPECT_EQ(healthy.values[0].reason, "compared by statistics");
  EXPECT_GT(healthy.values[0].severity, 0);
  EXPECT_EQ(compare(*a, *far, {}).verdict, OverallVerdict::diverged);
}

TEST_F(Dumps, OfDoublesWithoutADeclaredTypeHaveTheLimitOfTheOtherSide) {
  const auto thirds = [](double factor) {
    std::vector<double> elements(64);
    for (size_t index = 0; index < elements.size(); ++index) elements[index] = factor * static_cast<double>(index) / 3;
    return elements;
  };
  const auto narrow = [&](double factor) {
    const std::vector<double> wide = thirds(factor);
    return Tensor::vector<float>(std::vector<float>(wide.begin(), wide.end()));
  };
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    return dump(name, [&](Player& player) { player.sees("y", tensor); });
  };
  const auto a = with("a:double", Tensor::vector<double>(thirds(1)));
  const auto floats = with("floats.plx", narrow(1)), other_floats = with("other.plx", narrow(1.001));
  const auto doubles = with("b:double", Tensor::vector<double>(thirds(1 + 1e-9)));
  EXPECT_EQ(compare(*a, *floats, {}).verdict, OverallVerdict::pass);
  EXPECT_EQ(compare(*a, *other_floats, {}).verdict, OverallVerdict::diverged);
  EXPECT_EQ(compare(*a, *doubles, {}).verdict, OverallVerdict::diverged);
}

TEST_F(Dumps, APermutationShowsInStatistics) {
  std::vector<float> forward(64), backward(64);
  for (size_t index = 0; index < forward.size(); ++index)
    forward[index] = backward[63 - index] = static_cast<float>(index);
  DumpWriterOptions statistics;
  statistics.level = CaptureLevel::stats;
  const auto a = dump(
      "a.plx", [&](Player& player) { player.sees("x", Tensor::vector<float>(forward)); }, statistics);
  const auto b = dump(
      "b.plx", [&](Player& player) { player.sees("x", Tensor::vector<float>(backward)); }, statistics);
  EXPECT_EQ(compare(*a, *b).verdict, OverallVerdict::diverged);
}

// One side counts its elements channels last, as images are; the other's are counted anew where it has them.
TEST_F(Dumps, APermutationShowsInStatisticsCountedInAnotherOrder) {
  Tensor forward = Tensor::zeros(DType::float32, {1, 4, 5, 3}).take(), backward = forward.clone().take();
  for (size_t index = 0; index < 60; ++index)
    forward.mutable_as<float>()[index] = backward.mutable_as<float>()[59 - index] = static_cast<float>(index);
  DumpWriterOptions statistics;
  statistics.level = CaptureLevel::stats;
  const auto image = dump(
      "image.plx",
      [&](Player& player) {
        player.value_info("x").is_feature_map = true;
        player.sees("x", forward);
      },
      statistics);
  const auto seen = [](const Tensor& tensor) { return [&tensor](Player& player) { player.sees("x", tensor); }; };
  const auto same = dump("same.plx", seen(forward)), other = dump("other.plx", seen(backward));
  for (const bool is_first : {false, true}) {
    const auto verdict = [&](const DumpReader& b) { return is_first ? compare(*image, b) : compare(b, *image); };
    EXPECT_EQ(verdict(*same).verdict, OverallVerdict::pass);
    EXPECT_EQ(verdict(*same).values[0].severity, 0);
    EXPECT_EQ(verdict(*other).verdict, OverallVerdict::diverged);
  }
  // Extremes and moments alone do not tell permutations apart.
  for (const Tensor& tensor : {forward, backward}) {
    const Comparison comparison = compare(*image, *dump("rows.plx", seen(tensor), statistics));
    EXPECT_EQ(comparison.values[0].verdict, Verdict::mistrusted);
    EXPECT_NE(comparison.values[0].reason.find("different orders"), std::string::npos);
  }
}

// Values that must be equal, too: sums in another order are not another value.
TEST_F(Dumps, SamplesWhoseStatisticsCountInAnotherOrderPass) {
  Tensor numbers = Tensor::zeros(DType::float32, {1, 16, 30, 31}).take();
  uint32_t state = 1;
  for (float& x : numbers.mutable_as<float>()) x = static_cast<float>(state = state * 1664525U + 1013904223U) / 1e9F;
  DumpWriterOptions sample;
  sample.level = CaptureLevel::sample;
  const auto with = [&](const std::string& name, bool is_feature_map, const Tensor& tensor) {
    return dump(
        name,
        [&](Player& player) {
          player.value_info("x").is_feature_map = is_feature_map;
          player.sees("x", tensor);
        },
        sample);
  };
  const auto image = with("image.plx", true, numbers), rows = with("rows.plx", false, numbers);
  const Policy exact{Tolerance{0, 0}, {}};
  EXPECT_EQ(compare(*image, *rows, exact).verdict, OverallVerdict::pass);
  EXPECT_EQ(compare(*rows, *image, exact).verdict, OverallVerdict::pass);
  Tensor other = numbers.clone().take();
  other.mutable_as<float>().back() += 100;  // not sampled
  EXPECT_EQ(compare(*image, *with("other.plx", false, other), exact).verdict, OverallVerdict::diverged);
}

TEST_F(Dumps, ValuesOfEqualNameMatchAcrossGraphs) {
  const auto a = dump("a.plx", [](Player& player) { player.sees("h", tensor_of(1)); });
  const auto b = dump("b.plx", [](Player& player) {
    player.sees("h", tensor_of(1), "fn.call//", {{Frame::Kind::call, "fn", -1}});
  });
  const Comparison comparison = compare(*a, *b);
  ASSERT_EQ(comparison.values.size(), 1U);
  EXPECT_EQ(comparison.values[0].matched_by, MatchedBy::name);
  EXPECT_EQ(comparison.values[0].b, "fn.call//h");
}

TEST_F(Dumps, WithNothingInCommonAreInconclusive) {
  const auto a = dump("a.plx", [](Player& player) { player.sees("x", tensor_of(1)); });
  const auto b = dump("b.plx", [](Player& player) { player.sees("y", tensor_of(2)); });
  EXPECT_EQ(compare(*a, *b).verdict, OverallVerdict::inconclusive);
}

TEST_F(Dumps, OfForeignNamesMatchByContent) {
  const auto a = dump("a.plx", [](Player& player) {
    player.sees("x", tensor_of(1)).sees("y", tensor_of(5)).sees("twice", tensor_of(7)).sees("again", tensor_of(7));
  });
  const auto b = dump(
      "b.plx", [](Player& player) { player.sees("p", tensor_of(5)).sees("q", tensor_of(1)).sees("r", tensor_of(7)); });
  const Comparison comparison = compare(*a, *b);
  std::map<std::string, ValueComparison> by_path;
  for (const ValueComparison& value : comparison.values) by_path[value.path] = value;
  EXPECT_EQ(by_path.at("x").b, "q");
  EXPECT_EQ(by_path.at("x").matched_by, MatchedBy::content);
  EXPECT_EQ(by_path.at("y").b, "p");
  EXPECT_EQ(by_path.at("twice").verdict, Verdict::not_compared);  // two could be meant
}

TEST_F(Dumps, ToleranceRulesGoByPath) {
  const auto a = dump("a.plx", [](Player& player) { player.sees("x", tensor_of(1)).sees("y", tensor_of(1)); });
  const auto b = dump("b.plx", [](Player& player) { player.sees("x", tensor_of(2)).sees("y", tensor_of(2)); });
  const Comparison comparison = compare(*a, *b, {std::nullopt, {{"x", {0, 2}}}});
  EXPECT_EQ(comparison.values[0].verdict, Verdict::pass);
  EXPECT_EQ(comparison.values[0].limit.from, LimitSource::user);
  EXPECT_EQ(comparison.values[1].verdict, Verdict::diverged);
  EXPECT_EQ(comparison.values[1].limit.from, LimitSource::table);
}

TEST(CompareExpected, ByNameThenByPosition) {
  const std::vector<NamedValue> expected = {{"y", tensor_of(1)}, {"", tensor_of(5)}},
                                actual = {{"z", tensor_of(1)}, {"y", tensor_of(1)}};
  const auto results = compare_expected(expected, actual, "cpu", {});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].b, "cpu: y");
  EXPECT_EQ(results[0].verdict, Verdict::pass);
  EXPECT_EQ(results[1].path, "y");
  EXPECT_EQ(results[1].verdict, Verdict::diverged);
}

TEST(CompareExpected, TheWiderLimitCountsUnlessTheUserGaveOne) {
  const std::vector<NamedValue> expected = {{"y", tensor_of(1)}}, actual = {{"y", tensor_of(1.25)}};
  EXPECT_EQ(compare_expected(expected, actual, "", {})[0].verdict, Verdict::diverged);
  EXPECT_EQ(compare_expected(expected, actual, "", {}, {{"y", {0.5, 0, LimitSource::noise}}})[0].verdict,
            Verdict::pass);
  EXPECT_EQ(compare_expected(expected, actual, "", {}, {{"x", {0.5, 0, LimitSource::noise}}})[0].verdict,
            Verdict::diverged);
  const Policy strict{Tolerance{1e-3, 0}, {}};
  EXPECT_EQ(compare_expected(expected, actual, "", strict, {{"y", {0.5, 0, LimitSource::noise}}})[0].verdict,
            Verdict::diverged);
}

}  // namespace
}  // namespace parallax
