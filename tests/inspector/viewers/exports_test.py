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
MODELS = ["cnn", "greedy_decoder", "llama_layer", "recurrent", "scan_filter", "odd names"]


def write_odd_names(path):
    """Nodes without a name, and with one that comes again; a value whose name has two slashes."""
    import onnx
    from onnx import helper
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["b"], name="twin"), helper.make_node("Abs", ["b"], ["c//d"], name="twin"),
             helper.make_node("Neg", ["c//d"], ["e"]), helper.make_node("Relu", ["e"], ["y"], name="last")]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


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
    folder = tmp_path_factory.mktemp("exported")
    is_sample = request.param != "odd names"
    model = SAMPLES / request.param / "model.onnx" if is_sample else write_odd_names(folder / "odd.onnx")
    inputs = ["--inputs", str(SAMPLES / request.param / "test_data_set_0")] if is_sample else []
    command = [os.environ["PARALLAX_PROGRAM"], "run", str(model), "--with", "reference,cpu", *inputs, "--observe-all",
               "--netron", "n.json", "--model-explorer", "m.json"]
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
    values = {f"[value] {value.name}" for value in (*graph.input, *graph.initializer, *graph.output)}
    colored = set(data["results"])
    assert {key for key in colored if key.startswith("[value] ")} == values & ids
    assert len(colored - values) == len(graph.node)
