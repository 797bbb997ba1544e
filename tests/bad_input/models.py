# SPDX-License-Identifier: Apache-2.0
"""Malformed models: files that are no model, broken bytes, and models that break the ONNX specification."""

import struct

import wire as w
from cases import FILE, MODEL, MODEL_VERBS, Case, model_case

NESTING = 10_000


def broken_files():
    good = w.small_model()
    yield "empty", b""
    yield "one byte", b"\x08"
    yield "text", b"This is a letter, not a model.\n" * 20
    yield "zeros", bytes(4096)
    yield "ones", b"\xff" * 4096
    yield "png", b"\x89PNG\r\n\x1a\n" + bytes(64)
    yield "gzip", b"\x1f\x8b\x08\x00" + bytes(64)
    yield "zip", b"PK\x03\x04" + bytes(64)
    yield "json", b'{"graph": {"node": []}}'
    yield "dump magic", b"PARALLAX" + bytes(64)
    yield "endless varint", b"\x08" + b"\xff" * 64
    yield "length beyond the end", b"\x3a\xff\xff\xff\xff\x07"
    yield "length of 2^63", b"\x3a" + b"\xff" * 8 + b"\x7f"
    yield "group without end", b"\x3b" * 200
    yield "model twice, cut", good + good[:len(good) // 2]
    start = len(good) - len(w.small_graph())  # the graph is the last field
    for step in range(40):
        cut = start + step * (len(good) - start) // 40
        yield f"cut at {cut} of {len(good)}", good[:cut]


def nested_if(depth):
    """If in If in If, `depth` deep; built from the inside, without recursion."""
    body = w.graph([w.node("Identity", ["c"], ["y"])], [], [w.value("y", w.BOOL, ())])
    for _ in range(depth):
        branch = w.node("If", ["c"], ["y"], w.attribute("then_branch", g=body), w.attribute("else_branch", g=w.graph()))
        body = w.graph([branch], [], [w.value("y", w.BOOL, ())])
    return w.model(w.graph([w.node("Not", ["x"], ["c"]), w.node("If", ["c"], ["y"], w.attribute("then_branch", g=body),
                                                                w.attribute("else_branch", g=body))],
                           [w.value("x", w.BOOL, ())], [w.value("y", w.BOOL, ())]))


def nested_type(depth):
    """A sequence of sequences of ..., `depth` deep."""
    kind = w.tensor_type()
    for _ in range(depth):
        kind = w.data(4, w.data(1, kind))
    return w.small_model(inputs=[w.data(1, "x") + w.data(2, kind)])


def nested_text(depth):
    return ("ir_version: 8 opset_import { version: 17 } graph { name: 'g' " + "node { attribute { g { " * depth + "} } } " * depth + "}").encode()


def nesting():
    yield "If nested 10,000 deep", nested_if(NESTING)
    yield "If nested 1,000 deep", nested_if(1000)
    yield "types nested 10,000 deep", nested_type(NESTING)
    yield "unknown groups nested 10,000 deep", w.number(1, 8) + b"\xf3\x07" * NESTING + b"\xf4\x07" * NESTING


def structure():
    s, n = w.small_model, w.node
    yield "no graph", w.number(1, 8) + w.opset()
    yield "no opset import", w.model(w.small_graph(), opsets=b"")
    yield "opset 0", w.model(w.small_graph(), opsets=w.opset(0))
    yield "opset negative", w.model(w.small_graph(), opsets=w.opset(-1))
    yield "opset 999", w.model(w.small_graph(), opsets=w.opset(999))
    yield "opset twice, the higher one unknown", w.model(w.small_graph(), opsets=w.opset(17) + w.opset(999))
    yield "ir version 0", w.model(w.small_graph(), ir=0)
    yield "ir version 9999", w.model(w.small_graph(), ir=9999)
    yield "ir version negative", w.model(w.small_graph(), ir=-5)
    yield "node without op", s(nodes=[n("", ["x"], ["y"])])
    yield "unknown op", s(nodes=[n("Relux", ["x"], ["y"])])
    yield "unknown domain", s(nodes=[n("Relu", ["x"], ["y"], domain="nowhere")])
    yield "op newer than the opset", s(nodes=[n("Attention", ["x", "x", "x"], ["y"])])
    yield "op removed from the opset", s(nodes=[n("Upsample", ["x", "w"], ["y"])])
    yield "dangling input", s(nodes=[n("Relu", ["nothing"], ["y"])])
    yield "required input omitted", s(nodes=[n("Add", ["x", ""], ["y"])])
    yield "output nobody makes", s(outputs=[w.value("z")])
    yield "output without a name", s(outputs=[w.value("")])
    yield "input without a name", s(inputs=[w.value("x"), w.value("")])
    yield "initializer without a name", s(initializers=[w.tensor("w"), w.tensor("")])
    yield "value made twice", s(nodes=[n("Add", ["x", "w"], ["y"]), n("Relu", ["x"], ["y"])])
    yield "value made twice by one node", s(nodes=[n("Split", ["x"], ["y", "y"], w.attribute("axis", i=0))])
    yield "value made over an input", s(nodes=[n("Relu", ["w"], ["x"]), n("Relu", ["x"], ["y"])])
    yield "value made over an initializer", s(nodes=[n("Relu", ["x"], ["w"]), n("Relu", ["w"], ["y"])])
    yield "input twice", s(inputs=[w.value("x"), w.value("x")])
    yield "initializer twice", s(initializers=[w.tensor("w"), w.tensor("w")])
    yield "cycle of one", s(nodes=[n("Add", ["x", "y"], ["y"])])
    for length in (2, 3, 10, 1000):
        ring = [n("Add", ["x", f"v{(i - 1) % length}"], [f"v{i}"]) for i in range(length)]
        yield f"cycle of {length}", s(nodes=ring + [n("Relu", ["v0"], ["y"])])
    yield "too few inputs", s(nodes=[n("Add", ["x"], ["y"])])
    yield "too many inputs", s(nodes=[n("Relu", ["x", "w"], ["y"])])
    yield "no inputs", s(nodes=[n("MatMul", [], ["y"])])
    yield "too many outputs", s(nodes=[n("Relu", ["x"], ["y", "z"])])
    yield "no outputs", s(nodes=[n("Relu", ["x"], []), n("Relu", ["x"], ["y"])])
    yield "100,000 inputs", s(nodes=[n("Relu", ["x"] * 100_000, ["y"])])
    yield "input without a type", s(inputs=[w.data(1, "x")])
    yield "input of element type 0", s(inputs=[w.value("x", 0)])
    yield "input of element type 999", s(inputs=[w.value("x", 999)])


def types():
    s, n = w.small_model, w.node
    yield "float plus int64", s(inputs=[w.value("x", w.INT64)])
    yield "float plus string", s(inputs=[w.value("x", w.STRING)])
    yield "Relu of a string", s(inputs=[w.value("x", w.STRING)], nodes=[n("Relu", ["x"], ["y"])])
    yield "Not of a float", s(nodes=[n("Not", ["x"], ["y"])])
    yield "And of float and bool", s(nodes=[n("Not", ["b"], ["c"]), n("And", ["x", "c"], ["y"])],
                                     inputs=[w.value("x"), w.value("b", w.BOOL)])
    yield "Gather by float indices", s(nodes=[n("Gather", ["w", "x"], ["y"])])
    yield "Where by a float", s(nodes=[n("Where", ["x", "w", "w"], ["y"])])
    yield "Reshape to a float shape", s(nodes=[n("Reshape", ["x", "w"], ["y"])])
    yield "output declared another type", s(outputs=[w.value("y", w.INT64)])
    yield "tensor where a sequence belongs", s(nodes=[n("SequenceLength", ["x"], ["y"])])
    yield "sequence into Relu", s(nodes=[n("SequenceConstruct", ["x"], ["q"]), n("Relu", ["q"], ["y"])])
    yield "MatMul of strings", s(nodes=[n("MatMul", ["x", "x"], ["y"])], inputs=[w.value("x", w.STRING)])
    yield "If on a float", s(nodes=[n("If", ["x"], ["y"], w.attribute("then_branch", g=w.graph()), w.attribute("else_branch", g=w.graph()))])
    yield "Cast without a target", s(nodes=[n("Cast", ["x"], ["y"])])
    yield "Cast to type 999", s(nodes=[n("Cast", ["x"], ["y"], w.attribute("to", i=999))])
    yield "Cast to type -1", s(nodes=[n("Cast", ["x"], ["y"], w.attribute("to", i=-1))])


def attributes():
    s, n, a = w.small_model, w.node, w.attribute
    yield "attribute missing", s(nodes=[n("Concat", ["x", "w"], ["y"])])
    yield "attribute of another type", s(nodes=[n("Concat", ["x", "w"], ["y"], a("axis", f=1.0))])
    yield "attribute string for ints", s(nodes=[n("Transpose", ["x"], ["y"], a("perm", s="10"))])
    yield "attribute int for ints", s(nodes=[n("Transpose", ["x"], ["y"], a("perm", i=1))])
    yield "attribute unknown", s(nodes=[n("Relu", ["x"], ["y"], a("slope", f=0.1))])
    yield "attribute twice", s(nodes=[n("Concat", ["x", "w"], ["y"], a("axis", i=0), a("axis", i=1))])
    yield "attribute without a name", s(nodes=[n("Relu", ["x"], ["y"], a("", f=0.1))])
    yield "attribute says int, holds float", s(nodes=[n("Concat", ["x", "w"], ["y"], a("axis", f=0.5, type=2))])
    yield "attribute reference outside a function", s(nodes=[n("Concat", ["x", "w"], ["y"], a("axis", ref="axis", type=2))])
    yield "Constant without a value", s(nodes=[n("Constant", [], ["c"]), n("Add", ["x", "c"], ["y"])])
    yield "Constant with two values", s(nodes=[n("Constant", [], ["c"], a("value_float", f=1.0), a("value_int", i=1)),
                                               n("Add", ["x", "c"], ["y"])])
    yield "Constant with a broken tensor", s(nodes=[n("Constant", [], ["c"], a("value", t=w.tensor("", (1 << 40,), raw=b"1234"))),
                                                    n("Add", ["x", "c"], ["y"])])


def tensors():
    def with_tensor(content):
        return w.small_model(initializers=[content])

    yield "dims negative", with_tensor(w.tensor("w", (-2, 3), raw=b""))
    yield "dims product overflows", with_tensor(w.tensor("w", (1 << 40, 1 << 40), raw=bytes(24)))
    yield "dims product overflows to a fitting size", with_tensor(w.tensor("w", (1 << 62, 4, 6), raw=bytes(24)))
    yield "dims of 2^63-1", with_tensor(w.tensor("w", ((1 << 63) - 1,), raw=bytes(24)))
    yield "dims huge, data small", with_tensor(w.tensor("w", (1 << 30, 3), raw=bytes(24)))
    yield "dims of rank 100,000", with_tensor(w.tensor("w", (2,) * 100_000, raw=bytes(24)))
    yield "raw data one byte short", with_tensor(w.tensor("w", raw=bytes(23)))
    yield "raw data one byte long", with_tensor(w.tensor("w", raw=bytes(25)))
    yield "raw data absent", with_tensor(w.number(1, 2) + w.number(1, 3) + w.number(2, 1) + w.data(8, "w"))
    yield "typed data too short", with_tensor(w.number(1, 6) + w.number(2, 1) + w.data(8, "w") + w.data(4, struct.pack("<5f", *range(5))))
    yield "typed data too long", with_tensor(w.number(1, 6) + w.number(2, 1) + w.data(8, "w") + w.data(4, struct.pack("<7f", *range(7))))
    yield "typed data of another type", with_tensor(w.number(1, 6) + w.number(2, 1) + w.data(8, "w") + w.data(7, b"\x01" * 6))
    yield "raw and typed data", with_tensor(w.tensor("w") + w.data(4, struct.pack("<6f", *range(6))))
    yield "element type 0", with_tensor(w.tensor("w", element=0))
    yield "element type 999", with_tensor(w.tensor("w", element=999))
    yield "strings in raw data", with_tensor(w.tensor("w", element=w.STRING))
    yield "int8 value of 300", with_tensor(w.number(1, 6) + w.number(2, w.INT8) + w.data(8, "w") + w.data(5, w.varint(300) * 6))
    for name, dims, positions in (
            ("beyond the end", (6,), (0, 9)), ("negative", (6,), (-1, 2)), ("twice", (6,), (2, 2)), ("unsorted", (6,), (4, 2)),
            ("with a negative dimension", (-6,), (0, 1)), ("with dims that overflow", (1 << 40, 1 << 40), (0, 1))):
        values = w.tensor("w", (2,))
        indices = w.tensor("", (2,), w.INT64, struct.pack("<2q", *positions))
        sparse = w.data(1, values) + w.data(2, indices) + b"".join(w.number(3, dim) for dim in dims)
        yield f"sparse indices {name}", w.small_model(initializers=[], more=w.data(15, sparse))


def bodies():
    s, n, a = w.small_model, w.node, w.attribute
    flag = w.value("b", w.BOOL, ())
    inputs = [w.value("x"), flag]
    good = w.graph([n("Relu", ["x"], ["r"])], [], [w.value("r")])
    two = w.graph([n("Relu", ["x"], ["r"])], [], [w.value("r"), w.value("r")])
    lost = w.graph([n("Relu", ["nothing"], ["r"])], [], [w.value("r")])

    def branches(*attributes_of):
        return s(inputs=inputs, nodes=[n("If", ["b"], ["y"], *attributes_of)])

    yield "If without branches", branches()
    yield "If without else", branches(a("then_branch", g=good))
    yield "If with a branch that is a number", branches(a("then_branch", i=1), a("else_branch", g=good))
    yield "If with branches of unlike outputs", branches(a("then_branch", g=good), a("else_branch", g=two))
    yield "If with a dangling name inside", branches(a("then_branch", g=good), a("else_branch", g=lost))
    yield "If with a cycle inside", branches(a("then_branch", g=good), a("else_branch", g=w.graph([n("Add", ["r", "x"], ["r"])], [], [w.value("r")])))
    yield "If with an output of the enclosing graph made later", s(
        inputs=inputs, nodes=[n("If", ["b"], ["y"], a("then_branch", g=w.graph([n("Relu", ["y"], ["r"])], [], [w.value("r")])), a("else_branch", g=good))])
    yield "If with inputs to a branch", branches(a("then_branch", g=w.graph([n("Relu", ["q"], ["r"])], [w.value("q")], [w.value("r")])), a("else_branch", g=good))
    body = w.graph([n("Identity", ["c"], ["d"])], [w.value("i", w.INT64, ()), w.value("c", w.BOOL, ())], [w.value("d", w.BOOL, ())])
    trips = w.value("m", w.INT64, ())
    yield "Loop without a body", s(inputs=inputs + [trips], nodes=[n("Loop", ["m", "b", "x"], ["y"])])
    yield "Loop with too few outputs in its body", s(inputs=inputs + [trips], nodes=[n("Loop", ["m", "b", "x"], ["y"], a("body", g=body))])
    yield "Loop with a float trip count", s(inputs=inputs, nodes=[n("Loop", ["x", "b", "x"], ["y"], a("body", g=body))])
    yield "Scan without a body", s(nodes=[n("Scan", ["x"], ["y"], a("num_scan_inputs", i=1))])
    yield "Scan with more scan inputs than inputs", s(nodes=[n("Scan", ["x"], ["y"], a("num_scan_inputs", i=9), a("body", g=body))])
    yield "Scan with -1 scan inputs", s(nodes=[n("Scan", ["x"], ["y"], a("num_scan_inputs", i=-1), a("body", g=body))])


def functions():
    n, f = w.node, w.function
    both = w.opset(17) + w.opset(1, "local")

    def calling(*defined, nodes=None):
        return w.model(w.small_graph(nodes=nodes or [n("F", ["x"], ["y"], domain="local")]), opsets=both, functions=defined)

    yield "function absent", calling()
    yield "function calls itself", calling(f("F", [n("F", ["x"], ["y"], domain="local")], opsets=w.opset(1, "local")))
    yield "functions call each other", calling(f("F", [n("G", ["x"], ["y"], domain="local")], opsets=w.opset(1, "local")),
                                               f("G", [n("F", ["x"], ["y"], domain="local")], opsets=w.opset(1, "local")))
    yield "function twice", calling(f("F", [n("Relu", ["x"], ["y"])]), f("F", [n("Neg", ["x"], ["y"])]))
    yield "function without a name", calling(f("", [n("Relu", ["x"], ["y"])]))
    yield "function with an unknown op", calling(f("F", [n("Relux", ["x"], ["y"])]))
    yield "function without opset import", calling(f("F", [n("Relu", ["x"], ["y"])], opsets=b""))
    yield "function with a dangling name", calling(f("F", [n("Relu", ["z"], ["y"])]))
    yield "function output nobody makes", calling(f("F", [n("Relu", ["x"], ["z"])]))
    yield "function called with too many inputs", calling(f("F", [n("Relu", ["x"], ["y"])]), nodes=[n("F", ["x", "w"], ["y"], domain="local")])
    yield "function called for too many outputs", calling(f("F", [n("Relu", ["x"], ["y"])]), nodes=[n("F", ["x"], ["y", "z"], domain="local")])
    yield "function with a cycle", calling(f("F", [n("Add", ["x", "y"], ["y"])]))
    yield "function input twice", calling(f("F", [n("Relu", ["x"], ["y"])], inputs=("x", "x")))
    chain = [f(f"F{i}", [n(f"F{i + 1}", ["x"], ["y"], domain="local")], opsets=w.opset(1, "local")) for i in range(NESTING)]
    yield "functions nested 10,000 deep, last absent", calling(*chain, nodes=[n("F0", ["x"], ["y"], domain="local")])


def external_data():
    def outside(**entries):
        return w.small_model(initializers=[w.external_tensor("w", **entries)])

    files = {"w.data": bytes(24)}
    yield "no such file", outside(location="gone.data"), {}
    yield "no location", outside(offset=0), files
    yield "empty location", outside(location=""), files
    yield "parent folder", outside(location="../w.data"), {"../w.data": bytes(24)}
    yield "parent folder inside a path", outside(location="a/../../w.data"), files
    yield "absolute path", outside(location="/etc/hostname"), files
    yield "absolute path to a device", outside(location="/dev/zero"), files
    yield "a folder", outside(location="."), files
    yield "name with a NUL", outside(location="w.data\0x"), files
    yield "file too short", outside(location="w.data", length=24), {"w.data": bytes(23)}
    yield "offset beyond the end", outside(location="w.data", offset=25), files
    yield "offset negative", outside(location="w.data", offset=-8), files
    yield "offset of 2^64-4", outside(location="w.data", offset=(1 << 64) - 4), files
    yield "offset no number", outside(location="w.data", offset="twelve"), files
    yield "offset with a tail", outside(location="w.data", offset="0x"), files
    yield "length too small", outside(location="w.data", length=20), files
    yield "length too large", outside(location="w.data", length=28), files
    yield "length negative", outside(location="w.data", length=-24), files
    yield "length no number", outside(location="w.data", length="all"), files
    yield "length of 2^63", outside(location="w.data", length=1 << 63), files
    yield "offset and length that overflow", outside(location="w.data", offset=(1 << 63) - 8, length=24), files


def texts():
    yield "text not closed", b"ir_version: 8 graph { name: 'g' "
    yield "text with an unknown field", b"ir_version: 8 shade: 'red' graph { name: 'g' }"
    yield "text with a bad number", b"ir_version: eight graph { name: 'g' }"
    yield "text with a bad string", b"ir_version: 8 producer_name: 'open\ngraph { }"
    yield "text with binary inside", b"ir_version: 8 graph { name: '" + bytes(range(1, 32)) + b" }"
    yield "text nested 10,000 deep", nested_text(NESTING)
    yield "text empty", b""


def overflows():
    """Valid models whose integers leave int64: results wrap, and no executor computes them by what is undefined behavior."""
    values = w.tensor("v", (130,), w.INT64, struct.pack("<130q", -1 << 63, (1 << 63) - 1, *(3 + 2 * (index % 61) for index in range(128))))
    for op, inputs in (("ReduceProd", ["v"]), ("ReduceSum", ["v"]), ("ReduceSumSquare", ["v"]), ("ReduceL1", ["v"]), ("CumSum", ["v", "zero"]),
                       ("Abs", ["v"]), ("Neg", ["v"]), ("Add", ["v", "v"]), ("Sub", ["zero", "v"]), ("Mul", ["v", "v"]), ("Pow", ["v", "v"]),
                       ("MatMul", ["v", "v"])):
        zero = w.tensor("zero", (), w.INT64, bytes(8))
        yield op, w.model(w.graph([w.node(op, inputs, ["y"])], [], [w.value("y", w.INT64, None)], [values, zero]))


def cases():
    index = 0
    for kind in (broken_files, nesting, structure, types, attributes, tensors, bodies, functions):
        for name, content in kind():
            index += 1
            yield model_case(f"{kind.__name__}/{name}", content, index)
    for name, content in texts():
        index += 1
        yield model_case(f"texts/{name}", content, index, file_name="m.textproto")
    for name, content, files in external_data():
        for verb in range(len(MODEL_VERBS)):
            yield model_case(f"external_data/{name}", content, verb, (MODEL, FILE), files)
    for name, content in overflows():
        yield Case(f"model/overflows/{name}", {"m.onnx": content}, ["run", "m.onnx", "--with", "reference,cpu"], (0,))
    link = w.small_model(initializers=[w.external_tensor("w", location="link.data")])
    for verb in range(len(MODEL_VERBS)):
        yield model_case("external_data/symbolic link out", link, verb, (MODEL, FILE), {"../outside.data": bytes(24)}, {"link.data": "../outside.data"})
