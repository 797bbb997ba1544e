# SPDX-License-Identifier: Apache-2.0
"""Short texts about objects and models: ``string_type`` and ``pretty_onnx``."""

from __future__ import annotations

from typing import Any

from parallax._pretty import pretty_onnx
from parallax._string_type import Notation

__all__ = ["pretty_onnx", "string_type"]


def string_type(
    obj: Any, with_shape: bool = False, with_min_max: bool = False, with_device: bool = False, limit: int = 20
) -> str:
    """Returns what an object is in one line: element types, shapes, containers, on demand the range of values.

    ``T1s2x3`` is a torch tensor of TensorProto type 1 (float) with shape 2x3, ``A`` a numpy array, ``F`` torch's fake
    tensor, ``P`` a Tensor of Parallax; without ``with_shape`` the rank stands in its place (``T1r2``). ``with_min_max``
    adds ``[min,max:Amean]`` and the values of numbers, ``with_device`` puts ``C`` or ``G`` in front. Lists and tuples
    of ``limit`` and more elements show the first. Never raises for a class that it does not know: ``Name(...)``.

    >>> import numpy as np
    >>> from parallax.helpers import string_type
    >>> string_type((np.zeros((2, 3), np.float32), [1, "a"], {"x": None}), with_shape=True)
    '(A1s2x3,#2[int,str],dict(x:None))'
    >>> string_type(np.arange(3), with_shape=True, with_min_max=True)
    'A7s3[0,2:A1.0]'
    """
    return Notation(with_shape, with_min_max, with_device, limit).of(obj)
