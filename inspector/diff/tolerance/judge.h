// SPDX-License-Identifier: Apache-2.0
// Judge: policy and noise model together, and what comparing dumps and running executors share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "inspector/diff/tolerance/noise_model.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/exec/value_table.h"

namespace parallax::diff {

// The values of a model by static path.
class ValueInfoIndex {
 public:
  // Null model or one whose values cannot be listed: an empty index.
  explicit ValueInfoIndex(std::shared_ptr<const Model> model);
  const ValueInfo* find(std::string_view path) const;
  template <class Visit>
  void each(Visit&& visit) const {
    if (table_ == nullptr) return;
    for (const ValueInfo& value_info : table_->value_infos()) visit(value_info);
  }

 private:
  std::unique_ptr<ValueTable> table_;
  std::unordered_map<std::string, const ValueInfo*> by_path_;
};

// May be used by two threads.
class Judge {
 public:
  explicit Judge(Policy policy) : policy_(std::move(policy)) {}

  // Side A has a value (see NoiseModel::add). `declared`: the type that rounds, where the payload is carried wider.
  int64_t add(std::string_view path, const ValueInfo* value_info, const Value& a, DType declared);
  int64_t add(std::string_view path, const ValueInfo* value_info, const TypeInfo& type, const TensorStatistics& a,
              DType declared);
  // From some of the elements of a tensor of `type`.
  int64_t add_sample(std::string_view path, const ValueInfo* value_info, const TypeInfo& type, const Tensor& sample,
                     DType declared);
  // As NoiseModel::expect_error.
  void expect_error(const std::string& path, double error);
  // As NoiseModel::count_casts.
  void count_casts();
  // As NoiseModel::count_quantization.
  void count_quantization();
  // As NoiseModel::count_foreign_kernels.
  void count_foreign_kernels();
  // A value that is carried in double, of an undeclared type, rounds in the type in which the other side computes: this
  // one.
  void rounds_as(int64_t number, DType dtype);
  Limit limit_of(int64_t number, const std::string& path);
  void found_difference(const std::string& path, double rmse);

 private:
  int64_t add_magnitude(std::string_view path, const ValueInfo* value_info, const Magnitude& magnitude);

  Policy policy_;
  std::mutex mutex_;
  NoiseModel noise_;
};

// The declared type of a value when it is a floating one, or holds such, else `fallback`.
DType declared_type(const ValueInfo* value_info, DType fallback);

// Node and operator as the document names them: the producer, or the first node that reads an input or initializer.
void describe_producer(const ValueInfo& value_info, ValueComparison& result);

// A's values in order, those only in B after the last value before them (in B's order) that has a counterpart, and
// those that no plan makes where their node stands in A's graph. `order_in_b` of A's values is -1 where they have none.
struct Located {
  int64_t order_in_a = -1;
  int64_t order_in_b = -1;
  int32_t node_index = -1;      // ValueInfo's, in A
  bool stands_by_node = false;  // made by neither side; `order_in_a` is where nothing of its graph was made
  ValueComparison comparison;
};
std::vector<ValueComparison> in_order(std::vector<Located> values);

}  // namespace parallax::diff
