# SPDX-License-Identifier: Apache-2.0
"""The examples in the documentation of generation and of jobs that make models run, and give what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", ["generation", "model_jobs", "process", "_sentences", "_memory", "runners._groups"])
def test_examples_of_docstrings(module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(recurse=True).find(importlib.import_module(f"parallax.{module}"))
    tests = [test for test in found if test.examples]
    assert tests
    for test in tests:
        for example in test.examples:
            example.options.clear()  # they are skipped only where the samples are not there
        output: list[str] = []
        failed = doctest.DocTestRunner(verbose=False).run(test, out=output.append).failed
        assert failed == 0, "".join(output)
