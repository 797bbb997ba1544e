// SPDX-License-Identifier: Apache-2.0
// Walks a model's graphs and passes values outward: through branches by a stand-in in the other branch, through Loops
// by a carried sequence, through Scans by a scan output.
#include "inspector/transform/values_as_outputs.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/transform/graph_building.h"
#include "inspector/transform/graph_location.h"

namespace parallax::transform {
namespace {

constexpr int64_t kOpsetOfSequencesInLoops = 13;     // Loop-13 carries sequences
constexpr int64_t kOpsetOfSequencesInIdentity = 14;  // Identity-14 copies them
constexpr int64_t kOpsetOfScanWithoutBatch = 9;

// A value on its way outward, as one graph holds it.
struct Channel {
  ExposedValue layout;          // `output`, `index` and the branches' outputs are keys until the main graph is reached
  bool is_bookkeeping = false;  // iteration numbers and branch flags; `layout.path` is their key
  ValueId value = kNoValue;
  TypeInfo type;
  std::string carried;  // the sequence of an enclosing Loop's body that `value` continues
};

// The graphs from the main graph to the one that is being walked.
struct Around {
  std::vector<Graph*> graphs;
  size_t loop = 0;          // position of the innermost Loop's body whose sequences are carried; 0: none
  size_t index_graph = 0;   // position of the graph that holds `index_value`
  std::string index_value;  // iteration numbers of the Loops around, as one vector; empty: none
  bool is_stacked = false;  // in a body whose values leave it as scan outputs
  Graph& graph() const { return *graphs.back(); }
  size_t depth() const { return graphs.size() - 1; }
};

bool is_plain_tensor(const TypeInfo& type) {
  return type.kind == TypeInfo::Kind::tensor && type.dtype != DType::undefined;
}

// The types of SequenceInsert: those that ONNX 1.2 had.
bool may_be_in_sequence(DType dtype) { return static_cast<int>(dtype) <= static_cast<int>(DType::complex128); }

std::string static_path(const std::string& path) {
  std::string text;
  for (size_t at = 0; at < path.size(); ++at) {
    text += path[at];
    const size_t end = path.compare(at, 1, "[") == 0 ? path.find(']', at) : std::string::npos;
    if (end == std::string::npos || !text.ends_with(".body[") || path.compare(end, 3, "]//") != 0) continue;
    text += "*";
    at = end - 1;
  }
  return text;
}

class Exposer {
 public:
  Exposer(Model& model, std::span<const std::string> paths, const ValuesAsOutputsOptions& options,
          ValuesAsOutputs& result)
      : model_(model), options_(options), result_(result), names_(model) {
    for (const std::string& path : paths) wanted_.insert(static_path(path));
    missing_ = wanted_;
    for (const auto& stayed : result.left_out)
      std::erase_if(missing_, [&](const std::string& path) { return path.starts_with(stayed.first + "."); });
  }

  void run() {
    Around main{{&model_.graph}, 0, 0, {}, false};
    std::vector<Channel> channels = walk(main, "");
    std::map<std::string, std::string> outputs;  // by key
    Graph& graph = model_.graph;
    for (const Channel& channel : channels) {
      outputs[channel.layout.path] = value_at(graph, channel.value).name;
      if (std::ranges::find(graph.outputs, channel.value) == graph.outputs.end())
        graph.outputs.push_back(channel.value);
    }
    link_graph(graph);
    for (Channel& channel : channels) {
      if (channel.is_bookkeeping) continue;
      ExposedValue& layout = channel.layout;
      layout.output = outputs[layout.path];
      if (!layout.index.empty()) layout.index = outputs[layout.index];
      for (BranchFlag& branch : layout.branches) branch.output = outputs[branch.output];
      result_.values.push_back(std::move(layout));
    }
  }

  const std::set<std::string>& missing() const { return missing_; }

 private:
  bool wants(const std::string& path) {
    missing_.erase(path);
    return wanted_.empty() || wanted_.contains(path);
  }
  // True where a value of a scope may be wanted.
  bool wants_some_of(const std::string& scope) const {
    if (!options_.bodies) return false;
    const auto first = wanted_.lower_bound(scope);
    return wanted_.empty() || (first != wanted_.end() && first->starts_with(scope));
  }
  void leave_out(const std::string& path, std::string reason) {
    missing_.erase(path);
    result_.left_out.emplace_back(path, std::move(reason));
  }
  void leave_out_bodies(const std::string& node, std::string reason) {
    leave_out(node, std::move(reason));
    std::erase_if(missing_, [&](const std::string& path) { return path.starts_with(node + "."); });
  }

