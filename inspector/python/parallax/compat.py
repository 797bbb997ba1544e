# SPDX-License-Identifier: Apache-2.0
"""The names of the example scripts of experimental-experiment, onnx-array-api and onnx-diagnostic, over Parallax.

A script runs after its import lines are changed to `from parallax.compat import ...`. The functions take the parameters
that those scripts use; others are errors.

Sets of patterns: "default" is `standard`, "default+onnxruntime" is `standard+microsoft`,
"default+onnxruntime+experimental" is `standard+microsoft+own`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parallax.errors import UsageError

if TYPE_CHECKING:
    from parallax._compat_models import convert_fp16, get_keep_fp32_nodes, onnx_generate
    from parallax.helpers import pretty_onnx, string_type
    from parallax.torch._decompositions import filter_decomposition_table, get_decomposition_table
    from parallax.torch.steal import create_input_tensors_from_onnx_model, is_stealing, steal_append, steal_forward

__all__ = [
    "ExportOptions", "OptimizationOptions", "convert_fp16", "create_input_tensors_from_onnx_model",
    "filter_decomposition_table", "get_decomposition_table", "get_keep_fp32_nodes", "get_parsed_args", "is_stealing",
    "onnx_custom_backend", "onnx_debug_backend", "onnx_generate",
    "plot_dot", "pretty_onnx", "steal_append", "steal_forward", "string_type",
]

# Names that other modules have under the same name or another one.
_DEFINED_IN = {
    "pretty_onnx": ("parallax.helpers", "pretty_onnx"), "string_type": ("parallax.helpers", "string_type"),
    "get_decomposition_table": ("parallax.torch", "get_decomposition_table"),
    "filter_decomposition_table": ("parallax.torch", "filter_decomposition_table"),
    "steal_forward": ("parallax.torch.steal", "steal_forward"),
    "steal_append": ("parallax.torch.steal", "steal_append"),
    "is_stealing": ("parallax.torch.steal", "is_stealing"),
    "create_input_tensors_from_onnx_model": ("parallax.torch.steal", "create_input_tensors_from_onnx_model"),
    "onnx_generate": ("parallax._compat_models", "onnx_generate"),
    "get_keep_fp32_nodes": ("parallax._compat_models", "get_keep_fp32_nodes"),
    "convert_fp16": ("parallax._compat_models", "convert_fp16"),
}

_PATTERN_SETS = {
    "": "none",
    "default": "standard",
    "default+onnxruntime": "standard+microsoft",
    "onnxruntime": "standard+microsoft",
    "default+onnxruntime+experimental": "standard+microsoft+own",
}


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'parallax.compat' has no attribute {name!r}")
    module, attribute = _DEFINED_IN[name]
    return getattr(importlib.import_module(module), attribute)


@dataclass
class OptimizationOptions:
    """How a converted model is optimized.

    `patterns` is a set (see above), a list of Parallax's patterns by name, or None for none; `constant_folding=False`
    leaves out that one. `processor` names where the model is meant to run; the inputs of the graph decide.
    """

    remove_unused: bool = True
    constant_folding: bool = True
    patterns: str | Sequence[str] | None = "default"
    verbose: int = 0
    processor: str = "CPU"

    def pattern_set(self) -> str:
        """The patterns as `parallax.torch.backend` takes them. Raises UsageError for an unknown set."""
        if self.patterns is None:
            return "none"
        chosen = _set_named(self.patterns) if isinstance(self.patterns, str) else ",".join(self.patterns)
        dropped = [] if self.constant_folding else ["constant-folding"]
        dropped += [] if self.remove_unused else ["dead"]
        return ",".join([chosen or "none", *(f"-{name}" for name in dropped)])


@dataclass
class ExportOptions:
    """How a graph is converted: `decomposition_table` is a table, the name of one ("default", "core"), or None."""

    decomposition_table: str | Mapping[Any, Callable[..., Any]] | None = None


def _set_named(name: str) -> str:
    if name not in _PATTERN_SETS:
        known = ", ".join(repr(each) for each in _PATTERN_SETS if each)
        raise UsageError(f"there is no set of patterns {name!r}; it must be one of {known}")
    return _PATTERN_SETS[name]


def onnx_custom_backend(
    graph_module: Any, args: Sequence[Any], target_opset: int | None = None, *, verbose: int | tuple[int, int] = 0,
    dump_prefix: str | None = None, providers: Sequence[str] | None = None,
    storage: MutableMapping[Any, Any] | None = None, options: OptimizationOptions | None = None,
    export_options: ExportOptions | None = None, optimize: bool = True,
    enable_pattern: str | Sequence[str] | None = None, disable_pattern: str | Sequence[str] | None = None,
    pre_ort_model_transforms: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph of torch.compile or of aot_autograd: converts it to ONNX, fuses, runs it on the fast executor.

    `storage` (a dict) gets under "instance" one entry a graph, with "onnx", "graph_module", "inputs", "outputs" and
    "providers". `providers` names ONNX Runtime's execution providers: with CUDA's the executor is `cuda`; without, the
    device of the inputs decides. `pre_ort_model_transforms` are functions from ModelProto to ModelProto.

    >>> import torch
    >>> from parallax.compat import onnx_custom_backend
    >>> backend = lambda *a, **k: onnx_custom_backend(*a, target_opset=18, **k)
    >>> net = torch.compile(torch.nn.Linear(4, 2), backend=backend)
    >>> net(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    """
    chosen = _patterns(options, optimize, enable_pattern, disable_pattern)
    return _compile(graph_module, args, target_opset, verbose, dump_prefix, storage, export_options,
                    pre_ort_model_transforms, executor=_executor_for(args, providers), patterns=chosen)


