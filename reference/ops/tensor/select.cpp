// SPDX-License-Identifier: Apache-2.0
// Operators whose output size depends on data, and rearrangements: NonZero, Compress, Unique, Pad, DepthToSpace,
// SpaceToDepth, ReverseSequence.
#include <algorithm>
#include <complex>
#include <numeric>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

bool is_set(const Tensor& tensor, int64_t index) {
  if (tensor.dtype() == DType::string) return !tensor.as<std::string>()[static_cast<size_t>(index)].empty();
  return element_as_complex(tensor, index) != 0.0;
}

// Chosen slices of an axis, in the order given.
Result<Tensor> take_slices(const OpContext& op, const Tensor& tensor, size_t axis, const std::vector<int64_t>& chosen) {
  const Shape shape = PX_TRY(with_dim(tensor.shape(), axis, static_cast<int64_t>(chosen.size())));
  Tensor output = PX_TRY(op.allocate(tensor.dtype(), shape));
  const int64_t run = count_of(shape, axis + 1, shape.rank());
  const auto count = static_cast<int64_t>(chosen.size());
  for (int64_t lead = 0; lead < count_of(shape, 0, axis); ++lead) {
    for (int64_t index = 0; index < count; ++index) {
      const int64_t from = lead * tensor.shape()[axis] + chosen[static_cast<size_t>(index)];
      copy_run(tensor, from * run, output, (lead * count + index) * run, run);
    }
  }
  return output;
}

// [rank, count]: the multi-indices of all elements that are not zero, in row-major order.
Status op_non_zero(OpContext& op) {
  const Tensor& x = op.input(0);
  const size_t rank = x.shape().rank();  // of a scalar the result is [0, N]
  std::vector<int64_t> found;
  for (int64_t index = 0; index < x.element_count(); ++index) {
    if (is_set(x, index)) found.push_back(index);
  }
  const auto count = static_cast<int64_t>(found.size());
  std::vector<int64_t> result(rank * found.size(), 0);
  const std::vector<int64_t> strides = strides_of(x.shape());
  for (size_t axis = 0; axis < x.shape().rank(); ++axis) {
    for (size_t location = 0; location < found.size(); ++location)
      result[axis * found.size() + location] = found[location] / strides[axis] % x.shape()[axis];
  }
  return op.set_output(0, DType::int64, Shape{static_cast<int64_t>(rank), count}, std::span<const int64_t>(result));
}

// Without an axis the input is taken as flat. Slices beyond the condition's length are left out.
Status op_compress(OpContext& op) {
  const auto given = op.find_int("axis");
  const Tensor input = given.has_value() ? op.input(0) : op.input(0).reshaped(Shape{op.input(0).element_count()});
  const size_t axis = PX_TRY(normalize_axis(given.value_or(0), input.shape().rank()));
  const auto condition = op.input(1).as<uint8_t>();
  if (op.input(1).shape().rank() != 1 || static_cast<int64_t>(condition.size()) > input.shape()[axis])
    return wrong_input(op, 1, "have rank 1 and at most {} elements, the size of the axis", input.shape()[axis]);
  std::vector<int64_t> chosen;
  for (size_t index = 0; index < condition.size(); ++index) {
    if (condition[index] != 0) chosen.push_back(static_cast<int64_t>(index));
  }
  return op.set_output(0, PX_TRY(take_slices(op, input, axis, chosen)));
}

// NaN comes last, and all NaN are one: the specification is silent, and so does numpy.unique.
int compare_floats(double a, double b) {
  if (a != a || b != b) return static_cast<int>(a != a) - static_cast<int>(b != b);
  return static_cast<int>(a > b) - static_cast<int>(a < b);
}

