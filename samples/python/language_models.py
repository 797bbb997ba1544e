# SPDX-License-Identifier: Apache-2.0
"""Small language models with random weights, exported for generation: what the scripts next to this file share.

Nothing is downloaded: the models come from configurations of transformers. `export_decoder` and `export_seq2seq` take
any model of those families, so that a real one is exported in the same way:

    export_decoder(AutoModelForCausalLM.from_pretrained("microsoft/phi-1_5"), "phi-1_5")
"""

import math
from pathlib import Path

import torch
import transformers
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

# hidden size, inner size, layers, heads, heads of keys and values, vocabulary, longest text
SIZES = {"tiny": (64, 128, 2, 4, 2, 200, 256), "small": (512, 1376, 6, 8, 4, 8000, 1024)}


def make_config(family, size="tiny"):
    """A configuration of `llama`, `phi`, `gpt2` or `t5`; token 1 ends a text, token 0 pads it."""
    hidden, inner, layers, heads, key_heads, vocabulary, longest = SIZES[size]
    tokens = {"eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}
    if family == "t5":
        return transformers.T5Config(
            d_model=hidden, d_ff=inner, d_kv=hidden // heads, num_layers=layers, num_decoder_layers=layers, num_heads=heads,
            vocab_size=vocabulary, dropout_rate=0.0, decoder_start_token_id=0, **tokens)
    if family == "gpt2":
        return transformers.GPT2Config(
            n_embd=hidden, n_inner=inner, n_layer=layers, n_head=heads, vocab_size=vocabulary, n_positions=longest,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=False, **tokens)
    kind = {"llama": transformers.LlamaConfig, "phi": transformers.PhiConfig}[family]
    return kind(
        hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=key_heads if family == "llama" else heads, vocab_size=vocabulary, max_position_embeddings=longest,
        tie_word_embeddings=False, **tokens)


def make_model(family, size="tiny", seed=0, dtype=torch.float32):
    """A model whose text depends on all of what came before: random weights, with strong attention and sharp logits."""
    torch.manual_seed(seed)
    kind = transformers.AutoModelForSeq2SeqLM if family == "t5" else transformers.AutoModelForCausalLM
    model = kind.from_config(make_config(family, size), attn_implementation="eager").eval()
    heads = {"lm_head.weight": 4.0, "shared.weight": 0.1}
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if parameter.ndim == 1:
                parameter.mul_(0).add_(0.0 if name.endswith("bias") else 1.0).add_(0.1 * torch.randn_like(parameter))
            else:
                is_table = any(part in name for part in ("embed", "wte", "wpe", "shared", "relative_attention"))
                parameter.copy_(torch.randn_like(parameter) * (1.0 if is_table else 1.5 / math.sqrt(parameter.shape[-1])))
                parameter.mul_(heads.get(name, 1.0))
            if name == "decoder.final_layer_norm.weight":
                parameter.mul_(10)
    return model.to(dtype)


class CausalStep(torch.nn.Module):
    """One step of a decoder: keys and values of each layer go in and come out as plain tensors."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, position_ids, past_key_values):
        cache = DynamicCache(list(zip(past_key_values[0::2], past_key_values[1::2], strict=True)))
        out = self.model(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache, use_cache=True)
        return out.logits, *(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))


class EncoderStep(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, input_ids, attention_mask):
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


class DecoderStep(torch.nn.Module):
    """One step of T5's decoder; of each layer first the keys and values of the text, then those of the encoder's states."""

    def __init__(self, model):
        super().__init__()
        self.decoder, self.lm_head = model.get_decoder(), model.lm_head
        self.scale = model.model_dim**-0.5 if getattr(model.config, "scale_decoder_outputs", True) else 1.0

    def forward(self, input_ids, encoder_hidden_states, encoder_attention_mask, past_key_values=None):
        past = past_key_values or []
        own, cross = (
            DynamicCache(list(zip(past[at::4], past[at + 1 :: 4], strict=True))) if past else DynamicCache() for at in (0, 2))
        cache = EncoderDecoderCache(own, cross)
        out = self.decoder(
            input_ids=input_ids, encoder_hidden_states=encoder_hidden_states, encoder_attention_mask=encoder_attention_mask,
            past_key_values=cache, use_cache=True)
        layers = zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers, strict=True)
        present = [tensor for a, b in layers for tensor in (a.keys, a.values, b.keys, b.values)]
        return self.lm_head(out.last_hidden_state * self.scale), *present


def export(module, inputs, axes, outputs, path, **options):
    """Writes `path`. `inputs` are those of one call, a list for a list of tensors; `axes` name dimensions in its shape."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [name for key in axes for name in (axes[key] if isinstance(inputs[key], list) else [key])]
    shapes = {key: list(axes[key].values()) if isinstance(inputs[key], list) else axes[key] for key in inputs}
    program = torch.onnx.export(
        module, kwargs=inputs, input_names=names, output_names=outputs, dynamic_shapes=shapes, dynamo=True, verbose=False,
        **options)
    program.save(str(path))


def write_configuration(model, folder):
    """config.json and generation_config.json: end tokens, start tokens, padding."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)


def export_decoder(model, folder, **options):
    """`folder`/model.onnx: input_ids, attention_mask, position_ids and a cache -> logits and the longer cache."""
    config, folder = model.config, Path(folder)
    layers, heads = config.num_hidden_layers, getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    past = [f"past_key_values.{at}.{kind}" for at in range(layers) for kind in ("key", "value")]
    inputs = {
        "input_ids": torch.randint(2, config.vocab_size, (2, 3)),
        "attention_mask": torch.ones(2, 8, dtype=torch.int64),
        "position_ids": torch.arange(5, 8).repeat(2, 1),
        "past_key_values": [torch.randn(2, heads, 5, size, dtype=model.dtype) for _ in past],
    }
    axes = {
        "input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "past_and_sequence"},
        "position_ids": {0: "batch", 1: "sequence"}, "past_key_values": {name: {0: "batch", 2: "past"} for name in past},
    }
    outputs = ["logits", *(name.replace("past_key_values", "present") for name in past)]
    export(CausalStep(model).eval(), inputs, axes, outputs, folder / "model.onnx", **options)
    write_configuration(model, folder)
    return folder


def export_seq2seq(model, folder, **options):
    """`folder`/encoder, decoder (the first step) and decoder_with_past (later steps), a model.onnx in each."""
    config, folder = model.config, Path(folder)
    kinds = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")
    past = [f"past_key_values.{at}.{kind}" for at in range(config.num_decoder_layers) for kind in kinds]
    outputs = ["logits", *(name.replace("past_key_values", "present") for name in past)]
    encoder, decoder = EncoderStep(model).eval(), DecoderStep(model).eval()
    source = {"input_ids": torch.randint(2, config.vocab_size, (2, 9)), "attention_mask": torch.ones(2, 9, dtype=torch.int64)}
    axes = {name: {0: "batch", 1: "encoder_sequence"} for name in source}
    export(encoder, source, axes, ["last_hidden_state"], folder / "encoder" / "model.onnx", **options)

    with torch.no_grad():
        states = {"encoder_hidden_states": encoder(**source), "encoder_attention_mask": source["attention_mask"]}
        first = {"input_ids": torch.randint(2, config.vocab_size, (2, 4)), **states}
        cache = list(decoder(**first)[1:])
    axes = {"input_ids": {0: "batch", 1: "sequence"}} | {name: {0: "batch", 1: "encoder_sequence"} for name in states}
    export(decoder, first, axes, outputs, folder / "decoder" / "model.onnx", **options)
    later = {"input_ids": torch.randint(2, config.vocab_size, (2, 3)), **states, "past_key_values": cache}
    axes["past_key_values"] = {name: {0: "batch", 2: "encoder_sequence" if "encoder" in name else "past"} for name in past}
    export(decoder, later, axes, outputs, folder / "decoder_with_past" / "model.onnx", **options)
    write_configuration(model, folder)
    return folder
