// SPDX-License-Identifier: Apache-2.0
// A reader returns the values that a writer was shown: every element type, every kind of value, levels, aliases,
// several runs and calls.
#include <filesystem>
#include <fstream>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "inspector/base/crc32c.h"
#include "inspector/base/thread_pool.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

class RoundTrip : public ::testing::Test {
 protected:
  std::unique_ptr<DumpWriter> create(const DumpWriterOptions& options = {}) {
    auto writer = DumpWriter::create(path_, options);
    EXPECT_TRUE(writer.ok()) << writer.error().message;
    return writer.take();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.plx";
};

void expect_no_problem(const std::string& path) {
  const auto problems = check_dump(path);
  ASSERT_OK(problems);
  for (const DumpProblem& problem : *problems) ADD_FAILURE() << problem.where << ": " << problem.message;
}

TEST_F(RoundTrip, KeepsEveryElementTypeBitForBit) {
  const auto writer = create();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  std::vector<Tensor> tensors;
  for (const DTypeInfo& info : all_dtypes()) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 5}, Shape{2, 1, 77}}) {
      tensors.push_back(random_tensor(info.dtype, shape, tensors.size()));
      ASSERT_OK(producer.show(std::string(info.name) + shape.to_string(), tensors.back()));
    }
  }
  ASSERT_OK(producer.end());
  ASSERT_OK(writer->finish());

  const auto reader = open_dump(path_);
  ASSERT_TRUE(reader->is_complete());
  ASSERT_EQ(reader->entries().size(), tensors.size());
  for (size_t index = 0; index < tensors.size(); ++index) {
    const DumpEntry& entry = reader->entries()[index];
    EXPECT_EQ(entry.type, type_of(tensors[index]));
    const auto value = reader->load(static_cast<int32_t>(index));
    ASSERT_OK(value);
    EXPECT_TRUE(same_bits(*value, tensors[index])) << entry.path;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(value->tensor().view().data) % (entry.type.dtype == DType::string ? 8 : 64),
              0U);
  }
  expect_no_problem(path_);
}

TEST_F(RoundTrip, KeepsSequencesOptionalsMapsAndAbsentValues) {
  SequenceValue sequence{TypeInfo::tensor(DType::float32), {}};
  for (uint64_t seed = 0; seed < 3; ++seed)
    sequence.items.emplace_back(random_tensor(DType::float32, {static_cast<int64_t>(seed), 7}, seed));
  const SequenceValue empty{TypeInfo::sequence(TypeInfo::tensor(DType::string)), {}};
  const OptionalValue none{TypeInfo::tensor(DType::int4), {}};
  const OptionalValue some{TypeInfo::sequence(TypeInfo::tensor(DType::float32)), {Value(sequence)}};
  const MapValue map{random_tensor(DType::string, {2}, 9),
                     TypeInfo::tensor(DType::float64),
                     {Value(random_tensor(DType::float64, {}, 1)), Value(random_tensor(DType::float64, {3}, 2))}};
  const std::vector<std::pair<std::string, Value>> values = {
      {"sequence", sequence}, {"empty", empty}, {"none", none}, {"some", some}, {"map", map}, {"absent", Value()}};
  const auto writer = create();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  for (const auto& [name, value] : values) ASSERT_OK(producer.show(name, value));
  ASSERT_OK(writer->finish());

  const auto reader = open_dump(path_);
  for (const auto& [name, value] : values) {
    EXPECT_EQ(reader->entries()[static_cast<size_t>(reader->find(name))].type, type_of(value)) << name;
    if (value.is_absent()) continue;
    EXPECT_TRUE(same_bits(load(*reader, name), value)) << name;
  }
  EXPECT_EQ(reader->entries()[5].level, CaptureLevel::shape);
  expect_no_problem(path_);
}

