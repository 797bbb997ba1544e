#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The inputs and outputs of modules: captured, restored, and found again in the exported ONNX graph.

    capture_modules.py [--folder DIR] [--verbose]

1. A small decoder runs inside `parallax.torch.capture`, which writes what each module is given and gives into a dump.
2. The dump is restored with its containers, and saved as one ONNX file of constants for other tools.
3. The model is exported. `exported_outputs` says which values of the ONNX graph are the modules' results: the exporter
   leaves each node's module path in its metadata. The graph runs with all values observed, and each result is compared.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch

import parallax
import parallax.torch as pt
from parallax.helpers import string_type


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1] ** 0.5
        return scores.softmax(dim=-1) @ self.value(x)


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention = Attention(width)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.Linear(width, 2 * width), torch.nn.ReLU(), torch.nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))


class Decoder(torch.nn.Module):
    def __init__(self, vocabulary=32, width=16):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.decoder = Layer(width)

    def forward(self, input_ids):
        return self.decoder(self.embedding(input_ids))


def capture(model, inputs, folder, verbose):
    """The inputs and outputs of six modules, written while the model runs."""
    names = ["decoder", "decoder.attention", "decoder.feed_forward", "decoder.norm_1", "decoder.norm_2"]
    modules = [("model", model)] + [(name, model.get_submodule(name)) for name in names]
    with torch.no_grad(), pt.capture(modules, path=folder / "modules.plx", verbose=verbose):
        model(*inputs)
    captured = pt.restore(folder / "modules.plx")
    for key, value in captured.items():
        print(f"{key!s:<40} {string_type(value, with_shape=True)}")
    print(f"{len(captured)} objects restored")
    return captured


def exported_outputs(model):
    """Module path -> name of the last value that its nodes compute in the ONNX graph."""
    last = {}
    for node in model.nodes:
        scopes = node.metadata.get("pkg.torch.onnx.name_scopes", "")
        for path in scopes.strip("[]").replace("'", "").split(", ")[:-1]:
            last[path or "model"] = node.outputs[0]
    return last


def compare(captured, model, inputs):
    """Differences between what torch's modules gave and what the graph's values are."""
    values = {}

    class Keep:
        def observe(self, path, value):
            values[path] = value.torch()

    session = parallax.Session(model, executor="reference")
    session.run(dict(zip([value.name for value in model.inputs], inputs)), observe=Keep())
    outputs = exported_outputs(model)
    found = 0
    for key in captured:
        name, call, side = key
        if side != "O" or name not in outputs or call > 0:
            continue
        ours, theirs = values[outputs[name]], captured[key]
        found += 1
        print(f"{name:<22} is {outputs[name]:<16} largest difference {(ours - theirs).abs().max():.1e}")
        if ours.shape != theirs.shape or not torch.allclose(ours, theirs, atol=1e-5):
            return found, name
    return found, None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the files go (a temporary folder)")
    parser.add_argument("--verbose", action="store_true", help="print every call")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model, inputs = Decoder().eval(), (torch.randint(0, 32, (2, 6)),)
    captured = capture(model, inputs, folder, int(options.verbose))
    pt.save_onnx(captured, folder / "modules.onnx")
    program = torch.onnx.export(model, inputs, dynamo=True, verbose=False)
    found, wrong = compare(captured, parallax.load(program), inputs)
    print(f"{found} modules found in the graph; {'all equal' if wrong is None else f'{wrong} differs'}")
    return 0 if wrong is None and found == 6 else 1


if __name__ == "__main__":
    sys.exit(main())
