# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX models byte by byte in the protobuf wire format, so that a model can be as wrong as a case wants it.

Field numbers are those of the published onnx.proto. A message is the bytes of its fields; each maker takes more fields as `*more`.
"""

import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL = 1, 2, 3, 6, 7, 8, 9


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def fixed32(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def tensor_type(element=FLOAT, dims=(2, 3)):
    """A TypeProto of a tensor; a dim is a number or a name, dims=None leaves the shape out."""
    shape = b"" if dims is None else data(2, b"".join(
        data(1, data(2, dim) if isinstance(dim, str) else number(1, dim)) for dim in dims))
    return data(1, number(1, element) + shape)


def value(name, element=FLOAT, dims=(2, 3)):
    return data(1, name) + data(2, tensor_type(element, dims))


def tensor(name, dims=(2, 3), element=FLOAT, raw=None, *more):
    """A TensorProto with raw data; raw=None fills it with ones of 4 bytes an element."""
    if raw is None:
        count = 1
        for dim in dims:
            count *= dim
        raw = struct.pack("<f", 1.0) * count
    return b"".join(number(1, dim) for dim in dims) + number(2, element) + data(8, name) + data(9, raw) + b"".join(more)


def external_tensor(name, dims=(2, 3), **entries):
    """A TensorProto whose data is in another file: entries are location, offset, length."""
    pairs = b"".join(data(13, data(1, key) + data(2, str(content))) for key, content in entries.items())
    return b"".join(number(1, dim) for dim in dims) + number(2, FLOAT) + data(8, name) + pairs + number(14, 1)


def attribute(name, **content):
    """An AttributeProto: one of f, i, s, t, g, ints, floats, strings, ref; type=... overrides the type field."""
    kinds = {"f": (2, 1), "i": (3, 2), "s": (4, 3), "t": (5, 4), "g": (6, 5), "floats": (7, 6), "ints": (8, 7), "strings": (9, 8)}
    out, kind = data(1, name), None
    for key, item in content.items():
        if key == "type":
            continue
        if key == "ref":
            out += data(21, item)
            continue
        field, kind = kinds[key]
        if key == "f":
            out += fixed32(field, item)
        elif key == "i":
            out += number(field, item)
        elif key == "ints":
            out += b"".join(number(field, entry) for entry in item)
        elif key == "floats":
            out += b"".join(fixed32(field, entry) for entry in item)
        elif key == "strings":
            out += b"".join(data(field, entry) for entry in item)
        else:
            out += data(field, item)
    kind = content.get("type", kind)
    return out if kind is None else out + number(20, kind)


def node(op, inputs, outputs, *attributes, name="", domain="", more=b""):
    return (b"".join(data(1, entry) for entry in inputs) + b"".join(data(2, entry) for entry in outputs)
            + (data(3, name) if name else b"") + data(4, op) + b"".join(data(5, entry) for entry in attributes)
            + (data(7, domain) if domain else b"") + more)


def graph(nodes=(), inputs=(), outputs=(), initializers=(), name="g", more=b""):
    return (b"".join(data(1, entry) for entry in nodes) + data(2, name) + b"".join(data(5, entry) for entry in initializers)
            + b"".join(data(11, entry) for entry in inputs) + b"".join(data(12, entry) for entry in outputs) + more)


def opset(version=17, domain=""):
    return data(8, (data(1, domain) if domain else b"") + number(2, version))


def function(name, nodes, inputs=("x",), outputs=("y",), attributes=(), domain="local", opsets=opset(17)):
    imports = opsets.replace(b"\x42", b"\x4a", 1) if opsets else b""  # field 9 of FunctionProto where ModelProto has 8
    return (data(1, name) + b"".join(data(4, entry) for entry in inputs) + b"".join(data(5, entry) for entry in outputs)
            + b"".join(data(6, entry) for entry in attributes) + b"".join(data(7, entry) for entry in nodes) + imports + data(10, domain))


def model(content, ir=8, opsets=None, functions=(), more=b""):
    """A ModelProto; its graph comes last, so that every cut of the file cuts the graph."""
    return (number(1, ir) + data(2, "bad_input") + (opset() if opsets is None else opsets) + more
            + b"".join(data(25, entry) for entry in functions) + data(7, content))


def small_graph(**changes):
    """y = Relu(x + w): valid; `changes` replace its parts."""
    parts = {
        "nodes": [node("Add", ["x", "w"], ["sum"]), node("Relu", ["sum"], ["y"])],
        "inputs": [value("x")],
        "outputs": [value("y")],
        "initializers": [tensor("w")],
    }
    return graph(**{**parts, **changes})


def small_model(**changes):
    return model(small_graph(**changes))
