# SPDX-License-Identifier: Apache-2.0
"""Executors that are programs of their own: the conversation with Parallax, and runners of other runtimes.

``python -m parallax.runners NAME [ARGUMENT]`` is what ``--with onnxruntime`` starts; the contract is
``inspector/exec/FOREIGN.md``. A runner of one's own is an object with three methods that ``serve`` talks for:

>>> from parallax.runners import serve
>>> class Evaluator:
...     def describe(self):
...         return {"name": "onnx.reference"}
...     def load(self, request):
...         import onnx.reference
...         self.model = onnx.reference.ReferenceEvaluator(request.model)
...     def run(self, request):
...         return dict(zip(request.wanted, self.model.run(request.wanted, request.read_inputs())))
>>> serve(Evaluator())                                                    # doctest: +SKIP
"""

from __future__ import annotations

from parallax.runners._requests import Answer, Description, Load, Run, Runner
from parallax.runners._serve import PROTOCOL, serve

__all__ = ["PROTOCOL", "Answer", "Description", "Load", "Run", "Runner", "serve"]
