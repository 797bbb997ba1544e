# SPDX-License-Identifier: Apache-2.0
"""A suite of one's own: what exported models must hold to. Run it with pytest; `pip install` brings the fixture.

    pytest samples/python/test_exported_models.py --parallax-report=reports
"""

from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", ["cnn", "recurrent"])
def test_executors_agree(parallax_check, name):
    parallax_check.executors(SAMPLES / name / "model.onnx", seeds=2)


def test_a_rewritten_model_computes_the_same(parallax_check, tmp_path):
    import parallax

    original = SAMPLES / "cnn" / "model.onnx"
    rewritten = parallax.load(original).rewrite("standard").save(tmp_path / "rewritten.onnx")
    parallax_check.models(original, rewritten)


@pytest.mark.xfail(reason="B.onnx has the mistake of a converter; the report says which", strict=True)
def test_a_converted_model_computes_the_same(parallax_check):
    parallax_check.models(SAMPLES / "fault_pair" / "A.onnx", SAMPLES / "fault_pair" / "B.onnx")
