# SPDX-License-Identifier: Apache-2.0
"""``Tensor``: a tensor of any ONNX type, shared with the array that it was made of."""

from parallax._core import Tensor

__all__ = ["Tensor"]
