# SPDX-License-Identifier: Apache-2.0
"""Cases of If, Loop, Scan, functions, sequences and optionals, nested in each other: models of several nodes."""
import numpy as np

from .case import Opt, Seq, boolean, family, family_of_models, f32, i32, i64, numbers, text

case = family("flow")
model = family_of_models("flow")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"
X3 = f32([1, 2, 3])

# If: outer values, no inputs, nested, branches of other shapes.
IF = """g (bool c, float[N] x) => (float[M] y) {
  two = Constant<value = float {2.0}>()
  y = If (c) <then_branch = t () => (float[K] a) { a = Mul(x, two) },
              else_branch = e () => (float[L] b) { s = Constant<value = float[1] {-1.5}>() b = Concat<axis = 0>(x, s) }>
}"""
model("if_then_reads_outer", 13, IF, [boolean(True), X3])
model("if_else_other_shape", 13, IF, [boolean(False), X3])
model("if_condition_of_rank_1", 19, IF.replace("bool c", "bool[1] c"), [boolean([False]), X3])
for opset in (7, 21, 23, 24, 25):
    model(f"if_at_{opset}", opset, IF, [boolean(True), X3], [f32([2, 4, 6])], spec="If gives what the branch gives", unasked=(EVALUATOR,))
NESTED = """g (bool c, bool d, float[N] x) => (float[M] y) {
  y = If (c) <then_branch = t () => (float[K] a) {
        z = Neg(x)
        a = If (d) <then_branch = tt () => (float[P] p) { p = Add(z, x) q = Identity(p) },
                    else_branch = te () => (float[Q] r) { r = Mul(z, z) }> },
      else_branch = e () => (float[L] b) { b = Identity(x) }>
}"""
model("if_nested_inner_else", 13, NESTED, [boolean(True), boolean(False), X3])
model("if_nested_outer_else", 13, NESTED, [boolean(False), boolean(True), X3])
model("if_two_outputs", 11, """g (bool c, float[N] x) => (float[M] y, int64 n) {
  y, n = If (c) <then_branch = t () => (float[K] a, int64 k) { a = Neg(x) k = Constant<value = int64 {7}>() },
                 else_branch = e () => (float[K] a2, int64 k2) { a2 = Abs(x) k2 = Constant<value = int64 {-3}>() }>
}""", [boolean(True), f32([1, -2])])
model("if_sequence_output", 16, """g (bool c, float[N] x) => (seq(float[M]) y) {
  y = If (c) <then_branch = t () => (seq(float[K]) a) { n = Neg(x) a = SequenceConstruct(x, n) },
              else_branch = e () => (seq(float[K]) b) { b = SequenceConstruct(x) }>
}""", [boolean(True), X3], [Seq([X3, -X3])], spec="If gives what the branch gives", unasked=(EVALUATOR,))

# Loop: every way to end, scan outputs, no iterations.
LOOP = """g (int64 n, bool go, float[2] x) => (float[2] last, float[K, 2] all) {
  last, all = Loop (%s, %s, x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2, float[2] o) {
    one = Constant<value = float {1.5}>()
    k = Cast<to = 1>(i)
    grown = Mul(s, one)
    s2 = Add(grown, k)
    total = ReduceSum<keepdims = 0>(s2)
    limit = Constant<value = float {20.0}>()
    c2 = Less(total, limit)
    o = Neg(s2) }>
}"""
START = f32([1, 2])


def looped(trips, condition, limit=20.0):
    s, rows, k = START.astype(np.float64), [], 0
    while (trips is None or k < trips) and condition:
        s = s * 1.5 + k
        rows.append(-s)
        condition = s.sum() < limit
        k += 1
    return [s.astype(np.float32), np.array(rows, np.float32).reshape(-1, 2)]


