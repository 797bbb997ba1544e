// SPDX-License-Identifier: Apache-2.0
// Executor and Session: what runs a model. The reference interpreter and the fast executor are two; others may follow.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/base/result.h"
#include "inspector/exec/observer.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

class Executor;

enum class Accumulate : uint8_t { default_, fp32 };

// A base set of patterns, then single ones switched on (true) or off by name. `standard` keeps to operators of ai.onnx,
// `microsoft` to those and com.microsoft's; both leave out what cannot be written with them.
struct RewriteChoice {
  enum class Base : uint8_t { default_, none, all, standard, microsoft };
  Base base = Base::default_;
  std::vector<std::pair<std::string, bool>> changes;
};

// A value that a session keeps between runs: `output` of one run is `input` of the next, longer along `axis`. Both name
// values of the main graph. `present.3.key` is kept for `past_key_values.3.key`, for example.
struct StateBinding {
  std::string input, output;
  int axis = 2;
};

// An executor that cannot honor an option answers with a usage error; it never ignores one.
struct RunOptions {
  bool keep_casts = false;  // reference:double honors casts to narrower types
  bool tf32 = false;
  Accumulate accumulate = Accumulate::default_;
  RewriteChoice rewrite;
  bool observe_all = false;        // nothing is fused, folded or aliased away
  uint64_t seed = 0;               // of random operators without a seed attribute
  int64_t memory_limit_bytes = 0;  // 0: none. Weights included
  double time_limit_s = 0;         // of one request to an executor that is a program of its own; 0: none
  // Value path -> value put in place of what was computed, before any reader sees it and before it is observed.
  std::map<std::string, Value> overrides;
  std::shared_ptr<Executor> fallback;  // runs nodes this executor has no kernel for; null: such a node is `unsupported`
  std::vector<StateBinding> states;    // kept in the session, which then is a SessionStates (session_states.h)
  CancelToken cancel;
};

struct SessionStatistics {
  int64_t peak_bytes = 0;  // most bytes of values alive at once in any run so far (weights included); 0: not known
  int64_t weight_bytes = 0;
  int64_t arena_bytes = 0;  // planned memory, 0 where nothing is planned
  int64_t plan_count = 0;   // plans built so far
  std::vector<std::string> fallback_nodes;
};

// One model made ready on one executor. Not thread-safe; several sessions may run at once.
class Session {
 public:
  virtual ~Session() = default;

  // Runs the main graph. `inputs` are in the order of Graph::inputs; an absent Value takes the initializer of that name
  // as default. Outputs are in the order of Graph::outputs and stay valid after the session ends and after later runs;
  // they may be on the executor's device, as may inputs. Errors name node and op; the observer has seen the failure
  // before they return.
  virtual Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer,
                                         const CallInfo& call = {}) = 0;

  virtual SessionStatistics statistics() const = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual std::string name() const = 0;    // as in EXEC
  virtual std::string device() const = 0;  // for people
  virtual std::map<std::string, std::string> settings(
      const RunOptions& options) const = 0;  // all that can change a result

  // Checks that the executor can honor the options, whatever the model: prepare() asks this first. Errors: usage,
  // naming the option.
  virtual Status check_options(const RunOptions& /*options*/) const { return {}; }
  // Errors: usage (an option it cannot honor), unsupported (naming the first node without a kernel), out_of_memory.
  virtual Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) = 0;
};

// RunInfo of a run of `model` on `executor`.
RunInfo describe_run(const Executor& executor, const RunOptions& options, std::shared_ptr<const Model> model);

// Checks that values fit the graph's inputs (count, type, rank, fixed dimensions, equal named dimensions). Errors:
// usage, naming the input and what was expected. Every Session calls it first.
Status check_inputs(const Graph& graph, std::span<const Value> inputs);

}  // namespace parallax
