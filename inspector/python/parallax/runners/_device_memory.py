# SPDX-License-Identifier: Apache-2.0
"""Buffers on a CUDA device, by cuda-python or by torch, whichever is installed."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parallax.errors import ExecutionError, OutOfMemory, Unsupported

__all__ = ["CudaPython", "DeviceMemory", "TorchMemory", "device_memory"]


class DeviceMemory(Protocol):
    """Buffers that live as long as this object, and a stream in which a runtime works on them."""

    @property
    def stream(self) -> int:
        """The stream, as a number."""
        ...

    def upload(self, array: NDArray[Any]) -> int:
        """Returns the address of a copy of an array."""
        ...

    def allocate(self, count: int) -> int:
        """Returns the address of that many bytes. Raises OutOfMemory."""
        ...

    def download(self, address: int, array: NDArray[Any]) -> None:
        """Fills an array from a buffer, after all that the stream does."""
        ...


class CudaPython:
    """By ``cuda.bindings.runtime`` of the package cuda-python."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._addresses: list[int] = []
        self.stream = int(self._call("cudaStreamCreate"))

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *results = getattr(self._runtime, name)(*arguments)
        if int(status) == 2:  # cudaErrorMemoryAllocation
            raise OutOfMemory(f"{name} ran out of the device's memory")
        if int(status) != 0:
            raise ExecutionError(f"{name} failed: {status}")
        return results[0] if results else None

    def upload(self, array: NDArray[Any]) -> int:
        address = self.allocate(array.nbytes)
        kind = self._runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._call("cudaMemcpy", address, array.ctypes.data, array.nbytes, kind)
        return address

    def allocate(self, count: int) -> int:
        self._addresses.append(int(self._call("cudaMalloc", max(count, 1))))
        return self._addresses[-1]

    def download(self, address: int, array: NDArray[Any]) -> None:
        self._call("cudaStreamSynchronize", self.stream)
        kind = self._runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self._call("cudaMemcpy", array.ctypes.data, address, array.nbytes, kind)

    def __del__(self) -> None:
        for address in self._addresses:
            self._runtime.cudaFree(address)
        if hasattr(self, "stream"):
            self._runtime.cudaStreamDestroy(self.stream)


class TorchMemory:
    """By tensors of torch; its current stream."""

    def __init__(self, torch: Any, device: str = "cuda") -> None:
        self._torch = torch
        self._device = device
        self._buffers: dict[int, Any] = {}
        self.stream = int(torch.cuda.current_stream().cuda_stream) if device == "cuda" else 0

    def upload(self, array: NDArray[Any]) -> int:
        return self._keep(self._torch.from_numpy(_bytes_of(array).copy()).to(self._device))

    def allocate(self, count: int) -> int:
        try:
            return self._keep(self._torch.empty(max(count, 1), dtype=self._torch.uint8, device=self._device))
        except RuntimeError as error:
            raise OutOfMemory(str(error)) from error

    def download(self, address: int, array: NDArray[Any]) -> None:
        _bytes_of(array)[:] = self._buffers[address][: array.nbytes].cpu().numpy()

    def _keep(self, tensor: Any) -> int:
        address = int(tensor.data_ptr())
        self._buffers[address] = tensor
        return address


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The array's memory, which is contiguous, as bytes."""
    return array.reshape(-1).view(np.uint8)


def device_memory() -> DeviceMemory:
    """Buffers by cuda-python, else by torch. Raises Unsupported where neither is installed, or torch sees no device."""
    try:
        return CudaPython(importlib.import_module("cuda.bindings.runtime"))
    except ImportError:
        pass
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise Unsupported("neither cuda-python nor torch is installed; pip install cuda-python gives buffers on the GPU") from error
    if not torch.cuda.is_available():
        raise Unsupported("torch finds no CUDA device; pip install cuda-python, or a torch with CUDA, gives buffers on the GPU")
    return TorchMemory(torch)
