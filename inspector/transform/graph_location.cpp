// SPDX-License-Identifier: Apache-2.0
// Walks a model along the frames of a path; paths that look alike.
#include "inspector/transform/graph_location.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "inspector/base/text.h"
#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_table.h"
#include "inspector/model/link.h"

namespace parallax::transform {
namespace {

constexpr size_t kMostSuggestions = 5;

std::string_view attribute_of(Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::then_branch:
      return "then_branch";
    case Frame::Kind::else_branch:
      return "else_branch";
    default:
      return "body";
  }
}

std::string prefix_of(std::span<const Frame> frames) {
  std::string text;
  for (const Frame& frame : frames) text += to_string(frame) + "//";
  return text;
}

std::string_view last_part(std::string_view path) { return path.substr(name_begin(path)); }

// How alike two paths are, 0 the most; nothing where they are not.
std::optional<size_t> distance_of(std::string_view asked, std::string_view known) {
  const std::string_view asked_name = last_part(asked), known_name = last_part(known);
  if (asked_name == known_name) return 0;
  const size_t most = std::max<size_t>(2, asked.size() / 4);
  const size_t lengths = asked.size() > known.size() ? asked.size() - known.size() : known.size() - asked.size();
  if (lengths <= most) {
    const size_t distance = edit_distance(asked, known);
    if (distance <= most) return distance;
  }
  const bool is_part = asked_name.size() >= 3 && (known_name.find(asked_name) != std::string_view::npos ||
                                                  asked_name.find(known_name) != std::string_view::npos);
  return is_part ? std::optional<size_t>(most + 1) : std::nullopt;
}

// "; did you mean 'a', 'b'?", or "".
std::string suggestions(std::shared_ptr<const Model> model, const std::string& path) {
  const auto table = ValueTable::build(std::move(model));
  if (!table.ok()) return "";
  std::vector<std::pair<size_t, std::string>> alike;
  for (const ValueInfo& value_info : table->value_infos()) {
    const std::string known = value_info.scope + value_info.escaped_name;
    if (const auto distance = distance_of(path, known)) alike.emplace_back(*distance, known);
  }
  std::ranges::stable_sort(alike, {}, &std::pair<size_t, std::string>::first);
  std::string text;
  for (size_t index = 0; index < std::min(alike.size(), kMostSuggestions); ++index) {
    text += fmt::format("{}'{}'", index == 0 ? "; did you mean " : ", ", alike[index].second);
  }
  return text.empty() ? text : text + "?";
}

// Steps from the innermost scope into the body that `frame` names.
Status enter(Location& location, const Frame& frame, std::string prefix) {
  const Graph& graph = location.graph();
  const NodeId id = graph.find_node(frame.node);
  if (id == kNoNode) return usage_error(fmt::format("there is no node '{}{}'", location.prefix(), frame.node));
  const Node& node = graph.nodes[static_cast<size_t>(id)];
  if (frame.kind == Frame::Kind::call) {
    if (node.function == nullptr) return usage_error(fmt::format("node '{}' calls no function", node.display_name));
    location.bound.push_back(bind_function(*node.function, node));
    location.function = node.function;
    Scope scope{location.bound.back().get(), std::move(prefix), {}};
    for (size_t index = 0; index < scope.graph->inputs.size(); ++index) {
      const bool is_given = index < node.inputs.size() && node.inputs[index] != kNoValue;
      if (!is_given) scope.omitted.insert(scope.graph->inputs[index]);
    }
    location.scopes = {std::move(scope)};  // a function sees nothing of its caller
    return {};
  }
  const Attribute* attribute = find_attribute(node, attribute_of(frame.kind));
  const auto* body = attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&attribute->value);
  if (body == nullptr || *body == nullptr) {
    return usage_error(
        fmt::format("node '{}' ({}) has no {}", node.display_name, node.op_type, attribute_of(frame.kind)));
  }
  location.scopes.insert(location.scopes.begin(), Scope{body->get(), std::move(prefix), {}});
  return {};
}

}  // namespace

