// SPDX-License-Identifier: Apache-2.0
// Pools the weights, makes the two bodies, and puts an If around them.
#include "inspector/transform/merge_decoders.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"
#include "inspector/transform/extract.h"
#include "inspector/transform/merge_branch.h"
#include "inspector/transform/merge_dimensions.h"
#include "inspector/transform/weight_pool.h"

namespace parallax::transform {
namespace {

constexpr int64_t kIrOfInnerInitializers = 4;  // initializers need not be inputs as well (onnx/docs/IR.md)
constexpr uint32_t kUsedByFirst = 1, kUsedByLater = 2;

// How exporters name a past after its present.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPastOfPresent = {
    {{"present_key_values", "past_key_values"}, {"present", "past_key_values"}, {"present", "past"}}};

// Parts of the names of caches, and the least rank of one whose name says nothing: [batch, heads, length, size].
constexpr std::array<std::string_view, 4> kCacheWords = {"past", "present", "cache", "updated"};
constexpr size_t kRankOfCaches = 4;

std::string past_of(const Graph& graph, const std::string& output) {
  for (const auto& [present, past] : kPastOfPresent) {
    const size_t at = output.find(present);
    if (at == std::string::npos) continue;
    std::string name = output;
    name.replace(at, present.size(), past);
    const ValueId id = graph.find_value(name);
    if (id != kNoValue && value_at(graph, id).input_index >= 0) return name;
  }
  return {};
}

const ValueDef* input_of(const Graph& graph, std::string_view name) {
  const ValueId id = graph.find_value(name);
  return id == kNoValue || value_at(graph, id).input_index < 0 ? nullptr : &value_at(graph, id);
}

const ValueDef* output_of(const Graph& graph, std::string_view name) {
  const ValueId id = graph.find_value(name);
  return id == kNoValue || !value_at(graph, id).is_graph_output ? nullptr : &value_at(graph, id);
}

bool is_cache(const ValueDef& input) {
  const TypeInfo& type = input.type;
  if (type.kind != TypeInfo::Kind::tensor || !is_floating(type.dtype)) return false;
  const bool has_name = std::ranges::any_of(
      kCacheWords, [&](std::string_view word) { return input.name.find(word) != std::string::npos; });
  return has_name || (type.dims.has_value() && type.dims->size() >= kRankOfCaches);
}

// The first cache among the inputs of `graph` that is no input of `other`.
const ValueDef* cache_of_one(const Graph& graph, const Graph& other) {
  for (const ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    if (is_cache(input) && input_of(other, input.name) == nullptr) return &input;
  }
  return nullptr;
}

// Checks that a copy of one model is the other, as far as its nodes and interface tell.
bool have_same_nodes(const Graph& a, const Graph& b) {
  const auto has_same_names = [&](const std::vector<ValueId>& of_a, const std::vector<ValueId>& of_b) {
    return std::ranges::equal(of_a, of_b,
                              [&](ValueId x, ValueId y) { return value_at(a, x).name == value_at(b, y).name; });
  };
  return has_same_names(a.inputs, b.inputs) && has_same_names(a.outputs, b.outputs) &&
         std::ranges::equal(a.nodes, b.nodes, {}, &Node::op_type, &Node::op_type);
}

std::string_view domain_of(const OpsetImport& import) {
  return import.domain.empty() ? std::string_view("ai.onnx") : std::string_view(import.domain);
}

void call_renamed(Graph& graph, const Function& function, const std::string& name) {
  for (Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node)) call_renamed(const_cast<Graph&>(*body), function, name);
    if (node.domain == function.domain && node.op_type == function.name && node.overload == function.overload)
      node.op_type = name;
  }
}

class Merger {
 public:
  Merger(const Model& first, const Model& later, const std::string& condition)
      : first_(first), later_(later), condition_(condition), fresh_(first) {
    fresh_.add(later);
  }

  Result<MergedDecoders> merge() {
    PX_TRY(check_order());
    PX_TRY(check_operator_sets());
    PX_TRY(check_interface());
    result_.condition = condition_;
    result_.model = std::make_shared<Model>();
    Model& model = *result_.model;
    describe(model);
    const std::shared_ptr<Model> first = rename_functions(model);
    add_inputs(model.graph);
    PX_TRY(add_defaults(model.graph));
    add_weights(model.graph);
    for (const ValueId id : first_.graph.outputs) enclosing_.outputs.push_back(value_at(first_.graph, id).name);
    add_branches(model.graph, *first);
    result_.model = PX_TRY(finish_model(result_.model));
    return std::move(result_);
  }

