// SPDX-License-Identifier: Apache-2.0
// Matching names of torch by the module scopes and the FX nodes of an exported graph's nodes.
#include "inspector/dump/convert/torch_names.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "inspector/exec/value_path.h"
#include "inspector/model/scope_tree.h"

namespace parallax::dump {
namespace {

using Nodes = std::vector<NodeId>;

// An output or an input of a module's call, as a name says it.
struct ModuleName {
  size_t index = 0;  // among the foreign names
  std::string module;
  int64_t call = 0;
  bool says_call = false;
  bool is_input = false;
  std::string item;  // "0" or "kwargs/mask"; empty where the value is the whole object
};

ModuleName parse_module_name(const std::string& name, size_t index) {
  ModuleName parsed{index, name, 0, false, false, ""};
  const auto path = parse_value_path(name);
  if (!path.ok() || path->frames.empty() || path->frames.back().kind != Frame::Kind::module) return parsed;
  const Frame& frame = path->frames.back();
  parsed.module = frame.node;
  parsed.says_call = frame.index >= 0;
  parsed.call = std::max<int64_t>(frame.index, 0);
  const size_t slash = path->name.find('/');
  parsed.is_input = path->name.substr(0, slash) == "in";
  if (slash != std::string::npos) parsed.item = path->name.substr(slash + 1);
  return parsed;
}

// True where a value of the graph may have this type: free dimensions accept any size.
bool is_compatible(const TypeInfo& declared, const TypeInfo& actual) {
  if (declared.kind == TypeInfo::Kind::unknown) return true;
  if (declared.kind != actual.kind || declared.dtype != actual.dtype) return false;
  if (!declared.dims.has_value() || !actual.dims.has_value()) return true;
  return std::ranges::equal(*declared.dims, *actual.dims, [](const Dim& a, const Dim& b) {
    return !a.is_known() || !b.is_known() || a.value == b.value;
  });
}

// ---- calls of modules ----------------------------------------------------------------------------------------------

class ModuleCalls {
 public:
  explicit ModuleCalls(const Graph& graph) : graph_(graph) {
    std::unordered_set<std::string> open;
    for (const NodeId id : graph.order) {
      const auto modules = torch_modules_of(graph.nodes[static_cast<size_t>(id)]);
      if (modules.empty()) continue;  // an optimizer's own node interrupts no call
      std::unordered_set<std::string> here(modules.begin(), modules.end());
      for (const std::string& module : here) {
        if (!open.contains(module)) runs_[module].emplace_back();
        runs_[module].back().push_back(id);
      }
      open = std::move(here);
    }
  }

  bool is_empty() const { return runs_.empty(); }
  bool has(const std::string& module) const { return runs_.contains(module); }
  template <class Visit>
  void each_module(Visit&& visit) const {
    for (const auto& [module, runs] : runs_) visit(module);
  }

  // The nodes of call `call` of `count` calls; nothing where the graph does not tell them from each other.
  std::optional<Nodes> call(const std::string& module, int64_t call, int64_t count) const {
    const auto& runs = runs_.at(module);
    if (static_cast<int64_t>(runs.size()) == count) return runs[static_cast<size_t>(call)];
    Nodes all;
    for (const Nodes& run : runs) all.insert(all.end(), run.begin(), run.end());
    if (count == 1) return all;  // other nodes stand between its own
    if (runs.size() > 1) return std::nullopt;
    return part_of(all, call, count);
  }
  size_t count(const std::string& module) const { return runs_.at(module).size(); }

