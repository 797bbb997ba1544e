// SPDX-License-Identifier: Apache-2.0
// One side of the streaming comparison: its values, the absences of its plan, and the values that wait for their
// counterpart. Guarded by the comparer's mutex.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspector/diff/matching/path_links.h"
#include "inspector/diff/tolerance/judge.h"
#include "inspector/exec/observer.h"

namespace parallax::diff {

// A value that has been seen, with all that outlives its event.
struct Seen {
  Located placed;
  std::string key;                 // its path in A, or what would be
  int64_t number = -1;             // in the judge; A only
  bool is_exempt = false;          // from mistrust
  DType dtype = DType::undefined;  // of its elements
  bool has_open_type = false;      // carried in double, and no type is declared
  Value value;                     // a copy, while it waits
  size_t bytes = 0;
};

struct StreamSide {
  struct Entry {
    std::string name;
    ValueComparison description;  // path, node, op
    int32_t node_index = -1;      // ValueInfo's
    bool was_seen = false;
  };

  RunInfo run;
  std::chrono::steady_clock::time_point begin;
  double wall_ms = 0;
  int64_t calls_begun = 0;
  bool has_ended = false;
  bool has_completed = false;
  bool is_waiting = false;
  int64_t next_order = 0;
  std::unordered_map<std::string, Entry> value_infos;    // by static path
  std::unordered_map<std::string, Absence> absent;       // by static path
  std::vector<std::string> absent_in_order;              // in the order of events
  std::unordered_map<std::string, int64_t> occurrences;  // how often a path has been seen
  std::unordered_map<std::string, Seen> waiting;         // by key
  size_t waiting_bytes = 0;
  std::vector<Seen> unmatched;  // without payload

  bool has_room_for(size_t bytes, size_t limit) const { return waiting_bytes == 0 || waiting_bytes + bytes <= limit; }
  // True where a value may still come here: it is in the plan, or the plan is not known yet.
  bool may_deliver(const std::string& path, int64_t other_calls_begun) const;
  // Why a value of the other side is not here, once this one has ended.
  std::string reason_for(const std::string& path, std::string_view side_name) const;

  void put(Seen seen);
  Seen take(const std::string& key);
};

// Links values that have no counterpart of equal path, but one of equal ONNX name.
void link_names(const StreamSide& a, const StreamSide& b, PathLinks& links);

}  // namespace parallax::diff
