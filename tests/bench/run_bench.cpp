// SPDX-License-Identifier: Apache-2.0
// Speed of the executor "cpu": a transformer layer (hidden 768, sequence 128) against the products in it alone, by the
// same library in the same run; and what one tiny node costs. Prints ratios; the figures are times of this machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "inspector/model/opset/opset_registry.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/plan/runtime.h"

namespace parallax {
namespace {

constexpr int64_t kRows = 128;
constexpr int64_t kHidden = 768;
constexpr int64_t kInner = 3072;

double best_ms(int rounds, const std::function<void()>& work) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

// Builds a graph of float values by appending nodes.
class GraphMaker {
 public:
  GraphMaker() {
    model_->path = "bench";
    model_->ir_version = 8;
    model_->opset_imports.push_back({"", 17});
    model_->graph.name = "bench";
  }

  ValueId value(const Shape& shape) {
    ValueDef& definition = model_->graph.values.emplace_back();
    definition.name = fmt::format("v{}", model_->graph.values.size());
    definition.type = TypeInfo::tensor(DType::float32);
    definition.type.dims.emplace();
    for (int64_t dim : shape) definition.type.dims->push_back({dim, ""});
    return static_cast<ValueId>(model_->graph.values.size()) - 1;
  }

  ValueId input(const Shape& shape) {
    const ValueId id = value(shape);
    definition(id).input_index = static_cast<int32_t>(model_->graph.inputs.size());
    model_->graph.inputs.push_back(id);
    return id;
  }

  ValueId weight(const Shape& shape) {
    const ValueId id = value(shape);
    Tensor tensor = Tensor::allocate(DType::float32, shape).take();
    uint32_t state = 12345;
    for (float& element : tensor.mutable_as<float>()) {
      state = state * 1664525U + 1013904223U;
      element = static_cast<float>(state >> 8) / 16777216.0F * 0.1F - 0.05F;
    }
    definition(id).initializer_index = static_cast<int32_t>(model_->graph.initializers.size());
    StoredTensor& stored = model_->graph.initializers.emplace_back();
    stored.name = definition(id).name;
    stored.tensor = std::move(tensor);
    model_->graph.initializer_values.push_back(id);
    return id;
  }

  ValueId node(const std::string& op, const std::vector<ValueId>& inputs, const Shape& shape) {
    const ValueId output = value(shape);
    Node& made = model_->graph.nodes.emplace_back();
    made.op_type = op;
    made.display_name = op + "_" + std::to_string(model_->graph.nodes.size());
    made.opset_version = 17;
    made.schema = OpsetRegistry::standard().find("", op, 17);
    made.inputs = inputs;
    made.outputs = {output};
    const auto id = static_cast<NodeId>(model_->graph.nodes.size()) - 1;
    definition(output).producer = id;
    definition(output).output_index = 0;
    model_->graph.order.push_back(id);
    return output;
  }

  std::shared_ptr<const Model> finish(ValueId output) {
    definition(output).is_graph_output = true;
    model_->graph.outputs.push_back(output);
    return model_;
  }

 private:
  ValueDef& definition(ValueId id) { return model_->graph.values[static_cast<size_t>(id)]; }

  std::shared_ptr<Model> model_ = std::make_shared<Model>();
};

// Projections, residuals, GELU from its parts, LayerNormalization: a layer without the attention core.
std::shared_ptr<const Model> layer() {
  GraphMaker graph;
  const Shape wide{kRows, kHidden}, inner{kRows, kInner};
  const ValueId x = graph.input(wide);
  ValueId h = x;
  for (int projection = 0; projection < 4; ++projection) {
    h = graph.node("MatMul", {h, graph.weight({kHidden, kHidden})}, wide);
    h = graph.node("Add", {h, graph.weight({kHidden})}, wide);
  }
  h = graph.node("Add", {h, x}, wide);
  h = graph.node("LayerNormalization", {h, graph.weight({kHidden}), graph.weight({kHidden})}, wide);
  ValueId up = graph.node("MatMul", {h, graph.weight({kHidden, kInner})}, inner);
  up = graph.node("Add", {up, graph.weight({kInner})}, inner);
  const ValueId erf = graph.node("Erf", {graph.node("Mul", {up, graph.weight({1})}, inner)}, inner);
  up = graph.node("Mul", {up, graph.node("Add", {erf, graph.weight({1})}, inner)}, inner);
  ValueId down = graph.node("MatMul", {up, graph.weight({kInner, kHidden})}, wide);
  down = graph.node("Add", {down, h}, wide);
  return graph.finish(graph.node("Softmax", {down}, wide));
}

double products_ms() {
  runtime::Queue<runtime::Cpu> queue(runtime::BufferPool::create({}));
  const std::vector<float> a(static_cast<size_t>(kRows * kInner), 0.5F),
      b(static_cast<size_t>(kHidden * kInner), 0.25F);
  std::vector<float> c(static_cast<size_t>(kRows * kInner));
  const auto product = [&](int64_t n, int64_t k) {
    runtime::GemmProblem problem;
    problem.m = kRows;
    problem.n = n;
    problem.k = k;
    problem.b_is_constant = true;
    const Status status = gemm(queue, problem, a.data(), b.data(), c.data());
    if (!status.ok()) std::printf("%s\n", status.error().message.c_str());
  };
  return best_ms(15, [&] {
    for (int projection = 0; projection < 4; ++projection) product(kHidden, kHidden);
    product(kInner, kHidden);
    product(kHidden, kInner);
    benchmark::DoNotOptimize(c.data());
  });
}

double executor_ms(const std::shared_ptr<const Model>& model, const Shape& input, int rounds) {
  auto session = make_cpu_executor()->prepare(model, {});
  if (!session.ok()) {
    std::printf("%s\n", session.error().message.c_str());
    return 0;
  }
  const std::vector<Value> inputs{Tensor::zeros(DType::float32, input).take()};
  NullObserver nobody;
  return best_ms(rounds, [&] {
    const auto outputs = (*session)->run(inputs, nobody);
    if (!outputs.ok()) std::printf("%s\n", outputs.error().message.c_str());
  });
}

double dispatch_ns() {
  constexpr int kNodes = 1000;
  GraphMaker graph;
  ValueId h = graph.input({8});
  for (int i = 0; i < kNodes; ++i) h = graph.node("Neg", {h}, {8});
  return executor_ms(graph.finish(h), {8}, 30) * 1e6 / kNodes;
}

}  // namespace
}  // namespace parallax

int main() {
  const double layer_ms = parallax::executor_ms(parallax::layer(), {parallax::kRows, parallax::kHidden}, 15);
  const double products_ms = parallax::products_ms();
  std::printf("layer %.3f ms, its products alone %.3f ms, ratio %.2f\n", layer_ms, products_ms, layer_ms / products_ms);
  std::printf("one tiny node %.0f ns\n", parallax::dispatch_ns());
}
