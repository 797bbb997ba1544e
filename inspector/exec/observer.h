// SPDX-License-Identifier: Apache-2.0
// Observer: the only thing that leaves an executor. Dump writer, streaming comparison and live views are observers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "inspector/base/result.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/statistics.h"
#include "inspector/tensor/value.h"

namespace parallax {

enum class CaptureLevel : uint8_t { none, shape, stats, sample, all };

// A value's slot in an executed plan, fixed for the life of a session. All views point into the session or its model.
struct ValueInfo {
  enum class Role : uint8_t { input, initializer, node_output };
  int32_t id = 0;  // dense, from 0, unique in the session: observers may index arrays by it
  Role role = Role::node_output;
  std::string_view name;     // ONNX value name
  std::string escaped_name;  // as it stands in paths
  std::string scope;         // static frames with "[*]" for iterations: "node_loop.body[*]//", "" in the main graph
  std::string_view node;     // display name of the producing node; empty for inputs and initializers
  std::string op;            // operator of that node, without domain and version: "Add"
  std::string domain;        // "" for ai.onnx
  int32_t output_index = 0;
  int32_t node_index = -1;  // position of the node in its graph's execution order
  const Graph* graph = nullptr;
  ValueId value = kNoValue;      // in `graph`
  bool is_graph_output = false;  // of the main graph
  // True when the value is data by its making: constants, fills, masks. Such values may be all equal without suspicion.
  bool is_constant_like = false;
  // True when it follows from initializers, constants and shapes alone: it is there whatever the inputs hold.
  bool follows_from_constants = false;
  bool is_feature_map = false;  // a tensor [N, C, spatial...]: see feature_maps.h
};

// Why a value of the source graph does not exist in the executed plan.
struct Absence {
  enum class Kind : uint8_t { fused, folded, aliased, removed };
  Kind kind = Kind::fused;
  std::string into;  // the fused node's name, or the value it is an alias of
};

// Who runs what: begins a run, stored in dumps.
struct RunInfo {
  std::string executor;  // "reference", "reference:double", "cpu", "cuda", "onnxruntime", "cmd:./runner"
  std::string device;    // "AMD EPYC ...", "NVIDIA H200"
  std::map<std::string, std::string>
      settings;                        // every choice that can change a result: threads, tf32, rewrite, seed, ...
  std::shared_ptr<const Model> model;  // may be null for foreign runtimes
  std::string model_sha256;
};

// One call of one graph: a whole inference of a simple model, one step of a decoder.
struct CallInfo {
  std::string graph;  // name among several graphs of one run ("encoder", "decoder"); empty for the only one
  int64_t step = -1;  // -1 where there are no steps
};

struct NodeLocation {
  std::string_view node;  // display name
  std::string op;         // "Softmax-13"; of what runs, where several nodes were fused
  const Graph* graph = nullptr;
  NodeId id = kNoNode;
  std::span<const NodeId> sources = {};  // fused: the nodes of `graph` whose work it does; else empty
};

struct Observation {
  const ValueInfo& value_info;
  const FrameStack& frames;  // frames.path_of(value_info.escaped_name) is the value path
  const Value& value;        // may be on a device or channels last; valid until the call returns
  const ValueInfo* alias_of =
      nullptr;             // an earlier value of the same frame with the very same payload (Reshape, Identity)
  void* stream = nullptr;  // device stream on which the value is ready; null on the host
  // Taken on the device, where no more than that is wanted of the value: `value` is then a type and a shape without
  // payload, as it is on a device where only the shape is wanted.
  const TensorStatistics* statistics = nullptr;

  std::string path() const { return frames.path_of(value_info.escaped_name); }
};

// Events come in execution order from one thread (not always the same one). An error returned from any of them stops
// the run. Order: begin_run { begin_call { absent* { observe | enter_body .. leave_body | node_done }* [node_failed]
// end_call } } end_run. begin_run and end_run come from whoever drives the sessions, everything between from
// Session::run.
class Observer {
 public:
  Observer();
  Observer(const Observer&);  // a copy is an observer of its own
  Observer& operator=(const Observer&) { return *this; }
  virtual ~Observer() = default;

  // Distinct for every observer of the process; never 0.
  uint64_t identity() const { return identity_; }

  // Asked once for every value of a session, before any event of the first call it is shown: a session keeps the
  // answers for its further runs, so that plans stay fixed. To want something else, be another observer.
  virtual CaptureLevel wants(const ValueInfo& value_info) = 0;
  virtual bool wants_node_times() const { return false; }
  // True where it reads channels-last tensors (inspector/tensor/channels_last.h); else they are transposed for it.
  virtual bool takes_channels_last() const { return false; }

  virtual Status begin_run(const RunInfo&) { return {}; }
  virtual Status begin_call(const CallInfo&, std::span<const Value> /*inputs*/) { return {}; }
  // A value that does not exist in the plan; within the first call that the observer is shown of a session.
  virtual Status absent(const ValueInfo&, const Absence&) { return {}; }
  virtual Status enter_body(const NodeLocation&, const Frame&) { return {}; }
  virtual Status leave_body(const NodeLocation&, const Frame&) { return {}; }
  // Only for values for which wants() gave more than none.
  virtual Status observe(const Observation&) { return {}; }
  virtual Status node_done(const NodeLocation&, double /*elapsed_ms*/) { return {}; }  // only with wants_node_times()
  virtual Status node_failed(const NodeLocation&, const FrameStack&, const Error&) { return {}; }
  virtual Status end_call(const CallInfo&) { return {}; }
  virtual Status end_run(bool /*completed*/) { return {}; }

 private:
  uint64_t identity_;
};

// Wants nothing and hears nothing.
class NullObserver final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::none; }
};

}  // namespace parallax
