// SPDX-License-Identifier: Apache-2.0
// The HTML report's template, embedded at build time from assets/report/report.html.
#pragma once

#include <string_view>

namespace parallax {

// Text with marks {{verdict}}, {{summary}}, {{picture}}, {{version}} and {{data}}.
std::string_view report_template();

}  // namespace parallax
