// SPDX-License-Identifier: Apache-2.0
// `extract`: a part of a model with the values that one run gave it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/dump/dump_reader.h"
#include "inspector/transform/extract.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

struct ExtractRequest {
  RunRequest run;  // the model, one executor, inputs, options
  std::vector<std::string> from;
  std::vector<std::string> to;
  std::string directory;
};

struct PartSummary {
  std::string directory;
  std::vector<std::string> written;
  std::vector<std::string> nodes;   // display names, in execution order
  std::vector<std::string> inputs;  // names
  std::vector<std::string> outputs;
};

struct ExtractResult {
  PartSummary part;
  std::string executor;  // which computed the values
  std::vector<std::string> notes;
};

// Writes DIR/model.onnx and DIR/test_data_set_0. Errors: usage (paths), as of the run, io.
Result<ExtractResult> extract_part(const ExtractRequest& request, const ExecutorFactory& make_executor);

// {"written", "nodes": count, "names", "inputs", "outputs"}; further members are the caller's.
std::string extract_to_json(const ExtractResult& result);
std::string extract_to_text(const ExtractResult& result);

// ---- shared with `reduce` ----

PartSummary summarize_part(const transform::Part& part);

// The model with values that were given for inputs that have a default stored as that default: such inputs count as
// weights when a part is cut out. `values` loses them.
std::shared_ptr<const Model> with_given_defaults(std::shared_ptr<const Model> model, std::vector<Value>& values);

// Runs the side once and captures the values at `paths` (all but weights where empty) into a dump at `dump_path`.
Status capture_values(RunSide& side, const std::vector<std::string>& paths, const std::string& dump_path);

// The value at one of the part's edges out of such a dump, of its declared type; absent where it was not computed.
Result<Value> load_part_value(const transform::Part& part, const transform::PartValue& edge, const DumpReader& dump);

// The part's values out of such a dump. Errors: usage, where an input was not computed in that run.
Result<transform::PartData> load_part_data(const transform::Part& part, const DumpReader& dump);

}  // namespace parallax
