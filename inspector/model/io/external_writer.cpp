// SPDX-License-Identifier: Apache-2.0
// Writing external data: each payload at a multiple of 64 bytes, so that it can be viewed where it is mapped.
#include "inspector/model/io/external_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "inspector/base/mapped_ranges.h"
#include "inspector/tensor/narrow_floats.h"

namespace parallax {
namespace {

constexpr size_t kBlockElements = size_t{1} << 20;

}  // namespace

Error ExternalWriter::failed(const char* action) const {
  return io_error(std::string("cannot ") + action + " '" + path_ + "': " + std::strerror(errno));
}

bool ExternalWriter::takes(const StoredTensor& stored) const {
  const size_t bytes = stored.tensor.dtype() == DType::string ? 0 : stored.tensor.size_bytes();
  return bytes > threshold_bytes_ || (keep_external_ && bytes > 0 && !stored.external_location.empty());
}

Result<std::optional<PayloadSink::Location>> ExternalWriter::write(const StoredTensor& stored) {
  if (!takes(stored)) return std::optional<Location>();
  if (file_ == nullptr) {
    output_ = PX_TRY(OutputFile::create(path_));
    const int descriptor = ::fcntl(output_->descriptor(), F_DUPFD_CLOEXEC, 0);
    file_.reset(descriptor < 0 ? nullptr : ::fdopen(descriptor, "wb"));
    if (file_ == nullptr) return failed("create");
  }
  constexpr std::array<char, Tensor::kAlignment> kZeros{};
  const size_t padding = (Tensor::kAlignment - size_ % Tensor::kAlignment) % Tensor::kAlignment;
  if (std::fwrite(kZeros.data(), 1, padding, file_.get()) != padding || !write_payload(stored)) return failed("write");
  const uint64_t offset = size_ + padding;
  size_ = offset + stored.tensor.size_bytes();
  return std::optional<Location>(Location{name_, offset});
}

const Tensor* ExternalWriter::source_of(const StoredTensor& stored) const {
  const auto found = deferred_.find(&stored);
  return found == deferred_.end() ? nullptr : &found->second;
}

// Pages of a mapped file are given back once they are written, so that memory does not grow with the model.
bool ExternalWriter::write_payload(const StoredTensor& stored) {
  if (const Tensor* source = source_of(stored)) return write_converted(*source, stored.tensor.dtype());
  const auto bytes = stored.tensor.view().bytes();
  constexpr size_t kBlockBytes = kBlockElements * sizeof(float);
  for (size_t begin = 0; begin < bytes.size(); begin += kBlockBytes) {
    const auto block = bytes.subspan(begin, std::min(kBlockBytes, bytes.size() - begin));
    if (std::fwrite(block.data(), 1, block.size(), file_.get()) != block.size()) return false;
    release_if_mapped(block.data(), block.size());
  }
  return true;
}

bool ExternalWriter::write_converted(const Tensor& source, DType to) {
  const auto values = source.as<float>();
  std::vector<uint16_t> narrow(std::min(values.size(), kBlockElements));
  for (size_t begin = 0; begin < values.size(); begin += kBlockElements) {
    const auto block = values.subspan(begin, std::min(kBlockElements, values.size() - begin));
    narrow_floats(block, to, narrow);
    if (std::fwrite(narrow.data(), sizeof(uint16_t), block.size(), file_.get()) != block.size()) return false;
    release_if_mapped(reinterpret_cast<const std::byte*>(block.data()), block.size_bytes());
  }
  return true;
}

Status ExternalWriter::finish() {
  if (file_ == nullptr) return {};
  if (std::fclose(file_.release()) != 0) return failed("write");
  return output_->finish();
}

}  // namespace parallax
