# SPDX-License-Identifier: Apache-2.0
"""Language models that several tests read: made once a file, each in a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def _made(kind: str, factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    import generation_cases  # here, so that tests without such a model do not wait for transformers

    folder = factory.mktemp(kind)
    return generation_cases.made_model(kind, folder), folder


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    return _made("llama", tmp_path_factory)


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    return _made("t5", tmp_path_factory)
