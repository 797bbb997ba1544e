# SPDX-License-Identifier: Apache-2.0
"""transformers' generate() over ONNX models: any search, processor and criterion, run by sessions of Parallax.

Needs torch and transformers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, GenerationConfig, PretrainedConfig, PreTrainedModel
from transformers.generation import utils as generation_utils
from transformers.generation.utils import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils.generic import ModelOutput

from parallax import _files
from parallax._decoders import MODEL_FILES, Decoder, KeptCache, find_models
from parallax._sentences import kind_of
from parallax.errors import Unsupported, UsageError
from parallax.model import Model
from parallax.session import Session

__all__ = ["KeptCache", "OnnxModel", "StepOutput", "from_onnx"]

# Outputs that transformers' models return on demand, and ONNX models do not.
_NOT_RETURNED = ("output_attentions", "output_hidden_states")
_REASONS = {
    "prefill_chunk_size": "a session reads the prompt at once",
    "labels": "the loss is torch.nn.functional.cross_entropy of the logits",
}

# The keyword under which generate() hands a cache on; it was another one before transformers 5.2x.
_CACHE = "cache" if "cache" in getattr(generation_utils, "ALL_CACHE_NAMES", ()) else "past_key_values"


@dataclass
class StepOutput(ModelOutput):
    """A step's output: ``logits`` [batch, positions, vocabulary], and the cache under the name that generate() uses."""

    logits: torch.Tensor | None = None