TEXT = "Loop: the loop ends when the trip count is reached or the condition is false, whichever comes first"
model("loop_ends_by_count", 13, LOOP % ("n", "go"), [i64(2), boolean(True), START], looped(2, True), spec=TEXT)
model("loop_ends_by_condition", 13, LOOP % ("n", "go"), [i64(50), boolean(True), START], looped(50, True), spec=TEXT)
for opset in (7, 19, 21, 23, 24, 25):
    model(f"loop_at_{opset}", opset, LOOP % ("n", "go"), [i64(50), boolean(True), START], looped(50, True), spec=TEXT, unasked=(EVALUATOR,))
model("loop_zero_iterations_by_count", 13, LOOP % ("n", "go"), [i64(0), boolean(True), START], looped(0, True), spec=TEXT, unasked=(EVALUATOR,))
model("loop_zero_iterations_by_condition", 13, LOOP % ("n", "go"), [i64(5), boolean(False), START], looped(5, False), spec=TEXT,
      unasked=(EVALUATOR,))
model("loop_no_trip_count", 11, LOOP % ("", "go"), [i64(0), boolean(True), START], looped(None, True), spec=TEXT, unasked=(ORT,))
NO_CONDITION = """g (int64 n, float[2] x) => (float[2] last, float[K, 2] all) {
  last, all = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2, float[2] o) {
    c2 = Constant<value = bool {1}>() half = Constant<value = float {0.5}>() s2 = Mul(s, half) o = Identity(s2) }>
}"""
model("loop_absent_condition", 13, NO_CONDITION, [i64(3), START], [f32([0.125, 0.25]), f32([[0.5, 1], [0.25, 0.5], [0.125, 0.25]])],
      spec="Loop: without a condition input the first iteration runs", unasked=(EVALUATOR,))
model("loop_absent_condition_body_ends", 13, NO_CONDITION.replace("bool {1}", "bool {0}"), [i64(3), START], [f32([0.5, 1]), f32([[0.5, 1]])],
      spec="Loop: the condition that the body gives is heeded even where none is given at the start", unasked=(EVALUATOR, ORT))
model("loop_iteration_number_and_outer", 16, """g (int64 n, float[N] x) => (int64 sum, int64[K] seen) {
  zero = Constant<value = int64 {0}>()
  t = Constant<value = bool {1}>()
  count = Size(x)
  sum, seen = Loop (n, t, zero) <body = b (int64 i, bool c, int64 s) => (bool c2, int64 s2, int64 o) {
    c2 = Identity(c) p = Mul(i, count) s2 = Add(s, p) o = Sub(count, i) }>
}""", [i64(4), X3], [i64(18), i64([3, 2, 1, 0])], spec=TEXT, wrong={EVALUATOR: "gives scan outputs of scalars an axis too many"})
model("loop_two_carried_swap", 13, """g (int64 n, float[2] x, float[2] z) => (float[2] p, float[2] q) {
  t = Constant<value = bool {1}>()
  p, q = Loop (n, t, x, z) <body = b (int64 i, bool c, float[2] a, float[2] d) => (bool c2, float[2] a2, float[2] d2) {
    c2 = Identity(c) a2 = Identity(d) d2 = Identity(a) }>
}""", [i64(3), f32([1, 2]), f32([3, 4])])
model("loop_carried_changes_shape", 13, """g (int64 n, float[N] x) => (float[M] y) {
  t = Constant<value = bool {1}>()
  y = Loop (n, t, x) <body = b (int64 i, bool c, float[P] s) => (bool c2, float[Q] s2) {
    c2 = Identity(c) f = Cast<to = 1>(i) axes = Constant<value = int64[1] {0}>() one = Unsqueeze(f, axes) s2 = Concat<axis = 0>(s, one) }>
}""", [i64(3), f32([9])], [f32([9, 0, 1, 2])], spec="Loop: carried values may change their shape")
model("loop_in_loop", 13, """g (int64 n, int64 m) => (int64 y, int64[K] rows) {
  zero = Constant<value = int64 {0}>()
  t = Constant<value = bool {1}>()
  y, rows = Loop (n, t, zero) <body = outer (int64 i, bool c, int64 s) => (bool c2, int64 s2, int64 row) {
    c2 = Identity(c)
    row = Loop (m, t, zero) <body = inner (int64 j, bool d, int64 r) => (bool d2, int64 r2) {
      d2 = Identity(d) p = Mul(i, j) q = Add(p, j) r2 = Add(r, q) }>
    s2 = Add(s, row) }>
}""", [i64(3), i64(4)], [i64(36), i64([6, 12, 18])], spec=TEXT,
      wrong={EVALUATOR: "gives scan outputs of scalars an axis too many"})
