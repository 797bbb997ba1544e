// SPDX-License-Identifier: Apache-2.0
// The log functions over spdlog's stderr sink, plain text without time stamps.
#include "inspector/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "inspector/base/shown_text.h"

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

// Names in messages come from files: none of them steers a terminal, or makes a message look like two.
void log_warning(std::string_view message) { logger().warn("warning: {}", one_safe_line(message)); }
void log_info(std::string_view message) { logger().info("{}", one_safe_line(message)); }
void log_debug(std::string_view message) { logger().debug("{}", one_safe_line(message)); }

}  // namespace parallax
