#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training in torch.compile: the same losses as eager's, and the graphs that were made.

    train_mlp.py [--config tiny|small] [--epochs 3] [--dynamic] [--debug] [--dot PREFIX]

A small network learns from data whose last batch is shorter than the others: with fixed shapes forward and backward are
compiled for each of the two sizes (4 graphs), with `--dynamic` once (2 graphs). `--debug` runs every graph on the reference
and on the cpu executor side by side and compares each value. `--dot` writes the graphs for Graphviz.
"""

import argparse
import sys
from pathlib import Path

import torch

import parallax.torch as pt

CONFIGS = {"tiny": (42, 10, 32, 5), "small": (442, 10, 32, 5)}  # rows, features, width, batch


class Mlp(torch.nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(features, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x)


def make_batches(rows, features, batch):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, features, generator=generator)
    y = (x @ torch.randn(features, 1, generator=generator)).relu() * 10 + 150
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=batch, shuffle=True, generator=torch.Generator().manual_seed(1))


def train(model, compiled, batches, epochs):
    """Losses by epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-1)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for x, y in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.l1_loss(compiled(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total)
    return losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=list(CONFIGS), default="tiny")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--dynamic", action="store_true", help="free shapes")
    parser.add_argument("--debug", action="store_true", help="compare reference and cpu in every call")
    parser.add_argument("--dot", metavar="PREFIX", help="writes PREFIX_<i>.dot for each graph")
    arguments = parser.parse_args(arguments)
    rows, features, width, batch = CONFIGS[arguments.config]
    torch.manual_seed(0)
    eager = Mlp(features, width)
    ours = Mlp(features, width)
    ours.load_state_dict(eager.state_dict())
    storage = pt.Storage()
    make = pt.debug_backend if arguments.debug else pt.backend
    compiled = torch.compile(ours, backend=make(storage=storage), fullgraph=True, dynamic=arguments.dynamic)
    losses = [train(model, run, make_batches(rows, features, batch), arguments.epochs)
              for model, run in ((eager, eager), (ours, compiled))]
    for epoch, (want, got) in enumerate(zip(*losses), 1):
        print(f"epoch {epoch}: loss {got:.4f}, in eager mode {want:.4f}")
    error = max(abs(got - want) / abs(want) for want, got in zip(*losses))
    print(f"largest relative difference of the losses: {error:.1e}")
    print(f"{len(storage.graphs)} graphs were compiled")
    for graph in storage.graphs:
        verdicts = sorted({comparison.verdict for comparison in graph.comparisons})
        print(f"\n-- graph {graph.index}: {graph.kind}, {graph.calls} calls, on {graph.executor}"
              + (f", {len(graph.comparisons)} comparisons: {', '.join(verdicts)}" if verdicts else ""))
        print(graph.model.text(shapes=True), end="")
        if arguments.dot:
            Path(f"{arguments.dot}_{graph.index}.dot").write_text(graph.model.dot())
    return 0 if error < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
