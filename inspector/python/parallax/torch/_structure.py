# SPDX-License-Identifier: Apache-2.0
"""Objects in their containers to and from a tree (FORMAT.md of inspector/dump, "Structure") and tensors by name."""

from __future__ import annotations

import dataclasses
import importlib
import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from parallax import _core
from parallax.errors import CorruptFile

__all__ = ["Opaque", "Record", "flatten", "unflatten"]

Tree = dict[str, Any]
# Takes the name and the array of a value; answers why it was not kept, or "".
Keep = Callable[[str, Any], str]

_MAX_DEPTH = 60
_LONGEST_TEXT = 1000


class Record(dict[str, Any]):
    """Fields of an object whose class is not at hand, by name and as attributes; ``class_name`` says which it was."""

    class_name: str = ""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a {self.class_name} has no field {name!r}") from None


@dataclasses.dataclass(frozen=True)
class Opaque:
    """An object that no tree can hold: its class and how it printed, or why it was left out."""

    class_name: str
    text: str


def child_name(parent: str, key: object) -> str:
    """The name of an item of a container: "/" and "~" of the key escaped as in RFC 6901."""
    return f"{parent}/{str(key).replace('~', '~0').replace('/', '~1')}"


def class_text(kind: type) -> str:
    """"module:Qualified.name"."""
    return f"{kind.__module__}:{kind.__qualname__}"


# ---- Objects to trees ----------------------------------------------------------------------------------------------


def flatten(obj: Any, name: str, keep: Keep) -> Tree:
    """Returns the tree of an object whose root is called ``name``; ``keep`` is shown each tensor in turn."""
    return _Flattener(keep).node(obj, name)


class _Flattener:
    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._open: set[int] = set()  # containers that are being walked: an object may hold itself

    def node(self, obj: Any, name: str) -> Tree:
        scalar = _scalar(obj)
        if scalar is not None:
            return scalar
        library = _library_of(obj)
        if library is not None:
            return self._tensor(obj, name, library)
        if id(obj) in self._open or len(self._open) > _MAX_DEPTH:
            return {"kind": "left_out", "reason": "it holds itself, or is nested too deep"}
        self._open.add(id(obj))
        try:
            return self._container(obj, name)
        finally:
            self._open.discard(id(obj))

    def _tensor(self, obj: Any, name: str, library: str) -> Tree:
        reason = self._keep(name, obj)
        if reason:
            return {"kind": "left_out", "reason": reason, "text": _text_of(obj)}
        return {"kind": "tensor", "name": name, **({} if library == "torch" else {"library": library})}

    def _container(self, obj: Any, name: str) -> Tree:
        if isinstance(obj, tuple):
            return self._tuple(obj, name)
        if isinstance(obj, list):
            return {"kind": "list", "items": self._items(obj, name)}
        if isinstance(obj, (set, frozenset)):
            return {"kind": "set", "items": self._items(sorted(obj, key=repr), name)}
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            names = [field.name for field in dataclasses.fields(obj) if hasattr(obj, field.name)]
            return self._record(obj, {each: getattr(obj, each) for each in names}, name)
        if isinstance(obj, Mapping):
            return self._mapping(obj, name)
        if _is_cache(obj) and hasattr(obj, "layers"):
            return self._cache(obj, name)
        fields = getattr(obj, "__dict__", None)
        if isinstance(fields, dict) and not isinstance(obj, (type, torch.nn.Module)) and _holds_tensors(fields):
            return self._record(obj, fields, name)
        return _opaque(obj)

    def _items(self, items: Any, name: str) -> list[Tree]:
        return [self.node(item, child_name(name, index)) for index, item in enumerate(items)]

    def _tuple(self, obj: tuple[Any, ...], name: str) -> Tree:
        tree: Tree = {"kind": "tuple", "items": self._items(obj, name)}
        if type(obj) is not tuple:
            tree["class"] = class_text(type(obj))
            if hasattr(obj, "_fields"):
                tree["keys"] = list(obj._fields)
        return tree

    def _mapping(self, obj: Mapping[Any, Any], name: str) -> Tree:
        keys = [_key(key) for key in obj]
        items = [self.node(value, child_name(name, key)) for key, value in obj.items()]
        tree: Tree = {"kind": "dict", "keys": keys, "items": items}
        if type(obj) is not dict:
            tree["class"] = class_text(type(obj))
        return tree

    def _record(self, obj: Any, fields: Mapping[str, Any], name: str) -> Tree:
        items = [self.node(value, child_name(name, key)) for key, value in fields.items()]
        return {"kind": "record", "class": class_text(type(obj)), "keys": list(fields), "items": items}

    def _cache(self, obj: Any, name: str) -> Tree:
        layers = []
        for index, layer in enumerate(obj.layers):
            path = child_name(name, index)
            others = {key: value for key, value in vars(layer).items() if key not in ("keys", "values")}
            layers.append({
                "class": type(layer).__name__,
                "keys": self.node(getattr(layer, "keys", None), f"{path}/key"),
                "values": self.node(getattr(layer, "values", None), f"{path}/value"),
                "fields": {key: self.node(value, child_name(path, key)) for key, value in others.items()},
            })
        others = {key: value for key, value in vars(obj).items() if key != "layers"}
        fields = {key: self.node(value, child_name(name, key)) for key, value in others.items()}
        return {"kind": "cache", "class": class_text(type(obj)), "layers": layers, "fields": fields}


