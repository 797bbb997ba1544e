// SPDX-License-Identifier: Apache-2.0
// Reading and appending the lines.
#include "inspector/workbench/reduce/reduce_journal.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/base/text.h"
#include "inspector/render/report_json.h"

namespace parallax {
namespace {

nlohmann::ordered_json parse_line(std::string_view line) { return nlohmann::ordered_json::parse(line, nullptr, false); }

std::string dump_line(const nlohmann::ordered_json& line) { return json_text(line, -1) + "\n"; }

// The lines of a journal; empty where it is of another subject, or no journal.
std::vector<nlohmann::ordered_json> lines_of(std::string_view text, const std::string& subject) {
  std::vector<nlohmann::ordered_json> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    nlohmann::ordered_json parsed = parse_line(line);
    if (!parsed.is_object()) return {};
    if (lines.empty() && parsed.value("subject", "") != subject) return {};
    lines.push_back(std::move(parsed));
  }
  return lines;
}

}  // namespace

Result<std::unique_ptr<ReduceJournal>> ReduceJournal::open(const std::string& path, const std::string& subject) {
  const auto read = read_file(path);
  const std::string text = read.ok() ? *read : "";  // there may be none
  const std::string_view finished = std::string_view(text).substr(0, text.rfind('\n') + 1);
  input_files::release(path);
  const std::vector<nlohmann::ordered_json> lines = lines_of(finished, subject);
  // A journal of another subject is begun anew; any other file must be one that may be replaced.
  if (lines.empty() && !text.starts_with("{\"subject\":")) PX_TRY(admit_output(path));
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), lines.empty() ? "wb" : "ab"));
  const bool is_open =
      file != nullptr && (lines.empty() || TEMP_FAILURE_RETRY(::ftruncate(::fileno(file.get()),
                                                                          static_cast<off_t>(finished.size()))) == 0);
  if (!is_open) return io_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  std::unique_ptr<ReduceJournal> journal(new ReduceJournal(path, std::move(file)));
  note_output(path, true);  // each of its lines is
  if (lines.empty()) PX_TRY(journal->write_line(dump_line({{"subject", subject}})));
  for (const nlohmann::ordered_json& line : lines) {
    const auto candidate = line.find("candidate"), fails = line.find("fails");
    if (candidate != line.end() && candidate->is_string() && fails != line.end() && fails->is_boolean())
      journal->verdicts_[candidate->get<std::string>()] = fails->get<bool>();
  }
  return journal;
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
  const bool is_written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  if (is_written && std::fflush(file_.get()) == 0) return {};
  return io_error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
}

}  // namespace parallax
