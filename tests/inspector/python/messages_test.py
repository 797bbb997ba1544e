# SPDX-License-Identifier: Apache-2.0
"""A wrong call raises a UsageError of one sentence, which names arguments and never an option of the program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import parallax
import pytest
from parallax._sentences import kind_of, size_text, translated

SAMPLES = Path(__file__).parents[3] / "samples"
CNN = str(SAMPLES / "cnn" / "model.onnx")
DECODER, FIRST = (str(SAMPLES / "decoder" / f"{name}.textproto") for name in ("model", "first_step"))
PAIRS = [("past_key_values.0.key", "present.0.key")]


@pytest.fixture(scope="module")
def generator() -> parallax.Generator:
    return parallax.Generator(DECODER)


def failure_of(call: Any) -> str:
    with pytest.raises(parallax.UsageError) as caught:
        call()
    sentence = str(caught.value)
    assert "\n" not in sentence and not re.search(r"(?<![\w-])--[a-z]", sentence), sentence
    return sentence


@pytest.mark.parametrize(("call", "words"), [
    (lambda: parallax.audit_fp16(CNN, 3), "inputs is 3; it must be a list of input sets"),
    (lambda: parallax.audit_fp16(CNN, [3]), "an input set is 3"),
    (lambda: parallax.audit_fp16(CNN, to="int8"), "to is 'int8'; it must be float16 or bfloat16"),
    (lambda: parallax.audit_fp16(CNN, executor="gpu"), "executor is 'gpu'"),
    (lambda: parallax.audit_fp16(CNN, executor=("cpu",)), "executor is a tuple; it must be a str"),
    (lambda: parallax.audit_fp16(CNN, feeds="x"), "feeds is 'x'; it must be OTHER.onnx:OUT=IN"),
    (lambda: parallax.audit_fp16(CNN, feeds=3), "feeds is 3; it must be a str, or a list of them"),
    (lambda: parallax.audit_fp16(CNN, tolerance=-1), "tolerance is -1; it must be a number, 0 or more"),
    (lambda: parallax.audit_fp16(CNN, lambda: None), "until_stable is 0"),
    (lambda: parallax.convert(CNN, to=16), "to is 16; it must be a str"),
    (lambda: parallax.convert(CNN, keep=3), "keep is 3"),
    (lambda: parallax.convert(CNN, keep=["a", 3]), "keep has 3 in it"),
    (lambda: parallax.convert(CNN, keep="nothing"), "keep='nothing' matches no node"),
    (lambda: parallax.convert(CNN, verify=True), "verify is True; it must be a str or a path"),
    (lambda: parallax.convert(CNN, output=3), "output is 3; it must be a str or a path"),
    (lambda: parallax.merge_decoders(FIRST, DECODER, verify=1), "verify is 1"),
    (lambda: parallax.merge_decoders(FIRST, DECODER, condition=1), "condition is 1; it must be a str"),
    (lambda: parallax.convert(np.zeros(3)), "the model is a numpy.ndarray"),
])  # fmt: skip
def test_jobs_that_make_models(call: Any, words: str) -> None:
    assert words in failure_of(call)


@pytest.mark.parametrize(("options", "words"), [
    ({"states": [3]}, "states has 3; each must be (input, output)"),
    ({"states": 3}, "states is 3; it must be a list of (input, output)"),
    ({"states": {"a": "b"}}, "states is a dict"),
    ({"states": [(1, 2)]}, "states has (1, 2)"),
    ({"states": [("a", "b", "c")]}, "an axis of states is 'c'; it must be a whole number"),
    ({"executor": 3}, "executor is 3"), ({"memory_limit": 0.5}, "memory_limit is 0.5"),
    ({"seed": "x"}, "seed is 'x'"), ({"tf32": 1}, "tf32 is 1; it must be True or False"),
    ({"threads": "x"}, "threads is 'x'"), ({"rewrite": 3}, "rewrite is 3"),
])  # fmt: skip
def test_options_of_a_session(options: dict[str, Any], words: str) -> None:
    assert words in failure_of(lambda: parallax.Session(DECODER, **options))


def test_states_of_a_session() -> None:
    session = parallax.Session(DECODER, states=PAIRS)
    for call, words in (
        (lambda: session.reset_states("x"), "batch is 'x'"),
        (lambda: session.reset_states(1, "x"), "capacity is 'x'"),
        (lambda: session.reorder_states(3), "rows is 3; it must be a list"),
        (lambda: session.reorder_states(["a"]), "rows is 'a'"),
        (lambda: session.state(1), "state 1 is not there; it must be 0 to 0"),
        (lambda: session.state(-1), "state -1 is not there"),
        (lambda: session.state(None), "which is None"),
        (lambda: session.set_state(7, np.zeros(3)), "state 7 is not there"),
        (lambda: session.clone().state(1), "state 1 is not there"),
    ):
        assert words in failure_of(call)


@pytest.mark.parametrize(("model", "options", "words"), [
    ({"foo": DECODER}, {}, "model has the role 'foo'; a role must be one of encoder, merged, decoder"),
    ({3: DECODER}, {}, "model has the role 3"),
    ({}, {}, "model has no model; a decoder must be there"),
    ({"encoder": DECODER}, {}, "model has an encoder alone"),
    (DECODER, {"against": {"foo": DECODER}}, "against has the role 'foo'"),
    (DECODER, {"against": 3}, "the model is an int"),
    (DECODER, {"executor": 3}, "executor is 3; it must be a str, or a list of them"),
    (DECODER, {"cache": "all"}, "cache is 'all'; it must be auto, in-place, copy or none"),
    (DECODER, {"roles": {"logits": "foo"}}, "roles gives the role 'logits' to 'foo'"),
    (DECODER, {"roles": {"logits": 3}}, "roles is {'logits': 3}"),
    (DECODER, {"roles": [3]}, "roles is a list"),
    (DECODER, {"memory_limit": "x"}, "memory_limit: 'x' is no number of bytes"),
    (DECODER, {"threads": "x"}, "threads is 'x'"), (DECODER, {"time_limit": 0}, "time_limit is '0.0'; it must be"),
])  # fmt: skip
def test_options_of_a_generator(model: Any, options: dict[str, Any], words: str) -> None:
    assert words in failure_of(lambda: parallax.Generator(model, **options))


def test_a_model_without_a_decoder_names_roles() -> None:
    with pytest.raises(parallax.Unsupported, match="no input is input_ids; roles names it"):
        parallax.Generator(CNN)


@pytest.mark.parametrize(("options", "words"), [
    ({"input_ids": None}, "input_ids are missing"), ({"input_ids": []}, "input_ids has no row"),
    ({"input_ids": 3}, "input_ids is 3; it must be [rows, positions]"), ({"input_ids": "abc"}, "input_ids is 'abc'"),
    ({"input_ids": [[1.5]]}, "input_ids has elements that are no whole numbers"),
    ({"attention_mask": [[1, 2]]}, "attention_mask has 2 in row 0"),
    ({"attention_mask": [[0, 0]]}, "attention_mask has no 1 in row 0"),
    ({"max_length": 9}, "'max_length': max_new_tokens counts the new tokens"),
    ({"min_length": 9}, "'min_length': min_new_tokens counts"),
    ({"streamer": object()}, "'streamer': on_step is called"),
    ({"stopping_criteria": []}, "parallax.hf.from_onnx(...).generate()"),
    ({"cache": "copy"}, "cache is an argument of Generator"), ({"num_beam": 2}, "did you mean 'num_beams'"),
    ({"max_new_tokens": 0}, "max_new_tokens is 0; it must be at least 1"),
    ({"max_new_tokens": 2, "min_new_tokens": 3}, "min_new_tokens=3 is more than max_new_tokens=2"),
    ({"num_return_sequences": 2}, "num_return_sequences=2 asks for more sequences than there are beams (1); num_beams=N"),
    ({"temperature": 0.5}, "add do_sample=True"), ({"length_penalty": 2.0}, "add num_beams=N"),
    ({"seed": -1}, "seed is -1; it must be a whole number from 0"),
    ({"expect": 3}, "expect is 3"), ({"policy": 3}, "policy is 3; it must be a mapping"),
    ({"policy": {"rtoll": 1}}, "did you mean 'rtol'"), ({"policy": {"rtol": 1}}, "policy is given and there is one side"),
    ({"capture": "all"}, "capture is given and there is one side"), ({"only": "x"}, "only is given and there is one side"),
    ({"on_step": 3}, "on_step is 3; it must be a function"),
    ({"prompt": "a", "input_ids": None}, "tokenizer is missing"), ({"prompt": "a", "tokenizer": str}, "exclude each other"),
])  # fmt: skip
def test_options_of_a_generation(generator: parallax.Generator, options: dict[str, Any], words: str) -> None:
    assert words in failure_of(lambda: generator.generate(**{"input_ids": [[5, 6]], **options}))


def test_a_generator_that_is_open_takes_no_options_of_opening(generator: parallax.Generator) -> None:
    for options in ({"executor": "reference"}, {"cache": "none"}):
        words = f"{next(iter(options))} is given with a Generator, which is open already"
        assert words in failure_of(lambda options=options: parallax.generate(generator, [[5]], **options))
    assert "did you mean 'executor'" in failure_of(lambda: parallax.generate(DECODER, [[5]], exector="cpu"))


@pytest.mark.parametrize(("sentence", "expected"), [
    ("give --dim or --shape x=...", "give dims or shapes={'x': ...}"),
    ("give --range ids=0..199, or --input ids=F.npy", "give ranges={'ids': (0, 199)}, or inputs={'ids': array}"),
    ("--shape x=1x3x4 contradicts --dim b=2", "shapes={'x': (1, 3, 4)} contradicts dims={'b': 2}"),
    ("it has no kernel; --fallback=reference runs it", "it has no kernel; fallback='reference' runs it"),
    ("use --cache copy", "use cache='copy'"), ("leave --tf32 off", "leave tf32 off"), ("--tf32=on is", "tf32=True is"),
    ("nothing is fused away (--observe-all)", "nothing is fused away (observe_all=True)"),
    ("merge-decoders: x", "merge_decoders: x"),
    ("check it with: parallax test part --with cpu", "check it with: parallax test part --with cpu"),
    ("`parallax rewrite --list` names them", "`parallax rewrite --list` names them"),
    ("tensor 'a--seed' and --seed-file stay", "tensor 'a--seed' and --seed-file stay"),
])  # fmt: skip
def test_options_are_named_as_arguments(sentence: str, expected: str) -> None:
    assert translated(sentence) == expected


def test_one_executor_and_two() -> None:
    assert translated("give --with one name", "run") == "give executor one name"
    assert translated("give --with one name", "compare") == "give executors one name"


def test_errors_of_other_jobs_name_arguments() -> None:
    assert failure_of(lambda: parallax.run(CNN, only="x")).startswith("only chooses what is captured")
    assert failure_of(lambda: parallax.run(CNN, rewrite="fast")).startswith("rewrite: 'fast' is none of")


def test_values_in_sentences() -> None:
    assert [kind_of(value) for value in (None, 3, "a", np.zeros(1), {})] == [
        "None", "an int", "a str", "a numpy.ndarray", "a dict"]  # fmt: skip
    texts = [size_text(count) for count in (12, 4096, 2_500_000, 3_000_000_000)]
    assert texts == ["12 bytes", "4.1 kB", "2.5 MB", "3.0 GB"]
