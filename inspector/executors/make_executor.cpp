// SPDX-License-Identifier: Apache-2.0
// The list of executors.
#include "inspector/executors/make_executor.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/base/text.h"
#include "inspector/exec/executor_names.h"
#include "inspector/executors/foreign/foreign_executor.h"
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
static_assert(std::ranges::equal(kExecutors, kOwnExecutors, {}, &Row::name));

}  // namespace

Result<std::shared_ptr<Executor>> make_executor(const std::string& name) {
  for (const Row& row : kExecutors) {
    if (row.name == name) return row.make();
  }
  const std::vector<std::string> names = executor_names();
  const std::string kind = name.substr(0, name.find(':'));
  const bool is_foreign = std::ranges::any_of(
      foreign::foreign_names(), [&](const std::string& known) { return known.substr(0, known.find(':')) == kind; });
  if (is_foreign) return foreign::make_foreign_executor(name);
  return usage_error(
      fmt::format("there is no executor '{}'{} (known: {})", name, did_you_mean(name, names), fmt::join(names, ", ")));
}

ExecutorSource executor_source() {
  struct Kept {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Executor>> executors;
  };
  return [kept = std::make_shared<Kept>()](const std::string& name) -> Result<std::shared_ptr<Executor>> {
    if (!is_foreign_executor(name)) return make_executor(name);
    const std::lock_guard lock(kept->mutex);
    std::shared_ptr<Executor>& executor = kept->executors[name];
    if (executor == nullptr) executor = PX_TRY(make_executor(name));
    return executor;
  };
}

std::vector<std::string> executor_names() {
  std::vector<std::string> names;
  for (const Row& row : kExecutors) names.emplace_back(row.name);
  for (std::string& name : foreign::foreign_names()) names.push_back(std::move(name));
  return names;
}

std::vector<ExecutorAvailability> list_executors() {
  std::vector<ExecutorAvailability> list;
  for (const Row& row : kExecutors) {
    const auto executor = row.make();
    list.push_back(
        {std::string(row.name), executor.ok(), executor.ok() ? (*executor)->device() : executor.error().message, ""});
  }
  return list;
}

std::vector<ExecutorAvailability> examine_executors() {
  std::vector<ExecutorAvailability> list = list_executors();
  for (foreign::ForeignAvailability& row : foreign::examine_foreign_executors())
    list.push_back({std::move(row.name), row.available, std::move(row.detail), std::move(row.advice)});
  return list;
}

}  // namespace parallax
