// SPDX-License-Identifier: Apache-2.0
// Values without a scale as columns of text: strings, and the contents of sequences, optionals and maps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/tensor/value.h"

namespace parallax {

struct TextLine {
  std::string location;  // "[0,3]" of a tensor of strings, "[2]" of a sequence
  std::string a, b;      // shortened; empty where the side has nothing there
  bool are_mismatched = false;
};

struct TextLines {
  std::vector<TextLine> lines;
  int64_t left_out = 0;  // beyond those listed
  bool has_b = false;
};

// True where a value is shown so: it is no tensor of numbers.
bool is_listed_as_text(const Value& value);

// A side that is not there is absent. Numbers of two sides differ where their difference exceeds `limit`.
TextLines list_as_text(const Value& a, const Value& b, const Limit& limit);

}  // namespace parallax
