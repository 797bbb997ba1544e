// SPDX-License-Identifier: Apache-2.0
// Names first, shapes where names say nothing; a role that stays unknown is an error that names the input.
#include "inspector/workbench/generate/roles.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "inspector/model/link.h"

namespace parallax::generate {
namespace {

struct NamedRole {
  std::string_view name;
  InputRole role;
};

// The first name that is in a row is the role's own; the others are synonyms of exporters.
constexpr std::array kNamedRoles = {
    NamedRole{"input_ids", InputRole::input_ids},
    NamedRole{"decoder_input_ids", InputRole::input_ids},
    NamedRole{"attention_mask", InputRole::attention_mask},
    NamedRole{"decoder_attention_mask", InputRole::attention_mask},
    NamedRole{"position_ids", InputRole::position_ids},
    NamedRole{"cache_position", InputRole::cache_position},
    NamedRole{"use_cache_branch", InputRole::use_cache},
    NamedRole{"enable_cache", InputRole::use_cache},
    NamedRole{"encoder_hidden_states", InputRole::encoder_hidden_states},
    NamedRole{"encoder_outputs", InputRole::encoder_hidden_states},
    NamedRole{"encoder_attention_mask", InputRole::encoder_attention_mask},
    NamedRole{"seqlens_k", InputRole::sequence_lengths},
    NamedRole{"total_sequence_length", InputRole::total_sequence_length},
    NamedRole{"total_seq_len", InputRole::total_sequence_length},
    NamedRole{"logits_to_keep", InputRole::logits_to_keep},
    NamedRole{"num_logits_to_keep", InputRole::logits_to_keep},
};

constexpr std::array<std::string_view, 8> kPastWords = {
    "past_key_values",   "past_key_value", "past",          "present_key_values",
    "present_key_value", "present",        "updated_cache", "updated"};

// The name under which the caller's map knows an input or output, else its own.
std::string effective_name(const RoleMap& map, const std::string& name) {
  for (const auto& [role, mapped] : map) {
    if (mapped == name) return role;
  }
  return name;
}

const ValueDef& input_at(const Graph& graph, size_t index) { return value_at(graph, graph.inputs[index]); }

size_t rank_of(const TypeInfo& type) { return type.dims.has_value() ? type.dims->size() : 0; }

bool is_floating_tensor(const TypeInfo& type) { return type.kind == TypeInfo::Kind::tensor && is_floating(type.dtype); }

bool has_past_name(const std::string& name) {
  for (const std::string_view word : {"past", "present", "cache", "updated"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

std::string key_of(const std::string& name) {
  for (const std::string_view word : kPastWords) {
    const size_t at = name.find(word);
    if (at == std::string::npos) continue;
    std::string key = name.substr(0, at) + name.substr(at + word.size());
    while (!key.empty() && (key.front() == '.' || key.front() == '_')) key.erase(0, 1);
    return key;
  }
  return name;
}

CacheSlot make_slot(const std::string& effective, const std::string& name, size_t index, const TypeInfo& type,
                    const std::string& batch) {
  CacheSlot slot;
  slot.key = key_of(effective);
  slot.name = name;
  slot.index = index;
  slot.is_cross = slot.key.find("encoder") != std::string::npos || slot.key.find("cross") != std::string::npos;
  slot.dtype = type.dtype;
  if (!type.dims.has_value()) return slot;
  const auto rank = static_cast<int>(type.dims->size());
  for (const Dim& dim : *type.dims) slot.dims.push_back(dim.value);
  for (int axis = 0; axis < rank; ++axis) {
    const Dim& dim = (*type.dims)[static_cast<size_t>(axis)];
    if (!batch.empty() && dim.name == batch) slot.batch_axis = axis;
  }
  slot.axis = std::max(rank - 2, 0);
  for (int axis = rank - 1; axis >= 0; --axis) {
    if (axis != slot.batch_axis && !(*type.dims)[static_cast<size_t>(axis)].is_known()) slot.axis = axis;
  }
  // The axis of the past is, of several free dimensions, the one before the last: [batch, heads, past, head size].
  const auto is_free = [&](int axis) { return axis != slot.batch_axis && slot.dims[static_cast<size_t>(axis)] < 0; };
  int free = 0;
  for (int axis = 0; axis < rank; ++axis) free += is_free(axis) ? 1 : 0;
  if (free > 1 && is_free(rank - 2)) slot.axis = rank - 2;
  return slot;
}

std::string batch_name(const Graph& graph, std::optional<size_t> input_ids) {
  if (!input_ids.has_value()) return {};
  const TypeInfo& type = input_at(graph, *input_ids).type;
  return rank_of(type) == 2 ? (*type.dims)[0].name : std::string();
}

std::optional<InputRole> role_by_name(const std::string& name) {
  const auto found = std::ranges::find(kNamedRoles, std::string_view(name), &NamedRole::name);
  if (found == kNamedRoles.end()) return std::nullopt;
  return found->role;
}

Error no_role(const Model& model, const ValueDef& input) {
  return unsupported(
      fmt::format("input '{}' of '{}' ({}) has no role that its name or shape tells; --map names its role, as in "
                  "{{\"attention_mask\": \"{}\"}}",
                  input.name, model.path, to_string(input.type), input.name));
}

Status assign_inputs(const Model& model, const RoleMap& map, ModelRoles& roles) {
  const Graph& graph = model.graph;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const std::string name = effective_name(map, input_at(graph, index).name);
    roles.inputs.push_back(role_by_name(name).value_or(InputRole::none));
  }
  const std::string batch = batch_name(graph, roles.input(InputRole::input_ids));
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    if (roles.inputs[index] != InputRole::none) continue;
    const ValueDef& input = input_at(graph, index);
    const std::string name = effective_name(map, input.name);
    const bool is_cache = is_floating_tensor(input.type) && (has_past_name(name) || rank_of(input.type) >= 4);
    if (is_cache) {
      roles.inputs[index] = InputRole::past;
      roles.past.push_back(make_slot(name, input.name, index, input.type, batch));
    } else if (input.initializer_index < 0) {
      return no_role(model, input);
    }
  }
  return {};
}

// A decoder of an encoder-decoder that has one mask alone masks the encoder's states with it.
void tell_masks_apart(const Graph& graph, ModelRoles& roles) {
  if (!roles.input(InputRole::encoder_hidden_states).has_value()) return;
  if (roles.input(InputRole::encoder_attention_mask).has_value()) return;
  const auto mask = roles.input(InputRole::attention_mask);
  if (mask.has_value() && input_at(graph, *mask).name != "decoder_attention_mask")
    roles.inputs[*mask] = InputRole::encoder_attention_mask;
}

TypeInfo output_type(const Graph& graph, size_t index) { return graph.output_type(index); }

void assign_outputs(const Model& model, const RoleMap& map, ModelRoles& roles) {
  const Graph& graph = model.graph;
  const std::string batch = batch_name(graph, roles.input(InputRole::input_ids));
  const auto name_at = [&](size_t index) { return value_at(graph, graph.outputs[index]).name; };
  for (size_t index = 0; index < graph.outputs.size(); ++index) {
    if (effective_name(map, name_at(index)) == "logits") roles.logits = index;
  }
  for (size_t index = 0; index < graph.outputs.size() && !roles.logits.has_value(); ++index) {
    const TypeInfo type = output_type(graph, index);
    if (is_floating_tensor(type) && rank_of(type) == 3 && !has_past_name(name_at(index))) roles.logits = index;
  }
  for (size_t index = 0; index < graph.outputs.size(); ++index) {
    const std::string name = effective_name(map, name_at(index));
    const TypeInfo type = output_type(graph, index);
    if (roles.logits == index || !is_floating_tensor(type)) continue;
    if (has_past_name(name) || rank_of(type) >= 4 || !type.dims.has_value())
      roles.present.push_back(make_slot(name, name_at(index), index, type, batch));
  }
}

Error unpaired(const Model& model, const ModelRoles& roles, const CacheSlot& past) {
  return invalid_model(
      fmt::format("'{}' has {} past inputs and {} present outputs, and none of these is the next '{}'; each past needs "
                  "a present of its name or position, which --map can name",
                  model.path, roles.past.size(), roles.present.size(), past.name));
}

// The dimensions that both fix must be equal, but for that which grows.
Status check_pair(const Model& model, const CacheSlot& past, const CacheSlot& present) {
  bool fits = past.dtype == present.dtype &&
              (past.dims.empty() || present.dims.empty() || past.dims.size() == present.dims.size());
  for (size_t axis = 0; fits && axis < std::min(past.dims.size(), present.dims.size()); ++axis) {
    const int64_t a = past.dims[axis], b = present.dims[axis];
    if (a >= 0 && b >= 0 && a != b && static_cast<int>(axis) != past.axis) fits = false;
  }
  if (fits) return {};
  return invalid_model(
      fmt::format("'{}': input '{}' ({} of [{}]) and output '{}' ({} of [{}]) do not pair; a past and its present have "
                  "one type and "
                  "differ in length alone (-1: any)",
                  model.path, past.name, name_of(past.dtype), fmt::join(past.dims, ","), present.name,
                  name_of(present.dtype), fmt::join(present.dims, ",")));
}

Status pair_own_caches(const Model& model, ModelRoles& roles) {
  roles.present_of_past = pair_caches(roles.past, roles.present);
  for (size_t index = 0; index < roles.past.size(); ++index) {
    const int32_t present = roles.present_of_past[index];
    if (present < 0 && !roles.past[index].is_cross) return unpaired(model, roles, roles.past[index]);
    if (present >= 0) PX_TRY(check_pair(model, roles.past[index], roles.present[static_cast<size_t>(present)]));
  }
  return {};
}

bool counts_from_the_left(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    if (node.domain == "com.microsoft" && node.op_type == "GroupQueryAttention") return true;
    return std::ranges::any_of(bodies_of(node), [](const Graph* body) { return counts_from_the_left(*body); });
  });
}

bool counts_from_the_left(const Model& model) {
  return counts_from_the_left(model.graph) || std::ranges::any_of(model.functions, [](const auto& function) {
           return counts_from_the_left(function->body);
         });
}

Error without_ids(const Model& model) {
  return unsupported(fmt::format("'{}' is no decoder: no input is input_ids; --map names it", model.path));
}

}  // namespace

