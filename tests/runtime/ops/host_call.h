// SPDX-License-Identifier: Apache-2.0
// One operator on the host, run alone: what it gives has to be the same bits by vectors of every width and any number
// of threads.
#pragma once

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "inspector/model/opset/opset_registry.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/ops/table.h"

namespace parallax::runtime {
namespace host_paths_test {

struct Call {
  Node node;
  std::vector<Value> inputs;

  Call(std::string op, int64_t opset, std::vector<Value> values, std::string domain = "") : inputs(std::move(values)) {
    node.op_type = node.display_name = std::move(op);
    node.opset_version = opset;
    node.domain = std::move(domain);
    node.schema = OpsetRegistry::standard().find(node.domain, node.op_type, opset);
    for (size_t i = 0; i < inputs.size(); ++i) node.inputs.push_back(static_cast<ValueId>(i));
    node.outputs.push_back(static_cast<ValueId>(inputs.size()));
  }
  void set(const std::string& name, int64_t value) { add(name, AttributeType::int_).value = value; }
  void set(const std::string& name, const std::string& text) { add(name, AttributeType::string).value = text; }
  Attribute& add(const std::string& name, AttributeType type) {
    Attribute& attribute = node.attributes.emplace_back();
    attribute.name = name;
    attribute.type = type;
    return attribute;
  }

  Tensor run() const {
    Queue<Cpu> queue(BufferPool::create({.poison = true}));
    std::vector<OpInput> given;
    for (const Value& value : inputs) given.push_back({&value, false, false});
    OpContext<Cpu> op(node, given, 0, queue);
    const DType types[] = {inputs[0].tensor().dtype()};
    const Status ran = find_kernel<Cpu>(node, types).take()->run(op);
    EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
    return op.take_outputs().at(0).tensor();
  }
};

template <class T>
Tensor tensor_of(const Shape& shape, const std::vector<T>& values) {
  Tensor tensor = Tensor::allocate(storage_of<T>(), shape).take();
  std::memcpy(tensor.storage().get(), values.data(), values.size() * sizeof(T));
  return tensor;
}

template <class T>
void expect_everywhere(const Call& call, const std::function<double(int64_t element)>& expected, double tolerance,
                       const std::string& name) {
  const Tensor first = call.run();
  for (int64_t i = 0; i < first.element_count(); ++i)
    ASSERT_NEAR(static_cast<double>(first.as<T>()[static_cast<size_t>(i)]), expected(i), tolerance)
        << name << ", " << i;
  const VectorLevel widest = vector_level();
  for (const VectorLevel level : {VectorLevel::baseline, VectorLevel::avx2, VectorLevel::avx512}) {
    if (level > widest) continue;
    for (const int threads : {1, 3}) {
      set_vector_level_for_tests(level);
      set_thread_count(threads);
      const Tensor again = call.run();
      EXPECT_EQ(std::memcmp(again.view().data, first.view().data, first.as<T>().size_bytes()), 0)
          << name << ", level " << static_cast<int>(level) << ", " << threads << " threads";
    }
  }
  set_vector_level_for_tests(widest);
  set_thread_count(0);
}

}  // namespace host_paths_test
}  // namespace parallax::runtime
