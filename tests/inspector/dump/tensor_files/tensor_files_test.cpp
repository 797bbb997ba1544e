// SPDX-License-Identifier: Apache-2.0
// .npy, .npz and .safetensors: what is written is read again, foreign layouts are understood, nonsense is refused with
// a sentence.
#include <fmt/format.h>

#include "inspector/dump/tensor_files/npy.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// A version 1 file with any header text.
std::string npy(const std::string& literal, const std::string& data) {
  const auto length = static_cast<uint16_t>(literal.size());
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(length & 0xFF);
  file += static_cast<char>(length >> 8);
  return file + literal + data;
}
std::string npy(const std::string& descr, const std::string& order, const std::string& shape, const std::string& data) {
  return npy(fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}\n", descr, order, shape), data);
}

std::string raw(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string safetensors(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

void expect_refusal(const Result<Tensor>& result, ErrorCode code, const std::string& says) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_NE(result.error().message.find(says), std::string::npos) << result.error().message;
}

TEST(TensorFiles, NpyKeepsEveryTypeItCanHold) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  int held = 0;
  for (const DTypeInfo& info : all_dtypes()) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3, 4}}) {
      const Tensor tensor = random_tensor(info.dtype, shape, 1);
      const Status written = write_npy(path, tensor);
      EXPECT_EQ(written.ok(), refusal_of_npy(tensor).empty());
      if (!written.ok()) continue;
      ++held;
      const auto read = read_npy(path);
      ASSERT_OK(read);
      EXPECT_TRUE(same_bits(*read, tensor)) << info.name << shape.to_string();
    }
  }
  EXPECT_EQ(held, 4 * 15);  // fourteen numeric types and text
}

TEST(TensorFiles, NpyReadsColumnMajorBigEndianAndBothAtOnce) {
  const std::vector<int16_t> row_major = {1, 2, 3, 4, 5, 6};
  const std::vector<int16_t> column_major = {1, 4, 2, 5, 3, 6};
  const auto swapped = [](std::vector<int16_t> values) {
    for (int16_t& value : values) value = static_cast<int16_t>(value << 8);
    return values;
  };
  const struct {
    std::string descr;
    std::string order;
    std::vector<int16_t> data;
  } cases[] = {{"'<i2'", "False", row_major},
               {"'<i2'", "True", column_major},
               {"'>i2'", "False", swapped(row_major)},
               {"'>i2'", "True", swapped(column_major)}};
  for (const auto& c : cases) {
    const std::string file = npy(c.descr, c.order, "(2, 3)", raw(std::as_bytes(std::span(c.data))));
    const auto tensor = parse_npy(bytes_of(file), nullptr);
    ASSERT_OK(tensor);
    EXPECT_TRUE(same_bits(*tensor, Tensor::from<int16_t>({2, 3}, row_major))) << c.descr << c.order;
  }
}

TEST(TensorFiles, NpySwapsThePartsOfComplexNumbers) {
  const std::string file = npy("'>c8'", "False", "(1,)", std::string("\x3F\x80\x00\x00\xC0\x00\x00\x00", 8));
  const auto tensor = parse_npy(bytes_of(file), nullptr);
  ASSERT_OK(tensor);
  EXPECT_EQ(tensor->as<std::complex<float>>()[0], std::complex<float>(1, -2));
}

TEST(TensorFiles, NpyReadsBfloat16OfMlDtypes) {
  const std::string file = npy("'<V2'", "False", "(2,)", std::string("\x80\x3F\x20\xC0", 4));
  const auto tensor = parse_npy(bytes_of(file), nullptr);
  ASSERT_OK(tensor);
  EXPECT_EQ(tensor->dtype(), DType::bfloat16);
  EXPECT_EQ(element_as_double(tensor->view(), 0), 1);
  EXPECT_EQ(element_as_double(tensor->view(), 1), -2.5);
}

TEST(TensorFiles, NpyReadsTextOfBothKinds) {
  const std::u32string wide = U"h\u00e9\U0001F600" + std::u32string(1, U'\0') + U"ab" + std::u32string(2, U'\0');
  const auto unicode = parse_npy(bytes_of(npy("'<U4'", "False", "(2,)", raw(std::as_bytes(std::span(wide))))), nullptr);
  ASSERT_OK(unicode);
  EXPECT_EQ(unicode->as<std::string>()[0], "h\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(unicode->as<std::string>()[1], "ab");
  const auto plain = parse_npy(bytes_of(npy("'|S3'", "False", "(2,)", std::string("abcx\0\0", 6))), nullptr);
  ASSERT_OK(plain);
  EXPECT_EQ(plain->as<std::string>()[1], "x");
}

TEST(TensorFiles, NpyRefusesWithTheReason) {
  const std::string data(64, '\0');
  expect_refusal(parse_npy(bytes_of(npy("[('a', '<f4')]", "False", "(1,)", data)), nullptr), ErrorCode::unsupported,
                 "records");
  expect_refusal(parse_npy(bytes_of(npy("'|O'", "False", "(1,)", data)), nullptr), ErrorCode::unsupported, "objects");
  expect_refusal(parse_npy(bytes_of(npy("'<M8[s]'", "False", "(1,)", data)), nullptr), ErrorCode::unsupported, "dates");
  expect_refusal(parse_npy(bytes_of(npy("'|V2'", "False", "(1,)", data)), nullptr), ErrorCode::unsupported,
                 "safetensors");
  expect_refusal(parse_npy(bytes_of(npy("'<f16'", "False", "(1,)", data)), nullptr), ErrorCode::unsupported, "f16");
  expect_refusal(parse_npy(bytes_of(npy("'<f4'", "False", "(17,)", data)), nullptr), ErrorCode::corrupt_file,
                 "needs more");
  expect_refusal(parse_npy(bytes_of(npy("'<f4'", "False", "(4611686018427387904, 4)", data)), nullptr),
                 ErrorCode::corrupt_file, "");
  expect_refusal(parse_npy(bytes_of(npy("'<f4'", "False", "(-1,)", data)), nullptr), ErrorCode::corrupt_file, "size");
  expect_refusal(parse_npy(bytes_of(npy("'<f4'", "Maybe", "(1,)", data)), nullptr), ErrorCode::corrupt_file,
                 "fortran_order");
  expect_refusal(parse_npy(bytes_of(npy("{'descr': '<f4'}", data)), nullptr), ErrorCode::corrupt_file, "missing");
  expect_refusal(parse_npy(bytes_of(npy("'|b1'", "False", "(1,)", "\x02")), nullptr), ErrorCode::corrupt_file, "bool");
  expect_refusal(parse_npy(bytes_of(npy("'<U1'", "False", "(1,)", "\xFF\xFF\xFF\x7F")), nullptr),
                 ErrorCode::corrupt_file, "character");
  expect_refusal(parse_npy(bytes_of("PK\x03\x04 something else"), nullptr), ErrorCode::corrupt_file, "no .npy");
}

TEST(TensorFiles, NpyCutAtEveryByteIsRefused) {
  const std::string file = npy("'<f4'", "False", "(2, 2)", std::string(16, 'x'));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(parse_npy(bytes_of(file.substr(0, size)), nullptr).ok()) << size;
  }
}

