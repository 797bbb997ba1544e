// SPDX-License-Identifier: Apache-2.0
// com.microsoft's CropAndResize and UnfoldTensor. Definitions: ContribOperators.md.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/contrib_families.h"

namespace parallax::runtime {
namespace {

// All slices of `size` elements, `step` elements from each other, along `dim`; the slice is a new last axis.
template <class Device>
Status unfold(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  Ints dims(x.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("dim"), dims.size()));
  const int64_t size = op.integer("size"), step = op.integer("step");
  if (size < 1 || step < 1 || size > dims[axis])
    return execution_error(fmt::format(
        "attribute 'size' is {} and 'step' is {}; they must be 1 or more, and size at most {}, that of axis {}", size,
        step, dims[axis], axis));
  Ints strides = row_major_strides(dims);
  strides.push_back(strides[axis]);
  strides[axis] *= step;
  dims[axis] = (dims[axis] - size) / step + 1;
  dims.push_back(size);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  copy_strided(op.queue(), element_bytes(x.dtype()), dims, {y.data, row_major_strides(dims), 0},
               {x.view().data, strides, 0});
  return {};
}

// ---- CropAndResize ----

// The coordinate of sample `index` of `count` between the corners of a box, which are parts of `length` - 1; a box of
// one sample is sampled in its middle.
PX_HD double sample_coordinate(double low, double high, int64_t length, int64_t count, int64_t index) {
  const auto span = static_cast<double>(length - 1);
  if (count == 1) return 0.5 * (low + high) * span;
  return low * span + static_cast<double>(index) * (high - low) * span / static_cast<double>(count - 1);
}

// One number of the result; `outside` for positions outside the feature map.
template <class Device>
struct CroppedSample {
  Source feature_map, boxes;
  Elements<Device, const int64_t> batches;  // the batch index of each box
  int64_t channels, height, width;
  int64_t rows, columns;  // of the result
  bool is_nearest;
  double outside;

  PX_HD double pixel(int64_t plane, int64_t row, int64_t column) const {
    return element_of<Device, double>(feature_map, (plane * height + row) * width + column);
  }
  PX_HD double bilinear(int64_t plane, double y, double x) const {
    const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
    const int64_t bottom = top + 1 < height ? top + 1 : top, right = left + 1 < width ? left + 1 : left;
    const double down = y - static_cast<double>(top), along = x - static_cast<double>(left);
    return (pixel(plane, top, left) * (1 - along) + pixel(plane, top, right) * along) * (1 - down) +
           (pixel(plane, bottom, left) * (1 - along) + pixel(plane, bottom, right) * along) * down;
  }
  PX_HD double operator()(int64_t i) const {
    const int64_t box = i / columns / rows / channels;
    const int64_t plane = batches[box] * channels + i / columns / rows % channels;
    double corners[4];
    for (int64_t corner = 0; corner < 4; ++corner)
      corners[corner] = element_of<Device, double>(boxes, box * 4 + corner);
    const double y = sample_coordinate(corners[0], corners[2], height, rows, i / columns % rows);
    const double x = sample_coordinate(corners[1], corners[3], width, columns, i % columns);
    const bool is_inside =
        y >= 0 && y <= static_cast<double>(height - 1) && x >= 0 && x <= static_cast<double>(width - 1);
    if (!is_inside) return outside;
    if (!is_nearest) return bilinear(plane, y, x);
    return pixel(plane, static_cast<int64_t>(std::round(y)), static_cast<int64_t>(std::round(x)));
  }
};

template <class Device>
Status crop_and_resize(OpContext<Device>& op) {
  const Ints feature_map(op.input(0).shape()), boxes(op.input(1).shape());
  const Ints batches = PX_TRY(op.integers_of_input(2)), size = PX_TRY(op.integers_of_input(3));
  const std::string mode = op.text("mode");
  if (mode != "bilinear" && mode != "nearest") return wrong_attribute("mode", mode, "be bilinear or nearest");
  if (feature_map.size() != 4 || boxes.size() != 2 || boxes[1] != 4 || batches.size() != boxes[0] || size.size() != 2 ||
      size[0] < 1 || size[1] < 1)
    return wrong_input(
        op, 1, "be [n,4] for batch_indices of n ({}), X of rank 4 ({}) and a positive crop_size of two entries ({})",
        batches.size(), op.input(0).shape().to_string(), dims_text(size));
  for (int64_t batch : batches) {
    if (batch < 0 || batch >= feature_map[0])
      return wrong_value("an entry of batch_indices", batch, "be in [0, {}), the batch of X", feature_map[0]);
  }
  const MutableView y =
      PX_TRY(op.make_output(0, op.input(0).dtype(), shape_of({boxes[0], feature_map[1], size[0], size[1]})));
  const CroppedSample<Device> sample{source_of(op.input(0).view()),
                                     source_of(op.input(1).view()),
                                     PX_TRY(op.table(batches)),
                                     feature_map[1],
                                     feature_map[2],
                                     feature_map[3],
                                     size[0],
                                     size[1],
                                     mode == "nearest",
                                     op.real("extrapolation_value")};
  tabulate<double>(op.queue(), sample, y);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kContribCropUnfoldRows[] = {
    of_microsoft(reads_on_host<Device>({2, 3}, {"CropAndResize", kFloats, crop_and_resize<Device>})),
    of_microsoft<Device>({"UnfoldTensor", kMovable, unfold<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> contrib_crop_unfold_rows() {
  return kContribCropUnfoldRows<CompiledDevice>;
}

}  // namespace parallax::runtime
