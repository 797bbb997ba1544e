# SPDX-License-Identifier: Apache-2.0
"""The notation of ``string_type``: what an object is, in one short line."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from parallax._core import Tensor

# Numbers of TensorProto.DataType by the names of numpy's, ml_dtypes' and torch's element types.
_NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8_e4m3fn": 17, "float8e4m3fn": 17, "float8_e4m3fnuz": 18, "float8e4m3fnuz": 18, "float8_e5m2": 19,
    "float8e5m2": 19, "float8_e5m2fnuz": 20, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4_e2m1fn": 23,
    "float4e2m1": 23, "float4_e2m1fn_x2": 23, "float8_e8m0fnu": 24, "float8e8m0": 24, "uint2": 25, "int2": 26,
}
_CACHES = ("DynamicCache", "SlidingWindowCache", "StaticCache", "HybridCache")


class Notation(NamedTuple):
    """The text shown of a value besides its type."""

    shape: bool = False
    min_max: bool = False
    device: bool = False
    limit: int = 20

    def of(self, obj: Any) -> str:
        """The notation of an object."""
        if obj is None:
            return "None"
        for kind, describe in _BUILTINS:
            if isinstance(obj, kind):
                return describe(obj, self)
        torch = sys.modules.get("torch")
        described = _of_torch(obj, self, torch) if torch is not None else None
        if described is not None:
            return described
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            return _dataclass(obj, self)
        by_name = _BY_NAME.get(type(obj).__name__)
        if by_name is not None:
            return by_name(obj, self)
        return _other(obj, self, torch)


def _joined(items: Iterable[Any], notation: Notation) -> str:
    return ",".join(notation.of(item) for item in items)


def _are_numbers(items: Iterable[Any]) -> bool:
    return all(isinstance(item, (int, float, bool)) for item in items)


def _range_of(items: Any) -> tuple[Any, Any, float]:
    return min(items), max(items), sum(float(item) for item in items) / len(items)


def _tuple(obj: tuple[Any, ...], notation: Notation) -> str:
    if len(obj) == 1:
        return f"({notation.of(obj[0])},)"
    if len(obj) < notation.limit:
        return f"({_joined(obj, notation)})"
    text = f"#{len(obj)}({notation.of(obj[0])},...)"
    if notation.min_max and _are_numbers(obj):
        low, high, mean = _range_of(obj)
        text += f"[{low},{high}:A[{mean}]]"
    return text


def _list(obj: list[Any], notation: Notation) -> str:
    if len(obj) < notation.limit:
        return f"#{len(obj)}[{_joined(obj, notation)}]"
    text = f"#{len(obj)}[{notation.of(obj[0])},...]"
    if notation.min_max and _are_numbers(obj):
        low, high, mean = _range_of(obj)
        text += f"[{low},{high}:{mean}]"
    return text


def _set(obj: set[Any] | frozenset[Any], notation: Notation) -> str:
    if len(obj) < 10:
        return f"{{{_joined(obj, notation)}}}"
    if notation.min_max and _are_numbers(obj):
        low, high, mean = _range_of(obj)
        return f"{{...}}#{len(obj)}[{low},{high}:A{mean}]"
    return f"{{...}}#{len(obj)}" if notation.shape else "{...}"


def _dict(obj: dict[Any, Any], notation: Notation) -> str:
    if not obj:
        return "{}"
    has_numbers = all(isinstance(key, int) for key in obj)
    if has_numbers and all(_is_dynamic_dim(value) for value in obj.values()):
        rows = (f"{key}:DYN({value})" if isinstance(value, str) else f"{key}:{notation.of(value)}"
                for key, value in obj.items())
        return f"{{{','.join(rows)}}}"
    text = ",".join(f"{key}:{notation.of(value)}" for key, value in obj.items())
    return f"{{{text}}}" if has_numbers else f"dict({text})"


def _is_dynamic_dim(value: Any) -> bool:
    return isinstance(value, str) or type(value).__name__ in ("Dim", "_Dim", "_DerivedDim", "_DimHint")


def _number_of(dtype: Any) -> int:
    name = str(dtype).removeprefix("torch.")
    if getattr(dtype, "kind", "") in ("U", "S", "O", "T"):
        name = "string"
    if name not in _NUMBERS:
        raise NotImplementedError(f"{dtype} has no number among ONNX's element types")
    return _NUMBERS[name]


def _shape_text(shape: Iterable[Any], notation: Notation) -> str:
    dims = tuple(shape)
    return "s" + "x".join(map(str, dims)) if notation.shape else f"r{len(dims)}"


def _array(obj: Any, notation: Notation, letter: str = "A") -> str:
    text = f"{letter}{_number_of(obj.dtype)}{_shape_text(obj.shape, notation)}"
    if not notation.min_max or obj.dtype.kind in "USO":
        return text
    if obj.ndim == 0:
        return f"{text}={obj}"
    if obj.size == 0:
        return f"{text}[empty]"
    flat = obj.ravel()
    is_nan = np.isnan(flat) if obj.dtype.kind in "fcV" else np.zeros(flat.shape, bool)
    nans = int(is_nan.sum())
    if nans == flat.size:
        return f"{text}[N{nans}nans]"
    kept = flat[~is_nan] if nans else flat
    suffix = f"N{nans}nans" if nans else ""
    if obj.dtype.kind == "c":
        kept = np.abs(kept)
    return f"{text}[{kept.min()},{kept.max()}:A{kept.astype(float).mean()}{suffix}]"


def _own_tensor(obj: Tensor, notation: Notation) -> str:
    prefix = ("C" if obj.device == "cpu" else "G") if notation.device else ""
    if notation.min_max and obj.device == "cpu" and obj.dtype != "string":
        array = obj.unpack()
        shown = _array(array, notation, "P")
        return f"{prefix}P{_NUMBERS[obj.dtype]}{shown[1 + len(str(_number_of(array.dtype))):]}"
    return f"{prefix}P{_NUMBERS[obj.dtype]}{_shape_text(obj.shape, notation)}"


def _scalar(obj: Any, notation: Notation) -> str:
    kind = bool if isinstance(obj, bool) else int if isinstance(obj, int) else float
    return f"{kind.__name__}={obj}" if notation.min_max else kind.__name__


def _dataclass(obj: Any, notation: Notation) -> str:
    values = {field.name: getattr(obj, field.name, None) for field in dataclasses.fields(obj)}
    shown = _dict({name: value for name, value in values.items() if value is not None}, notation)
    return type(obj).__name__ + shown.removeprefix("dict") if shown != "{}" else type(obj).__name__


# ---- torch ---------------------------------------------------------------------------------------------------------


def _of_torch(obj: Any, notation: Notation, torch: Any) -> str | None:
    name = type(obj).__name__
    if isinstance(obj, torch.Tensor):
        letter = "F" if name == "FakeTensor" else "T"
        return _torch_tensor(obj, notation, torch, letter)
    if name in ("SymInt", "SymFloat", "SymBool"):
        return name
    if name == "_DerivedDim":
        return "DerivedDim"
    if name in ("Dim", "_Dim") and hasattr(obj, "__name__"):
        return f"Dim({obj.__name__})"
    if name == "_DimHint":
        return str(obj).replace("DimHint(DYNAMIC)", "DYNAMIC").replace("DimHint(AUTO)", "AUTO")
    return None


def _torch_tensor(obj: Any, notation: Notation, torch: Any, letter: str) -> str:
    prefix = ("G" if obj.get_device() >= 0 else "C") if notation.device else ""
    text = f"{prefix}{letter}{_number_of(obj.dtype)}{_shape_text(obj.shape, notation)}"
    if not notation.min_max or letter == "F":
        return text
    values = obj.detach()
    if values.ndim == 0:
        return f"{text}={values}"
    if values.numel() == 0:
        return f"{text}[empty]"
    if values.is_complex():
        values = values.abs()
        return f"{text}[{values.min()},{values.max()}:A{values.mean()}]"
    if values.dtype in (torch.uint16, torch.uint32, torch.uint64):
        values = values.to(torch.int64)
    if values.dtype.itemsize == 1 and values.dtype.is_floating_point:
        values = values.to(torch.float32)
    nans = int(values.isnan().sum())
    suffix = f"N{nans}nans" if nans else ""
    return f"{text}[{values.min()},{values.max()}:A{values.to(torch.float64).mean()}{suffix}]"


# ---- objects known by the name of their class ----------------------------------------------------------------------


def _cache(obj: Any, notation: Notation) -> str:
    name = type(obj).__name__
    layers = getattr(obj, "layers", None)
    if layers is None:
        keys, values = list(obj.key_cache), list(obj.value_cache)
    elif name == "DynamicCache" and any(type(layer).__name__ != "DynamicLayer" for layer in layers):
        rows = (f"{type(layer).__name__}({notation.of(layer.keys)}, {notation.of(layer.values)})" for layer in layers)
        return f"{name}({', '.join(rows)})"
    else:
        filled = [each for each in layers if each is not None and each.keys is not None and each.values is not None]
        keys, values = [layer.keys for layer in filled], [layer.values for layer in filled]
    return f"{name}(key_cache={notation.of(keys)}, value_cache={notation.of(values)})"


def _fields(*names: str, listed: bool = False) -> Callable[[Any, Notation], str]:
    """``Class(a=..., b=...)`` of these attributes, each as a list of its rows where ``listed``."""

    def describe(obj: Any, notation: Notation) -> str:
        values = ((name, getattr(obj, name)) for name in names)
        rows = (f"{name}={notation.of(list(value) if listed else value)}" for name, value in values)
        return f"{type(obj).__name__}({', '.join(rows)})"

    return describe


def _ort_value(obj: Any, notation: Notation) -> str:
    if not obj.has_value():
        return "OV(<novalue>)"
    if not obj.is_tensor():
        return "OV(NOTENSOR)"
    device = ("G" if obj.device_name().lower() == "cuda" else "C") if notation.device else ""
    if notation.min_max:
        return f"{device}OV({_array(obj.numpy(), notation)})"
    return f"{device}OV{obj.element_type()}{_shape_text(obj.shape(), notation)}"


def _value_info(obj: Any, notation: Notation) -> str:
    return f"OT{obj.type.tensor_type.elem_type}"


def _symbolic(obj: Any, notation: Notation) -> str:
    prefix = ("G" if obj.get_device() >= 0 else "C") if notation.device else ""
    return f"{prefix}ST{_number_of(obj.dtype)}{_shape_text(obj.shape, notation)}"


def _node(obj: Any, notation: Notation) -> str:
    return f"%{obj.target}" if hasattr(obj, "meta") else _bare(obj)


def _bare(obj: Any) -> str:
    return f"{type(obj).__name__}(...)"


def _other(obj: Any, notation: Notation, torch: Any) -> str:
    if torch is not None:
        if type(obj) in torch.utils._pytree.SUPPORTED_NODES:
            return f"{type(obj).__name__}[serialized]({notation.of(_serialized(obj, torch))})"
        if isinstance(obj, (torch.device, torch.dtype, torch.memory_format, torch.layout)):
            return f"{type(obj).__name__}({obj})"
        if isinstance(obj, torch.utils._pytree.TreeSpec) or type(obj).__name__ in ("MappingKey", "SequenceKey"):
            return repr(obj).replace(" ", "").replace("\n", " ")
        if type(obj).__name__ == "Proxy":
            return repr(obj)
    return _bare(obj)


def _serialized(obj: Any, torch: Any) -> Any:
    """The children of a registered container as nested lists of tensors; of other leaves an empty list is left."""
    node = torch.utils._pytree.SUPPORTED_NODES.get(type(obj))
    if node is not None:
        return [_serialized(child, torch) for child in node.flatten_fn(obj)[0]]
    return obj if isinstance(obj, torch.Tensor) else []


_BUILTINS: tuple[tuple[Any, Callable[[Any, Notation], str]], ...] = (
    (tuple, _tuple),
    (list, _list),
    ((set, frozenset), _set),
    (np.ndarray, _array),
    (Tensor, _own_tensor),
    ((bool, int, float), _scalar),
    (str, lambda obj, notation: "str"),
    (slice, lambda obj, notation: "slice"),
)
_BY_NAME: dict[str, Callable[[Any, Notation], str]] = {
    "dict": _dict,
    **dict.fromkeys(_CACHES, _cache),
    "MambaCache": _fields("conv_states", "ssm_states"),
    "EncoderDecoderCache": _fields("self_attention_cache", "cross_attention_cache"),
    "DynamicLayer": _fields("keys", "values"),
    "StaticLayer": _fields("keys", "values", listed=True),
    "BatchFeature": _fields("data"),
    "BatchEncoding": _fields("data"),
    "OrtValue": _ort_value,
    "ValueInfoProto": _value_info,
    "SymbolicTensor": _symbolic,
    "Node": _node,
}
