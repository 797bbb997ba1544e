// SPDX-License-Identifier: Apache-2.0
// `convert`: a model to half precision, written to a file, and compared with the first one where data is given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspector/transform/half_precision/to_half.h"
#include "inspector/workbench/half_precision/converted_outputs.h"
#include "inspector/workbench/run.h"

namespace parallax {

struct ConvertRequest {
  std::string model;
  std::shared_ptr<const Model> model_in_memory;  // runs in place of the file
  std::string output;
  transform::HalfRequest half;
  std::string keep_file;    // further entries of half.keep, one on each line; empty: none
  std::string verify;       // a test_data_set folder, a .npz or a .safetensors file; empty: nothing is run
  double tolerance = 1e-2;  // of the relative error of an output
  MessageCallback message;
};

struct ConvertResult {
  transform::HalfConversion conversion;
  DType to = DType::float16;
  std::string output;
  std::optional<HalfVerification> verification;
};

// Writes the model, and runs it and the first one on `reference` where `verify` is given. Nothing is written where the
// request is wrong. Errors: usage (a node to keep that there is not, a file that would be written over what is read),
// and as of to_half, import and export.
Result<ConvertResult> convert_model(const ConvertRequest& request, const ExecutorFactory& make_executor);

std::string convert_to_json(const ConvertResult& result);
std::string convert_to_text(const ConvertResult& result);

// An entry of a file that --keep-file names.
struct KeepLine {
  size_t line = 0;  // counted from 1
  std::string node;
};

// One entry on each line, without the spaces around it; empty lines count for nothing. Errors: io, usage (no text).
Result<std::vector<KeepLine>> read_keep_file(const std::string& path);

// "float16" or "bfloat16". Errors: usage.
Result<DType> parse_half_type(const std::string& text);

}  // namespace parallax
