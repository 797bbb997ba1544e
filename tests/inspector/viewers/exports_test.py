# SPDX-License-Identifier: Apache-2.0
"""What --netron and --model-explorer write, next to the graphs that these viewers make of the model: every name is one of
theirs."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[2] / "samples"
MODELS = ["cnn", "greedy_decoder", "llama_layer", "recurrent", "scan_filter"]


@pytest.fixture(scope="module")
def netron(tmp_path_factory):
    """Its folder as a package of modules, which Node reads."""
    import netron as package
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    folder = tmp_path_factory.mktemp("netron")
    for file in Path(package.__file__).parent.iterdir():
        if file.suffix in (".js", ".json"):
            (folder / file.name).symlink_to(file)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


@pytest.fixture(scope="module", params=MODELS)
def exported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    model = SAMPLES / request.param / "model.onnx"
    command = [os.environ["PARALLAX_PROGRAM"], "run", str(model), "--with", "reference,cpu", "--inputs",
               str(SAMPLES / request.param / "test_data_set_0"), "--observe-all", "--netron", "n.json", "--model-explorer", "m.json"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return model, json.loads((folder / "n.json").read_text()), json.loads((folder / "m.json").read_text())


def test_netron_has_every_name(netron, exported):
    model, attachment, _ = exported
    ended = subprocess.run(["node", "--preserve-symlinks", str(HERE / "netron_names.mjs"), str(netron), str(model)],
                           capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    names = json.loads(ended.stdout)
    for kind in ("node", "value"):
        targets = {entry["target"] for part in ("metadata", "metrics") for entry in attachment[part] if entry["kind"] == kind}
        assert targets and targets <= set(names[kind])


def test_model_explorer_has_every_id_and_colors_the_main_graph(exported):
    from model_explorer_onnx.main import ONNXAdapter
    import onnx
    model, _, data = exported
    ids = {node.id for graph in ONNXAdapter().convert(str(model), {})["graphs"] for node in graph.nodes}
    assert set(data["results"]) <= ids
    graph = onnx.load(model).graph
    expected = {node.name for node in graph.node} | {f"[value] {value.name}" for value in (*graph.input, *graph.initializer, *graph.output)}
    assert set(data["results"]) == expected & ids
