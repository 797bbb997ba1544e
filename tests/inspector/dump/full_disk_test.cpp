// SPDX-License-Identifier: Apache-2.0
// A disk, or a limit, that is too small: a clear error from the event that met it, no signal, and nothing lost that was
// captured before.
#include <cerrno>

#include <sys/mount.h>
#include <sys/resource.h>

#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

Tensor value_of(uint64_t index) { return random_tensor(DType::float32, {100000}, index); }

// Shows values of 400 kB until one is refused; `room_bytes` hold some of them. `foreseen`: prepared beforehand.
void expect_clean_end(const std::string& path, size_t room_bytes, size_t foreseen = 0) {
  auto writer = DumpWriter::create(path, {}).take();
  if (foreseen > 0) writer->prepare(foreseen);
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  uint64_t stored = 0;
  Status status;
  while (status.ok() && stored < 2 * room_bytes / 400000 + 2) {
    status = producer.show("value_" + std::to_string(stored), value_of(stored));
    stored += status.ok();
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::io);
  EXPECT_NE(status.error().message.find(path), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("what was written before is kept"), std::string::npos)
      << status.error().message;
  EXPECT_GE(stored, room_bytes / 2 / 400000) << "the room was hardly used";
  static_cast<void>(writer->end_run(false));
  static_cast<void>(writer->finish());  // whether the index still fits is open

  const auto reader = open_dump(path);
  ASSERT_NE(reader, nullptr);
  ASSERT_EQ(reader->entries().size(), stored);
  for (uint64_t index = 0; index < stored; ++index) {
    EXPECT_TRUE(same_bits(load(*reader, "value_" + std::to_string(index)), Value(value_of(index)))) << index;
  }
}

TEST(FullDisk, ASmallFileSystemFillsUpCleanly) {
  const TemporaryFolder folder;
  const std::string mounted = folder / "small";
  std::filesystem::create_directory(mounted);
  if (::mount("none", mounted.c_str(), "tmpfs", 0, "size=6m") != 0)
    GTEST_SKIP() << "mounting a small file system needs root: " << std::strerror(errno);
  for (const size_t foreseen : {size_t{0}, size_t{2} << 20, size_t{5} << 20, size_t{1} << 40}) {
    expect_clean_end(mounted + "/a.plx", size_t{6} << 20, foreseen);
    std::filesystem::remove(mounted + "/a.plx");
  }
  EXPECT_EQ(::umount(mounted.c_str()), 0);
}

TEST(FullDisk, AFileSizeLimitIsAnErrorAndNoSignal) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{size_t{5} << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_clean_end(folder / "a.plx", size_t{5} << 20);
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(FullDisk, NoRoomAtAllIsAnErrorOfCreate) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto writer = DumpWriter::create(folder / "a.plx", {});
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace parallax::test
