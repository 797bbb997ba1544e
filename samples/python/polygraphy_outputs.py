#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outputs that TensorRT's Polygraphy saved, compared with the reference, value by value.

    polygraphy_outputs.py OUTPUTS.json MODEL [--inputs DIR]

Polygraphy writes the file by `polygraphy run MODEL --trt --trt-outputs mark all --save-outputs OUTPUTS.json`. It is not needed
to read it: a list of runners with their iterations, whose arrays are .npy files in base64.
"""

import argparse
import base64
import io
import json

import numpy as np

import parallax

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("outputs")
parser.add_argument("model")
parser.add_argument("--inputs", help="what Polygraphy ran on: a test_data_set folder or .npz file")
arguments = parser.parse_args()


def array_of(value):
    """The array of an output; large ones are wrapped once more, as "values"."""
    value = value.get("values", value)
    if value.get("polygraphy_class", "ndarray") != "ndarray":
        raise SystemExit(f"an output is a {value['polygraphy_class']}; it must be an ndarray, as without --use-torch")
    return np.load(io.BytesIO(base64.b64decode(value["array"])), allow_pickle=False)


with open(arguments.outputs) as file:
    runner, iterations = json.load(file)["lst"][0]
with parallax.Dump.create("polygraphy.plx", executor=runner, model=arguments.model) as dump:
    for name, value in iterations[0]["outputs"].items():
        dump.write(name, array_of(value))

parallax.run(arguments.model, arguments.inputs, executor="reference", dump="reference.plx", capture="all")
comparison = parallax.diff("reference.plx", "polygraphy.plx")
print(f"{runner}: {comparison.verdict}, {comparison.summary.compared} values compared")
for cause in comparison.causes:
    print(f"  {cause.node} ({cause.op}): {cause.why}")
raise SystemExit(0 if comparison else 1)
