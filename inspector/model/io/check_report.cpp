// SPDX-License-Identifier: Apache-2.0
// Wording of locations and lists.
#include "inspector/model/io/check_report.h"

#include <algorithm>

namespace parallax {
namespace {

constexpr size_t kMostReported = 1000;
constexpr size_t kLongestText = 2000;  // of one message: a name in a damaged file can have any length

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool beyond = (lead == 0xED && byte(1) >= 0xA0) || (lead == 0xF4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    if (out.size() > kLongestText) return out + " ...";
    const auto byte = static_cast<unsigned char>(text[0]);
    const size_t length = byte < 0x20 || byte == 0x7F ? 0 : utf8_length(text);
    if (length == 0) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

void FoundProblems::add(ModelProblem problem) {
  if (problems_.size() >= kMostReported) return;
  for (std::string* text : {&problem.where, &problem.message, &problem.node, &problem.op}) *text = printable(*text);
  problems_.push_back(std::move(problem));
}

void FoundProblems::at_model(std::string message, ErrorCode code) { add({"model", std::move(message), "", "", code}); }

void FoundProblems::at_graph(const CheckedGraph& graph, std::string message) {
  add({"graph" + graph.location, std::move(message), "", "", ErrorCode::invalid_model});
}

void FoundProblems::at_value(const CheckedGraph& graph, std::string_view value, std::string message) {
  add({"value '" + std::string(value) + "'" + graph.location, std::move(message), "", "", ErrorCode::invalid_model});
}

void FoundProblems::at_node(const CheckedGraph& graph, const Node& node, std::string message, ErrorCode code) {
  const std::string op = versioned_op_name(node);
  add({"node '" + node.display_name + "' (" + op + ")" + graph.location, std::move(message), node.display_name, op,
       code});
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