model("loop_if_inside", 16, """g (int64 n, float[2] x) => (float[2] y) {
  t = Constant<value = bool {1}>()
  y = Loop (n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) {
    c2 = Identity(c) two = Constant<value = int64 {2}>() zero = Constant<value = int64 {0}>() r = Mod(i, two) even = Equal(r, zero)
    s2 = If (even) <then_branch = th () => (float[2] u) { u = Add(s, s) }, else_branch = el () => (float[2] v) { v = Sub(s, x) }> }>
}""", [i64(5), f32([1, -2])])
model("loop_sequence_carried", 13, """g (int64 n, float[2] x) => (seq(float[2]) y, int64 length) {
  t = Constant<value = bool {1}>()
  s0 = SequenceEmpty<dtype = 1>()
  y = Loop (n, t, s0) <body = b (int64 i, bool c, seq(float[2]) s) => (bool c2, seq(float[2]) s2) {
    c2 = Identity(c) f = Cast<to = 1>(i) v = Add(x, f) s2 = SequenceInsert(s, v) }>
  length = SequenceLength(y)
}""", [i64(3), f32([1, -2])], [Seq([f32([1, -2]), f32([2, -1]), f32([3, 0])]), i64(3)], spec="Loop: carried values may be sequences")

# Scan: directions, axes, state, versions, several inputs.
SCAN = """g (float[2] s0, float[N, 2] x) => (float[2] last, float[K, 2] y) {
  last, y = Scan<num_scan_inputs = 1%s, body = b (float[2] s, float[2] e) => (float[2] s2, float[2] o) {
    half = Constant<value = float {0.5}>() h = Mul(s, half) s2 = Add(h, e) o = Identity(s2) }>(s0, x)
}"""
S0, SX = f32([8, -4]), numbers([4, 2], 301)


def scanned(x, reverse_in=False, reverse_out=False):
    s, rows = S0, []
    for e in x[::-1] if reverse_in else x:
        s = s * np.float32(0.5) + e
        rows.append(s)
    return [s, np.array(rows[::-1] if reverse_out else rows)]


DIRECTIONS = "Scan: scan_input_directions and scan_output_directions, 1 is reverse"
model("scan_forward", 9, SCAN % "", [S0, SX], scanned(SX), spec=DIRECTIONS)
for opset in (19, 23, 24, 25):
    model(f"scan_at_{opset}", opset, SCAN % "", [S0, SX], scanned(SX), spec=DIRECTIONS, unasked=(EVALUATOR,))
model("scan_reverse_input", 11, SCAN % ", scan_input_directions = [1]", [S0, SX], scanned(SX, True), spec=DIRECTIONS, unasked=(EVALUATOR,))
model("scan_reverse_output", 16, SCAN % ", scan_output_directions = [1]", [S0, SX], scanned(SX, False, True), spec=DIRECTIONS, unasked=(EVALUATOR,))
model("scan_reverse_both", 21, SCAN % ", scan_input_directions = [1], scan_output_directions = [1]", [S0, SX], scanned(SX, True, True),
      spec=DIRECTIONS, unasked=(EVALUATOR,))
