// SPDX-License-Identifier: Apache-2.0
// The nodes to keep, tried on the reference: more of them until the outputs are right, then fewer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inspector/exec/executor.h"
#include "inspector/workbench/half_precision/audit.h"

namespace parallax::audit {

// Inputs and the float32 model's outputs of one set.
struct AuditSet {
  std::vector<Value> inputs;
  std::vector<Value> outputs;
};

class KeepSearch {
 public:
  // `watched` is the session of the float32 model; the reference runs what is converted. Neither is copied.
  KeepSearch(std::shared_ptr<const Model> model, const AuditRequest& request, const std::vector<AuditSet>& sets,
             Session& watched, std::shared_ptr<Executor> reference)
      : model_(std::move(model)), request_(request), sets_(sets), watched_(watched), reference_(std::move(reference)) {}

  // Converts with these nodes kept and compares the outputs of all sets; at the first set that fails, ends.
  // `to_the_end` goes on.
  Result<HalfVerification> verify(const std::vector<std::string>& keep, bool to_the_end);

  // Adds nodes of `candidates`, those that introduce the largest errors first, until verify() passes; all of them where
  // it never does.
  Result<std::vector<std::string>> extend(std::vector<std::string> keep, const std::vector<NodeAudit>& candidates);

  // Leaves out what is not needed: without it the outputs are right, and no value within has become finite and wrong.
  Result<std::vector<std::string>> minimize(std::vector<std::string> keep, const std::vector<NodeAudit>& nodes);

  void keep_io(bool keep) { keep_io_ = keep; }

 private:
  using Errors = std::map<std::string, double, std::less<>>;  // by path without iterations: the worst error of a value

  Result<std::shared_ptr<const Model>> convert(const std::vector<std::string>& keep) const;
  Result<std::vector<Value>> converted_inputs(const Model& converted, const std::vector<Value>& inputs) const;
  // Errors of all values of one set, finite ones and those that are not.
  Result<Errors> value_errors(const std::vector<std::string>& keep, size_t set);
  Result<bool> may_leave(const std::vector<std::string>& keep, const std::vector<std::string>& less,
                         const std::vector<size_t>& sets);

  std::shared_ptr<const Model> model_;
  const AuditRequest& request_;
  const std::vector<AuditSet>& sets_;
  Session& watched_;
  std::shared_ptr<Executor> reference_;
  bool keep_io_ = false;
  std::map<size_t, Errors> usual_;  // by set: with the nodes that minimize() keeps at the moment
  size_t failing_set_ = 0;          // that failed last: the first one tried next
};

}  // namespace parallax::audit
