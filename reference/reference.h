// The reference executor: the oracle that other executors are judged by. Slow, plain, and the same bits everywhere.
#pragma once

#include <memory>

#include "inspector/exec/executor.h"

namespace parallax {

enum class ReferencePrecision : uint8_t {
  declared,  // each operator's result is rounded once to the type the model declares; sums run in double
  double_,   // every floating tensor is carried as float64 through the whole graph, inputs and weights included
};

// Named "reference" and "reference:double".
std::unique_ptr<Executor> make_reference_executor(ReferencePrecision precision);

}  // namespace parallax