 private:
  // Calls that follow each other directly look like one; they are equal sequences of operators.
  std::optional<Nodes> part_of(const Nodes& nodes, int64_t call, int64_t count) const {
    std::vector<Nodes> operations;  // nodes by the FX node that they are a part of
    std::vector<std::string> operators;
    std::string last;
    for (const NodeId id : nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(id)];
      std::string name = fx_name_of(node);
      if (operations.empty() || name != last) {
        operations.emplace_back();
        operators.push_back(source_of(node).operator_name);
      }
      operations.back().push_back(id);
      last = std::move(name);
    }
    const auto length = operations.size() / static_cast<size_t>(count);
    if (length == 0 || operations.size() % static_cast<size_t>(count) != 0) return std::nullopt;
    for (size_t index = length; index < operators.size(); ++index) {
      if (operators[index] != operators[index - length]) return std::nullopt;
    }
    Nodes part;
    for (size_t index = 0; index < length; ++index) {
      const Nodes& operation = operations[static_cast<size_t>(call) * length + index];
      part.insert(part.end(), operation.begin(), operation.end());
    }
    return part;
  }

  const Graph& graph_;
  std::map<std::string, std::vector<Nodes>> runs_;
};

// ---- the prefix by which two spellings of module paths differ ------------------------------------------------------

// "model.decoder" of a capture is "decoder" of an export whose root is the model, and the other way round.
struct Prefix {
  std::string of_capture, of_graph;  // at most one is not empty
  bool operator<(const Prefix& other) const {
    return std::tie(of_capture, of_graph) < std::tie(other.of_capture, other.of_graph);
  }

  std::optional<std::string> in_graph(const std::string& module) const {
    if (of_capture.empty()) return of_graph.empty() ? module : module.empty() ? of_graph : of_graph + "." + module;
    if (module == of_capture) return std::string();
    if (!module.starts_with(of_capture + ".")) return std::nullopt;
    return module.substr(of_capture.size() + 1);
  }
};

// Every way to cut a dotted path in two: (what goes, what stays).
template <class Visit>
void each_cut(const std::string& path, Visit&& visit) {
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    visit(path.substr(0, dot), path.substr(dot + 1));
  if (!path.empty()) visit(path, std::string());
}

// The prefix under which most modules are found; of equals the shortest. That a module is the root itself is believed
// where modules within it were captured, too.
Prefix best_prefix(const std::set<std::string>& captured, const ModuleCalls& calls) {
  std::map<Prefix, size_t> found;
  for (const std::string& module : captured) {
    if (calls.has(module)) ++found[{}];
    each_cut(module, [&](const std::string& goes, const std::string& stays) {
      const auto within = captured.lower_bound(goes + ".");
      const bool is_outer = within != captured.end() && within->starts_with(goes + ".");
      if (calls.has(stays) && (!stays.empty() || is_outer)) ++found[{goes, ""}];
    });
  }
  calls.each_module([&](const std::string& module) {
    each_cut(module, [&](const std::string& goes, const std::string& stays) {
      if (captured.contains(stays)) ++found[{"", goes}];
    });
  });
  Prefix best;
  size_t most = found[best];
  for (const auto& [prefix, count] : found) {
    if (count > most) best = prefix, most = count;
  }
  return best;
}

// ---- matching ------------------------------------------------------------------------------------------------------

class Matcher {
 public:
  Matcher(const Graph& graph, std::span<const ForeignName> names, std::span<const std::string> taken)
      : graph_(graph), names_(names), calls_(graph), taken_(taken.begin(), taken.end()) {}

  TorchMatches run() {
    if (calls_.is_empty()) return {};
    std::vector<ModuleName> modules;
    const auto by_fx_name = values_by_fx_name();
    for (size_t index = 0; index < names_.size(); ++index) {
      const auto value = by_fx_name.find(names_[index].name);
      if (value == by_fx_name.end()) {
        modules.push_back(parse_module_name(names_[index].name, index));
      } else if (!is_compatible(value_at(graph_, value->second).type, names_[index].type)) {
        note(names_[index].name,
             fmt::format("'{}' of the graph has another type", value_at(graph_, value->second).name));
      } else {
        give(value->second, names_[index].name);
      }
    }
    match_modules(modules);
    tell();
    return std::move(matches_);
  }

 private:
  // The last node with the FX node's name makes its value; several outputs have names of their own.
  std::unordered_map<std::string, ValueId> values_by_fx_name() const {
    std::unordered_map<std::string, ValueId> values;
    for (const NodeId id : graph_.order) {
      const Node& node = graph_.nodes[static_cast<size_t>(id)];
      const std::string name = fx_name_of(node);
      if (name.empty()) continue;
      values.erase(name);
      if (node.outputs.size() == 1 && node.outputs[0] != kNoValue) values[name] = node.outputs[0];
    }
    return values;
  }

