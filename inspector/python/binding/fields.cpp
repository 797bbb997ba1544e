// SPDX-License-Identifier: Apache-2.0
// Conversions, each with a sentence that names the argument.
#include "inspector/python/binding/fields.h"

#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/text_caster.h"

namespace parallax::python {

Fields::Fields(std::string verb, const nb::dict& given) : verb_(std::move(verb)) {
  for (auto [key, value] : given) left_[key] = value;
}

nb::object Fields::take(const char* name) {
  known_.emplace_back(name);
  if (!left_.contains(name)) return nb::none();
  nb::object value = left_[name];
  PyDict_DelItemString(left_.ptr(), name);
  return value;
}

template <class T>
T Fields::converted(const char* name, const nb::object& value, const char* what) const {
  T result{};
  if (!nb::try_cast(value, result))
    raise(usage_error(fmt::format("{}: {} is {}; it must be {}", verb_, name, nb::repr(value).c_str(), what)));
  return result;
}

std::string Fields::text(const char* name, std::string otherwise) {
  const nb::object value = take(name);
  return value.is_none() ? std::move(otherwise) : converted<std::string>(name, value, "a str");
}

std::vector<std::string> Fields::texts(const char* name) {
  const nb::object value = take(name);
  if (value.is_none()) return {};
  return converted<std::vector<std::string>>(name, value, "a list of str");
}

int64_t Fields::number(const char* name, int64_t otherwise) {
  const nb::object value = take(name);
  return value.is_none() ? otherwise : converted<int64_t>(name, value, "an int");
}

double Fields::real(const char* name, double otherwise) {
  const nb::object value = take(name);
  return value.is_none() ? otherwise : converted<double>(name, value, "a number");
}

bool Fields::flag(const char* name) {
  const nb::object value = take(name);
  return !value.is_none() && converted<bool>(name, value, "True or False");
}

void Fields::finish() const {
  if (left_.size() == 0) return;
  const auto name = nb::cast<std::string>(nb::str(left_.keys()[0]));
  raise(usage_error(fmt::format("there is no argument '{}' of {} (known: {})", name, verb_, fmt::join(known_, ", "))));
}

}  // namespace parallax::python
