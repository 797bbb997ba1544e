// SPDX-License-Identifier: Apache-2.0
// Rewriting of one graph before it is planned: patterns with names, each of which can be switched on and off, and a
// record of what became of every value that no longer exists.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax::runtime {

struct PlannedNode {
  NodeId id = kNoNode;               // the source node at whose position it runs
  const Node* node = nullptr;        // that node, or one that a pattern made (owned by GraphEdit::made)
  std::vector<NodeId> sources = {};  // of a made node: the source nodes whose work it does
};

// The operators that a rewritten graph may hold besides those it held before; each level includes the ones above it.
enum class OperatorSet : uint8_t {
  standard,   // published operators of ai.onnx
  microsoft,  // com.microsoft, and what onnxruntime adds to ai.onnx
  own,        // parallax.fused
};
inline constexpr std::string_view kOperatorSetNames[] = {"standard", "microsoft", "own"};

// Why a value of the source graph is not computed.
struct ValueAbsence {
  enum class Kind : uint8_t { fused, folded, aliased, removed };
  ValueId value = kNoValue;
  Kind kind = Kind::fused;
  std::string into;  // the fused node's name, or the value it is an alias of
};

// A graph being rewritten. Values keep the ids of the source graph; constants that patterns add get ids after them.
struct GraphEdit {
  const Graph* source = nullptr;
  std::vector<PlannedNode> nodes;   // in execution order
  std::deque<Node> made;            // nodes that patterns put in place of others
  std::vector<ValueId> stands_for;  // by ValueId: the value that is read in its place; itself unless aliased
  std::vector<Value> constants;     // by ValueId: known before the run (initializers, folded values), else absent
  std::vector<bool> pinned;         // by ValueId: must be computed (outputs, overridden values)
  std::vector<bool> captured;       // by ValueId: read by a body that a node holds
  std::vector<ValueAbsence> absences;
  std::string constant_prefix = "rewrite_constant_";  // of added constants' names; no value's name begins with it
  OperatorSet limit = OperatorSet::own;               // nodes beyond it are not made
  int64_t changes = 0;                                // replacements, aliases, folded and removed nodes so far

  ValueId resolve(ValueId value) const;  // follows stands_for
  // Lets every reader of `value` read `target` instead; the node that made it is dropped by the caller.
  void alias(ValueId value, ValueId target);
  void fold(ValueId value, Value constant);
  // The constant that is known under this id: an initializer, a folded value, or what a Constant node holds.
  const Tensor* constant(ValueId value) const;
  // A constant that the source graph does not have.
  ValueId add_constant(Tensor tensor);
  bool is_added(ValueId value) const { return static_cast<size_t>(value) >= source->values.size(); }
  // Names added constants too.
  std::string name_of(ValueId value) const;
};

// Runs one node on constant inputs. An error means: leave the node where it is.
using EvaluateNode = std::function<Result<std::vector<Value>>(const Node& node, std::span<const Value> inputs)>;

struct RewriteContext {
  EvaluateNode evaluate;
};

struct Pattern {
  std::string_view name;
  bool on_by_default = false;
  OperatorSet target = OperatorSet::standard;  // the first set that has it: below that it can make nothing
  std::string_view description;
  void (*apply)(GraphEdit& edit, const RewriteContext& context) = nullptr;
  bool host_only = false;      // makes operators that only the host has kernels for
  bool gains_on_gpus = false;  // on by default there alone: the host has a better way
};

struct ChosenPattern {
  const Pattern* pattern = nullptr;
  OperatorSet limit = OperatorSet::own;  // a pattern that has several ways to write its result keeps to those within it
};

// Applies the pattern and returns how often it changed the graph.
int64_t apply_pattern(const ChosenPattern& chosen, GraphEdit& edit, const RewriteContext& context);

// In the order they are applied.
std::span<const Pattern> rewrite_patterns();
const Pattern* find_pattern(std::string_view name);

// A graph as it stands, before any pattern: all nodes, initializers as constants, outputs pinned.
GraphEdit begin_edit(const Graph& graph);

}  // namespace parallax::runtime
