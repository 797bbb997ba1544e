// SPDX-License-Identifier: Apache-2.0
// Value files of test_data_set folders: what is written is read again, and damage is a sentence.
#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

// Bit-equal, structure included.
void expect_equal(const Value& a, const Value& b) {
  EXPECT_EQ(type_of(a), type_of(b));
  if (a.is_tensor() && a.tensor().dtype() != DType::string) {
    ASSERT_EQ(a.tensor().size_bytes(), b.tensor().size_bytes());
    if (a.tensor().size_bytes() > 0) {
      EXPECT_EQ(std::memcmp(a.tensor().view().data, b.tensor().view().data, a.tensor().size_bytes()), 0);
    }
  } else if (a.is_tensor()) {
    for (int64_t i = 0; i < a.tensor().element_count(); ++i) {
      EXPECT_EQ(element_to_string(a.tensor().view(), i), element_to_string(b.tensor().view(), i));
    }
  }
  if (a.is_sequence()) {
    ASSERT_EQ(a.sequence().items.size(), b.sequence().items.size());
    for (size_t i = 0; i < a.sequence().items.size(); ++i) expect_equal(a.sequence().items[i], b.sequence().items[i]);
  }
  if (a.is_optional() && !a.optional().item.empty()) expect_equal(a.optional().item[0], b.optional().item.at(0));
  if (a.is_map()) {
    expect_equal(a.map().keys, b.map().keys);
    for (size_t i = 0; i < a.map().values.size(); ++i) expect_equal(a.map().values[i], b.map().values[i]);
  }
}

Value floats(std::vector<float> values) { return Tensor::vector<float>(values); }

void expect_round_trip(const Value& value, const TypeInfo& type) {
  const TemporaryFolder folder;
  for (const char* name : {"v.pb", "v.textproto"}) {
    const Status written = write_value_file(folder.file(name), {"the name", value});
    ASSERT_TRUE(written.ok()) << written.error().message;
    const auto read = read_value_file(folder.file(name), type);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->name, "the name");
    expect_equal(read->value, value);
  }
}

TEST(ValueFile, TensorsOfEveryTypeComeBack) {
  for (const DTypeInfo& info : all_dtypes()) {
    Tensor tensor = Tensor::zeros(info.dtype, Shape{5}).take();
    if (info.dtype == DType::string) {
      tensor.mutable_as<std::string>()[3] = std::string("\0binary\xff", 8);
    } else if (info.bits > 0) {
      tensor.mutable_data()[0] = std::byte{1};
    }
    expect_round_trip(tensor, TypeInfo::tensor(info.dtype));
  }
}

TEST(ValueFile, SequencesOptionalsAndMapsComeBack) {
  const TypeInfo tensor = TypeInfo::tensor(DType::float32);
  const TypeInfo sequence = TypeInfo::sequence(tensor);
  const Value two = SequenceValue{tensor, {floats({1, 2}), floats({3})}};
  expect_round_trip(two, sequence);
  expect_round_trip(SequenceValue{tensor, {}}, sequence);
  expect_round_trip(SequenceValue{sequence, {two, two}}, TypeInfo::sequence(sequence));
  expect_round_trip(OptionalValue{type_of(floats({4})), {floats({4})}}, TypeInfo::optional(type_of(floats({4}))));
  expect_round_trip(OptionalValue{sequence, {two}}, TypeInfo::optional(sequence));
  expect_round_trip(OptionalValue{tensor, {}}, TypeInfo::optional(tensor));
  const std::vector<int64_t> numbers{7, -1};
  const std::vector<std::string> words{"b", "a"};
  const TypeInfo one = type_of(floats({1}));
  expect_round_trip(MapValue{Tensor::vector<int64_t>(numbers), one, {floats({1}), floats({2})}},
                    TypeInfo::map(DType::int64, one));
  expect_round_trip(MapValue{Tensor::vector<std::string>(words), one, {floats({1}), floats({2})}},
                    TypeInfo::map(DType::string, one));
}

