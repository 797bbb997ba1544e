# SPDX-License-Identifier: Apache-2.0
"""Cases of Cast and CastLike: rounding, ties, ranges. Narrow results are widened to float64 again, where the policy is strict."""
import numpy as np

from .case import (INF, NAN, TYPES, boolean, family, family_of_models, f16, f32, f64, i4, i8, i16, i32, i64, tensor, text,
                   u4, u16, u32, u64)
from .formulas import FORMATS, narrow

case = family("casts")
model = family_of_models("casts")
WORD = {"float32": "float", "float64": "double"}
TABLES = "Cast: to nearest, ties to even; out of range by the table of the specification"
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


def through(name, opset, x, to, attributes="", outputs=None, **more):
    """Cast to `to`, then to float64."""
    source = {np.dtype(numpy): n for n, (numpy, _) in TYPES.items()}[x.dtype]
    graph = (f"g ({WORD.get(source, source)}[N] x) => (double[N] y) "
             f"{{ h = Cast<to={TYPES[to][1]}{attributes}>(x) y = Cast<to=11>(h) }}")
    model(name, opset, graph, [x], outputs, **more)


# Ties between steps, values next to them, and the border of the range, for each format from its own table of values.
def probes(dtype, large):
    exponent_bits, mantissa_bits, bias, special = FORMATS[dtype]
    top = 2 ** exponent_bits - 1 - (special == "ieee")
    unit = 2.0 ** (top - bias - mantissa_bits)
    full = 2 ** (mantissa_bits + 1) - 1 - (special == "fn")
    if large:
        return [unit * k for k in (full - 1, full - 0.5, full, full + 0.25, full + 0.5, full + 0.75, full + 9, -full, -full - 0.5,
                                   -full - 7, full - 1.5, 2 ** mantissa_bits + 0.5)]
    least = 2.0 ** (1 - bias - mantissa_bits)
    border = 2 ** mantissa_bits
    return [least * k for k in (0.5, 0.50390625, 0.25, 1, 1.5, 2.5, -0.5, -1.5, -0.75, border - 0.5, border + 0.5, border + 1.5,
                                2 * border + 1)]


for kind in ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"):
    for saturate in (1, 0):
        big = f32(probes(kind, True) + [INF, -INF, NAN])
        through(f"cast_{kind}_large_saturate_{saturate}", 19, big, kind, f", saturate={saturate}",
                [narrow(big, kind, saturate)], spec=TABLES,
                wrong={ORT: "gives NaN for what rounds to infinity"} if (kind, saturate) == ("float8e5m2", 0) else {})
    small = f32(probes(kind, False) + [0, -0.0])
    through(f"cast_{kind}_small", 23, small, kind, "", [narrow(small, kind)], spec=TABLES)
    halves = f16([0.3125, -1.0625, 17.0, 3.3125, 300, -1000, 240.0, INF])
    through(f"cast_float16_to_{kind}", 21, halves, kind, "", [narrow(halves, kind)], spec=TABLES)
    back = tensor(kind, narrow([0.25, -1.75, 3, 0.0625, 40, -96], kind))
    case(f"cast_{kind}_to_float32", "Cast", 19, [back], {"to": 1})
    case(f"cast_{kind}_to_float16", "Cast", 23, [back], {"to": 10})
e2m1_probes = f32([0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 5.5, 7, 100, -0.25, -0.75, -2.5, -5, -1000, 0.1, INF, -INF])
through("cast_float4e2m1", 23, e2m1_probes, "float4e2m1", "", [narrow(e2m1_probes, "float4e2m1")], spec=TABLES)
case("cast_float4e2m1_to_float32", "Cast", 23, [tensor("float4e2m1", [0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -6])], {"to": 1},
     [f32([0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -6])], spec="the values of float4e2m1")
for kind, size in (("float16", "large"), ("float16", "small"), ("bfloat16", "small")):
    x = f32(probes(kind, size == "large"))
    through(f"cast_{kind}_{size}", 13, x, kind, "", [narrow(x, kind)], spec=TABLES)
middle = f32([1.00390625, 1.01171875, -1.00390625, 1.00390637, 2.0078125, 3.0234375, 255.5, -100.25])
through("cast_bfloat16_ties", 13, middle, "bfloat16", "", [narrow(middle, "bfloat16")], spec=TABLES)
# A double between two halves of a float's step: rounding to float32 first would make a tie of it.
twice = f64([1 + 2 ** -11 + 2 ** -40, 1 + 2 ** -11 - 2 ** -40, 1 + 3 * 2 ** -11 - 2 ** -45, 65520 - 2 ** -30])
through("cast_float64_to_float16_rounds_once", 13, twice, "float16", "", [narrow(twice, "float16")], spec=TABLES,
        wrong={ORT: "rounds to float32 first"})
