// SPDX-License-Identifier: Apache-2.0
// DumpReader: a dump file mapped for reading. Opening reads the index (or scans the records when there is none), never
// payloads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/dump/statistics/statistics.h"
#include "inspector/exec/observer.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

struct DumpExecution {
  std::string executor;
  std::string device;
  std::map<std::string, std::string> settings;
  std::string model_path;
  std::string model_sha256;
  double wall_ms = -1;  // -1 while unfinished
  bool completed = false;
};

struct DumpGraph {
  std::string name;          // "decoder"; empty for the only one
  bool is_executed = false;  // executed (after fusion) rather than source
  // The provenance of an executed graph: pairs of a node and a source node that it stands for.
  std::vector<std::pair<std::string, std::string>> provenance;
};

struct DumpCall {
  int32_t execution = 0;  // index into executions()
  int32_t graph = -1;     // index into graphs(), or -1
  CallInfo call;
};

// One captured value, in the order in which it was observed.
struct DumpEntry {
  int32_t execution = 0;
  int32_t call = -1;  // index into calls(), -1 for imported tensors
  std::string path;   // whole value path
  std::string name;   // ONNX value name
  std::string node;   // display name of the producer
  std::string op;     // "Add"
  ValueInfo::Role role = ValueInfo::Role::node_output;
  bool is_graph_output = false;
  bool is_constant_like = false;
  CaptureLevel level = CaptureLevel::all;
  std::optional<Absence> absence;              // set: the value did not exist in the plan, and nothing below holds
  TypeInfo type;                               // with all dimensions known; tensors, sequences, optionals, maps
  std::optional<TensorStatistics> statistics;  // of tensors, from level stats on
  int32_t alias_of = -1;                       // index of the entry whose payload this one shares
};

// The shape of an entry's tensor. Errors: those of Shape::create, in a damaged dump.
Result<Shape> captured_shape(const TypeInfo& type);

// An event between the values: bodies that were entered and left, failures, ends.
struct DumpEvent {
  enum class Kind : uint8_t { enter_body, leave_body, node_failed, end_call, end_run };
  Kind kind = Kind::enter_body;
  int32_t execution = 0;
  int32_t call = -1;
  int32_t entry_count = 0;  // entries() that came before
  std::string node;
  std::string op;
  std::string text;  // of a body: its frame, "loop.body[3]"; of a failure: its message
};

// How the tensors of one captured object (a module's inputs, a decoder's cache) stand in its containers.
struct DumpStructure {
  int32_t execution = 0;
  int32_t call = -1;
  int32_t entry_count = 0;  // entries() that came before: the object's tensors are among them
  std::string path;         // frames and root of the object's values: "module(decoder).call[0]//in"
  std::string text;         // the tree, as JSON (FORMAT.md)
};

struct NodeFailure {
  std::string node;
  std::string op;
  std::string path;  // frames of the failure, ending in "//" when there are any
  std::string message;
};

class DumpReader {
 public:
  // Errors: io; corrupt_file naming offset and what is wrong. A dump that was cut off opens with is_complete() false
  // and holds all finished records.
  static Result<std::shared_ptr<const DumpReader>> open(const std::string& path);
  virtual ~DumpReader() = default;

  virtual const std::string& path() const = 0;
  virtual bool is_complete() const = 0;  // has its index and footer
  virtual std::span<const DumpExecution> executions() const = 0;
  virtual std::span<const DumpGraph> graphs() const = 0;
  virtual std::span<const DumpCall> calls() const = 0;
  virtual std::span<const DumpEntry> entries() const = 0;
  virtual std::span<const DumpEvent> events() const = 0;
  virtual std::span<const NodeFailure> failures() const = 0;
  virtual std::span<const DumpStructure> structures() const = 0;

  // Index of the last entry with this path (and execution), or -1.
  virtual int32_t find(std::string_view path, int32_t execution = 0) const = 0;

  // The payload: tensors are views of the mapping (they keep the file open). A sample gives a rank-1 tensor of the
  // sampled elements. Errors: usage when the level holds no payload; corrupt_file when its CRC is wrong.
  virtual Result<Value> load(int32_t entry) const = 0;
  // Loads a copy of the value, for callers that keep it: it stays valid whatever happens to the file. A file that was
  // changed after it was opened, so that the payload is no longer there, is an error (corrupt_file) and no signal.
  virtual Result<Value> load_copy(int32_t entry) const = 0;

  // The graph as a model without weights: a tensor above 1 KiB has its type and shape, reads as zeros, and has
  // kLeftOutOfDump as its absence. Errors: corrupt_file.
  virtual Result<std::shared_ptr<const Model>> model(int32_t graph) const = 0;
};

// Index in a tensor of `element_count` elements of the element at `position` in a sample of `sample_count`.
int64_t sampled_element(int64_t position, int64_t sample_count, int64_t element_count);

struct DumpProblem {
  std::string where;  // "record at offset 4096 (Tensor 'add_3')"
  std::string message;
};

// Reads every byte: each CRC, each reference, the index against the records. Empty when all is well.
Result<std::vector<DumpProblem>> check_dump(const std::string& path);

struct RepairReport {
  int64_t records_kept = 0;
  int64_t records_dropped = 0;
  int64_t bytes_skipped = 0;
};
// Writes every intact record of `path` and a fresh index to `target`.
Result<RepairReport> repair_dump(const std::string& path, const std::string& target);

}  // namespace parallax