model("scan_axes", 11, (SCAN % ", scan_input_axes = [1], scan_output_axes = [-1]").replace("float[N, 2] x", "float[2, N] x").replace(
    "float[K, 2] y", "float[2, K] y"), [S0, np.ascontiguousarray(SX.T)], [scanned(SX)[0], np.ascontiguousarray(scanned(SX)[1].T)],
      spec="Scan: scan_input_axes and scan_output_axes", unasked=(EVALUATOR,))
model("scan_two_inputs_no_state", 11, """g (float[N, 2] x, float[N] w) => (float[K, 2] y, float[K] z) {
  y, z = Scan<num_scan_inputs = 2, scan_input_directions = [0, 1], body = b (float[2] a, float c) => (float[2] o, float p) {
    o = Mul(a, c) p = Neg(c) }>(x, w)
}""", [SX, f32([1, 2, 3, 4])], [SX * f32([[4], [3], [2], [1]]), f32([-4, -3, -2, -1])], spec=DIRECTIONS, unasked=(EVALUATOR,))
model("scan_reads_outer", 16, """g (float[N, 2] x, float[2] bias) => (float[K, 2] y) {
  y = Scan<num_scan_inputs = 1, body = b (float[2] a) => (float[2] o) { o = Add(a, bias) }>(x)
}""", [SX, f32([10, -10])], [SX + f32([10, -10])], spec="bodies read values of the graph around them", unasked=(EVALUATOR,))
model("scan_8_batch_lengths", 8, """g (int64[2] lengths, float[2, 1] s0, float[2, 3, 1] x) => (float[2, 1] last, float[2, K, 1] y) {
  last, y = Scan<num_scan_inputs = 1, directions = [1], body = b (float[1] s, float[1] e) => (float[1] s2, float[1] o) {
    s2 = Add(s, e) o = Identity(s2) }>(lengths, s0, x)
}""", [i64([2, 3]), f32([[100], [200]]), f32([[[1], [2], [4]], [[8], [16], [32]]])],
      [f32([[103], [256]]), f32([[[102], [103], [0]], [[232], [248], [256]]])],
      spec="Scan-8: a batch axis, sequence_lens, directions of inputs", unasked=(EVALUATOR, ORT))

# Functions: attributes by reference, defaults, overloads in a chain, bodies inside.
SCALED = """<domain: "local", opset_import: ["" : 17]> scaled <alpha: float = 0.5> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }"""
LOCAL = {"": 17, "local": 1}
model("function_attribute_default", LOCAL, "g (float[N] x) => (float[N] y) { y = local.scaled(x) }\n" + SCALED, [f32([-2, 4])], [f32([-1, 4])],
      spec="functions: attribute_proto holds defaults", unasked=(ORT,))
model("function_attribute_given", LOCAL, "g (float[N] x) => (float[N] y) { y = local.scaled<alpha = 0.25>(x) }\n" + SCALED, [f32([-2, 4])],
      [f32([-0.5, 4])], spec="functions: the call's attribute stands for the default", unasked=(ORT,))
model("function_attribute_absent_takes_operator_default", LOCAL, "g (float[N] x) => (float[N] y) { y = local.leaky(x) }\n"
      """<domain: "local", opset_import: ["" : 17]> leaky <alpha> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }""",
      [f32([-200, 4])], [f32([-2, 4])], spec="functions: a reference to an attribute that is not given leaves the attribute out", unasked=(EVALUATOR, ORT))
model("function_calls_function", LOCAL, """g (float[N] x) => (float[N] y) { y = local.twice<slope = 0.5>(x) }
<domain: "local", opset_import: ["" : 17]> leaky <alpha> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }
<domain: "local", opset_import: ["" : 17, "local" : 1]> twice <slope> (a) => (c)
{ b = local.leaky<alpha: float = @slope>(a) c = local.leaky<alpha: float = @slope>(b) }""", [f32([-8, 3])], [f32([-2, 3])],
      spec="functions: a reference passes the attribute on")
