# SPDX-License-Identifier: Apache-2.0
"""The part of cuda-python that the runner of TensorRT uses, on host memory; 8 GiB are more than it has."""

from __future__ import annotations

import ctypes
import enum
from typing import Any

_held: dict[int, Any] = {}

cudaMemcpyKind = enum.IntEnum("cudaMemcpyKind", {"cudaMemcpyHostToDevice": 1, "cudaMemcpyDeviceToHost": 2})


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorMemoryAllocation = 2


def cudaMalloc(count: int) -> tuple[int, int]:
    if count >= 8 << 30:
        return cudaError_t.cudaErrorMemoryAllocation, 0
    buffer = (ctypes.c_uint8 * count)()
    _held[ctypes.addressof(buffer)] = buffer
    return cudaError_t.cudaSuccess, ctypes.addressof(buffer)


def cudaFree(address: int) -> tuple[int]:
    del _held[address]
    return (cudaError_t.cudaSuccess,)


def cudaMemcpy(target: int, source: int, count: int, kind: int) -> tuple[int]:
    on_device = target if kind == cudaMemcpyKind.cudaMemcpyHostToDevice else source
    assert on_device in _held, "no buffer of the device"
    ctypes.memmove(target, source, count)
    return (cudaError_t.cudaSuccess,)


def cudaStreamCreate() -> tuple[int, int]:
    return cudaError_t.cudaSuccess, 7


def cudaStreamSynchronize(stream: int) -> tuple[int]:
    assert stream == 7
    return (cudaError_t.cudaSuccess,)


def cudaStreamDestroy(stream: int) -> tuple[int]:
    return (cudaError_t.cudaSuccess,)
