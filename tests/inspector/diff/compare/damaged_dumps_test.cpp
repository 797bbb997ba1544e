// SPDX-License-Identifier: Apache-2.0
// Dumps with damaged payloads: what is damaged is said and left out, everything else is compared as if nothing were.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/dump/dump_writer.h"
#include "tests/inspector/diff/compare/player.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

const std::string kGoldenDump = PX_SOURCE_DIR "/tests/inspector/dump/golden_v1.plx";

class DamagedDumps : public ::testing::Test {
 protected:
  DamagedDumps() : folder_(fs::temp_directory_path() / ("parallax_damaged_dumps_test-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~DamagedDumps() override { fs::remove_all(folder_); }

  // A copy of a dump in which one bit of each named value's payload is another.
  std::shared_ptr<const DumpReader> damaged(const DumpReader& intact, const std::vector<std::string>& paths) {
    std::ifstream file(intact.path(), std::ios::binary);
    std::string contents{std::istreambuf_iterator<char>(file), {}};
    for (const std::string& path : paths) {
      const Tensor tensor = intact.load(intact.find(path)).take().tensor();
      const std::string_view bytes(reinterpret_cast<const char*>(tensor.view().data), tensor.size_bytes());
      const size_t at = contents.find(bytes);
      EXPECT_NE(at, std::string::npos) << path;
      EXPECT_EQ(contents.find(bytes, at + 1), std::string::npos) << path << " is there twice";
      contents[at] ^= 1;
    }
    const std::string target = (folder_ / ("damaged-" + std::to_string(++count_) + ".plx")).string();
    std::ofstream(target, std::ios::binary) << contents;
    return DumpReader::open(target).take();
  }

  // Values of this name that begin with this number, in this order.
  std::shared_ptr<const DumpReader> dump(const std::string& name,
                                         const std::vector<std::pair<std::string, float>>& values) {
    const std::string path = (folder_ / name).string();
    auto writer = DumpWriter::create(path, {}).take();
    Player player(*writer, name);
    for (const auto& [value, first] : values) player.sees(value, tensor_of(first));
    player.play();
    EXPECT_TRUE(writer->finish().ok());
    return DumpReader::open(path).take();
  }

  static Comparison compare(const DumpReader& a, const DumpReader& b) {
    return compare_dumps(a, b, {Tolerance{0, 0.25}, {}}).take();
  }

 private:
  fs::path folder_;
  int count_ = 0;
};

std::map<std::string, ValueComparison> by_path(const Comparison& comparison) {
  std::map<std::string, ValueComparison> values;
  for (const ValueComparison& value : comparison.values) values[value.path] = value;
  return values;
}

// "alias" has no payload of its own: it shares the damaged one.
TEST_F(DamagedDumps, LoseNothingButWhatIsDamaged) {
  const auto golden = DumpReader::open(kGoldenDump).take();
  const Comparison intact = compare(*golden, *golden);
  ASSERT_EQ(intact.summary.diverged, 0);
  ASSERT_EQ(intact.reason, "graph output 'z' was not compared: not captured");  // its graph has one, its values do not
  EXPECT_FALSE(damage_of(intact).has_value());

  const Comparison comparison = compare(*golden, *damaged(*golden, {"of_float32"}));
  EXPECT_EQ(comparison.verdict, OverallVerdict::inconclusive);
  EXPECT_EQ(comparison.reason, "value 'of_float32' is damaged in B");
  EXPECT_EQ(comparison.summary.compared, intact.summary.compared - 2);
  EXPECT_EQ(comparison.summary.not_compared, intact.summary.not_compared + 2);
  const auto before = by_path(intact), after = by_path(comparison);
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [path, value] : after) {
    if (path == "of_float32" || path == "alias") {
      EXPECT_EQ(value.verdict, Verdict::not_compared) << path;
      EXPECT_EQ(value.note, "damaged in B") << path;
      EXPECT_EQ(value.reason, "not captured") << path;
      EXPECT_TRUE(is_damaged(value)) << path;
      EXPECT_EQ(value.dtype, "float32") << path;
      EXPECT_FALSE(value.metrics.has_value()) << path;
    } else {
      EXPECT_EQ(value.verdict, before.at(path).verdict) << path;
      EXPECT_EQ(value.reason, before.at(path).reason) << path;
      EXPECT_EQ(value.severity, before.at(path).severity) << path;
    }
  }
}

TEST_F(DamagedDumps, EndWithTheSentenceThatNamesTheValue) {
  const auto golden = DumpReader::open(kGoldenDump).take();
  const auto bad = damaged(*golden, {"of_float32"});
  const auto damage = damage_of(compare(*golden, *bad));
  ASSERT_TRUE(damage.has_value());
  EXPECT_EQ(damage->code, ErrorCode::corrupt_file);
  EXPECT_TRUE(damage->message.starts_with("value 'of_float32': '" + bad->path() + "': the payload at offset "))
      << damage->message;
  EXPECT_TRUE(damage->message.ends_with("its CRC is wrong; 1 more value is damaged, too")) << damage->message;
}

TEST_F(DamagedDumps, StillShowWhereTheSidesPart) {
  const auto a = dump("a.plx", {{"x", 1}, {"y", 20}, {"z", 40}, {"end", 60}});
  const auto b = dump("b.plx", {{"x", 1}, {"y", 20}, {"z", 41}, {"end", 60}});
  const Comparison comparison = compare(*damaged(*a, {"y"}), *b);
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  EXPECT_EQ(comparison.reason, "");
  EXPECT_EQ(comparison.first_divergence->path, "z");
  EXPECT_EQ(comparison.values[1].note, "damaged in A");
  EXPECT_EQ(comparison.values[3].verdict, Verdict::pass);
  ASSERT_TRUE(damage_of(comparison).has_value()) << "a divergence hides no damage";
}

TEST_F(DamagedDumps, MayBeDamagedOnBothSides) {
  const auto a = dump("a.plx", {{"x", 1}, {"y", 20}, {"z", 40}});
  const auto bad = damaged(*a, {"x", "y"}), worse = damaged(*a, {"y", "z"});
  const Comparison comparison = compare(*bad, *worse);
  std::vector<std::string> notes;
  for (const ValueComparison& value : comparison.values) notes.push_back(value.note);
  EXPECT_EQ(notes, (std::vector<std::string>{"damaged in A", "damaged in A and B", "damaged in B"}));
  EXPECT_EQ(comparison.reason, "nothing was compared");
  ASSERT_EQ(comparison.damages.size(), 4U);
  EXPECT_EQ(comparison.damages[2].side, Side::b);
  EXPECT_EQ(comparison.damages[2].path, "y");
  EXPECT_TRUE(damage_of(comparison)->message.ends_with("; 3 more values are damaged, too"));
}

}  // namespace
}  // namespace parallax
