// SPDX-License-Identifier: Apache-2.0
// Files that are given for models and are none: what they are. Private to this folder.
#pragma once

#include <span>
#include <string>

namespace parallax {

// A clause to stand after the file's name, with what to do: "is a web page, not a model: ..."; empty for bytes of no
// kind that is known.
std::string kind_of_foreign_file(std::span<const std::byte> bytes);

}  // namespace parallax
