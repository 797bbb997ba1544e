// Comparisons, operators on bool, and Where.
#include "runtime/device/copy.h"
#include "runtime/ops/binary_functors.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"

namespace parallax::runtime {
namespace {

template <class Device>
Status equal(OpContext<Device>& op) {
  if (op.input(0).dtype() == DType::bool_) return binary_predicate<Device, Booleans, Equal>(op);
  return binary_predicate<Device, Numbers, Equal>(op);
}

// `count` elements of a payload from `index` on, or the one at `index` repeated when stride is 0.
template <class T>
const T* run_of(const TensorView& view, int64_t index, int64_t stride, int64_t count, T* buffer) {
  const T* source = reinterpret_cast<const T*>(view.data) + index;
  if (stride == 1) return source;
  std::fill_n(buffer, count, *source);
  return buffer;
}

struct Wide {
  uint64_t words[2];
};

// Elements are moved, never read: T stands for their size.
template <class T>
void where_as(const MutableView& out, const std::array<TensorView, 3>& in) {
  const MapPlan<3> plan = plan_map(out.shape, in);
  const int64_t run = plan.run();
  parallel_for(out.element_count(), 2, [&](int64_t begin, int64_t end) {
    uint8_t conditions[kBlockElements];
    T first[kBlockElements];
    T second[kBlockElements];
    for (int64_t index = begin; index < end;) {
      const int64_t within = index % run;
      const int64_t count = std::min({run - within, end - index, kBlockElements});
      int64_t offsets[3];
      for (size_t operand = 0; operand < 3; ++operand) {
        const Ints& strides = plan.strides[operand];
        offsets[operand] = within * strides.back();
        int64_t rest = index / run;
        for (int64_t axis = plan.dims.size() - 2; axis >= 0; --axis) {
          offsets[operand] += rest % plan.dims[axis] * strides[axis];
          rest /= plan.dims[axis];
        }
      }
      const uint8_t* c = run_of(in[0], offsets[0], plan.strides[0].back(), count, conditions);
      const T* x = run_of(in[1], offsets[1], plan.strides[1].back(), count, first);
      const T* y = run_of(in[2], offsets[2], plan.strides[2].back(), count, second);
      T* target = reinterpret_cast<T*>(out.data) + index;
      vectorised(0, count, [c, x, y, target](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) target[i] = c[i] != 0 ? x[i] : y[i];
      });
      index += count;
    }
  });
}

template <class Device>
Status where(OpContext<Device>& op) {
  const Tensor& x = op.input(1);
  if (x.dtype() != op.input(2).dtype()) return execution_error("X and Y have different element types");
  const Shape shapes[] = {op.input(0).shape(), x.shape(), op.input(2).shape()};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const MutableView out = PX_TRY(op.make_output(0, x.dtype(), shape));
  const std::array<TensorView, 3> operands{op.input(0).view(), x.view(), op.input(2).view()};
  switch (element_bytes(x.dtype())) {
    case 1:
      where_as<uint8_t>(out, operands);
      break;
    case 2:
      where_as<uint16_t>(out, operands);
      break;
    case 4:
      where_as<uint32_t>(out, operands);
      break;
    case 8:
      where_as<uint64_t>(out, operands);
      break;
    default:
      where_as<Wide>(out, operands);
  }
  return {};
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"And", kBool, binary<Device, Booleans, And>},
    {"Equal", kReals | kBool, equal<Device>},
    {"Greater", kReals, binary_predicate<Device, Numbers, Greater>},
    {"GreaterOrEqual", kReals, binary_predicate<Device, Numbers, GreaterOrEqual>},
    {"Less", kReals, binary_predicate<Device, Numbers, Less>},
    {"LessOrEqual", kReals, binary_predicate<Device, Numbers, LessOrEqual>},
    {"Or", kBool, binary<Device, Booleans, Or>},
    {"Where", kMovable, where<Device>, 1, INT64_MAX, 1},
    {"Xor", kBool, binary<Device, Booleans, Xor>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> logic_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