  // ---- Values of one graph ----

  std::vector<Channel> walk(const Around& around, const std::string& scope) {
    Graph& graph = around.graph();
    std::vector<Channel> channels;
    std::vector<Node> nodes;
    const bool is_main = around.depth() == 0;
    nodes_ = &nodes;
    if (!is_main) {
      for (const ValueId id : graph.inputs) expose(around, scope, id, channels);
    }
    for (const NodeId id : graph.order) {
      Node node = graph.nodes[static_cast<size_t>(id)];
      for (Channel& channel : enter_bodies(around, scope, node, nodes)) channels.push_back(std::move(channel));
      nodes.push_back(std::move(node));
      nodes_ = &nodes;
      for (const ValueId output : std::vector<ValueId>(nodes.back().outputs)) {
        if (output != kNoValue && !passed_.contains({&graph, output})) expose(around, scope, output, channels);
      }
    }
    graph.nodes = std::move(nodes);
    return channels;
  }

  void expose(const Around& around, const std::string& scope, ValueId id, std::vector<Channel>& channels) {
    Graph& graph = around.graph();
    const std::string path = scope + path_text(options_.paths, value_at(graph, id).name);
    if (!wants(path)) return;
    const TypeInfo type = value_at(graph, id).type;
    const bool is_tensor = is_plain_tensor(type);
    if (type.kind == TypeInfo::Kind::optional) return leave_out(path, "it is an optional value");
    if (around.depth() > 0 && !is_tensor) {
      return leave_out(
          path, type.kind == TypeInfo::Kind::unknown ? "its type is unknown" : "it is no tensor and belongs to a body");
    }
    if (around.loop != 0 && !may_be_in_sequence(type.dtype)) {
      return leave_out(path,
                       fmt::format("no sequence holds {}, and it belongs to the body of a Loop", name_of(type.dtype)));
    }
    if (options_.shapes_only && !is_tensor) return leave_out(path, "it is no tensor of a known type");
    Channel channel;
    channel.layout.path = path;
    if (is_tensor) channel.layout.dtype = type.dtype;
    channel.value = id;
    channel.type = type;
    if (options_.shapes_only) {
      channel.type = TypeInfo::tensor(DType::int64);
      channel.type.dims.emplace(1);
      channel.value = made(around, "Shape", {id}, channel.type, path + " shape");
    } else if (around.depth() > 0) {  // an output of a body is neither its input nor listed twice
      channel.value = made(around, "Identity", {id}, type, path + " copy");
    }
    channels.push_back(std::move(channel));
  }

  // Adds a node with one output to the graph that is walked.
  ValueId made(const Around& around, const char* op, std::vector<ValueId> inputs, const TypeInfo& type,
               const std::string& name, std::vector<Attribute> attributes = {}) {
    return made_in(around.graph(), *nodes_, op, std::move(inputs), type, name, std::move(attributes));
  }
  ValueId made_in(Graph& graph, std::vector<Node>& nodes, const char* op, std::vector<ValueId> inputs,
                  const TypeInfo& type, const std::string& name, std::vector<Attribute> attributes = {}) {
    const std::string fresh = names_.take(name);
    const ValueId id = add_value(graph, fresh, type);
    nodes.push_back(make_node(fresh, op, std::move(inputs), {id}, std::move(attributes)));
    return id;
  }

  // The name of a channel in the graph at `depth`: in the main graph it is the path.
  std::string name_at(const Channel& channel, size_t depth) {
    return names_.take(depth == 0 ? channel.layout.path : fmt::format("{} at depth {}", channel.layout.path, depth));
  }

  // ---- Bodies ----

