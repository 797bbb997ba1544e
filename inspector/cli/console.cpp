// SPDX-License-Identifier: Apache-2.0
// Printing, errors and the progress bar.
#include "inspector/cli/console.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "inspector/base/shown_text.h"
#include "inspector/render/report_json.h"

namespace parallax::cli {

namespace {

// The end of a color sequence of our reports, ESC [ digits m, that begins at `begin`; `begin` where it is none.
size_t end_of_color(std::string_view text, size_t begin) {
  if (text.substr(begin, 2) != "\033[") return begin;
  const size_t end = text.find_first_not_of("0123456789", begin + 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : begin;
}

// Names come from files: none of them may steer a terminal, or be bytes that are no text.
std::string harmless(std::string_view text, bool keeps_colors) {
  std::string shown;
  for (size_t begin = 0; begin < text.size();) {
    const size_t color = keeps_colors ? std::min(text.find("\033[", begin + 1), text.size()) : text.size();
    const size_t end = keeps_colors ? end_of_color(text, begin) : begin;
    shown += text.substr(begin, end - begin);
    shown += printable(text.substr(end, color - end), "\n\t");
    begin = color;
  }
  return shown;
}

void write_out(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

void print_message(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void print(std::string_view text) { write_out(harmless(text, false)); }

void print_colored(std::string_view text) { write_out(harmless(text, stdout_takes_color())); }

bool flush_output() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

bool stdout_takes_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

namespace {

// Never destroyed: it is asked for when the process ends.
struct CommandLine {
  std::string text;
  bool wants_json = false;
};
CommandLine& command_line() {
  static auto* const kept = new CommandLine;
  return *kept;
}

std::string quoted_for_shell(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char character : word) character == '\'' ? quoted.append("'\\''") : quoted.append(1, character);
  return quoted + "'";
}

}  // namespace

void keep_command(const std::vector<std::string>& arguments) {
  CommandLine& kept = command_line();
  kept.text = "parallax";
  kept.wants_json = std::ranges::find(arguments, "--json") != arguments.end();
  for (const std::string& argument : arguments) kept.text += " " + quoted_for_shell(argument);
}

const std::string& kept_command() { return command_line().text; }

bool wants_json() { return command_line().wants_json; }

int report_error(const Error& error, bool json) {
  if (json) {
    print(error_to_json(error) + "\n");
    std::fflush(stdout);
  } else {
    std::string location;
    if (!error.node.empty())
      location = fmt::format(" [node '{}'{}]", error.node, error.op.empty() ? "" : ", " + plain_operator(error.op));
    const bool named = !error.node.empty() && error.message.find("'" + error.node + "'") != std::string::npos;
    const std::string sentence = error.message + (named ? "" : location);
    print_message(fmt::format("parallax: {}: {}\n", name_of(error.code), one_safe_line(sentence)));
  }
  return exit_code(error.code);
}

namespace {

// The thread of the fault may hold the lock of stdout.
void report_lost_file(const SignalCleanup& left) {
  const Error error = lost_file_error(left);
  const std::string text = wants_json()
                               ? error_to_json(error) + "\n"
                               : fmt::format("parallax: {}: {}\n", name_of(error.code), one_safe_line(error.message));
  static_cast<void>(::write(wants_json() ? STDOUT_FILENO : STDERR_FILENO, text.data(), text.size()) == 0);
}

}  // namespace

void report_exhaustion(const Error& error) { report_error(error, wants_json()); }

void report_end(int signal, const SignalCleanup& left) {
  if (!left.lost_file.empty()) return report_lost_file(left);
  constexpr std::pair<int, std::string_view> kNames[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
  const auto* const name = std::ranges::find(kNames, signal, &std::pair<int, std::string_view>::first);
  print_message(fmt::format("{}parallax: interrupted by {}: {}\n", stderr_is_terminal() ? "\r\033[K" : "",
                            name == std::end(kNames) ? "a signal" : name->second, one_safe_line(to_string(left))));
}

void ProgressBar::update(int64_t done, int64_t total) {
  if (!active_ || total <= 0) return;
  const int64_t permille = std::min<int64_t>(1000, done * 1000 / total);
  if (permille == shown_permille_) return;
  shown_permille_ = permille;
  constexpr int kWidth = 40;
  const auto filled = static_cast<size_t>(permille * kWidth / 1000);
  print_message(fmt::format("\r{} [{}{}] {}/{}", title_, std::string(filled, '='), std::string(kWidth - filled, ' '),
                            done, total));
}

ProgressBar::~ProgressBar() {
  if (active_ && shown_permille_ >= 0) print_message("\r\033[K");
}

}  // namespace parallax::cli
