#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forward hooks of one's own, compared with the exported model: names of modules lead to values of the graph.

    torch_hooks.py
"""

import subprocess

import numpy as np
import torch

import parallax

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)).eval()
x = torch.randn(2, 8)

seen = {}
hooks = [
    module.register_forward_hook(lambda module, inputs, output, name=name: seen.update({name: output.detach().numpy()}))
    for name, module in model.named_children()
]
model(x)
for hook in hooks:
    hook.remove()

program = torch.onnx.export(model, (x,), verbose=False)
program.save("model.onnx")
np.savez("hooks.npz", **seen)
np.savez("inputs.npz", **{parallax.load(program).inputs[0].name: x.numpy()})

# The exporter wrote into the file which module each node came from: `import --model` finds the modules' outputs by it.
subprocess.run(["parallax", "import", "hooks.npz", "--model", "model.onnx", "-o", "torch.plx"], check=True)
parallax.run("model.onnx", "inputs.npz", executor="reference", dump="reference.plx", capture="all")
comparison = parallax.diff("torch.plx", "reference.plx")
print(f"{comparison.verdict}: {comparison.summary.compared} of {len(seen)} modules compared")
raise SystemExit(0 if comparison else 1)