model("function_of_two_calls_same_names", LOCAL, """g (float[N] x) => (float[N] y) { p = local.f<k = 2>(x) q = local.f<k = 3>(p) y = Add(p, q) }
<domain: "local", opset_import: ["" : 17]> f <k> (x) => (y) { c = Constant<value_int: int = @k>() p = Cast<to = 1>(c) y = Mul(x, p) }""",
      [f32([1, -2])])
model("function_in_if_in_function", LOCAL, """g (bool c, float[N] x) => (float[N] y) { y = local.choose<slope = 0.25>(c, x) }
<domain: "local", opset_import: ["" : 17]> leaky <alpha> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }
<domain: "local", opset_import: ["" : 17, "local" : 1]> choose <slope> (c, a) => (b) {
  b = If (c) <then_branch = t () => (float[N] p) { p = local.leaky<alpha: float = @slope>(a) },
              else_branch = e () => (float[N] q) { q = Neg(a) }> }""", [boolean(True), f32([-8, 3])], [f32([-2, 3])],
      spec="functions: references reach into the bodies that a function holds", unasked=(EVALUATOR, ORT))
model("function_opset_of_its_own", {"": 13, "local": 1}, """g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = local.old(x) }
<domain: "local", opset_import: ["" : 11]> old (a) => (b) { b = Softmax<axis = 1>(a) }""", [numbers([2, 3, 4], 302)],
      [(np.exp(numbers([2, 3, 4], 302).astype(np.float64)) /
        np.exp(numbers([2, 3, 4], 302).astype(np.float64)).sum((1, 2), keepdims=True)).astype(np.float32)],
      spec="functions import operator sets of their own: Softmax-11 coerces to a matrix", unasked=(EVALUATOR, ORT))
model("function_optional_input_left_out", LOCAL, """g (float[N] x) => (float[N] y) { y = local.clamp(x) }
<domain: "local", opset_import: ["" : 17]> clamp (a, low) => (b) { b = Clip(a, low) }""", [f32([-3, 5])], [f32([-3, 5])],
      spec="functions: an input that the call leaves out is left out inside", unasked=(EVALUATOR, ORT))

# Sequences and optionals.
SEQ = Seq([f32([1, 2]), f32([[3], [4]]), f32(5)])
EVEN = Seq([f32([[1, 2]]), f32([[3, 4]]), f32([[5, 6]])])
case("sequenceat_negative", "SequenceAt", 11, [SEQ, i64(-2)])
case("sequenceat_int32_position", "SequenceAt", 11, [SEQ, i32(0)])
case("sequenceconstruct_other_shapes", "SequenceConstruct", 11, [i64([1]), i64([[2, 3]])])
case("sequenceempty_float64", "SequenceEmpty", 11, [], {"dtype": 11}, [Seq([], "float64")], spec="SequenceEmpty: of the type dtype",
     constant="an empty sequence", unasked=(EVALUATOR, ORT))
case("sequenceerase_default_last", "SequenceErase", 11, [SEQ], None, [Seq(SEQ.items[:2])], spec="SequenceErase: the last one by default")
case("sequenceerase_negative", "SequenceErase", 11, [SEQ, i64(-3)])
case("sequenceinsert_front", "SequenceInsert", 11, [SEQ, f32([7]), i64(0)])
case("sequenceinsert_negative", "SequenceInsert", 11, [SEQ, f32([7]), i64(-1)])
case("sequenceinsert_at_end", "SequenceInsert", 11, [SEQ, f32([7]), i64(3)], None, [Seq([*SEQ.items, f32([7])])],
     spec="SequenceInsert: position in [-n, n], n appends", wrong={EVALUATOR: "inserts before the last"})
case("sequenceinsert_strings", "SequenceInsert", 11, [Seq([text(["a"])]), text(["b"])], None, [Seq([text(["a"]), text(["b"])])],
     spec="SequenceInsert: appended by default", unasked=(EVALUATOR, ORT))