def onnx_debug_backend(
    graph_module: Any, args: Sequence[Any], target_opset: int | None = None, *, verbose: int | tuple[int, int] = 0,
    dump_prefix: str | None = None, storage: MutableMapping[Any, Any] | None = None,
    export_options: ExportOptions | None = None,
    pre_ort_model_transforms: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] | None = None,
) -> Callable[..., Any]:
    """A session on the reference interpreter, which is slow and runs the graph as it is.

    `verbose=(0, 1)` prints each intermediate value: name, type, shape, extremes.
    """
    shown = verbose[1] if isinstance(verbose, tuple) else 0
    return _compile(graph_module, args, target_opset, verbose, dump_prefix, storage, export_options,
                    pre_ort_model_transforms, executor="reference", patterns="none",
                    observer=_Printer() if shown else None)


def _compile(
    graph_module: Any, args: Sequence[Any], target_opset: int | None, verbose: int | tuple[int, int],
    dump_prefix: str | None, storage: MutableMapping[Any, Any] | None, export_options: ExportOptions | None,
    transforms: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] | None, **more: Any,
) -> Callable[..., Any]:
    from parallax.torch import fx_compiler

    table = export_options.decomposition_table if export_options is not None else None
    given = [] if transforms is None else [transforms] if callable(transforms) else list(transforms)
    return fx_compiler(
        graph_module, args, opset=20 if target_opset is None else target_opset, dump_prefix=dump_prefix,
        storage=storage, decompositions="default" if table is None else table,
        verbose=verbose[0] if isinstance(verbose, tuple) else verbose,
        transforms=[_on_protos(transform) for transform in given], **more)


def _on_protos(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda model: transform(model.to_onnx())


def _patterns(
    options: OptimizationOptions | None, optimize: bool, enabled: str | Sequence[str] | None,
    disabled: str | Sequence[str] | None,
) -> str:
    if not optimize:
        return "none"
    if options is None:
        options = OptimizationOptions(patterns="default" if enabled is None else enabled)
    names = [disabled] if isinstance(disabled, str) else list(disabled or ())
    return ",".join([options.pattern_set(), *(f"-{name}" for name in names)])


def _executor_for(args: Sequence[Any], providers: Sequence[str] | None) -> str:
    if providers is not None:
        return "cuda" if any(name.startswith("CUDA") for name in providers) else "cpu"
    return "cuda" if any(getattr(getattr(each, "device", None), "type", "") == "cuda" for each in args) else "cpu"


class _Printer:
    """An observer that prints a line a value."""

    def observe(self, path: str, value: Any) -> None:
        from parallax.helpers import string_type

        print(f"+ {path}: {string_type(value, with_shape=True, with_min_max=True)}")


def plot_dot(model: Any, ax: Any = None) -> Any:
    """Draws a model (ModelProto, path or Model) as a graph; returns matplotlib's axes."""
    from parallax import plot

    return plot.dot(model, ax=ax)


def get_parsed_args(
    name: str, *, description: str | None = None, epilog: str | None = None, expose: str | None = None,
    new_args: Sequence[str] | None = None, number: int = 10, repeat: int = 10, warmup: int = 5, sleep: float = 0.1,
    tries: int = 2, **options: tuple[int | float | str, str],
) -> argparse.Namespace:
    """The command line of an example script: an option for each keyword `name=(default, help)`.

    The options `--number`, `--repeat`, `--warmup`, `--sleep` and `--tries` are there where `expose`, names separated by
    commas, has them or is "". `new_args` stands for `sys.argv[1:]`. Texts that are numbers become numbers.

    >>> from parallax.compat import get_parsed_args
    >>> get_parsed_args("script", config=("medium", "size"), expose="config", new_args=["--config", "large"]).config
    'large'
    """
    parser = argparse.ArgumentParser(prog=name, description=description, epilog=epilog)
    common = {"number": number, "repeat": repeat, "warmup": warmup, "sleep": sleep, "tries": tries}
    exposed = set(common) if expose == "" else set((expose or "").split(","))
    for option, default in common.items():
        if option in exposed and option not in options:
            parser.add_argument(f"--{option}", type=type(default), default=default, help=f"default: {default}")
    for option, (value, text) in options.items():
        parser.add_argument(f"--{option}", type=type(value), default=value, help=f"{text} (default: {value})")
    parsed = parser.parse_args(new_args)
    for option, value in vars(parsed).items():
        if isinstance(value, str):
            setattr(parsed, option, _number_of(value))
    return parsed


def _number_of(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
