# SPDX-License-Identifier: Apache-2.0
"""The private names of torch that the conversion uses, all of them.

`SUPPORTED_TORCH` is the range of versions in which they were found to do what is expected of them here; what they do
in the installed one, `parallax.torch.check_torch_contract()` tells. Where a name is missing, `exporter()` is None and
the public `torch.onnx.export` does the work, which is slower; a warning says so once.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

SUPPORTED_TORCH = ("2.15", "2.15")
"""The first and the last version of torch (both included) that passed the contract test."""


@dataclass(frozen=True)
class Exporter:
    """Private functions of torch.onnx that this file calls."""

    registry_class: Any
    translate: Callable[..., Any]
    promoter: Any
    promotion_rule: Callable[..., Any]
    promotion_table: Any
    remove_assertions: Callable[..., torch.fx.GraphModule]
    dispatch: Callable[..., Any]
    implemented: Callable[..., Any]
    friendly_table: Callable[..., dict[Any, Any]]
    convert_version: Callable[..., Any]


@lru_cache(maxsize=1)
def exporter() -> Exporter | None:
    try:
        from torch.onnx._internal._lazy_import import onnxscript_apis  # type: ignore[attr-defined]
        from torch.onnx._internal.exporter import _core, _decomp, _dispatching, _fx_passes, _registration
        from torch.onnx._internal.fx.passes import type_promotion

        return Exporter(
            _registration.ONNXRegistry, _core._exported_program_to_onnx_program,
            type_promotion._TypePromotionInterpreter, type_promotion.get_type_promotion_rule,
            type_promotion.TypePromotionTable(), _fx_passes.remove_assertion_nodes, _dispatching.dispatch,
            _decomp.get_onnx_implemented_overloads, _decomp.create_onnx_friendly_decomposition_table,
            onnxscript_apis.convert_version,
        )
    except (ImportError, AttributeError) as error:
        warnings.warn(f"torch {torch.__version__} has not the private names that the fast conversion to ONNX needs "
                      f"({error}); torch.onnx.export is used, which takes two to three times as long. "
                      f"Versions {SUPPORTED_TORCH[0]} to {SUPPORTED_TORCH[1]} have them.", stacklevel=4)
        return None


@lru_cache(maxsize=4)
def registry(opset: int) -> Any:
    """The registry of translations, built once for an opset: the exporter's, less the wrong ones, plus ours."""
    from ._operators import WRONG_TRANSLATIONS, complex_translations, custom_translations

    found = exporter()
    assert found is not None
    with quiet_logging():
        translations = found.registry_class.from_torchlib(opset_version=opset)
        for operator in WRONG_TRANSLATIONS:
            translations.functions.pop(operator, None)
        for target, function in custom_translations().items():
            translations.register_op(target, function)
        for target, function in complex_translations().items():
            translations.register_op(target, function, is_complex=True)
    return translations


def exporter_table(opset: int = 20) -> dict[Any, Callable[..., Any]]:
    """The decompositions that torch.onnx applies: of every operator that has no translation."""
    found = exporter()
    if found is None:
        return dict(torch.export.default_decompositions().items())  # type: ignore[no-untyped-call]
    return found.friendly_table(set(found.implemented(registry(opset))))


def core_table() -> dict[Any, Callable[..., Any]]:
    """torch's decompositions into its core operators."""
    from torch._decomp import core_aten_decompositions

    return dict(core_aten_decompositions().items())  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def outside_of_tracing() -> Iterator[None]:
    """No fake or proxy mode of the tracer around us is seen by the translator's own tensors."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch.no_grad():
        yield


def zero_and_one_as_other_sizes() -> contextlib.AbstractContextManager[None]:
    """Sizes that were free while tracing are not taken for 0 or 1 by what the translator asks of them."""
    from torch.fx.experimental import _config

    patch: Any = _config.patch  # type: ignore[attr-defined]
    patched: contextlib.AbstractContextManager[None] = patch(backed_size_oblivious=True)
    return patched


@contextlib.contextmanager
def quiet_logging() -> Iterator[None]:
    """The exporter warns of what is meant here: missing torchvision, constants that stay outputs."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def graph_modules(gm: torch.fx.GraphModule) -> list[torch.fx.GraphModule]:
    """The graph and those of its control-flow operations."""
    return [module for module in gm.modules() if isinstance(module, torch.fx.GraphModule)]


def promote_types(found: Exporter, gm: torch.fx.GraphModule) -> None:
    """Casts where operands of different types meet: torch.onnx's pass, which here runs new and changed nodes alone."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.traceback import preserve_node_meta

    class Promoter(found.promoter):  # type: ignore[misc, name-defined]
        def run_node(self, n: torch.fx.Node) -> Any:
            with self._set_current_node(n):
                rule = found.promotion_rule(n, self.type_promotion_table)
                if rule:
                    self._maybe_promote_node(n, rule)
            return n.meta.get("val")

    with fake_mode_of(gm), enable_python_dispatcher(), preserve_node_meta():
        Promoter(gm, found.promotion_table).run()


def decompose(gm: torch.fx.GraphModule, table: Mapping[Any, Callable[..., Any]]) -> torch.fx.GraphModule:
    """The graph traced again on its own fake inputs with a table of decompositions."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.traceback import preserve_node_meta

    values = [n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"]
    mode = fake_mode_of(gm)

    def run(*arguments: Any) -> Any:
        with preserve_node_meta():
            return torch.fx.Interpreter(gm).run(*arguments)

    with mode, enable_python_dispatcher():
        traced = make_fx(run, decomposition_table=dict(table), _allow_non_fake_inputs=True)(*values)
    given = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for old, new in zip(given, (n for n in traced.graph.nodes if n.op == "placeholder")):
        new.meta.setdefault("val", old.meta.get("val"))
    return traced


def whole_call(signature: torch.export.ExportGraphSignature) -> torch.export.ModuleCallEntry:
    """The entry of an ExportedProgram's only call: flat tuples of inputs and outputs."""
    from torch.utils import _pytree

    inputs = [s.arg for s in signature.input_specs if s.kind == torch.export.graph_signature.InputKind.USER_INPUT]
    outputs = [s.arg for s in signature.output_specs]
    return torch.export.ModuleCallEntry("", torch.export.ModuleCallSignature(
        inputs=inputs, outputs=outputs, in_spec=_pytree.tree_structure((tuple(inputs), {})),
        out_spec=_pytree.tree_structure(tuple(outputs))))


def fake_mode_of(gm: torch.fx.GraphModule) -> Any:
    """The fake mode in which the graph was traced; a new one where it has no tensors."""
    from torch._guards import detect_fake_mode
    from torch._subclasses.fake_tensor import FakeTensorMode

    values = [n.meta.get("val") for n in gm.graph.nodes]
    return detect_fake_mode([v for v in values if isinstance(v, torch.Tensor)]) or FakeTensorMode()


def expression(size: Any) -> Any:
    """The sympy expression of an integer, float or bool that may be symbolic; a plain number stays as it is."""
    if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return size.node.expr
    return size
