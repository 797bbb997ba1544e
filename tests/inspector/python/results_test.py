# SPDX-License-Identifier: Apache-2.0
"""Results of generation and of jobs that make models, as an interpreter and a notebook show them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import parallax
import pytest

SAMPLES = Path(__file__).parents[3] / "samples"
CNN = str(SAMPLES / "cnn" / "model.onnx")
DECODER, FIRST = (str(SAMPLES / "decoder" / f"{name}.textproto") for name in ("model", "first_step"))
PROMPTS = [[5, 17, 4], [3]]


def line_of(result: Any) -> str:
    line = repr(result)
    assert "\n" not in line and "object at 0x" not in line and len(line) < 400
    return line


def test_a_generation() -> None:
    generator = parallax.Generator(DECODER)
    one = generator.generate([[5, 17, 4]], max_new_tokens=1)
    assert line_of(one).startswith("<parallax.Generation of 1 sequence: 1 new token, ended by length, ")
    beams = generator.generate(PROMPTS, max_new_tokens=4, num_beams=2, num_return_sequences=2)
    assert re.search(r"of 4 sequences: 4 new tokens each, ended by length, \d+ tokens/s, best score -\d", line_of(beams))
    assert beams.stopped == ["length"] * 4 and len(beams.steps) == 4
    with pytest.raises(parallax.UsageError, match="no values that were compared"):
        parallax.plot.errors(beams)
    page = beams._repr_html_()
    assert page.count("<tr>") == 5 and "score" in page and "<iframe" not in page


def test_a_generation_that_is_not_as_expected() -> None:
    generation = parallax.generate(DECODER, [[5, 17, 4]], max_new_tokens=3, expect=[[11, 6, 18]])
    assert "tokens differ from step 2 of row 0: 18 expected, 19 generated" in line_of(generation)
    assert generation.first_token_apart is not None and not generation.passed


def test_two_sides() -> None:
    generation = parallax.generate(DECODER, PROMPTS, executor=("reference", "cpu"), max_new_tokens=3)
    pattern = r"pass: 0 of \d+ values diverged between A \(reference\) and B \(cpu\); no token differs>$"
    assert re.search(pattern, line_of(generation))
    assert generation.first_token_apart is None
    assert {"severity", "worst", "near_tie"} <= set(generation.steps[0])
    assert parallax.plot.errors(generation) is not None if has_package("matplotlib") else True
    page = generation._repr_html_()
    assert "least margin" in page and page.count("<iframe") == 1
    assert page.count("<tr>") == (1 + 2) + (1 + 3)  # the heads, two sequences, three steps; the comparison is in the frame


def test_two_sides_that_differ(tmp_path: Path) -> None:
    text = Path(DECODER).read_text()
    faulty = text.replace('input: "l0.scores" input: "scale_by"', 'input: "l0.scores" input: "wrong_scale_by"')
    assert faulty != text
    (tmp_path / "faulty.textproto").write_text(faulty)
    generation = parallax.generate(DECODER, PROMPTS, against=tmp_path / "faulty.textproto", max_new_tokens=6)
    assert not generation.passed and generation.comparison is not None
    assert "values diverged between A (cpu) and B (cpu)" in line_of(generation)
    assert generation.comparison.causes[0].node == "l0.scale"
    first = generation.first_token_apart
    assert first is not None and "tokens differ from step" in line_of(generation)
    table = generation.to_pandas() if has_package("pandas") else None
    assert table is None or len(table) == len(generation.steps)


def has_package(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def test_a_conversion(tmp_path: Path) -> None:
    image = {"image": np.linspace(-1, 1, 3072, dtype=np.float32).reshape(1, 3, 32, 32)}
    conversion = parallax.convert(CNN, verify=image)
    pattern = r"to float16: 35 nodes converted, 0 in float32, 0 casts, weights .* -> .*; in memory, verification pass>"
    assert re.search(pattern, line_of(conversion))
    assert conversion.output is None and conversion.verification is not None
    assert str(tmp_path.parent.parent) not in str(conversion) and "the model in memory: 35 nodes" in str(conversion)
    assert conversion.model.path == "model in memory"
    written = parallax.convert(CNN, "bfloat16", tmp_path / "half.onnx")
    assert written.output == tmp_path / "half.onnx" and "half.onnx', not verified" in line_of(written)
    with pytest.raises(parallax.UsageError, match="foo"):
        parallax.convert(CNN, verify={"foo": np.zeros(3)})


def test_merged_decoders() -> None:
    merged = parallax.merge_decoders(FIRST, DECODER, verify=True)
    pattern = r"by 'use_cache_branch': 30 weights shared, .* and .* -> .*; in memory, verification pass>"
    assert re.search(pattern, line_of(merged))
    assert merged.output is None and "/model.onnx is written" not in " ".join(merged.notes)
    assert merged.condition in [value.name for value in merged.model.inputs]


def test_an_audit(tmp_path: Path) -> None:
    audit = parallax.audit_fp16(DECODER, [None, None])
    assert re.search(r"to float16 on 2 input sets: 5 must, .*; 5 nodes to keep, relative error 0\.\d+ with them: pass>",
                     line_of(audit))
    page = audit._repr_html_()
    assert page.startswith("<iframe") and "l0.masked" in page and 'sandbox="allow-scripts"' in page
    assert not has_package("pandas") or len(audit.to_pandas()) == len(audit.nodes)
    audit.save_html(tmp_path / "audit.html")
    assert "l0.masked" in (tmp_path / "audit.html").read_text()
