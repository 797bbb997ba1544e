"""Translations of ATen operators that torch.onnx lacks or has wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["WRONG_TRANSLATIONS", "custom_translations"]

WRONG_TRANSLATIONS = (
    # Batch normalization in training is written as inference: the running statistics are used, without a word.
    "aten::_native_batch_norm_legit_functional", "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit.no_stats", "aten::native_batch_norm",
)
"""Operators whose translation by torch.onnx computes something else; they are decomposed or refused."""


def custom_translations() -> dict[Any, Callable[..., Any]]:
    """Our translations, as torch.onnx.export's `custom_translation_table` takes them."""
    return {}
