// SPDX-License-Identifier: Apache-2.0
// GraphProto and FunctionProto to Graph: names become values, with those of enclosing graphs. Private to this folder.
#pragma once

#include <unordered_map>

#include "inspector/base/result.h"
#include "inspector/model/io/external_data.h"
#include "inspector/model/ir.h"

namespace parallax {

namespace proto {
class AttributeProto;
class FunctionProto;
class GraphProto;
class NodeProto;
class ValueInfoProto;
}  // namespace proto

// Reads one graph. A body's importer knows that of the enclosing graph, through which it finds outer values. Structure
// is read as far as it makes sense at all: names that nobody defines become values without a source, a second
// definition of a name becomes a second value of that name, and check_model reports both.
class GraphImporter {
 public:
  GraphImporter(ExternalData& external, int depth_left, GraphImporter* enclosing = nullptr)
      : external_(external), depth_left_(depth_left), enclosing_(enclosing) {}

  Result<Graph> read(proto::GraphProto& message);
  Result<Graph> read_body(proto::FunctionProto& message);  // inputs, outputs, nodes and value_info
  Result<Attribute> read_attribute(proto::AttributeProto& message);

 private:
  ValueId define(const std::string& name);
  ValueId define_new(const std::string& name);
  ValueId resolve(const std::string& name);
  bool provide(const std::string& name);
  const ValueDef* find(const std::string& name) const;
  ValueDef& value(ValueId id) { return graph_.values[static_cast<size_t>(id)]; }

  Status read_inputs(proto::GraphProto& message);
  Status read_initializers(proto::GraphProto& message);
  Status read_sparse_initializers(proto::GraphProto& message);
  Status read_outputs(proto::GraphProto& message);
  template <class Message>
  Status read_value_infos(Message& message);
  Result<bool> read_listing(ValueId id, proto::ValueInfoProto& info);
  Result<bool> is_outdated(ValueId id, const proto::ValueInfoProto& info) const;
  template <class Message>
  void define_outputs(Message& message);
  template <class Message>
  Status read_nodes(Message& message);
  Status read_node(proto::NodeProto& message, Node& node);
  Result<std::shared_ptr<Graph>> read_nested(proto::GraphProto& message);
  template <class Value, class Messages, class Read>
  Result<std::vector<Value>> read_list(Messages& messages, Read read);
  Status read_any_value(proto::AttributeProto& message, Attribute& attribute);
  Status read_value(AttributeType type, proto::AttributeProto& message, Attribute& attribute);
  Status read_value_list(AttributeType type, proto::AttributeProto& message, Attribute& attribute);

  ExternalData& external_;
  int depth_left_;
  GraphImporter* enclosing_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> names_;
  std::vector<bool> listed_;  // which values have had a ValueInfoProto
};

}  // namespace parallax
