// SPDX-License-Identifier: Apache-2.0
// A producer is killed by SIGKILL at random moments; every value whose observe() had returned must be in its dump, bit
// for bit, before and after a repair. PARALLAX_KILLS sets how often (20 each).
#include <cstdlib>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/inspector/dump/support.h"

extern char** environ;

namespace parallax::test {
namespace {

constexpr const char* kChildVariable = "PARALLAX_KILL_CHILD";

// Value `index` of a run: sizes from nothing to 3 MB, so that kills meet small records, sealed at once, and large ones
// in the copy; now and then a value equals an earlier one.
Tensor value_of(uint64_t seed, uint64_t index) {
  std::mt19937_64 random(seed * 1000003 + index);
  if (index % 7 == 6) return value_of(seed, index - 3);
  const int64_t count =
      random() % 3 == 0 ? static_cast<int64_t>(random() % 400000) : static_cast<int64_t>(random() % 3000);
  Tensor tensor = Tensor::zeros(DType::float64, {count}).take();
  const auto values = tensor.mutable_as<double>();
  for (double& value : values) value = static_cast<double>(random() >> 11);
  return tensor;
}
std::string name_of_value(uint64_t index) { return "value_" + std::to_string(index); }

// The child: shows values without end and tells the number of each once observe() has returned.
TEST(KillChild, DISABLED_WritesUntilItIsKilled) {
  const char* path = std::getenv(kChildVariable);
  ASSERT_NE(path, nullptr);
  const uint64_t seed = std::strtoull(std::getenv("PARALLAX_KILL_SEED"), nullptr, 10);
  auto writer = DumpWriter::create(path, {}).take();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  for (uint64_t index = 0; index < 2000; ++index) {
    ASSERT_OK(producer.show(name_of_value(index), value_of(seed, index)));
    if (::write(STDERR_FILENO, &index, sizeof index) != sizeof index) return;
  }
  pause();
}

struct Child {
  pid_t process = -1;
  int messages = -1;  // a number for each value
};

Child start_child(const std::string& path, uint64_t seed) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::vector<std::string> environment = {std::string(kChildVariable) + "=" + path,
                                          "PARALLAX_KILL_SEED=" + std::to_string(seed)};
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  std::string arguments[] = {"dump_test", "--gtest_filter=KillChild.*", "--gtest_also_run_disabled_tests"};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  Child child;
  EXPECT_EQ(::posix_spawn(&child.process, "/proc/self/exe", &actions, nullptr, argv, variables.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  child.messages = ends[0];
  return child;
}

// Kills the child when it has reported `until` values, and returns how many it reported in all.
uint64_t kill_child(const Child& child, uint64_t until) {
  uint64_t reported = 0;
  uint64_t index = 0;
  while (reported < until && ::read(child.messages, &index, sizeof index) == sizeof index) ++reported;
  ::kill(child.process, SIGKILL);
  while (::read(child.messages, &index, sizeof index) == sizeof index) ++reported;
  int status = 0;
  EXPECT_EQ(::waitpid(child.process, &status, 0), child.process);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the child ended by itself";
  ::close(child.messages);
  return reported;
}

void expect_values(const std::string& path, uint64_t seed, uint64_t reported) {
  const auto reader = open_dump(path);
  ASSERT_NE(reader, nullptr);
  ASSERT_GE(reader->entries().size(), reported);
  for (uint64_t index = 0; index < reader->entries().size(); ++index) {
    EXPECT_TRUE(same_bits(load(*reader, name_of_value(index)), Value(value_of(seed, index))))
        << "seed " << seed << " value " << index;
  }
}

void write_small_dump(const std::string& path) {
  auto writer = DumpWriter::create(path, {}).take();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  ASSERT_OK(producer.show("x", value_of(0, 0)));
  ASSERT_OK(producer.end());
  ASSERT_OK(writer->finish());
}

// `parent`: a folder on a disk or in memory, whose files are written in different ways.
void kill_often(const std::string& parent) {
  const char* wished = std::getenv("PARALLAX_KILLS");
  const uint64_t kills = wished == nullptr ? 20 : std::strtoull(wished, nullptr, 10);
  const TemporaryFolder folder(parent);
  const std::string path = folder / "killed.plx";
  const std::string repaired = folder / "repaired.plx";
  uint64_t values = 0;
  for (uint64_t seed = 0; seed < kills && !::testing::Test::HasFailure(); ++seed) {
    std::filesystem::remove(path);
    const uint64_t reported = kill_child(start_child(path, seed), 1 + std::mt19937_64(seed)() % 60);
    ASSERT_GT(reported, 0U);
    values += reported;
    expect_values(path, seed, reported);
    const auto report = repair_dump(path, repaired);
    ASSERT_OK(report);
    EXPECT_EQ(report->records_dropped, 0);
    expect_values(repaired, seed, reported);
    const auto problems = check_dump(repaired);
    ASSERT_OK(problems);
    EXPECT_TRUE(problems->empty());
  }
  ::testing::Test::RecordProperty("kills", static_cast<int>(kills));
  ::testing::Test::RecordProperty("values", static_cast<int>(values));
  std::printf("%llu kills, %llu values announced and found\n", static_cast<unsigned long long>(kills),
              static_cast<unsigned long long>(values));
}

TEST(Kill, OlderDumpKeepsItsNameUntilTheNewOneIsWhole) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.plx";
  write_small_dump(path);
  const std::string older = contents_of(path);
  const std::string unfinished[] = {folder / "run.unfinished.plx", folder / "run.unfinished-2.plx"};
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const uint64_t reported = kill_child(start_child(path, seed), 5);
    EXPECT_EQ(contents_of(path), older);
    expect_values(unfinished[seed], seed, reported);
  }
  {
    auto writer = DumpWriter::create(path, {}).take();
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    ASSERT_OK(producer.show("y", value_of(1, 1)));
    EXPECT_EQ(writer->path(), folder / "run.unfinished-3.plx");
    EXPECT_EQ(contents_of(path), older);
    ASSERT_OK(producer.end());
    ASSERT_OK(writer->finish());
    EXPECT_EQ(writer->path(), path);
  }
  EXPECT_NE(contents_of(path), older);
  EXPECT_FALSE(std::filesystem::exists(folder / "run.unfinished-3.plx"));
  EXPECT_TRUE(std::filesystem::exists(unfinished[0]) && std::filesystem::exists(unfinished[1]));
}

TEST(Kill, WhatWasObservedIsThereAfterSigkill) { kill_often(std::filesystem::temp_directory_path().string()); }

TEST(Kill, WhatWasObservedInMemoryIsThereAfterSigkill) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  kill_often("/dev/shm");
}

}  // namespace
}  // namespace parallax::test
