// SPDX-License-Identifier: Apache-2.0
// Messages for the person at the terminal: to stderr, one line each. Results never go through here.
#pragma once

#include <string_view>

namespace parallax {

enum class LogLevel { quiet, warning, info, debug };

void set_log_level(LogLevel level);  // info unless set
void log_warning(std::string_view message);
void log_info(std::string_view message);
void log_debug(std::string_view message);

}  // namespace parallax
