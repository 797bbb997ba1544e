// SPDX-License-Identifier: Apache-2.0
// Structure: where two models differ as graphs, nothing executed. Nodes are matched by what they do (matching.h), so
// that names and order do not count; operators may be unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/metrics/metrics.h"
#include "inspector/exec/value_table.h"
#include "inspector/model/ir.h"

namespace parallax {

// One thing that differs between a node and its counterpart.
struct NodeChange {
  enum class Kind : uint8_t {
    op,         // another operator, or another version of it
    attribute,  // `name`; a or b is null where that node leaves it out
    constant,   // the stored tensor that input `name` reads
    input,      // input `name` reads a value that is not the counterpart of the other's
    outputs,    // how many there are
  };
  Kind kind = Kind::op;
  std::string name;
  std::string text_a, text_b;  // of operators, inputs and outputs; of an attribute that is left out, its default or ""
  const Attribute* attribute_a = nullptr;
  const Attribute* attribute_b = nullptr;
  const StoredTensor* tensor_a = nullptr;
  const StoredTensor* tensor_b = nullptr;
  std::optional<Metrics> metrics = {};  // of constants with numbers of one type and shape
};

struct NodeDifference {
  enum class Kind : uint8_t { changed, only_a, only_b };
  Kind kind = Kind::changed;
  std::string scope_a, scope_b;          // static frames, "loop.body[*]//"; empty in the main graph
  const Node* node_a = nullptr;          // null for only_b
  const Node* node_b = nullptr;          // null for only_a
  std::vector<NodeChange> changes = {};  // of a changed one
};

// A graph input or output that one model lacks (empty name) or that has another type there.
struct SignatureDifference {
  bool is_input = true;
  std::string name_a, name_b;
  std::string type_a, type_b;
};

// A node of A and its counterpart in B, changed or not; frames as of NodeDifference.
struct NodePair {
  std::string scope_a, scope_b;
  const Node* node_a = nullptr;
  const Node* node_b = nullptr;
};

struct StructureComparison {
  std::shared_ptr<const Model> a, b;
  std::shared_ptr<const ValueTable> values_a, values_b;  // keep the bodies of calls
  int64_t nodes_a = 0, nodes_b = 0;                      // bodies and the bodies of calls included
  int64_t matched = 0;                                   // pairs
  int64_t renamed = 0;                                   // of these, with other names
  std::vector<SignatureDifference> signature;
  std::vector<NodeDifference> nodes;  // in A's order of execution, then those that only B has
  // Why one model cannot be executed, where nothing of the kind is said of the other; weights that are not here are not
  // among them.
  std::vector<std::pair<Side, std::string>> problems;
  std::vector<NodePair> pairs;  // in A's order of execution
  // Counterparts among stored tensors, equal or not: those that pairs of nodes read at the same input. One tensor may
  // stand here several times, its first counterpart first.
  std::vector<std::pair<const ValueInfo*, const ValueInfo*>> constants;
  std::vector<std::pair<std::string, std::string>> inputs, outputs;  // counterparts among those of the graphs, by name
  bool is_same() const { return signature.empty() && nodes.empty() && problems.empty(); }
  // True where nothing but the elements of constants differs: one drawing shows both graphs.
  bool is_same_graph() const;
};

struct StructureOptions {
  std::function<void(int64_t done, int64_t total)> progress;  // steps of the comparison
  CancelToken cancel;
};

// Errors: invalid_model, where a model expands to too many nodes; cancelled.
Result<StructureComparison> compare_structure(std::shared_ptr<const Model> a, std::shared_ptr<const Model> b,
                                              const StructureOptions& options = {});

}  // namespace parallax
