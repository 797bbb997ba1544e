# SPDX-License-Identifier: Apache-2.0
"""A model that gives back its inner values gives those that are captured of the model itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import parallax

SAMPLES = Path(__file__).parents[3] / "samples"


def test_values_of_the_main_graph_are_outputs_of_their_names(tmp_path: Path) -> None:
    model = parallax.load(SAMPLES / "cnn" / "model.onnx")
    image = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
    parallax.run(model, {"image": image}, executor="reference", dump=tmp_path / "a.plx", capture="all")
    outputs = parallax.Session(model.values_as_outputs(), "reference").run({"image": image})
    with parallax.open(tmp_path / "a.plx") as dump:
        computed = [entry.path for entry in dump.entries if entry.role == "output"]
        assert set(outputs) == set(computed)
        for path in computed:
            np.testing.assert_array_equal(outputs[path], dump[path].numpy())


def test_values_of_a_loop_are_sequences() -> None:
    model = parallax.load(SAMPLES / "greedy_decoder" / "model.onnx").values_as_outputs(["decode.body[*]//token"])
    onnx.checker.check_model(model.to_onnx())
    inputs, _ = parallax._core.make_inputs(model.core, str(SAMPLES / "greedy_decoder" / "test_data_set_0"))
    outputs = parallax.Session(model).run(inputs, kind="numpy")
    tokens = [int(item[0]) for item in outputs["decode.body[*]//token"]]
    assert tokens == outputs["tokens"].reshape(-1).tolist()


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(parallax.UsageError, match="did you mean 'linear'"):
        parallax.load(SAMPLES / "cnn" / "model.onnx").values_as_outputs(["liner"])