std::string Location::path_of(ValueId id) const {
  return prefix() + escape_name(graph().values[static_cast<size_t>(id)].name);
}

std::optional<Definition> definition_of(const Location& location, ValueId id) {
  const ValueDef& value = location.graph().values[static_cast<size_t>(id)];
  if (!value.is_outer) return Definition{&location.scopes.front(), id};
  for (size_t index = 1; index < location.scopes.size(); ++index) {
    const Scope& scope = location.scopes[index];
    const ValueId found = scope.graph->find_value(value.name);
    if (found != kNoValue && !scope.graph->values[static_cast<size_t>(found)].is_outer)
      return Definition{&scope, found};
  }
  return std::nullopt;
}

const StoredTensor* stored_tensor(const Definition& definition) {
  const ValueDef& value = definition.value();
  const Graph& graph = *definition.scope->graph;
  if (value.initializer_index >= 0) return &graph.initializers[static_cast<size_t>(value.initializer_index)];
  if (value.producer == kNoNode) return nullptr;
  const Node& node = graph.nodes[static_cast<size_t>(value.producer)];
  const bool is_constant = node.op_type == "Constant" && (node.domain.empty() || node.domain == "ai.onnx");
  const Attribute* attribute = is_constant ? find_attribute(node, "value") : nullptr;
  return attribute == nullptr ? nullptr : std::get_if<StoredTensor>(&attribute->value);
}

Result<Location> find_location(std::shared_ptr<const Model> model, std::span<const Frame> frames) {
  Location location;
  location.scopes.push_back({&model->graph, "", {}});
  location.model = std::move(model);
  for (size_t index = 0; index < frames.size(); ++index) {
    const Frame& frame = frames[index];
    if (frame.kind == Frame::Kind::graph || frame.kind == Frame::Kind::step) {
      return usage_error(
          fmt::format("the frame '{}' stands for one of several calls; a model is run once", to_string(frame)));
    }
    if (frame.kind == Frame::Kind::module) {
      return usage_error(fmt::format("the frame '{}' is a captured module's; the nodes of a model have no such frames",
                                     to_string(frame)));
    }
    PX_TRY(enter(location, frame, prefix_of(frames.first(index + 1))));
  }
  return location;
}

Result<LocatedValue> locate_value(std::shared_ptr<const Model> model, const std::string& path) {
  // A name may hold "//" and be written without escapes: paths that lead to a value come first.
  if (const ValueId named = model->graph.find_value(path); named != kNoValue && escape_name(path) != path) {
    const auto as_path = parse_value_path(path);
    const auto frames = as_path.ok() ? find_location(model, as_path->frames) : Result<Location>(as_path.error());
    if (!frames.ok() || frames->graph().find_value(as_path->name) == kNoValue)
      return LocatedValue{PX_TRY(find_location(model, {})), named};
  }
  const ValuePath parsed = PX_TRY(parse_value_path(path));
  auto location = find_location(model, parsed.frames);
  if (!location.ok()) {
    return usage_error(fmt::format("'{}' names no value of '{}': {}{}", path, model->path, location.error().message,
                                   suggestions(model, path)));
  }
  const ValueId id = location->graph().find_value(parsed.name);
  if (id == kNoValue)
    return usage_error(fmt::format("'{}' names no value of '{}'{}", path, model->path, suggestions(model, path)));
  return LocatedValue{std::move(*location), id};
}

std::vector<ValueId> reads_of(const Graph& graph, const Node& node) {
  std::vector<ValueId> reads;
  const auto add = [&](ValueId id) {
    if (id != kNoValue && std::ranges::find(reads, id) == reads.end()) reads.push_back(id);
  };
  for (const ValueId id : node.inputs) add(id);
  for (const Graph* body : bodies_of(node)) {
    for (const ValueId outer : body->outer_values) {
      add(graph.find_value(body->values[static_cast<size_t>(outer)].name));
    }
  }
  return reads;
}

}  // namespace parallax::transform
