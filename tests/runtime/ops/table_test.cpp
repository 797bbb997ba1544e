// SPDX-License-Identifier: Apache-2.0
// The table of kernels against the operator registry, and how little an operator needs: one functor and one row.
#include "runtime/ops/table.h"

#include <set>

#include <gtest/gtest.h>

#include "inspector/model/opset/opset_registry.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/math.h"
#include "runtime/ops/pointwise/pointwise.h"
#include "runtime/rewrite/fused_ops.h"

namespace parallax::runtime {
namespace {

TEST(KernelTable, NamesOnlyOperatorsThatExist) {
  for (const KernelRow<Cpu>& row : kernel_table<Cpu>()) {
    // Operators that only rewrites make are in no registry.
    const bool is_published = !OpsetRegistry::standard().versions(row.domain, row.op).empty();
    EXPECT_NE(is_published, row.domain == kFusedDomain) << row.op;
    EXPECT_NE(row.run, nullptr) << row.op;
    EXPECT_LE(row.since_first, row.since_last) << row.op;
    EXPECT_NE(row.dtypes, 0U) << row.op;
  }
}

// Two rows of one operator must differ in what they run: after a row that takes every node, the second would never be
// reached.
TEST(KernelTable, HasNoRowTwice) {
  std::set<std::tuple<std::string_view, std::string_view, int64_t, int64_t, uint32_t>> seen;
  for (const KernelRow<Cpu>& row : kernel_table<Cpu>()) {
    const std::tuple key{row.domain, row.op, row.since_first, row.since_last, row.dtypes};
    EXPECT_EQ(seen.count(key), 0U) << row.op;
    if (row.supports == nullptr) seen.insert(key);
  }
  EXPECT_GE(seen.size(), 150U);
}

Node node_of(std::string op, int64_t opset, int64_t inputs) {
  Node node;
  node.op_type = node.display_name = std::move(op);
  node.opset_version = opset;
  node.schema = OpsetRegistry::standard().find("", node.op_type, opset);
  for (int64_t i = 0; i < inputs; ++i) node.inputs.push_back(static_cast<ValueId>(i));
  node.outputs.push_back(static_cast<ValueId>(inputs));
  return node;
}

TEST(FindKernel, SaysWhatIsMissing) {
  const Node unknown = node_of("NoSuchOperator", 20, 1);
  const auto none = find_kernel<Cpu>(unknown, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::unsupported);
  const Node exp = node_of("Exp", 20, 1);
  const DType integer[] = {DType::int32};
  const auto wrong_type = find_kernel<Cpu>(exp, integer);
  ASSERT_FALSE(wrong_type.ok());
  EXPECT_NE(wrong_type.error().message.find("int32"), std::string::npos);
  const DType unknown_type[] = {DType::undefined};
  EXPECT_TRUE(find_kernel<Cpu>(exp, unknown_type).ok());
}

// ---- All that a new operator takes ----

struct Softcap {  // the formula
  float limit;
  explicit Softcap(const OpCall& op) : limit(static_cast<float>(op.real("alpha"))) {}
  template <class T>
  PX_HD T operator()(T x) const {
    return static_cast<T>(limit) * math::tanh(x / static_cast<T>(limit));
  }
};
constexpr KernelRow<Cpu> kRow{"Elu", kFloats, unary<Cpu, Floats, Softcap>};  // the row

TEST(AddingAnOperator, TakesOneFunctorAndOneRow) {
  Node node = node_of("Elu", 20, 1);
  Attribute limit;
  limit.name = "alpha";
  limit.type = AttributeType::float_;
  limit.value = 2.0F;
  node.attributes.push_back(limit);
  Queue<Cpu> queue(BufferPool::create({}));
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    const double numbers[] = {-3.0, 0.0, 0.5, 100.0};
    const Tensor x = queue.allocate(dtype, {2, 2}).take();
    store_block<double>(dtype, x.storage().get(), 0, 4, numbers);
    const Value value = x;
    const OpInput inputs[] = {{&value, false, false}};
    OpContext<Cpu> op(node, inputs, 0, queue);
    ASSERT_TRUE(kRow.run(op).ok());
    const std::vector<Value> outputs = op.take_outputs();
    ASSERT_EQ(outputs.at(0).tensor().dtype(), dtype);
    for (int64_t i = 0; i < 4; ++i) {
      const double expected = 2.0 * std::tanh(numbers[i] / 2.0);
      EXPECT_NEAR(load_element<double>(dtype, outputs[0].tensor().view().data, i), expected,
                  dtype == DType::float64   ? 1e-15
                  : dtype == DType::float32 ? 1e-6
                                            : 1e-2);
    }
  }
}

TEST(InPlace, OnlyWhenNobodyElseLooks) {
  const Node node = node_of("Relu", 20, 1);
  Queue<Cpu> queue(BufferPool::create({}));
  const KernelRow<Cpu>* row = find_kernel<Cpu>(node, {}).take();
  for (bool dying : {false, true}) {
    for (bool shared : {false, true}) {
      Value value = queue.allocate(DType::float32, {100}).take();
      const float minus = -1;
      for (int64_t i = 0; i < 100; ++i)
        store_block<float>(DType::float32, value.tensor().storage().get(), i, 1, &minus);
      const std::byte* before = value.tensor().view().data;
      const Value other = shared ? value : Value();
      const OpInput inputs[] = {{&value, false, dying}};
      OpContext<Cpu> op(node, inputs, 0, queue);
      ASSERT_TRUE(row->run(op).ok());
      const std::vector<Value> outputs = op.take_outputs();
      EXPECT_EQ(outputs.at(0).tensor().view().data == before, dying && !shared);
      EXPECT_EQ(outputs[0].tensor().as<float>()[7], 0.0F);
      if (shared) {
        EXPECT_EQ(other.tensor().as<float>()[7], -1.0F);
      }
    }
  }
}

}  // namespace
}  // namespace parallax::runtime