TEST(TensorFiles, NpzAndSafetensorsKeepNamesTypesAndOrderOfElements) {
  const TemporaryFolder folder;
  for (const bool is_npz : {true, false}) {
    std::vector<NamedValue> values;
    for (const DTypeInfo& info : all_dtypes()) {
      const Tensor tensor = random_tensor(info.dtype, {3, 5}, values.size());
      const std::string refusal = is_npz ? refusal_of_npy(tensor) : refusal_of_safetensors(tensor);
      if (refusal.empty()) values.push_back({fmt::format("a/{}", info.name), Value(tensor)});
    }
    EXPECT_EQ(values.size(), is_npz ? 15U : 20U);
    const std::string path = folder / (is_npz ? "a.npz" : "a.safetensors");
    if (is_npz) {
      ASSERT_OK(write_npz(path, values));
    } else {
      ASSERT_OK(write_safetensors(path, values));
    }
    const auto read = is_npz ? read_npz(path) : read_safetensors(path);
    ASSERT_OK(read);
    ASSERT_EQ(read->size(), values.size());
    for (const NamedValue& value : values) {
      const auto found = std::ranges::find(*read, value.name, &NamedValue::name);
      ASSERT_NE(found, read->end()) << value.name;
      EXPECT_TRUE(same_bits(found->value, value.value)) << value.name;
    }
  }
}

TEST(TensorFiles, NpzDamageIsFoundByItsCrc) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.npz";
  const std::vector<NamedValue> values = {{"x", Value(random_tensor(DType::float32, {100}, 1))}};
  ASSERT_OK(write_npz(path, values));
  std::string file = contents_of(path);
  file[300] = static_cast<char>(file[300] ^ 1);
  const auto read = parse_npz(bytes_of(file));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::corrupt_file);
  EXPECT_NE(read.error().message.find("x.npy"), std::string::npos) << read.error().message;
}

TEST(TensorFiles, SafetensorsRefusesHeadersThatLie) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"x\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  const std::string data(8, '\0');
  ASSERT_OK(parse_safetensors(bytes_of(safetensors(entry("F32", "[2]", "[0,8]"), data)), nullptr));
  const std::vector<std::pair<std::string, std::string>> forgeries = {
      {safetensors(entry("F32", "[2]", "[0,16]"), data), "outside"},
      {safetensors(entry("F32", "[2]", "[8,0]"), data), "outside"},
      {safetensors(entry("F32", "[3]", "[0,8]"), data), "do not make"},
      {safetensors(entry("F32", "[1]", "[0,4]"), data), "belong to no tensor"},
      {safetensors(entry("F32", "[1]", "[4,8]"), data), "belong to no tensor"},
      {safetensors(entry("F32", "[-2]", "[0,8]"), data), "shape"},
      {safetensors(entry("F32", "[4611686018427387904,4]", "[0,8]"), data), "tensor 'x'"},
      {safetensors(entry("F32", "2", "[0,8]"), data), "shape"},
      {safetensors(entry("F33", "[2]", "[0,8]"), data), "F33"},
      {safetensors("{\"x\":1}", data), "object"},
      {safetensors("{\"x\":", data), "JSON"},
      {safetensors("[]", data), "JSON"},
      {std::string(8, '\xFF') + "{}", "header"},
      {"short", "too short"},
      {safetensors("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"y\":{\"dtype\":\"F32\",\"shape\":"
                   "[2],\"data_offsets\":[0,8]}}",
                   data),
       "share"},
  };
  for (const auto& [file, says] : forgeries) {
    const auto read = parse_safetensors(bytes_of(file), nullptr);
    ASSERT_FALSE(read.ok()) << says;
    EXPECT_NE(read.error().message.find(says), std::string::npos) << read.error().message;
  }
}

TEST(TensorFiles, WritingWhatAFormatCannotHoldSaysWhatCan) {
  const TemporaryFolder folder;
  const Status npy_status = write_npy(folder / "a.npy", random_tensor(DType::bfloat16, {2}, 1));
  ASSERT_FALSE(npy_status.ok());
  EXPECT_EQ(npy_status.error().code, ErrorCode::unsupported);
  EXPECT_NE(npy_status.error().message.find(".safetensors"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.npy"));
}

}  // namespace
}  // namespace parallax::test
