# SPDX-License-Identifier: Apache-2.0
"""Parallax for torch: torch.compile backends, capture of modules, checks of conversions.

Importing this package registers the backends "parallax" and "parallax_debug" of torch.compile. Names are loaded when
they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parallax._lazy import lazy_names

if TYPE_CHECKING:
    from ._capture import Capture, CaptureWarning, append, capture, restore, save_onnx
    from .conversion import ConversionCause, Explanation, explain_conversion, export_capture
    from ._contract import check_torch_contract, supported_torch
    from ._decompositions import decompositions, filter_decomposition_table, get_decomposition_table
    from ._fx import ConversionError, tracing_context
    from .backends import Backend, backend, fx_compiler, parallax
    from .debug import Divergence, DivergenceError, DivergenceWarning, debug_backend, parallax_debug
    from .storage import CompiledGraph, Storage

# Name -> the module that defines it. No module here has the name of a function: its import would hide the function.
_DEFINED_IN = {
    "Backend": "backends", "backend": "backends", "fx_compiler": "backends", "parallax": "backends",
    "debug_backend": "debug", "parallax_debug": "debug",
    "Divergence": "debug", "DivergenceError": "debug", "DivergenceWarning": "debug",
    "Storage": "storage", "CompiledGraph": "storage",
    "capture": "_capture", "append": "_capture", "restore": "_capture", "save_onnx": "_capture", "Capture": "_capture",
    "CaptureWarning": "_capture",
    "export_capture": "conversion", "explain_conversion": "conversion", "Explanation": "conversion",
    "ConversionCause": "conversion",
    "decompositions": "_decompositions", "get_decomposition_table": "_decompositions",
    "filter_decomposition_table": "_decompositions", "tracing_context": "_fx", "ConversionError": "_fx",
    "check_torch_contract": "_contract", "supported_torch": "_contract",
}

__all__ = [
    "Backend", "Capture", "CaptureWarning", "CompiledGraph", "ConversionCause", "ConversionError", "Divergence",
    "DivergenceError", "DivergenceWarning", "Explanation", "Storage", "append", "backend", "capture",
    "check_torch_contract", "debug_backend", "decompositions", "explain_conversion", "export_capture",
    "filter_decomposition_table", "fx_compiler", "get_decomposition_table", "parallax", "parallax_debug", "restore",
    "save_onnx", "supported_torch", "tracing_context",
]


__getattr__, __dir__ = lazy_names(__name__, _DEFINED_IN, __all__)


def _register() -> None:
    """Makes the backends known to torch.compile by name where the package is not installed.

    Of an installed package torch finds the entry points by itself, and would refuse a second registration.
    """
    from importlib.metadata import entry_points

    if "parallax" in entry_points(group="torch_dynamo_backends").names:
        return
    from torch._dynamo.backends.registry import register_backend

    def compile_fast(gm: Any, example_inputs: Any, **options: Any) -> Any:
        from .backends import parallax

        return parallax(gm, example_inputs, **options)

    def compile_compared(gm: Any, example_inputs: Any, **options: Any) -> Any:
        from .debug import parallax_debug

        return parallax_debug(gm, example_inputs, **options)

    register_backend(compile_fast, name="parallax")
    register_backend(compile_compared, name="parallax_debug")


_register()
