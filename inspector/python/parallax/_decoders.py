# SPDX-License-Identifier: Apache-2.0
"""Decoders as a step needs them: sessions that keep the caches, one cache at a time."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parallax._core import Tensor
from parallax.errors import Unsupported, UsageError
from parallax.model import Model, load
from parallax.session import Session

__all__ = ["MODEL_FILES", "Decoder", "KeptCache", "check_roles", "find_models"]

# Role -> the files that exporters write it to.
MODEL_FILES = {
    "encoder": ("encoder/model.onnx", "encoder_model.onnx"),
    "merged": ("merged/model.onnx", "decoder_model_merged.onnx"),
    "decoder": ("decoder/model.onnx", "decoder_model.onnx"),
    "decoder_with_past": ("decoder_with_past/model.onnx", "decoder_with_past_model.onnx"),
    "model": ("model.onnx", "onnx/model.onnx"),
}

# The inputs of a decoder that a step has values for, next to its cache.
_FED = frozenset((
    "input_ids", "decoder_input_ids", "attention_mask", "position_ids", "cache_position", "encoder_hidden_states",
    "encoder_attention_mask",
))  # fmt: skip

# How exporters name what a decoder returns of a cache, and what it takes.
_PAST_OF_PRESENT = (("present_key_values", "past_key_values"), ("present", "past_key_values"), ("present", "past"))


def check_roles(name: str, models: Mapping[Any, Any]) -> None:
    """Raises UsageError where a key is no role, or no model decodes."""
    known = f"one of {', '.join(MODEL_FILES)}"
    for role in models:
        if role not in MODEL_FILES:
            raise UsageError(f"{name} has the role {role!r}; a role must be {known}")
    if not set(models) - {"encoder"}:
        have = "an encoder alone" if models else "no model"
        raise UsageError(f"{name} has {have}; a decoder must be there, with the role decoder, merged or model")


def find_models(source: Any) -> dict[str, Model]:
    """The models of a folder, a file, a Model, or a mapping of them, by role. Raises UsageError where there are none."""
    if isinstance(source, Mapping):
        check_roles("source", source)
        return {role: load(model) for role, model in source.items()}
    if not isinstance(source, (str, os.PathLike)) or not os.path.isdir(source):
        return {"model": load(source)}
    folder = Path(source)
    found = {}
    for role, names in MODEL_FILES.items():
        path = next((folder / name for name in names if (folder / name).is_file()), None)
        if path is not None:
            found[role] = path
    if "merged" in found:
        found = {role: path for role, path in found.items() if role not in ("decoder", "decoder_with_past")}
    if "encoder" in found or "merged" in found or "decoder" in found:
        found.pop("model", None)
    if not found:
        raise UsageError(f"folder '{folder}' holds no model; it must hold model.onnx, or encoder, decoder and merged models")
    return {role: load(path) for role, path in found.items()}


@dataclass(eq=False)
class KeptCache:
    """The cache that transformers hands on. The keys and values are in a session, which no other cache uses."""

    decoder: Decoder
    length: int = 0  # positions of self-attention so far
    cross: dict[str, Any] = field(default_factory=dict)  # keys and values over the encoder's states, as Tensors
    session: Session | None = None  # taken with the first step, given back when nobody has the cache any more
    is_compileable: bool = False
    is_linear: Sequence[bool] = (False,)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Positions that are in the cache."""
        return self.length

    def reorder_cache(self, beam_idx: Any) -> None:
        """Row i becomes the old row ``beam_idx[i]``.

        Beams of one prompt share the encoder's states: only what was decoded has to follow them.
        """
        if self.session is not None:
            self.session.reorder_states([int(row) for row in beam_idx])

    def __repr__(self) -> str:
        return f"<parallax.hf.KeptCache of {self.length} positions>"


