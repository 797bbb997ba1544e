// SPDX-License-Identifier: Apache-2.0
// Finding commands, and the reasons why they have nothing to do: what each needs, by its id.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "gui/viewmodel/viewer.h"
#include "inspector/base/text.h"

namespace parallax {
namespace {

// The states that commands need.
enum class Need : uint8_t {
  nothing,
  document,
  graph,
  comparison,
  alerts,
  difference,
  item,
  models,
  row,
  tensor,
  both,
  repeats,
  search,
  job,
  message
};

std::string_view obstacle_to(const Viewer& v, Need need) {
  const Document* document = v.document();
  if (need == Need::nothing) return "";
  if (need == Need::job) return v.is_busy() ? "" : "nothing is running";
  if (need == Need::message) return v.messages.empty() ? "there is no message" : "";
  if (document == nullptr) return "nothing is open";
  switch (need) {
    case Need::graph:
      return v.graph.has_graph() ? "" : "what is open holds no graph";
    case Need::comparison:
    case Need::alerts:
    case Need::difference:
      if (need == Need::alerts && v.walks_differences())
        return v.models()->differences.empty() ? "the two models are the same" : "";
      if (document->comparison == nullptr && document->b != nullptr)
        return v.is_busy() ? "the values are still being compared" : "the values were not compared; reload (F5)";
      if (document->comparison == nullptr && v.models() != nullptr)
        return "the two models were not run; run them (Ctrl+R)";
      if (document->comparison == nullptr) return "there is one side only; open two dumps or run the model (Ctrl+R)";
      if (need == Need::difference && worst_row(*document) < 0) return "no value differs";
      return need == Need::alerts && v.alerts().empty() ? "no value diverged" : "";
    case Need::item:
      return v.active_item() >= 0 ? "" : "no node is selected";
    case Need::models:
      return v.models() != nullptr ? "" : "one model is open, or a run; open two models";
    case Need::row:
      return v.row() >= 0 ? "" : "no value is selected";
    case Need::tensor:
    case Need::both:
      if (!v.tensor().model.has_value()) return "no value with elements is selected";
      return need == Need::both && !v.tensor().model->has_b() ? "the value has elements on one side only" : "";
    case Need::repeats:
      return document->iterations > 0 ? "" : "no loop and no step is repeated here";
    case Need::search:
      return v.search().empty() ? "nothing is searched for (Ctrl+F)" : "";
    default:
      return "";
  }
}

// By a command's id, else by its group's part of it.
constexpr std::pair<std::string_view, Need> kNeeds[] = {
    {"file.cancel", Need::job},
    {"file.export", Need::graph},
    {"file.reload", Need::document},
    {"file.close", Need::document},
    {"file.copy_view", Need::document},
    {"edit.copy_row", Need::row},
    {"edit.copy_element", Need::tensor},
    {"edit.copy_message", Need::message},
    {"edit.", Need::document},
    {"go.first_divergence", Need::alerts},
    {"go.next_divergence", Need::alerts},
    {"go.previous_divergence", Need::alerts},
    {"go.worst_value", Need::difference},
    {"go.worst_element", Need::tensor},
    {"go.next_iteration", Need::repeats},
    {"go.previous_iteration", Need::repeats},
    {"go.next_hit", Need::search},
    {"go.previous_hit", Need::search},
    {"go.producer", Need::item},
    {"go.reader", Need::item},
    {"go.left", Need::item},
    {"go.right", Need::item},
    {"go.bookmark", Need::row},
    {"go.", Need::document},
    {"graph.next_iteration", Need::repeats},
    {"graph.previous_iteration", Need::repeats},
    {"graph.open", Need::item},
    {"graph.up", Need::item},
    {"graph.open_all", Need::graph},
    {"graph.wheel", Need::nothing},
    {"graph.", Need::graph},
    {"colour.op", Need::graph},
    {"colour.time", Need::graph},
    {"colour.structure", Need::models},
    {"colour.severity", Need::comparison},
    {"colour.max_abs", Need::comparison},
    {"colour.rmse", Need::comparison},
    {"colour.cosine", Need::comparison},
    {"colour.ulp", Need::comparison},
    {"colour.nan", Need::comparison},
    {"colour.introduced", Need::comparison},
    {"tensor.difference", Need::both},
    {"tensor.absolute", Need::both},
    {"tensor.relative", Need::both},
    {"tensor.ulp", Need::both},
    {"tensor.severity", Need::both},
    {"tensor.split", Need::both},
    {"tensor.copy_command", Need::document},
    {"tensor.", Need::tensor},
};

bool contains_word(std::string_view text, std::string_view word) {
  const auto equal = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), equal) != text.end();
}

}  // namespace

const Command* find_command(std::string_view id) {
  const auto found = std::ranges::find(commands(), id, &Command::id);
  return found == commands().end() ? nullptr : &*found;
}

const Command* command_for_key(std::string_view chord) {
  for (const Command& command : commands()) {
    for (std::string_view key : split(command.keys, ' ')) {
      if (!chord.empty() && key == chord) return &command;
    }
  }
  return nullptr;
}

std::vector<const Command*> find_commands(std::string_view words) {
  std::vector<const Command*> found;
  for (const Command& command : commands()) {
    const auto parts = split(words, ' ');
    const bool fits = std::ranges::all_of(parts, [&](std::string_view word) {
      return contains_word(command.title, word) || contains_word(command.group, word) ||
             contains_word(command.id, word);
    });
    if (fits) found.push_back(&command);
  }
  return found;
}

std::string obstacle_to(const Viewer& viewer, const Command& command) {
  const auto exact = std::ranges::find(kNeeds, command.id, &std::pair<std::string_view, Need>::first);
  const auto found = exact != std::end(kNeeds) ? exact : std::ranges::find_if(kNeeds, [&](const auto& row) {
    return row.first.ends_with('.') && command.id.starts_with(row.first);
  });
  return found == std::end(kNeeds) ? "" : std::string(obstacle_to(viewer, found->second));
}

}  // namespace parallax
