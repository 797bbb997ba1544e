// Builds models of cases, runs them and compares.
#include "tests/ops/op_case.h"

#include <fmt/format.h>

#include "inspector/diff/compare.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"

namespace parallax::tests {
namespace {

Tensor floats(DType dtype, const Dims& dims, const std::vector<double>& values) {
  Tensor tensor = Tensor::allocate(dtype, Shape(dims)).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

Tensor integers(DType dtype, const Dims& dims, const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::allocate(dtype, Shape(dims)).take();
  store_int64s(tensor, 0, values);
  return tensor;
}

struct AttributeSetter {
  Attribute& attribute;
  void set(AttributeType type, Attribute::Value value) const {
    attribute.type = type;
    attribute.value = std::move(value);
  }
  void operator()(int64_t value) const { set(AttributeType::int_, value); }
  void operator()(float value) const { set(AttributeType::float_, value); }
  void operator()(const std::string& value) const { set(AttributeType::string, value); }
  void operator()(const std::vector<int64_t>& value) const { set(AttributeType::ints, value); }
  void operator()(const std::vector<float>& value) const { set(AttributeType::floats, value); }
  void operator()(const std::vector<std::string>& value) const { set(AttributeType::strings, value); }
  void operator()(const Value& value) const {
    StoredTensor stored;
    stored.tensor = value.tensor();
    set(AttributeType::tensor, std::move(stored));
  }
};

ValueId add_value(Graph& graph, std::string name, const Value& value) {
  ValueDef definition;
  definition.name = std::move(name);
  definition.type = type_of(value);
  graph.values.push_back(std::move(definition));
  return static_cast<ValueId>(graph.values.size()) - 1;
}

// An executor that carries floats wider is judged after one rounding to the type the model declares.
Value as_declared(const Value& declared, Value actual) {
  if (!declared.is_tensor() || !actual.is_tensor()) return actual;
  const DType dtype = declared.tensor().dtype();
  if (!is_floating(dtype) || actual.tensor().dtype() != DType::float64) return actual;
  Tensor rounded = Tensor::allocate(dtype, actual.tensor().shape()).take();
  store_doubles(rounded, 0, actual.tensor().as<double>());
  return rounded;
}

}  // namespace

Value f32(const Dims& dims, const std::vector<double>& values) { return floats(DType::float32, dims, values); }
Value f64(const Dims& dims, const std::vector<double>& values) { return floats(DType::float64, dims, values); }
Value f16(const Dims& dims, const std::vector<double>& values) { return floats(DType::float16, dims, values); }
Value i64(const Dims& dims, const std::vector<int64_t>& values) { return integers(DType::int64, dims, values); }
Value i32(const Dims& dims, const std::vector<int64_t>& values) { return integers(DType::int32, dims, values); }
Value i8(const Dims& dims, const std::vector<int64_t>& values) { return integers(DType::int8, dims, values); }
Value u8(const Dims& dims, const std::vector<int64_t>& values) { return integers(DType::uint8, dims, values); }
Value u64(const Dims& dims, const std::vector<uint64_t>& values) { return Tensor::from<uint64_t>(Shape(dims), values); }
Value boolean(const Dims& dims, const std::vector<bool>& values) {
  return integers(DType::bool_, dims, std::vector<int64_t>(values.begin(), values.end()));
}
Value text(const Dims& dims, const std::vector<std::string>& values) {
  return Tensor::from<std::string>(Shape(dims), values);
}

std::vector<OpCase> all_op_cases() {
  std::vector<OpCase> all;
  for (auto* family : {elementwise_cases, movement_cases, reduction_cases, products_cases, sequential_cases}) {
    for (OpCase& op_case : family()) all.push_back(std::move(op_case));
  }
  return all;
}

std::shared_ptr<const Model> model_of(const OpCase& op_case) {
  auto model = std::make_shared<Model>();
  model->path = "case " + op_case.name;
  model->ir_version = 10;
  model->opset_imports = {{"", op_case.opset}};
  Graph& graph = model->graph;
  graph.name = op_case.name;
  Node node;
  node.op_type = op_case.op;
  for (size_t index = 0; index < op_case.inputs.size(); ++index) {
    const bool given = !op_case.inputs[index].is_absent();
    node.inputs.push_back(given ? add_value(graph, fmt::format("in{}", index), op_case.inputs[index]) : kNoValue);
    if (given) graph.inputs.push_back(node.inputs.back());
  }
  for (size_t index = 0; index < op_case.expected.size(); ++index) {
    node.outputs.push_back(add_value(graph, fmt::format("out{}", index), op_case.expected[index]));
    graph.outputs.push_back(node.outputs.back());
  }
  for (const CaseAttribute& given : op_case.attributes) {
    Attribute& attribute = node.attributes.emplace_back();
    attribute.name = given.name;
    std::visit(AttributeSetter{attribute}, given.value);
  }
  graph.nodes.push_back(std::move(node));
  link_graph(graph);
  resolve_operators(*model);
  return model;
}

Result<std::string> problem_with(const OpCase& op_case, Executor& executor) {
  auto session = PX_TRY(executor.prepare(model_of(op_case), {}));
  std::vector<Value> inputs;
  for (const Value& input : op_case.inputs) {
    if (!input.is_absent()) inputs.push_back(input);
  }
  NullObserver observer;
  const std::vector<Value> outputs = PX_TRY(session->run(inputs, observer));
  std::vector<NamedValue> expected;
  std::vector<NamedValue> actual;
  for (size_t index = 0; index < outputs.size(); ++index) {
    expected.push_back({fmt::format("out{}", index), op_case.expected[index]});
    actual.push_back({expected.back().name, as_declared(op_case.expected[index], outputs[index])});
  }
  for (const ValueComparison& value : compare_expected(expected, actual, executor.name(), {})) {
    if (value.verdict == Verdict::pass) continue;
    return fmt::format("{}: {} {} severity {}", value.path, name_of(value.verdict), value.reason, value.severity);
  }
  return std::string();
}

}  // namespace parallax::tests