TEST_F(RoundTrip, LevelsKeepWhatTheySay) {
  const Tensor tensor = random_tensor(DType::int16, {40, 50}, 3);
  for (const CaptureLevel level : {CaptureLevel::shape, CaptureLevel::stats, CaptureLevel::sample}) {
    DumpWriterOptions options;
    options.level = level;
    options.sample_elements = 16;
    const auto writer = create(options);
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    ASSERT_OK(producer.show("x", tensor));
    ASSERT_OK(writer->finish());

    const auto reader = open_dump(path_);
    const DumpEntry& entry = reader->entries()[0];
    EXPECT_EQ(entry.level, level);
    EXPECT_EQ(entry.type, type_of(tensor));
    EXPECT_EQ(entry.statistics.has_value(), level != CaptureLevel::shape);
    EXPECT_TRUE(level == CaptureLevel::shape || entry.statistics->max == compute_statistics(tensor).max);
    const auto value = reader->load(0);
    ASSERT_EQ(value.ok(), level == CaptureLevel::sample);
    if (!value.ok()) {
      EXPECT_EQ(value.error().code, ErrorCode::usage);
      continue;
    }
    ASSERT_EQ(value->tensor().shape(), Shape{16});
    for (int64_t position = 0; position < 16; ++position) {
      const int64_t index = sampled_element(position, 16, tensor.element_count());
      EXPECT_EQ(value->tensor().as<int16_t>()[static_cast<size_t>(position)],
                tensor.as<int16_t>()[static_cast<size_t>(index)]);
    }
    expect_no_problem(path_);
  }
}

TEST_F(RoundTrip, LimitTurnsLargeValuesIntoSamples) {
  DumpWriterOptions options;
  options.capture_limit_bytes = 4000;
  const auto writer = create(options);
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  ASSERT_OK(producer.show("small", random_tensor(DType::float32, {1000}, 1)));
  ASSERT_OK(producer.show("large", random_tensor(DType::float32, {1001}, 2)));
  ASSERT_OK(writer->finish());
  const auto reader = open_dump(path_);
  EXPECT_EQ(reader->entries()[0].level, CaptureLevel::all);
  EXPECT_EQ(reader->entries()[1].level, CaptureLevel::sample);
}

TEST_F(RoundTrip, OnlyLetsThroughWhatMatches) {
  DumpWriterOptions options;
  options.only = {"layer.*", "**//inner"};
  const auto writer = create(options);
  Producer producer(*writer);
  producer.value_info("inner").scope = "loop.body[*]//";
  EXPECT_EQ(writer->wants(producer.value_info("layer.3")), CaptureLevel::all);
  EXPECT_EQ(writer->wants(producer.value_info("inner")), CaptureLevel::all);
  EXPECT_EQ(writer->wants(producer.value_info("other")), CaptureLevel::none);
  producer.value_info("result").is_graph_output = true;
  EXPECT_EQ(writer->wants(producer.value_info("result")), CaptureLevel::all);
}

TEST_F(RoundTrip, StoresAliasesAndEqualPayloadsOnce) {
  const Tensor large = random_tensor(DType::float32, {1 << 18}, 1);
  const auto writer = create();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  ASSERT_OK(producer.show("x", large));
  ASSERT_OK(producer.show("reshaped", large.reshaped({1 << 9, 1 << 9}), "x"));
  ASSERT_OK(producer.show("again", large.reshaped({1, 1 << 18}), "reshaped"));
  ASSERT_OK(producer.show("copy", large.clone().take()));
  ASSERT_OK(producer.show("other", random_tensor(DType::float32, {1 << 18}, 2)));
  ASSERT_OK(writer->finish());

  const auto reader = open_dump(path_);
  EXPECT_EQ(reader->entries()[0].alias_of, -1);
  EXPECT_EQ(reader->entries()[1].alias_of, 0);
  EXPECT_EQ(reader->entries()[2].alias_of, 0);
  EXPECT_EQ(reader->entries()[3].alias_of, 0) << "an equal payload refers to the first";
  EXPECT_EQ(reader->entries()[4].alias_of, -1);
  EXPECT_TRUE(same_bits(load(*reader, "reshaped"), Value(large.reshaped({1 << 9, 1 << 9}))));
  EXPECT_TRUE(same_bits(load(*reader, "copy"), Value(large)));
  EXPECT_EQ(reader->entries()[1].statistics->projections, compute_statistics(large).projections);
  expect_no_problem(path_);

  // Repair leaves out the bytes of the copy: two payloads remain of five values.
  const std::string repaired = folder_ / "b.plx";
  ASSERT_OK(repair_dump(path_, repaired));
  EXPECT_LT(std::filesystem::file_size(repaired), (size_t{2} << 20) + (1 << 16));
  EXPECT_TRUE(same_bits(load(*open_dump(repaired), "copy"), Value(large)));
  expect_no_problem(repaired);
}

