# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Parallax: every failure is an ``Error``, and also the built-in exception closest to it."""

from __future__ import annotations

__all__ = [
    "Cancelled", "CorruptFile", "Error", "ExecutionError", "InvalidModel", "IoError", "OutOfMemory", "Unsupported",
    "UsageError",
]


class Error(Exception):
    """A failure, in the words of the program.

    ``kind`` is its class in words (``"usage"``, ``"invalid_model"``, ...), ``code`` the exit code with which the
    program ends on it (2 to 5), ``node`` and ``op`` the node at fault and its operator ("" where none is).

    >>> import parallax
    >>> try:
    ...     parallax.load(b"no model")
    ... except parallax.Error as error:
    ...     print(error.kind, error.code)
    invalid_model 3
    """

    kind: str = "error"
    code: int
    node: str
    op: str
    _default_code: int = 4

    def __init__(self, message: str = "", *, code: int | None = None, node: str = "", op: str = "") -> None:
        super().__init__(message)
        self.code = self._default_code if code is None else code
        self.node = node
        self.op = op

    def __reduce__(self) -> tuple[object, ...]:
        return type(self)._rebuild, (str(self), self.code, self.node, self.op)

    @classmethod
    def _rebuild(cls, message: str, code: int, node: str, op: str) -> Error:
        return cls(message, code=code, node=node, op=op)

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UsageError(Error, ValueError):
    """The request makes no sense: an unknown name, executor or option, an input that does not fit."""

    kind = "usage"
    _default_code = 2


class InvalidModel(Error, ValueError):
    """The model breaks the ONNX specification."""

    kind = "invalid_model"
    _default_code = 3


class Unsupported(Error, NotImplementedError):
    """The model is valid, but something in it is not supported by the executor asked."""

    kind = "unsupported"
    _default_code = 3


class ExecutionError(Error, RuntimeError):
    """A node failed while running: an index out of range, shapes that do not fit, a division of integers by zero."""

    kind = "execution"
    _default_code = 4


class OutOfMemory(Error, MemoryError):
    """An allocation or a memory limit."""

    kind = "out_of_memory"
    _default_code = 4


class CorruptFile(Error, OSError):
    """A dump or a tensor file that breaks its format."""

    kind = "corrupt_file"
    _default_code = 5


class IoError(Error, OSError):
    """The operating system refused to read or write."""

    kind = "io"
    _default_code = 5


class Cancelled(Error, RuntimeError):
    """A long job ended before its end because it was told to."""

    kind = "cancelled"
    _default_code = 4
