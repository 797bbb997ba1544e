// SPDX-License-Identifier: Apache-2.0
// TopK and Unique: operators that sort.
#include <algorithm>
#include <numeric>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/rows/sort.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

template <class Device>
Status top_k(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank_of(x.shape())));
  const int64_t k = op.since_version() < 10 ? op.integer("k") : PX_TRY(op.integer_of_input(1));
  const RowLayout rows = rows_along(x.shape(), axis);
  if (k < 0 || k > rows.length) return wrong_value("k", k, "be in [0, {}], the size of axis {}", rows.length, axis);
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

// ---- Unique: slices along an axis (or elements) that occur, each once. They are sorted by content on the device; what
// is told apart there is counted on the host, which has to know the output's shape. ----

template <class Device, class C>
struct SliceContent {
  Source x;
  int64_t outer, length, inner;  // slice i is [outer, i, inner]

  // Less than 0, 0 or more as slice `a` comes before, is equal to or comes after `b`. NaN comes last, and equals NaN.
  PX_HD int compare(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < outer * inner; ++i) {
      const int64_t start = i / inner * length * inner + i % inner;
      const C first = element_of<Device, C>(x, start + a * inner);
      const C second = element_of<Device, C>(x, start + b * inner);
      const bool first_nan = first != first, second_nan = second != second;
      if (first_nan != second_nan) return first_nan ? 1 : -1;
      if (!first_nan && first != second) return first < second ? -1 : 1;
    }
    return 0;
  }
};
template <class Device, class C>
struct ContentOrder {  // of slice numbers
  SliceContent<Device, C> content;
  PX_HD bool operator()(int64_t a, int64_t, int64_t b, int64_t) const {
    const int order = content.compare(a, b);
    return order != 0 ? order < 0 : a < b;
  }
};
template <class Device, class C>
struct DiffersFromLast {
  SliceContent<Device, C> content;
  Elements<Device, const int64_t> order;
  PX_HD int64_t operator()(int64_t location) const {
    return location == 0 || content.compare(order[location - 1], order[location]) != 0 ? 1 : 0;
  }
};
struct OwnIndex {
  PX_HD int64_t operator()(int64_t location) const { return location; }
};

struct UniqueSlices {
  Ints first;    // where each unique slice first occurs, in the order of the output
  Ints inverse;  // for each slice the index of its equal in the output
  Ints counts;
};

// From the slices in order of content, and whether each differs from the one before.
UniqueSlices count_slices(const Ints& order, const Ints& differs, bool sorted) {
  std::vector<std::pair<int64_t, int64_t>> groups;  // first occurrence, index in `order`
  for (int64_t i = 0; i < order.size(); ++i) {
    if (differs[i] != 0) groups.emplace_back(order[i], i);
  }
  Ints ends;
  for (size_t group = 1; group < groups.size(); ++group) ends.push_back(groups[group].second);
  ends.push_back(order.size());
  std::vector<int64_t> by_output(groups.size());
  std::iota(by_output.begin(), by_output.end(), int64_t{0});
  if (!sorted) {
    std::sort(by_output.begin(), by_output.end(),
              [&](int64_t a, int64_t b) { return groups.data()[a].first < groups.data()[b].first; });
  }
  UniqueSlices result{{}, Ints(order.size()), {}};
  for (int64_t group : by_output) {
    const auto [first, begin] = groups.data()[group];
    for (int64_t i = begin; i < ends[group]; ++i) result.inverse[order[i]] = result.first.size();
    result.first.push_back(first);
    result.counts.push_back(ends[group] - begin);
  }
  return result;
}

template <class Device>
Result<Ints> integers_on_host(OpContext<Device>& op, const Tensor& tensor) {
  const Tensor read = PX_TRY(op.on_host(tensor));
  return Ints(read.template as<int64_t>());
}

template <class C, class Device>
Result<UniqueSlices> find_unique(OpContext<Device>& op, const SliceContent<Device, C>& content) {
  if (content.length == 0) return UniqueSlices{};
  const Shape shape{content.length};
  const Tensor order = PX_TRY(op.queue().allocate(DType::int64, shape));
  const Tensor differs = PX_TRY(op.queue().allocate(DType::int64, shape));
  const RowLayout row{1, content.length, 1};
  if (content.outer * content.inner == 1) {
    const MutableView values = PX_TRY(op.scratch(storage_of<C>(), shape));
    const TensorView elements{content.x.dtype, shape, content.x.data, op.input(0).view().device};
    sort_rows<C>(op.queue(), TopFirst{false}, row, elements, content.length, values, writable(order));
  } else {
    const MutableView numbers = PX_TRY(op.scratch(DType::int64, shape));
    const MutableView locations = PX_TRY(op.scratch(DType::int64, shape));
    tabulate<int64_t>(op.queue(), OwnIndex{}, numbers);
    sort_rows<int64_t>(op.queue(), ContentOrder<Device, C>{content}, row, TensorView(numbers), content.length,
                       writable(order), locations);
  }
  const Elements<Device, const int64_t> sorted{reinterpret_cast<const int64_t*>(order.view().data)};
  tabulate<int64_t>(op.queue(), DiffersFromLast<Device, C>{content, sorted}, writable(differs));
  const Ints by_content = PX_TRY(integers_on_host(op, order));
  const Ints is_first = PX_TRY(integers_on_host(op, differs));
  return count_slices(by_content, is_first, op.integer("sorted") != 0);
}

template <class Device>
struct ChosenSlice {
  Elements<Device, const int64_t> slices;
  int64_t count, length;
  PX_HD int64_t operator()(int64_t block) const { return block / count * length + slices[block % count]; }
};

template <class Device>
Status unique(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const auto given = op.find_integer("axis");
  Ints dims = given.has_value() ? Ints(x.shape()) : Ints{x.element_count()};
  const int64_t axis = given.has_value() ? PX_TRY(OpCall::resolve_axis(*given, dims.size())) : 0;
  const int64_t length = dims[axis];
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
  UniqueSlices slices;
  const DType read_as = x.dtype() == DType::bool_ ? DType::uint8 : x.dtype();
  const Status found = visit_arithmetic<Numbers>(read_as, [&](auto zero) -> Status {
    using C = decltype(zero);
    const Source source{x.view().data, read_as};
    slices = PX_TRY(find_unique(op, SliceContent<Device, C>{source, outer, length, inner}));
    return {};
  });
  if (!found.ok()) return found.error();
  const int64_t count = slices.first.size();
  dims[axis] = count;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const ChosenSlice<Device> chosen{PX_TRY(op.table(slices.first)), count, length};
  if (count > 0) index_map(op.queue(), chosen, y, x.view().data, inner);
  op.set_output(1, Tensor::vector<int64_t>(slices.first));
  op.set_output(2, Tensor::vector<int64_t>(slices.inverse));
  op.set_output(3, Tensor::vector<int64_t>(slices.counts));
  return {};
}

template <class Device>
constexpr KernelRow<Device> kSortingRows[] = {
    reads_on_host<Device>({1}, {"TopK", kReals, top_k<Device>}),
    {"Unique", kReals | kBool, unique<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> sorting_rows() {
  return kSortingRows<CompiledDevice>;
}

}  // namespace parallax::runtime
