#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every tensor of a model as onnxruntime computes it, compared with the reference.

    onnxruntime_tensors.py [MODEL] [--inputs DIR]
"""

import argparse

import parallax

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", nargs="?", default="samples/cnn/model.onnx")
parser.add_argument("--inputs", help="a test_data_set folder or .npz file; generated without it")
arguments = parser.parse_args()

parallax.run(arguments.model, arguments.inputs, executor="reference", dump="reference.plx", capture="all")
captured = parallax.ort.capture(arguments.model, arguments.inputs, "onnxruntime.plx", optimization="all")
comparison = parallax.diff("reference.plx", "onnxruntime.plx")

print(f"{comparison.verdict}: {captured.value_count} values of onnxruntime, {comparison.summary.compared} compared")
for cause in comparison.causes:
    print(f"  {cause.node} ({cause.op}): {cause.why}")
raise SystemExit(0 if comparison else 1)