def _scalar(obj: Any) -> Tree | None:
    if obj is None:
        return {"kind": "none"}
    if type(obj) in (bool, str):
        return {"kind": "bool" if type(obj) is bool else "string", "value": obj}
    if type(obj) is int:
        return {"kind": "int", "value": obj} if -(2**63) <= obj < 2**63 else _opaque(obj)
    if isinstance(obj, float):
        value = float(obj)
        return {"kind": "float", "value": value if math.isfinite(value) else repr(value)}
    return None


def _library_of(obj: Any) -> str | None:
    """Who the tensor belongs to; None for what is none. numpy's numbers are arrays without dimensions."""
    if isinstance(obj, torch.Tensor):
        return "torch"
    if isinstance(obj, (np.ndarray, np.generic)):
        return "numpy"
    return "parallax" if isinstance(obj, _core.Tensor) else None


def _key(key: Any) -> Tree:
    if isinstance(key, tuple):
        return {"kind": "tuple", "items": [_key(item) for item in key]}
    return _scalar(key) or _opaque(key)


def _text_of(obj: Any) -> str:
    from parallax.helpers import string_type

    return string_type(obj, with_shape=True)


def _opaque(obj: Any) -> Tree:
    if isinstance(obj, type):
        return {"kind": "object", "class": "builtins:type", "text": class_text(obj)}
    return {"kind": "object", "class": class_text(type(obj)), "text": repr(obj)[:_LONGEST_TEXT]}


def _is_cache(obj: Any) -> bool:
    return any(kind.__module__ == "transformers.cache_utils" and kind.__name__ == "Cache" for kind in type(obj).__mro__)


def _holds_tensors(value: Any, depth: int = 0) -> bool:
    if isinstance(value, torch.Tensor) or _is_cache(value):
        return True
    if depth > 2:
        return False
    if isinstance(value, Mapping):
        return any(_holds_tensors(item, depth + 1) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_holds_tensors(item, depth + 1) for item in value)


# ---- Trees to objects ----------------------------------------------------------------------------------------------


def unflatten(tree: Tree, load: Callable[[str, str], Any]) -> Any:
    """Builds the object of a tree; ``load(name, library)`` gives its tensors.

    Classes are looked up among the loaded modules (and transformers); where one is not there a Record stands for it. No
    constructor of a class that a file names is called but those of dataclasses' base, ModelOutput. Raises CorruptFile.
    """
    try:
        return _Builder(load).node(tree)
    except (KeyError, TypeError, IndexError) as error:
        raise CorruptFile(f"a structure breaks its format: {type(error).__name__}: {error}") from error