 private:
  // A cache is what the later decoder reads and the first one does not.
  Status check_order() const {
    if (cache_of_one(later_.graph, first_.graph) != nullptr) return {};
    if (const ValueDef* cache = cache_of_one(first_.graph, later_.graph))
      return usage_error(fmt::format(
          "'{}' reads the cache '{}' and '{}' reads none; the decoder of the first step, which reads none, must be the "
          "first of the two. Swap the models",
          first_.path, cache->name, later_.path));
    if (have_same_nodes(first_.graph, later_.graph))
      return usage_error(fmt::format(
          "'{}' and '{}' have the same nodes and inputs, as one model given twice; the second must be the decoder of "
          "later steps, which reads a cache that the first one does not. Name both decoders",
          first_.path, later_.path));
    return usage_error(fmt::format(
        "'{}' reads no cache that '{}' does not read, too; the second model must be the decoder of later steps, with "
        "inputs such as past_key_values.0.key. Name the decoder that reads the cache",
        later_.path, first_.path));
  }

  Status check_operator_sets() const {
    for (const OpsetImport& import : first_.opset_imports) {
      const int64_t version = first_.opset_version(import.domain), other = later_.opset_version(import.domain);
      if (other == 0 || other == version) continue;
      return unsupported(fmt::format(
          "'{}' imports {} of opset {} and '{}' of opset {}; decoders that are merged must import one version. Export "
          "both with the same opset",
          first_.path, domain_of(import), version, later_.path, other));
    }
    return {};
  }

  // The interface of each must be a part of the merged one, which is not obvious of any two models.
  Status check_interface() {
    if (input_of(first_.graph, condition_) != nullptr || input_of(later_.graph, condition_) != nullptr)
      return usage_error(
          fmt::format("'{}' is an input of the decoders already; the condition needs a name of its own", condition_));
    for (const ValueId id : later_.graph.outputs) {
      const ValueDef& output = value_at(later_.graph, id);
      if (output_of(first_.graph, output.name) != nullptr) continue;
      return unsupported(fmt::format(
          "output '{}' of '{}' is not among those of '{}'; the decoder of the first step must give all of them",
          output.name, later_.path, first_.path));
    }
    std::set<std::string_view> seen;
    for (const ValueId id : first_.graph.outputs) {
      const ValueDef& output = value_at(first_.graph, id);
      if (!seen.insert(output.name).second)
        return unsupported(
            fmt::format("'{}' lists its output '{}' twice; each must be listed once", first_.path, output.name));
      if (input_of(later_.graph, output.name) != nullptr || input_of(first_.graph, output.name) != nullptr)
        return unsupported(
            fmt::format("'{}' is an input and an output of the decoders; an If needs two names", output.name));
      PX_TRY(check_output(output));
    }
    return check_input_types();
  }

  Status check_output(const ValueDef& output) {
    const ValueDef* other = output_of(later_.graph, output.name);
    if (other == nullptr) {
      const std::string past = past_of(later_.graph, output.name);
      if (past.empty())
        return unsupported(fmt::format(
            "'{}' lacks the output '{}' of '{}', and none of its inputs is named as its past; it must have one of them",
            later_.path, output.name, first_.path));
      passed_[output.name] = past;
      result_.passed_through.push_back(output.name);
      other = input_of(later_.graph, past);
    }
    return check_types("output", output, *other);
  }

  Status check_input_types() const {
    for (const ValueId id : first_.graph.inputs) {
      const ValueDef& input = value_at(first_.graph, id);
      const ValueDef* other = input_of(later_.graph, input.name);
      if (other != nullptr) PX_TRY(check_types("input", input, *other));
    }
    return {};
  }

  Status check_types(std::string_view role, const ValueDef& a, const ValueDef& b) const {
    if (a.type.kind == b.type.kind && a.type.dtype == b.type.dtype && a.type.inner == b.type.inner) return {};
    return unsupported(fmt::format("{} '{}' is {} in '{}' and {} in '{}'; both decoders must have one type", role,
                                   a.name, to_string(a.type), first_.path, to_string(b.type), later_.path));
  }

