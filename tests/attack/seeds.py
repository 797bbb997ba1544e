# SPDX-License-Identifier: Apache-2.0
"""The files that mutants are made of: the samples, small models of every structure, and the operator cases as models."""

import functools
import json
import struct

import attack_paths
import wire as w

LARGEST_SAMPLE_BYTES = 60_000  # larger ones would cost the time of many small ones
FORMATS = {"float32": (1, "f"), "uint8": (2, "B"), "int8": (3, "b"), "uint16": (4, "H"), "int16": (5, "h"),
           "int32": (6, "i"), "int64": (7, "q"), "bool": (9, "?"), "float16": (10, "e"), "float64": (11, "d"),
           "uint32": (12, "I"), "uint64": (13, "Q")}
INPUT_TYPES = ("float32", "float64", "float16")  # an operator case gives the others as initializers


def parse_type(text):
    """("float32", (2, 3)) of "float32[2,3]"; KeyError of a type that FORMATS lacks."""
    name, _, dims = text.partition("[")
    FORMATS[name]  # pylint: disable=pointless-statement
    return name, tuple(int(dim) for dim in dims.rstrip("]").split(",") if dim)


def tensor_of(name, value):
    """A TensorProto of a case's value."""
    kind, dims = parse_type(value["type"])
    number, letter = FORMATS[kind]
    elements = [float(item) if letter in "efd" else int(item) for item in value["values"]]
    return w.tensor(name, dims, number, struct.pack(f"<{len(elements)}{letter}", *elements))


def attribute_of(name, content):
    if isinstance(content, dict):
        return w.attribute(name, t=tensor_of("", content))
    if isinstance(content, str):
        return w.attribute(name, s=content)
    if isinstance(content, float):
        return w.attribute(name, f=content)
    if isinstance(content, int):
        return w.attribute(name, i=content)
    if content and isinstance(content[0], str):
        return w.attribute(name, strings=content)
    if any(isinstance(item, float) for item in content):
        return w.attribute(name, floats=content)
    return w.attribute(name, ints=content)


def operator_model(case):
    """The model of a case of one operator on tensors of plain types; KeyError, TypeError of another case."""
    inputs, initializers, names = [], [], []
    for index, value in enumerate(case["inputs"]):
        names.append("" if value is None else f"in{index}")
        if value is None:
            continue
        kind, dims = parse_type(value["type"])
        if kind in INPUT_TYPES:
            inputs.append(w.value(names[-1], FORMATS[kind][0], dims))
        else:
            initializers.append(tensor_of(names[-1], value))
    outputs = ["" if value is None else f"out{index}" for index, value in enumerate(case["outputs"])]
    declared = [w.value(name, *((FORMATS[kind][0], dims)))
                for name, value in zip(outputs, case["outputs"]) if value for kind, dims in [parse_type(value["type"])]]
    attributes = [attribute_of(name, content) for name, content in case.get("attributes", {}).items()]
    node = w.node(case["op"], names, outputs, *attributes, name="the_node", domain=case.get("domain", ""))
    versions = case["opset"] if isinstance(case["opset"], dict) else {"": case["opset"]}
    opsets = b"".join(w.opset(version, domain) for domain, version in versions.items())
    return w.model(w.graph([node], inputs, declared, initializers), opsets=opsets)


@functools.cache
def operator_models():
    """{name: model} of the operator cases that operator_model can write."""
    models = {}
    for path in sorted((attack_paths.ROOT / "tests" / "ops" / "cases").glob("*.json")):
        for case in json.loads(path.read_text()):
            try:
                models[case["name"]] = operator_model(case)
            except (KeyError, TypeError, AttributeError, struct.error, ValueError):
                continue
    return models


