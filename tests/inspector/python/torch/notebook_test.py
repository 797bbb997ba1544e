# SPDX-License-Identifier: Apache-2.0
"""The notebook of samples/python runs from top to bottom and prints what its committed outputs show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[4] / "samples" / "python" / "from_wrong_export_to_line.ipynb"


def printed(notebook: Any) -> list[str]:
    """The output of each code cell."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout") for cell in cells]


def test_it_leads_from_a_wrong_export_to_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    committed = nbformat.read(NOTEBOOK, as_version=4)
    executed = nbformat.read(NOTEBOOK, as_version=4)
    (tmp_path / "run").mkdir()
    NotebookClient(executed, timeout=240, resources={"metadata": {"path": str(tmp_path / "run")}}).execute()
    assert printed(executed) == printed(committed)
    text = "".join(printed(executed))
    assert "aten.softmax.int, attention.py:17" in text
    assert "weights = F.softmax(scores, dim=-1)" in text


def test_its_committed_outputs_are_small() -> None:
    assert os.path.getsize(NOTEBOOK) < 300_000
    committed = nbformat.read(NOTEBOOK, as_version=4)
    pictures = [output for cell in committed.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    assert len(pictures) == 2
