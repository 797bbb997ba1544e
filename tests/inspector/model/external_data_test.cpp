// SPDX-License-Identifier: Apache-2.0
// Weights next to the model: mapped, never copied, never read from outside the model's folder; and written again.
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

std::string model_text(const std::string& entries, const std::string& dims = "dims: 4") {
  return "ir_version: 8 opset_import { version: 17 } graph { input { name: 'x' type { tensor_type { elem_type: 1 } } } "
         "output { name: 'x' type { tensor_type { elem_type: 1 } } } initializer { name: 'w' data_type: 1 " +
         dims + " data_location: EXTERNAL " + entries + " } }";
}

std::string entry(const std::string& key, const std::string& value) {
  return "external_data { key: '" + key + "' value: '" + value + "' } ";
}

class ExternalDataTest : public testing::Test {
 protected:
  ExternalDataTest() {
    std::vector<float> weights(8);
    std::iota(weights.begin(), weights.end(), 0.0f);
    std::filesystem::create_directories(folder_.file("model/sub"));
    const std::string_view bytes(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float));
    write_bytes(folder_.file("model/w.data"), bytes);
    write_bytes(folder_.file("model/sub/w.data"), bytes);
    write_bytes(folder_.file("secret"), bytes);
  }

  Result<std::shared_ptr<const Model>> import(const std::string& text) {
    write_bytes(folder_.file("model/m.textproto"), text);
    return import_model(folder_.file("model/m.textproto"));
  }

  std::string error_of(const std::string& text) {
    const auto model = import(text);
    return model.ok() ? "" : model.error().message;
  }

  TemporaryFolder folder_;
};

// True where `address` is in a mapping of the file `name`.
bool is_mapped_from(const void* address, const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    if (wanted >= begin && wanted < end) return line.ends_with(name);
  }
  return false;
}

TEST_F(ExternalDataTest, WeightsAreViewedInTheMappedFile) {
  const auto model = import(model_text(entry("location", "w.data") + entry("offset", "8") + entry("length", "16")));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const StoredTensor& stored = (*model)->graph.initializers[0];
  EXPECT_EQ(stored.tensor.as<float>()[0], 2.0f);
  EXPECT_EQ(stored.tensor.as<float>()[3], 5.0f);
  EXPECT_EQ(stored.external_location, "w.data");
  EXPECT_TRUE(is_mapped_from(stored.tensor.view().data, "/w.data"));
}

TEST_F(ExternalDataTest, UnalignedWeightsAreCopiedOnce) {
  const auto model = import(model_text(entry("location", "w.data") + entry("offset", "3") + entry("length", "16")));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Tensor& tensor = (*model)->graph.initializers[0].tensor;
  const std::string file = read_file(folder_.file("model/w.data")).take();
  EXPECT_EQ(std::memcmp(tensor.view().data, file.data() + 3, 16), 0);
  EXPECT_FALSE(is_mapped_from(tensor.view().data, "/w.data"));
}

TEST_F(ExternalDataTest, OffsetAndLengthMayBeLeftOut) {
  EXPECT_EQ(error_of(model_text(entry("location", "sub/w.data"), "dims: 8")), "");
  EXPECT_EQ(error_of(model_text(entry("location", "./w.data"), "dims: 2")), "");
}

