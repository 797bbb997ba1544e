// SPDX-License-Identifier: Apache-2.0
// A table of first bytes, and kinds that need a second look.
#include "inspector/model/io/foreign_file.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

using namespace std::string_view_literals;

struct FirstBytes {
  size_t at;
  std::string_view bytes;
  std::string_view what;
};

constexpr FirstBytes kKinds[] = {
    {4, "ORTM"sv,
     "is a model in the .ort format of onnxruntime, which only onnxruntime reads: give the .onnx file that it was made "
     "from"},
    {4, "TFL3"sv, "is a TensorFlow Lite model, not ONNX: tf2onnx --tflite converts it"},
    {0, "\x89HDF\r\n"sv, "is an HDF5 file (a Keras model or its weights), not ONNX: tf2onnx --keras converts it"},
    {0, "\x93NUMPY"sv, "is a NumPy array, not a model: --input NAME=FILE.npy gives it to a run"},
    {0, "GGUF"sv, "is a GGUF file of llama.cpp, not ONNX: export the model that it was made from"},
    {0, "ftrt"sv, "is a TensorRT engine, not ONNX: give the model that it was built from"},
    {0, "\x80\x02"sv, "is a Python pickle (a PyTorch checkpoint?), not ONNX: torch.onnx.export makes a model of it"},
    {0, "\x80\x04"sv, "is a Python pickle, not ONNX: export the model from Python"},
    {0, "\x1f\x8b"sv, "is compressed by gzip: gunzip it first"},
    {0,
     "\xfd"
     "7zXZ"sv,
     "is compressed by xz: unxz it first"},
    {0, "\x28\xb5\x2f\xfd"sv, "is compressed by zstd: zstd -d unpacks it"},
    {0, "7z\xbc\xaf"sv, "is a 7-Zip archive: unpack it first"},
    {257, "ustar"sv, "is a tar archive: unpack it first"},
    {0,
     "\x7f"
     "ELF"sv,
     "is a program or library (ELF), not a model"},
    {0, "%PDF"sv, "is a PDF document, not a model"},
    {0, "\x89PNG\r\n"sv, "is a picture (PNG), not a model"},
    {0, "\xff\xd8\xff"sv, "is a picture (JPEG), not a model"},
};

bool starts_with(std::string_view text, size_t at, std::string_view what) {
  return text.size() >= at + what.size() && text.substr(at, what.size()) == what;
}

std::string_view without_blanks(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text.substr(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
}

bool starts_with_tag(std::string_view text, std::string_view tag) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= tag.size() &&
         std::equal(tag.begin(), tag.end(), text.begin(), [&](char a, char b) { return a == lower(b); });
}

std::string lfs_pointer(std::string_view text) {
  const size_t at = text.find("\nsize ");
  const size_t end = at == std::string_view::npos ? at : text.find('\n', at + 6);
  const std::string size =
      end == std::string_view::npos ? "" : " of " + std::string(text.substr(at + 6, end - at - 6)) + " bytes";
  return "is a Git LFS pointer in place of the file" + size + ": 'git lfs pull' fetches it";
}

std::string zip_archive(std::string_view text) {
  if (text.find("data.pkl") != std::string_view::npos)
    return "is a PyTorch checkpoint (a zip archive), not ONNX: torch.onnx.export makes a model of it";
  if (text.find(".npy") != std::string_view::npos)
    return "is an archive of NumPy arrays (.npz), not a model: --inputs FILE.npz gives it to a run";
  return "is a zip archive: unpack it first";
}

bool is_tensor(std::span<const std::byte> bytes) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  proto::TensorProto tensor;
  if (bytes.size() > kMost || !tensor.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  const bool has_type = proto::TensorProto::DataType_IsValid(tensor.data_type()) && tensor.data_type() != 0;
  return has_type && tensor.unknown_fields().empty();
}

}  // namespace

std::string kind_of_foreign_file(std::span<const std::byte> bytes) {
  constexpr size_t kLooked = 4096;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kLooked));
  for (const FirstBytes& kind : kKinds) {
    if (starts_with(text, kind.at, kind.bytes)) return std::string(kind.what);
  }
  if (text.starts_with("PK\x03\x04")) return zip_archive(text);
  if (text.starts_with("version https://git-lfs.github.com/")) return lfs_pointer(text);
  const std::string_view words = without_blanks(text);
  if (starts_with_tag(words, "<!doctype html") || starts_with_tag(words, "<html"))
    return "is a web page, not a model: what was downloaded is the page about the file, not the file";
  if (words.starts_with("<?xml"))
    return "is XML (a model of OpenVINO?), not ONNX: give the model that it was made from";
  if (text.size() > 10 && text[8] == '{' && text[9] == '"')
    return "is a file of weights alone (.safetensors), not a model: parallax import reads it";
  if (words.starts_with('{') || words.starts_with('['))
    return "is JSON, not a model: a model is the binary form of a ModelProto, or its text form";
  if (is_tensor(bytes)) return "is one tensor (a TensorProto), not a model: --inputs takes the folder of such files";
  return {};
}

}  // namespace parallax
