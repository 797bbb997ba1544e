// SPDX-License-Identifier: Apache-2.0
// Reading and appending the lines.
#include "inspector/workbench/reduce/reduce_journal.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/base/text.h"

namespace parallax {
namespace {

nlohmann::json parse_line(std::string_view line) { return nlohmann::json::parse(line, nullptr, false); }

std::string dump_line(const nlohmann::json& line) {
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// The finished lines of a journal; empty where it is of another subject, or no journal.
std::vector<nlohmann::json> lines_of(std::string_view text, const std::string& subject) {
  std::vector<nlohmann::json> lines;
  const std::string_view finished = text.substr(0, text.rfind('\n') + 1);
  for (const std::string_view line : split(finished, '\n')) {
    if (line.empty()) continue;
    nlohmann::json parsed = parse_line(line);
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
  input_files::release(path);
  std::vector<nlohmann::json> lines = lines_of(text, subject);
  if (lines.empty()) {
    // A journal of another subject is begun anew; any other file must be one that may be replaced.
    if (!text.starts_with("{\"subject\":")) PX_TRY(admit_output(path));
    lines.push_back({{"subject", subject}});
  }
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return io_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  std::unique_ptr<ReduceJournal> journal(new ReduceJournal(path, std::move(file)));
  note_output(path, true);  // each of its lines is
  for (const nlohmann::json& line : lines) {
    PX_TRY(journal->write_line(dump_line(line)));
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
