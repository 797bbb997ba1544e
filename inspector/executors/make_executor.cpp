// SPDX-License-Identifier: Apache-2.0
// The list of executors.
#include "inspector/executors/make_executor.h"

#include <fmt/format.h>

#include "inspector/base/text.h"
#include "reference/reference.h"
#include "runtime/plan/runtime.h"

namespace parallax {
namespace {

struct Row {
  std::string_view name;
  Result<std::shared_ptr<Executor>> (*make)();
};

Result<std::shared_ptr<Executor>> make_reference() {
  return std::shared_ptr<Executor>(make_reference_executor(ReferencePrecision::declared));
}
Result<std::shared_ptr<Executor>> make_reference_double() {
  return std::shared_ptr<Executor>(make_reference_executor(ReferencePrecision::double_));
}
Result<std::shared_ptr<Executor>> make_cpu() { return std::shared_ptr<Executor>(make_cpu_executor()); }
Result<std::shared_ptr<Executor>> make_cuda() {
  std::unique_ptr<Executor> executor = PX_TRY(make_cuda_executor());
  return std::shared_ptr<Executor>(std::move(executor));
}

constexpr Row kExecutors[] = {
    {"reference", make_reference}, {"reference:double", make_reference_double}, {"cpu", make_cpu}, {"cuda", make_cuda}};

}  // namespace

Result<std::shared_ptr<Executor>> make_executor(const std::string& name) {
  std::vector<std::string> names;
  for (const Row& row : kExecutors) {
    if (row.name == name) return row.make();
    names.emplace_back(row.name);
  }
  return usage_error(
      fmt::format("there is no executor '{}'{} (known: {})", name, did_you_mean(name, names), fmt::join(names, ", ")));
}

std::vector<ExecutorAvailability> list_executors() {
  std::vector<ExecutorAvailability> list;
  for (const Row& row : kExecutors) {
    const auto executor = row.make();
    list.push_back(
        {std::string(row.name), executor.ok(), executor.ok() ? (*executor)->device() : executor.error().message});
  }
  return list;
}

}  // namespace parallax