def control_flow_models():
    """Models with bodies, functions, sequences, external and sparse tensors: what the operator cases leave out."""
    n, a = w.node, w.attribute
    flag, trips = w.tensor("flag", (), w.BOOL, b"\x01"), w.tensor("trips", (), w.INT64, struct.pack("<q", 3))
    branch = w.graph([n("Relu", ["x"], ["r"])], [], [w.value("r")])
    other = w.graph([n("Neg", ["x"], ["r"])], [], [w.value("r")])
    choice = n("If", ["flag"], ["y"], a("then_branch", g=branch), a("else_branch", g=other), name="choice")
    yield "if", w.small_model(nodes=[choice], initializers=[flag])
    body = w.graph([n("Identity", ["c"], ["d"]), n("Add", ["v", "w"], ["s"]), n("Relu", ["s"], ["q"])],
                   [w.value("i", w.INT64, ()), w.value("c", w.BOOL, ()), w.value("v")],
                   [w.value("d", w.BOOL, ()), w.value("s"), w.value("q")])
    loop = n("Loop", ["trips", "flag", "x"], ["y", "all"], a("body", g=body), name="loop")
    yield "loop", w.small_model(nodes=[loop], initializers=[flag, trips, w.tensor("w")],
                                outputs=[w.value("y"), w.value("all", dims=(3, 2, 3))])
    step = w.graph([n("Add", ["p", "e"], ["t"]), n("Identity", ["t"], ["u"])], [w.value("p", dims=(3,)),
                   w.value("e", dims=(3,))], [w.value("t", dims=(3,)), w.value("u", dims=(3,))])
    scan = n("Scan", ["first", "x"], ["last", "y"], a("body", g=step), a("num_scan_inputs", i=1), name="scan")
    yield "scan", w.small_model(nodes=[scan], initializers=[w.tensor("first", (3,))])
    called = w.function("F", [n("Add", ["x", "x"], ["t"]), n("Relu", ["t"], ["y"])])
    outer = w.function("G", [n("F", ["x"], ["t"], domain="local"), n("F", ["t"], ["y"], domain="local")],
                       opsets=w.opset(1, "local"))
    calls = [n("G", ["x"], ["h"], domain="local", name="first"), n("F", ["h"], ["y"], domain="local")]
    yield "functions", w.model(w.small_graph(nodes=calls), opsets=w.opset() + w.opset(1, "local"),
                               functions=[called, outer])
    pieces = [n("SplitToSequence", ["x"], ["q"], a("axis", i=0)), n("ConcatFromSequence", ["q"], ["y"], a("axis", i=0))]
    yield "sequence", w.small_model(nodes=pieces, initializers=[])
    outside = w.external_tensor("w", location="w.data", offset=0, length=24)
    yield "external", w.small_model(initializers=[outside])
    positions = w.tensor("", (2,), w.INT64, struct.pack("<2q", 1, 4))
    sparse = w.data(1, w.tensor("w", (2,))) + w.data(2, positions) + w.number(3, 2) + w.number(3, 3)
    yield "sparse", w.small_model(initializers=[], more=w.data(15, sparse))
    joined = n("Concat", ["x", "w", "x", "w"], ["c"], a("axis", i=0), name="joined")
    yield "variadic", w.small_model(nodes=[joined, n("Sum", ["c", "c", "c"], ["s"]), n("Max", ["s"], ["y"])],
                                    outputs=[w.value("y", dims=(8, 3))])
    strings = n("Constant", [], ["texts"], a("value_strings", strings=["one", "two\n", "<b>three</b>"]))
    yield "strings", w.small_model(nodes=[strings, n("Identity", ["texts"], ["y"])], initializers=[],
                                   outputs=[w.value("y", w.STRING, (3,))])


@functools.cache
def models():
    """{name: model} of the samples and of every structure, without the operator cases."""
    found = dict(control_flow_models())
    for path in sorted((attack_paths.ROOT / "samples").glob("*/*.onnx")):
        if path.stat().st_size <= LARGEST_SAMPLE_BYTES:
            found[f"{path.parent.name}/{path.stem}"] = path.read_bytes()
    return found
