# SPDX-License-Identifier: Apache-2.0
"""The architectures of the transformers package at small widths with random weights: text, pictures, sound, detection.

TABLE names for each the classes of the model and of its configuration, its settings, and the inputs.
"""
from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn

WIDTH = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 64}
PICTURE = {"image_size": 32, "patch_size": 8}
DECODER = {"vocab_size": 64, "max_position_embeddings": 64}


class Row:
    """One architecture: classes by name, settings, and for each input its kind and shape."""

    def __init__(self, model: str, config: str, inputs: dict[str, tuple[int, ...]], optimizer: str = "", **settings: Any) -> None:
        self.model, self.config, self.inputs, self.optimizer, self.settings = model, config, inputs, optimizer, settings


IDS: dict[str, tuple[int, ...]] = {"input_ids": (2, 10)}
MASKED: dict[str, tuple[int, ...]] = {**IDS, "attention_mask": (2, 10)}
PIXELS: dict[str, tuple[int, ...]] = {"pixel_values": (1, 3, 32, 32)}
TABLE = {
    "bert": Row("BertModel", "BertConfig", MASKED, "bert", **WIDTH),
    "distilbert": Row("DistilBertModel", "DistilBertConfig", MASKED, "bert", vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    "roberta": Row("RobertaForSequenceClassification", "RobertaConfig", MASKED, "bert", **WIDTH),
    "albert": Row("AlbertModel", "AlbertConfig", MASKED, "bert", **WIDTH, embedding_size=16),
    "gpt2": Row("GPT2LMHeadModel", "GPT2Config", MASKED, "gpt2", vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=4),
    "neox": Row("GPTNeoXForCausalLM", "GPTNeoXConfig", MASKED, "gpt_neox", **WIDTH),
    "llama": Row("LlamaForCausalLM", "LlamaConfig", MASKED, "gpt2", **WIDTH, num_key_value_heads=2),
    "qwen": Row("Qwen2ForCausalLM", "Qwen2Config", MASKED, "gpt2", **WIDTH, num_key_value_heads=2),
    "gemma": Row("GemmaForCausalLM", "GemmaConfig", IDS, "gpt2", **WIDTH, num_key_value_heads=1, head_dim=8),
    "phi": Row("PhiForCausalLM", "PhiConfig", IDS, "phi", **WIDTH),
    "opt": Row("OPTForCausalLM", "OPTConfig", IDS, "gpt2", **DECODER, hidden_size=32, ffn_dim=48, num_hidden_layers=2,
               num_attention_heads=4, word_embed_proj_dim=32),
    "t5": Row("T5ForConditionalGeneration", "T5Config", {"input_ids": (1, 9), "decoder_input_ids": (1, 6)}, "t5", vocab_size=64, d_model=32,
              d_kv=8, d_ff=48, num_layers=2, num_heads=4),
    "bart": Row("BartForConditionalGeneration", "BartConfig", {"input_ids": (1, 9), "decoder_input_ids": (1, 6)}, "bart", **DECODER, d_model=32,
                encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48),
    "whisper": Row("WhisperModel", "WhisperConfig", {"input_features": (1, 16, 40), "decoder_input_ids": (1, 6)}, "bart", vocab_size=64, num_mel_bins=16,
                   d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                   decoder_ffn_dim=48, max_source_positions=20, max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                   decoder_start_token_id=1),
    "vit": Row("ViTForImageClassification", "ViTConfig", PIXELS, "vit", **PICTURE, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
               intermediate_size=48),
    "swin": Row("SwinModel", "SwinConfig", PIXELS, "swin", image_size=32, patch_size=2, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4),
    "segformer": Row("SegformerForSemanticSegmentation", "SegformerConfig", PIXELS, "vit", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1],
                     hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[2, 4], mlp_ratios=[2, 2], decoder_hidden_size=16),
    "yolos": Row("YolosForObjectDetection", "YolosConfig", PIXELS, "vit", hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                 intermediate_size=48, image_size=[32, 32], patch_size=8, num_detection_tokens=5, use_mid_position_embeddings=False),
    "clip": Row("CLIPVisionModelWithProjection", "CLIPVisionConfig", PIXELS, "clip", **PICTURE, hidden_size=32, num_hidden_layers=2,
                num_attention_heads=4, intermediate_size=48, projection_dim=16),
    "wav2vec": Row("Wav2Vec2ForCTC", "Wav2Vec2Config", {"input_values": (1, 480)}, "bert", **{**WIDTH, "vocab_size": 24}, conv_dim=[16, 16, 16],
                   conv_stride=[4, 2, 2], conv_kernel=[8, 3, 3], num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4),
    "spectrogram": Row("ASTForAudioClassification", "ASTConfig", {"input_values": (1, 32, 32)}, "vit", hidden_size=32, num_hidden_layers=2,
                       num_attention_heads=4, intermediate_size=48, patch_size=8, frequency_stride=8, time_stride=8, max_length=32, num_mel_bins=32),
}


class Positional(nn.Module):
    """The model with its inputs by position, and its float outputs alone."""

    def __init__(self, model: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(self.names, values, strict=True))
        outputs = self.model(**given, return_dict=False)
        return tuple(value for value in outputs if isinstance(value, Tensor))


def build(name: str) -> nn.Module:
    row = TABLE[name]
    config = getattr(transformers, row.config)(**row.settings, attn_implementation="eager")
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return Positional(getattr(transformers, row.model)(config), list(row.inputs))


def value_of(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Ids below 60, a mask that hides the last steps of all but the first row, or normal values."""
    if name.endswith("ids"):
        return torch.randint(3, 60, shape, generator=generator)
    if name.endswith("mask"):
        return (torch.arange(shape[1])[None] < shape[1] - 3 * torch.arange(shape[0])[:, None]).long()
    return torch.randn(shape, generator=generator)