class _Encoder(torch.nn.Module):
    main_input_name = "input_ids"

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any) -> Any:
        """Returns ``last_hidden_state`` [batch, positions, hidden]."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        feeds = {"input_ids": input_ids, "attention_mask": mask}
        known = self._session.input_names
        outputs = self._session.run({name: value for name, value in feeds.items() if name in known}, kind="torch")
        return BaseModelOutput(last_hidden_state=next(iter(outputs.values())))


class OnnxModel(PreTrainedModel, GenerationMixin):
    """An ONNX model that transformers generates with. Made by from_onnx().

    Keys and values stay in sessions: generate() hands a KeptCache on, which says only how long they are. Each cache that
    is alive has a session of its own. A chat goes on with the cache of the result before
    (``return_dict_in_generate=True``), or with one from new_cache(); those of transformers are refused, and
    ``cache_implementation`` chooses nothing.

    >>> import torch, parallax
    >>> model = parallax.hf.from_onnx("models/llama-tiny")                                          # doctest: +SKIP
    >>> chat = model.new_cache()                                                                    # doctest: +SKIP
    >>> ids = model.generate(torch.tensor([[5, 17, 4]]), cache=chat, max_new_tokens=4)              # doctest: +SKIP
    >>> ids = model.generate(torch.cat([ids, torch.tensor([[9, 8]])], -1), cache=chat)              # doctest: +SKIP
    """

    config_class = PretrainedConfig
    main_input_name = "input_ids"
    _is_stateful = True

    def __init__(
        self, config: PretrainedConfig, models: Mapping[str, Model], executor: str = "cpu",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(config)
        options = options or {}
        self._models, self._executor = dict(models), executor
        first = models.get("merged") or models.get("decoder") or models.get("model")
        if first is None:
            raise Unsupported(f"there is no decoder among {', '.join(models)}; give the folder that holds both")
        self._decoder = Decoder(first, models.get("decoder_with_past"), executor, options)
        encoder = models.get("encoder")
        self.encoder = None if encoder is None else _Encoder(Session(encoder, executor, **options))
        self.timings: list[float] = []
        """Seconds of each step of the last generation, in a session."""

    def new_cache(self) -> KeptCache:
        """Returns an empty cache, which generate() and calls fill and go on with."""
        return KeptCache(self._decoder)

    @property
    def device(self) -> torch.device:
        """The device of inputs and logits."""
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """The element type of the logits that searches compute with."""
        return torch.float32

    def to(self, *args: Any, **options: Any) -> OnnxModel:  # type: ignore[override]
        """Returns the model. Raises UsageError for another device or type than it has."""
        for wanted in (*args, *options.values()):
            is_device = isinstance(wanted, (str, torch.device)) and torch.device(wanted).type != "cpu"
            if is_device or (isinstance(wanted, torch.dtype) and wanted is not torch.float32):
                raise UsageError(
                    f"{wanted} is asked for; the sessions stay as they are, with tensors of the host. "
                    "from_onnx(executor=...) chooses where they run, convert() makes a model in half precision"
                )
        return self

    def cuda(self, *_: Any, **__: Any) -> OnnxModel:  # type: ignore[override]
        """Raises UsageError: from_onnx(executor="cuda") runs on a GPU."""
        return self.to("cuda")

    def half(self, *_: Any) -> OnnxModel:
        """Raises UsageError: convert() makes a model in half precision."""
        return self.to(torch.float16)

    def save_pretrained(
        self, save_directory: str | os.PathLike[Any], *_: Any, force: bool = False, **__: Any
    ) -> None:
        """Writes the models and both configurations into a folder, from which from_onnx() makes the model again.

        Raises UsageError, before anything is written, for a folder that one of the models was read from and, without
        ``force``, for files that Parallax did not write; IoError.
        """
        folder = os.fsdecode(save_directory)
        read = [model.path for model in self._models.values()]
        paths = {role: os.path.join(folder, MODEL_FILES[role][0]) for role in self._models}
        for path in paths.values():
            _files.admit(path, force, read, has_data=True)
        os.makedirs(folder, exist_ok=True)
        with _files.filled_folder(folder, force, read) as configurations:
            self.config.save_pretrained(configurations)
            if self.generation_config is not None:
                self.generation_config.save_pretrained(configurations)
        for role, path in paths.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._models[role].save(path, force=force)

    def get_encoder(self, *_: Any, **__: Any) -> Any:
        """The encoder as a module; None of a decoder-only model."""
        return self.encoder

    @classmethod
    def can_generate(cls) -> bool:
        """True."""
        return True

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict[str, Any], generation_mode: Any, batch_size: int,
        max_cache_length: int,
    ) -> bool:
        for name in (*_NOT_RETURNED, "prefill_chunk_size"):
            _refuse(name, getattr(generation_config, name, None))
        given = self._kept(model_kwargs.get(_CACHE))
        if generation_config.use_cache is not False and self._decoder.has_cache and given is None:
            model_kwargs[_CACHE] = self.new_cache()
        self.timings = []
        return True

    def _reorder_cache(self, cache: KeptCache | None, beam_idx: torch.Tensor) -> KeptCache | None:
        if cache is not None:
            cache.reorder_cache(beam_idx.tolist())
        return cache

    def _kept(self, cache: Any) -> KeptCache | None:
        if cache is None:
            return None
        if not isinstance(cache, KeptCache):
            raise UsageError(
                f"the cache is a {type(cache).__name__}; it must be one of this model: new_cache() makes one, results "
                "have one with return_dict_in_generate=True"
            )
        if cache.decoder is not self._decoder:
            raise UsageError("the cache is another model's; it must be one of this model, as new_cache() makes it")
        return cache

    def prepare_inputs_for_generation(
        self,
        input_ids: torch.Tensor,
        *_: Any,
        attention_mask: torch.Tensor | None = None,
        encoder_outputs: Any = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The tokens that are not in the cache yet, the whole mask, and the cache."""
        cache = kwargs.get(_CACHE)
        done = 0 if cache is None else cache.get_seq_length()
        if self.config.is_encoder_decoder:
            name, tokens = "decoder_input_ids", input_ids[:, done:]
        else:  # ids are a part of the prompt where it is read in pieces, or where those before are not given again
            name = "input_ids"
            missing = (input_ids if attention_mask is None else attention_mask).shape[1] - done
            tokens = input_ids[:, max(0, input_ids.shape[1] - missing) :]
        if tokens.shape[1] == 0:
            raise UsageError(
                f"the cache holds {done} positions and there are {input_ids.shape[1]} tokens; at least one must follow "
                "those that it holds"
            )
        return {
            name: tokens, "attention_mask": attention_mask, "encoder_outputs": encoder_outputs, _CACHE: cache,
            "use_cache": kwargs.get("use_cache"),
        }  # fmt: skip

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        encoder_outputs: Any = None,
        cache: KeptCache | None = None,
        past_key_values: KeptCache | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
        **others: Any,
    ) -> Any:
        """One step; returns a StepOutput, or a tuple where ``return_dict`` is False.

        ``input_ids`` [batch, positions]: of a decoder, the tokens after those in the cache; of an encoder-decoder,
        ``input_ids`` and ``attention_mask`` are the encoder's, and ``decoder_input_ids`` the tokens. ``attention_mask``
        [batch, positions with those in the cache]. Without a cache a new one is made, unless ``use_cache`` is False.
        Raises UsageError (another model's cache; labels, embeddings and whatever else the models do not take),
        ExecutionError.
        """
        for name, value in others.items():
            _refuse(name, value)
        kept = self._kept(cache if cache is not None else past_key_values)
        if use_cache is None:
            use_cache = getattr(self.config, "use_cache", True)
        if kept is None and use_cache and self._decoder.has_cache:
            kept = self.new_cache()
        if self.encoder is not None:
            if encoder_outputs is None and input_ids is None:
                raise UsageError("the encoder's tokens are missing: input_ids, or encoder_outputs of an earlier call")
            if encoder_outputs is None:
                encoder_outputs = self.encoder(input_ids, attention_mask)
            tokens = decoder_input_ids
        else:
            tokens = input_ids
        if tokens is None:
            raise UsageError("the tokens of the step are missing: input_ids, or decoder_input_ids of an encoder-decoder")
        feeds = self._feeds(tokens, attention_mask, position_ids, encoder_outputs, kept)
        start = time.perf_counter()
        logits = self._decoder.step(feeds, kept, tokens.shape[0], tokens.shape[1])
        self.timings.append(time.perf_counter() - start)
        output = StepOutput(logits=logits)
        output[_CACHE] = kept
        return output.to_tuple() if return_dict is False else output

    def _feeds(
        self, tokens: torch.Tensor, mask: torch.Tensor | None, positions: torch.Tensor | None, encoder_outputs: Any,
        cache: KeptCache | None,
    ) -> dict[str, torch.Tensor]:
        tokens = tokens.long().contiguous()
        mask = None if mask is None else mask.long()
        if encoder_outputs is not None:
            states = encoder_outputs[0]
            if mask is None:
                mask = torch.ones(states.shape[:2], dtype=torch.int64)
            return {
                "input_ids": tokens, "decoder_input_ids": tokens, "encoder_hidden_states": states,
                "encoder_attention_mask": mask,
            }  # fmt: skip
        done = 0 if cache is None else cache.length
        if mask is None:
            mask = torch.ones((tokens.shape[0], done + tokens.shape[1]), dtype=torch.int64)
        if positions is None:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        return {
            "input_ids": tokens, "attention_mask": mask, "position_ids": positions.long().contiguous(),
            "cache_position": torch.arange(done, done + tokens.shape[1]),
        }  # fmt: skip

    def __repr__(self) -> str:
        parts = ", ".join(f"{role} {model.path!r}" for role, model in self._models.items())
        layers = f", {self._decoder.layers} layers with caches" if self._decoder.has_cache else ", no cache"
        return f"<parallax.hf.OnnxModel {self.config.model_type} on {self._executor}: {parts}{layers}>"


