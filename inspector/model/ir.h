// SPDX-License-Identifier: Apache-2.0
// The graph a model is: plain structs, one for each message of the ONNX format, with names resolved to indices.
// Everything the file held is kept, so that export writes what was imported. Made by import.h, read by everyone,
// changed by transforms on a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "inspector/base/mapped_file.h"
#include "inspector/base/result.h"
#include "inspector/model/opset/attribute_type.h"
#include "inspector/tensor/tensor.h"
#include "inspector/tensor/type_info.h"

namespace parallax {

struct OpSchema;
struct Graph;
struct Function;

using ValueId = int32_t;  // index into Graph::values
using NodeId = int32_t;   // index into Graph::nodes
constexpr ValueId kNoValue = -1;
constexpr NodeId kNoNode = -1;

// metadata_props: ordered key/value pairs, as in the file.
using Metadata = std::vector<std::pair<std::string, std::string>>;
std::string_view find_metadata(const Metadata& metadata, std::string_view key);  // empty when absent

// StoredTensor::absence of weights in the graph of a dump, which may hold them as values.
inline constexpr std::string_view kLeftOutOfDump = "left out of the dump";

// A tensor stored in a model: an initializer or an attribute's value. The payload may be in the mapped file.
struct StoredTensor {
  std::string name;
  Tensor tensor;
  std::string doc;
  Metadata metadata;
  std::string external_location;  // file next to the model that held the payload; empty when it was inline
  bool is_typed = false;          // the payload was in a *_data field of its type, not in raw_data
  std::string unparsed;           // serialized fields of the message that this struct does not model
  // Why the elements are not here, a clause: then `tensor` has the type and shape that are known, and reads as zeros.
  // Empty where it holds the elements.
  std::string absence = {};
  ErrorCode absence_code = ErrorCode::invalid_model;  // `io` where a file is missing
};

// SparseTensorProto: `indices` is [NNZ] linear or [NNZ, rank], `dims` the dense shape.
struct SparseTensor {
  StoredTensor values;
  StoredTensor indices;
  std::vector<int64_t> dims;
  std::string unparsed;
};

struct Attribute {
  using Value = std::variant<std::monostate, float, int64_t, std::string, StoredTensor, std::shared_ptr<Graph>,
                             std::vector<float>, std::vector<int64_t>, std::vector<std::string>,
                             std::vector<StoredTensor>, std::vector<std::shared_ptr<Graph>>, SparseTensor,
                             std::vector<SparseTensor>, TypeInfo, std::vector<TypeInfo>>;
  std::string name;
  AttributeType type = AttributeType::undefined;
  Value value;                // monostate while ref_attr_name is set, and where `absence` says why it is not known
  std::string ref_attr_name;  // inside a function: takes its value from the call's attribute of this name
  std::string doc;
  std::string unparsed;
  std::string absence = {};  // why the value in the file cannot be read, a clause; empty where it was
};

// One name of a graph: an input, an initializer, a node's output, or a value of an enclosing graph that this graph
// reads.
struct ValueDef {
  std::string name;
  TypeInfo type;  // as declared in the file (inputs, outputs, value_info, initializers), else inferred, else unknown
  NodeId producer = kNoNode;  // with output_index, when a node computes it
  int32_t output_index = -1;
  int32_t input_index = -1;        // position in Graph::inputs
  int32_t initializer_index = -1;  // position in Graph::initializers (also set for an input with a default)
  int32_t sparse_initializer_index = -1;
  bool is_outer = false;  // defined by an enclosing graph
  bool is_graph_output = false;
  bool has_value_info = false;  // listed in GraphProto.value_info
  // Nodes of this graph that read it, as input or in a body they hold, each once, in order.
  std::vector<NodeId> readers;
  std::string doc;
  Metadata metadata;
  std::string unparsed;
};

struct Node {
  std::string name;  // as in the file, may be empty or repeated
  std::string
      display_name;  // unique in its graph: name, or <Op>_<index>; a repeated one gets #2, #3 ... (see CLI.md "Node")
  std::string op_type;
  std::string domain;  // as in the file: "" is ai.onnx
  std::string overload;
  std::vector<ValueId> inputs;   // kNoValue for an omitted optional one
  std::vector<ValueId> outputs;  // likewise
  std::vector<Attribute> attributes;
  std::string doc;
  Metadata metadata;
  std::string unparsed;

