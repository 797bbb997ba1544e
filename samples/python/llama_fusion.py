#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Llama in torch.compile: what each set of fused patterns makes of its graph, and what that is worth.

    llama_fusion.py [--config tiny|small|large] [--layers 1] [--mask] [--number 20] [--warmup 3] [--dump PREFIX]

The model runs in eager mode and then compiled with each set of patterns: `standard` (operators of ai.onnx alone),
`standard+microsoft` (fused operators of com.microsoft, too) and `standard+microsoft+own` (all that the cpu executor has).
Eager and compiled runs alternate, so that what else the machine does meets both; a speedup is the median of the ratios.
"""

import argparse
import statistics
import time

import torch
from transformers import LlamaConfig, LlamaModel

import parallax.torch as pt

CONFIGS = {  # hidden size, heads, intermediate size, vocabulary, batch, length
    "tiny": (64, 4, 96, 128, 2, 16),
    "small": (1024, 16, 1024, 1024, 2, 256),
    "large": (4096, 32, 11008, 32000, 2, 1024),
}
SETS = ("standard", "standard+microsoft", "standard+microsoft+own")


def make_model(config, layers, with_mask):
    hidden, heads, intermediate, vocabulary, batch, length = CONFIGS[config]
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(
        hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=heads, intermediate_size=intermediate,
        vocab_size=vocabulary, num_hidden_layers=layers, max_position_embeddings=2 * length, attn_implementation="eager"))
    inputs = [torch.randint(0, vocabulary, (batch, length))]
    if with_mask:
        inputs.append(torch.ones(batch, length, dtype=torch.int64))
        inputs[1][0, : length // 4] = 0
    return model.eval(), inputs


def seconds_of(function, inputs):
    started = time.perf_counter()
    function(*inputs, use_cache=False)
    return time.perf_counter() - started


def compare_with_eager(model, inputs, patterns, arguments):
    """A row of the table, and the compiled graph."""
    torch._dynamo.reset()
    storage = pt.Storage()
    compiled = torch.compile(
        model, backend=pt.backend(patterns=patterns, storage=storage, dump_prefix=arguments.dump), fullgraph=True, dynamic=False)
    for _ in range(arguments.warmup):
        seconds_of(model, inputs), seconds_of(compiled, inputs)
    times = [(seconds_of(model, inputs), seconds_of(compiled, inputs)) for _ in range(arguments.number)]
    graph = storage.graphs[0]
    return {
        "patterns": patterns, "avg_time": statistics.mean(ours for _, ours in times), "warmup": arguments.warmup,
        "N": arguments.number, "nodes": len(graph.model.nodes), "custom_ops": sum(graph.custom_ops.values()),
        "speedup": statistics.median(eager / ours for eager, ours in times),
        "eager": statistics.mean(eager for eager, _ in times),
    }, graph


def table(rows, columns):
    cells = [columns] + [[f"{row[c]:.4f}" if isinstance(row.get(c), float) else str(row.get(c, "")) for c in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in cells)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=list(CONFIGS), default="tiny")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--mask", action="store_true", help="with an attention mask as a second input")
    parser.add_argument("--number", type=int, default=20, help="timed runs")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--dump", help="writes each graph's model, text and first inputs under this prefix")
    arguments = parser.parse_args(arguments)
    model, inputs = make_model(arguments.config, arguments.layers, arguments.mask)
    rows = []
    with torch.no_grad():
        want = model(*inputs, use_cache=False).last_hidden_state
        for patterns in SETS:
            row, graph = compare_with_eager(model, inputs, patterns, arguments)
            rows.append(row)
            print(f"{patterns}: {graph.custom_ops or 'no custom operators'}; applied {graph.applied_patterns}")
        torch._dynamo.reset()
        got = torch.compile(model, backend="parallax")(*inputs, use_cache=False).last_hidden_state
    print(f"largest difference from eager: {(got - want).abs().max().item():.2e}\n")
    eager = {"patterns": "eager", "avg_time": statistics.mean(row["eager"] for row in rows), "warmup": arguments.warmup,
             "N": arguments.number}
    print(table([eager, *rows], ["patterns", "avg_time", "warmup", "N", "nodes", "custom_ops", "speedup"]))
    return rows


if __name__ == "__main__":
    main()