// The statistics of an alias are not computed again, but are those of its own type and of the value that it last
// shared.
TEST_F(RoundTrip, StatisticsAloneFollowAliases) {
  DumpWriterOptions options;
  options.level = CaptureLevel::stats;
  const auto writer = create(options);
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  for (const uint64_t round : {1U, 2U}) {
    const Tensor floats = random_tensor(DType::float32, {1000}, round);
    Tensor ints = Tensor::zeros(DType::int32, {1000}).take();
    std::memcpy(ints.mutable_data(), floats.view().data, floats.size_bytes());
    ASSERT_OK(producer.show("x", floats));
    ASSERT_OK(producer.show("same", floats, "x"));
    ASSERT_OK(producer.show("bits", ints, "same"));
    for (const auto& [path, tensor] : {std::pair<const char*, const Tensor*>("same", &floats), {"bits", &ints}}) {
      const auto reader = open_dump(path_);
      const int32_t entry = reader->find(path);
      ASSERT_GE(entry, 0) << path;
      const TensorStatistics expected = compute_statistics(*tensor);
      const auto& statistics = reader->entries()[static_cast<size_t>(entry)].statistics;
      ASSERT_TRUE(statistics.has_value()) << path;
      EXPECT_EQ(statistics->mean, expected.mean) << path << round;
      EXPECT_EQ(statistics->projections, expected.projections) << path << round;
    }
  }
  ASSERT_OK(producer.end());
  ASSERT_OK(writer->finish());
}

TEST_F(RoundTrip, PayloadsOfOneCrcAreComparedBeforeTheyAreShared) {
  const Tensor tensor = random_tensor(DType::uint8, {200000}, 1);
  Tensor other = random_tensor(DType::uint8, {200000}, 1);
  // The CRC's polynomial, its bits in the order of the message: adding a multiple of it leaves the CRC as it is.
  constexpr uint64_t kPolynomial = 1 | uint64_t{0x82F63B78} << 1;
  uint64_t word = 0;
  std::memcpy(&word, other.mutable_data() + 100000, sizeof word);
  word ^= kPolynomial;
  std::memcpy(other.mutable_data() + 100000, &word, sizeof word);
  ASSERT_EQ(crc32c(tensor.view().data, 200000), crc32c(other.view().data, 200000));
  {
    const auto writer = create();
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    ASSERT_OK(producer.show("x", tensor));
    ASSERT_OK(producer.show("other", other));
    ASSERT_OK(producer.show("equal", random_tensor(DType::uint8, {200000}, 1)));
    ASSERT_OK(writer->finish());
  }
  const auto reader = open_dump(path_);
  EXPECT_TRUE(same_bits(load(*reader, "x"), Value(tensor)));
  EXPECT_TRUE(same_bits(load(*reader, "other"), Value(other)));
  EXPECT_TRUE(same_bits(load(*reader, "equal"), Value(tensor)));
  EXPECT_EQ(reader->entries()[1].alias_of, -1);
  EXPECT_EQ(reader->entries()[2].alias_of, 0);
  EXPECT_TRUE(check_dump(path_)->empty());
}

