# SPDX-License-Identifier: Apache-2.0
"""hf.from_onnx as a user of transformers calls it: searches, sampling, chats, own loops, and what is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import generation_cases as cases
import parallax
import pytest
import torch
from transformers import DynamicCache
from transformers.generation import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

IDS = torch.tensor([[5, 17, 4, 9]])
ROWS = [[5, 17], [3, 8, 9, 10], [7, 7, 20]]


def sequences(model: Any, ids: torch.Tensor, **options: Any) -> torch.Tensor:
    torch.manual_seed(3)
    with torch.no_grad():
        return model.generate(ids, **{"max_new_tokens": 8, **options})


class Until(StoppingCriteria):
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        return torch.full((input_ids.shape[0],), input_ids.shape[1] >= 7)


class Favor(LogitsProcessor):
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores.clone()
        scores[:, 7] += 3
        return scores


SEARCHES: list[dict[str, Any]] = [
    {}, {"num_beams": 3, "num_return_sequences": 2}, {"num_beams": 2, "use_cache": False},
    {"do_sample": True, "num_return_sequences": 3, "top_k": 20, "temperature": 0.7}, {"do_sample": True, "num_beams": 3},
    {"no_repeat_ngram_size": 2, "repetition_penalty": 1.2}, {"stopping_criteria": StoppingCriteriaList([Until()])},
    {"logits_processor": LogitsProcessorList([Favor()]), "num_beams": 2},
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(SEARCHES)))
def test_searches_of_a_decoder(llama: tuple[Any, Path], at: int) -> None:
    model, folder = llama
    ours = parallax.hf.from_onnx(folder)
    ids, mask = cases.padded(ROWS, left=True)
    for prompt, options in ((IDS, {}), (ids, {"attention_mask": mask})):
        expected = sequences(model, prompt, **options, **SEARCHES[at])
        assert torch.equal(sequences(ours, prompt, **options, **SEARCHES[at]), expected)


@pytest.mark.parametrize("at", range(5))
def test_searches_of_an_encoder_decoder(t5: tuple[Any, Path], at: int) -> None:
    model, folder = t5
    ids, mask = cases.padded(ROWS, left=False)
    expected = sequences(model, ids, attention_mask=mask, **SEARCHES[at])
    for source in (folder, cases.merge(folder)):
        ours = parallax.hf.from_onnx(source, folder)
        assert torch.equal(sequences(ours, ids, attention_mask=mask, **SEARCHES[at]), expected)


def test_guidance_keeps_two_caches(llama: tuple[Any, Path]) -> None:
    expected = sequences(llama[0], IDS, guidance_scale=1.5)
    assert torch.equal(sequences(parallax.hf.from_onnx(llama[1]), IDS, guidance_scale=1.5), expected)


def test_a_streamer_sees_every_token(llama: tuple[Any, Path]) -> None:
    class Streamer:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def put(self, tokens: torch.Tensor) -> None:
            self.seen.append(tokens.tolist())

        def end(self) -> None:
            self.seen.append("end")

    theirs, ours = Streamer(), Streamer()
    sequences(llama[0], IDS, streamer=theirs)
    sequences(parallax.hf.from_onnx(llama[1]), IDS, streamer=ours)
    assert ours.seen == theirs.seen and ours.seen[-1] == "end"


def chat(model: Any, cache: Any, first: int) -> list[list[int]]:
    ids, turns = IDS, []
    for turn in range(3):
        ids = torch.cat([ids, torch.tensor([[first + turn, 12]])], -1)
        options = {} if cache is None else {"past_key_values": cache}
        ids = sequences(model, ids, max_new_tokens=3, eos_token_id=None, **options)
        turns.append(ids[0].tolist())
    return turns


def test_chats_side_by_side(llama: tuple[Any, Path]) -> None:
    model, folder = llama
    ours = parallax.hf.from_onnx(folder)
    expected = [chat(model, None, first) for first in (11, 40)]
    caches = [ours.new_cache(), ours.new_cache()]
    found: list[list[list[int]]] = [[], []]
    threads = [threading.Thread(target=lambda at=at, first=first: found[at].extend(chat(ours, caches[at], first)))
               for at, first in enumerate((11, 40))]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
    assert [cache.get_seq_length() for cache in caches] == [len(expected[0][-1]) - 1] * 2
    assert "18 positions" in repr(caches[0])


def test_a_result_keeps_its_cache(llama: tuple[Any, Path]) -> None:
    ours = parallax.hf.from_onnx(llama[1])
    first = sequences(ours, IDS, max_new_tokens=3, eos_token_id=None, return_dict_in_generate=True)
    sequences(ours, IDS + 1)  # another generation, with a cache of its own
    cache = first["cache"] if "cache" in first else first["past_key_values"]
    longer = torch.cat([first.sequences, torch.tensor([[11, 12]])], -1)
    again = sequences(ours, longer, past_key_values=cache)
    assert torch.equal(again, sequences(llama[0], longer))
    del first, cache
    assert len(ours._decoder._free) == 2  # the sessions of both caches wait for the next ones


def test_a_loop_of_ones_own(llama: tuple[Any, Path]) -> None:
    def loop(model: Any) -> list[int]:
        tokens, outputs = [], model(IDS, use_cache=True)
        for _ in range(5):
            token = outputs.logits[:, -1:].argmax(-1)
            tokens.append(token.item())
            outputs = model(token, past_key_values=outputs.past_key_values, use_cache=True)
        return tokens

    with torch.no_grad():
        expected = loop(llama[0])
    assert len(set(expected)) > 1
    ours = parallax.hf.from_onnx(llama[1])
    assert loop(ours) == expected
    logits, _ = ours(IDS, return_dict=False)
    assert torch.allclose(logits, llama[0](IDS).logits, atol=1e-3)
    assert torch.equal(ours(IDS.int(), use_cache=False).logits, logits)


def test_saved_models_are_found_again(llama: tuple[Any, Path], t5: tuple[Any, Path], tmp_path: Path) -> None:
    for at, (source, config) in enumerate(((llama[1], None), (t5[1], None), (cases.merge(t5[1]), t5[1]))):
        ours = parallax.hf.from_onnx(source, config)
        ours.save_pretrained(tmp_path / str(at))
        again = parallax.hf.from_onnx(tmp_path / str(at))
        assert torch.equal(sequences(again, IDS), sequences(ours, IDS))
        assert not (tmp_path / str(at) / "model.safetensors").exists()
    assert repr(ours).startswith("<parallax.hf.OnnxModel t5 on cpu: encoder '") and "merged" in repr(ours)


def test_what_sessions_cannot_do_is_one_sentence(llama: tuple[Any, Path]) -> None:
    ours, other = (parallax.hf.from_onnx(llama[1]) for _ in range(2))
    full = ours.new_cache()
    sequences(ours, IDS, max_new_tokens=1, past_key_values=full)
    for call, words in (
        (lambda: ours.generate(IDS, past_key_values=DynamicCache()), "a DynamicCache; it must be one of this model"),
        (lambda: ours(IDS, past_key_values=DynamicCache()), "new_cache() makes one"),
        (lambda: other.generate(IDS, past_key_values=full), "another model's"),
        (lambda: ours.generate(IDS, past_key_values=full), "the cache holds 4 positions and there are 4 tokens"),
        (lambda: ours.generate(IDS, output_attentions=True, return_dict_in_generate=True), "output_attentions is given"),
        (lambda: ours.generate(IDS, prefill_chunk_size=2), "prefill_chunk_size is given"),
        (lambda: ours(IDS, labels=IDS), "labels is given"), (lambda: ours(IDS, inputs_embeds=IDS), "inputs_embeds is given"),
        (lambda: ours(), "the tokens of the step are missing"),
        (lambda: ours.to("cuda"), "cuda is asked for"), (lambda: ours.cuda(), "from_onnx(executor=...)"),
        (lambda: ours.half(), "torch.float16 is asked for"),
        (lambda: parallax.hf.from_onnx(llama[1], 3), "config is an int"),
        (lambda: parallax.hf.from_onnx({"model": llama[1] / "model.onnx"}), "config is missing"),
        (lambda: parallax.hf.from_onnx({"foo": llama[1] / "model.onnx"}, llama[1]), "source has the role 'foo'"),
    ):
        with pytest.raises(parallax.UsageError) as caught:
            call()
        assert words in str(caught.value) and "\n" not in str(caught.value)
    assert ours.to("cpu").to(torch.float32) is ours
    cnn = Path(__file__).parents[4] / "samples" / "cnn" / "model.onnx"
    with pytest.raises(parallax.Unsupported, match="is no decoder: its inputs are image"):
        parallax.hf.from_onnx(cnn, llama[1])