case("sequencelength", "SequenceLength", 11, [SEQ])
case("sequencelength_of_int64", "SequenceLength", 11, [Seq([i64([1])])])
case("concatfromsequence_axis", "ConcatFromSequence", 11, [EVEN], {"axis": 0})
case("concatfromsequence_negative_axis", "ConcatFromSequence", 11, [EVEN], {"axis": -1})
case("concatfromsequence_new_axis", "ConcatFromSequence", 11, [EVEN], {"axis": 1, "new_axis": 1})
case("concatfromsequence_new_last_axis", "ConcatFromSequence", 11, [EVEN], {"axis": -1, "new_axis": 1}, [np.stack(EVEN.items, -1)],
     spec="ConcatFromSequence: new_axis, counted in the output's rank")
case("splittosequence_scalar_uneven", "SplitToSequence", 11, [numbers([5, 2], 311), i64(2)], None,
     [Seq([numbers([5, 2], 311)[:2], numbers([5, 2], 311)[2:4], numbers([5, 2], 311)[4:]])], spec="SplitToSequence: the last chunk may be smaller")
case("splittosequence_sizes", "SplitToSequence", 11, [numbers([2, 5], 312), i64([1, 4])], {"axis": -1})
case("splittosequence_no_split_no_keepdims", "SplitToSequence", 11, [numbers([2, 3], 313)], {"axis": 1, "keepdims": 0})
case("splittosequence_no_split_keepdims", "SplitToSequence", 24, [numbers([2, 3], 314)], None, [Seq([numbers([2, 3], 314)[:1], numbers([2, 3], 314)[1:]])],
     spec="SplitToSequence: chunks of 1, the axis is kept by default", unasked=(ORT,))
model("sequencemap_two_inputs_and_tensor", 17, """g (seq(float[N]) s, float[M] t) => (seq(float[K]) y, seq(int64) z) {
  y, z = SequenceMap (s, t) <body = b (float[P] a, float[Q] c) => (float[R] o, int64 n) { o = Concat<axis = 0>(a, c) n = Size(a) }>
}""", [Seq([f32([1]), f32([2, 3])]), f32([9])], [Seq([f32([1, 9]), f32([2, 3, 9])]), Seq([i64(1), i64(2)])],
      spec="SequenceMap: the body runs for each element; tensors are repeated", unasked=(EVALUATOR, ORT))
case("optional_of_tensor", "Optional", 15, [X3], None, [Opt(X3)], spec="Optional: holds the input", unasked=(EVALUATOR, ORT))
case("optional_of_sequence", "Optional", 15, [EVEN], None, [Opt(EVEN)], spec="Optional: holds the input", unasked=(EVALUATOR, ORT))
case("optionalhaselement_empty", "OptionalHasElement", 15, [Opt(None, "float32")], constant="there is none", unasked=(ORT,), outputs=[boolean(False)],
     spec="OptionalHasElement: false where it is empty")
case("optionalhaselement_absent_input", "OptionalHasElement", 18, [None], None, [boolean(False)], spec="OptionalHasElement-18: false without an input",
     constant="there is none", unasked=(EVALUATOR, ORT))
case("optionalhaselement_of_tensor", "OptionalHasElement", 18, [X3])
case("optionalgetelement_sequence", "OptionalGetElement", 18, [Opt(EVEN)], None, [EVEN], spec="OptionalGetElement: what it holds", unasked=(ORT,))
model("optional_chosen_by_if", 16, """g (bool c, float[N] x) => (bool has, float[N] y) {
  o = If (c) <then_branch = t () => (optional(float[N]) a) { a = Optional(x) },
              else_branch = e () => (optional(float[N]) b) { b = Optional<type = float[N]>() }>
  has = OptionalHasElement(o)
  y = Neg(x)
}""", [boolean(True), X3], [boolean(True), -X3], spec="If gives what the branch gives", unasked=(EVALUATOR, ORT))
