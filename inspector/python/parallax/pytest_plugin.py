# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: fixture ``parallax_check``, reports of failing tests, baselines that are written on demand."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from parallax.errors import Error

__all__ = ["ParallaxCheck", "parallax_check"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("parallax")
    group.addoption("--parallax-report", metavar="DIR", help="write an HTML report of each comparison that fails a test")
    group.addoption(
        "--parallax-save-baselines", action="store_true", help="write the baselines of parallax_check.baseline anew"
    )


class ParallaxCheck:
    """Assertions of parallax.testing that know the test they belong to."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder

    def models(self, a: Any, b: Any, **options: Any) -> None:
        """Fails where model ``b`` gives other values than ``a``: testing.assert_close_models()."""
        from parallax import testing

        testing.assert_close_models(a, b, keep=self._folder, **options)

    def executors(self, model: Any, *executors: str, **options: Any) -> None:
        """Fails where executors (default: reference, cpu) differ: testing.assert_executors_agree()."""
        from parallax import testing

        testing.assert_executors_agree(model, executors or ("reference", "cpu"), keep=self._folder, **options)

    def baseline(
        self, model: Any, path: str | os.PathLike[str] | None = None, *, inputs: Any = None, executor: str = "cpu", **options: Any
    ) -> None:
        """Fails where a model computes other values than its baseline, a dump: testing.assert_baseline().

        ``path``: absolute, or from the folder of the test's file; default baselines/FILE-TEST.plx. With
        ``--parallax-save-baselines`` the dump is written instead, from ``inputs`` or generated ones.
        """
        from parallax import testing

        node = self._request.node
        home = Path(node.path).parent
        where = home / path if path is not None else home / "baselines" / f"{Path(node.path).stem}-{_file_name(node.name)}.plx"
        if self._request.config.getoption("--parallax-save-baselines"):
            testing.save_baseline(model, where, inputs=inputs, executor=executor)
            return
        if not where.exists():
            pytest.fail(f"there is no baseline {where}; pytest --parallax-save-baselines writes it", pytrace=False)
        testing.assert_baseline(model, where, executor=executor, keep=self._folder, **options)


@pytest.fixture
def parallax_check(request: pytest.FixtureRequest, tmp_path: Path) -> ParallaxCheck:
    """Checks of models: ``.models(a, b)``, ``.executors(model)``, ``.baseline(model)``."""
    return ParallaxCheck(request, tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Writes the report of a comparison that failed a test."""
    report = yield
    folder = item.config.getoption("--parallax-report")
    comparison = getattr(call.excinfo.value, "comparison", None) if call.excinfo is not None else None
    if folder and comparison is not None and report.failed:
        path = Path(folder) / f"{_file_name(item.nodeid)}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            comparison.save_html(path)
            report.sections.append(("parallax", f"report: {path}"))
        except Error as error:  # the test's own failure is the one to show
            report.sections.append(("parallax", f"no report: {error}"))
    return report


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")
