// SPDX-License-Identifier: Apache-2.0
// Token ids as texts and files: prompts, lists of options, expected tokens.
#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/tensor/elements.h"
#include "inspector/workbench/generate/settings.h"

namespace parallax {
namespace {

using nlohmann::json;
using Ids = std::vector<int64_t>;

Result<Ids> parse_ids(std::string_view option, std::string_view text) {
  Ids ids;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    int64_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (word.empty() || error != std::errc() || end != word.data() + word.size())
      return usage_error(fmt::format(
          "{} '{}' is no list of token ids; it must be integers with commas between, as 5,7,9", option, text));
    ids.push_back(id);
    if (comma == std::string_view::npos) return ids;
    rest.remove_prefix(comma + 1);
  }
}

Result<json> read_json(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  const auto bytes = file->bytes();
  const char* text = reinterpret_cast<const char*>(bytes.data());
  json document = json::parse(text, text + bytes.size(), nullptr, false);
  if (document.is_discarded())
    return usage_error(
        fmt::format("'{}' is no JSON; it must be a list of token ids or an object that holds them", path));
  return document;
}

// A list of ids, or a list of such lists.
std::optional<std::vector<Ids>> lists_of(const json& document) {
  if (!document.is_array()) return std::nullopt;
  std::vector<Ids> lists;
  const bool is_nested = !document.empty() && document.front().is_array();
  const json rows = is_nested ? document : json::array({document});
  for (const json& row : rows) {
    Ids& ids = lists.emplace_back();
    if (!row.is_array()) return std::nullopt;
    for (const json& id : row) {
      if (!id.is_number_integer()) return std::nullopt;
      ids.push_back(id.get<int64_t>());
    }
  }
  return lists;
}

std::optional<std::vector<Ids>> lists_at(const json& document, std::initializer_list<const char*> keys) {
  if (!document.is_object()) return std::nullopt;
  for (const char* key : keys) {
    if (document.contains(key)) return lists_of(document[key]);
  }
  return std::nullopt;
}

Result<Prompts> read_npy_prompts(const std::string& path) {
  const Tensor tensor = PX_TRY(read_npy(path));
  const Shape& shape = tensor.shape();
  if (!is_integer(tensor.dtype()) || shape.rank() < 1 || shape.rank() > 2)
    return usage_error(fmt::format("'{}' holds {} of shape {}; prompts are integers of rank 1 or 2", path,
                                   name_of(tensor.dtype()), shape.to_string()));
  const std::vector<int64_t> all = to_int64s(tensor);
  const auto length = static_cast<size_t>(shape[shape.rank() - 1]);
  Prompts prompts;
  for (size_t begin = 0; begin < all.size(); begin += length)
    prompts.ids.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(begin + length));
  return prompts;
}

// The tokens after the history, where the ids begin with it (after padding), up to the first end token.
Ids new_tokens(Ids ids, const Ids& history, int64_t pad, const Ids& eos, bool may_have_history) {
  if (may_have_history) {
    size_t begin = 0;
    while (begin < ids.size() && ids[begin] == pad && (history.empty() || history.front() != pad)) ++begin;
    const bool begins = ids.size() - begin >= history.size() &&
                        std::equal(history.begin(), history.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin));
    if (begins) ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(begin + history.size()));
  }
  const auto end = std::ranges::find_first_of(ids, eos);
  if (end != ids.end()) ids.erase(end + 1, ids.end());
  return ids;
}

}  // namespace

Result<std::vector<std::vector<int64_t>>> parse_prompt_ids(const std::string& text) {
  std::vector<Ids> prompts;
  std::string_view rest = text;
  while (true) {
    const size_t end = rest.find(';');
    prompts.push_back(PX_TRY(parse_ids("--prompt-ids", rest.substr(0, end))));
    if (end == std::string_view::npos) return prompts;
    rest.remove_prefix(end + 1);
  }
}

Result<std::vector<int64_t>> parse_token_list(std::string_view option, const std::string& text) {
  if (text == "none") return Ids();
  return parse_ids(option, text);
}

Result<Prompts> read_prompt_file(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy_prompts(path);
  const json document = PX_TRY(read_json(path));
  Prompts prompts;
  auto ids = document.is_array() ? lists_of(document) : lists_at(document, {"input_ids", "prompt_ids"});
  if (!ids.has_value() && document.is_object() && document.contains("generate"))
    ids = lists_at(document["generate"], {"prompt_ids"});
  if (!ids.has_value())
    return usage_error(fmt::format(
        "'{}' holds no prompts; it must be a list of token ids, a list of such lists, or an object with 'input_ids'",
        path));
  prompts.ids = *std::move(ids);
  if (!document.is_object() || !document.contains("attention_mask")) return prompts;
  auto masks = lists_of(document["attention_mask"]);
  if (!masks.has_value())
    return usage_error(fmt::format(
        "'attention_mask' of '{}' is no list of integers; it must be a list of 1 and 0 for each prompt", path));
  prompts.masks = *std::move(masks);
  return prompts;
}

namespace generate {

Result<std::vector<std::vector<int64_t>>> expected_tokens(const GenerationRequest& request,
                                                          const UsedSettings& settings,
                                                          const std::vector<std::vector<int64_t>>& histories) {
  std::vector<Ids> lists = request.expected;
  bool may_have_history = true;
  if (!request.expected_file.empty()) {
    const json document = PX_TRY(read_json(request.expected_file));
    const json& object = document.is_object() && document.contains("generate") ? document["generate"] : document;
    auto found = object.is_array()    ? lists_of(object)
                 : settings.beams > 1 ? lists_at(object, {"sequences", "beam_ids"})
                                      : lists_at(object, {"sequences", "greedy_ids"});
    if (!found.has_value())
      return usage_error(
          fmt::format("'{}' holds no expected tokens; it must be a list of ids, a list of such lists, or an object "
                      "with 'sequences' "
                      "or 'generate'",
                      request.expected_file));
    may_have_history = object.is_array() || object.contains("sequences");
    lists = *std::move(found);
  }
  if (lists.empty()) return lists;
  const size_t wanted = histories.size() * static_cast<size_t>(settings.returned);
  if (lists.size() != wanted)
    return usage_error(fmt::format("{} expected sequences are given and {} are generated; there must be as many",
                                   lists.size(), wanted));
  for (size_t index = 0; index < lists.size(); ++index) {
    const Ids& history = histories[index / static_cast<size_t>(settings.returned)];
    lists[index] = new_tokens(std::move(lists[index]), history, settings.pad, settings.eos, may_have_history);
    if (lists[index].empty())
      return usage_error(fmt::format(
          "the expected sequence {} {}holds no new token; it must hold one id at least, as each generated one does",
          index, request.expected_file.empty() ? "" : fmt::format("of '{}' ", request.expected_file)));
  }
  return lists;
}

}  // namespace generate
}  // namespace parallax
