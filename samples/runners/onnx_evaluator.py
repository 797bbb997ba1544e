#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A runner: onnx's own evaluator as a side of --with 'reference,cmd:samples/runners/onnx_evaluator.py'."""

import onnx.reference
from parallax.runners import serve


class Evaluator:
    def describe(self):
        return {"name": "onnx.reference", "version": onnx.__version__}

    def load(self, request):
        self.model = onnx.reference.ReferenceEvaluator(request.model)

    def run(self, request):
        return dict(zip(request.wanted, self.model.run(request.wanted, request.read_inputs())))


serve(Evaluator())