twice = f64([1 + 2 ** -8 + 2 ** -40, 1 + 2 ** -8 - 2 ** -40, 3 + 2 ** -7 + 2 ** -45, -1 - 2 ** -8 - 2 ** -44])
through("cast_float64_to_bfloat16_rounds_once", 13, twice, "bfloat16", "", [narrow(twice, "bfloat16")], spec=TABLES,
        wrong={ORT: "rounds to float32 first", EVALUATOR: "rounds to float32 first"})
through("cast_float64_to_float32", 13, f64([0.1, 1e39, -1e39, 1e-46, 1 + 2 ** -24, 1 + 3 * 2 ** -24, 3.4028235677973366e38]),
        "float32")

# float8e8m0 holds powers of two: Cast-24's round_mode.
SCALES = f32([1, 1.25, 1.5, 1.75, 2, 3, 5, 6, 0.3, 100])
through("cast_e8m0_up", 24, SCALES, "float8e8m0", "", [f64([1, 2, 2, 2, 2, 4, 8, 8, 0.5, 128])],
        spec="Cast-24: round_mode 'up', the default")
through("cast_e8m0_down", 24, SCALES, "float8e8m0", ', round_mode="down"', [f64([1, 1, 1, 1, 2, 2, 4, 4, 0.25, 64])],
        spec="Cast-24: round_mode 'down'")
through("cast_e8m0_nearest", 24, SCALES, "float8e8m0", ', round_mode="nearest"', [f64([1, 1, 2, 2, 2, 4, 4, 8, 0.25, 128])],
        spec="Cast-24: round_mode 'nearest', ties up")

NEAREST = "4 bit integer types: a cast to them is done by rounding to the nearest integer, ties to even"

# Integers: to a narrower type the high bits go.
WRAPS = "Cast: from a larger fixed point type to a smaller one the high bits are discarded"
case("cast_int64_to_int32_wraps", "Cast", 13, [i64([2 ** 31, 2 ** 32 + 7, -2 ** 31 - 1, 5, 2 ** 40 - 3])], {"to": 6})
case("cast_int32_to_int8_wraps", "Cast", 13, [i32([127, 128, 255, 256, 300, -129, -300])], {"to": 3})
case("cast_int16_to_uint8_wraps", "Cast", 13, [i16([200, 256, 300, -1, -200])], {"to": 2})
case("cast_int8_to_uint16_wraps", "Cast", 13, [i8([-1, -128, 127])], {"to": 4})
case("cast_int32_to_uint64_wraps", "Cast", 13, [i32([-1, 7, -2 ** 31])], {"to": 13})
case("cast_uint64_to_int64_wraps", "Cast", 13, [u64([2 ** 63, 2 ** 64 - 1, 9])], {"to": 7})
case("cast_uint64_to_float32", "Cast", 13, [u64([2 ** 63, 2 ** 64 - 1, 2 ** 53 + 1, 16777217])], {"to": 1})
case("cast_uint32_to_float32_ties", "Cast", 13, [u32([16777217, 16777219, 2 ** 32 - 1, 7])], {"to": 1})
case("cast_int32_to_int4_wraps", "Cast", 21, [i32([7, 8, 9, -8, -9, 16, 23])], {"to": 22},
     [i4([7, -8, -7, -8, 7, 0, 7])], spec=WRAPS)
case("cast_int8_to_uint4_wraps", "Cast", 21, [i8([15, 16, 17, -1, -16, 100])], {"to": 21}, [u4([15, 0, 1, 15, 0, 4])], spec=WRAPS)
case("cast_int4_to_int32", "Cast", 21, [i4([-8, -1, 0, 7, 3])], {"to": 6})
case("cast_uint4_to_float32", "Cast", 21, [u4([0, 1, 15, 8, 9])], {"to": 1})
case("cast_int4_to_uint8_wraps", "Cast", 21, [i4([-8, -1, 7])], {"to": 2})
case("cast_int2_to_int64", "Cast", 25, [tensor("int2", [-2, -1, 0, 1, 1])], {"to": 7})
case("cast_uint2_to_float32", "Cast", 25, [tensor("uint2", [0, 1, 2, 3, 3])], {"to": 1})
case("cast_float32_to_int4_in_range", "Cast", 21, [f32([-8, -7.9, -0.9, 0.5, 1.5, 6.99, 7])], {"to": 22},
     [i4([-8, -8, -1, 0, 2, 7, 7])], spec=NEAREST, wrong={EVALUATOR: "truncates", ORT: "rounds halves away from zero"})
