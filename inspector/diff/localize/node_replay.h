// SPDX-License-Identifier: Apache-2.0
// NodeReplay: one node of a model, with its bodies and the functions it calls, run alone on values that are given.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/exec/executor.h"
#include "inspector/model/ir.h"

namespace parallax::diff {

// Cheap to make; the session is prepared at the first run and serves all runs of equal element types (the iterations of
// a body). Holds no values between runs.
class NodeReplay {
 public:
  // `graph` is the one that `node` stands in (or stood in: the node may have been changed): it tells the names and
  // declared types of what is read. `model` owns the functions that are called. Of `options`, overrides and memory
  // limit do not hold here.
  NodeReplay(std::shared_ptr<const Model> model, const Graph& graph, Node node, std::shared_ptr<Executor> executor,
             const RunOptions& options = {});

  // The inputs of a run, as ids in the graph: the node's inputs, each once, then what its bodies read from outside.
  const std::vector<ValueId>& reads() const { return reads_; }
  const Node& node() const { return node_; }

  // `values` are those of reads(), in that order; an absent one is an omitted optional input. Those marked in
  // `constants` (as reads()) become initializers, so that an executor treats them as the weights they are; such runs
  // share no session. Answers one value for each of the node's outputs, absent where the node omits it.
  Result<std::vector<Value>> run(std::span<const Value> values, const std::vector<bool>& constants = {});

 private:
  struct Read {
    std::string name;
    TypeInfo declared;
  };

  Result<std::shared_ptr<const Model>> model_of(std::span<const Value> values,
                                                const std::vector<bool>& constants) const;
  TypeInfo type_for(size_t read, const Value& value) const;

  std::shared_ptr<const Model> model_;
  Node node_;
  std::vector<ValueId> reads_;
  std::unordered_map<ValueId, size_t> index_of_;  // in reads_
  std::vector<Read> definitions_;                 // as reads_
  std::vector<std::string> output_names_;         // as the node's outputs; empty for omitted ones
  std::shared_ptr<Executor> executor_;
  RunOptions options_;
  std::vector<TypeInfo> prepared_for_;
  std::unique_ptr<Session> session_;
};

}  // namespace parallax::diff