// The order of two slices, element by element: -1, 0 or 1. Complex numbers go by their real parts first.
int compare_elements(const Tensor& tensor, int64_t a, int64_t b) {
  if (tensor.dtype() == DType::string) {
    const auto strings = tensor.as<std::string>();
    return strings[static_cast<size_t>(a)].compare(strings[static_cast<size_t>(b)]);
  }
  if (is_floating(tensor.dtype())) return compare_floats(element_as_double(tensor, a), element_as_double(tensor, b));
  if (is_complex(tensor.dtype())) {
    const std::complex<double> left = element_as_complex(tensor, a);
    const std::complex<double> right = element_as_complex(tensor, b);
    const int order = compare_floats(left.real(), right.real());
    return order != 0 ? order : compare_floats(left.imag(), right.imag());
  }
  const int64_t left = element_as_int64(tensor, a);
  const int64_t right = element_as_int64(tensor, b);
  if (tensor.dtype() == DType::uint64) {
    return static_cast<int>(static_cast<uint64_t>(left) > static_cast<uint64_t>(right)) -
           static_cast<int>(static_cast<uint64_t>(left) < static_cast<uint64_t>(right));
  }
  return static_cast<int>(left > right) - static_cast<int>(left < right);
}

// Unique elements, or slices of an axis: their first occurrences, the inverse, and how often each is there.
Status op_unique(OpContext& op) {
  const auto given = op.find_int("axis");
  const Tensor input = given.has_value() ? op.input(0) : op.input(0).reshaped(Shape{op.input(0).element_count()});
  const size_t axis = PX_TRY(normalize_axis(given.value_or(0), input.shape().rank()));
  const int64_t length = input.shape()[axis];
  const int64_t inner = count_of(input.shape(), axis + 1, input.shape().rank());
  const int64_t outer = count_of(input.shape(), 0, axis);
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t k = 0; k < outer * inner; ++k) {
      const int64_t base = k / inner * length * inner + k % inner;
      const int order = compare_elements(input, base + a * inner, base + b * inner);
      if (order != 0) return order;
    }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  std::vector<std::vector<int64_t>> groups;  // positions of equal slices, ascending
  for (int64_t position : order) {
    if (groups.empty() || compare(groups.back()[0], position) != 0) groups.emplace_back();
    groups.back().push_back(position);
  }
  if (op.int_attribute("sorted") == 0) std::sort(groups.begin(), groups.end());  // by first occurrence
  std::vector<int64_t> first, counts;
  std::vector<int64_t> inverse(order.size());
  for (size_t group = 0; group < groups.size(); ++group) {
    first.push_back(groups[group][0]);
    counts.push_back(static_cast<int64_t>(groups[group].size()));
    for (int64_t position : groups[group]) inverse[static_cast<size_t>(position)] = static_cast<int64_t>(group);
  }
  const Shape shape{static_cast<int64_t>(groups.size())};
  Tensor unique = PX_TRY(take_slices(op, input, axis, first));
  PX_TRY(op.set_output(0, std::move(unique)));
  PX_TRY(op.set_output(1, DType::int64, shape, std::span<const int64_t>(first)));
  PX_TRY(op.set_output(2, DType::int64, Shape{length}, std::span<const int64_t>(inverse)));
  return op.set_output(3, DType::int64, shape, std::span<const int64_t>(counts));
}

struct PadArguments {
  std::vector<int64_t> begin, end;  // by axis
  Tensor fill;
};

Result<PadArguments> pad_arguments(const OpContext& op) {
  const size_t rank = op.input(0).shape().rank();
  const bool by_input = op.since_version() >= 11;
  const std::string_view attribute = op.since_version() == 1 ? "paddings" : "pads";
  const std::vector<int64_t> pads =
      by_input ? PX_TRY(op.int64s_of_input(1)) : op.find_ints(attribute).value_or(std::vector<int64_t>{});
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (op.has_input(3)) axes = PX_TRY_CONTEXT("axes", normalize_axes(to_int64s(op.input(3)), rank));
  if (pads.size() != 2 * axes.size())
    return wrong_length(fmt::format("'{}'", attribute), pads.size(), "have {}, two for each axis", 2 * axes.size());
  PadArguments arguments{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 0), {}};
  for (size_t index = 0; index < axes.size(); ++index) {
    arguments.begin[axes[index]] = pads[index];
    arguments.end[axes[index]] = pads[index + axes.size()];
  }
  const DType dtype = op.input(0).dtype();
  if (by_input && op.has_input(2)) {
    if (op.input(2).element_count() != 1) return wrong_input(op, 2, "be one element");
    arguments.fill = op.input(2);
    return arguments;
  }
  arguments.fill = PX_TRY(Tensor::zeros(dtype, Shape{}));
  const double value = op.find_float("value").value_or(0.0);
  if (is_floating(dtype)) store<double>(arguments.fill, 0, std::span<const double>(&value, 1));
  return arguments;
}

