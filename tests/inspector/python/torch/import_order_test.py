# SPDX-License-Identifier: Apache-2.0
"""NaN is kept by the cpu executor whatever other package was imported before, and whatever threads it brought."""

from __future__ import annotations

import pytest
from small_models import run_python

CODE = """
{imports}
import numpy as np
import onnx
from onnx import TensorProto, helper

import parallax
from parallax import _core

def conv(second, **attributes):
    weights = np.random.default_rng(0).standard_normal((32, 16, 3, 3)).astype(np.float32)
    initializers = [onnx.numpy_helper.from_array(weights, "w")]
    extra = []
    if second == "Clip":
        initializers += [onnx.numpy_helper.from_array(np.float32(low), name) for low, name in ((0, "lo"), (6, "hi"))]
        extra = ["lo", "hi"]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node(second, ["c", *extra], ["y"])]
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [value("x", [4, 16, 32, 32])], [value("y", None)], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()

parallax.set_threads(2)
lost = 0
for second in ("Relu", "Clip"):
    session = parallax.Session(conv(second))
    for number in range(6):
        x = np.ones((4, 16, 32, 32), np.float32)
        image, row = divmod(number * 7, 4)
        x[image % 4, 3, 5 + row * 6, 9] = np.nan
        lost += int(np.isnan(session.run([x])["y"]).sum() == 0)
        session = parallax.Session(conv(second)) if number % 2 else session
print("lost", lost, "own threads", _core.has_own_library_threads())
"""

ORDERS = [
    "", "import torch", "import onnxruntime", "import torch, onnxruntime", "import onnxruntime, torch",
    "import parallax, torch", "import torch; torch.nn.functional.conv2d(torch.ones(2, 8, 32, 32), torch.ones(8, 8, 3, 3))",
]


@pytest.mark.parametrize("imports", ORDERS, ids=lambda order: order[:40] or "alone")
def test_nan_is_kept_in_every_order_of_imports(imports: str) -> None:
    assert run_python(CODE.format(imports=imports)).strip() == "lost 0 own threads True"


def test_nan_is_kept_where_another_runtime_runs_the_regions() -> None:
    """Without RTLD_DEEPBIND oneDNN finds torch's OpenMP runtime: what its threads do cannot be noticed."""
    printed = run_python(CODE.format(imports="import os, torch; del os.RTLD_DEEPBIND"))
    assert printed.strip() == "lost 0 own threads False"
