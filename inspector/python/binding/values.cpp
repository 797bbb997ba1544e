// SPDX-License-Identifier: Apache-2.0
// Values of every kind to and from Python, recursively.
#include "inspector/python/binding/values.h"

#include <fmt/format.h>

#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/packages.h"
#include "inspector/python/binding/text_caster.h"

namespace parallax::python {
namespace {

bool is_list(nb::handle object) { return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object); }

const TypeInfo& inner_of(const TypeInfo& type) {
  static const TypeInfo unknown;
  return type.inner.empty() ? unknown : type.inner.front();
}

const char* numpy_name_of(DType dtype) {
  if (dtype == DType::string) return "object_";
  if (dtype == DType::bool_) return "bool_";
  const bool is_plain =
      bits_of(dtype) >= 8 && !is_complex(dtype) &&
      (is_integer(dtype) || dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64);
  return is_plain ? name_of(dtype).data() : nullptr;
}

// Numbers and nested lists have no type of their own: they take the declared one, if none of them changes by it.
Tensor tensor_from_numbers(nb::handle object, const TypeInfo& declared, std::string_view what) {
  nb::object array = packages().numpy("asarray")(object);
  const char* name = declared.kind == TypeInfo::Kind::tensor ? numpy_name_of(declared.dtype) : nullptr;
  if (name != nullptr) {
    const nb::object target = packages().numpy("dtype")(packages().numpy(name));
    const bool fits = is_true(packages().numpy("can_cast")(array.attr("dtype"), target, "same_kind"));
    if (!fits && nb::cast<int64_t>(array.attr("size")) > 0)
      raise(usage_error(fmt::format("{} is given numbers of {}; it must be {}", what, text_of(array.attr("dtype")),
                                    to_string(declared))));
    array = array.attr("astype")(target);
  }
  return tensor_from(array).tensor;
}

Value sequence_from(nb::handle object, const TypeInfo& declared, std::string_view what) {
  if (!is_list(object))
    raise(usage_error(fmt::format("{} is a {}; it must be a list, for it is declared {}", what,
                                  nb::type_name(object.type()).c_str(), to_string(declared))));
  SequenceValue sequence{inner_of(declared), {}};
  for (nb::handle item : object) {
    const std::string name = fmt::format("element {} of {}", sequence.items.size(), what);
    sequence.items.push_back(value_from(item, sequence.element_type, name));
  }
  return sequence;
}

Value map_from(nb::handle object, const TypeInfo& declared, std::string_view what) {
  if (!nb::isinstance<nb::dict>(object))
    raise(usage_error(fmt::format("{} is a {}; it must be a dict, for it is declared {}", what,
                                  nb::type_name(object.type()).c_str(), to_string(declared))));
  MapValue map;
  map.value_type = inner_of(declared);
  nb::list keys;
  for (auto [key, value] : nb::borrow<nb::dict>(object)) {
    keys.append(key);
    const std::string name = fmt::format("element {} of {}", nb::repr(key).c_str(), what);
    map.values.push_back(value_from(value, map.value_type, name));
  }
  map.keys = tensor_from_numbers(keys, TypeInfo::tensor(declared.dtype), what);
  return map;
}

nb::object tensor_to_python(const Tensor& tensor, ArrayKind kind, bool writable) {
  const bool has_array = kind == ArrayKind::tensor || (bits_of(tensor.dtype()) >= 8 || tensor.dtype() == DType::string);
  if (kind == ArrayKind::torch && tensor.dtype() == DType::string) kind = ArrayKind::numpy;
  return array_from({tensor, writable}, has_array ? kind : ArrayKind::tensor);
}

}  // namespace

Value value_from(nb::handle object, const TypeInfo& declared, std::string_view what) {
  if (declared.kind == TypeInfo::Kind::optional) {
    OptionalValue optional{inner_of(declared), {}};
    if (!object.is_none()) optional.item.push_back(value_from(object, optional.element_type, what));
    return optional;
  }
  if (object.is_none()) return {};
  if (declared.kind == TypeInfo::Kind::sequence) return sequence_from(object, declared, what);
  if (declared.kind == TypeInfo::Kind::map) return map_from(object, declared, what);
  if (is_list(object) || PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) || PyUnicode_Check(object.ptr()))
    return tensor_from_numbers(object, declared, what);
  return tensor_from(object).tensor;
}

nb::object value_to_python(const Value& value, ArrayKind kind, bool writable) {
  if (value.is_tensor()) return tensor_to_python(value.tensor(), kind, writable);
  if (value.is_sequence()) {
    nb::list items;
    for (const Value& item : value.sequence().items) items.append(value_to_python(item, kind, writable));
    return items;
  }
  if (value.is_optional()) {
    if (value.optional().item.empty()) return nb::none();
    return value_to_python(value.optional().item.front(), kind, writable);
  }
  if (value.is_map()) {
    nb::dict items;
    const nb::object keys = array_from({value.map().keys, false}, ArrayKind::numpy).attr("tolist")();
    size_t index = 0;
    for (nb::handle key : keys) items[key] = value_to_python(value.map().values[index++], kind, writable);
    return items;
  }
  return nb::none();
}

}  // namespace parallax::python
