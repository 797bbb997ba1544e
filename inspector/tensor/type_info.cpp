// SPDX-License-Identifier: Apache-2.0
// Printing of declared types.
#include "inspector/tensor/type_info.h"

namespace parallax {
namespace {

std::string dims_to_string(const std::vector<Dim>& dims) {
  std::string text = "[";
  for (const Dim& dim : dims) {
    if (text.size() > 1) text += ',';
    text += dim.is_known() ? std::to_string(dim.value) : dim.name.empty() ? "?" : dim.name;
  }
  return text + "]";
}

std::string inner_to_string(const TypeInfo& type) { return type.inner.empty() ? "?" : to_string(type.inner.front()); }

}  // namespace

std::string to_string(const TypeInfo& type) {
  const std::string element(type.dtype == DType::undefined ? "?" : name_of(type.dtype));
  const std::string dims = type.dims.has_value() ? dims_to_string(*type.dims) : "";
  switch (type.kind) {
    case TypeInfo::Kind::unknown:
      return "?";
    case TypeInfo::Kind::tensor:
      return element + dims;
    case TypeInfo::Kind::sparse_tensor:
      return "sparse(" + element + dims + ")";
    case TypeInfo::Kind::sequence:
      return "seq(" + inner_to_string(type) + ")";
    case TypeInfo::Kind::optional:
      return "optional(" + inner_to_string(type) + ")";
    case TypeInfo::Kind::map:
      return "map(" + element + "," + inner_to_string(type) + ")";
    case TypeInfo::Kind::opaque:
      return "opaque";
  }
  return "?";
}

}  // namespace parallax
