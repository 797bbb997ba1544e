"""transformers' generate() over ONNX models: any search, processor and criterion, with sessions of Parallax behind it.

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

from parallax._decoders import Decoder, KeptCache, find_models
from parallax.errors import Unsupported, UsageError
from parallax.session import Session

__all__ = ["OnnxModel", "StepOutput", "from_onnx"]

# The keyword under which generate() hands a cache on; it was another one before transformers 5.2x.
_CACHE = "cache" if "cache" in getattr(generation_utils, "ALL_CACHE_NAMES", ()) else "past_key_values"


@dataclass
class StepOutput(ModelOutput):
    """What a step returns: ``logits`` [batch, positions, vocabulary], and the cache under the name that generate() uses."""

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

    Keys and values stay in the session: generate() hands a KeptCache on, which says only how long they are. A model
    keeps the cache of its latest generation; continuing an older one raises UsageError.
    """

    config_class = PretrainedConfig
    main_input_name = "input_ids"
    _is_stateful = True

    def __init__(self, config: PretrainedConfig, decoder: Decoder, encoder: Session | None) -> None:
        super().__init__(config)
        self._decoder = decoder
        self.encoder = None if encoder is None else _Encoder(encoder)
        self.timings: list[float] = []
        """Seconds of each step of the last generation, in a session."""

    @property
    def device(self) -> torch.device:
        """Where inputs and logits are."""
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """Of the logits that searches compute with."""
        return torch.float32

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
        if generation_config.use_cache is not False and self._decoder.has_cache and model_kwargs.get(_CACHE) is None:
            model_kwargs[_CACHE] = KeptCache(self._decoder)
        self.timings = []
        return True

    def _reorder_cache(self, cache: Any, beam_idx: torch.Tensor) -> Any:
        cache.reorder_cache(beam_idx.tolist())
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
        name = "decoder_input_ids" if self.config.is_encoder_decoder else "input_ids"
        done = 0 if cache is None else cache.get_seq_length()
        return {
            name: input_ids[:, done:], "attention_mask": attention_mask, "encoder_outputs": encoder_outputs, _CACHE: cache
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
        **_: Any,
    ) -> StepOutput:
        """One step. Of an encoder-decoder ``input_ids`` and ``attention_mask`` are the encoder's."""
        kept = cache if cache is not None else past_key_values
        if self.encoder is not None:
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
        return output

    def _feeds(
        self, tokens: torch.Tensor, mask: torch.Tensor | None, positions: torch.Tensor | None, encoder_outputs: Any,
        cache: KeptCache | None,
    ) -> dict[str, torch.Tensor]:
        tokens = tokens.contiguous()
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
            "input_ids": tokens, "attention_mask": mask, "position_ids": positions.contiguous(),
            "cache_position": torch.arange(done, done + tokens.shape[1]),
        }  # fmt: skip


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
    settings, generation_settings = _configs(source if config is None else config)
    first = models.get("merged") or models.get("decoder") or models.get("model")
    if first is None:
        raise Unsupported(f"there is no decoder among {', '.join(models)}; give the folder that holds both")
    later = models.get("decoder_with_past")
    encoder = models.get("encoder")
    if settings.is_encoder_decoder != (encoder is not None):
        kind = "an encoder-decoder" if settings.is_encoder_decoder else "decoder-only"
        raise Unsupported(f"the configuration is of {kind} model; there are the models {', '.join(models)}")
    decoder = Decoder(first, later, executor, options)
    model = OnnxModel(settings, decoder, None if encoder is None else Session(encoder, executor, **options))
    if generation_settings is not None:
        model.generation_config = generation_settings
    model.eval()
    return model


def _configs(source: Any) -> tuple[PretrainedConfig, GenerationConfig | None]:
    if isinstance(source, PretrainedConfig):
        return source, None
    if not isinstance(source, (str, os.PathLike)) or isinstance(source, Mapping):
        raise UsageError("config is missing; it must be a configuration of transformers, or the folder of config.json")
    folder = os.fspath(source) if os.path.isdir(source) else os.path.dirname(os.path.abspath(source))
    if not os.path.isfile(os.path.join(folder, "config.json")):
        raise UsageError(f"folder '{folder}' holds no config.json; give config=, a configuration of transformers")
    has_generation = os.path.isfile(os.path.join(folder, "generation_config.json"))
    return AutoConfig.from_pretrained(folder), GenerationConfig.from_pretrained(folder) if has_generation else None
