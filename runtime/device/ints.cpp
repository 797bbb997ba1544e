// Broadcasting of shapes.
#include "runtime/device/ints.h"

#include <string>

namespace parallax::runtime {

void Ints::insert(int64_t index, int64_t value) { values_.insert(values_.begin() + index, value); }

void Ints::erase(int64_t index) { values_.erase(values_.begin() + index); }

Result<Shape> broadcast_shapes(std::span<const Shape> shapes) {
  int64_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, rank_of(shape));
  Ints dims(rank, 1);
  for (const Shape& shape : shapes) {
    const int64_t lead = rank - rank_of(shape);
    for (int64_t axis = lead; axis < rank; ++axis) {
      const int64_t dim = dim_of(shape, axis - lead);
      if (dim == dims[axis] || dim == 1) continue;
      if (dims[axis] != 1) {
        std::string list;
        for (const Shape& each : shapes) list += (list.empty() ? "" : " and ") + each.to_string();
        return execution_error("shapes " + list + " cannot be broadcast together");
      }
      dims[axis] = dim;
    }
  }
  return Shape::create(dims);
}

Ints broadcast_strides(const Shape& from, const Shape& to) {
  const Ints own = row_major_strides(from);
  Ints strides(rank_of(to));
  const int64_t lead = rank_of(to) - rank_of(from);
  for (int64_t axis = lead; axis < rank_of(to); ++axis) {
    if (dim_of(from, axis - lead) != 1) strides[axis] = own[axis - lead];
  }
  return strides;
}

}  // namespace parallax::runtime