// The source index of a position before or after an axis of `dim` elements in the modes that repeat it; kFill for none.
int64_t source_in(const std::string& mode, int64_t position, int64_t dim) {
  if (position >= 0 && position < dim) return position;
  if (mode == "constant" || dim == 0) return kFill;
  if (mode == "edge") return position < 0 ? 0 : dim - 1;
  if (mode == "wrap") return (position % dim + dim) % dim;
  // reflect: the border itself is not repeated
  if (dim == 1) return 0;
  const int64_t period = 2 * (dim - 1);
  const int64_t within = (position % period + period) % period;
  return within < dim ? within : period - within;
}

// Negative pads cut away.
Status op_pad(OpContext& op) {
  const Tensor& data = op.input(0);
  const PadArguments pads = PX_TRY(pad_arguments(op));
  const std::string mode = op.string_attribute("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return wrong_attribute("mode", mode, "be constant, reflect, edge or wrap");
  constexpr int64_t kLargest = int64_t{1} << 40;  // of a pad, so that sums and differences below stay in range
  std::vector<int64_t> dims(data.shape().begin(), data.shape().end());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    for (const int64_t pad : {pads.begin[axis], pads.end[axis]}) {
      if (pad < -kLargest || pad > kLargest)
        return wrong_value(fmt::format("a pad of axis {}", axis), pad, "be at most {} either way", kLargest);
    }
    dims[axis] = wrapping_add(dims[axis], pads.begin[axis] + pads.end[axis]);
  }
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(data.dtype(), shape));
  const std::vector<int64_t> own = strides_of(data.shape());
  const std::vector<int64_t> outs = strides_of(shape);
  const TensorView fill = pads.fill.view();
  gather_elements(
      data, output,
      [&](int64_t index) {
        int64_t from = 0;
        for (size_t axis = 0; axis < dims.size(); ++axis) {
          const int64_t source =
              source_in(mode, index / outs[axis] % dims[axis] - pads.begin[axis], data.shape()[axis]);
          if (source == kFill) return kFill;
          from += source * own[axis];
        }
        return from;
      },
      &fill);
  return op.set_output(0, std::move(output));
}

// The input seen under `dims`, its axes put in the order `perm`, and the result seen under `result`.
Status rearrange(OpContext& op, std::span<const int64_t> dims, std::span<const size_t> perm,
                 std::span<const int64_t> result) {
  const Shape seen = PX_TRY(Shape::create(dims));
  const Shape shape = PX_TRY(Shape::create(result));
  const std::vector<int64_t> own = strides_of(seen);
  std::vector<int64_t> permuted, strides;
  for (size_t axis : perm) {
    permuted.push_back(seen[axis]);
    strides.push_back(own[axis]);
  }
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), Shape(permuted)));
  gather_strided(op.input(0), 0, strides, output);
  return op.set_output(0, output.reshaped(shape));
}

Result<std::array<int64_t, 5>> im2col_and_block(const OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t block = op.int_attribute("blocksize");
  constexpr int64_t kLargest = int64_t{1} << 30;  // of a dimension, so that the products below stay in range
  if (shape.rank() != 4 || block < 1 || block > 65536 || *std::max_element(shape.begin(), shape.end()) > kLargest)
    return wrong_input(op, 0, "be [N,C,H,W] with dimensions of at most {}, and 'blocksize', {}, be in [1, 65536]",
                       kLargest, block);
  return std::array<int64_t, 5>{shape[0], shape[1], shape[2], shape[3], block};
}

