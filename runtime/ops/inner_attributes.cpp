// Attributes for the nodes of inner_op.h, and integers of tensors.
#include "runtime/device/blocks.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

template <class T>
Attribute attribute(std::string name, AttributeType type, T value) {
  Attribute made;
  made.name = std::move(name);
  made.type = type;
  made.value = std::move(value);
  return made;
}

}  // namespace

Attribute inner_int(std::string name, int64_t value) { return attribute(std::move(name), AttributeType::int_, value); }
Attribute inner_float(std::string name, double value) {
  return attribute(std::move(name), AttributeType::float_, static_cast<float>(value));
}
Attribute inner_ints(std::string name, std::vector<int64_t> values) {
  return attribute(std::move(name), AttributeType::ints, std::move(values));
}

Attribute inner_text(std::string name, std::string value) {
  return attribute(std::move(name), AttributeType::string, std::move(value));
}

std::vector<Attribute> passed_on(const OpCall& op, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> attributes;
  for (std::string_view name : names) {
    if (const Attribute* found = find_attribute(op.node(), name)) attributes.push_back(*found);
  }
  return attributes;
}

Ints all_integers(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.element_count()));
  load_block<int64_t>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  return values;
}

}  // namespace parallax::runtime
