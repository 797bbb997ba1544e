// SPDX-License-Identifier: Apache-2.0
// Journal: the verdicts of a reduction, one line of JSON each, so that a search that was killed need not ask again.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "inspector/base/result.h"

namespace parallax {

class ReduceJournal {
 public:
  // Goes on with the journal at `path` when it is of the same `subject` (whatever decides verdicts), else begins anew.
  // A last line that was cut off is forgotten. Errors: io.
  static Result<std::unique_ptr<ReduceJournal>> open(const std::string& path, const std::string& subject);

  std::optional<bool> find(const std::string& candidate) const;
  // Is on disk when it returns. Errors: io.
  Status add(const std::string& candidate, size_t nodes, bool fails);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  ReduceJournal(std::string path, std::unique_ptr<std::FILE, Close> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status write_line(const std::string& line);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::string, bool, std::less<>> verdicts_;
};

}  // namespace parallax