Status op_depth_to_space(OpContext& op) {
  const auto [n, c, h, w, b] = PX_TRY(im2col_and_block(op));
  if (c % (b * b) != 0)
    return wrong_value("the number of channels", c, "be a multiple of the square of 'blocksize', {}", b * b);
  const std::array<int64_t, 4> result{n, c / (b * b), h * b, w * b};
  const std::string mode = op.find_string("mode").value_or("DCR");
  if (mode == "DCR") {
    return rearrange(op, std::array<int64_t, 6>{n, b, b, c / (b * b), h, w}, std::array<size_t, 6>{0, 3, 4, 1, 5, 2},
                     result);
  }
  if (mode != "CRD") return wrong_attribute("mode", mode, "be DCR or CRD");
  return rearrange(op, std::array<int64_t, 6>{n, c / (b * b), b, b, h, w}, std::array<size_t, 6>{0, 1, 4, 2, 5, 3},
                   result);
}

// The inverse of DepthToSpace; the attribute mode is there since version 28.
Status op_space_to_depth(OpContext& op) {
  const auto [n, c, h, w, b] = PX_TRY(im2col_and_block(op));
  if (h % b != 0 || w % b != 0)
    return execution_error(fmt::format("H and W are {} and {}; they must be multiples of 'blocksize', {}", h, w, b));
  const std::array<int64_t, 6> seen{n, c, h / b, b, w / b, b};
  const std::array<int64_t, 4> result{n, c * b * b, h / b, w / b};
  const std::string mode = op.find_string("mode").value_or("DCR");
  if (mode == "DCR") return rearrange(op, seen, std::array<size_t, 6>{0, 3, 5, 1, 2, 4}, result);
  if (mode != "CRD") return wrong_attribute("mode", mode, "be DCR or CRD");
  return rearrange(op, seen, std::array<size_t, 6>{0, 1, 3, 5, 2, 4}, result);
}

// The first sequence_lens[b] elements along time_axis are reversed for each sample b.
Status op_reverse_sequence(OpContext& op) {
  const Tensor& input = op.input(0);
  const Shape& shape = input.shape();
  const int64_t time = op.int_attribute("time_axis");
  const int64_t batch = op.int_attribute("batch_axis");
  const std::vector<int64_t> lengths = PX_TRY(op.int64s_of_input(1));
  if (shape.rank() < 2 || time < 0 || time > 1 || batch < 0 || batch > 1 || time == batch)
    return wrong_input(op, 0, "have rank 2 or more, and time_axis {} and batch_axis {} be 0 and 1 in either order",
                       time, batch);
  const auto time_axis = static_cast<size_t>(time);
  const auto batch_axis = static_cast<size_t>(batch);
  if (static_cast<int64_t>(lengths.size()) != shape[batch_axis])
    return wrong_input(op, 1, "have {} elements, one for each batch entry", shape[batch_axis]);
  for (int64_t length : lengths) {
    if (length < 0 || length > shape[time_axis])
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the size of the time axis",
                         shape[time_axis]);
  }
  const std::vector<int64_t> strides = strides_of(shape);
  Tensor output = PX_TRY(op.allocate(input.dtype(), shape));
  gather_elements(input, output, [&](int64_t index) {
    const int64_t length = lengths[static_cast<size_t>(index / strides[batch_axis] % shape[batch_axis])];
    const int64_t at = index / strides[time_axis] % shape[time_axis];
    return at < length ? index + (length - 1 - 2 * at) * strides[time_axis] : index;
  });
  return op.set_output(0, std::move(output));
}

constexpr OpRow kSelectRows[] = {
    {"Compress", kOnnx, 9, 28, op_compress},
    {"DepthToSpace", kOnnx, 1, 28, op_depth_to_space},
    {"NonZero", kOnnx, 9, 13, op_non_zero},
    {"Pad", kOnnx, 1, 25, op_pad},
    {"ReverseSequence", kOnnx, 10, 28, op_reverse_sequence},
    {"SpaceToDepth", kOnnx, 1, 28, op_space_to_depth},
    {"Unique", kOnnx, 11, 28, op_unique},
};

}  // namespace

OpRows select_rows() { return kSelectRows; }

}  // namespace parallax::reference