// A data set may hold what an optional holds in its place. Read as an optional it would be an empty one.
TEST(ValueFile, WhatAnOptionalHoldsStandsForIt) {
  const TypeInfo tensor = TypeInfo::tensor(DType::float32);
  const TypeInfo sequence = TypeInfo::sequence(tensor);
  const Value one = floats({4, 5}), scalar = Tensor::scalar(3.0F);
  const Value two = SequenceValue{tensor, {floats({1, 2}), floats({3})}}, none = SequenceValue{tensor, {}};
  const TemporaryFolder folder;
  for (const char* name : {"v.pb", "v.textproto"}) {
    for (const auto& [held, type] :
         {std::pair(&one, &tensor), {&scalar, &tensor}, {&two, &sequence}, {&none, &sequence}}) {
      ASSERT_TRUE(write_value_file(folder.file(name), {"the name", *held}).ok());
      const auto read = read_value_file(folder.file(name), TypeInfo::optional(*type));
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_EQ(read->name, "the name");
      ASSERT_TRUE(read->value.is_optional());
      ASSERT_EQ(read->value.optional().item.size(), 1U);
      expect_equal(read->value.optional().item[0], *held);
    }
  }
}

TEST(ValueFile, ATensorIsNoEmptySequence) {
  const TemporaryFolder folder;
  for (const char* name : {"v.pb", "v.textproto"}) {
    ASSERT_TRUE(write_value_file(folder.file(name), {"x", floats({1, 2})}).ok());
    const auto read = read_value_file(folder.file(name), TypeInfo::sequence(TypeInfo::tensor(DType::float32)));
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::corrupt_file);
    EXPECT_NE(read.error().message.find(name), std::string::npos) << read.error().message;
  }
}

TEST(ValueFile, DamageIsASentence) {
  const TemporaryFolder folder;
  write_bytes(folder.file("cut.pb"), "\x08\x02\x10\x01\x4a\x40");
  const auto cut = read_value_file(folder.file("cut.pb"));
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("raw_data at byte 4 is said to hold 64 bytes where 0 are left"), std::string::npos)
      << cut.error().message;
  EXPECT_EQ(cut.error().code, ErrorCode::corrupt_file);
  write_bytes(folder.file("short.textproto"), "dims: 2 data_type: 1 float_data: 1");
  const auto few = read_value_file(folder.file("short.textproto"));
  ASSERT_FALSE(few.ok());
  EXPECT_NE(few.error().message.find("needs 2"), std::string::npos) << few.error().message;
  EXPECT_EQ(read_value_file(folder.file("absent.pb")).error().code, ErrorCode::io);
}

// A value file must not reach into other files.
TEST(ValueFile, ExternalDataIsRefused) {
  const TemporaryFolder folder;
  write_bytes(folder.file("v.textproto"),
              "dims: 1 data_type: 1 data_location: EXTERNAL external_data { key: 'location' value: 'v.textproto' }");
  EXPECT_FALSE(read_value_file(folder.file("v.textproto")).ok());
}

// Every input and output file of the published node tests, read as its model declares it.
TEST(ValueFile, PublishedTestDataIsRead) {
  size_t read = 0;
  for (const std::string& path : files_below("/usr/share/libonnx-testdata/data/node", "model.onnx")) {
    const auto model = import_model(path);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const Graph& graph = (*model)->graph;
    const std::string folder = std::filesystem::path(path).parent_path().string() + "/test_data_set_0/";
    for (const auto& [prefix, ids] : {std::pair("input_", &graph.inputs), std::pair("output_", &graph.outputs)}) {
      for (size_t i = 0; i < ids->size(); ++i) {
        const std::string file = folder + prefix + std::to_string(i) + ".pb";
        if (!std::filesystem::exists(file)) continue;
        const auto value = read_value_file(file, graph.values[static_cast<size_t>((*ids)[i])].type);
        EXPECT_TRUE(value.ok()) << value.error().message;
        ++read;
      }
    }
  }
  EXPECT_GT(read, 2000u) << "install libonnx-testdata";
}

}  // namespace
}  // namespace parallax
