// SPDX-License-Identifier: Apache-2.0
// DumpWriter: an Observer that appends everything it is shown to a dump file (FORMAT.md), in the
// thread that observes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inspector/exec/observer.h"

namespace parallax {

struct DumpWriterOptions {
  CaptureLevel level = CaptureLevel::all;  // of every value that `only` lets through
  std::vector<std::string> only;           // globs over value paths; empty: all. Graph outputs are always written
  int64_t capture_limit_bytes = 0;         // larger values keep `sample`; 0: no limit
  int64_t sample_elements = 1024;
  size_t ring_bytes = size_t{48} << 20;  // most space that is kept reserved and touched ahead of what is written
  bool include_graph = true;             // the model without weights
  // Looks each payload up by its content (XXH3-128) before it is copied. For values that come several times from memory
  // of their own: what one module gives is what the next one takes.
  bool share_equal = false;
  bool sync = false;  // finish() waits until the disk has everything
  // Brings a payload from a device into host memory of the same size, waiting for `stream`. Without it, device values
  // are refused.
  std::function<Status(const TensorView& source, void* stream, std::byte* target)> copy_from_device;
};

// When an event has returned, its records survive the end of the process, however it ends. Errors (io): the file cannot
// be created; the disk is full (space is reserved before it is used; what was written before stays readable). Such an
// error is returned from the event that met it and stops the run with its sentence.
class DumpWriter final : public Observer {
 public:
  static Result<std::unique_ptr<DumpWriter>> create(const std::string& path, const DumpWriterOptions& options);
  ~DumpWriter() override;  // finishes without index when finish() was not called: still readable

  CaptureLevel wants(const ValueInfo& value_info) override;
  bool takes_channels_last() const override { return true; }
  Status begin_run(const RunInfo& run) override;
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override;
  Status absent(const ValueInfo& value_info, const Absence& absence) override;
  Status enter_body(const NodeLocation& node, const Frame& frame) override;
  Status leave_body(const NodeLocation& node, const Frame& frame) override;
  Status observe(const Observation& observation) override;
  Status node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) override;
  Status end_call(const CallInfo& call) override;
  Status end_run(bool completed) override;

  // Writes at this level what observe() writes at the level of the options, where their globs let it through.
  Status record(const Observation& observation, CaptureLevel level);
  // How the tensors of the object at `path`, which were written before, stand in its containers (FORMAT.md: structure).
  Status structure(std::string_view path, std::string_view text);

  // Adds a graph to the current run besides the model of begin_run: one of several that its calls name, or the executed
  // one. `provenance`: of an executed one, pairs of its nodes and the source nodes that they stand for.
  Status add_graph(const std::string& name, const Model& model, bool is_executed,
                   const std::vector<std::pair<std::string, std::string>>& provenance = {});

  // Prepares a file in memory: allocates and touches `bytes` now, where the amount to come is known, so that the run
  // need not wait for Linux to clear pages. Never needed; the unused part is returned in the end.
  void prepare(size_t bytes);

  // Waits until all is checked, adds index and footer, closes. No event may follow. An older file of the name is
  // replaced now, and not where `takes_name` is false: then the dump stays next to it (FORMAT.md: name).
  Status finish(bool takes_name = true);
  // The name that the file has now: its own, or one next to an older file of that name; empty before its first record.
  const std::string& path() const;

 private:
  class Impl;
  explicit DumpWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace parallax