  std::vector<Channel> enter_bodies(const Around& around, const std::string& scope, Node& node,
                                    std::vector<Node>& nodes) {
    if (bodies_of(node).empty()) return {};
    const std::string location = scope + path_text(options_.paths, node.display_name);
    if (!wants_some_of(location + ".")) return {};
    const int64_t opset = model_.opset_version("");
    if (is_standard_operator(node, "If")) {
      if (!around.is_stacked) return enter_if(around, location, node);
      leave_out_bodies(location, "an If in the body of a Scan or of a Loop before opset 13");
    } else if (is_standard_operator(node, "Loop")) {
      const bool is_in_branch = around.loop != 0 && around.loop != around.depth();
      if (around.is_stacked) {
        leave_out_bodies(location, "a Loop in the body of a Scan or of a Loop before opset 13");
      } else if (opset < kOpsetOfSequencesInLoops) {
        return enter_stacked(around, location, node);
      } else if (is_in_branch && opset < kOpsetOfSequencesInIdentity) {
        leave_out_bodies(location, "a Loop in an If in a Loop before opset 14");
      } else {
        return enter_loop(around, location, node, nodes);
      }
    } else if (is_standard_operator(node, "Scan") && opset >= kOpsetOfScanWithoutBatch) {
      return enter_stacked(around, location, node);
    } else {
      leave_out_bodies(location, fmt::format("the body of {}", versioned_op_name(node)));
    }
    return {};
  }

  static Around inside(const Around& around, Graph& body) {
    Around inner = around;
    inner.graphs.push_back(&body);
    return inner;
  }

  // Makes a value of the graph at `from` readable in the innermost graph.
  static ValueId outer(const Around& around, size_t from, const std::string& name, const TypeInfo& type) {
    if (from == around.depth()) return around.graph().find_value(name);
    ValueId id = kNoValue;
    for (size_t depth = from + 1; depth < around.graphs.size(); ++depth)
      id = add_outer_value(*around.graphs[depth], name, type);
    return id;
  }

  std::vector<Channel> enter_if(const Around& around, const std::string& location, Node& node) {
    const auto then_graph = body_of(node, "then_branch"), else_graph = body_of(node, "else_branch");
    if (then_graph == nullptr || else_graph == nullptr) return {};
    const size_t declared = then_graph->outputs.size();
    node.outputs.resize(declared, kNoValue);
    std::vector<Channel> channels;
    const std::string flag = location + ".then";
    auto of_then = walk(inside(around, *then_graph), location + ".then//");
    auto of_else = walk(inside(around, *else_graph), location + ".else//");
    const auto pass = [&](std::vector<Channel>& inner, Graph& graph, Graph& other, int64_t taken) {
      for (Channel& channel : inner) {
        graph.outputs.push_back(channel.value);
        other.outputs.push_back(stand_in(inside(around, other), channel));
        if (channel.type.kind == TypeInfo::Kind::tensor && !channel.is_bookkeeping)
          channel.layout.branches.insert(channel.layout.branches.begin(), {flag, taken});
        if (channel.type.dims) std::ranges::fill(*channel.type.dims, Dim{});
        channels.push_back(std::move(channel));
      }
    };
    pass(of_then, *then_graph, *else_graph, 1);
    pass(of_else, *else_graph, *then_graph, 0);
    const bool has_tensors = std::ranges::any_of(
        channels, [](const Channel& channel) { return channel.type.kind == TypeInfo::Kind::tensor; });
    if (has_tensors) channels.push_back(branch_flag(flag, *then_graph, *else_graph));
    for (Channel& channel : channels) add_output(around, node, node.outputs.size(), channel);
    link_graph(*then_graph);
    link_graph(*else_graph);
    return channels;
  }

  // The stand-in that a branch without the value returns.
  ValueId stand_in(const Around& around, const Channel& channel) {
    Graph& graph = around.graph();
    const std::string name = channel.layout.path + " of the other branch";
    if (channel.type.kind == TypeInfo::Kind::sequence) {
      if (!channel.carried.empty()) {
        const ValueId carried = outer(around, around.loop, channel.carried, channel.type);
        return made_in(graph, graph.nodes, "Identity", {carried}, channel.type, name);
      }
      return empty_sequence(graph, graph.nodes, channel.type, name);
    }
    const size_t rank = channel.type.dims ? std::min(channel.type.dims->size(), Shape::kMaxRank) : 1;
    StoredTensor stored;
    stored.tensor = Tensor::zeros(channel.type.dtype, Shape(std::vector<int64_t>(rank, 0))).take();
    return made_in(graph, graph.nodes, "Constant", {}, channel.type, name,
                   {make_attribute("value", AttributeType::tensor, std::move(stored))});
  }