class Decoder:
    """One or two models that decode: all steps by one, or the first step by one and the later ones by another.

    Keys and values of self-attention are states of a session, so that no step copies them; those of cross-attention
    are computed in the first step and handed to each later one as they are. Caches that are alive at the same time have
    sessions of their own, clones that share the weights.
    """

    def __init__(self, first: Model, later: Model | None, executor: str, options: Mapping[str, Any]) -> None:
        stepping = first if later is None else later
        inputs = [info.name for info in stepping.inputs]
        outputs = [info.name for info in first.outputs]
        pairs = {past: present for present in outputs if (past := _past_of(present, inputs)) is not None}
        self._crossing = {past: present for past, present in pairs.items() if _is_cross(past, pairs)}
        own = [(past, present) for past, present in pairs.items() if past not in self._crossing]
        self._own = dict(own)
        self._flag = next((info.name for info in stepping.inputs if info.dtype == "bool" and info.shape == (1,)), None)
        for model in (first, stepping):
            _check_decoder(model, {*pairs, self._flag})
        returned = [info.name for info in stepping.outputs]
        missing = [present for _, present in own if present not in returned]
        if missing:
            raise Unsupported(f"'{stepping.path}' takes a cache and does not return it: it lacks the output '{missing[0]}'")
        shared = {"alias_outputs": True, **options}
        self._session = Session(stepping, executor, states=own, **shared)
        self._free = [self._session]
        self._first = None if later is None else Session(first, executor, **shared)
        self._empty = {past: _empty_array(stepping, past) for past in self._crossing}
        self.layers = len(own) // 2
        self.has_cache = bool(own)

    def step(self, feeds: dict[str, Any], cache: KeptCache | None, batch: int, positions: int) -> Any:
        """The logits [batch, positions, vocabulary] as a torch tensor; ``cache`` grows by ``positions``."""
        if self._flag is not None:
            feeds = {**feeds, self._flag: np.array([cache is not None and cache.length > 0])}
        if cache is None or not self.has_cache:  # all tokens are there: what the session keeps is thrown away
            if self._first is not None or not self.has_cache:
                return self._run(self._first or self._session, feeds)["logits"]
            return self._begin(feeds, KeptCache(self), batch)["logits"]
        if cache.session is None or cache.length == 0:
            outputs = self._begin(feeds, cache, batch)
        else:
            outputs = self._run(cache.session, {**feeds, **cache.cross})
        cache.length += positions
        return outputs["logits"]

    def _begin(self, feeds: dict[str, Any], cache: KeptCache, batch: int) -> dict[str, Any]:
        session = self._session_of(cache)
        if self._first is None:
            session.reset_states(batch)
            empty = {name: _with_rows(array, batch) for name, array in self._empty.items()}
            outputs = self._run(session, {**feeds, **empty})
        else:
            outputs = self._run(self._first, feeds)
            for past, present in self._own.items():
                session.set_state(past, outputs[present])
        cache.cross = {past: outputs[present] for past, present in self._crossing.items()}
        return outputs

    def _session_of(self, cache: KeptCache) -> Session:
        if cache.session is None:
            try:
                cache.session = self._free.pop()
            except IndexError:
                cache.session = self._session.clone()
            weakref.finalize(cache, self._free.append, cache.session).atexit = False
        return cache.session

    @staticmethod
    def _run(session: Session, feeds: dict[str, Any]) -> dict[str, Any]:
        known = session.input_names
        return session.run({name: value for name, value in feeds.items() if name in known}, kind="torch")


def _check_decoder(model: Model, others: set[str | None]) -> None:
    """Raises Unsupported where a step would lack logits, tokens, or the value of an input."""
    inputs, outputs = [info.name for info in model.inputs], [info.name for info in model.outputs]
    if "logits" not in outputs or not {"input_ids", "decoder_input_ids"} & set(inputs):
        raise Unsupported(
            f"'{model.path}' is no decoder: its inputs are {', '.join(inputs)} and its outputs {', '.join(outputs)}; "
            "there must be input_ids (or decoder_input_ids) and logits"
        )
    unknown = [name for name in inputs if name not in _FED and name not in others]
    if unknown:
        raise Unsupported(
            f"input '{unknown[0]}' of '{model.path}' is none that a step has a value for; it must be one of "
            f"{', '.join(sorted(_FED))}, or a past whose present is an output"
        )


def _past_of(present: str, inputs: Sequence[str]) -> str | None:
    for old, new in _PAST_OF_PRESENT:
        if old in present and present.replace(old, new, 1) in inputs:
            return present.replace(old, new, 1)
    return None


def _is_cross(past: str, pairs: Mapping[str, str]) -> bool:
    return "encoder" in past.replace("decoder", "") and any("decoder" in name for name in pairs)


def _empty_array(model: Model, name: str) -> Any:
    info = next(info for info in model.inputs if info.name == name)
    shape = [size if isinstance(size, int) else 0 for size in info.shape or ()]
    return Tensor.from_bytes(b"", info.dtype, shape)


def _with_rows(array: Any, batch: int) -> Any:
    return Tensor.from_bytes(b"", array.dtype, [batch, *array.shape[1:]])