case("cast_float32_to_uint4_in_range", "Cast", 21, [f32([0, 0.9, 14.99, 15, 6.5, 7.5])], {"to": 21},
     [u4([0, 1, 15, 15, 6, 8])], spec=NEAREST, wrong={EVALUATOR: "truncates", ORT: "rounds halves away from zero"})
case("cast_int64_to_float16_rounds", "Cast", 13, [i64([2049, 2051, 65519, 65520, -2049])], {"to": 10})

# Truncation, bool, strings.
case("cast_float64_to_int64_large", "Cast", 13, [f64([9007199254740993.0, -4503599627370497.5, 0.999999, -0.999999])], {"to": 7})
case("cast_float64_to_uint8_truncates", "Cast", 13, [f64([255.9, 0.9, 3.5, 200.1])], {"to": 2})
case("cast_float16_to_int32", "Cast", 13, [f16([2.5, -2.5, 1000.5, 65504])], {"to": 6})
case("cast_float_specials_to_bool", "Cast", 13, [f32([0, -0.0, 0.1, -2, NAN, INF, 1e-40])], {"to": 9})
case("cast_int_to_bool", "Cast", 13, [i64([0, 2, -1, 2 ** 32])], {"to": 9})
case("cast_bool_to_float", "Cast", 13, [boolean([True, False, True])], {"to": 1})
case("cast_bool_to_int8", "Cast", 13, [boolean([True, False, True])], {"to": 3})
case("cast_string_to_double", "Cast", 13, [text(["3.14", "1000", "1e-5", "1E8", "-2.5"])], {"to": 11})
case("cast_string_special_to_float", "Cast", 13, [text(["INF", "-INF", "+INF", "NaN", "nan", "1.5"])], {"to": 1},
     [f32([INF, -INF, INF, NAN, NAN, 1.5])], spec="Cast: 'INF', '+INF', '-INF' and 'NaN' in any case")
case("cast_string_to_int64", "Cast", 13, [text(["12", "-7", "9007199254740993"])], {"to": 7})
case("cast_int64_to_string", "Cast", 13, [i64([0, -5, 9007199254740993])], {"to": 8})
case("cast_6_float_to_int", "Cast", 6, [f32([1.9, -1.9, 7])], {"to": 6})
case("cast_9_string", "Cast", 9, [text(["2.5", "-1"])], {"to": 1})
case("cast_rank_0", "Cast", 13, [f32(-2.75)], {"to": 7})
case("cast_empty", "Cast", 13, [f32([], [0, 3])], {"to": 7}, constant="nothing is cast to nothing")
case("castlike_to_int8", "CastLike", 15, [f32([1.5, -7.25, 100]), i8([])])
case("castlike_to_float16", "CastLike", 19, [f32([1.5, 2049, 1e5]), f16([1])])
saturates = f32([500, -500, 17, 464, 480])
model("castlike_saturate_0", 19, "g (float[N] x, float8e4m3fn[M] t) => (double[N] y) "
      "{ h = CastLike<saturate=0>(x, t) y = Cast<to=11>(h) }", [saturates, tensor("float8e4m3fn", [1])],
      [narrow(saturates, "float8e4m3fn", False)], spec=TABLES, wrong={ORT: "gives 448 for 480"})
model("castlike_of_function_attribute", {"": 19, "local": 1}, """
      g (float[N] x) => (int64[N] y) { y = local.to<kind = 7>(x) }
      <domain: "local", opset_import: ["" : 19]> to <kind> (a) => (b) { b = Cast<to: int = @kind>(a) }""",
      [f32([2.5, -2.5])])
# BitCast keeps the bits.
case("bitcast_float32_to_int32", "BitCast", 26, [f32([1, -2, 0.1, -0.0, INF])], {"to": 6},
     [i32([0x3F800000, -0x40000000, 0x3DCCCCCD, -0x80000000, 0x7F800000])], spec="BitCast-26: the bits are those of IEEE 754")
case("bitcast_uint16_to_float16", "BitCast", 26, [u16([0x3C00, 0xC000, 0x7BFF, 1])], {"to": 10},
     [f16([1, -2, 65504, 2 ** -24])], spec="BitCast-26: the bits are those of IEEE 754", not_double="the bits are the operand")
case("bitcast_uint64_to_float64", "BitCast", 26, [u64([0x3FF0000000000000, 0xC008000000000000])], {"to": 11},
     [f64([1, -3])], spec="BitCast-26: the bits are those of IEEE 754")
