// SPDX-License-Identifier: Apache-2.0
// Compares shape inference of single nodes with what onnx's own inference says: see make_shape_cases.py.
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/shape_inference/infer_types.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

using testing::GraphBuilder;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

Tensor tensor_from_text(const TypeInfo& type, const std::string& values) {
  std::vector<int64_t> dims;
  for (const Dim& dim : *type.dims) dims.push_back(dim.value);
  const Shape shape{std::span<const int64_t>(dims)};
  if (type.dtype == DType::float32) {
    std::vector<float> numbers;
    for (const std::string& value : split(values, ',')) numbers.push_back(std::stof(value));
    return Tensor::from<float>(shape, numbers);
  }
  std::vector<int64_t> numbers;
  for (const std::string& value : split(values, ',')) numbers.push_back(std::stoll(value));
  return Tensor::from<int64_t>(shape, numbers);
}

Attribute::Value attribute_from_text(const std::string& text) {
  if (text.front() == '"') return text.substr(1, text.size() - 2);
  const bool is_float = text.find('.') != std::string::npos;
  if (text.front() != '[')
    return is_float ? Attribute::Value(std::stof(text)) : Attribute::Value(int64_t{std::stoll(text)});
  std::vector<float> floats;
  std::vector<int64_t> integers;
  for (const std::string& item : split(text.substr(1, text.size() - 2), ',')) {
    if (is_float) floats.push_back(std::stof(item));
    if (!is_float) integers.push_back(std::stoll(item));
  }
  return is_float ? Attribute::Value(floats) : Attribute::Value(integers);
}

struct Case {
  std::string op;
  int64_t opset = 0;
  std::vector<std::string> inputs, attributes, expected;
};

Case case_from_line(const std::string& line) {
  const auto parts = split(line, '|');
  Case result;
  std::string head = words_of(parts.at(0)).at(0);
  result.opset = std::stoll(head.substr(head.rfind('-') + 1));
  head.resize(head.rfind('-'));
  result.op = head.substr(0, head.find(':'));
  result.inputs = words_of(parts.at(1));
  result.attributes = words_of(parts.at(2));
  result.expected = words_of(parts.at(3));
  return result;
}

GraphBuilder graph_of(const Case& test) {
  GraphBuilder builder(test.opset);
  std::vector<std::string> inputs, outputs;
  for (const std::string& text : test.inputs) {
    inputs.push_back(text == "-" ? "" : "x" + std::to_string(inputs.size()));
    const size_t equals = text.find('=');
    if (text == "-") continue;
    if (equals == std::string::npos) {
      builder.input(inputs.back(), text);
    } else {
      const std::string values = text.substr(equals + 2, text.size() - equals - 3);
      builder.initializer(inputs.back(), tensor_from_text(testing::type_from_text(text.substr(0, equals)), values));
    }
  }
  for (size_t index = 0; index < test.expected.size(); ++index) outputs.push_back("y" + std::to_string(index));
  std::vector<std::pair<std::string, Attribute::Value>> attributes;
  for (const std::string& text : test.attributes) {
    const size_t equals = text.find('=');
    attributes.emplace_back(text.substr(0, equals), attribute_from_text(text.substr(equals + 1)));
  }
  return builder.node(test.op, inputs, outputs, std::move(attributes));
}

// Everything that is expected must be known; what is not expected may be known too.
bool covers(const TypeInfo& inferred, const TypeInfo& expected) {
  if (expected.kind == TypeInfo::Kind::unknown) return true;
  if (inferred.kind != expected.kind || inferred.dtype != expected.dtype) return false;
  if (!expected.dims) return true;
  if (!inferred.dims || inferred.dims->size() != expected.dims->size()) return false;
  for (size_t axis = 0; axis < expected.dims->size(); ++axis) {
    const Dim& dim = (*expected.dims)[axis];
    if ((dim.is_known() || !dim.name.empty()) && (*inferred.dims)[axis] != dim) return false;
  }
  return true;
}

TEST(ShapeInference, AgreesWithOnnxOnSingleNodes) {
  std::ifstream file(PX_SOURCE_DIR "/tests/inspector/model/shape_cases.txt");
  size_t cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    ++cases;
    const Case test = case_from_line(line);
    const Model model = graph_of(test).model();
    const ModelTypes types = infer_types(model);
    for (const TypeProblem& problem : types.problems) ADD_FAILURE() << line << "\n" << problem.message;
    for (size_t index = 0; index < test.expected.size(); ++index) {
      const TypeInfo& inferred = types.type_of(model.graph, model.graph.find_value("y" + std::to_string(index)));
      EXPECT_TRUE(covers(inferred, testing::type_from_text(test.expected[index])))
          << line << "\noutput " << index << " is " << to_string(inferred);
    }
  }
  EXPECT_GE(cases, 150U);
}

}  // namespace
}  // namespace parallax