class _Builder:
    def __init__(self, load: Callable[[str, str], Any]) -> None:
        self._load = load

    def node(self, tree: Tree) -> Any:
        kind = tree["kind"]
        if kind == "tensor":
            return self._load(tree["name"], tree.get("library", "torch"))
        if kind in ("none", "bool", "int", "float", "string"):
            value = tree.get("value")
            return float(value) if kind == "float" and value is not None else value
        if kind in ("tuple", "list", "set"):
            return self._sequence(tree)
        if kind == "dict":
            return self._mapping(tree)
        if kind == "record":
            return self._record(tree)
        if kind == "cache":
            return self._cache(tree)
        return _restored_object(tree)

    def _sequence(self, tree: Tree) -> Any:
        items = [self.node(item) for item in tree["items"]]
        if tree["kind"] == "list":
            return items
        if tree["kind"] == "set":
            return set(items)
        if tree.get("class") == "torch:Size":
            return torch.Size(items)
        kind = class_named(tree.get("class", ""))
        if kind is not None and issubclass(kind, tuple) and "keys" in tree:
            return tuple.__new__(kind, items)
        return tuple(items)

    def _mapping(self, tree: Tree) -> Any:
        items = [(self._key(key), self.node(item)) for key, item in zip(tree["keys"], tree["items"], strict=True)]
        return OrderedDict(items) if tree.get("class") == "collections:OrderedDict" else dict(items)

    def _key(self, key: Any) -> Any:
        return key if isinstance(key, str) else self.node(key)

    def _record(self, tree: Tree) -> Any:
        fields = {key: self.node(item) for key, item in zip(tree["keys"], tree["items"], strict=True)}
        kind = class_named(tree["class"])
        if kind is not None and dataclasses.is_dataclass(kind):
            if issubclass(kind, OrderedDict):  # ModelOutput, whose fields are items, too
                return kind(**{key: value for key, value in fields.items() if value is not None})
            return _with_fields(kind, fields)
        if kind is not None and any(_is_cache_class(each) for each in kind.__mro__):
            return _with_fields(kind, fields)
        record = Record(fields)
        record.__dict__["class_name"] = tree["class"]
        return record

    def _cache(self, tree: Tree) -> Any:
        kind = class_named(tree["class"])
        if kind is None or not any(_is_cache_class(each) for each in kind.__mro__):
            record = Record(layers=[{"keys": self.node(layer["keys"]), "values": self.node(layer["values"])}
                                    for layer in tree["layers"]])
            record.__dict__["class_name"] = tree["class"]
            return record
        layers = [self._layer(layer) for layer in tree["layers"]]
        if "fields" in tree:
            fields = {key: self.node(item) for key, item in tree["fields"].items()}
            return _with_fields(kind, {**fields, "layers": layers})
        if kind.__name__ == "DynamicCache":  # read from names alone, which say keys and values
            cache = kind()
            cache.layers = layers
            return cache
        return _with_fields(kind, {"layers": layers, "layer_class_to_replicate": None, "offloading": False})

    def _layer(self, tree: Tree) -> Any:
        kind = class_named(f"transformers.cache_utils:{tree['class']}")
        if kind is None:
            raise CorruptFile(f"transformers has no cache layer of the class {tree['class']!r}")
        keys, values = self.node(tree["keys"]), self.node(tree["values"])
        fields = {key: self.node(item) for key, item in tree.get("fields", {}).items()}
        if "fields" not in tree:
            fields = {"is_initialized": keys is not None}
            if isinstance(keys, torch.Tensor):
                fields.update(dtype=keys.dtype, device=keys.device, max_cache_len=keys.shape[-2])
        return _with_fields(kind, {"keys": keys, "values": values, **fields})


def _with_fields(kind: Any, fields: Mapping[str, Any]) -> Any:
    """An object of the class with these attributes; its constructor is not called."""
    obj = kind.__new__(kind)
    for key, value in fields.items():
        object.__setattr__(obj, key, value)
    return obj


def _is_cache_class(kind: type) -> bool:
    return kind.__module__ == "transformers.cache_utils" and kind.__name__ in ("Cache", "CacheLayerMixin")


def class_named(text: str) -> type | None:
    """The class "module:Qualified.name" of a loaded module, or of transformers; None where there is none."""
    module_name, _, path = text.partition(":")
    module = sys.modules.get(module_name)
    if module is None and module_name.split(".")[0] == "transformers":
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            return None
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def _restored_object(tree: Tree) -> Any:
    text = str(tree.get("text", tree.get("reason", "")))
    kind = str(tree.get("class") or tree["kind"])
    if kind == "torch:dtype" and isinstance(getattr(torch, text.removeprefix("torch."), None), torch.dtype):
        return getattr(torch, text.removeprefix("torch."))
    if kind == "torch:device":
        return torch.device("cpu")  # where restored tensors are
    if kind == "builtins:type":
        return class_named(text)
    return Opaque(kind, f"{tree['reason']}: {text}" if tree["kind"] == "left_out" else text)