  ValueId empty_sequence(Graph& graph, std::vector<Node>& nodes, const TypeInfo& type, const std::string& name) {
    const auto dtype = static_cast<int64_t>(type.inner.front().dtype);
    return made_in(graph, nodes, "SequenceEmpty", {}, type, name, {int_attribute("dtype", dtype)});
  }

  Channel branch_flag(const std::string& key, Graph& then_graph, Graph& else_graph) {
    Channel flag;
    flag.is_bookkeeping = true;
    flag.layout.path = key;
    flag.type = TypeInfo::tensor(DType::int64);
    flag.type.dims.emplace();
    for (Graph* graph : {&then_graph, &else_graph}) {
      graph->outputs.push_back(made_in(*graph, graph->nodes, "Constant", {}, flag.type, key + " flag",
                                       {int64_constant(graph == &then_graph ? 1 : 0, true)}));
    }
    return flag;
  }

  // Gives `node` another output at `position`, which is the channel's value from here on.
  void add_output(const Around& around, Node& node, size_t position, Channel& channel) {
    Graph& graph = around.graph();
    channel.value = add_value(graph, name_at(channel, around.depth()), channel.type);
    passed_.insert({&graph, channel.value});
    node.outputs.insert(node.outputs.begin() + static_cast<std::ptrdiff_t>(position), channel.value);
  }

  std::vector<Channel> enter_loop(const Around& around, const std::string& location, Node& node,
                                  std::vector<Node>& nodes) {
    const auto body = body_of(node, "body");
    if (body == nullptr || body->inputs.size() < 2 || body->outputs.empty()) return {};
    const std::string key = location + ".body[*]";
    Around inner = inside(around, *body);
    inner.loop = inner.index_graph = inner.depth();
    inner.index_value = names_.take(key + " index");
    const TypeInfo index_type{TypeInfo::Kind::tensor, DType::int64, std::vector<Dim>(1), {}};
    const ValueId index_id = add_value(*body, inner.index_value, index_type);
    std::vector<Channel> channels = walk(inner, key + "//");
    if (channels.empty()) {
      body->values.pop_back();  // the index: nothing else has been added
      link_graph(*body);
      return {};
    }
    make_index(around, inner, index_id, index_type);
    for (Channel& channel : channels) {
      if (channel.layout.index.empty() && !channel.is_bookkeeping) channel.layout.index = key;
    }
    Channel index;
    index.is_bookkeeping = true;
    index.layout.path = key;
    index.value = index_id;
    index.type = index_type;
    channels.push_back(std::move(index));

    node.inputs.resize(std::max(node.inputs.size(), body->inputs.size()), kNoValue);
    node.outputs.resize(body->outputs.size() - 1, kNoValue);
    for (Channel& channel : channels) carry(around, *body, node, nodes, channel);
    link_graph(*body);
    return channels;
  }