  void describe(Model& model) const {
    model.path = fmt::format("merged '{}' and '{}'", first_.path, later_.path);
    model.ir_version = std::max({first_.ir_version, later_.ir_version, kIrOfInnerInitializers});
    model.opset_imports = later_.opset_imports;
    for (const OpsetImport& import : first_.opset_imports) {
      if (later_.opset_version(import.domain) == 0) model.opset_imports.push_back(import);
    }
    model.producer_name = later_.producer_name;
    model.producer_version = later_.producer_version;
    model.domain = later_.domain;
    model.doc = later_.doc;
    model.metadata = later_.metadata;
    for (const auto& entry : first_.metadata) {
      if (find_metadata(model.metadata, entry.first).empty()) model.metadata.push_back(entry);
    }
    model.graph.name = later_.graph.name;
  }

  // All functions of both; a copy of `first` calls its own by names that `later` does not use.
  std::shared_ptr<Model> rename_functions(Model& model) {
    const std::shared_ptr<Model> first = copy_model(first_);
    model.functions = copy_model(later_)->functions;
    const auto is_taken = [&](const Function& function, const std::string& name) {
      return std::ranges::any_of(model.functions, [&](const auto& other) {
        return other->domain == function.domain && other->name == name && other->overload == function.overload;
      });
    };
    for (const auto& function : first->functions) {
      std::string name = function->name;
      while (is_taken(*function, name)) name += "_first";
      if (name != function->name) {
        result_.renamed.push_back({"function", first_.path, function->name, name});
        call_renamed(first->graph, *function, name);
        for (const auto& caller : first->functions) call_renamed(caller->body, *function, name);
        function->name = name;
      }
    }
    model.functions.insert(model.functions.end(), first->functions.begin(), first->functions.end());
    return first;
  }

  void add_input(Graph& graph, const std::string& name, TypeInfo type) {
    enclosing_.types[name] = type;
    graph.inputs.push_back(add_value(graph, name, std::move(type)));
  }

  void add_inputs(Graph& graph) {
    std::map<std::string, TypeInfo, std::less<>> shared;
    for (const ValueId id : later_.graph.inputs) {
      const ValueDef& input = value_at(later_.graph, id);
      if (const ValueDef* other = input_of(first_.graph, input.name))
        shared[input.name] = dimensions_.shared_input(other->type, input.type);
    }
    for (const ValueId id : later_.graph.inputs) {
      const ValueDef& input = value_at(later_.graph, id);
      const auto both = shared.find(input.name);
      add_input(graph, input.name, both == shared.end() ? dimensions_.own_input(input.type, true) : both->second);
    }
    for (const ValueId id : first_.graph.inputs) {
      const ValueDef& input = value_at(first_.graph, id);
      if (!shared.contains(input.name)) add_input(graph, input.name, dimensions_.own_input(input.type, false));
    }
    TypeInfo condition = TypeInfo::tensor(DType::bool_);
    condition.dims = std::vector<Dim>{{1, {}}};
    add_input(graph, condition_, std::move(condition));
  }

  // Initializers that are inputs: values that a caller may leave out.
  Status add_defaults(Graph& graph) {
    std::map<std::string, const StoredTensor*, std::less<>> defaults;
    for (const Model* model : {&later_, &first_}) {
      for (size_t index = 0; index < model->graph.initializers.size(); ++index) {
        const ValueDef& value = value_at(model->graph, model->graph.initializer_values[index]);
        const StoredTensor& stored = model->graph.initializers[index];
        if (value.input_index < 0) continue;
        const auto [known, is_new] = defaults.emplace(value.name, &stored);
        WeightPool pool;
        pool.add(*known->second, value.type, kUsedByLater);
        if (pool.add(stored, value.type, kUsedByFirst) != 0)
          return unsupported(
              fmt::format("input '{}' has one default in '{}' and another in '{}'; both decoders must have the same",
                          value.name, later_.path, first_.path));
        if (!is_new) continue;
        graph.initializers.push_back(stored);
        graph.initializer_values.push_back(graph.find_value(value.name));
      }
    }
    return {};
  }

