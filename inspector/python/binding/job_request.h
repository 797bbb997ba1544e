// SPDX-License-Identifier: Apache-2.0
// Parts that the jobs share: models, inputs and options of a run out of keyword arguments, by the readers that the
// command line uses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/python/binding/fields.h"
#include "inspector/python/binding/tensor.h"
#include "inspector/workbench/request_options.h"
#include "inspector/workbench/run.h"

namespace parallax::python {

struct JobRequest {
  RunRequest run;
  ArrayKind kind = ArrayKind::numpy;  // of outputs: as the inputs are
  double load_ms = 0;                 // of a model that was read before the job, for the types of its inputs
  std::vector<std::string> read;      // files that nothing may be written over
  std::shared_ptr<std::vector<std::string>> notes = std::make_shared<std::vector<std::string>>();  // as it runs
  InputArguments inputs;
  ModeArguments mode;
  PolicyArguments policy;
};

// A path, or a Model with the path that it was read from. Raises for a dump.
void read_model(const nb::object& given, std::string& path, std::shared_ptr<const Model>& in_memory);
// model and, where the job has one, against: paths or Models.
void take_models(Fields& fields, JobRequest& job, bool has_against);
// inputs (by name), inputs_source, input_files, seed, shapes, dims, ranges; tf32 and the other modes. After the models.
void take_inputs_and_mode(Fields& fields, JobRequest& job);
// policy, policy_file, rtol, atol, per
void take_policy(Fields& fields, JobRequest& job);

// executors: one or two names; where none is given, those the command line takes.
std::vector<std::string> take_executors(Fields& fields, bool against);
// executor: one name.
std::string take_executor(Fields& fields, const std::string& otherwise);

// The values of a mapping under the names of a model's inputs. The value of an unknown name has the type that its array
// has: whoever reads the inputs refuses the name.
std::map<std::string, Value> values_by_name(const Model& model, nb::handle mapping);
// torch where any is torch's, else Tensor where any is one, else numpy.
ArrayKind kind_of_arrays(nb::handle arrays);

ExecutorFactory executor_factory();

}  // namespace parallax::python
