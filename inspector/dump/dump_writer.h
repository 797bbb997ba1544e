// DumpWriter: an Observer that appends everything it is shown to a dump file (FORMAT.md) through a ring and a writer
// thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "inspector/exec/observer.h"

namespace parallax {

struct DumpWriterOptions {
  CaptureLevel level = CaptureLevel::all;  // of every value that `only` lets through
  std::vector<std::string> only;           // globs over value paths with "[*]" for iterations; empty: all
  int64_t capture_limit_bytes = 0;         // larger values keep `sample`; 0: no limit
  int64_t sample_elements = 1024;
  size_t ring_bytes = size_t{256} << 20;
  bool include_graph = true;  // the model without weights
};

// Errors (io): the file cannot be created; the disk is full (space is reserved before it is used; what was written
// before stays readable). Such an error is returned from the next event and stops the run with its sentence.
class DumpWriter final : public Observer {
 public:
  static Result<std::unique_ptr<DumpWriter>> create(const std::string& path, const DumpWriterOptions& options);
  ~DumpWriter() override;  // finishes without index when finish() was not called: still readable after repair

  CaptureLevel wants(const ValueSite& site) override;
  Status begin_run(const RunInfo& run) override;
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override;
  Status absent(const ValueSite& site, const Absence& absence) override;
  Status enter_body(const NodeSite& node, const Frame& frame) override;
  Status leave_body(const NodeSite& node, const Frame& frame) override;
  Status observe(const Observation& observation) override;
  Status node_failed(const NodeSite& node, const FrameStack& frames, const Error& error) override;
  Status end_call(const CallInfo& call) override;
  Status end_run(bool completed) override;

  // Waits until all is written, adds index and footer, syncs, closes.
  Status finish();

 private:
  class Impl;
  explicit DumpWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace parallax
