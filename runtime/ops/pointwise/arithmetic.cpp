// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two and more operands: Add to Pow, the variadic ones, Clip, PRelu, shifts.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/find.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise/binary_functors.h"
#include "runtime/ops/pointwise/pointwise.h"

namespace parallax::runtime {
namespace {

struct IsZero {
  PX_HD bool operator()(int64_t x, int64_t) const { return x == 0; }
};

template <class Device, class F>
Status dividing(OpContext<Device>& op) {
  if (is_integer(op.input(1).dtype()) && op.input(0).element_count() > 0) {
    const int64_t zero = PX_TRY(find_first<int64_t>(op.queue(), IsZero{}, op.input(1).view()));
    if (zero >= 0) return wrong_input(op, 1, "have no 0 for a division of integers, element {} is 0", zero);
  }
  return binary<Device, Numbers, F>(op);
}

template <class Device>
Status mod(OpContext<Device>& op) {
  return op.integer("fmod") != 0 ? dividing<Device, Fmod>(op) : dividing<Device, Mod>(op);
}

template <class Device>
Status bit_shift(OpContext<Device>& op) {
  const std::string direction = op.text("direction");
  if (direction == "LEFT") return binary<Device, Integers, ShiftLeft>(op);
  if (direction == "RIGHT") return binary<Device, Integers, ShiftRight>(op);
  return wrong_attribute("direction", direction, "be LEFT or RIGHT");
}

template <class Device>
Status prelu(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  TensorView slope = op.input(1).view();
  // Before version 7 a slope for each channel was a list along axis 1.
  if (op.since_version() < 7 && slope.shape.rank() == 1 && x.shape().rank() > 2 && slope.element_count() > 1) {
    Ints dims(rank_of(x.shape()) - 1, 1);
    dims[0] = slope.element_count();
    slope.shape = PX_TRY(shape_of(dims));
  }
  const Shape shapes[] = {x.shape(), slope.shape};
  if (!(PX_TRY(broadcast_shapes(shapes)) == x.shape()))
    return wrong_input(op, 1, "broadcast to the shape of X, {}", x.shape().to_string());
  const MutableView y = PX_TRY(op.make_output_over(0, x.dtype(), x.shape(), {0}));
  return map<Numbers>(op.queue(), PRelu{}, y, std::array<TensorView, 2>{x.view(), slope});
}

// ---- Pow: the exponent has a type of its own ----

struct PowReal {
  static constexpr int64_t kWork = 20;
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return std::pow(a, b);
  }
};
struct Square {
  template <class T>
  PX_HD T operator()(T a, T) const {
    return a * a;
  }
};
struct Cube {
  template <class T>
  PX_HD T operator()(T a, T) const {
    return a * a * a;
  }
};
struct PowInteger {  // by squaring; negative exponents give 0 but for bases 1 and -1
  static constexpr int64_t kWork = 10;
  template <class T>
  PX_HD T operator()(T base, T exponent) const {
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) return base == 1 ? T(1) : base == -1 ? (exponent % 2 == 0 ? T(1) : T(-1)) : T(0);
    }
    uint64_t result = 1;
    uint64_t square = static_cast<uint64_t>(base);
    for (uint64_t rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
      if ((rest & 1U) != 0) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};

template <class Device>
Status pow(OpContext<Device>& op) {
  const Tensor& base = op.input(0);
  const TensorView exponent =
      op.since_version() < 7 ? PX_TRY(second_operand(op)) : op.input(1).view();  // since 7 of a type of its own
  const Shape shapes[] = {base.shape(), exponent.shape};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const MutableView out = PX_TRY(op.make_output_over(0, base.dtype(), shape, {0}));
  const std::array<TensorView, 2> operands{base.view(), exponent};
  // On a GPU the exponent is not read on the host: that would wait for it.
  const bool is_known = !GpuDevice<Device> && exponent.element_count() == 1;
  const double known = is_known ? PX_TRY(op.real_of_input(1)) : 0.0;
  if (is_integer(base.dtype()) && is_floating(exponent.dtype)) {
    map_as<double, double>(op.queue(), PowReal{}, out, operands);
    return {};
  }
  return visit_arithmetic<Numbers>(base.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    if constexpr (std::is_floating_point_v<C>) {
      if (known == 2.0) return map_as<C, C>(op.queue(), Square{}, out, operands), Status{};
      if (known == 3.0) return map_as<C, C>(op.queue(), Cube{}, out, operands), Status{};
      map_as<C, C>(op.queue(), PowReal{}, out, operands);
    } else {
      map_as<C, C>(op.queue(), PowInteger{}, out, operands);
    }
    return {};
  });
}

// ---- Any number of operands, folded from the left ----

template <class Device, class Domain, class F>
Status variadic(OpContext<Device>& op) {
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < op.input_count(); ++i) shapes.push_back(op.input(i).shape());
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  if (op.input_count() == 1) return op.alias_output(0, 0, shape), Status{};
  const MutableView out = PX_TRY(op.make_output(0, op.input(0).dtype(), shape));
  PX_TRY(map<Domain>(op.queue(), F{}, out, std::array<TensorView, 2>{op.input(0).view(), op.input(1).view()}));
  for (int64_t i = 2; i < op.input_count(); ++i) {
    PX_TRY(map<Domain>(op.queue(), F{}, out, std::array<TensorView, 2>{TensorView(out), op.input(i).view()}));
  }
  return {};
}