// A file in memory grows by huge pages where Linux gives them.
bool is_shm_in_memory() {
  struct statfs info {};
  return ::statfs("/dev/shm", &info) == 0 && info.f_type == TMPFS_MAGIC && ::access("/dev/shm", W_OK) == 0;
}
std::string path_in_memory() { return "/dev/shm/parallax-dump-test-" + std::to_string(::getpid()) + ".plx"; }

// Most bytes of this process that were ever in memory, since begin_peak().
int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}
bool begin_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

// Space is prepared by the second thread where a processor is free for it, otherwise by the whole pool.
TEST_F(RoundTrip, AFileInMemoryHoldsTheSame) {
  if (!is_shm_in_memory()) GTEST_SKIP() << "/dev/shm is no writable file system in memory";
  const std::string path = path_in_memory();
  const int pool_threads = thread_count();
  for (const int threads : {1, 2 * static_cast<int>(std::thread::hardware_concurrency())}) {
    set_thread_count(threads);
    {
      const auto writer = DumpWriter::create(path, {}).take();
      Producer producer(*writer);
      ASSERT_OK(producer.begin());
      for (uint64_t index = 0; index < 12; ++index) {
        const auto count = static_cast<int64_t>(1 + index * 137501);
        ASSERT_OK(producer.show("x" + std::to_string(index), random_tensor(DType::float32, {count}, index)));
      }
      ASSERT_OK(writer->finish());
    }
    const auto reader = open_dump(path);
    for (uint64_t index = 0; index < 12; ++index) {
      const auto count = static_cast<int64_t>(1 + index * 137501);
      EXPECT_TRUE(
          same_bits(load(*reader, "x" + std::to_string(index)), Value(random_tensor(DType::float32, {count}, index))))
          << index << " with " << threads << " threads";
    }
    EXPECT_TRUE(check_dump(path)->empty());
    std::filesystem::remove(path);
  }
  set_thread_count(pool_threads);
}

// Neither while it is written nor when its index is collected.
TEST_F(RoundTrip, WhatIsMappedDoesNotGrowWithTheDump) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has memory of its own for what is written";
#endif
  constexpr int64_t kMegabyte = int64_t{1} << 20;
  for (const bool in_memory : {true, false}) {
    if (in_memory && !is_shm_in_memory()) continue;
    const std::string path = in_memory ? path_in_memory() : path_;
    Tensor tensor = random_tensor(DType::float32, {kMegabyte / 2}, 1);
    if (!begin_peak()) GTEST_SKIP() << "the peak of memory cannot be reset";
    const int64_t before = peak_bytes();
    const auto writer = DumpWriter::create(path, {}).take();
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    for (int index = 0; index < 160; ++index) {
      tensor.mutable_as<float>()[0] = static_cast<float>(index);  // equal payloads would be stored once
      ASSERT_OK(producer.show("x" + std::to_string(index), tensor));
    }
    ASSERT_OK(writer->finish());
    EXPECT_GT(std::filesystem::file_size(path), 320U * kMegabyte);
    EXPECT_LT(peak_bytes() - before, 200 * kMegabyte) << path;
    std::filesystem::remove(path);
  }
}

TEST_F(RoundTrip, AnAliasInAnotherFrameIsNotTrusted) {
  const Tensor first = random_tensor(DType::float32, {64}, 1);
  const Tensor second = random_tensor(DType::float32, {64}, 2);
  const auto writer = create();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  ASSERT_OK(producer.show("x", first));
  producer.frames().push({Frame::Kind::body, "loop", 0});
  ASSERT_OK(producer.show("y", second, "x"));
  ASSERT_OK(writer->finish());
  EXPECT_TRUE(same_bits(load(*open_dump(path_), "loop.body[0]//y"), Value(second)));
}

