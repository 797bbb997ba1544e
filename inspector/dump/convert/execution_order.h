// SPDX-License-Identifier: Apache-2.0
// The order of values in the execution of their model, by their paths: that in which a run would have shown them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/value_path.h"
#include "inspector/exec/value_table.h"

namespace parallax::dump {

class ExecutionOrder {
 public:
  // Errors: invalid_model, as of ValueTable.
  static Result<ExecutionOrder> of(std::shared_ptr<const Model> model);

  // Positions are compared number by number. A value that the model does not have comes after everything else of its
  // step or body.
  std::vector<int64_t> location_of(const ValuePath& path);

 private:
  explicit ExecutionOrder(ValueTable value_infos) : value_infos_(std::move(value_infos)) {}
  const GraphValues* body_of(const GraphValues& value_infos, const Frame& frame);

  ValueTable value_infos_;
  std::map<std::tuple<const GraphValues*, Frame::Kind, std::string>, const GraphValues*> bodies_;  // as they were found
};

}  // namespace parallax::dump