  // The first nodes of a Loop's body: its iteration number after those of the Loops around it.
  void make_index(const Around& around, const Around& inner, ValueId index, const TypeInfo& type) {
    Graph& body = inner.graph();
    std::vector<Node> first;
    const ValueId shape =
        made_in(body, first, "Constant", {}, type, inner.index_value + " shape", {int64_constant(-1, false)});
    const bool is_nested = !around.index_value.empty();
    ValueId own = index;
    if (is_nested) own = add_value(body, names_.take(inner.index_value + " own"), type);
    first.push_back(make_node(value_at(body, own).name, "Reshape", {body.inputs[0], shape}, {own}));
    if (is_nested) {
      const ValueId before = outer(inner, around.index_graph, around.index_value, type);
      first.push_back(make_node(inner.index_value, "Concat", {before, own}, {index}, {int_attribute("axis", 0)}));
    }
    body.nodes.insert(body.nodes.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  }

  // Lets a Loop carry a sequence to which each iteration appends the channel's value.
  void carry(const Around& around, Graph& body, Node& node, std::vector<Node>& nodes, Channel& channel) {
    if (channel.type.kind == TypeInfo::Kind::tensor) {
      const std::string path = channel.layout.path;
      const TypeInfo type = TypeInfo::sequence(TypeInfo::tensor(channel.type.dtype));
      channel.carried = names_.take(path + " carried");
      body.inputs.push_back(add_value(body, channel.carried, type));
      channel.value =
          made_in(body, body.nodes, "SequenceInsert", {body.inputs.back(), channel.value}, type, path + " appended");
      channel.type = type;
      channel.layout.is_sequence = true;
    } else {
      body.inputs.push_back(body.find_value(channel.carried));  // defined when an inner Loop needed it
    }
    const size_t states = body.inputs.size() - 3;  // those before this one
    body.outputs.insert(body.outputs.begin() + static_cast<std::ptrdiff_t>(states + 1), channel.value);
    if (around.loop == 0) {
      node.inputs.push_back(empty_sequence(around.graph(), nodes, channel.type, channel.layout.path + " before"));
      channel.carried.clear();
    } else {
      channel.carried = names_.take(channel.layout.path + " carried");
      add_value(*around.graphs[around.loop], channel.carried, channel.type);
      node.inputs.push_back(outer(around, around.loop, channel.carried, channel.type));
    }
    add_output(around, node, states, channel);
  }

  std::vector<Channel> enter_stacked(const Around& around, const std::string& location, Node& node) {
    const auto body = body_of(node, "body");
    if (body == nullptr) return {};
    Around inner = inside(around, *body);
    inner.is_stacked = true;
    std::vector<Channel> channels = walk(inner, location + ".body[*]//");
    const size_t states = is_standard_operator(node, "Loop") ? 1 : 0;  // the condition is no output of the node
    node.outputs.resize(body->outputs.size() - states, kNoValue);
    for (Channel& channel : channels) {
      body->outputs.push_back(channel.value);
      if (channel.type.dims) channel.type.dims->insert(channel.type.dims->begin(), Dim{});
      ++channel.layout.stacked_axes;
      add_output(around, node, node.outputs.size(), channel);
    }
    for (Attribute& attribute : node.attributes) {
      auto* numbers = std::get_if<std::vector<int64_t>>(&attribute.value);
      if (numbers != nullptr && attribute.name.starts_with("scan_output_"))
        numbers->resize(numbers->size() + channels.size(), 0);
    }
    link_graph(*body);
    return channels;
  }

  Model& model_;
  const ValuesAsOutputsOptions& options_;
  ValuesAsOutputs& result_;
  FreshNames names_;
  std::set<std::string> wanted_;
  std::set<std::string> missing_;
  std::vector<Node>* nodes_ = nullptr;                 // of the graph that is walked
  std::set<std::pair<const Graph*, ValueId>> passed_;  // outputs that were added
};

Status check_result(const Model& source, const Model& made) {
  if (!check_model(source).empty()) return {};  // a runtime's own operators, say: the runtime decides
  const auto problems = check_model(made);
  if (problems.empty()) return {};
  return error_of(problems.front()).with_context(made.path);
}

}  // namespace

Result<ValuesAsOutputs> values_as_outputs(const Model& model, std::span<const std::string> paths,
                                          const ValuesAsOutputsOptions& options) {
  InlinedCalls inlined = PX_TRY(inline_calls(model));
  ValuesAsOutputsOptions known = options;
  known.paths.merge(inlined.paths);
  ValuesAsOutputs result;
  result.model = inlined.model;
  result.left_out = std::move(inlined.left_out);
  result.model->path = fmt::format("values of '{}'", model.path);
  Exposer exposer(*result.model, paths, known, result);
  exposer.run();
  for (const std::string& path : exposer.missing()) {
    // Names what looks like the path.
    std::string first = path;
    for (size_t at = first.find("[*]"); at != std::string::npos; at = first.find("[*]")) first.replace(at, 3, "[0]");
    const auto located = locate_value(std::shared_ptr<const Model>(std::shared_ptr<void>(), &model), first);
    if (!located.ok()) return located.error();
    result.left_out.emplace_back(path, "no node computes it");
  }
  resolve_operators(*result.model);
  fill_types(*result.model, infer_types(*result.model));
  PX_TRY(check_result(model, *result.model));
  return result;
}

}  // namespace parallax::transform
