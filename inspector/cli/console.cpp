// Printing, errors and the progress bar.
#include "inspector/cli/console.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "inspector/render/report_json.h"

namespace parallax::cli {

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

bool flush_output() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

bool stdout_takes_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

namespace {

std::string& command() {
  static std::string text;
  return text;
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
  command() = "parallax";
  for (const std::string& argument : arguments) command() += " " + quoted_for_shell(argument);
}

const std::string& kept_command() { return command(); }

namespace {

// Names in messages come from files and arguments: none of them may steer the terminal.
std::string without_control_characters(std::string text) {
  for (char& character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7F) character = byte == '\n' || byte == '\t' ? ' ' : '?';
  }
  return text;
}

}  // namespace

int report_error(const Error& error, bool json) {
  if (json) {
    print(error_to_json(error) + "\n");
    std::fflush(stdout);
  } else {
    std::string place;
    if (!error.node.empty()) place = fmt::format(" [node '{}'{}]", error.node, error.op.empty() ? "" : ", " + error.op);
    const bool named = !error.node.empty() && error.message.find("'" + error.node + "'") != std::string::npos;
    const std::string sentence = error.message + (named ? "" : place);
    fmt::print(stderr, "parallax: {}: {}\n", name_of(error.code), without_control_characters(sentence));
  }
  return exit_code(error.code);
}

void ProgressBar::update(int64_t done, int64_t total) {
  if (!active_ || total <= 0) return;
  const int64_t permille = std::min<int64_t>(1000, done * 1000 / total);
  if (permille == shown_permille_) return;
  shown_permille_ = permille;
  constexpr int kWidth = 40;
  const auto filled = static_cast<size_t>(permille * kWidth / 1000);
  fmt::print(stderr, "\r{} [{}{}] {}/{}", title_, std::string(filled, '='), std::string(kWidth - filled, ' '), done,
             total);
}

ProgressBar::~ProgressBar() {
  if (active_ && shown_permille_ >= 0) fmt::print(stderr, "\r\033[K");
}

}  // namespace parallax::cli
