// SPDX-License-Identifier: Apache-2.0
// The types by name, and how words, numbers and declarations are read.
#include "tests/runtime/ptx/text.h"

#include <cctype>
#include <sstream>

namespace parallax::ptx {
namespace {

constexpr TypeInfo kTypes[] = {
    {"none", Type::none, 4, false},  {"pred", Type::pred, 1, false},   {"b8", Type::b8, 1, false},
    {"u8", Type::u8, 1, false},      {"s8", Type::s8, 1, true},        {"b16", Type::b16, 2, false},
    {"u16", Type::u16, 2, false},    {"s16", Type::s16, 2, true},      {"f16", Type::f16, 2, false},
    {"bf16", Type::bf16, 2, false},  {"b32", Type::b32, 4, false},     {"u32", Type::u32, 4, false},
    {"s32", Type::s32, 4, true},     {"f32", Type::f32, 4, false},     {"b64", Type::b64, 8, false},
    {"u64", Type::u64, 8, false},    {"s64", Type::s64, 8, true},      {"f64", Type::f64, 8, false},
    {"b128", Type::b128, 16, false}, {"f16x2", Type::f16x2, 4, false}, {"bf16x2", Type::bf16x2, 4, false},
    {"tf32", Type::tf32, 4, false}};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

}  // namespace

const TypeInfo& info_of(Type type) { return kTypes[static_cast<size_t>(type)]; }

std::optional<Type> type_named(std::string_view name) {
  for (const TypeInfo& info : kTypes) {
    if (info.name == name && info.type != Type::none) return info.type;
  }
  return std::nullopt;
}

std::string trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != separator || depth != 0) continue;
    parts.push_back(trim(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  const std::string last = trim(text.substr(begin));
  if (!last.empty() || !parts.empty()) parts.push_back(last);
  return parts;
}

std::optional<uint64_t> number_of(std::string_view text) {
  const bool is_hex = text.size() > 2 && text[0] == '0';
  if (is_hex && ((text.size() == 10 && (text[1] == 'f' || text[1] == 'F')) ||
                 (text.size() == 18 && (text[1] == 'd' || text[1] == 'D')))) {
    return std::stoull(std::string(text.substr(2)), nullptr, 16);
  }
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return std::nullopt;
  const uint64_t value = std::stoull(std::string(text), nullptr, 0);
  return is_negative ? 0 - value : value;
}

std::optional<Declaration> declaration_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  Declaration made;
  made.alignment = 0;
  std::string word;
  while (words >> word) {
    if (word == ".align") {
      words >> made.alignment;
    } else if (word[0] == '.') {
      if (const auto type = type_named(std::string_view(word).substr(1))) made.type = *type;
    } else {
      break;
    }
    word.clear();
  }
  std::string rest;
  std::getline(words, rest, '\0');
  made.name = trim(word + rest);
  if (made.type == Type::none || made.name.empty()) return std::nullopt;
  int count = 1;
  if (const size_t bracket = made.name.find('['); bracket != std::string::npos) {
    const std::string inside = trim(made.name.substr(bracket + 1, made.name.find(']') - bracket - 1));
    count = inside.empty() ? -1 : static_cast<int>(number_of(inside).value_or(0));
    made.name = trim(made.name.substr(0, bracket));
  }
  if (made.alignment == 0) made.alignment = bytes_of(made.type);
  made.bytes = count < 0 ? -1 : count * bytes_of(made.type);
  return made;
}

}  // namespace parallax::ptx
