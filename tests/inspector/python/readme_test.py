# SPDX-License-Identifier: Apache-2.0
"""The session of the package's README runs as it stands there."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_session_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "inspector" / "python" / "README.md").read_text()
    session = text.partition("```python\n")[2].partition("```")[0]
    test = doctest.DocTestParser().get_doctest(session, {}, "README.md", "README.md", 0)
    assert len(test.examples) == 11
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0
