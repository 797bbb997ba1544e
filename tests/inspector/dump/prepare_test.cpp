// SPDX-License-Identifier: Apache-2.0
// Space that is made ready before a run: it changes nothing of the dump, and what is left over is given back.
#include <filesystem>
#include <fstream>

#include "inspector/base/thread_pool.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

uintmax_t bytes_of_dump(const std::string& path, size_t foreseen) {
  auto writer = DumpWriter::create(path, {}).take();
  if (foreseen > 0) writer->prepare(foreseen);
  Producer producer(*writer);
  EXPECT_TRUE(producer.begin().ok());
  for (uint64_t index = 0; index < 8; ++index) {
    const Tensor value = random_tensor(DType::float32, {300000}, index);
    EXPECT_TRUE(producer.show("value_" + std::to_string(index), value).ok());
  }
  EXPECT_TRUE(writer->end_run(true).ok());
  EXPECT_TRUE(writer->finish().ok());
  const auto reader = open_dump(path);
  EXPECT_NE(reader, nullptr);
  for (uint64_t index = 0; reader != nullptr && index < 8; ++index) {
    const Value expected(random_tensor(DType::float32, {300000}, index));
    EXPECT_TRUE(same_bits(load(*reader, "value_" + std::to_string(index)), expected)) << index;
  }
  return std::filesystem::file_size(path);
}

TEST(Prepare, LeavesTheDumpAsItIs) {
  const TemporaryFolder folder;
  const std::string in_memory = "/dev/shm/parallax_prepare_test_" + std::to_string(::getpid()) + ".plx";
  for (const std::string& path : {folder / "a.plx", in_memory}) {
    for (const int threads : {1, 0}) {
      set_thread_count(threads);
      const uintmax_t plain = bytes_of_dump(path, 0);
      for (const size_t foreseen : {size_t{1} << 20, size_t{10} << 20, size_t{64} << 20})
        EXPECT_EQ(bytes_of_dump(path, foreseen), plain) << path << ", " << foreseen << " foreseen";
    }
  }
  std::filesystem::remove(in_memory);
}

TEST(DumpWriter, NoTwoWriteOneFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.plx";
  {
    const auto first = DumpWriter::create(path, {});
    ASSERT_TRUE(first.ok());
    const auto second = DumpWriter::create(path, {});
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().message.find("a.plx' is being written by another run"), std::string::npos);
  }
  EXPECT_TRUE(DumpWriter::create(path, {}).ok());
}

TEST(DumpWriter, EmptiesTheFileThatALinkNames) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.plx", link = folder / "link.plx", longer = folder / "longer.bin";
  std::ofstream(longer) << std::string(size_t{1} << 20, 'x');
  std::filesystem::create_symlink(longer, link);
  const uintmax_t size = bytes_of_dump(path, 0);
  EXPECT_EQ(bytes_of_dump(link, 0), size);
  EXPECT_EQ(std::filesystem::file_size(longer), size);
}

}  // namespace
}  // namespace parallax::test
