#!/usr/bin/env python3
"""What a capture of modules costs: the forward with it, compared with the forward alone, in interleaved rounds.

capture_modules_bench.py [ROUNDS] [FOLDER]    needs PYTHONPATH=<build folder>/python and torch. The dumps go to FOLDER (/dev/shm).
"""

import os
import statistics
import sys
import time

import torch

import parallax.torch as pt


def transformer():
    """Four encoder layers and a head: inputs and results of all modules are some 100 MB."""
    layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), torch.randn(2, 512, 512)


def convolutions():
    """A stack of convolutions with norms."""
    layers = [module for width in ((3, 64), (64, 64), (64, 64))
              for module in (torch.nn.Conv2d(*width, 3, padding=1), torch.nn.BatchNorm2d(width[1]), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).eval(), torch.randn(2, 3, 96, 96)


def perceptron():
    """Linear layers."""
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
        times = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                times[name].append(seconds(call))
    os.remove(path)
    ratios = {name: statistics.median(a / b for a, b in zip(values, times["forward"])) for name, values in times.items()}
    print(f"{make.__name__:<14} {megabytes:6.0f} MB   forward {statistics.median(times['forward']) * 1e3:7.1f} ms   "
          f"captured / forward {ratios['captured']:.2f}   statistics alone / forward {ratios['statistics']:.2f}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    folder = sys.argv[2] if len(sys.argv) > 2 else "/dev/shm"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}, dumps in {folder}")
    for make in (transformer, convolutions, perceptron):
        measure(make, rounds, folder)


if __name__ == "__main__":
    main()
