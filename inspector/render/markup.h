// SPDX-License-Identifier: Apache-2.0
// Text as it stands in HTML and XML: in elements and in quoted attributes.
#pragma once

#include <string>
#include <string_view>

namespace parallax {

// HTML that shows as `text`.
std::string html_text(std::string_view text);

// The text for XML 1.0, which has no control characters: each becomes a question mark, but those in `kept`.
std::string xml_text(std::string_view text, std::string_view kept = {});

}  // namespace parallax
