// SPDX-License-Identifier: Apache-2.0
// Reading of scopes: torch's metadata (name_scopes, class_hierarchy, namespace, stack_trace), else the parts of node
// names.
#include "inspector/model/scope_tree.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "inspector/base/text.h"

namespace parallax {
namespace {

// One module around a node, from the outside in.
struct Module {
  std::string path;
  std::string class_name;
};

// torch writes this where a node belongs to no module (shape arithmetic).
constexpr std::string_view kNoModule = "_empty_nn_module_stack_from_metadata_hook";

// The strings in the repr of a Python list: 'a' or "a", with backslash escapes. Nothing where it is no such list.
std::optional<std::vector<std::string>> parse_string_list(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::string> items;
  for (size_t at = 0; at < text.size();) {
    const char quote = text[at];
    if (quote == ' ' || quote == ',') {
      ++at;
      continue;
    }
    if (quote != '\'' && quote != '"') return std::nullopt;
    std::string& item = items.emplace_back();
    for (++at; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      item += text[at];
    }
    if (at == text.size()) return std::nullopt;
    ++at;
  }
  return items;
}

std::string last_part(std::string_view dotted) { return std::string(dotted.substr(dotted.rfind('.') + 1)); }

// "L['self'].layers.0" is how tracing spells the module's own "layers.0".
std::string_view without_self(std::string_view path) {
  constexpr std::string_view kSelf = "L['self']";
  if (!path.starts_with(kSelf)) return path;
  path.remove_prefix(kSelf.size());
  return path.starts_with('.') ? path.substr(1) : path;
}

void add_module(std::vector<Module>& modules, std::string_view scope, std::string_view class_path) {
  if (scope != kNoModule) modules.push_back({std::string(without_self(scope)), last_part(class_path)});
}

// name_scopes and class_hierarchy run in step; their last entries are the traced operation, no module.
std::optional<std::vector<Module>> modules_from_lists(const Metadata& metadata) {
  const auto scopes = parse_string_list(find_metadata(metadata, "pkg.torch.onnx.name_scopes"));
  if (!scopes || scopes->empty()) return std::nullopt;
  const auto classes = parse_string_list(find_metadata(metadata, "pkg.torch.onnx.class_hierarchy"));
  const bool has_classes = classes && classes->size() == scopes->size();
  std::vector<Module> modules;
  for (size_t i = 0; i + 1 < scopes->size(); ++i) add_module(modules, (*scopes)[i], has_classes ? (*classes)[i] : "");
  return modules;
}

// "scope: class/scope: class/operation: target".
std::optional<std::vector<Module>> modules_from_namespace(const Metadata& metadata) {
  const std::string_view text = find_metadata(metadata, "namespace");
  if (text.empty()) return std::nullopt;
  const auto parts = split(text, '/');
  std::vector<Module> modules;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const size_t colon = parts[i].find(": ");
    add_module(modules, parts[i].substr(0, colon), colon == std::string_view::npos ? "" : parts[i].substr(colon + 2));
  }
  return modules;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "/model/layers.0/MatMul_1", or "model.layers.0.MatMul": all parts but the last. An index belongs to the part before
// it.
std::vector<Module> modules_from_name(std::string_view name) {
  const char separator = name.find('/') != std::string_view::npos ? '/' : '.';
  const auto parts = split(name, separator);
  std::vector<Module> modules;
  std::string path;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    const bool is_index = is_number(parts[i]) && !modules.empty() && separator == '.';
    path += (path.empty() ? "" : ".") + std::string(parts[i]);
    if (is_index) {
      modules.back().path = path;
    } else {
      modules.push_back({path, ""});
    }
  }
  return modules;
}

std::vector<Module> modules_around(const Node& node) {
  if (auto modules = modules_from_lists(node.metadata)) return *std::move(modules);
  if (auto modules = modules_from_namespace(node.metadata)) return *std::move(modules);
  return modules_from_name(node.name);
}

bool is_inside(std::string_view path, std::string_view outer) {
  return outer.empty() || (path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '.');
}

class TreeBuilder {
 public:
  explicit TreeBuilder(const Graph& graph) {
    tree_.scopes.emplace_back();
    tree_.scope_of_node.assign(graph.nodes.size(), 0);
    for (NodeId node : graph.order) add(node, graph.nodes[static_cast<size_t>(node)]);
  }
  ScopeTree take() { return std::move(tree_); }

 private:
  // A node belongs to the innermost module. Of those around it in the call, the ones whose path leads to it are its
  // parents: a module that is called from elsewhere keeps its own position.
  void add(NodeId id, const Node& node) {
    const auto modules = modules_around(node);
    int32_t scope = 0;
    for (const Module& module : modules) {
      const bool leads = module.path == modules.back().path || is_inside(modules.back().path, module.path);
      if (leads) scope = child(scope, module);
    }
    tree_.scopes[static_cast<size_t>(scope)].nodes.push_back(id);
    tree_.scope_of_node[static_cast<size_t>(id)] = scope;
  }