def _refuse(name: str, value: Any) -> None:
    if value is not None and value is not False:
        reason = _REASONS.get(name, "the models do not take it")
        if name in _NOT_RETURNED:
            reason = "the models return logits alone"
        raise UsageError(f"{name} is given; {reason}. Leave it out")


def from_onnx(source: Any, config: Any = None, *, executor: str = "cpu", **options: Any) -> OnnxModel:
    """Makes a model with transformers' generate() of ONNX models.

    ``source``: a folder (model.onnx; or encoder, decoder, decoder_with_past and merged models, also under Optimum's
    names), a file, what load() takes, or {role: model}. ``config``: a PretrainedConfig, or the folder of config.json and
    generation_config.json (default: ``source``). ``options``: those of Session. Raises UsageError, Unsupported (models
    that do not fit together), InvalidModel.

    >>> import torch, parallax
    >>> model = parallax.hf.from_onnx("models/t5")                                                  # doctest: +SKIP
    >>> model.generate(torch.tensor([[13, 22, 7, 1]]), num_beams=4, max_new_tokens=8).shape         # doctest: +SKIP
    torch.Size([1, 9])
    """
    models = find_models(source)
    if config is None and not isinstance(source, (str, os.PathLike)):
        raise UsageError("config is missing; models without a folder need a configuration of transformers, or its folder")
    settings, generation_settings = _configs(source if config is None else config)
    if settings.is_encoder_decoder != ("encoder" in models):
        kind = "an encoder-decoder" if settings.is_encoder_decoder else "a decoder-only"
        raise Unsupported(f"the configuration is of {kind} model; the models have the roles {', '.join(models)}")
    model = OnnxModel(settings, models, executor, options)
    if generation_settings is not None:
        model.generation_config = generation_settings
    model.eval()
    return model


def _configs(source: Any) -> tuple[PretrainedConfig, GenerationConfig | None]:
    if isinstance(source, PretrainedConfig):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        raise UsageError(
            f"config is {kind_of(source)}; it must be a configuration of transformers, or the folder of config.json"
        )
    folder = os.fspath(source) if os.path.isdir(source) else os.path.dirname(os.path.abspath(source))
    if not os.path.isfile(os.path.join(folder, "config.json")):
        raise UsageError(f"folder '{folder}' holds no config.json; give config=, a configuration of transformers")
    has_generation = os.path.isfile(os.path.join(folder, "generation_config.json"))
    return AutoConfig.from_pretrained(folder), GenerationConfig.from_pretrained(folder) if has_generation else None
