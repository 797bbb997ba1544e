# SPDX-License-Identifier: Apache-2.0
"""Text generation with language models: opened once, many generations, transformers' names for options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, Union

import numpy as np
from numpy.typing import NDArray

from parallax import _arguments as arguments
from parallax import _core
from parallax._arguments import PolicyOptions
from parallax._decoders import check_roles
from parallax._results import _Document
from parallax._sentences import ArgumentNames, shown, translated, whole
from parallax.comparison import Comparison, _package
from parallax.errors import UsageError
from parallax.model import Model, load
from parallax.process import set_threads

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
    "top_p": ("top_p", "number"), "min_p": ("min_p", "number"), "seed": ("seed", "natural"),
    "eos_token_id": ("eos", "tokens"), "pad_token_id": ("pad", "whole"),
    "decoder_start_token_id": ("start_ids", "tokens"),
}  # fmt: skip

# transformers' options that have another name here, or are somewhere else.
_ELSEWHERE = {
    "max_length": "max_new_tokens counts the new tokens, without the prompt",
    "min_length": "min_new_tokens counts the new tokens, without the prompt",
    "use_cache": "Generator(cache='none') computes everything again at each step",
    "streamer": "on_step is called with the tokens of each step",
    "generator": "seed chooses what is drawn",
    "return_dict_in_generate": "a Generation has scores, steps and times",
    "output_scores": "a Generation's steps have the logprob and the margin of each token",
    "inputs": "input_ids are the tokens of the prompt",
    **dict.fromkeys(
        ("output_logits", "stopping_criteria", "logits_processor", "generation_config", "assistant_model", "max_time",
         "bad_words_ids", "force_words_ids", "forced_bos_token_id", "forced_eos_token_id", "stop_strings", "typical_p",
         "guidance_scale", "suppress_tokens", "begin_suppress_tokens", "encoder_no_repeat_ngram_size", "sequence_bias",
         "encoder_repetition_penalty", "prefix_allowed_tokens_fn", "renormalize_logits", "epsilon_cutoff", "eta_cutoff",
         "exponential_decay_length_penalty", "past_key_values", "encoder_outputs", "decoder_input_ids", "top_h",
         "watermarking_config", "prompt_lookup_num_tokens"),
        "parallax.hf.from_onnx(...).generate() is transformers' own and has it",
    ),
}  # fmt: skip


class Generation(_Document):
    """The tokens of a generation, and what each step took; of two sides, also how they differ.

    In a notebook it is a table of the sequences and, of two sides, the steps and the comparison.
    """

    def __init__(self, answer: dict[str, Any], prompts: Sequence[Sequence[int]]) -> None:
        super().__init__(answer)
        self.new_tokens: list[list[int]] = answer["sequences"]
        """New tokens of each sequence, the end token included."""
        self.scores: list[float] = answer["scores"]
        """Of beams, a score for each sequence; else empty."""
        self.step_seconds: list[float] = answer["step_seconds"]
        """Seconds of the models in each step; the first one reads the prompt."""
        self.notes: list[str] = [translated(note, "generate") for note in answer["notes"]]
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
        """The result as transformers returns it: [rows, positions] int64, with the prompt in front (of an
        encoder-decoder the start
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
    def stopped(self) -> list[str]:
        """Why each sequence ended: "eos" or "length"."""
        stopped: list[str] = self._document["stopped"]
        return stopped

    @property
    def steps(self) -> list[dict[str, Any]]:
        """A row for each step: step, tokens, ms, logprob and margin of each row's token.

        The margin is the distance of the two largest scores. Of two sides also severity, worst (the path of the value
        that is furthest beyond its limit, or closest to it) and near_tie.
        """
        steps: list[dict[str, Any]] = self._document["steps"]
        return steps

    @property
    def first_token_apart(self) -> dict[str, Any] | None:
        """The first token that is another than expected or than side B's: step, row, a, b, margin, near_tie.

        ``a`` is the expected token, or side A's; ``b`` the other, -1 where there is none. None where all are equal, or
        nothing was compared.
        """
        first: dict[str, Any] | None = self._document.get("first_token_apart")
        return first

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame, a row for each step. Needs pandas."""
        return _package("pandas").DataFrame(self.steps)

    @property
    def tokens_per_second(self) -> float:
        """New tokens of all rows in a second of decoding."""
        return float(self._document["tokens_per_second"])

    def decode(self, tokenizer: Any) -> list[str]:
        """Returns the text of the new tokens by a tokenizer of transformers, one for each sequence."""
        return [tokenizer.decode(tokens, skip_special_tokens=True) for tokens in self.new_tokens]

    def __repr__(self) -> str:
        lengths = [len(tokens) for tokens in self.new_tokens]
        count = f"{lengths[0]}" if len(set(lengths)) == 1 else f"{min(lengths)} to {max(lengths)}"
        ends = " and ".join(sorted(set(self.stopped)))
        text = f"{count} new token{'' if count == '1' else 's'}{' each' if len(lengths) > 1 else ''}"
        text += f", ended by {ends}, {self.tokens_per_second:.0f} tokens/s"
        if self.scores:
            text += f", best score {max(self.scores):.3f}"
        text += "".join(f"; {part}" for part in (self._compared(), self._token_difference()) if part)
        return f"<parallax.Generation of {len(lengths)} sequence{'' if len(lengths) == 1 else 's'}: {text}>"

    def _compared(self) -> str:
        """The verdict over both sides' values; "" where there is one side."""
        if self.comparison is None:
            return ""
        summary = self.comparison.summary
        sides = " and ".join(f"{row.side} ({row.name})" for row in self.comparison.executions)
        return f"{self.comparison.verdict}: {summary.diverged} of {summary.compared} values diverged between {sides}"

    def _token_difference(self) -> str:
        """The first difference of tokens; "" where nothing was compared."""
        first = self.first_token_apart
        is_expected = "expected" in self._document
        if first is None:
            return "" if self.comparison is None and not is_expected else "no token differs"
        names = ("expected", "generated") if is_expected else ("A", "B")
        sides = zip("ab", names, strict=True)
        tokens = [f"{'no token' if first[side] < 0 else first[side]} {name}" for side, name in sides]
        tie = ", a near tie" if first["near_tie"] else ""
        return f"tokens differ from step {first['step']} of row {first['row']}: {', '.join(tokens)}{tie}"

    def _repr_html_(self) -> str:
        from parallax import _report

        return _report.generation_of(self)


class Generator:
    """A language model with its sessions, opened once to generate many times.

    ``model``: an ONNX file; a folder with model.onnx, or with encoder, decoder, decoder_with_past and merged models; a
    Model or ModelProto; or several by role, {"encoder": ..., "decoder": ..., "decoder_with_past": ...} (also "merged").
    ``executor``: "cpu", "reference", "cuda", or two of them, which are compared at every step; ``against``: a second
    model as side B. ``cache``: "in-place" (kept in the session), "copy" (handed through), "none" (everything is
    computed again with each token) or "auto". ``roles``: {role: name of an input or output}, or a JSON file, where names
    are unusual. ``rewrite``, ``fallback``, ``memory_limit``, ``time_limit``: as of Session. Raises UsageError, InvalidModel,
    Unsupported (no decoder; past and present that do not pair), IoError (a file that cannot be read), OutOfMemory.

    >>> import parallax
    >>> generator = parallax.Generator("samples/decoder/model.textproto")                           # doctest: +SKIP
    >>> generator.generate([[5, 17, 4]], max_new_tokens=8).sequences.shape                          # doctest: +SKIP
    (1, 11)
    """

    __slots__ = ("_core", "_has_two_sides")

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
        time_limit: float | None = None,
        observe_all: bool = False,
        all_logits: bool = False,
        threads: int | None = None,
    ) -> None:
        if threads is not None:
            set_threads(threads)
        request: dict[str, Any] = {"model": _models_of("model", model)}
        request |= {"all_logits": all_logits, "observe_all": observe_all}
        if against is not None:
            request["against"] = _models_of("against", against)
        if isinstance(roles, Mapping):
            if not all(isinstance(text, str) for pair in roles.items() for text in pair):
                raise UsageError(f"roles is {dict(roles)!r}; it must be {{role: name of an input or output}}, all str")
            request["roles"] = dict(roles)
        elif isinstance(roles, (str, os.PathLike)):
            request["map"] = os.fspath(roles)
        elif roles is not None:
            raise UsageError(f"roles is {shown(roles)}; it must be {{role: name of an input or output}}, or a JSON file")
        executors = _core.split_executors(executor) if isinstance(executor, str) else executor
        arguments.set_names(request, executor=executors)
        request["executors"] = request.pop("executor")
        request |= arguments.request_of("Generator", {"time_limit": time_limit}, (arguments.ModeOptions,))
        self._has_two_sides = against is not None or len(request["executors"]) > 1
        arguments.set_texts(request, cache=cache, rewrite=rewrite, fallback=fallback, memory_limit=memory_limit)
        with ArgumentNames("Generator"):
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
        force: bool = False,
        **options: Any,
    ) -> Generation:
        """Generates tokens after each row of ``input_ids``.

        ``input_ids``: [rows, positions] of int64 (array, tensor or lists, also of different lengths); with
        ``attention_mask`` 0 where a token is padding. Or ``prompt``, one text or several, with a ``tokenizer`` of
        transformers. ``options``: those of GenerationOptions. ``expect``: expected new tokens, or the path of
        expected.json. ``on_step``: called with each step's tokens, ms, logprob and margin. With two sides or ``dump``:
        ``capture`` ("all", "stats", ...), ``only`` (globs), ``policy`` ({"rtol": x, ...}). ``force``: ``dump`` may
        replace files that Parallax did not write. Raises UsageError (ids beyond the vocabulary, a mask of another
        length), ExecutionError, IoError, KeyboardInterrupt.

        >>> import parallax
        >>> generator = parallax.Generator("samples/decoder/model.textproto", ("reference", "cpu"))     # doctest: +SKIP
        >>> generation = generator.generate([[5, 17, 4]], max_new_tokens=4, expect=[[11, 6, 19, 8]])    # doctest: +SKIP
        >>> generation.comparison.verdict, generation.passed, generation.first_token_apart["step"]      # doctest: +SKIP
        ('pass', False, 3)
        """
        if prompt is not None:
            if tokenizer is None:
                raise UsageError("tokenizer is missing; prompt needs one, which makes token ids of its text")
            if input_ids is not None:
                raise UsageError("prompt and input_ids exclude each other; one of them gives the tokens")
            texts = [prompt] if isinstance(prompt, str) else list(prompt)
            input_ids, attention_mask = [list(tokenizer(text)["input_ids"]) for text in texts], None
        if input_ids is None:
            raise UsageError("input_ids are missing; give token ids, or a prompt with its tokenizer")
        prompts = _rows("input_ids", input_ids)
        if not prompts:
            raise UsageError("input_ids has no row; it must be [rows, positions] of int64 with one row at least")
        request: dict[str, Any] = {"prompts": prompts, **_settings_of(options)}
        if attention_mask is not None:
            request["masks"] = _masks(attention_mask)
        if isinstance(expect, (str, os.PathLike)):
            request["expected_file"] = os.fspath(expect)
        elif expect is not None:
            request["expected"] = _rows("expect", expect)
        if policy is not None:
            if not isinstance(policy, Mapping):
                raise UsageError(f"policy is {shown(policy)}; it must be a mapping, as {{'rtol': 1e-3}}")
            request.update(arguments.request_of("policy", policy, (PolicyOptions,)))
        arguments.set_names(request, only=only)
        arguments.set_texts(request, capture=capture, dump=dump)
        request["force"] = force
        given = [name for name, value in (("capture", capture), ("only", only), ("policy", policy)) if value]
        if given and not self._has_two_sides and (dump is None or given == ["policy"]):
            needs = "Generator(executor=(A, B)) or Generator(against=...) makes two"
            needs += "" if given[0] == "policy" else ", or give dump"
            raise UsageError(f"{given[0]} is given and there is one side, so that nothing is compared; {needs}")
        if on_step is not None:
            if not callable(on_step):
                raise UsageError(f"on_step is {shown(on_step)}; it must be a function, which is called with each step")
            request["on_step"] = on_step
        with ArgumentNames("generate"):
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

    Raises what they do.

    >>> import parallax
    >>> decoder = "samples/decoder/model.textproto"
    >>> parallax.generate(decoder, [[5, 17, 4]], num_beams=4, max_new_tokens=3).new_tokens          # doctest: +SKIP
    [[11, 6, 19]]
    >>> parallax.generate(decoder, [[5, 17, 4]], executor=("reference", "cpu")).passed              # doctest: +SKIP
    True
    """
    opening = {name: options.pop(name) for name in _OPENING if name in options}
    if isinstance(model, Generator):
        if opening or executor != "cpu":
            name = next(iter(opening), "executor")
            raise UsageError(f"{name} is given with a Generator, which is open already; give it to Generator(...)")
        generator = model
    else:
        generator = Generator(model, executor, **opening)
    generation = generator.generate(input_ids, attention_mask, **options)
    return (generation, generator) if return_generator else generation


_OPENING = (
    "against", "cache", "roles", "rewrite", "fallback", "memory_limit", "time_limit", "observe_all", "all_logits",
    "threads",
)  # fmt: skip
_OTHERS = (
    "executor", "attention_mask", "tokenizer", "prompt", "expect", "capture", "only", "dump", "policy", "on_step",
    "force",
)  # fmt: skip


def _models_of(name: str, source: Any) -> Any:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, Mapping):
        check_roles(name, source)
        return {role: load(model).core for role, model in source.items()}
    return (source if isinstance(source, Model) else load(source)).core


def _rows(name: str, given: Any) -> list[list[int]]:
    rule = "it must be [rows, positions] of whole numbers"
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise UsageError(f"{name} is {shown(given)}; {rule}")
    rows = _plain(given) if hasattr(given, "tolist") else [_plain(row) for row in given]
    if rows and not isinstance(rows[0], (list, tuple)):
        rows = [rows]
    try:
        return [[token.__index__() for token in row] for row in rows]
    except (AttributeError, TypeError):
        raise UsageError(f"{name} has elements that are no whole numbers; {rule}") from None


def _plain(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values


def _masks(given: Any) -> list[list[int]]:
    masks = _rows("attention_mask", given)
    for at, mask in enumerate(masks):
        if not set(mask) <= {0, 1}:
            other = next(number for number in mask if number not in (0, 1))
            raise UsageError(f"attention_mask has {other} in row {at}; it must be 1 for a token and 0 for padding")
        if 1 not in mask:
            raise UsageError(f"attention_mask has no 1 in row {at}; at least one token of a row must be no padding")
    return masks


def _settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    known = [*_OPTIONS, *_OPENING, *_OTHERS]
    request: dict[str, Any] = {}
    for name, value in options.items():
        if name in _ELSEWHERE:
            raise UsageError(f"generate has no argument '{name}': {_ELSEWHERE[name]}")
        if name in _OPENING:
            raise UsageError(f"{name} is an argument of Generator, not of its generate(); give it to Generator(...)")
        if name not in _OPTIONS:
            arguments.refuse("generate", name, known)
        if value is not None:
            field, kind = _OPTIONS[name]
            request[field] = _READERS[kind](name, value)
    return request


def _tokens(name: str, value: Any) -> list[int]:
    values = value.tolist() if hasattr(value, "tolist") else value
    return [whole(name, token) for token in (values if isinstance(values, (list, tuple)) else [values])]


def _natural(name: str, value: Any) -> int:
    number = whole(name, value)
    if not 0 <= number < 2**64:
        raise UsageError(f"{name} is {number}; it must be a whole number from 0 to {2**64 - 1}")
    return number


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
    "whole": whole, "natural": _natural, "number": _real, "word": _word, "flag": _flag, "tokens": _tokens,
}  # fmt: skip
