# SPDX-License-Identifier: Apache-2.0
"""Text generation with language models: opened once, many generations, transformers' names for options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Union

import numpy as np
from numpy.typing import NDArray

from parallax import _arguments as arguments
from parallax import _core
from parallax._arguments import PolicyOptions
from parallax._results import _Document
from parallax.comparison import Comparison
from parallax.errors import UsageError
from parallax.model import Model, load

__all__ = ["Generation", "GenerationOptions", "Generator", "generate"]

Tokens = Union[int, Sequence[int], None]


class GenerationOptions(TypedDict, total=False):
    """How tokens are chosen, by the names that transformers has for it. None: as the files next to the model say.

    ``max_new_tokens`` (20), ``min_new_tokens``, ``num_beams`` (1), ``num_return_sequences`` (1), ``length_penalty``,
    ``early_stopping`` (True, False or "never"), ``no_repeat_ngram_size``, ``repetition_penalty``, ``do_sample``
    (False) with ``temperature``, ``top_k``, ``top_p``, ``min_p`` and ``seed``; ``eos_token_id`` (a token, several, or
    [] for none), ``pad_token_id``, ``decoder_start_token_id``.
    """

    max_new_tokens: int | None
    min_new_tokens: int | None
    num_beams: int | None
    num_return_sequences: int | None
    length_penalty: float | None
    early_stopping: bool | str | None
    no_repeat_ngram_size: int | None
    repetition_penalty: float | None
    do_sample: bool | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None
    eos_token_id: Tokens
    pad_token_id: int | None
    decoder_start_token_id: Tokens


# transformers' name -> (field of a request, kind).
_OPTIONS: dict[str, tuple[str, str]] = {
    "max_new_tokens": ("max_new_tokens", "whole"), "min_new_tokens": ("min_new_tokens", "whole"),
    "num_beams": ("beams", "whole"), "num_return_sequences": ("returned", "whole"),
    "length_penalty": ("length_penalty", "number"), "early_stopping": ("early_stopping", "word"),
    "no_repeat_ngram_size": ("no_repeat_ngram", "whole"), "repetition_penalty": ("repetition_penalty", "number"),
    "do_sample": ("sample", "flag"), "temperature": ("temperature", "number"), "top_k": ("top_k", "whole"),
    "top_p": ("top_p", "number"), "min_p": ("min_p", "number"), "seed": ("seed", "whole"),
    "eos_token_id": ("eos", "tokens"), "pad_token_id": ("pad", "whole"),
    "decoder_start_token_id": ("start_ids", "tokens"),
}  # fmt: skip


class Generation(_Document):
    """The tokens of a generation, and what each step took."""

    def __init__(self, answer: dict[str, Any], prompts: Sequence[Sequence[int]]) -> None:
        super().__init__(answer)
        self.new_tokens: list[list[int]] = answer["sequences"]
        """New tokens of each sequence, the end token included."""
        self.scores: list[float] = answer["scores"]
        """Of beams, a score for each sequence; else empty."""
        self.step_seconds: list[float] = answer["step_seconds"]
        """Seconds of the models in each step; the first one reads the prompt."""
        self.notes: list[str] = answer["notes"]
        """What inputs and outputs were taken for, and what was chosen."""
        self.passed: bool = answer["passed"]
        """Whether no token is another than expected, and nothing diverged."""
        core = answer["comparison"]
        self.comparison: Comparison | None = None if core is None else Comparison(core)
        """Of two sides; None where there is one."""
        self._prompts = prompts
        self._starts: list[int] | None = answer["start_ids"] if answer["is_encoder_decoder"] else None
        self._pad: int = answer["pad"]

    @property
    def sequences(self) -> NDArray[np.int64]:
        """What transformers returns: [rows, positions] int64, with the prompt in front (of an encoder-decoder the start
        tokens), padded at the right."""
        repeats = max(1, len(self.new_tokens) // max(1, len(self._prompts)))
        rows = [
            [*(self._prompts[at // repeats] if self._starts is None else self._starts), *tokens]
            for at, tokens in enumerate(self.new_tokens)
        ]
        padded = np.full((len(rows), max(map(len, rows), default=0)), self._pad, np.int64)
        for at, row in enumerate(rows):
            padded[at, : len(row)] = row
        return padded

    @property
    def tokens_per_second(self) -> float:
        """New tokens of all rows in a second of decoding."""
        return float(self._document["tokens_per_second"])

    def decode(self, tokenizer: Any) -> list[str]:
        """Returns the text of the new tokens by a tokenizer of transformers, one for each sequence."""
        return [tokenizer.decode(tokens, skip_special_tokens=True) for tokens in self.new_tokens]

    def __repr__(self) -> str:
        return f"<parallax.Generation of {len(self.new_tokens)} sequences>"


class Generator:
    """A language model with its sessions, opened once to generate many times.

    ``model``: an ONNX file; a folder with model.onnx, or with encoder, decoder, decoder_with_past and merged models; a
    Model or ModelProto; or several by role, {"encoder": ..., "decoder": ..., "decoder_with_past": ...}.
    ``executor``: "cpu", "reference", "cuda", or two of them, which are compared at every step; ``against``: a second
    model as side B. ``cache``: "in-place" (kept in the session), "copy" (handed through), "none" (everything is
    computed again with each token) or "auto". ``roles``: {role: name of an input or output}, or a JSON file, where names
    are unusual. ``rewrite``, ``fallback``, ``memory_limit``: as of Session. Raises UsageError, InvalidModel, Unsupported
    (no decoder; past and present that do not pair).

    >>> import parallax
    >>> generator = parallax.Generator("models/llama-tiny")                                         # doctest: +SKIP
    >>> generator.generate([[5, 17, 4]], max_new_tokens=8).sequences.shape                          # doctest: +SKIP
    (1, 11)
    """

    __slots__ = ("_core",)

    def __init__(
        self,
        model: Any,
        executor: str | Sequence[str] = "cpu",
        *,
        against: Any = None,
        cache: str = "auto",
        roles: Mapping[str, str] | str | os.PathLike[str] | None = None,
        rewrite: str = "default",
        fallback: str | None = None,
        memory_limit: int | str | None = None,
        observe_all: bool = False,
        all_logits: bool = False,
        threads: int | None = None,
    ) -> None:
        if threads is not None:
            _core.set_threads(threads)
        request: dict[str, Any] = {"model": _models_of(model), "all_logits": all_logits, "observe_all": observe_all}
        if against is not None:
            request["against"] = _models_of(against)
        if isinstance(roles, Mapping):
            request["roles"] = dict(roles)
        elif roles is not None:
            arguments.set_texts(request, map=roles)
        arguments.set_names(request, executors=executor)
        arguments.set_texts(request, cache=cache, rewrite=rewrite, fallback=fallback, memory_limit=memory_limit)
        self._core = _core.Generator(request)

    def generate(
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        *,
        tokenizer: Any = None,
        prompt: str | Sequence[str] | None = None,
        expect: Any = None,
        capture: str | None = None,
        only: str | Sequence[str] = (),
        dump: str | os.PathLike[str] | None = None,
        policy: PolicyOptions | None = None,
        on_step: Callable[[dict[str, Any]], Any] | None = None,
        **options: Any,
    ) -> Generation:
        """Generates tokens after each row of ``input_ids``.

        ``input_ids``: [rows, positions] of int64 (array, tensor or lists, also of different lengths); with
        ``attention_mask`` 0 where a token is padding. Or ``prompt``, one text or several, with a ``tokenizer`` of
        transformers. ``options``: those of GenerationOptions. ``expect``: expected new tokens, or the path of
        expected.json. ``on_step``: called with each step's tokens, ms, logprob and margin. With two sides or ``dump``:
        ``capture`` ("all", "stats", ...), ``only`` (globs), ``policy`` ({"rtol": x, ...}). Raises UsageError (ids
        beyond the vocabulary, a mask of another length), ExecutionError, KeyboardInterrupt.
        """
        if prompt is not None:
            if tokenizer is None or input_ids is not None:
                raise UsageError("prompt needs a tokenizer, and no input_ids next to it")
            texts = [prompt] if isinstance(prompt, str) else list(prompt)
            input_ids, attention_mask = [list(tokenizer(text)["input_ids"]) for text in texts], None
        if input_ids is None:
            raise UsageError("input_ids are missing; give token ids, or a prompt with its tokenizer")
        prompts = _rows("input_ids", input_ids)
        request: dict[str, Any] = {"prompts": prompts, **_settings_of(options)}
        if attention_mask is not None:
            request["masks"] = _rows("attention_mask", attention_mask)
        if isinstance(expect, (str, os.PathLike)):
            request["expected_file"] = os.fspath(expect)
        elif expect is not None:
            request["expected"] = _rows("expect", expect)
        if policy:
            request.update(arguments.request_of("generate", policy, (PolicyOptions,)))
        arguments.set_names(request, only=only)
        arguments.set_texts(request, capture=capture, dump=dump)
        if on_step is not None:
            request["on_step"] = on_step
        return Generation(self._core.generate(request), prompts)

    @property
    def kind(self) -> str:
        """ "decoder" or "encoder-decoder"."""
        return self._core.kind

    def __repr__(self) -> str:
        return f"<parallax.Generator: {'; '.join(self._core.roles_text)}>"


def generate(
    model: Any,
    input_ids: Any = None,
    attention_mask: Any = None,
    *,
    executor: str | Sequence[str] = "cpu",
    return_generator: bool = False,
    **options: Any,
) -> Any:
    """Generates tokens after each row of ``input_ids``; returns a Generation, or (Generation, Generator).

    ``model``: what a Generator takes, or a Generator. ``options``: those of Generator (against, cache, roles, ...) and
    of Generator.generate.

    >>> import parallax
    >>> parallax.generate("models/llama-tiny", [[5, 17, 4]], num_beams=4, max_new_tokens=8).scores  # doctest: +SKIP
    [-9.25]
    """
    opening = {name: options.pop(name) for name in _OPENING if name in options}
    if isinstance(model, Generator):
        if opening or executor != "cpu":
            raise UsageError(f"{next(iter(opening), 'executor')} belongs to the Generator, which is open already")
        generator = model
    else:
        generator = Generator(model, executor, **opening)
    generation = generator.generate(input_ids, attention_mask, **options)
    return (generation, generator) if return_generator else generation


_OPENING = ("against", "cache", "roles", "rewrite", "fallback", "memory_limit", "observe_all", "all_logits", "threads")


def _models_of(source: Any) -> Any:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, Mapping):
        return {role: load(model).core for role, model in source.items()}
    return (source if isinstance(source, Model) else load(source)).core


def _rows(name: str, given: Any) -> list[list[int]]:
    rows = given.tolist() if hasattr(given, "tolist") else [row.tolist() if hasattr(row, "tolist") else row for row in given]
    if rows and not isinstance(rows[0], (list, tuple)):
        rows = [rows]
    try:
        return [[token.__index__() for token in row] for row in rows]
    except AttributeError:
        raise UsageError(f"{name} has elements that are no whole numbers; it must be [rows, positions] of int64") from None


def _settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    known = list(_OPTIONS)
    request: dict[str, Any] = {}
    for name, value in options.items():
        if name not in _OPTIONS:
            arguments.refuse("generate", name, known)
        if value is not None:
            field, kind = _OPTIONS[name]
            request[field] = _READERS[kind](name, value)
    return request


def _tokens(name: str, value: Any) -> list[int]:
    values = value.tolist() if hasattr(value, "tolist") else value
    return [arguments.whole(name, token) for token in (values if isinstance(values, (list, tuple)) else [values])]


def _word(name: str, value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise UsageError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def _real(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {value!r}; it must be a number") from None


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "whole": lambda name, value: arguments.whole(name, value), "number": _real, "word": _word, "flag": _flag,
    "tokens": _tokens,
}  # fmt: skip