std::string_view name_of(InputRole role) {
  if (role == InputRole::past) return "past_key_values";
  if (role == InputRole::none) return "none";
  return std::ranges::find(kNamedRoles, role, &NamedRole::role)->name;
}

std::optional<size_t> ModelRoles::input(InputRole role) const {
  const auto found = std::ranges::find(inputs, role);
  if (found == inputs.end()) return std::nullopt;
  return static_cast<size_t>(found - inputs.begin());
}

std::vector<int32_t> pair_caches(const std::vector<CacheSlot>& past, const std::vector<CacheSlot>& present) {
  std::vector<int32_t> pairs(past.size(), -1);
  bool any_by_key = false;
  for (size_t index = 0; index < past.size(); ++index) {
    const auto found = std::ranges::find(present, past[index].key, &CacheSlot::key);
    if (found == present.end()) continue;
    pairs[index] = static_cast<int32_t>(found - present.begin());
    any_by_key = true;
  }
  if (any_by_key || past.size() != present.size()) return pairs;
  for (size_t index = 0; index < past.size(); ++index) pairs[index] = static_cast<int32_t>(index);
  return pairs;
}

Result<ModelRoles> decoder_roles(const Model& model, const RoleMap& map) {
  ModelRoles roles;
  const auto is_ids = [&](ValueId id) {
    return role_by_name(effective_name(map, value_at(model.graph, id).name)) == InputRole::input_ids;
  };
  if (!std::ranges::any_of(model.graph.inputs, is_ids)) return without_ids(model);
  PX_TRY(assign_inputs(model, map, roles));
  tell_masks_apart(model.graph, roles);
  assign_outputs(model, map, roles);
  if (!roles.logits.has_value())
    return unsupported(fmt::format(
        "'{}' is no decoder: no output is logits, a float tensor [batch, sequence, vocabulary]; --map names it",
        model.path));
  PX_TRY(pair_own_caches(model, roles));
  roles.pads_right = counts_from_the_left(model);
  return roles;
}

