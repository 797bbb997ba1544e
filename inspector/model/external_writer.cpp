// Writing external data: each payload at a multiple of 64 bytes, so that it can be viewed where it is mapped.
#include "inspector/model/external_writer.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace parallax {

Error ExternalWriter::failed(const char* action) const {
  return io_error(std::string("cannot ") + action + " '" + path_ + "': " + std::strerror(errno));
}

bool ExternalWriter::takes(const StoredTensor& stored) const {
  const size_t bytes = stored.tensor.dtype() == DType::string ? 0 : stored.tensor.size_bytes();
  return bytes > threshold_bytes_ || (keep_external_ && bytes > 0 && !stored.external_location.empty());
}

Result<std::optional<PayloadSink::Place>> ExternalWriter::write(const StoredTensor& stored) {
  if (!takes(stored)) return std::optional<Place>();
  if (file_ == nullptr) {
    temporary_ = std::make_unique<TemporaryPath>(path_ + ".part" + std::to_string(::getpid()));
    file_.reset(std::fopen(temporary_->path().c_str(), "wb"));
    if (file_ == nullptr) return failed("create");
  }
  constexpr std::array<char, Tensor::kAlignment> kZeros{};
  const size_t padding = (Tensor::kAlignment - size_ % Tensor::kAlignment) % Tensor::kAlignment;
  const auto bytes = stored.tensor.view().bytes();
  const bool written = std::fwrite(kZeros.data(), 1, padding, file_.get()) == padding &&
                       std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
  if (!written) return failed("write");
  const uint64_t offset = size_ + padding;
  size_ = offset + bytes.size();
  return std::optional<Place>(Place{name_, offset});
}

Status ExternalWriter::finish() {
  if (file_ == nullptr) return {};
  if (std::fclose(file_.release()) != 0 || std::rename(temporary_->path().c_str(), path_.c_str()) != 0)
    return failed("write");
  note_output(path_, true);
  return {};
}

}  // namespace parallax
