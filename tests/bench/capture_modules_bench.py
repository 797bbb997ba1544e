#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a capture of modules: the forward with it, compared with the forward alone, in interleaved rounds.

capture_modules_bench.py [ROUNDS [FOLDER [MODEL...]]]    needs PYTHONPATH=<build folder>/python and torch. Dumps go to FOLDER (/dev/shm).

Only the ratios mean something. `copied` is a plain write of a file with as many bytes to the same folder, after the forward: what
keeping the values costs at least where nothing else of the machine is idle. A capture copies memory while a forward computes: the fewer operations a module does for each of
its values, the more it shows.
"""

import os
import statistics
import sys
import time

import torch

import parallax.torch as pt


class Block(torch.nn.Module):
    """A layer of a decoder as language models have it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.act, self.down = torch.nn.Linear(width, 4 * width), torch.nn.SiLU(), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        normed = self.norm_1(x)
        query, key, value = (each(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                             for each in (self.query, self.key, self.value))
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).flatten(-2))
        return x + self.down(self.act(self.up(self.norm_2(x))))


def decoder():
    """Two layers of width 1024 over a prompt of 384 tokens."""
    return torch.nn.Sequential(Block(1024, 16), Block(1024, 16)).eval(), torch.randn(1, 384, 1024)


def wide_decoder():
    """One layer of width 2048, as a model of a billion weights has it."""
    return torch.nn.Sequential(Block(2048, 32)).eval(), torch.randn(1, 384, 2048)


def convolutions():
    """3x3 convolutions of 256 channels, each with its norm and its activation."""
    layers = [module for _ in range(5)
              for module in (torch.nn.Conv2d(256, 256, 3, padding=1), torch.nn.BatchNorm2d(256), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).eval(), torch.randn(1, 256, 56, 56)


def perceptron():
    """Linear layers of width 1024 and their activations."""
    layers = [module for _ in range(4) for module in (torch.nn.Linear(1024, 1024), torch.nn.GELU())]
    return torch.nn.Sequential(*layers).eval(), torch.randn(1536, 1024)


def seconds(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measure(make, rounds, folder):
    torch.manual_seed(0)
    model, x = make()
    path = os.path.join(folder, f"capture-{os.getpid()}.plx")

    def captured(**options):
        with pt.capture(model, submodules=True, path=path, **options):
            model(x)

    with torch.no_grad():
        calls = {"forward": lambda: model(x), "captured": captured, "statistics": lambda: captured(level="stats")}
        for call in calls.values():
            call()
        captured()
        with pt.capture(model, submodules=True) as got:
            model(x)
        megabytes = sum(value.nbytes for value in got._values.values()) / 1e6
        size = os.path.getsize(path)
        zeros = memoryview(bytes(size))

        def copied():
            model(x)
            with open(path, "wb", buffering=0) as file:
                file.write(zeros)

        calls["copied"] = copied
        times = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                times[name].append(seconds(call))
    os.remove(path)
    ratios = {name: statistics.median(a / b for a, b in zip(values, times["forward"])) for name, values in times.items()}
    print(f"{make.__name__:<14} {megabytes:6.0f} MB   forward {statistics.median(times['forward']) * 1e3:7.1f} ms   "
          f"captured / forward {ratios['captured']:.2f}   statistics alone / forward {ratios['statistics']:.2f}   "
          f"copied / forward {ratios['copied']:.2f}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    folder = sys.argv[2] if len(sys.argv) > 2 else "/dev/shm"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}, dumps in {folder}")
    for make in (decoder, wide_decoder, convolutions, perceptron):
        if not sys.argv[3:] or make.__name__ in sys.argv[3:]:
            measure(make, rounds, folder)


if __name__ == "__main__":
    main()