Result<ModelRoles> encoder_roles(const Model& model, const RoleMap& map) {
  ModelRoles roles;
  PX_TRY(assign_inputs(model, map, roles));
  if (!roles.input(InputRole::input_ids).has_value()) return without_ids(model);
  for (size_t index = 0; index < model.graph.outputs.size() && !roles.hidden_states.has_value(); ++index) {
    const TypeInfo type = output_type(model.graph, index);
    if (is_floating_tensor(type)) roles.hidden_states = index;
  }
  if (!roles.hidden_states.has_value())
    return unsupported(fmt::format("'{}' is no encoder: no output is a float tensor", model.path));
  return roles;
}

std::map<std::string, std::string> roles_by_name(const Model& model, const ModelRoles& roles, std::string_view prefix) {
  std::map<std::string, std::string> names;
  const Graph& graph = model.graph;
  for (size_t index = 0; index < roles.inputs.size(); ++index) {
    const InputRole role = roles.inputs[index];
    if (role == InputRole::none || role == InputRole::past) continue;
    names[fmt::format("{}{}", prefix, name_of(role))] = input_at(graph, index).name;
  }
  const auto add = [&](std::string_view role, size_t output) {
    names[fmt::format("{}{}", prefix, role)] = value_at(graph, graph.outputs[output]).name;
  };
  if (roles.logits.has_value()) add("logits", *roles.logits);
  if (roles.hidden_states.has_value()) add("hidden_states", *roles.hidden_states);
  for (size_t index = 0; index < roles.past.size(); ++index)
    names[fmt::format("{}past.{}", prefix, index)] = roles.past[index].name;
  for (size_t index = 0; index < roles.past.size(); ++index) {
    const int32_t present = roles.present_of_past[index];
    if (present >= 0)
      names[fmt::format("{}present.{}", prefix, index)] = roles.present[static_cast<size_t>(present)].name;
  }
  return names;
}

int64_t vocabulary_of(const Model& model, const ModelRoles& roles) {
  const Graph& graph = model.graph;
  const auto ids = roles.input(InputRole::input_ids);
  if (!ids.has_value()) return 0;
  for (const NodeId reader : input_at(graph, *ids).readers) {
    const Node& node = graph.nodes[static_cast<size_t>(reader)];
    if (node.op_type != "Gather" || node.inputs.size() != 2 || node.inputs[1] != graph.inputs[*ids]) continue;
    const ValueDef& table = value_at(graph, node.inputs[0]);
    if (table.initializer_index < 0) continue;
    const Tensor& weights = graph.initializers[static_cast<size_t>(table.initializer_index)].tensor;
    if (weights.shape().rank() == 2) return weights.shape()[0];
  }
  if (!roles.logits.has_value()) return 0;
  const TypeInfo type = output_type(graph, *roles.logits);
  return rank_of(type) == 3 ? std::max<int64_t>((*type.dims)[2].value, 0) : 0;
}

}  // namespace parallax::generate
