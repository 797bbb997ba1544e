// SPDX-License-Identifier: Apache-2.0
// Reading and appending the lines.
#include "inspector/workbench/reduce/reduce_journal.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/render/report_json.h"

namespace parallax {
namespace {

nlohmann::ordered_json parse_line(std::string_view line) { return nlohmann::ordered_json::parse(line, nullptr, false); }

std::string dump_line(const nlohmann::ordered_json& line) { return json_text(line, -1) + "\n"; }

struct ReadLines {
  std::vector<nlohmann::ordered_json> lines;
  size_t end = 0;  // of the last of them
};

// The lines of a journal up to the first that is not finished; none where it is of another subject, or no journal.
ReadLines lines_of(std::string_view text, const std::string& subject) {
  ReadLines read;
  for (size_t newline = 0; (newline = text.find('\n', read.end)) != std::string_view::npos; read.end = newline + 1) {
    nlohmann::ordered_json parsed = parse_line(text.substr(read.end, newline - read.end));
    if (!parsed.is_object()) break;
    if (read.lines.empty() && parsed.value("subject", "") != subject) break;
    read.lines.push_back(std::move(parsed));
  }
  return read;
}

}  // namespace

Result<std::unique_ptr<ReduceJournal>> ReduceJournal::open(const std::string& path, const std::string& subject) {
  const auto contents = read_file(path);
  const std::string text = contents.ok() ? *contents : "";  // there may be none
  input_files::release(path);
  const ReadLines read = lines_of(text, subject);
  std::unique_ptr<ReduceJournal> journal(new ReduceJournal(path));
  if (read.lines.empty()) {
    // A journal of another subject is begun anew; any other file must be one that may be replaced.
    if (!text.starts_with("{\"subject\":")) PX_TRY(admit_output(path));
    PX_TRY(journal->begin(dump_line({{"subject", subject}})));
  } else {
    PX_TRY(journal->append_after(read.end));
  }
  note_output(path, true);  // each of its lines is
  for (const nlohmann::ordered_json& line : read.lines) {
    const auto candidate = line.find("candidate"), fails = line.find("fails");
    if (candidate != line.end() && candidate->is_string() && fails != line.end() && fails->is_boolean())
      journal->verdicts_[candidate->get<std::string>()] = fails->get<bool>();
  }
  if (!read.lines.empty() && read.end < text.size()) {
    journal->remark_ =
        fmt::format("the last line of '{}' is cut off: it is ignored, and what it says is asked again", path);
  }
  return journal;
}

ReduceJournal::~ReduceJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// The first line is a file of its own, which then replaces the one that was there.
Status ReduceJournal::begin(const std::string& first_line) {
  const input_files::Scope scope(true);  // whoever opens it has been admitted
  PX_TRY(write_file(path_, first_line));
  return append_after(first_line.size());
}

// Cuts off the bytes after `end`, which are no line.
Status ReduceJournal::append_after(size_t end) {
  descriptor_ = static_cast<int>(TEMP_FAILURE_RETRY(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)));
  if (descriptor_ < 0) return failed();
  const auto cut = TEMP_FAILURE_RETRY(::ftruncate(descriptor_, static_cast<off_t>(end)));
  return cut == 0 ? Status() : Status(failed());
}

Error ReduceJournal::failed() const {
  return io_error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
}

std::optional<bool> ReduceJournal::find(const std::string& candidate) const {
  const auto found = verdicts_.find(candidate);
  return found == verdicts_.end() ? std::nullopt : std::optional(found->second);
}

Status ReduceJournal::add(const std::string& candidate, size_t nodes, bool fails) {
  verdicts_[candidate] = fails;
  return write_line(dump_line({{"candidate", candidate}, {"nodes", nodes}, {"fails", fails}}));
}

Status ReduceJournal::write_line(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    rest.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace parallax