  void match_modules(std::vector<ModuleName>& names) {
    std::set<std::string> captured;
    for (const ModuleName& name : names) captured.insert(name.module);
    Prefix prefix = best_prefix(captured, calls_);
    if (captured.size() == 1 && !calls_.has(*captured.begin()) && is_root(names)) prefix = {*captured.begin(), ""};
    std::map<std::pair<std::string, int64_t>, std::vector<ModuleName>> outputs;
    std::map<std::string, int64_t> counts;
    for (ModuleName& name : names) {
      const auto module = prefix.in_graph(name.module);
      if (name.is_input) {
        match_input(name, module);
      } else if (!module.has_value() || !calls_.has(*module)) {
        note(names_[name.index].name, name.says_call
                                          ? "no node of the graph belongs to this module: it computes nothing, "
                                            "or was folded or fused into another"
                                          : "the graph has neither a value nor a module of this name");
      } else {
        int64_t& count = counts[*module];
        count = std::max(count, name.call + 1);
        outputs[{*module, name.call}].push_back(std::move(name));
      }
    }
    std::vector<std::pair<std::string, int64_t>> order;
    for (const auto& [key, list] : outputs) order.push_back(key);
    // Inner modules first: what an outer one hands on has their names.
    std::ranges::stable_sort(order, std::greater(), [](const auto& key) {
      return std::ranges::count(key.first, '.') + (key.first.empty() ? 0 : 1);
    });
    for (const auto& key : order) match_call(key.first, key.second, counts[key.first], outputs[key]);
  }

  // True where the only captured module is the graph's own: it has the graph's inputs and as many outputs.
  bool is_root(const std::vector<ModuleName>& names) const {
    const auto inputs = std::ranges::count_if(names, &ModuleName::is_input);
    const bool fit = std::ranges::all_of(
        names, [&](const ModuleName& name) { return !name.is_input || input_of(name) != kNoValue; });
    return inputs > 0 && fit && names.size() - static_cast<size_t>(inputs) == graph_.outputs.size();
  }

  // The graph's input with the name or at the position of a module's argument, where its type fits.
  ValueId input_of(const ModuleName& name) const {
    const std::string last = name.item.substr(name.item.rfind('/') + 1);
    ValueId input = graph_.find_value(last);
    const bool is_number =
        !last.empty() && last.find_first_not_of("0123456789") == std::string::npos && last.size() < 6;
    if (input == kNoValue && is_number && static_cast<size_t>(std::stoi(last)) < graph_.inputs.size())
      input = graph_.inputs[static_cast<size_t>(std::stoi(last))];
    const bool fits = input != kNoValue && value_at(graph_, input).input_index >= 0 &&
                      is_compatible(value_at(graph_, input).type, names_[name.index].type);
    return fits ? input : kNoValue;
  }

  void match_input(const ModuleName& name, const std::optional<std::string>& module) {
    const std::string& foreign = names_[name.index].name;
    if (!module.has_value() || !module->empty() || name.call > 0) {
      ++inner_inputs_;
      return;
    }
    const ValueId input = input_of(name);
    if (input != kNoValue) {
      give(input, foreign);
    } else {
      note(foreign, "no input of the graph has its name or position, and its type");
    }
  }

