// SPDX-License-Identifier: Apache-2.0
// Both directions, from two tables: how each kind of tree node is named, and what each kind of segment begins.
#include "inspector/dump/convert/object_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "inspector/tensor/elements.h"

namespace parallax::dump {
namespace {

constexpr size_t kMaxNesting = 64;
constexpr std::array<std::string_view, 6> kForms = {"tensor", "array", "int", "float", "bool", "empty"};

Error broken_tree(std::string_view problem) {
  return corrupt_file(fmt::format("a structure breaks its format: {}", problem));
}

std::string text_of(const Json& node, const char* field) {
  const auto found = node.find(field);
  return found != node.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// ---- Trees to names ------------------------------------------------------------------------------------------------

// The text of a dictionary's key: scalars as they print, tuples of them in double parentheses.
Result<std::string> key_text(const Json& key) {
  if (key.is_string()) return key.get<std::string>();
  const std::string kind = text_of(key, "kind");
  if (kind == "none") return std::string("None");
  if (kind == "tuple" && key.contains("items")) {
    std::string text;
    for (const Json& item : key["items"]) text += (text.empty() ? "" : ",") + PX_TRY(key_text(item));
    return "((" + text + "))";
  }
  const auto value = key.find("value");
  if (value == key.end()) return broken_tree("a key of a dictionary has neither a value nor items");
  if (value->is_string()) return value->get<std::string>();
  if (value->is_boolean()) return std::string(value->get<bool>() ? "True" : "False");
  return value->dump();
}

class NameWriter {
 public:
  explicit NameWriter(const LeafVisitor& visit) : visit_(visit) {}

  Status node(const Json& tree, const std::string& prefix, size_t depth) const {
    if (!tree.is_object()) return broken_tree("a node of the tree is no object");
    if (depth > kMaxNesting) return broken_tree("its containers are nested more than 64 deep");
    const std::string kind = text_of(tree, "kind");
    if (kind == "tensor") return leaf(prefix, text_of(tree, "library") == "numpy" ? "array" : "tensor", tree);
    if (kind == "int" || kind == "float" || kind == "bool") return leaf(prefix, kind, tree);
    if (kind == "none" || kind == "left_out") return leaf(prefix, "empty", tree);
    if (kind == "tuple" || kind == "list" || kind == "set")
      return items(tree, kind == "set" ? "list" : kind, prefix, depth);
    if (kind == "dict" || kind == "record") return dictionary(tree, prefix, depth);
    if (kind == "cache") return cache(tree, prefix, depth);
    return leaf(prefix, "array", tree);  // text and whatever has no other form
  }

 private:
  Status leaf(const std::string& prefix, std::string_view form, const Json& tree) const {
    return visit_(prefix + std::string(form), form, tree);
  }

  Status empty(const std::string& prefix, std::string_view container) const {
    return visit_(fmt::format("{}{}.{}empty", prefix, container, kLevelSeparator), "empty", Json{{"kind", "none"}});
  }

  Status items(const Json& tree, std::string_view container, const std::string& prefix, size_t depth) const {
    const auto list = tree.find("items");
    if (list == tree.end() || !list->is_array()) return broken_tree("a sequence has no items");
    if (list->empty()) return empty(prefix, container);
    for (size_t index = 0; index < list->size(); ++index) {
      const std::string_view end = index + 1 == list->size() ? "." : "";
      PX_TRY(
          node((*list)[index], fmt::format("{}{}_{}{}{}", prefix, container, index, end, kLevelSeparator), depth + 1));
    }
    return {};
  }

  Status dictionary(const Json& tree, const std::string& prefix, size_t depth) const {
    const auto keys = tree.find("keys");
    const auto list = tree.find("items");
    if (keys == tree.end() || list == tree.end() || !keys->is_array() || !list->is_array() ||
        keys->size() != list->size())
      return broken_tree("a dictionary has not one item for each key");
    if (list->empty()) return empty(prefix, "dict");
    for (size_t index = 0; index < list->size(); ++index) {
      const std::string key = PX_TRY(key_text((*keys)[index]));
      PX_TRY(entry(prefix, "dict", key, index + 1 == list->size(), (*list)[index], depth));
    }
    return {};
  }

  Status entry(const std::string& prefix, std::string_view container, const std::string& key, bool is_last,
               const Json& item, size_t depth) const {
    if (key.find(kLevelSeparator) != std::string::npos)
      return unsupported(
          fmt::format("the key '{}' holds '{}', which separates the levels of a name", key, kLevelSeparator));
    return node(item, fmt::format("{}{}{}_{}{}", prefix, container, is_last ? "." : "", key, kLevelSeparator),
                depth + 1);
  }

  static void collect_tensors(const Json& node, Json& items) {
    if (!node.is_structured()) return;
    if (node.is_object() && text_of(node, "kind") == "tensor") return items.push_back(node);
    for (const Json& part : node) collect_tensors(part, items);
  }

  // Keys and values of all layers, and what other tensors it has; as a DynamicCache where it is one without others.
  Status cache(const Json& tree, const std::string& prefix, size_t depth) const {
    const auto layers = tree.find("layers");
    if (layers == tree.end() || !layers->is_array()) return broken_tree("a cache has no layers");
    Json keys{{"kind", "list"}, {"items", Json::array()}};
    Json values = keys;
    Json others = keys;
    if (tree.contains("fields")) collect_tensors(tree["fields"], others["items"]);
    bool is_plain = text_of(tree, "class").ends_with(":DynamicCache");
    for (const Json& layer : *layers) {
      const auto key = layer.find("keys");
      const auto value = layer.find("values");
      if (key == layer.end() || value == layer.end()) return broken_tree("a layer of a cache has no keys or values");
      is_plain = is_plain && text_of(layer, "class") == "DynamicLayer" && text_of(*key, "kind") == "tensor" &&
                 text_of(*value, "kind") == "tensor";
      if (layer.contains("fields")) collect_tensors(layer["fields"], others["items"]);
      keys["items"].push_back(*key);
      values["items"].push_back(*value);
    }
    is_plain = is_plain && others["items"].empty();
    const std::string_view container = is_plain ? "DynamicCache" : "dict";
    PX_TRY(entry(prefix, container, "key_cache", false, keys, depth));
    PX_TRY(entry(prefix, container, "value_cache", others["items"].empty(), values, depth));
    return others["items"].empty() ? Status() : entry(prefix, container, "other_tensors", true, others, depth);
  }

  const LeafVisitor& visit_;
};

// ---- Names to trees ------------------------------------------------------------------------------------------------

// The container that a segment names an item of: "tuple_3." is item "3" of a tuple.
struct Segment {
  std::string_view container;
  std::string_view key;
  bool is_empty = false;  // "tuple.": the container has no items
};

constexpr std::array<std::string_view, 5> kContainers = {"tuple", "list", "dict", "DynamicCache", "StaticCache"};

bool is_sequence(std::string_view container) { return container == "tuple" || container == "list"; }

std::optional<Segment> parse_segment(std::string_view text) {
  for (const std::string_view container : kContainers) {
    if (!text.starts_with(container)) continue;
    std::string_view rest = text.substr(container.size());
    if (rest == ".") return Segment{container, "", true};
    if (is_sequence(container) && rest.ends_with('.')) rest.remove_suffix(1);
    if (!is_sequence(container) && rest.starts_with('.')) rest.remove_prefix(1);
    if (rest.starts_with('_')) return Segment{container, rest.substr(1), false};
  }
  return std::nullopt;
}

std::optional<int64_t> integer_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

Json scalar_key(std::string_view text) {
  if (const auto number = integer_of(text)) return {{"kind", "int"}, {"value", *number}};
  if (text == "True" || text == "False") return {{"kind", "bool"}, {"value", text == "True"}};
  return {{"kind", "string"}, {"value", std::string(text)}};
}

Json key_of(std::string_view text) {
  if (!text.starts_with("((") || !text.ends_with("))") || text.size() < 4) return scalar_key(text);
  text = text.substr(2, text.size() - 4);
  Json items = Json::array();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(scalar_key(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return {{"kind", "tuple"}, {"items", items}};
}

// One item of a container, and the outputs that make it.
struct Item {
  Segment segment;
  std::span<const NamedOutput> outputs;
};

class NameReader {
 public:
  explicit NameReader(const TensorSink& keep) : keep_(keep) {}

  Result<Json> node(std::span<const NamedOutput> outputs, size_t level, const std::string& name) const {
    const auto segments = segments_of(outputs.front().name);
    if (segments.size() <= level || level > kMaxNesting) return bad_name(outputs.front(), "it names no leaf");
    if (segments.size() == level + 1) {
      if (outputs.size() > 1) return bad_name(outputs[1], "its object was complete before it");
      return leaf(outputs.front(), segments.back(), name);
    }
    std::vector<Item> items = PX_TRY(items_of(outputs, level));
    const std::string_view container = items.front().segment.container;
    for (const Item& item : items) {
      if (item.segment.container != container) return bad_name(item.outputs.front(), "it mixes two containers");
    }
    if (is_sequence(container)) return sequence(items, container, level, name);
    return container == "dict" ? dictionary(items, level, name) : cache(items, container, level, name);
  }

 private:
  static Error bad_name(const NamedOutput& output, std::string_view problem) {
    return corrupt_file(
        fmt::format("the output '{}' has a name that makes no tree of containers: {}", output.name, problem));
  }

  // Runs of outputs with one segment at this level. The segments before are equal, since they begin one object.
  static Result<std::vector<Item>> items_of(std::span<const NamedOutput> outputs, size_t level) {
    std::vector<Item> items;
    std::string_view current;
    for (size_t index = 0; index < outputs.size(); ++index) {
      const auto segments = segments_of(outputs[index].name);
      if (segments.size() <= level + 1) return bad_name(outputs[index], "a leaf stands where a container is");
      const auto segment = parse_segment(segments[level]);
      if (!segment.has_value()) return bad_name(outputs[index], fmt::format("'{}' is no container", segments[level]));
      if (!items.empty() && segments[level] == current) {
        Item& item = items.back();
        item.outputs = {item.outputs.data(), item.outputs.size() + 1};
      } else {
        items.push_back({*segment, outputs.subspan(index, 1)});
        current = segments[level];
      }
    }
    return items;
  }

  Result<Json> leaf(const NamedOutput& output, std::string_view form, const std::string& name) const {
    if (form == "empty") return Json{{"kind", "none"}};
    if (form == "tensor" || form == "array") {
      keep_(name, output.tensor);
      return Json{{"kind", "tensor"}, {"library", form == "array" ? "numpy" : "torch"}, {"name", name}};
    }
    const Tensor& tensor = output.tensor;
    if (!tensor.defined() || tensor.element_count() != 1) return bad_name(output, "a scalar has one element");
    if (form == "int" && tensor.dtype() == DType::int64)
      return Json{{"kind", "int"}, {"value", tensor.as<int64_t>()[0]}};
    if (form == "bool" && tensor.dtype() == DType::bool_)
      return Json{{"kind", "bool"}, {"value", tensor.as<bool>()[0]}};
    if (form == "float" && tensor.dtype() == DType::float64) return float_node(tensor.as<double>()[0]);
    return bad_name(output, fmt::format("its tensor of {} is no {}", info_of(tensor.dtype()).name, form));
  }

  static Json float_node(double value) {
    if (std::isfinite(value)) return {{"kind", "float"}, {"value", value}};
    return {{"kind", "float"}, {"value", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
  }

  // The writer passes over items that are None, so an index may be missing.
  Result<Json> sequence(const std::vector<Item>& items, std::string_view container, size_t level,
                        const std::string& name) const {
    Json list = Json::array();
    for (const Item& item : items) {
      if (item.segment.is_empty) break;
      const auto index = integer_of(item.segment.key);
      if (!index.has_value() || *index < static_cast<int64_t>(list.size()) || *index > kMaxItems)
        return bad_name(item.outputs.front(), "its indices do not increase");
      while (static_cast<int64_t>(list.size()) < *index) list.push_back(Json{{"kind", "none"}});
      list.push_back(PX_TRY(node(item.outputs, level + 1, child_name(name, item.segment.key))));
    }
    return Json{{"kind", std::string(container)}, {"items", list}};
  }

  Result<Json> dictionary(const std::vector<Item>& items, size_t level, const std::string& name) const {
    Json keys = Json::array();
    Json list = Json::array();
    for (const Item& item : items) {
      if (item.segment.is_empty) break;
      keys.push_back(key_of(item.segment.key));
      list.push_back(PX_TRY(node(item.outputs, level + 1, child_name(name, item.segment.key))));
    }
    return Json{{"kind", "dict"}, {"keys", keys}, {"items", list}};
  }

  Result<Json> cache(const std::vector<Item>& items, std::string_view container, size_t level,
                     const std::string& name) const {
    Json layers = Json::array();
    for (const Item& item : items) {
      const bool is_key = item.segment.key == "key_cache";
      if (!is_key && item.segment.key != "value_cache")
        return bad_name(item.outputs.front(), "a cache has key_cache and value_cache alone");
      const auto name_at = [&](size_t layer) { return fmt::format("{}/{}/{}", name, layer, is_key ? "key" : "value"); };
      for (const Item& part : PX_TRY(items_of(item.outputs, level + 1))) {
        if (part.segment.is_empty) break;
        const auto index = integer_of(part.segment.key);
        if (part.segment.container != "list" || !index.has_value() || *index < 0 || *index > kMaxItems)
          return bad_name(part.outputs.front(), "the layers of a cache are a list");
        const auto layer = static_cast<size_t>(*index);
        while (layers.size() <= layer)
          layers.push_back(
              {{"class", layer_class(container)}, {"keys", {{"kind", "none"}}}, {"values", {{"kind", "none"}}}});
        layers[layer][is_key ? "keys" : "values"] = PX_TRY(node(part.outputs, level + 2, name_at(layer)));
      }
    }
    return Json{{"kind", "cache"}, {"class", "transformers.cache_utils:" + std::string(container)}, {"layers", layers}};
  }

  static const char* layer_class(std::string_view container) {
    return container == "StaticCache" ? "StaticLayer" : "DynamicLayer";
  }

  static constexpr int64_t kMaxItems = 10'000'000;
  const TensorSink& keep_;
};

}  // namespace

std::string child_name(std::string_view parent, std::string_view key) {
  std::string name(parent);
  if (!name.empty()) name += '/';
  for (const char character : key) {
    if (character == '~') {
      name += "~0";
    } else if (character == '/') {
      name += "~1";
    } else {
      name += character;
    }
  }
  return name;
}

Status visit_leaves(const Json& tree, const std::string& prefix, const LeafVisitor& visit) {
  return NameWriter(visit).node(tree, prefix, 0);
}

Result<Json> read_tree_of(std::span<const NamedOutput> outputs, size_t level, const std::string& root,
                          const TensorSink& keep) {
  return NameReader(keep).node(outputs, level, root);
}

std::vector<std::string_view> segments_of(std::string_view output_name) {
  std::vector<std::string_view> segments;
  for (size_t begin = 0;;) {
    const size_t end = output_name.find(kLevelSeparator, begin);
    if (end == std::string_view::npos) {
      segments.push_back(output_name.substr(begin));
      return segments;
    }
    segments.push_back(output_name.substr(begin, end - begin));
    begin = end + kLevelSeparator.size();
  }
}

bool is_output_name(std::string_view output_name) {
  const auto segments = segments_of(output_name);
  const auto containers = std::span(segments).first(segments.size() - 1);
  return std::ranges::find(kForms, segments.back()) != kForms.end() &&
         std::ranges::all_of(containers, [](std::string_view text) { return parse_segment(text).has_value(); });
}

std::optional<CallKey> parse_call_key(std::string_view key) {
  if (!key.starts_with("((") || !key.ends_with("))") || key.size() < 4) return std::nullopt;
  key = key.substr(2, key.size() - 4);
  const size_t last = key.rfind(',');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const size_t middle = key.rfind(',', last - 1);
  const std::string_view side = key.substr(last + 1);
  if (middle == std::string_view::npos || (side != "I" && side != "O")) return std::nullopt;
  const auto call = integer_of(key.substr(middle + 1, last - middle - 1));
  if (!call.has_value() || *call < 0) return std::nullopt;
  return CallKey{std::string(key.substr(0, middle)), *call, side == "I"};
}

std::string to_string(const CallKey& key) {
  return fmt::format("(({},{},{}))", key.module, key.call, key.is_input ? "I" : "O");
}

std::optional<std::string_view> dictionary_key(std::string_view segment) {
  const auto parsed = parse_segment(segment);
  if (!parsed.has_value() || parsed->container != "dict" || parsed->is_empty) return std::nullopt;
  return parsed->key;
}

}  // namespace parallax::dump
