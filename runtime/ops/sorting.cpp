// TopK and Unique: operators that sort.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "runtime/device/copy.h"
#include "runtime/device/map.h"
#include "runtime/device/rows.h"
#include "runtime/device/sort.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

// The wanted order; equal elements keep theirs. NaN counts as the largest.
struct TopFirst {
  bool largest;
  template <class C>
  PX_HD bool operator()(C x, int64_t place_x, C y, int64_t place_y) const {
    const bool x_nan = x != x;
    const bool y_nan = y != y;
    if (x_nan != y_nan) return largest ? x_nan : y_nan;
    if (x != y && !x_nan) return largest ? x > y : x < y;
    return place_x < place_y;
  }
};

template <class Device>
Status top_k(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank_of(x.shape())));
  const int64_t k = op.since_version() < 10 ? op.integer("k") : PX_TRY(op.integer_of_input(1));
  const RowLayout rows = rows_along(x.shape(), axis);
  if (k < 0 || k > rows.length) return execution_error(fmt::format("k is {}, the axis has {}", k, rows.length));
  const bool largest = op.find_integer("largest").value_or(1) != 0;
  Ints dims(x.shape());
  dims[axis] = k;
  const Shape shape = PX_TRY(shape_of(dims));
  const MutableView values = PX_TRY(op.make_output(0, x.dtype(), shape));
  const MutableView indices = PX_TRY(op.make_output(1, DType::int64, shape));
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    return sort_rows<decltype(zero)>(op.queue(), TopFirst{largest}, rows, x.view(), k, values, indices), Status{};
  });
}

// ---- Unique: slices along an axis (or elements) that occur, each once ----

struct UniqueSlices {
  Ints first;    // where each unique slice first occurs, in the order of the output
  Ints inverse;  // for each slice the place of its equal in the output
  Ints counts;
};

// `less` orders slice numbers by content.
template <class Less>
UniqueSlices find_unique(int64_t count, bool sorted, const Less& less) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), less);
  std::vector<std::vector<int64_t>> groups;
  for (int64_t slice : order) {
    if (groups.empty() || less(groups.back()[0], slice)) groups.emplace_back();
    groups.back().push_back(slice);
  }
  if (!sorted) std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  UniqueSlices result{{}, Ints(count), {}};
  for (const auto& group : groups) {
    for (int64_t slice : group) result.inverse[slice] = result.first.size();
    result.first.push_back(group[0]);
    result.counts.push_back(static_cast<int64_t>(group.size()));
  }
  return result;
}

template <class Device>
Status unique(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const auto given = op.find_integer("axis");
  Ints dims = given.has_value() ? Ints(x.shape()) : Ints{x.element_count()};
  const int64_t axis = given.has_value() ? PX_TRY(OpCall::resolve_axis(*given, dims.size())) : 0;
  const int64_t length = dims[axis];
  const int64_t outer = product(dims, 0, axis);
  const int64_t inner = product(dims, axis + 1, dims.size());
  UniqueSlices slices;
  const Status found =
      visit_arithmetic<Numbers>(x.dtype() == DType::bool_ ? DType::uint8 : x.dtype(), [&](auto zero) -> Status {
        using C = decltype(zero);
        const auto less = [&](int64_t a, int64_t b) {
          for (int64_t i = 0; i < outer * inner; ++i) {
            const int64_t start = i / inner * length * inner + i % inner;
            const C x_a = load_element<C>(x.dtype(), x.view().data, start + a * inner);
            const C x_b = load_element<C>(x.dtype(), x.view().data, start + b * inner);
            if (x_a != x_b) return x_a < x_b;
          }
          return false;
        };
        slices = find_unique(length, op.integer("sorted") != 0, less);
        return {};
      });
  if (!found.ok()) return found.error();
  const int64_t count = slices.first.size();
  dims[axis] = count;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const auto index = [&](int64_t block) { return block / count * length + slices.first[block % count]; };
  if (count > 0) index_map(op.queue(), index, y, x.view().data, inner);
  op.set_output(1, Tensor::vector<int64_t>(slices.first));
  op.set_output(2, Tensor::vector<int64_t>(slices.inverse));
  op.set_output(3, Tensor::vector<int64_t>(slices.counts));
  return {};
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    reads_on_host<Device>({1}, {"TopK", kReals, top_k<Device>}),
    {"Unique", kReals | kBool, PX_ON_HOST(unique<Device>)},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> sorting_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