struct Scale {
  double factor;
  template <class T>
  PX_HD T operator()(T x) const {
    return x * static_cast<T>(factor);
  }
};

// The sum is carried in the arithmetic type, so that float16 rounds once.
template <class Device>
Status mean(OpContext<Device>& op) {
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < op.input_count(); ++i) shapes.push_back(op.input(i).shape());
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const DType dtype = op.input(0).dtype();
  const DType wide = dtype == DType::float64 ? DType::float64 : DType::float32;
  const MutableView sum = PX_TRY(op.scratch(wide, shape));
  fill(op.queue(), sum, nullptr);
  for (int64_t i = 0; i < op.input_count(); ++i) {
    PX_TRY(map<Floats>(op.queue(), Add{}, sum, std::array<TensorView, 2>{TensorView(sum), op.input(i).view()}));
  }
  const MutableView out = PX_TRY(op.make_output(0, dtype, shape));
  const Scale scale{1.0 / static_cast<double>(op.input_count())};
  return map<Floats>(op.queue(), scale, out, std::array<TensorView, 1>{TensorView(sum)});
}

// Swish of the gate, times the value (SwiGLU-28).
struct GatedBySwish {
  double alpha;
  explicit GatedBySwish(const OpCall& op) : alpha(op.real("alpha")) {}
  static constexpr int64_t kWork = 20;
  template <class T>
  PX_HD T operator()(T gate, T value) const {
    return math::times_sigmoid(gate, static_cast<T>(alpha) * gate) * value;
  }
};

template <class Device>
Status swiglu(OpContext<Device>& op) {
  if (!(op.input(0).shape() == op.input(1).shape()))
    return wrong_input(op, 1, "have the shape of A, {}", op.input(0).shape().to_string());
  return binary<Device, Floats, GatedBySwish>(op);
}

template <class C>
struct Clamp {
  C low;
  C high;
  PX_HD C operator()(C x) const {
    x = x < low ? low : x;
    return x > high ? high : x;
  }
};

// Bounds are attributes before version 11, optional inputs since.
template <class Device>
Status clip(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const MutableView y = PX_TRY(op.make_output_over(0, x.dtype(), x.shape(), {0}));
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    constexpr bool kIsFloat = std::is_floating_point_v<C>;
    Clamp<C> clamp{kIsFloat ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest(),
                   kIsFloat ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max()};
    if (op.since_version() < 11) {
      if (const auto low = op.find_real("min")) clamp.low = static_cast<C>(*low);
      if (const auto high = op.find_real("max")) clamp.high = static_cast<C>(*high);
    }
    for (const auto& [index, bound] : {std::pair{1, &clamp.low}, std::pair{2, &clamp.high}}) {
      if (!op.has_input(index)) continue;
      const Tensor& tensor = op.input(index);
      if (tensor.element_count() != 1 || tensor.dtype() != x.dtype())
        return wrong_input(op, index, "be one element of the input's type, {}", name_of(x.dtype()));
      *bound = load_element<C>(tensor.dtype(), tensor.view().data, 0);
    }
    map_as<C, C>(op.queue(), clamp, y, std::array<TensorView, 1>{x.view()});
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kArithmeticRows[] = {
    elementwise<Device>({"Add", kReals, binary<Device, Numbers, Add>}),
    {"BitShift", kInts, bit_shift<Device>},
    {"BitwiseAnd", kInts, binary<Device, Integers, BitwiseAnd>},
    {"BitwiseOr", kInts, binary<Device, Integers, BitwiseOr>},
    {"BitwiseXor", kInts, binary<Device, Integers, BitwiseXor>},
    elementwise(reads_on_host<Device>({1, 2}, {"Clip", kReals, clip<Device>})),
    elementwise<Device>({"Div", kReals, dividing<Device, Div>}),
    elementwise<Device>({"Max", kReals, variadic<Device, Numbers, Maximum>, 8}),
    elementwise<Device>({"Mean", kFloats, mean<Device>, 8}),
    elementwise<Device>({"Min", kReals, variadic<Device, Numbers, Minimum>, 8}),
    {"Max", kReals, variadic<Device, Numbers, Maximum>, 1, 7},
    {"Mean", kFloats, mean<Device>, 1, 7},
    {"Min", kReals, variadic<Device, Numbers, Minimum>, 1, 7},
    {"Mod", kReals, mod<Device>},
    elementwise<Device>({"Mul", kReals, binary<Device, Numbers, Mul>}),
    {"PRelu", kReals, prelu<Device>},
    elementwise<Device>({"Pow", kReals, pow<Device>, 7}),
    elementwise<Device>({"Sub", kReals, binary<Device, Numbers, Sub>}),
    elementwise<Device>({"Sum", kFloats, variadic<Device, Floats, Add>, 8}),
    {"Pow", kReals, pow<Device>, 1, 6},
    {"Sum", kFloats, variadic<Device, Floats, Add>, 1, 7},
    {"SwiGLU", kFloats, swiglu<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> arithmetic_rows() {
  return kArithmeticRows<CompiledDevice>;
}

}  // namespace parallax::runtime