  void add_weights(Graph& graph) {
    std::set<std::string, std::less<>> taken;
    for (const Model* model : {&first_, &later_}) {
      collect_inner_names(model->graph, false, taken);
      for (const ValueId id : model->graph.outputs) taken.insert(value_at(model->graph, id).name);
    }
    for (const auto& [name, type] : enclosing_.types) taken.insert(name);
    WeightPool pool;
    std::map<const Model*, std::vector<std::pair<std::string, size_t>>> uses;
    for (const Model* model : {&later_, &first_}) {
      for (size_t index = 0; index < model->graph.initializers.size(); ++index) {
        const ValueDef& value = value_at(model->graph, model->graph.initializer_values[index]);
        if (value.input_index >= 0) continue;
        const StoredTensor& stored = model->graph.initializers[index];
        (model == &later_ ? result_.weights.second_bytes : result_.weights.first_bytes) +=
            static_cast<int64_t>(stored.tensor.size_bytes());
        uses[model].emplace_back(value.name,
                                 pool.add(stored, value.type, model == &later_ ? kUsedByLater : kUsedByFirst));
      }
    }
    std::vector<std::string> names;
    for (WeightPool::Weight& weight : pool.weights()) {
      weight.stored.name = take_name(weight.stored.name, taken);
      names.push_back(weight.stored.name);
      count(weight);
      enclosing_.types[weight.stored.name] = weight.type;
      graph.initializer_values.push_back(add_value(graph, weight.stored.name, weight.type));
      graph.initializers.push_back(std::move(weight.stored));
    }
    for (const auto& [model, pairs] : uses) {
      for (const auto& [name, index] : pairs) add_source(*model, name, names[index]);
    }
    add_sparse_weights(graph, taken);
  }

  void add_sparse_weights(Graph& graph, std::set<std::string, std::less<>>& taken) {
    for (const Model* model : {&later_, &first_}) {
      for (size_t index = 0; index < model->graph.sparse_initializers.size(); ++index) {
        const ValueDef& value = value_at(model->graph, model->graph.sparse_initializer_values[index]);
        SparseTensor sparse = model->graph.sparse_initializers[index];
        sparse.values.name = take_name(value.name, taken);
        add_source(*model, value.name, sparse.values.name);
        enclosing_.types[sparse.values.name] = value.type;
        graph.sparse_initializer_values.push_back(add_value(graph, sparse.values.name, value.type));
        graph.sparse_initializers.push_back(std::move(sparse));
      }
    }
  }

  std::string take_name(const std::string& wanted, std::set<std::string, std::less<>>& taken) {
    const std::string name = taken.contains(wanted) ? fresh_.take(wanted) : wanted;
    taken.insert(name);
    return name;
  }

  void count(const WeightPool::Weight& weight) {
    WeightCounts& counts = result_.weights;
    const bool by_both = weight.users == (kUsedByFirst | kUsedByLater);
    ++(by_both ? counts.shared : weight.users == kUsedByFirst ? counts.only_first : counts.only_second);
    counts.merged_bytes += static_cast<int64_t>(weight.stored.tensor.size_bytes());
  }

  void add_source(const Model& model, const std::string& name, const std::string& merged) {
    (&model == &later_ ? later_sources_ : first_sources_)[name] = merged;
    if (name != merged) result_.renamed.push_back({"weight", model.path, name, merged});
  }

  void add_branches(Graph& graph, const Model& first) {
    const auto then_branch = make_branch({&later_, later_sources_, passed_}, enclosing_, fresh_, result_.renamed);
    const auto else_branch = make_branch({&first, first_sources_, {}}, enclosing_, fresh_, result_.renamed);
    std::vector<ValueId> outputs;
    for (const std::string& name : enclosing_.outputs) {
      const ValueDef* later = output_of(later_.graph, name);
      const auto passed = passed_.find(name);
      const TypeInfo& type = later == nullptr ? input_of(later_.graph, passed->second)->type : later->type;
      outputs.push_back(add_value(graph, name, dimensions_.output(output_of(first_.graph, name)->type, type)));
    }
    graph.outputs = outputs;
    graph.nodes.push_back(make_node("decoder", "If", {graph.find_value(condition_)}, outputs,
                                    {make_attribute("then_branch", AttributeType::graph, then_branch),
                                     make_attribute("else_branch", AttributeType::graph, else_branch)}));
  }

  const Model& first_;
  const Model& later_;
  std::string condition_;
  FreshNames fresh_;
  MergedDecoders result_;
  MergedDimensions dimensions_;
  EnclosingGraph enclosing_;
  std::map<std::string, std::string, std::less<>> passed_, first_sources_, later_sources_;
};

}  // namespace

Result<MergedDecoders> merge_decoders(const Model& first, const Model& later, const std::string& condition) {
  return Merger(first, later, condition).merge();
}

}  // namespace parallax::transform
