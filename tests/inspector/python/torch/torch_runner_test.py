# SPDX-License-Identifier: Apache-2.0
"""The runner of torch: programs of files and functions, under the names of the model that was exported from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import conversion_models
import numpy as np
import parallax
import pytest
import torch
from onnx import helper
from runner_client import runner

HERE = Path(__file__).parent


def saved(name: str, folder: Path) -> tuple[Path, Path, dict[str, Any], list[str]]:
    """The model, the program's file, the inputs and all values of the model's nodes."""
    made = conversion_models.exported(name)
    program = made.program.exported_program
    model, file = folder / "model.onnx", folder / "program.pt2"
    made.program.save(model)
    torch.export.save(program, file)
    nodes = parallax.load(model).nodes
    inputs = dict(zip([value.name for value in parallax.load(model).inputs], made.args, strict=False))
    arrays = {name: value.numpy() if isinstance(value, torch.Tensor) else np.array(value) for name, value in inputs.items()}
    return model, file, arrays, [name for node in nodes for name in node.outputs if name]


@pytest.mark.parametrize("name", ["mlp", "cnn", "block"])
def test_an_exported_program_of_a_file(name: str, tmp_path: Path) -> None:
    model, file, inputs, wanted = saved(name, tmp_path)
    with runner(tmp_path, "torch", str(file)) as client:
        answer = client.ask("describe", protocol=1)
        assert (answer["name"], answer["version"], answer["observes"]) == ("torch", torch.__version__, True)
        assert client.load(model, threads=1) == {}
        answer = client.run(wanted, inputs)
    assert answer.get("milliseconds", 0) > 0, answer
    parallax.run(model, inputs, executor="reference", dump=tmp_path / "reference.plx", capture="all")
    comparison = parallax.diff(tmp_path / "reference.plx", answer["answer"])
    assert comparison.verdict == "pass", comparison.to_dict()["first_divergence"]
    assert comparison.summary.compared >= 5
    with parallax.open(answer["answer"]) as dump:
        assert set(dump) <= set(wanted)
        assert {output.name for output in parallax.load(model).outputs} <= set(dump)


@pytest.mark.parametrize("function", ["mlp_module", "mlp_program"])
def test_a_function_that_returns_a_module_or_a_program(function: str, tmp_path: Path) -> None:
    """Built anew with the same seed, in a Python of its own."""
    (tmp_path / "nets.py").write_text(
        "import torch, conversion_models\n"
        "def mlp_module():\n"
        "    torch.manual_seed(5)\n"
        "    return conversion_models.Mlp().eval()\n"
        "def mlp_program():\n"
        "    return torch.export.export(mlp_module(), (torch.ones(2, 16),))\n"
    )
    torch.manual_seed(5)
    net = conversion_models.Mlp().eval()
    model = tmp_path / "model.onnx"
    program = torch.onnx.export(net, (torch.ones(2, 16),), dynamo=True, verbose=False)
    assert program is not None
    program.save(model)
    inputs = {"x": np.random.default_rng(1).standard_normal((2, 16)).astype(np.float32)}
    wanted = [name for node in parallax.load(model).nodes for name in node.outputs if name]
    path = f"{tmp_path}:{HERE}:{Path(parallax.__file__).parents[1]}"
    with runner(tmp_path, "torch", f"nets:{function}", PYTHONPATH=path) as client:
        assert client.load(model) == {}
        answer = client.run(wanted, inputs)
        assert "answer" in answer, answer
    parallax.run(model, inputs, executor="reference", dump=tmp_path / "reference.plx", capture="all")
    comparison = parallax.diff(tmp_path / "reference.plx", answer["answer"])
    assert comparison.verdict == "pass"
    assert comparison.summary.compared >= 4


def test_a_wrong_export_is_localized(tmp_path: Path) -> None:
    """An attribute of the ONNX graph is changed after the export."""
    model, file, inputs, wanted = saved("cnn", tmp_path)
    graph = parallax.load(model).to_onnx()
    softmax = next(node for node in graph.graph.node if node.op_type in ("LogSoftmax", "Softmax"))
    del softmax.attribute[:]
    softmax.attribute.append(helper.make_attribute("axis", 0))
    model.write_bytes(graph.SerializeToString())
    with runner(tmp_path, "torch", str(file)) as client:
        client.load(model)
        answer = client.run(wanted, inputs)
    parallax.run(model, inputs, executor="reference", dump=tmp_path / "reference.plx", capture="all")
    comparison = parallax.diff(tmp_path / "reference.plx", answer["answer"])
    assert comparison.verdict == "diverged"
    assert comparison.causes[0].node == softmax.name


def test_requests_that_make_no_sense(tmp_path: Path) -> None:
    model, file, inputs, _ = saved("mlp", tmp_path)
    with runner(tmp_path, "torch", "nothing") as client:
        failure = client.ask("describe", protocol=1)
        assert failure["code"] == "usage" and "it must be torch:FILE.pt2 or torch:MODULE:FUNCTION" in failure["error"]
    with runner(tmp_path, "torch", "no_such_module:net") as client:
        failure = client.load(model)
        assert failure["code"] == "usage" and "No module named 'no_such_module'" in failure["error"]
    with runner(tmp_path, "torch", str(file)) as client:
        client.load(model)
        assert "lacks an input" in client.run([], {})["error"]
        name = next(iter(inputs))
        failure = client.run([], {name: inputs[name][..., :3]})
        assert failure["code"] in ("usage", "execution")
        assert client.close() == 0


def test_the_identity_of_a_program_covers_its_file(tmp_path: Path) -> None:
    from parallax.sweep.content import Hashes
    from parallax.sweep.identity import identity_of

    file = tmp_path / "program.pt2"
    executor = f"torch:{file}"
    assert identity_of(executor, Hashes()) == ""  # there is no such file
    identities = []
    for content in (b"one", b"two", b"one"):
        file.write_bytes(content)
        identities.append(identity_of(executor, Hashes()))
    assert torch.__version__ in identities[0] and identities[0] == identities[2] != identities[1]
    assert identity_of("torch:nets:net", Hashes()) == ""  # what a function gives is not in it
