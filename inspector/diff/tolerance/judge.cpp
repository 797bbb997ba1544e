// SPDX-License-Identifier: Apache-2.0
// Parts that comparing dumps and comparing running executors share: limits, names and order of values.
#include "inspector/diff/tolerance/judge.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>

#include "inspector/diff/tolerance/value_compare.h"

namespace parallax::diff {

ValueInfoIndex::ValueInfoIndex(std::shared_ptr<const Model> model) {
  if (model == nullptr) return;
  Result<ValueTable> table = ValueTable::build(std::move(model));
  if (!table.ok()) return;
  table_ = std::make_unique<ValueTable>(table.take());
  for (const ValueInfo& value_info : table_->value_infos())
    by_path_.emplace(value_info.scope + value_info.escaped_name, &value_info);
}

const ValueInfo* ValueInfoIndex::find(std::string_view path) const {
  const auto found = by_path_.find(static_path(path));
  return found == by_path_.end() ? nullptr : found->second;
}

int64_t Judge::add_magnitude(std::string_view path, const ValueInfo* value_info, const Magnitude& magnitude) {
  const std::string_view prefix = prefix_of(path);
  const std::lock_guard lock(mutex_);
  return noise_.add(std::string(prefix), std::string(path.substr(prefix.size())), value_info, magnitude);
}

namespace {

// The magnitude of a value that is stored in one type and declared as another.
Magnitude declared_as(Magnitude magnitude, DType held, DType declared) {
  magnitude.is_unrounded = held == DType::float64 && is_floating(declared) && declared != held;
  if (is_floating(held) && is_floating(declared)) magnitude.dtype = declared;
  return magnitude;
}

}  // namespace

int64_t Judge::add(std::string_view path, const ValueInfo* value_info, const Value& a, DType declared) {
  if (a.is_tensor()) {
    return add_magnitude(path, value_info, declared_as(magnitude_of(a.tensor()), a.tensor().dtype(), declared));
  }
  // A sequence takes the limit of its largest element; what is taken out of it later is judged by its own making.
  const std::vector<Value>* items = a.is_sequence()   ? &a.sequence().items
                                    : a.is_optional() ? &a.optional().item
                                    : a.is_map()      ? &a.map().values
                                                      : nullptr;
  Magnitude largest;
  for (size_t index = 0; items != nullptr && index < items->size(); ++index) {
    if (!(*items)[index].is_tensor()) continue;
    const Magnitude magnitude = magnitude_of((*items)[index].tensor());
    if (magnitude.rms >= largest.rms) largest = magnitude;
  }
  return add_magnitude(path, value_info, declared_as(largest, largest.dtype, declared));
}

int64_t Judge::add(std::string_view path, const ValueInfo* value_info, const TypeInfo& type, const TensorStatistics& a,
                   DType declared) {
  return add_magnitude(path, value_info, declared_as(magnitude_of(type, a), innermost(type).dtype, declared));
}

int64_t Judge::add_sample(std::string_view path, const ValueInfo* value_info, const TypeInfo& type,
                          const Tensor& sample, DType declared) {
  return add_magnitude(path, value_info,
                       declared_as(magnitude_of_sample(type, sample, declared), sample.dtype(), declared));
}

Limit Judge::limit_of(int64_t number, const std::string& path) {
  const std::lock_guard lock(mutex_);
  const Limit from_table = noise_.limit_of(number, path);
  return policy_.limit_of(path).value_or(from_table);
}

void Judge::expect_error(const std::string& path, double error) {
  const std::lock_guard lock(mutex_);
  noise_.expect_error(path, error);
}

void Judge::count_casts() {
  const std::lock_guard lock(mutex_);
  noise_.count_casts();
}

void Judge::count_quantization() {
  const std::lock_guard lock(mutex_);
  noise_.count_quantization();
}

void Judge::count_foreign_kernels() {
  const std::lock_guard lock(mutex_);
  noise_.count_foreign_kernels();
}

void Judge::rounds_as(int64_t number, DType dtype) {
  const std::lock_guard lock(mutex_);
  noise_.rounds_as(number, dtype);
}

void Judge::found_difference(const std::string& path, double rmse) {
  const std::lock_guard lock(mutex_);
  noise_.found_difference(path, rmse);
}

DType declared_type(const ValueInfo* value_info, DType fallback) {
  if (value_info == nullptr || value_info->graph == nullptr || value_info->value == kNoValue) return fallback;
  const TypeInfo& type = innermost(value_at(*value_info->graph, value_info->value).type);
  return type.kind == TypeInfo::Kind::tensor && is_floating(type.dtype) ? type.dtype : fallback;
}

void describe_producer(const ValueInfo& value_info, ValueComparison& result) {
  result.is_graph_output = value_info.is_graph_output;
  result.node = value_info.node;
  result.op = value_info.op;
  const bool is_made = value_info.op == "Constant" && value_info.domain.empty();
  const bool is_data = value_info.role == ValueInfo::Role::initializer || is_made;
  if (!is_data || value_info.graph == nullptr || value_info.value == kNoValue) return;
  const std::vector<NodeId>& readers = value_info.graph->values[static_cast<size_t>(value_info.value)].readers;
  if (readers.empty()) return;
  // A constant has no producer, or one that does nothing else; a faulty one shows at the node that reads it.
  const Node& reader = value_info.graph->nodes[static_cast<size_t>(readers.front())];
  if (is_made) {
    result.reader = reader.display_name;
    result.reader_op = reader.op_type;
    return;
  }
  result.node = reader.display_name;
  result.op = reader.op_type;
  result.node_reads_it = true;
}

namespace {

// Gives what neither side made the order of the last value that was, of a node before its own in the same graph.
void order_by_node(std::vector<Located>& values) {
  if (std::ranges::none_of(values, &Located::stands_by_node)) return;
  using Made = std::pair<int32_t, int64_t>;  // node, order
  std::unordered_map<std::string, std::vector<Made>> made_in;
  const auto graph_of = [](const Located& value) { return std::string(prefix_of(static_path(value.comparison.path))); };
  for (const Located& value : values) {
    if (!value.stands_by_node && value.order_in_a >= 0 && !value.comparison.a.empty())
      made_in[graph_of(value)].emplace_back(value.node_index, value.order_in_a);
  }
  for (auto& [graph, made] : made_in) std::ranges::sort(made);
  for (Located& value : values) {
    if (!value.stands_by_node) continue;
    const auto graph = made_in.find(graph_of(value));
    if (graph == made_in.end()) continue;
    const auto after = std::ranges::upper_bound(graph->second, Made{value.node_index, INT64_MAX});
    value.order_in_a = after == graph->second.begin() ? -1 : std::prev(after)->second;
  }
}

}  // namespace

std::vector<ValueComparison> in_order(std::vector<Located> values) {
  order_by_node(values);
  // Position in A for every value of B: its own, or that of the last matched value before it.
  std::sort(values.begin(), values.end(),
            [](const Located& x, const Located& y) { return x.order_in_b < y.order_in_b; });
  int64_t last_in_a = -1;
  for (Located& value : values) {
    if (value.order_in_b < 0) continue;
    if (value.order_in_a < 0) {
      value.order_in_a = last_in_a;
    } else {
      last_in_a = value.order_in_a;
      value.order_in_b = -1;  // A's own come first among equals
    }
  }
  std::ranges::stable_sort(values, {}, [](const Located& value) {
    return std::tuple(value.order_in_a, value.order_in_b, value.stands_by_node ? value.node_index : INT32_MIN);
  });
  std::vector<ValueComparison> ordered;
  ordered.reserve(values.size());
  for (Located& value : values) ordered.push_back(std::move(value.comparison));
  return ordered;
}

}  // namespace parallax::diff
