// SPDX-License-Identifier: Apache-2.0
// The inspector's content for a node and one of its values: sections of lines, each with its text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/viewmodel/view_document.h"

namespace parallax {

struct InspectorLine {
  enum class Kind : uint8_t { text, good, bad, link, header };
  std::string key;
  std::string a;  // the only column, or side A
  std::string b;  // side B, where both are shown
  Kind kind = Kind::text;
  std::string link;         // value path that a click leads to
  std::string name = {};    // of the schema's parameter, next to a number: "X"
  bool is_changed = false;  // of two models: it differs between them
};

// The key with its name: "0 X".
std::string key_text(const InspectorLine& line);

struct InspectorSection {
  std::string title;
  std::vector<InspectorLine> lines;
  bool is_open = true;  // as it is first shown
};

struct InspectorView {
  std::string title;     // "add_3", "layers.0"
  std::string subtitle;  // "Add-14", "LlamaDecoderLayer, 61 nodes"
  std::vector<InspectorSection> sections;
  std::string command;  // that prints or repeats what is shown; empty when there is none
};

// The figures of a model's weight, which no dump keeps; or a sentence why its elements are not here.
struct WeightFigures {
  std::optional<TensorStatistics> statistics, statistics_b;  // b: of the second model's weight
  std::string problem;
};

// The content for an item (a node, a group, an input) and one of its values; either may be -1. With neither, and for
// item 0, it is the model's.
InspectorView inspect(const Document& document, int32_t item, int32_t row, const WeightFigures& weight = {});

// The content for two models: the items of both and the row, each of which may be -1; A's and B's text of each line in
// two columns.
InspectorView inspect_models(const Document& document, int32_t item_a, int32_t item_b, int32_t row,
                             const WeightFigures& weight);

// A word that the shell takes as it stands.
std::string shell_word(const std::string& text);

}  // namespace parallax