  int32_t child(int32_t parent, const Module& module) {
    if (module.path.empty()) {
      if (tree_.scopes[0].class_name.empty()) tree_.scopes[0].class_name = module.class_name;
      return 0;
    }
    const auto [known, is_new] = by_path_.emplace(module.path, static_cast<int32_t>(tree_.scopes.size()));
    if (!is_new) return known->second;
    const std::string& outer = tree_.scopes[static_cast<size_t>(parent)].path;
    const bool below = !outer.empty() && is_inside(module.path, outer);
    Scope scope;
    scope.path = module.path;
    scope.name = below ? module.path.substr(outer.size() + 1) : module.path;
    scope.class_name = module.class_name;
    scope.parent = parent;
    tree_.scopes[static_cast<size_t>(parent)].children.push_back(known->second);
    tree_.scopes.push_back(std::move(scope));
    return known->second;
  }

  ScopeTree tree_;
  std::unordered_map<std::string, int32_t> by_path_;
};

// ---- The traced operation ------------------------------------------------------------------------------------------

// "aten.softmax.int" and "prims.var.default"; not "<built-in function getitem>" nor the name of a module.
bool is_operator_name(std::string_view text) {
  if (text.empty() || text.find('.') == std::string_view::npos) return false;
  if (text.starts_with('.') || text.ends_with('.') || is_number(text.substr(0, 1))) return false;
  return std::ranges::all_of(text, [](char c) {
    return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// The target in "%softmax : [num_users=1] = call_function[target=torch.ops.aten.softmax.int](args = ...)".
std::string_view target_of_fx_node(std::string_view text) {
  constexpr std::string_view kTarget = "call_function[target=", kOps = "torch.ops.";
  const size_t begin = text.find(kTarget);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + kTarget.size());
  text = text.substr(0, text.find(']'));
  if (text.starts_with(kOps)) text.remove_prefix(kOps.size());
  return text;
}

// The last entry of `namespace` is "softmax: aten.softmax.int", that of class_hierarchy the operator alone.
std::string operator_of(const Metadata& metadata) {
  const std::string_view scopes = find_metadata(metadata, "namespace");
  const std::string_view last = scopes.substr(scopes.rfind('/') + 1);
  if (const size_t colon = last.rfind(": ");
      colon != std::string_view::npos && is_operator_name(last.substr(colon + 2)))
    return std::string(last.substr(colon + 2));
  const auto classes = parse_string_list(find_metadata(metadata, "pkg.torch.onnx.class_hierarchy"));
  if (classes && !classes->empty() && is_operator_name(classes->back())) return classes->back();
  const std::string_view target = target_of_fx_node(find_metadata(metadata, "pkg.torch.onnx.fx_node"));
  return is_operator_name(target) ? std::string(target) : std::string();
}

// ---- Source lines --------------------------------------------------------------------------------------------------

// A line `File "path", line N, in function` of a stack trace as "name.py:N"; nothing for other lines, for code that
// tracing made up ("<eval_with_key>.4") and for the installed torch itself.
std::optional<std::string> frame_of(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const size_t begin = line.find(kFile);
  if (begin == std::string_view::npos) return std::nullopt;
  line.remove_prefix(begin + kFile.size());
  const size_t end = line.find(kLine);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view path = line.substr(0, end);
  if (path.starts_with('<') || path.starts_with("torch/") || path.find("-packages/torch/") != std::string_view::npos)
    return std::nullopt;
  const std::string_view number = line.substr(end + kLine.size());
  const size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  return std::string(path.substr(path.find_last_of("/\\") + 1)) + ":" + std::string(number.substr(0, digits));
}

}  // namespace

ScopeTree build_scope_tree(const Graph& graph) { return TreeBuilder(graph).take(); }

SourceLocation source_of(const Node& node) {
  SourceLocation source;
  const auto modules = modules_around(node);
  if (!modules.empty()) source.module = modules.back().path;
  for (std::string_view line : split(find_metadata(node.metadata, "pkg.torch.onnx.stack_trace"), '\n')) {
    if (auto frame = frame_of(line)) source.line = *std::move(frame);  // the innermost comes last
  }
  source.operator_name = operator_of(node.metadata);
  return source;
}

std::vector<std::string> torch_modules_of(const Node& node) {
  auto modules = modules_from_lists(node.metadata);
  if (!modules) modules = modules_from_namespace(node.metadata);
  std::vector<std::string> paths;
  if (!modules) return paths;
  for (Module& module : *modules) paths.push_back(std::move(module.path));
  return paths;
}

std::string fx_name_of(const Node& node) {
  std::string_view text = find_metadata(node.metadata, "pkg.torch.onnx.fx_node");
  if (text.starts_with('%')) {
    text.remove_prefix(1);
    return std::string(text.substr(0, text.find(' ')));
  }
  const auto scopes = parse_string_list(find_metadata(node.metadata, "pkg.torch.onnx.name_scopes"));
  return scopes && !scopes->empty() ? scopes->back() : std::string();
}

}  // namespace parallax
