// SPDX-License-Identifier: Apache-2.0
// Replay: the values of an answer shown to an observer as an executor would have shown them while it computed them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inspector/exec/value_table.h"
#include "inspector/executors/foreign/answer.h"

namespace parallax::foreign {

NodeLocation location_of(const Graph& graph, NodeId id);

// All that a run shows, by reference: it outlives the replay.
struct Replayed {
  const ValueTable& value_infos;
  const std::vector<CaptureLevel>& levels;  // by value id
  std::span<const Value> inputs;            // as Graph::inputs
  const Answer& answer;
  std::span<const std::pair<std::string, double>> node_milliseconds;
  // So many nodes of the main graph in execution order: those before a failure.
  size_t node_count = SIZE_MAX;
};

class Replay {
 public:
  Replay(const Replayed& run, Observer& observer, FrameStack& frames)
      : run_(run), main_(run.value_infos.main()), observer_(observer), frames_(frames) {}

  // Values that are wanted and that the answer lacks. After begin_call.
  Status announce_absent();
  // Inputs and weights, then what each node made, in execution order. Errors: the observer's; corrupt_file.
  Status show();
  // The graph's outputs. Errors: execution, where the answer lacks one.
  Result<std::vector<Value>> outputs() const;

 private:
  Status show_sources();
  Status show_node(NodeId id);
  Status show_bodies(NodeId id);
  Status enter(const ValuePath& path, size_t common);
  Status leave(size_t depth);
  Status observe(const ValueInfo& value_info, const Value& value);
  Status note_times();
  Status report_times(NodeId id);
  Result<Value> computed(ValueId id) const;
  Result<Value> source(ValueId id) const;
  const GraphValues* graph_within(const GraphValues& around, const Frame& frame, NodeId& node) const;

  struct Entered {
    NodeLocation node;
    Frame frame;
    const GraphValues* graph = nullptr;
  };
  struct Timed {
    std::string name;
    std::vector<NodeId> sources;  // that a node of the executed graph stands for; empty: it is the model's own
    double milliseconds = 0;
  };

  const Replayed& run_;
  const GraphValues& main_;
  Observer& observer_;
  FrameStack& frames_;
  std::vector<Entered> entered_;
  std::multimap<NodeId, Timed> times_;
};

}  // namespace parallax::foreign
