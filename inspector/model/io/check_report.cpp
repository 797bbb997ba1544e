// SPDX-License-Identifier: Apache-2.0
// Wording of locations and lists.
#include "inspector/model/io/check_report.h"

#include <algorithm>

#include "inspector/base/shown_text.h"

namespace parallax {
namespace {

constexpr size_t kMostReported = 1000;
constexpr size_t kLongestText = 2000;  // of one message: a name in a damaged file can have any length

}  // namespace

std::string reported(std::string_view text) { return printable(shorten(text, kLongestText)); }

void FoundProblems::add(ModelProblem problem) {
  if (problems_.size() >= kMostReported) return;
  for (std::string* text : {&problem.where, &problem.message, &problem.node, &problem.op}) *text = reported(*text);
  problems_.push_back(std::move(problem));
}

void FoundProblems::at_model(std::string message, ErrorCode code) { add({"model", std::move(message), "", "", code}); }

void FoundProblems::at_graph(const CheckedGraph& graph, std::string message) {
  add({"graph" + graph.location, std::move(message), "", "", ErrorCode::invalid_model});
}

void FoundProblems::at_value(const CheckedGraph& graph, std::string_view value, std::string message, ErrorCode code) {
  add({"value '" + std::string(value) + "'" + graph.location, std::move(message), "", "", code});
}

void FoundProblems::at_node(const CheckedGraph& graph, const Node& node, std::string message, ErrorCode code) {
  of_nodes_.emplace(&node, reported(message));
  const std::string op = versioned_op_name(node);
  add({"node '" + node.display_name + "' (" + op + ")" + graph.location, std::move(message), node.display_name, op,
       code});
}

Error error_of(const ModelProblem& problem) {
  return make_error(problem.code, problem.where + ": " + problem.message).at_node(problem.node, problem.op);
}

std::string quoted_list(const std::vector<std::string>& names, size_t most) {
  std::string text;
  const size_t shown = std::min(names.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += "'" + names[i] + "'";
  }
  if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

std::string counted(size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace parallax
