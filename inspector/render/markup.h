// SPDX-License-Identifier: Apache-2.0
// Text as it stands in HTML and XML, in elements and in quoted attributes, in dot and in CSV.
#pragma once

#include <string>
#include <string_view>

namespace parallax {

// The text for HTML and for XML 1.0, which has no control characters: they are spelled (printable), but those in
// `kept`.
std::string xml_text(std::string_view text, std::string_view kept = {});

// The text of a label between the quotes of a dot string; its line breaks begin new lines. Graphviz shows entities as
// the characters that they stand for: none is left.
std::string dot_text(std::string_view text);

// A field of RFC 4180, control characters spelled. Text that a spreadsheet would take for a formula begins with an
// apostrophe.
std::string csv_field(std::string_view text);

}  // namespace parallax