TEST_F(RoundTrip, SeveralExecutionsCallsAndFramesStayDistinct) {
  const auto writer = create();
  for (const std::string executor : {"reference", "cpu"}) {
    Producer producer(*writer);
    ASSERT_OK(
        writer->begin_run({executor, "device of " + executor, {{"rewrite", "none"}, {"tf32", "off"}}, nullptr, "abc"}));
    for (int64_t step = 0; step < 3; ++step) {
      const CallInfo call{"decoder", step};
      ASSERT_OK(writer->begin_call(call, {}));
      producer.frames().push({Frame::Kind::step, "", step});
      ASSERT_OK(
          producer.show("logits", Tensor::scalar<float>(static_cast<float>(step) + (executor == "cpu" ? 0.5F : 0.0F))));
      producer.frames().pop();
      ASSERT_OK(writer->end_call(call));
    }
    ASSERT_OK(writer->end_run(executor == "reference"));
  }
  ASSERT_OK(writer->finish());

  const auto reader = open_dump(path_);
  ASSERT_EQ(reader->executions().size(), 2U);
  ASSERT_EQ(reader->calls().size(), 6U);
  EXPECT_EQ(reader->executions()[1].executor, "cpu");
  EXPECT_EQ(reader->executions()[1].device, "device of cpu");
  EXPECT_EQ(reader->executions()[1].settings.at("tf32"), "off");
  EXPECT_EQ(reader->executions()[1].model_sha256, "abc");
  EXPECT_TRUE(reader->executions()[0].completed);
  EXPECT_FALSE(reader->executions()[1].completed);
  EXPECT_GE(reader->executions()[1].wall_ms, 0);
  EXPECT_EQ(reader->calls()[4].execution, 1);
  EXPECT_EQ(reader->calls()[4].call.step, 1);
  EXPECT_EQ(reader->calls()[4].call.graph, "decoder");
  EXPECT_EQ(load(*reader, "step[2]//logits", 0).tensor().as<float>()[0], 2.0F);
  EXPECT_EQ(load(*reader, "step[2]//logits", 1).tensor().as<float>()[0], 2.5F);
  EXPECT_EQ(reader->entries()[static_cast<size_t>(reader->find("step[1]//logits", 1))].call, 4);
  EXPECT_EQ(reader->find("step[3]//logits"), -1);
}

TEST_F(RoundTrip, KeepsValueInfosEventsFailuresAndAbsences) {
  const auto writer = create();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  ValueInfo& value_info = producer.value_info("w//1");
  value_info.role = ValueInfo::Role::initializer;
  value_info.is_graph_output = true;
  value_info.is_constant_like = true;
  ASSERT_OK(producer.show("w//1", Tensor::scalar<int64_t>(7)));
  ASSERT_OK(writer->absent(producer.value_info("gone"), {Absence::Kind::aliased, "w//1"}));
  const NodeLocation loop{"loop", "Loop-13", nullptr, 0};
  const Frame frame{Frame::Kind::body, "loop", 3};
  ASSERT_OK(writer->enter_body(loop, frame));
  producer.frames().push(frame);
  ASSERT_OK(
      writer->node_failed({"node_div", "Div-14", nullptr, 1}, producer.frames(), execution_error("division by zero")));
  ASSERT_OK(writer->leave_body(loop, frame));
  ASSERT_OK(writer->finish());

  const auto reader = open_dump(path_);
  const DumpEntry& entry = reader->entries()[0];
  EXPECT_EQ(entry.path, "w%2F%2F1");
  EXPECT_EQ(entry.name, "w//1");
  EXPECT_EQ(entry.node, "node_w//1");
  EXPECT_EQ(entry.op, "Add");
  EXPECT_EQ(entry.role, ValueInfo::Role::initializer);
  EXPECT_TRUE(entry.is_graph_output);
  EXPECT_TRUE(entry.is_constant_like);
  ASSERT_TRUE(reader->entries()[1].absence.has_value());
  EXPECT_EQ(reader->entries()[1].absence->kind, Absence::Kind::aliased);
  EXPECT_EQ(reader->entries()[1].absence->into, "w//1");
  EXPECT_FALSE(reader->load(1).ok());
  ASSERT_EQ(reader->events().size(), 3U);
  EXPECT_EQ(reader->events()[0].kind, DumpEvent::Kind::enter_body);
  EXPECT_EQ(reader->events()[0].text, "loop.body[3]");
  EXPECT_EQ(reader->events()[0].entry_count, 2);
  ASSERT_EQ(reader->failures().size(), 1U);
  EXPECT_EQ(reader->failures()[0].node, "node_div");
  EXPECT_EQ(reader->failures()[0].op, "Div-14");
  EXPECT_EQ(reader->failures()[0].path, "loop.body[3]//");
  EXPECT_EQ(reader->failures()[0].message, "division by zero");
}

