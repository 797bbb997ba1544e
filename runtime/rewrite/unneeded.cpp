// SPDX-License-Identifier: Apache-2.0
// Patterns that drop work nobody needs: nodes whose results nothing reads, and nodes that repeat an earlier one.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "inspector/model/link.h"
#include "inspector/model/opset/op_schema.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

// Two of these with the same inputs need not give the same.
constexpr std::array<std::string_view, 7> kDraw = {
    "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"};

bool is_plain(const Node& node) {
  return node.schema != nullptr && node.function == nullptr && bodies_of(node).empty();
}

bool is_needed(const Fuser& fuser, const GraphEdit& edit, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
    if (output == kNoValue) return false;
    const auto index = static_cast<size_t>(output);
    return edit.pinned[index] || edit.captured[index] || !fuser.readers(output).empty();
  });
}

// ---- What makes two nodes equal, as text ----

void append(std::string& key, const void* data, size_t bytes) {
  key.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  key.append(static_cast<const char*>(data), bytes);
}

constexpr size_t kLargestTensor = 4096;  // bytes of an attribute worth comparing

// False for a value that is not compared (large tensors, types).
struct AppendValue {
  std::string& key;
  bool operator()(std::monostate) const { return false; }
  bool operator()(float value) const { return append(key, &value, sizeof value), true; }
  bool operator()(int64_t value) const { return append(key, &value, sizeof value), true; }
  bool operator()(const std::string& value) const { return append(key, value.data(), value.size()), true; }
  bool operator()(const StoredTensor& value) const {
    const Tensor& tensor = value.tensor;
    if (tensor.dtype() == DType::string || tensor.size_bytes() > kLargestTensor) return false;
    append(key, tensor.shape().begin(), tensor.shape().rank() * sizeof(int64_t));
    const auto dtype = tensor.dtype();
    append(key, &dtype, sizeof dtype);
    return append(key, tensor.view().data, tensor.size_bytes()), true;
  }
  bool operator()(const std::vector<float>& values) const {
    return append(key, values.data(), values.size() * sizeof(float)), true;
  }
  bool operator()(const std::vector<int64_t>& values) const {
    return append(key, values.data(), values.size() * sizeof(int64_t)), true;
  }
  bool operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) append(key, value.data(), value.size());
    return append(key, nullptr, 0), true;
  }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

// Empty where the node is not to be compared.
std::string key_of(const Fuser& fuser, const Node& node) {
  if (!is_plain(node) || std::find(kDraw.begin(), kDraw.end(), node.op_type) != kDraw.end()) return "";
  std::string key = node.domain + "." + node.op_type + "." + std::to_string(node.schema->since_version) + ".";
  std::vector<const Attribute*> attributes;
  for (const Attribute& attribute : node.attributes) attributes.push_back(&attribute);
  std::sort(attributes.begin(), attributes.end(),
            [](const Attribute* a, const Attribute* b) { return a->name < b->name; });
  for (const Attribute* attribute : attributes) {
    append(key, attribute->name.data(), attribute->name.size());
    if (!std::visit(AppendValue{key}, attribute->value)) return "";
  }
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    const ValueId input = fuser.input(node, index);
    append(key, &input, sizeof input);
  }
  for (ValueId output : node.outputs) key += output == kNoValue ? '-' : '+';
  return key;
}

bool take_from(Fuser& fuser, GraphEdit& edit, size_t position, const Node& first) {
  const Node& node = *fuser.at(position);
  std::vector<ValueId> outputs;
  for (ValueId output : node.outputs) {
    if (output != kNoValue) outputs.push_back(output);
  }
  const bool has_pinned = std::any_of(outputs.begin(), outputs.end(),
                                      [&](ValueId output) { return edit.pinned[static_cast<size_t>(output)]; });
  if (outputs.size() != 1 || has_pinned || node.outputs[0] == kNoValue) return false;
  return fuser.alias(position, first.outputs[0]);
}

}  // namespace

void drop_dead_nodes(GraphEdit& edit, const RewriteContext&) {
  Fuser fuser(edit);
  for (size_t position = fuser.count(); position-- > 0;) {
    const Node* node = fuser.at(position);
    if (node == nullptr || !is_plain(*node) || node->op_type == "Constant" || is_needed(fuser, edit, *node)) continue;
    fuser.remove(position, ValueAbsence::Kind::removed);
  }
}

void drop_duplicates(GraphEdit& edit, const RewriteContext&) {
  Fuser fuser(edit);
  std::map<std::string, size_t> seen;
  for (size_t position = 0; position < fuser.count(); ++position) {
    if (fuser.at(position) == nullptr) continue;
    const std::string key = key_of(fuser, *fuser.at(position));
    if (key.empty()) continue;
    const auto [first, is_new] = seen.emplace(key, position);
    if (!is_new) take_from(fuser, edit, position, *fuser.at(first->second));
  }
}

}  // namespace parallax::runtime
