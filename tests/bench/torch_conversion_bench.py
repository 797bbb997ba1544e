#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of converting an ATen graph, as a ratio to torch.onnx.export of the same program, in interleaved rounds.

    torch_conversion_bench.py [ROUNDS]    needs PYTHONPATH=<build folder>/python, torch and transformers

Times are processor seconds; a ratio is the median of the rounds', with the smallest and the largest.
"""

import os
import statistics
import sys
import time
import warnings

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from transformers import LlamaConfig, LlamaModel

from parallax.torch._decompositions import decompositions
from parallax.torch._fx import convert, tracing_context
from parallax.torch._operators import custom_translations
from parallax.torch._private import outside_of_tracing, quiet_logging
from parallax.torch._program import wrap


def perceptron():
    """Two linear layers."""
    layers = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    return layers, (torch.randn(5, 10),)


def llama():
    """Two decoder layers of width 64."""
    config = LlamaConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128,
                         vocab_size=99, use_cache=False, attn_implementation="eager")
    return LlamaModel(config), (torch.randint(0, 99, (2, 7)),)


def graphs_of(model, inputs, gradients, dynamic):
    """The ATen graphs of one call: one without gradients, else forward and backward."""
    kept = []

    def keep(gm, example_inputs):
        kept.append(gm)
        return make_boxed_func(gm.forward)

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=aot_autograd(fw_compiler=keep, decompositions=decompositions()), dynamic=dynamic)
    with torch.set_grad_enabled(gradients), tracing_context(gradients):
        result = compiled(*inputs)
    if gradients:
        getattr(result, "last_hidden_state", result).sum().backward()
    return kept


def public_export(gm):
    """The public way: registry, decomposition, translation and all rewrite rules each time."""
    with outside_of_tracing(), quiet_logging(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.onnx.export(
            wrap(gm).program, dynamo=True, opset_version=20, optimize=True, verbose=False,
            custom_translation_table=custom_translations())


def seconds(call, graphs):
    begin = time.process_time()
    for gm in graphs:
        call(gm)
    return time.process_time() - begin


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    cases = [("MLP, forward and backward", perceptron, True, False), ("Llama, 2 layers, inference", llama, False, False),
             ("Llama, 2 layers, forward and backward", llama, True, False),
             ("Llama, forward and backward, free shapes", llama, True, True)]
    for name, make, gradients, dynamic in cases:
        graphs = graphs_of(*make(), gradients, dynamic)
        seconds(convert, graphs)
        seconds(public_export, graphs)
        pairs = [(seconds(convert, graphs), seconds(public_export, graphs)) for _ in range(rounds)]
        ratios = [ours / public for ours, public in pairs]
        nodes = [sum(len(found.graph) for found in models) for models in (
            [convert(gm).model for gm in graphs], [public_export(gm).model for gm in graphs])]
        print(f"{name:42} ours/torch.onnx.export {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})  "
              f"{min(o for o, _ in pairs):.2f} s to {min(p for _, p in pairs):.2f} s  nodes {nodes[0]} to {nodes[1]}", flush=True)


if __name__ == "__main__":
    main()
