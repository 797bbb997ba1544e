#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios of torch.compile with backend "parallax" to eager mode, from interleaved runs.

    PYTHONPATH=build/ci/python torch_compile_bench.py [--threads 2] [--number 30] [--case NAME]

Each case runs eager and compiled by turns; the figure is the median of eager's seconds over ours (above 1: we are faster),
with the quartiles. onnxruntime with the same graph is the third of each round where it is installed. The load of the
machine is printed: with other work on the cores only the order of magnitude means anything.
"""

import argparse
import copy
import os
import statistics
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402

import parallax  # noqa: E402
import parallax.torch as pt  # noqa: E402


def llama_layer(hidden=1024, batch=2, length=256):
    from transformers import LlamaConfig, LlamaModel

    model = LlamaModel(LlamaConfig(
        hidden_size=hidden, intermediate_size=hidden, num_hidden_layers=1, num_attention_heads=16, vocab_size=1024,
        max_position_embeddings=2048, attn_implementation="eager")).eval()
    ids = torch.randint(0, 1024, (batch, length))
    return model, lambda run: run(ids, use_cache=False).last_hidden_state


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))


def training_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.l1_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def inference_case(number, ort):
    model, call = llama_layer()
    storage = pt.Storage()
    compiled = torch.compile(model, backend=pt.backend(storage=storage), fullgraph=True, dynamic=False)
    with torch.no_grad():
        sides = {"eager": lambda: call(model), "parallax": lambda: call(compiled)}
        call(compiled)
        if ort:
            sides["onnxruntime"] = onnxruntime_of(storage.graphs[0])
        return rounds(sides, number)


def onnxruntime_of(graph):
    """onnxruntime on the converted model with the same weights as initializers, called with numpy."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(graph.prepared_model.to_bytes(), options, providers=["CPUExecutionProvider"])
    feeds = {each.name: np.random.randint(0, 1024, each.shape).astype(np.int64) for each in session.get_inputs()}
    return lambda: session.run(None, feeds)


def training_case(number, ort):
    eager, sides = mlp(), {}
    x, y = torch.randn(5, 10), torch.randn(5, 1)
    for name in ("eager", "parallax"):
        model = copy.deepcopy(eager)
        run = torch.compile(model, backend="parallax", fullgraph=True, dynamic=False) if name == "parallax" else model
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        sides[name] = lambda run=run, optimizer=optimizer: training_step(run, optimizer, x, y)
    return rounds(sides, number * 20)


def small_call_case(number, ort):
    """The cost of torch and Dynamo themselves: a graph of one small Add."""
    storage = pt.Storage()
    compiled = torch.compile(lambda a, b: a + b, backend=pt.backend(storage=storage), fullgraph=True, dynamic=False)
    a, b = torch.randn(16), torch.randn(16)
    with torch.no_grad():
        compiled(a, b)
        return rounds({"eager": lambda: a + b, "parallax": lambda: compiled(a, b)}, number * 100)


def rounds(sides, number, warmup=3):
    times = {name: [] for name in sides}
    for turn in range(number + warmup):
        for name, run in sides.items():
            started = time.perf_counter()
            run()
            if turn >= warmup:
                times[name].append(time.perf_counter() - started)
    return times


CASES = {"llama layer": inference_case, "mlp training step": training_case, "small call": small_call_case}


def report(name, times):
    eager = times["eager"]
    for side, seconds in times.items():
        ratios = sorted(a / b for a, b in zip(eager, seconds))
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 3 else [ratios[0], statistics.median(ratios), ratios[-1]]
        print(f"{name:<18} {side:<12} {statistics.median(seconds) * 1e3:9.3f} ms   eager/this "
              f"{quartiles[1]:.2f} ({quartiles[0]:.2f} to {quartiles[2]:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--number", type=int, default=30, help="rounds of the slowest case")
    parser.add_argument("--case", choices=list(CASES), help="one case alone")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    parallax.set_threads(arguments.threads)
    try:
        import onnxruntime  # noqa: F401
        ort = True
    except ImportError:
        ort = False
    print(f"torch {torch.__version__}, {arguments.threads} threads, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, case in CASES.items():
        if arguments.case in (None, name):
            torch.manual_seed(0)
            torch._dynamo.reset()
            report(name, case(arguments.number, ort))


if __name__ == "__main__":
    main()
