// SPDX-License-Identifier: Apache-2.0
// The class of every node in half precision, from the ranges of what it reads and gives.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/exec/value_table.h"
#include "inspector/workbench/half_precision/audit.h"
#include "inspector/workbench/half_precision/audit_ranges.h"

namespace parallax::audit {

// A value that a node reads or gives.
struct NodeValue {
  int32_t slot = -1;  // ValueInfo::id; -1: not observed, such as what an outer call omits
  std::string name;
  bool is_mask = false;  // leads to nothing but Softmax, Where or Max, through moves and sums
};

struct AuditNode {
  const Node* node = nullptr;
  const Graph* graph = nullptr;
  std::vector<NodeValue> inputs;   // whose elements it computes with, if they are float32
  std::vector<NodeValue> outputs;  // float32
  bool reads_float = false;        // also as a Cast or Shape does
  bool counts = false;             // gives integers as float32: positions, counters
};

class AuditGraph {
 public:
  // Errors: as of ValueTable::build.
  static Result<AuditGraph> build(const std::shared_ptr<const Model>& model, DType to);

  // By slot id: what a RangeObserver has to look for.
  const std::vector<uint8_t>& wanted() const { return wanted_; }
  // Takes the ranges of one input set into the nodes' classes; yields whether another node has to be kept.
  bool add_set(int64_t set, std::vector<ValueRange> ranges, bool half_sums);

  const std::vector<AuditNode>& nodes() const { return nodes_; }
  const std::vector<NodeAudit>& results() const { return results_; }
  std::vector<NodeAudit> take_results() { return std::move(results_); }
  // The path of a slot, iterations written [*].
  std::string path_of(int32_t slot) const {
    const ValueInfo& value_info = value_infos_->value_infos()[static_cast<size_t>(slot)];
    return value_info.scope + value_info.escaped_name;
  }
  // True where an input or output of the model has left the range in any set.
  bool edge_overflows() const { return edge_overflows_; }

 private:
  class Builder;
  struct Verdict {
    HalfClass half_class = HalfClass::free;
    std::string why;
    std::optional<double> accumulated;
  };

  Verdict judge(const AuditNode& node, int64_t set, const std::vector<ValueRange>& ranges) const;
  void judge_value(const AuditNode& node, const NodeValue& value, bool is_output, int64_t set,
                   const std::vector<ValueRange>& ranges, Verdict& verdict) const;
  void add_figures(size_t index, const std::vector<ValueRange>& ranges);

  std::shared_ptr<const Model> model_;
  std::unique_ptr<ValueTable> value_infos_;
  DType to_ = DType::float16;
  std::vector<AuditNode> nodes_;
  std::vector<NodeAudit> results_;
  struct Figures {
    int64_t count = 0, below = 0;
  };
  std::vector<Figures> figures_;
  std::vector<uint8_t> wanted_;
  std::vector<std::pair<size_t, Tensor>> stored_tensors_;
  std::vector<ValueRange> stored_;  // of weights and Constants, by slot id
  std::vector<int32_t> edges_;      // slots of the main graph's inputs and outputs
  bool edge_overflows_ = false;
};

// An upper bound of every running sum of the node, in any order, from the ranges of its inputs by position; nothing
// where it does not add.
std::optional<double> accumulated_bound(const Node& node, const Graph& graph,
                                        const std::vector<const ValueRange*>& inputs, const ValueRange* output);
// The values of the node's input at `index` that the bound needs: a Wanted.
uint8_t wanted_for_sums(const Node& node, size_t index);

}  // namespace parallax::audit
