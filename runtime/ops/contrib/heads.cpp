// SPDX-License-Identifier: Apache-2.0
// Chains of the operators of ai.onnx under com.microsoft's attention.
#include "runtime/ops/contrib/heads.h"

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

Tensor one_integer(int64_t value) { return Tensor::vector<int64_t>(std::span<const int64_t>(&value, 1)); }

}  // namespace

Result<Tensor> split_heads(Context& op, const Tensor& x, int64_t heads) {
  const Ints dims(x.shape());
  if (dims.size() != 3 || heads < 1 || dims[2] % heads != 0)
    return wrong_shape("the tensor of heads", x.shape(), "have rank 3 and a last axis that splits into {} heads",
                       heads);
  const Tensor seen = PX_TRY(reshaped(x, {dims[0], dims[1], heads, dims[2] / heads}));
  return inner_transpose(op, seen, {0, 2, 1, 3});
}

Result<Tensor> join_heads(Context& op, const Tensor& x) {
  const Ints dims(x.shape());
  const Tensor moved = PX_TRY(inner_transpose(op, x, {0, 2, 1, 3}));
  return reshaped(moved, {dims[0], dims[2], dims[1] * dims[3]});
}

Result<Tensor> columns(Context& op, const Tensor& x, int64_t begin, int64_t end) {
  return run_inner(op, {"Slice", 13}, {x, one_integer(begin), one_integer(end), one_integer(-1)});
}

Result<Tensor> packed_part(Context& op, const Tensor& x, int64_t heads, int64_t parts, int64_t part) {
  const Ints dims(x.shape());
  if (dims.size() != 5 || dims[2] != heads || dims[3] != parts)
    return wrong_shape("the packed tensor", x.shape(), "be [batch,length,{},{},size]", heads, parts);
  const Tensor own =
      PX_TRY(run_inner(op, {"Gather", 13, {int_attribute("axis", 3)}}, {x, Tensor::scalar<int64_t>(part)}));
  return inner_transpose(op, own, {0, 2, 1, 3});
}

Result<Tensor> joined_rows(Context& op, const Tensor& a, const Tensor& b) {
  return run_inner(op, {"Concat", 13, {int_attribute("axis", 2)}}, {a, b});
}

Result<Tensor> both_masks(Context& op, const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return inner_binary(op, "Add", a, b);
}

Result<Attended> attend(Context& op, const Heads& heads) {
  InnerOp inner{"Attention", 23, {int_attribute("is_causal", heads.causal ? 1 : 0)}};
  if (heads.scale != 0) inner.attributes.push_back(float_attribute("scale", heads.scale));
  if (heads.softcap != 0) inner.attributes.push_back(float_attribute("softcap", heads.softcap));
  if (heads.shown >= 0) {
    inner.attributes.push_back(int_attribute("qk_matmul_output_mode", heads.shown));
    inner.output_count = 4;
  }
  Value mask;
  if (heads.mask.defined()) mask = PX_TRY(inner_cast(op, heads.mask, heads.q.dtype()));
  const int64_t past = heads.causal ? heads.past : 0;
  std::vector<Value> inputs{heads.q, heads.k, heads.v, mask};
  if (past > 0) {
    for (const size_t which : {size_t{1}, size_t{2}}) {
      const Tensor all = inputs[which].tensor();
      const auto rows = [&](int64_t begin, int64_t end) {
        return run_inner(op, {"Slice", 13}, {all, one_integer(begin), one_integer(end), one_integer(2)});
      };
      inputs.emplace_back(PX_TRY(rows(0, past)));
      inputs[which] = PX_TRY(rows(past, all.shape()[2]));
    }
  }
  const std::vector<Value> outputs = PX_TRY(run_inner_all(op, inner, inputs));
  return Attended{outputs[0].tensor(), heads.shown >= 0 ? outputs[3].tensor() : Tensor()};
}

}  // namespace parallax::runtime