TEST_F(ExternalDataTest, LeavesTheModelsFolderByNoWay) {
  std::filesystem::create_symlink(folder_.file("secret"), folder_.file("model/link.data"));
  std::filesystem::create_directory_symlink(folder_.path(), folder_.file("model/up"));
  std::filesystem::create_symlink("w.data", folder_.file("model/inside.data"));
  const auto refuses = [&](const std::string& location, const std::string& reason) {
    const std::string message = error_of(model_text(entry("location", location)));
    EXPECT_NE(message.find("m.textproto': initializer 'w': "), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  refuses("../secret", "must not contain '..'");
  refuses("sub/../../secret", "must not contain '..'");
  refuses(folder_.file("secret"), "must be relative");
  refuses("link.data", "a symbolic link leads out of the model's folder");
  refuses("up/secret", "a symbolic link leads out of the model's folder");
  refuses("absent.data", "cannot open external data 'absent.data'");
  refuses("sub", "is not a regular file");
  refuses("", "without a location");
  refuses("w.data\\000/../../secret", "zero byte");
  EXPECT_EQ(error_of(model_text(entry("location", "inside.data"))), "");
}

TEST_F(ExternalDataTest, OffsetAndLengthMustFit) {
  const auto refuses = [&](const std::string& offset, const std::string& length, const std::string& reason) {
    const std::string message =
        error_of(model_text(entry("location", "w.data") + entry("offset", offset) + entry("length", length)));
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  refuses("17", "16", "has 32 bytes, too few for 16 from offset 17");
  refuses("9223372036854775807", "16", "too few");
  refuses("-1", "16", "offset '-1', which is no size");
  refuses("0x1", "16", "no size");
  refuses("99999999999999999999", "16", "no size");
  refuses("0", "12", "holds 12 bytes where float32[4] needs 16");
  refuses("0", "20", "holds 20 bytes where float32[4] needs 16");
}

TEST_F(ExternalDataTest, AModelFromMemoryHasNoFolder) {
  const std::string text = model_text(entry("location", "w.data"));
  const auto model = import_model(std::as_bytes(std::span(text)), "", "memory.textproto");
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("has no folder"), std::string::npos) << model.error().message;
}

TEST_F(ExternalDataTest, IsWrittenNextToTheModelAgain) {
  const auto model = import(model_text(entry("location", "w.data") + entry("offset", "8")));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Status written = export_model(**model, folder_.file("out.onnx"));
  ASSERT_TRUE(written.ok()) << written.error().message;
  const auto again = import_model(folder_.file("out.onnx"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  const StoredTensor& stored = (*again)->graph.initializers[0];
  EXPECT_EQ(stored.external_location, "out.onnx.data");
  EXPECT_EQ(std::memcmp(stored.tensor.view().data, (*model)->graph.initializers[0].tensor.view().data, 16), 0);

  ExportOptions inside;
  inside.keep_external = false;
  ASSERT_TRUE(export_model(**model, folder_.file("inline.onnx"), inside).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.file("inline.onnx.data")));
  EXPECT_EQ((*import_model(folder_.file("inline.onnx")))->graph.initializers[0].external_location, "");
}

TEST_F(ExternalDataTest, ThresholdAndFileNameAreChosen) {
  const auto model = import(
      "ir_version: 8 opset_import { version: 17 } graph { "
      "initializer { name: 'a' dims: 1 data_type: 1 float_data: 1 } "
      "initializer { name: 'b' dims: 3 data_type: 3 raw_data: 'abc' } "
      "initializer { name: 'c' dims: 2 data_type: 1 raw_data: 'abcdefgh' } }");
  ASSERT_TRUE(model.ok()) << model.error().message;
  ExportOptions options;
  options.external_threshold_bytes = 2;
  options.external_file = "weights.bin";
  ASSERT_TRUE(export_model(**model, folder_.file("o.onnx"), options).ok());
  EXPECT_EQ(std::filesystem::file_size(folder_.file("weights.bin")), 64u + 64u + 8u);
  const auto again = import_model(folder_.file("o.onnx"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ((*again)->graph.initializers[1].tensor.as<int8_t>()[2], 'c');
  options.external_file = "../weights.bin";
  EXPECT_FALSE(export_model(**model, folder_.file("o.onnx"), options).ok());
}

TEST_F(ExternalDataTest, WeightsThatAreMappedAreNotWrittenOver) {
  const auto model = import(model_text(entry("location", "w.data")));
  ASSERT_TRUE(model.ok());
  ExportOptions options;
  options.external_file = "w.data";
  const Status written = export_model(**model, folder_.file("model/other.onnx"), options);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(exit_code(written.error().code), 2);
  EXPECT_NE(written.error().message.find("w.data"), std::string::npos) << written.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("model/other.onnx")));
  EXPECT_EQ((*model)->graph.initializers[0].tensor.as<float>()[3], 3.0f);
}

}  // namespace
}  // namespace parallax
