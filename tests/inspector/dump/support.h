// SPDX-License-Identifier: Apache-2.0
// Parts that the dump tests share: values of every type, a producer that shows them to a writer, bit-exact comparison,
// a folder of its own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/dump/dump_reader.h"
#include "inspector/dump/dump_writer.h"

namespace parallax::test {

#define ASSERT_OK(...)                                        \
  do {                                                        \
    const auto& px_status = (__VA_ARGS__);                    \
    ASSERT_TRUE(px_status.ok()) << px_status.error().message; \
  } while (false)

// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& parent = std::filesystem::temp_directory_path().string()) {
    std::string name = parent + "/parallax-dump-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_contents(const std::string& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

// Random bits (bool: 0 or 1; strings of several lengths), the same for the same seed.
inline Tensor random_tensor(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor tensor = Tensor::zeros(dtype, shape).take();
  if (dtype == DType::string) {
    for (std::string& text : tensor.mutable_as<std::string>()) {
      const auto character = static_cast<char>('a' + random() % 26);  // drawn first, as in the golden dump
      text = std::string(random() % 20, character);
    }
    return tensor;
  }
  auto* bytes = reinterpret_cast<uint8_t*>(tensor.mutable_data());
  for (size_t index = 0; index < tensor.size_bytes(); ++index) {
    bytes[index] = static_cast<uint8_t>(dtype == DType::bool_ ? random() % 2 : random());
  }
  const int64_t used_bits = tensor.element_count() * bits_of(dtype);
  if (used_bits % 8 != 0) bytes[tensor.size_bytes() - 1] &= static_cast<uint8_t>((1U << (used_bits % 8)) - 1U);
  return tensor;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::string) return std::ranges::equal(a.as<std::string>(), b.as<std::string>());
  return a.size_bytes() == 0 || std::memcmp(a.view().data, b.view().data, a.size_bytes()) == 0;
}

inline bool same_bits(const Value& a, const Value& b) {
  const auto all_same = [](const std::vector<Value>& x, const std::vector<Value>& y) {
    return std::ranges::equal(x, y, [](const Value& left, const Value& right) { return same_bits(left, right); });
  };
  if (type_of(a) != type_of(b)) return false;
  if (a.is_tensor()) return b.is_tensor() && same_bits(a.tensor(), b.tensor());
  if (a.is_sequence()) return b.is_sequence() && all_same(a.sequence().items, b.sequence().items);
  if (a.is_optional()) return b.is_optional() && all_same(a.optional().item, b.optional().item);
  if (a.is_map())
    return b.is_map() && same_bits(a.map().keys, b.map().keys) && all_same(a.map().values, b.map().values);
  return a.is_absent() && b.is_absent();
}

inline bool same_number(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

inline bool same_statistics(const TensorStatistics& a, const TensorStatistics& b) {
  return a.count == b.count && same_number(a.min, b.min) && same_number(a.max, b.max) && same_number(a.mean, b.mean) &&
         same_number(a.std, b.std) && same_number(a.l2, b.l2) && a.zeros == b.zeros && a.nan == b.nan &&
         a.positive_inf == b.positive_inf && a.negative_inf == b.negative_inf && a.order == b.order &&
         std::ranges::equal(a.projections, b.projections, same_number);
}

// Shows values to an observer as an executor would: one value for each name.
class Producer {
 public:
  explicit Producer(Observer& observer) : observer_(observer) {}

  Status begin(const RunInfo& run = {"reference", "a CPU", {{"threads", "1"}}, nullptr, "00ff"},
               const CallInfo& call = {}) {
    PX_TRY(observer_.begin_run(run));
    return observer_.begin_call(call, {});
  }
  Status end(const CallInfo& call = {}) {
    PX_TRY(observer_.end_call(call));
    return observer_.end_run(true);
  }

  ValueInfo& value_info(const std::string& name) {
    for (ValueInfo& value_info : value_infos_) {
      if (value_info.name == name) return value_info;
    }
    names_.push_back(name);
    ValueInfo& value_info = value_infos_.emplace_back();
    value_info.id = static_cast<int32_t>(value_infos_.size()) - 1;
    value_info.name = names_.back();
    value_info.escaped_name = escape_name(name);
    value_info.node = names_.emplace_back("node_" + name);
    value_info.op = "Add";
    return value_info;
  }

  Status show(const std::string& name, const Value& value, const std::string& alias_of = "") {
    const ValueInfo* original = alias_of.empty() ? nullptr : &value_info(alias_of);
    return observer_.observe({value_info(name), frames_, value, original, nullptr});
  }

  FrameStack& frames() { return frames_; }

 private:
  Observer& observer_;
  FrameStack frames_;
  std::deque<ValueInfo> value_infos_;
  std::deque<std::string> names_;
};

inline std::shared_ptr<const DumpReader> open_dump(const std::string& path) {
  auto reader = DumpReader::open(path);
  EXPECT_TRUE(reader.ok()) << reader.error().message;
  return reader.ok() ? reader.take() : nullptr;
}

// The payload of the last value of this path; a failure when it cannot be had.
inline Value load(const DumpReader& reader, const std::string& path, int32_t execution = 0) {
  const int32_t entry = reader.find(path, execution);
  EXPECT_GE(entry, 0) << path;
  if (entry < 0) return {};
  auto value = reader.load(entry);
  EXPECT_TRUE(value.ok()) << value.error().message;
  return value.ok() ? value.take() : Value();
}

}  // namespace parallax::test
