// SPDX-License-Identifier: Apache-2.0
// Text as it stands in HTML and XML, in elements and in quoted attributes, and in CSV.
#pragma once

#include <string>
#include <string_view>

namespace parallax {

// HTML that shows as `text`.
std::string html_text(std::string_view text);

// The text for XML 1.0, which has no control characters: each becomes a question mark, but those in `kept`.
std::string xml_text(std::string_view text, std::string_view kept = {});

// A field of RFC 4180. Text that a spreadsheet would take for a formula begins with an apostrophe.
std::string csv_field(std::string_view text);

}  // namespace parallax
