// SPDX-License-Identifier: Apache-2.0
// The log functions over spdlog's stderr sink, plain text without time stamps.
#include "inspector/base/log.h"

#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace parallax {
namespace {

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("parallax", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%v");
    made.set_level(spdlog::level::info);
    return made;
  }();
  return instance;
}

// Names in messages come from files: none of them steers a terminal, or makes a message look like two.
std::string on_one_line(std::string_view message) {
  std::string line(message);
  for (char& character : line) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7F) character = character == '\n' || character == '\t' ? ' ' : '?';
  }
  return line;
}

}  // namespace

void set_log_level(LogLevel level) {
  switch (level) {
    case LogLevel::quiet:
      return logger().set_level(spdlog::level::off);
    case LogLevel::warning:
      return logger().set_level(spdlog::level::warn);
    case LogLevel::info:
      return logger().set_level(spdlog::level::info);
    case LogLevel::debug:
      return logger().set_level(spdlog::level::debug);
  }
}

void log_warning(std::string_view message) { logger().warn("warning: {}", on_one_line(message)); }
void log_info(std::string_view message) { logger().info("{}", on_one_line(message)); }
void log_debug(std::string_view message) { logger().debug("{}", on_one_line(message)); }

}  // namespace parallax
