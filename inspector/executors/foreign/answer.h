// SPDX-License-Identifier: Apache-2.0
// Answer: the values that a program computed, as its file holds them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/dump/convert/execution_order.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/exec/observer.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/value.h"

namespace parallax::foreign {

class Answer {
 public:
  Answer() = default;  // holds nothing
  // A file that `parallax import` reads; `graph` is the main graph, of which names without a type of their own in the
  // file take theirs. Frames of graphs and steps are left out; of a path that comes several times the last holds.
  // Errors: those of the readers, naming the file.
  static Result<Answer> open(const std::string& file, const Graph& graph);

  bool has(std::string_view name) const;  // a value of the main graph
  // A value of the main graph: absent where the file lacks it, or has no elements of it. Errors: corrupt_file.
  Result<Value> value(const std::string& name) const;
  // The absence that a dump states, or that its executed graph tells: a node of it that stands for `node` and others.
  std::optional<Absence> absence(const std::string& name, const std::string& node) const;
  // Pairs of a node that was executed and a node of the model that it stands for.
  std::span<const std::pair<std::string, std::string>> provenance() const { return provenance_; }

  // Values within the bodies of nodes of the main graph.
  struct BodyValue {
    ValuePath path;
    size_t stored = 0;
  };
  bool has_bodies() const { return !bodies_.empty(); }
  void sort_bodies(dump::ExecutionOrder& order);  // as a run shows them
  std::span<const BodyValue> bodies_of(const std::string& node) const;
  Result<Value> load(const BodyValue& value) const { return load(value.stored); }

 private:
  struct Stored {
    int32_t entry = -1;  // of the dump
    Value value;         // where there is no dump
    std::optional<Absence> absence;
  };
  Status read_dump(const std::string& file);
  void add(ValuePath path, Stored stored);
  Result<Value> load(size_t stored) const;

  std::shared_ptr<const DumpReader> dump_;
  std::vector<Stored> stored_;
  std::map<std::string, size_t, std::less<>> main_;
  std::map<std::string, std::vector<BodyValue>, std::less<>> bodies_;  // by node of the main graph
  std::map<std::string, size_t, std::less<>> body_paths_;
  std::vector<std::pair<std::string, std::string>> provenance_;
};

}  // namespace parallax::foreign
