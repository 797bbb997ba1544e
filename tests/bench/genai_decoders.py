# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding by onnxruntime-genai: of a model with caches as it was exported, and of what its own builder makes.

Both give the same models to `parallax generate`. `missing_reason()` says in a sentence why it cannot be measured here.
"""

import contextlib
import io
import json
import statistics
import time
from pathlib import Path

import numpy as np
import onnx


def missing_reason():
    try:
        import onnxruntime_genai  # noqa: F401
    except ImportError as error:
        return f"onnxruntime-genai is not measured: {error}; it needs `pip install --no-deps onnxruntime-genai`"
    return None


def write_config(kind, model, folder):
    """genai_config.json in `folder` for the exported decoder of `model`, with links to its files."""
    graph = onnx.load(str(model / "model.onnx"), load_external_data=False).graph
    dims = next(value for value in graph.input if value.name == "past_key_values.0.key").type.tensor_type.shape.dim
    logits = next(value for value in graph.output if value.name == "logits").type.tensor_type.shape.dim
    layers = sum(value.name.startswith("past_key_values") and value.name.endswith(".key") for value in graph.input)
    inputs = {value.name: value.name for value in graph.input if not value.name.startswith("past_key_values")}
    past = {f"past_{part}_names": f"past_key_values.%d.{part}" for part in ("key", "value")}
    present = {f"present_{part}_names": f"present.%d.{part}" for part in ("key", "value")}
    decoder = {
        "filename": "model.onnx", "head_size": dims[3].dim_value, "num_key_value_heads": dims[1].dim_value,
        "num_attention_heads": dims[1].dim_value, "hidden_size": dims[1].dim_value * dims[3].dim_value,
        "num_hidden_layers": layers, "inputs": {**inputs, **past}, "outputs": {"logits": "logits", **present},
        "session_options": {"provider_options": []},
    }
    document = {
        "model": {"type": kind, "context_length": 4096, "vocab_size": logits[2].dim_value, "bos_token_id": 1,
                  "eos_token_id": 1, "pad_token_id": 0, "decoder": decoder},
        "search": {"do_sample": False, "max_length": 4096, "past_present_share_buffer": False},
    }
    for file in model.glob("model.onnx*"):
        (folder / file.name).symlink_to(file.resolve())
    (folder / "genai_config.json").write_text(json.dumps(document))


def build(model, folder):
    """A model of transformers as genai's builder writes it: GroupQueryAttention, one buffer for past and present."""
    import tokenizers
    import transformers
    from onnxruntime_genai.models import builder

    source = folder / "source"
    model.save_pretrained(source)
    words = {f"t{index}": index for index in range(model.config.vocab_size)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "t0"))  # the builder copies one
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(source)
    arguments = ("", str(source), str(folder / "built"), "fp32", "cpu", str(folder))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        builder.create_model(*arguments, **builder.parse_extra_options(*arguments, []))
    return folder / "built"


class GenaiDecoder:
    """A folder with genai_config.json, decoded greedily by onnxruntime-genai."""

    def __init__(self, folder: Path, threads):
        import onnxruntime_genai as genai

        self.genai = genai
        config = genai.Config(str(folder))
        options = {"intra_op_num_threads": threads, "log_severity_level": 3}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
        self.model = genai.Model(config)

    def run(self, prompt, new):
        """Median milliseconds of a step after the first, and the tokens."""
        parameters = self.genai.GeneratorParams(self.model)
        length = len(prompt) + new
        parameters.set_search_options(max_length=length, min_length=length, do_sample=False)
        generator = self.genai.Generator(self.model, parameters)
        generator.append_tokens(np.array([prompt], np.int32))
        times = []
        while not generator.is_done():
            start = time.perf_counter()
            generator.generate_next_token()
            times.append(1000 * (time.perf_counter() - start))
        return statistics.median(times[1:]), [int(token) for token in generator.get_sequence(0)[len(prompt):]]
