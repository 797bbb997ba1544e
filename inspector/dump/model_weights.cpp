// SPDX-License-Identifier: Apache-2.0
// A DumpReader over the tensors that a model stores.
#include "inspector/dump/model_weights.h"

#include <unordered_map>
#include <variant>

#include <fmt/format.h>

#include "inspector/exec/value_table.h"
#include "inspector/model/sparse.h"

namespace parallax {
namespace {

// A tensor of the model, whichever way it is stored.
using Stored = std::variant<const StoredTensor*, const SparseTensor*>;

class ModelWeights final : public DumpReader {
 public:
  static Result<std::shared_ptr<const DumpReader>> make(std::shared_ptr<const Model> model) {
    auto table = std::make_shared<ValueTable>(PX_TRY(ValueTable::build(model)));
    const auto weights = std::make_shared<ModelWeights>(std::move(model), table);
    for (const ValueInfo& value : table->value_infos()) weights->add(value);
    return std::shared_ptr<const DumpReader>(weights);
  }

  ModelWeights(std::shared_ptr<const Model> model, std::shared_ptr<const ValueTable> table)
      : model_(std::move(model)), table_(std::move(table)) {
    DumpExecution& execution = executions_.emplace_back();
    execution.executor = "model";
    execution.model_path = model_->path;
    execution.completed = true;
    graphs_.emplace_back();
  }

  const std::string& path() const override { return model_->path; }
  bool is_complete() const override { return true; }
  std::span<const DumpExecution> executions() const override { return executions_; }
  std::span<const DumpGraph> graphs() const override { return graphs_; }
  std::span<const DumpCall> calls() const override { return {}; }
  std::span<const DumpEntry> entries() const override { return entries_; }
  std::span<const DumpEvent> events() const override { return {}; }
  std::span<const NodeFailure> failures() const override { return {}; }
  std::span<const DumpStructure> structures() const override { return {}; }

  int32_t find(std::string_view path, int32_t /*execution*/) const override {
    const auto found = by_path_.find(std::string(path));
    return found == by_path_.end() ? -1 : found->second;
  }

  Result<Value> load(int32_t entry) const override {
    const Stored& stored = stored_[static_cast<size_t>(entry)];
    if (const auto* sparse = std::get_if<const SparseTensor*>(&stored)) return Value(PX_TRY(to_dense(**sparse)));
    const StoredTensor& tensor = *std::get<const StoredTensor*>(stored);
    if (!tensor.absence.empty())
      return io_error(
          fmt::format("weight '{}' is not here: {}", entries_[static_cast<size_t>(entry)].path, tensor.absence));
    return Value(tensor.tensor);
  }
  Result<Value> load_copy(int32_t entry) const override {
    const Value value = PX_TRY(load(entry));
    return Value(PX_TRY(value.tensor().clone()));
  }
  Result<std::shared_ptr<const Model>> model(int32_t /*graph*/) const override { return model_; }

 private:
  void add(const ValueInfo& value) {
    const ValueDef& definition = value_at(*value.graph, value.value);
    if (definition.initializer_index >= 0) {
      add(value, &value.graph->initializers[static_cast<size_t>(definition.initializer_index)]);
    } else if (definition.sparse_initializer_index >= 0) {
      add(value, &value.graph->sparse_initializers[static_cast<size_t>(definition.sparse_initializer_index)]);
    } else if (value.op == "Constant" && value.domain.empty()) {
      const Node& node = value.graph->nodes[static_cast<size_t>(definition.producer)];
      if (const Attribute* attribute = find_attribute(node, "value")) {
        if (const auto* stored = std::get_if<StoredTensor>(&attribute->value)) add(value, stored);
      } else if (const Attribute* sparse = find_attribute(node, "sparse_value")) {
        if (const auto* stored = std::get_if<SparseTensor>(&sparse->value)) add(value, stored);
      }
    }
  }

  void add(const ValueInfo& value, Stored stored) {
    std::string scope = value.scope;
    for (size_t at = scope.find("[*]"); at != std::string::npos; at = scope.find("[*]", at))
      scope.replace(at, 3, "[0]");
    DumpEntry entry;
    entry.path = scope + value.escaped_name;
    entry.name = value.name;
    entry.node = value.node;
    entry.op = value.op;
    entry.role = value.role;
    entry.is_graph_output = value.is_graph_output;
    entry.is_constant_like = true;
    entry.type = value_at(*value.graph, value.value).type;
    if (const auto* tensor = std::get_if<const StoredTensor*>(&stored)) {
      if ((*tensor)->absence.empty()) entry.type = type_of((*tensor)->tensor);
    } else {
      const SparseTensor& sparse = *std::get<const SparseTensor*>(stored);
      entry.type = TypeInfo::tensor(sparse.values.tensor.dtype());
      entry.type.dims.emplace();
      for (const int64_t dim : sparse.dims) entry.type.dims->push_back({dim, {}});
    }
    by_path_.emplace(entry.path, static_cast<int32_t>(entries_.size()));
    entries_.push_back(std::move(entry));
    stored_.push_back(stored);
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const ValueTable> table_;  // keeps the bodies of called functions
  std::vector<DumpExecution> executions_;
  std::vector<DumpGraph> graphs_;
  std::vector<DumpEntry> entries_;
  std::vector<Stored> stored_;  // by entry
  std::unordered_map<std::string, int32_t> by_path_;
};

}  // namespace

Result<std::shared_ptr<const DumpReader>> weights_of(std::shared_ptr<const Model> model) {
  return ModelWeights::make(std::move(model));
}

}  // namespace parallax
