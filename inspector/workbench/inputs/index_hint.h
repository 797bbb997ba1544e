// SPDX-License-Identifier: Apache-2.0
// A node that looks elements up and failed, and the generated inputs that its indices follow from: what to do.
#pragma once

#include <string>
#include <vector>

#include "inspector/exec/observer.h"
#include "inspector/tensor/value.h"

namespace parallax {

// Remembers which node failed.
class FailureWatcher final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::none; }
  bool takes_channels_last() const override { return true; }
  Status node_failed(const NodeLocation& node, const FrameStack&, const Error&) override {
    graph_ = node.graph;
    nodes_.assign(node.sources.begin(), node.sources.end());
    if (nodes_.empty()) nodes_.push_back(node.id);
    return {};
  }

  const Graph* graph() const { return graph_; }                // null where none failed
  const std::vector<NodeId>& nodes() const { return nodes_; }  // of the graph; several where they were fused

 private:
  const Graph* graph_ = nullptr;
  std::vector<NodeId> nodes_;
};

// A sentence to be appended, beginning with "; "; empty where the failed node takes no indices, or these follow from no
// input of `generated` (names), or are all within its table. `inputs`: in the order of the graph's.
std::string range_hint(const Graph& graph, const FailureWatcher& failure, const std::vector<std::string>& generated,
                       const std::vector<Value>& inputs);

}  // namespace parallax
