#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the samples greedy_decoder/ (Loop with carried values, scan outputs, a value captured from outside, and an If in its
body) and scan_filter/ (Scan over two sequences, one of them backwards, and an If around the whole).

greedy_decoder picks a token from the state's scores, embeds it, moves the state away from it, and stops at the end token (after 9
of at most 12 steps with the data set). The state is halved only when its largest element passes a bound: the branch taken differs between the steps.
Both write model.onnx and model.textproto, the same model in text form.
"""
import numpy as np
import onnx
from google.protobuf import text_format
from onnx import TensorProto, helper, numpy_helper

from common import GraphBuilder, normal, options, write_model

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
HIDDEN, VOCABULARY, END_TOKEN = 16, 12, 0


def value(name, element_type, shape):
    return helper.make_tensor_value_info(name, element_type, shape)


def constant(name, values):
    return helper.make_node("Constant", [], [name], name=f"{name}_constant", value=numpy_helper.from_array(np.asarray(values), f"{name}_value"))


def rescale_branches():
    """then: halve the moved state; else: keep it. Both read `moved` from the body around them."""
    half = constant("half", np.float32(0.5))
    then_graph = helper.make_graph(
        [half, helper.make_node("Mul", ["moved", "half"], ["halved"], name="halve")], "halve_state", [], [value("halved", FLOAT, [1, HIDDEN])]
    )
    else_graph = helper.make_graph(
        [helper.make_node("Identity", ["moved"], ["kept"], name="keep")], "keep_state", [], [value("kept", FLOAT, [1, HIDDEN])]
    )
    return {"then_branch": then_graph, "else_branch": else_graph}


def step_body():
    body = GraphBuilder()
    body.node("Mul", ["state_in", "forget"], "scale", outputs=["scaled"])
    body.node("MatMul", ["state_in", "score_weight"], "score_state", outputs=["scores"])
    body.node("Softmax", ["scores"], "softmax", outputs=["probabilities"], axis=-1)
    body.node("ArgMax", ["scores"], "pick", outputs=["picked"], axis=-1, keepdims=0)
    body.node("Gather", ["embedding", "picked"], "embed", outputs=["embedded"], axis=0)
    body.node("MatMul", ["embedded", "move_weight"], "move", outputs=["pushed"])
    body.node("Tanh", ["pushed"], "squash", outputs=["squashed"])
    body.node("Sub", ["scaled", "squashed"], "move_away", outputs=["moved"])
    body.node("ReduceMax", ["moved"], "largest", outputs=["largest_element"], axes=[0, 1], keepdims=0)
    body.node("Greater", ["largest_element", "bound"], "too_large", outputs=["is_too_large"])
    body.node("If", ["is_too_large"], "rescale", outputs=["state_out"], **rescale_branches())
    body.node("Equal", ["picked", "end_token"], "is_end", outputs=["ended"])
    body.node("Not", ["ended"], "goes_on", outputs=["goes_on_vector"])
    body.node("Squeeze", ["goes_on_vector"], "goes_on_scalar", outputs=["condition_out"])
    body.node("Identity", ["picked"], "emit", outputs=["token"])
    return helper.make_graph(
        body.nodes, "step", [value("step", INT64, []), value("condition_in", BOOL, []), value("state_in", FLOAT, [1, HIDDEN])],
        [value("condition_out", BOOL, []), value("state_out", FLOAT, [1, HIDDEN]), value("token", INT64, [1]),
         value("probabilities", FLOAT, [1, VOCABULARY])],
    )


def greedy_decoder():
    net = GraphBuilder()
    net.weight("score_weight", normal("score_weight", (HIDDEN, VOCABULARY), 0.5))
    net.weight("embedding", normal("embedding", (VOCABULARY, HIDDEN)))
    net.weight("move_weight", normal("move_weight", (HIDDEN, HIDDEN), HIDDEN**-0.5))
    net.weight("forget", np.float32(0.9))
    net.weight("bound", np.float32(1.2))
    net.weight("end_token", np.array([END_TOKEN], np.int64))
    net.weight("start", np.array(True))
    net.node("LayerNormalization", ["prompt_state", net.weight("norm_weight", 1 + normal("norm_weight", HIDDEN, 0.1))], "norm",
             outputs=["first_state"], axis=-1)
    net.node("Loop", ["max_steps", "start", "first_state"], "decode", outputs=["last_state", "tokens", "step_probabilities"], body=step_body())
    net.node("Concat", ["first_state", "last_state"], "join", outputs=["states"], axis=0)
    return net.model(
        "greedy_decoder", [value("prompt_state", FLOAT, [1, HIDDEN]), value("max_steps", INT64, [])],
        [value("tokens", INT64, ["steps", 1]), value("step_probabilities", FLOAT, ["steps", 1, VOCABULARY]), value("states", FLOAT, [2, HIDDEN])],
        opset=17, ir_version=8,
    )


def filter_body():
    """An exponential filter whose gain grows with the gate; the second scan output is the gated input itself."""
    body = GraphBuilder()
    body.node("Sigmoid", ["gate"], "sigmoid", outputs=["open"])
    body.node("Mul", ["open", "sample"], "gated", outputs=["gated_sample"])
    body.node("Sub", ["gated_sample", "level_in"], "difference", outputs=["delta"])
    body.node("Mul", ["delta", "rate"], "move_level", outputs=["change"])
    body.node("Add", ["level_in", "change"], "new_level", outputs=["level_out"])
    body.node("Identity", ["level_out"], "emit_level", outputs=["level"])
    return helper.make_graph(
        body.nodes, "filter_step", [value("level_in", FLOAT, [3]), value("sample", FLOAT, [3]), value("gate", FLOAT, [3])],
        [value("level_out", FLOAT, [3]), value("level", FLOAT, [3]), value("gated_sample", FLOAT, [3])],
    )


def scan_filter():
    scan = GraphBuilder()
    scan.node("Scan", ["first_level", "samples", "gates"], "filter", outputs=["last_level", "levels", "gated"], body=filter_body(),
              num_scan_inputs=2, scan_input_directions=[0, 1], scan_output_directions=[0, 1], scan_output_axes=[0, 1])
    scan.node("ReduceSum", ["gated"], "total_gated", outputs=["gated_total"], keepdims=0)
    scan.node("Mul", ["levels", "gated_total"], "weigh", outputs=["weighed"])
    filtered = helper.make_graph(scan.nodes, "filtered", [], [value("weighed", FLOAT, ["time", 3])])
    passed = helper.make_graph(
        [helper.make_node("Identity", ["samples"], ["unfiltered"], name="pass_through")], "passed", [], [value("unfiltered", FLOAT, ["time", 3])]
    )
    net = GraphBuilder()
    net.weight("rate", np.array([0.25, 0.5, 0.75], np.float32))
    net.node("If", ["use_filter"], "choose", outputs=["chosen"], then_branch=filtered, else_branch=passed)
    net.node("Abs", ["chosen"], "rectify", outputs=["signal"])
    return net.model(
        "scan_filter",
        [value("first_level", FLOAT, [3]), value("samples", FLOAT, ["time", 3]), value("gates", FLOAT, ["time", 3]), value("use_filter", BOOL, [])],
        [value("signal", FLOAT, ["time", 3])], opset=16, ir_version=8,
    )


def write_both_forms(model, folder, feeds):
    answer = write_model(model, folder, feeds)
    (folder / "model.textproto").write_text(text_format.MessageToString(model))
    return answer


def main():
    out = options(__doc__).out
    feeds = {"prompt_state": normal("prompt_state", (1, HIDDEN)), "max_steps": np.array(12, np.int64)}
    answer = write_both_forms(greedy_decoder(), out / "greedy_decoder", feeds)
    print("tokens:", answer["tokens"].ravel())
    feeds = {
        "first_level": normal("first_level", 3), "samples": normal("samples", (6, 3)), "gates": normal("gates", (6, 3)),
        "use_filter": np.array(True),
    }
    write_both_forms(scan_filter(), out / "scan_filter", feeds)


if __name__ == "__main__":
    main()
