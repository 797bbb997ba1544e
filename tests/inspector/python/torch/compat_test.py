# SPDX-License-Identifier: Apache-2.0
"""Names of example scripts: backends, options, tables, the flows of a fused Llama and of a trained network."""

import copy
import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch
from example_script import run_example
from torch._dynamo.backends.common import aot_autograd
from torch_models import Attention, Mlp, assert_same

import parallax
from parallax import compat

SAMPLES = Path(__file__).parents[4] / "samples" / "python"
EXAMPLES = os.environ.get("PARALLAX_EXAMPLES")  # a folder with the pages of the examples, which are not part of the tree
SETS = ["default", "default+onnxruntime", "default+onnxruntime+experimental"]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def sample(name):
    spec = importlib.util.spec_from_file_location(name, SAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def custom_ops(model):
    return sum(node.domain != "" for node in model.graph.node)


class Layer(torch.nn.Module):
    """Attention, a residual, a norm and a gated network, as a Llama's layer has them."""

    def __init__(self, width=16):
        super().__init__()
        self.attention, self.norm = Attention(width), torch.nn.RMSNorm(width)
        self.gate, self.up = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

    def forward(self, x):
        y = x + self.attention(x)
        z = self.norm(y)
        return y + torch.nn.functional.silu(self.gate(z)) * self.up(z)


def test_sets_of_patterns_on_a_transformer_layer(tmp_path):
    model = Layer()
    ids = torch.randn(2, 5, 16)
    counts = []
    with torch.no_grad():
        want = model(ids)
        for name in SETS:
            torch._dynamo.reset()
            storage = {}
            options = compat.OptimizationOptions(constant_folding=True, patterns=name, verbose=0, processor="CPU")
            backend = lambda *args, **kwargs: compat.onnx_custom_backend(  # noqa: E731
                *args, target_opset=18, verbose=0, options=options, optimize=True, storage=storage,
                dump_prefix=str(tmp_path / name.replace("+", "_")), **kwargs)
            ours = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
            assert_same(ours(ids), want)
            counts.append(custom_ops(storage["instance"][0]["onnx"]))
            assert storage["instance"][0]["providers"] == ["CPUExecutionProvider"]
    assert counts[0] == 0 < counts[1] <= counts[2]
    assert (tmp_path / "default_0_inference.onnx").exists()


@pytest.mark.parametrize(("dynamic", "graphs"), [(False, 4), (True, 2)])
def test_training_through_aot_autograd(dynamic, graphs):
    storage = {}
    compiler = aot_autograd(
        fw_compiler=lambda *args, **kwargs: compat.onnx_custom_backend(*args, target_opset=18, storage=storage, **kwargs),
        decompositions=compat.get_decomposition_table())
    model = Mlp()
    eager = copy.deepcopy(model)
    ours = torch.compile(model, backend=compiler, fullgraph=True, dynamic=dynamic)
    for batch in (5, 5, 2):
        x, losses = torch.randn(batch, 10), []
        for run in (eager, ours):
            run.zero_grad()
            losses.append(run(x).pow(2).mean())
            losses[-1].backward()
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(model.layers[0].weight.grad, eager.layers[0].weight.grad, rtol=1e-5, atol=1e-5)
    assert len(storage["instance"]) == graphs
    for graph in storage["instance"]:
        text = compat.pretty_onnx(graph["onnx"])
        assert "opset: domain='' version=18" in text and text.count("input: name=") == len(graph["inputs"])
        assert ("input_dim_" in text) == dynamic


def test_tables_of_decompositions():
    table = compat.get_decomposition_table()
    kept = compat.filter_decomposition_table(table, lambda operator: "gelu" in str(operator))
    assert 0 < len(kept) < len(table)
    options = compat.ExportOptions(decomposition_table=table)
    compiler = aot_autograd(fw_compiler=lambda *a, **k: compat.onnx_custom_backend(*a, export_options=options, **k))
    model = Mlp()
    x = torch.randn(3, 10)
    result = torch.compile(copy.deepcopy(model), backend=compiler, fullgraph=True)(x)
    assert_same(result, model(x))


def test_debug_backend_shows_intermediate_values(capsys):
    model = Mlp()
    x = torch.randn(3, 10)
    ours = torch.compile(model, backend=lambda *a, **k: compat.onnx_debug_backend(*a, verbose=(0, 1), **k))
    with torch.no_grad():
        assert_same(ours(x), model(x))
    shown = capsys.readouterr().out
    assert "+ relu: " in shown and "s3x32[0.0," in shown


def test_transforms_get_protos():
    seen = []

    def transform(proto):
        seen.append(type(proto).__name__)
        return proto

    backend = lambda *a, **k: compat.onnx_custom_backend(*a, pre_ort_model_transforms=transform, **k)  # noqa: E731
    torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2))
    assert seen == ["ModelProto"]


def test_options_are_checked():
    assert compat.OptimizationOptions(patterns=None).pattern_set() == "none"
    assert compat.OptimizationOptions(patterns=["gelu", "swish"], constant_folding=False).pattern_set() == "gelu,swish,-constant-folding"
    with pytest.raises(parallax.UsageError, match="there is no set of patterns 'experimental'"):
        compat.OptimizationOptions(patterns="experimental").pattern_set()


def test_command_line_of_scripts():
    parse = lambda *words, **more: compat.get_parsed_args("s", config=("medium", "size"), layers=(1, "n"), new_args=list(words), **more)  # noqa: E731
    assert vars(parse("--config", "large", expose="config,layers")) == {"config": "large", "layers": 1}
    assert parse("--config", "3", expose="config").config == 3
    assert vars(parse(expose="number,config", number=7)) == {"number": 7, "config": "medium", "layers": 1}


def test_sample_of_training_with_free_shapes(capsys, tmp_path):
    assert sample("train_mlp").main(["--epochs", "2", "--dot", str(tmp_path / "graph"), "--dynamic"]) == 0
    assert "2 graphs were compiled" in capsys.readouterr().out
    assert len(list(tmp_path.glob("graph_*.dot"))) == 2


@pytest.mark.skipif(EXAMPLES is None, reason="PARALLAX_EXAMPLES names no folder with the examples' pages")
def test_example_of_fusion_word_for_word(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)  # the script calls it on machines without CUDA, too
    monkeypatch.setattr(sys, "argv", ["example"])
    page = next(Path(EXAMPLES).glob("000_*")).read_text()
    sizes = [("batch, seq, vocab_size = 2, 1024, 1024", "batch, seq, vocab_size = 2, 16, 64"),
             ("intermediate_size = 1024", "intermediate_size = 48"), ("hidden_size=4096", "hidden_size=32"),
             ("num_attention_heads=32", "num_attention_heads=4"), ("= 10 if config", "= 1 if config"), ("else 5\n", "else 1\n"),
             ("else 25", "else 2")]
    times = run_example(page, sizes)["times"]
    assert [row["optium"] for row in times] == ["eager", *SETS]
    counts = [row["n_custom_ops"] for row in times[1:]]
    assert counts[0] == 0 < counts[1] <= counts[2]


@pytest.mark.skipif(EXAMPLES is None, reason="PARALLAX_EXAMPLES names no folder with the examples' pages")
def test_example_of_training_word_for_word(capsys):
    page = next(Path(EXAMPLES).glob("001_*")).read_text()
    run_example(page)
    shown = capsys.readouterr().out
    assert "4 were created." in shown and "2 were created." in shown and "input_dim_" in shown