  void match_call(const std::string& module, int64_t call, int64_t count, const std::vector<ModuleName>& names) {
    const bool may_be_any = !names.front().says_call && calls_.count(module) > 1;
    const auto nodes = may_be_any ? std::nullopt : calls_.call(module, call, count);
    if (!nodes.has_value()) {
      for (const ModuleName& name : names)
        note(
            names_[name.index].name,
            fmt::format("the graph has {} calls of the module, and does not tell which this is", calls_.count(module)));
      return;
    }
    if (module.empty() && are_outputs(names)) {
      for (size_t index = 0; index < names.size(); ++index)
        give(graph_.outputs[index], names_[names[index].index].name);
      return;
    }
    const std::vector<ValueId> leaving = leaving_values(*nodes);
    for (const ModuleName& name : names) {
      const ForeignName& foreign = names_[name.index];
      const auto fitting = [&](const TypeInfo& type) {
        std::vector<ValueId> values;
        std::ranges::copy_if(leaving, std::back_inserter(values),
                             [&](ValueId id) { return is_compatible(value_at(graph_, id).type, type); });
        return values;
      };
      const std::vector<ValueId> values = fitting(foreign.type);
      const auto rivals = std::ranges::count_if(
          names, [&](const ModuleName& other) { return names_[other.index].type == foreign.type; });
      if (values.empty()) {
        note(foreign.name, "no value of its type leaves the module's nodes");
      } else if (rivals > 1) {
        note(foreign.name, fmt::format("{} outputs of the module have its type", rivals));
      } else if (names.size() > 1 && values.size() > 1) {
        note(foreign.name, fmt::format("{} values of its type leave the module's nodes", values.size()));
      } else {
        give(values.back(), foreign.name);
      }
    }
  }

  // True where the values of the graph's own module are its outputs, one by one.
  bool are_outputs(const std::vector<ModuleName>& names) const {
    if (names.size() != graph_.outputs.size()) return false;
    for (size_t index = 0; index < names.size(); ++index) {
      if (!is_compatible(value_at(graph_, graph_.outputs[index]).type, names_[names[index].index].type)) return false;
    }
    return true;
  }

  // The values that nodes outside read, or the graph returns, in order.
  std::vector<ValueId> leaving_values(const Nodes& nodes) const {
    const std::unordered_set<NodeId> inside(nodes.begin(), nodes.end());
    std::vector<ValueId> values;
    for (const NodeId id : nodes) {
      for (const ValueId output : graph_.nodes[static_cast<size_t>(id)].outputs) {
        if (output == kNoValue) continue;
        const ValueDef& definition = value_at(graph_, output);
        const bool leaves = definition.is_graph_output || std::ranges::any_of(definition.readers, [&](NodeId reader) {
                              return !inside.contains(reader);
                            });
        if (leaves) values.push_back(output);
      }
    }
    return values;
  }

  void give(ValueId id, const std::string& foreign) {
    const std::string& value = value_at(graph_, id).name;
    const auto [owner, is_free] = owner_.emplace(value, foreign);
    if (taken_.contains(value) || !is_free) {
      ++same_values_;
      return;
    }
    matches_.value_of[foreign] = value;
  }

  void note(const std::string& foreign, std::string_view reason) {
    constexpr size_t kNamed = 5;
    if (unmatched_++ < kNamed) reasons_.push_back(fmt::format("'{}' ({})", foreign, reason));
  }

  void tell() {
    if (!reasons_.empty()) {
      const size_t more = unmatched_ - reasons_.size();
      matches_.notes.push_back(fmt::format("no value of the model was found for {}{}", fmt::join(reasons_, ", "),
                                           more > 0 ? fmt::format(" and {} more", more) : ""));
    }
    if (same_values_ > 0)
      matches_.notes.push_back(fmt::format(
          "names of values that have another name in the origin, too, keep their own paths: {}", same_values_));
    if (inner_inputs_ > 0)
      matches_.notes.push_back(
          fmt::format("inputs of modules, which are outputs of others, keep their own paths: {}", inner_inputs_));
  }

  const Graph& graph_;
  std::span<const ForeignName> names_;
  ModuleCalls calls_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> owner_;
  TorchMatches matches_;
  std::vector<std::string> reasons_;
  size_t unmatched_ = 0;
  int64_t same_values_ = 0, inner_inputs_ = 0;
};

}  // namespace

TorchMatches match_torch_names(const Graph& graph, std::span<const ForeignName> names,
                               std::span<const std::string> taken) {
  return Matcher(graph, names, taken).run();
}

}  // namespace parallax::dump
