// SPDX-License-Identifier: Apache-2.0
// Walks from the input to its encoders and remembers which of its columns are still there.
#include "inspector/workbench/inputs/categories.h"

#include <algorithm>
#include <array>
#include <optional>

#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr int kMaxCategorySteps = 12;
constexpr size_t kMaxColumns = 4096;
constexpr std::array<std::string_view, 10> kKeepElements = {
    "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Imputer", "StringNormalizer", "Concat"};

template <class T>
const T* attribute_as(const Node& node, std::string_view name) {
  const Attribute* attribute = find_attribute(node, name);
  return attribute == nullptr ? nullptr : std::get_if<T>(&attribute->value);
}

// The list of that name: of strings, integers or floats, or a tensor of them.
void read_list(const Node& node, std::string_view name, Categories& categories) {
  if (const auto* texts = attribute_as<std::vector<std::string>>(node, name)) categories.texts = *texts;
  if (const auto* integers = attribute_as<std::vector<int64_t>>(node, name))
    categories.numbers.assign(integers->begin(), integers->end());
  if (const auto* floats = attribute_as<std::vector<float>>(node, name))
    categories.numbers.assign(floats->begin(), floats->end());
  const auto* stored = attribute_as<StoredTensor>(node, name);
  if (stored == nullptr || !stored->tensor.defined()) return;
  if (stored->tensor.dtype() == DType::string) {
    const auto texts = stored->tensor.as<std::string>();
    categories.texts.assign(texts.begin(), texts.end());
  } else {
    categories.numbers.resize(static_cast<size_t>(stored->tensor.element_count()));
    load_doubles(stored->tensor, 0, categories.numbers);
  }
}

struct EncoderLists {
  std::string_view op;
  std::array<std::string_view, 4> lists;  // the first that the node has and that fits the type counts
};
constexpr std::array<EncoderLists, 4> kEncoders = {{
    {"OneHotEncoder", {"cats_strings", "cats_int64s", "", ""}},
    {"LabelEncoder", {"keys_strings", "keys_int64s", "keys_floats", "keys_tensor"}},
    {"CategoryMapper", {"cats_strings", "cats_int64s", "", ""}},
    {"TfIdfVectorizer", {"pool_strings", "pool_int64s", "", ""}},
}};

Categories listed_by(const Node& node, bool is_text) {
  const auto* row = std::ranges::find(kEncoders, node.op_type, &EncoderLists::op);
  if (row == kEncoders.end()) return {};
  for (const std::string_view name : row->lists) {
    Categories found;
    read_list(node, name, found);
    if (!(is_text ? found.texts : std::vector<std::string>()).empty()) return found;
    if (!is_text && !found.numbers.empty()) return found;
  }
  return {};
}

// Elements of a constant that chooses columns.
std::vector<int64_t> constant_of(const Graph& graph, const Node& node, size_t slot) {
  if (slot >= node.inputs.size() || node.inputs[slot] == kNoValue) return {};
  const int32_t initializer = graph.values[static_cast<size_t>(node.inputs[slot])].initializer_index;
  if (initializer < 0) return {};
  const Tensor& tensor = graph.initializers[static_cast<size_t>(initializer)].tensor;
  return tensor.defined() && is_integer(tensor.dtype()) ? to_int64s(tensor) : std::vector<int64_t>{};
}

// The relation of a value's columns to the input's: column c is the input's column c - shift, or all are one of them.
struct Standing {
  int64_t shift = 0;
  std::optional<int64_t> only;
  bool is_prose = false;
};

std::optional<int64_t> width_of(const Graph& graph, ValueId id) {
  const auto& dims = graph.values[static_cast<size_t>(id)].type.dims;
  if (!dims.has_value() || dims->empty() || !dims->back().is_known()) return std::nullopt;
  return dims->back().value;
}

class CategoryWalk {
 public:
  CategoryWalk(const Graph& graph, ValueId input) : graph_(graph), width_(width_of(graph, input)) {
    is_text_ = graph.values[static_cast<size_t>(input)].type.dtype == DType::string;
    follow(input, {}, 0);
  }
  InputCategories take() {
    if (columns_.size() == 1 && holds_for_all_) return {{columns_.front()}, is_prose_, reader_};
    if (!columns_.empty() && width_.value_or(0) > static_cast<int64_t>(columns_.size()))
      columns_.resize(std::min(kMaxColumns, static_cast<size_t>(*width_)));
    return {std::move(columns_), is_prose_, reader_};
  }

 private:
  void follow(ValueId value, const Standing& standing, int steps) {
    if (steps > kMaxCategorySteps) return;
    for (const NodeId reader : graph_.values[static_cast<size_t>(value)].readers) {
      const Node& node = graph_.nodes[static_cast<size_t>(reader)];
      for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
        if (node.inputs[slot] == value) read_by(node, slot, standing, steps);
      }
    }
  }

  void read_by(const Node& node, size_t slot, const Standing& standing, int steps) {
    if (slot > 0 && node.op_type != "Concat") return;
    const Categories listed = listed_by(node, is_text_);
    if (!listed.empty()) return remember(node, listed, standing);
    const auto next = after(node, slot, standing);
    if (next.has_value() && !node.outputs.empty() && node.outputs[0] != kNoValue)
      follow(node.outputs[0], *next, steps + 1);
  }

  // The columns after the node; nothing where it computes something else from them.
  std::optional<Standing> after(const Node& node, size_t slot, Standing standing) const {
    if (node.op_type == "Tokenizer" || node.op_type == "StringSplit") {
      standing.is_prose = true;
      return standing;
    }
    const auto* axis = attribute_as<int64_t>(node, "axis");
    const bool chooses = node.op_type == "ArrayFeatureExtractor" ||
                         (node.op_type == "Gather" && axis != nullptr && (*axis == 1 || *axis == -1));
    if (chooses) {
      const std::vector<int64_t> chosen = constant_of(graph_, node, 1);
      if (standing.only.has_value() || chosen.size() != 1) return std::nullopt;
      standing.only = chosen[0] - standing.shift;
      const bool is_own = *standing.only >= 0 && *standing.only < width_.value_or(kMaxColumns);
      return is_own ? std::optional(standing) : std::nullopt;
    }
    if (std::ranges::find(kKeepElements, node.op_type) == kKeepElements.end()) return std::nullopt;
    for (size_t before = 0; node.op_type == "Concat" && before < slot; ++before) {
      const auto width = node.inputs[before] == kNoValue ? std::nullopt : width_of(graph_, node.inputs[before]);
      if (!width.has_value()) return std::nullopt;
      standing.shift += *width;
    }
    return standing;
  }

  void remember(const Node& node, const Categories& listed, const Standing& standing) {
    const auto column = static_cast<size_t>(standing.only.value_or(0));
    if (column >= kMaxColumns) return;
    if (columns_.size() <= column) columns_.resize(column + 1);
    if (!columns_[column].empty()) return;
    if (reader_.empty()) reader_ = node.display_name;
    columns_[column] = listed;
    is_prose_ = is_prose_ || standing.is_prose;
    holds_for_all_ = holds_for_all_ || !standing.only.has_value();
  }

  const Graph& graph_;
  std::optional<int64_t> width_;
  bool is_text_ = false;
  std::vector<Categories> columns_;
  bool is_prose_ = false;
  bool holds_for_all_ = false;
  std::string reader_;
};

}  // namespace

InputCategories find_categories(const Graph& graph, ValueId input) { return CategoryWalk(graph, input).take(); }

}  // namespace parallax
