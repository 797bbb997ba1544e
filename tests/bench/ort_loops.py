# SPDX-License-Identifier: Apache-2.0
"""The models of ort_bench.py whose work is in bodies: many iterations of a few small nodes each."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def typed(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def number(name, value):
    return numpy_helper.from_array(np.float32(value), name)


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# Five small nodes; both sides keep all of them, since each is of another kind.
def five_nodes(source, target):
    return [helper.make_node("Mul", [source, "scale"], ["a"]), helper.make_node("Add", ["a", "shift"], ["b"]),
            helper.make_node("Tanh", ["b"], ["c"]), helper.make_node("Sub", [source, "c"], ["d"]),
            helper.make_node("Abs", ["d"], [target])]


WEIGHTS = [number("scale", 0.9), number("shift", 0.1)]
COUNT = numpy_helper.from_array(np.int64(10000), "count")


def loop_body(nodes, carried, scanned=()):
    return helper.make_graph([helper.make_node("Identity", ["cond"], ["cond_out"]), *nodes], "body",
                             [typed("i", INT64, []), typed("cond", BOOL, []), typed("x", *carried)],
                             [typed("cond_out", BOOL, []), typed("y", *carried), *scanned])


def carried(width=64):
    body = loop_body(five_nodes("x", "y"), (FLOAT, [width]))
    return model([helper.make_node("Loop", ["count", "", "start"], ["end"], body=body)],
                 [typed("start", FLOAT, [width])], [typed("end", FLOAT, [width])], [COUNT, *WEIGHTS])


def scanned(width=64):
    body = loop_body(five_nodes("x", "y") + [helper.make_node("Neg", ["c"], ["row"])], (FLOAT, [width]),
                     [typed("row", FLOAT, [width])])
    return model([helper.make_node("Loop", ["count", "", "start"], ["end", "rows"], body=body)],
                 [typed("start", FLOAT, [width])],
                 [typed("end", FLOAT, [width]), typed("rows", FLOAT, ["n", width])], [COUNT, *WEIGHTS])


def scan(width=64, length=10000):
    body = helper.make_graph([helper.make_node("Add", ["state", "item"], ["x"]), *five_nodes("x", "y"),
                              helper.make_node("Neg", ["c"], ["row"])], "body",
                             [typed("state", FLOAT, [width]), typed("item", FLOAT, [width])],
                             [typed("y", FLOAT, [width]), typed("row", FLOAT, [width])])
    return model([helper.make_node("Scan", ["start", "items"], ["end", "rows"], body=body, num_scan_inputs=1)],
                 [typed("start", FLOAT, [width]), typed("items", FLOAT, [length, width])],
                 [typed("end", FLOAT, [width]), typed("rows", FLOAT, [length, width])], WEIGHTS)


def branches(width=64):
    def branch(name, op):
        nodes = [helper.make_node("Mul", ["x", "scale"], [f"{name}_a"]), helper.make_node(op, [f"{name}_a"], [name])]
        return helper.make_graph(nodes, name, [], [typed(name, FLOAT, [width])])
    nodes = [helper.make_node("Mod", ["i", "two"], ["rest"]), helper.make_node("Equal", ["rest", "zero"], ["even"]),
             helper.make_node("If", ["even"], ["y"], then_branch=branch("then", "Tanh"),
                              else_branch=branch("else", "Abs"))]
    whole = [numpy_helper.from_array(np.int64(value), name) for name, value in (("two", 2), ("zero", 0))]
    return model([helper.make_node("Loop", ["count", "", "start"], ["end"], body=loop_body(nodes, (FLOAT, [width])))],
                 [typed("start", FLOAT, [width])], [typed("end", FLOAT, [width])], [COUNT, *WEIGHTS, *whole])


# A cache that grows by a row each iteration, and what is made of all of it.
def growing(width=64, length=1000):
    nodes = [helper.make_node("Concat", ["x", "row"], ["y"], axis=0), helper.make_node("Tanh", ["y"], ["bent"]),
             helper.make_node("ReduceMean", ["bent"], ["mean"], axes=[0], keepdims=0),
             helper.make_node("Neg", ["mean"], ["out"])]
    body = loop_body(nodes, (FLOAT, ["n", width]), [typed("out", FLOAT, [width])])
    count = numpy_helper.from_array(np.int64(length), "count")
    return model([helper.make_node("Loop", ["count", "", "start"], ["end", "rows"], body=body)],
                 [typed("start", FLOAT, [1, width]), typed("row", FLOAT, [1, width])],
                 [typed("end", FLOAT, ["n", width]), typed("rows", FLOAT, ["m", width])], [count])


MODELS = {
    "loop-carried": (carried, ">= 1.0"),
    "loop-scanned": (scanned, ">= 1.0"),
    "loop-if": (branches, ">= 1.0"),
    "loop-growing": (growing, ">= 1.0"),
    "scan": (scan, ">= 1.0"),
}
