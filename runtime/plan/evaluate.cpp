// SPDX-License-Identifier: Apache-2.0
// The evaluator keeps its own memory and packed weights for as long as it lives.
#include "runtime/plan/evaluate.h"

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/ops/table.h"

namespace parallax::runtime {

EvaluateNode host_evaluation() {
  const auto queue = std::make_shared<Queue<Cpu>>(BufferPool::create({}));
  return [queue](const Node& node, std::span<const Value> inputs) -> Result<std::vector<Value>> {
    std::vector<OpInput> operands;
    std::vector<DType> dtypes;
    for (const Value& input : inputs) {
      operands.push_back({&input, false, false});
      dtypes.push_back(input.is_tensor() ? input.tensor().dtype() : DType::undefined);
      if (!input.is_tensor() && !input.is_absent())
        return unsupported("an input is a sequence, an optional or a map; only tensors are folded");
    }
    const KernelRow<Cpu>* kernel = PX_TRY(find_kernel<Cpu>(node, dtypes));
    OpContext<Cpu> op(node, operands, 0, *queue);
    PX_TRY(kernel->run(op));
    return op.take_outputs();
  };
}

}  // namespace parallax::runtime
