// SPDX-License-Identifier: Apache-2.0
// Col2Im and CenterCropPad: a feature map assembled from blocks, a feature map cut or widened around its center.
#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/linear_map.h"
#include "reference/ops/map.h"
#include "reference/ops/move.h"
#include "reference/ops/window.h"

namespace parallax::reference {
namespace {

// Every block element is added to the element of the feature map under it; elements on the padding are left out.
template <class Number>
std::vector<Number> add_blocks(const Window& window, int64_t planes, std::span<const Number> blocks) {
  const int64_t kernel = window.kernel_count();
  const int64_t locations = window.output_count();
  const int64_t inner = window.input_count();
  std::vector<Number> feature_maps(static_cast<size_t>(planes * inner), Number{});
  std::vector<int64_t> positions(static_cast<size_t>(kernel));
  for (int64_t location = 0; location < locations; ++location) {
    window.sources(location, positions);
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t element = 0; element < kernel; ++element) {
        const int64_t position = positions[static_cast<size_t>(element)];
        if (position < 0) continue;
        feature_maps[static_cast<size_t>(plane * inner + position)] +=
            blocks[static_cast<size_t>((plane * kernel + element) * locations + location)];
      }
    }
  }
  return feature_maps;
}

// [N, C * block elements, blocks] as a feature map [N, C, ...]; blocks are numbered in row-major order.
Status op_col2im(OpContext& op) {
  const Tensor& input = op.input(0);
  const Shape& shape = input.shape();
  const std::vector<int64_t> image_shape = PX_TRY(op.int64s_of_input(1));
  const std::vector<int64_t> block = PX_TRY(op.int64s_of_input(2));
  const auto elements = PX_TRY(Shape::create(block)).element_count();
  if (shape.rank() != 3 || image_shape.empty() || image_shape.size() != block.size() || elements < 1 ||
      shape[1] % elements != 0)
    return wrong_input(op, 0,
                       "be [N,channels * {},blocks], {} being the elements of a block; its shapes have {} and {} axes",
                       elements, elements, image_shape.size(), block.size());
  std::vector<int64_t> dims{shape[0], shape[1] / elements};
  dims.insert(dims.end(), image_shape.begin(), image_shape.end());
  const Shape result = PX_TRY(Shape::create(dims));
  const Window window = PX_TRY(plan_window(op, result, block, false));
  if (window.output_count() != shape[2])
    return wrong_input(op, 0, "have a last axis of {}, the number of blocks of the output", window.output_count());
  const int64_t planes = dims[0] * dims[1];
  if (is_integer(input.dtype()) || input.dtype() == DType::bool_) {
    const Numbers<uint64_t> numbers(input);
    const std::vector<uint64_t> values = add_blocks<uint64_t>(window, planes, numbers.span());
    return op.set_output(0, input.dtype(), result, std::span<const uint64_t>(values));
  }
  return map_linear(op, input, result,
                    [&](const std::vector<double>& numbers) { return add_blocks<double>(window, planes, numbers); });
}

// Along each axis named: a cut begins at half the excess, rounded down; padding is zeros, the odd one after.
Status op_center_crop_pad(OpContext& op) {
  const Tensor& input = op.input(0);
  const size_t rank = input.shape().rank();
  const std::vector<int64_t> sizes = PX_TRY(op.int64s_of_input(1));
  std::vector<size_t> axes(rank);
  for (size_t axis = 0; axis < rank; ++axis) axes[axis] = axis;
  if (const auto given = op.find_ints("axes")) axes = PX_TRY(normalize_axes(*given, rank));
  if (sizes.size() != axes.size())
    return wrong_length("input 'shape'", sizes.size(), "have {}, one for each axis", axes.size());
  std::vector<int64_t> dims(input.shape().begin(), input.shape().end());
  std::vector<int64_t> begins(rank, 0);  // the input position that output position 0 stands for
  for (size_t index = 0; index < axes.size(); ++index) {
    const int64_t dim = dims[axes[index]];
    const int64_t wanted = sizes[index];
    if (wanted < 0) return wrong_value(fmt::format("the size asked for axis {}", axes[index]), wanted, "be 0 or more");
    begins[axes[index]] = dim > wanted ? (dim - wanted) / 2 : -((wanted - dim) / 2);
    dims[axes[index]] = wanted;
  }
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(input.dtype(), shape));
  const std::vector<int64_t> own = strides_of(input.shape());
  const std::vector<int64_t> outs = strides_of(shape);
  const Tensor zero = PX_TRY(Tensor::zeros(input.dtype(), Shape{}));
  const TensorView fill = zero.view();
  gather_elements(
      input, output,
      [&](int64_t index) {
        int64_t from = 0;
        for (size_t axis = 0; axis < rank; ++axis) {
          const int64_t source = index / outs[axis] % dims[axis] + begins[axis];
          if (source < 0 || source >= input.shape()[axis]) return kFill;
          from += source * own[axis];
        }
        return from;
      },
      &fill);
  return op.set_output(0, std::move(output));
}

constexpr OpRow kBlocksRows[] = {
    {"CenterCropPad", kOnnx, 18, 18, op_center_crop_pad},
    {"Col2Im", kOnnx, 18, 18, op_col2im},
};

}  // namespace

OpRows blocks_rows() { return kBlocksRows; }

}  // namespace parallax::reference