TEST_F(RoundTrip, WithoutFinishAllIsStillThere) {
  const Tensor tensor = random_tensor(DType::float32, {1 << 16}, 1);
  {
    const auto writer = create();
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    ASSERT_OK(producer.show("x", tensor));
  }
  const auto reader = open_dump(path_);
  EXPECT_FALSE(reader->is_complete());
  EXPECT_TRUE(same_bits(load(*reader, "x"), Value(tensor)));
  EXPECT_FALSE(check_dump(path_)->empty());
}

TEST_F(RoundTrip, DeviceValuesComeThroughTheCopyOrAreRefused) {
  const Tensor host = random_tensor(DType::float16, {5, 5}, 1);
  const Tensor device =
      Tensor::wrap(DType::float16, {5, 5}, std::shared_ptr<const std::byte>(host.storage()), {Device::Kind::cuda, 0});
  DumpWriterOptions options;
  {
    const auto writer = create(options);
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    const Status refused = producer.show("x", device);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  }
  options.copy_from_device = [](const TensorView& source, void*, std::byte* target) -> Status {
    std::memcpy(target, source.data, source.size_bytes());
    return {};
  };
  const auto writer = create(options);
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  ASSERT_OK(producer.show("x", device));
  ASSERT_OK(writer->finish());
  EXPECT_TRUE(same_bits(load(*open_dump(path_), "x"), Value(host)));
}

TEST_F(RoundTrip, AnUnwritableFolderIsAnError) {
  const auto writer = DumpWriter::create(folder_ / "missing/a.plx", {});
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code, ErrorCode::io);
}

// Weights are written past the page cache where Linux can, all but the pages at their ends.
TEST(RoundTripOfWeights, AnySizeStandsNextToOtherValues) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.plx";
  const std::vector<int64_t> counts = {1, 65535, 65536, 69632, 70001, 400000, 3000017};
  auto writer = DumpWriter::create(path, {}).take();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  const auto value_of = [](int64_t count, uint64_t seed) { return Value(random_tensor(DType::uint8, {count}, seed)); };
  for (const int64_t count : counts) {
    producer.value_info("weight_" + std::to_string(count)).role = ValueInfo::Role::initializer;
    ASSERT_OK(producer.show("weight_" + std::to_string(count), value_of(count, 1)));
    ASSERT_OK(producer.show("value_" + std::to_string(count), value_of(count, 2)));
  }
  ASSERT_OK(producer.end());
  ASSERT_OK(writer->finish());
  const auto problems = check_dump(path);
  ASSERT_OK(problems);
  EXPECT_TRUE(problems->empty());
  const auto reader = open_dump(path);
  ASSERT_NE(reader, nullptr);
  for (const int64_t count : counts) {
    EXPECT_TRUE(same_bits(load(*reader, "weight_" + std::to_string(count)), value_of(count, 1))) << count;
    EXPECT_TRUE(same_bits(load(*reader, "value_" + std::to_string(count)), value_of(count, 2))) << count;
  }
}

}  // namespace
}  // namespace parallax::test
