// SPDX-License-Identifier: Apache-2.0
// The file next to a model that takes its large weights. Private to this folder.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "inspector/base/output_file.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/tensor_proto.h"

namespace parallax {

class ExternalWriter : public PayloadSink {
 public:
  // Takes tensors above `threshold_bytes` and, with `keep_external`, those that lay outside when they were imported.
  // The file `name` comes into being in `folder` with the first one.
  // Those of `deferred` (not copied) are converted on their way, block by block.
  ExternalWriter(const std::string& folder, std::string name, size_t threshold_bytes, bool keep_external,
                 const DeferredTensors& deferred)
      : path_(folder + "/" + name),
        name_(std::move(name)),
        threshold_bytes_(threshold_bytes),
        keep_external_(keep_external),
        deferred_(deferred) {}
  ExternalWriter(const ExternalWriter&) = delete;
  ExternalWriter& operator=(const ExternalWriter&) = delete;

  Result<std::optional<Location>> write(const StoredTensor& tensor) override;
  const Tensor* source_of(const StoredTensor& tensor) const override;
  // True where `tensor` is stored in the file.
  bool takes(const StoredTensor& tensor) const;
  // Gives the file its name. Until then nothing is seen of it, and an older file of that name stays.
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Error failed(const char* action) const;
  bool write_payload(const StoredTensor& stored);
  bool write_converted(const Tensor& source, DType to);

  std::string path_;
  std::string name_;
  size_t threshold_bytes_;
  bool keep_external_;
  const DeferredTensors& deferred_;
  uint64_t size_ = 0;
  std::unique_ptr<OutputFile> output_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace parallax