  int64_t opset_version = 0;           // of `domain` where this node stands (model or function)
  const OpSchema* schema = nullptr;    // null for a call of a model-local function and for an unknown operator
  const Function* function = nullptr;  // the model-local function this node calls, owned by the Model
  // Why this node cannot be executed, the first of its problems, a sentence without full stop that does not name it;
  // empty for a node that can, and in a model whose problems were not recorded (ImportOptions).
  std::string problem = {};
};

// "Softmax-13" (operator and since-version of its schema), or "my.domain.Fn" for others.
std::string versioned_op_name(const Node& node);
const Attribute* find_attribute(const Node& node, std::string_view name);

struct Graph {
  std::string name;
  std::string doc;
  Metadata metadata;
  std::vector<ValueDef> values;
  std::vector<Node> nodes;    // in file order
  std::vector<NodeId> order;  // a topological order of `nodes`; file order wherever that is one
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;            // a value may be listed twice
  std::vector<TypeInfo> inferred_outputs;  // types of `outputs` as inference knows them; empty where it was not asked
  std::vector<StoredTensor> initializers;
  std::vector<ValueId> initializer_values;  // value of each initializer
  std::vector<SparseTensor> sparse_initializers;
  std::vector<ValueId> sparse_initializer_values;
  std::vector<ValueId>
      outer_values;  // values with is_outer, in order of first use (those read by nested bodies included)
  std::string unparsed;

  ValueId find_value(std::string_view value_name) const;  // kNoValue when there is none
  NodeId find_node(std::string_view display_name) const;
  // The type that the file declares, with inferred dimensions, and the inferred type where it declares none.
  TypeInfo output_type(size_t index) const;
};

inline const ValueDef& value_at(const Graph& graph, ValueId id) { return graph.values[static_cast<size_t>(id)]; }

struct OpsetImport {
  std::string domain;
  int64_t version = 0;
};

// 0 when `domain` is not imported; "" and "ai.onnx" are one. Of several imports the highest holds: "all nodes will bind
// against the operator with the HIGHEST version in the referenced operator sets", onnx.proto.
int64_t opset_version_in(std::span<const OpsetImport> imports, std::string_view domain);

// One thing wrong with a model. `where` is "model", "node 'x' (Softmax-13)", "value 'y' in function 'my.F'", ...
struct ModelProblem {
  std::string where;
  std::string message;
  std::string node;
  std::string op;
  ErrorCode code = ErrorCode::invalid_model;
};

// A model-local function. Its body's inputs are the formal inputs; types are those of the call.
struct Function {
  std::string domain;
  std::string name;
  std::string overload;
  std::vector<std::string> attribute_names;  // without default
  std::vector<Attribute> attribute_defaults;
  std::vector<OpsetImport> opset_imports;
  Graph body;
  std::string doc;
  Metadata metadata;
  std::string unparsed;
};

struct Model {
  std::string path;  // file it was read from, or a description; used in messages
  int64_t ir_version = 0;
  std::vector<OpsetImport> opset_imports;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  int64_t model_version = 0;
  std::string doc;
  Metadata metadata;
  Graph graph;
  std::vector<std::shared_ptr<Function>> functions;
  bool is_part = false;  // of a model whose other nodes cannot be executed: data of its outputs are not of this one's
  std::vector<ModelProblem> problems =
      {};  // where they were recorded (ImportOptions); a model with any is not executed
  std::string unparsed;
  // The source of model_sha256(): the file the model was read from, or the hash of the bytes it was read from. Both are
  // empty for a model that was built in memory; code that changes a copy of a model resets them.
  std::shared_ptr<const MappedFile> file;
  std::string sha256;

  int64_t opset_version(std::string_view domain_name) const;  // see opset_version_in
};

// The body of a function as one call executes it: attribute references replaced by the call's attributes or the
// function's defaults (an attribute with neither is left out). Recursion is refused at import.
std::shared_ptr<const Graph> bind_function(const Function& function, const Node& call);

}  // namespace parallax
