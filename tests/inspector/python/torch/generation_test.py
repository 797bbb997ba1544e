# SPDX-License-Identifier: Apache-2.0
"""Tokens of Generator and of hf.from_onnx equal transformers' own: greedy, beams, padded batches, merged decoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import generation_cases as cases
import pytest
import torch

import parallax

GREEDY = {"max_new_tokens": 12}
BEAMS = {"max_new_tokens": 10, **cases.BEAMS}


@pytest.mark.parametrize("cache", ["in-place", "copy"])
def test_a_decoder_generates_what_transformers_does(llama: tuple[Any, Path], cache: str) -> None:
    model, folder = llama
    generator = parallax.Generator(folder, cache=cache)
    rows = cases.prompts(6, model.config.vocab_size)
    assert cases.compare(model, generator, rows, **GREEDY) == ["equal"] * 6
    assert cases.compare(model, generator, rows[:3], **BEAMS) == ["equal"] * 3
    assert cases.compare_batches(model, generator, rows, **GREEDY) == ["equal"] * 6


def test_an_encoder_decoder_and_its_merged_form(t5: tuple[Any, Path]) -> None:
    model, folder = t5
    rows = cases.prompts(6, model.config.vocab_size)
    for source in (folder, cases.merge(folder)):
        generator = parallax.Generator(source)
        assert generator.kind == "encoder-decoder"
        assert cases.compare(model, generator, rows, eos_token_id=1, pad_token_id=0, decoder_start_token_id=0, **GREEDY) == [
            "equal"
        ] * 6
        options = {"eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0, **BEAMS}
        assert cases.compare(model, generator, rows[:3], **options) == ["equal"] * 3
        assert cases.compare_batches(model, generator, rows, **options) == ["equal"] * 6


def test_transformers_generates_with_our_sessions(llama: tuple[Any, Path], t5: tuple[Any, Path]) -> None:
    models = [(*llama, None), (*t5, None), (t5[0], cases.merge(t5[1]), t5[0].config)]
    for model, source, config in models:
        ours = parallax.hf.from_onnx(source, config)
        ours.generation_config = model.generation_config
        rows = cases.prompts(3, model.config.vocab_size, seed=5)
        ids, mask = cases.padded(rows, left=not model.config.is_encoder_decoder)
        for options in (GREEDY, BEAMS, {**GREEDY, "use_cache": False}):
            expected = model.generate(ids, attention_mask=mask, do_sample=False, **options)
            assert torch.equal(ours.generate(ids, attention_mask=mask, do_sample=False, **options), expected)


def test_onnx_generate_of_example_scripts(llama: tuple[Any, Path]) -> None:
    from parallax.compat import onnx_generate

    model, folder = llama
    ids = torch.tensor(cases.prompts(1, model.config.vocab_size))
    _, session, feeds = onnx_generate(str(folder / "model.onnx"), ids, 2, max_new_tokens=2, return_session=True)
    assert "input_ids" in feeds
    expected = model.generate(ids, max_new_tokens=8, do_sample=False, eos_token_id=2)
    assert torch.equal(onnx_generate(session, ids, eos_token_id=2, max_new_tokens=8), expected)


def test_what_does_not_fit_is_one_sentence(llama: tuple[Any, Path], t5: tuple[Any, Path]) -> None:
    generator = parallax.Generator(llama[1])
    with pytest.raises(parallax.UsageError, match="200"):
        generator.generate([[5, 200]])
    with pytest.raises(parallax.UsageError, match="did you mean 'num_beams'"):
        generator.generate([[5]], num_beam=4)
    with pytest.raises(parallax.Error, match="input_ids"):
        parallax.Generator(Path(__file__).parents[4] / "samples" / "cnn" / "model.onnx")
    with pytest.raises(parallax.Unsupported, match="configuration"):
        parallax.hf.from_onnx(llama[1], t5[0].config)
