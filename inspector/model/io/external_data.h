// SPDX-License-Identifier: Apache-2.0
// The files next to a model that hold weights: found, checked and mapped once each. Private to this folder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "inspector/base/mapped_file.h"
#include "inspector/base/result.h"

namespace parallax {

class ExternalData {
 public:
  // `directory` is the model's folder; "" refuses all external data. `keeps_absent`: a tensor whose elements cannot be
  // had is kept without them (StoredTensor::absence), and so is an attribute whose value cannot be read.
  explicit ExternalData(std::string directory, bool keeps_absent = false)
      : directory_(std::move(directory)), keeps_absent_(keeps_absent) {}

  bool keeps_absent() const { return keeps_absent_; }

  // The file that `location` names. It must be a relative path without "..", and be inside the model's folder even
  // after symbolic links are followed.
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location);

 private:
  Result<std::string> resolve(const std::string& location) const;

  std::string directory_;
  bool keeps_absent_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace parallax
