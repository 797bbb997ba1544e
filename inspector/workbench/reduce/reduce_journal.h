// SPDX-License-Identifier: Apache-2.0
// Journal: the verdicts of a reduction, one line of JSON each, so that a search that was killed need not ask again.
#pragma once

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
  // A journal that is there is only ever added to, and a new one replaces it as a whole: a process that is killed
  // leaves one that can be read. Errors: usage (a file that is no journal and may not be replaced), io.
  static Result<std::unique_ptr<ReduceJournal>> open(const std::string& path, const std::string& subject);
  ~ReduceJournal();
  ReduceJournal(const ReduceJournal&) = delete;
  ReduceJournal& operator=(const ReduceJournal&) = delete;

  std::optional<bool> find(const std::string& candidate) const;
  // Is on disk when it returns. Errors: io.
  Status add(const std::string& candidate, size_t nodes, bool fails);
  // A sentence about the end of the journal that was found, where a line was cut off; else empty.
  const std::string& remark() const { return remark_; }

 private:
  explicit ReduceJournal(std::string path) : path_(std::move(path)) {}
  Status begin(const std::string& first_line);
  Status append_after(size_t end);
  Status write_line(const std::string& line);
  Error failed() const;

  std::string path_;
  int descriptor_ = -1;
  std::map<std::string, bool, std::less<>> verdicts_;
  std::string remark_;
};

}  // namespace parallax
