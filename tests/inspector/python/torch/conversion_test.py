# SPDX-License-Identifier: Apache-2.0
"""Wrong conversions are named by their operator at rank 1, in torch's words."""

import os
import subprocess

import numpy as np
import onnx
import pytest
import torch
from conversion_faults import FAULTS, attribute, made_by
from conversion_models import exported

import parallax
import parallax.torch as pt


@pytest.mark.parametrize(("name", "fault", "edit", "operator", "words"), FAULTS,
                         ids=[f"{model}: {fault}" for model, fault, *_ in FAULTS])
def test_wrong_operator_is_the_first_cause(tmp_path, recwarn, name, fault, edit, operator, words):
    model = exported(name)
    explanation = pt.explain_conversion(model.edited(tmp_path / "wrong.onnx", edit), model.args)
    assert not explanation and explanation.verdict != "pass"
    cause = explanation.causes[0]
    assert (cause.rank, cause.operator) == (1, operator), explanation.text
    assert words in cause.text, cause.text
    assert cause.text.startswith(f"{operator}, conversion_models.py:") or name in ("llama", "gpt2", "vit")
    assert cause.text in str(explanation)


def test_the_sentence_has_operator_line_module_and_both_meanings(tmp_path):
    model = exported("block")
    wrong = model.edited(tmp_path / "wrong.onnx", attribute("softmax", "axis", 2))
    explanation = pt.explain_conversion(wrong, model.args)
    cause = explanation.causes[0]
    assert (cause.module, cause.node, cause.op, cause.value) == ("attention", "node_softmax", "Softmax", "softmax")
    assert cause.text == (f"aten.softmax.int, {cause.line} in attention: exported as Softmax(axis=2), torch computes "
                          "what axis=3 gives")
    assert cause.line.startswith("conversion_models.py:")
    document = explanation.comparison.to_dict()
    source = {"module": "attention", "line": cause.line, "operator": "aten.softmax.int"}
    assert document["causes"][0]["source"] == source
    assert [execution["name"] for execution in document["executions"]] == ["torch", "reference"]


def test_an_operator_of_several_nodes_is_one_group(tmp_path):
    model = exported("fused")
    wrong = model.edited(tmp_path / "w.onnx", attribute("val_70", "axis", 2))
    cause = pt.explain_conversion(wrong, model.args).causes[0]
    assert cause.node == "node_Softmax_70" and cause.value == "scaled_dot_product_attention"
    assert len(cause.group) == 9 and cause.group[-1] == "node_scaled_dot_product_attention" and cause.node in cause.group
    assert "9 nodes (Reshape, Transpose, Reshape, Mul, Mul, MatMul, Add, Softmax, MatMul)" in cause.text


def test_a_wrong_weight_is_named(tmp_path):
    model = exported("cnn")

    def edit(proto):
        weight = next(tensor for tensor in proto.graph.initializer if tensor.name == "head.weight")
        other = onnx.numpy_helper.to_array(weight) + np.float32(0.25)
        weight.CopyFrom(onnx.numpy_helper.from_array(other, weight.name))

    cause = pt.explain_conversion(model.edited(tmp_path / "w.onnx", edit), model.args).causes[0]
    assert cause.operator == "aten.linear.default"
    assert "its weight 'head.weight' is not torch's: elements differ by up to 0.25" in cause.text


def test_a_graph_that_fails_is_compared_up_to_there(tmp_path):
    model = exported("attention")
    wrong = model.edited(tmp_path / "wrong.onnx", attribute("transpose_3", "perm", [0, 1, 2, 3]))
    with pytest.warns(UserWarning, match="to be multiplied"):
        explanation = pt.explain_conversion(wrong, model.args)
    assert explanation.verdict == "inconclusive"
    assert explanation.causes[0].operator == "aten.transpose.int"
    assert explanation.causes[-1].operator == "aten.matmul.default" and "which fails" in explanation.causes[-1].text


# ---- export_capture ----

def test_capture_holds_the_names_of_the_export(tmp_path):
    model = exported("attention")
    feeds = pt.export_capture(model.program, model.args, tmp_path / "a.plx")
    assert list(feeds) == ["x"] and torch.equal(feeds["x"], model.args[0])
    assert (tmp_path / "a.onnx").exists()
    with parallax.open(tmp_path / "a.plx") as dump:
        assert {"x", "softmax", "matmul_1", "linear_3", "triu"} <= set(dump)
        assert dump.entry("linear_3").is_graph_output and dump.entry("softmax").op == "Softmax"
        assert dump.executions[0]["executor"] == "torch"
        with torch.no_grad():
            assert np.array_equal(dump["linear_3"].numpy(), model.module(*model.args).numpy())


def test_capture_holds_several_outputs_integers_and_bodies(tmp_path):
    mixed, branching = exported("mixed"), exported("branching")
    pt.export_capture(mixed.program, mixed.args, tmp_path / "m.plx")
    with parallax.open(tmp_path / "m.plx") as dump:
        values, indices = torch.topk(mixed.args[0], 2, dim=-1)
        assert np.array_equal(dump["getitem_2"].numpy(), values.numpy())
        assert np.array_equal(dump["getitem_3"].numpy(), indices.numpy()) and dump["getitem_3"].dtype == "int64"
        assert dump["split_split_1"].shape == (3, 3, 4)
    pt.export_capture(branching.program, branching.args, tmp_path / "b.plx")
    with parallax.open(tmp_path / "b.plx") as dump:
        assert "node_cond__0.then//relu" in dump and not any(".else//" in path for path in dump)
        assert bool(dump["gt"].numpy()) is True


def test_capture_takes_other_sizes_where_the_export_leaves_them_free(tmp_path):
    model = exported("dynamic")
    other = (torch.randn(3, 4, 16),)
    feeds = pt.export_capture(model.program, other, tmp_path / "d.plx")
    assert feeds["x"].shape == (3, 4, 16)
    assert pt.explain_conversion(model.program, other)


def test_capture_keeps_no_gradient(tmp_path):
    model = exported("mlp")
    given = (model.args[0].clone().requires_grad_(),)
    feeds = pt.export_capture(model.program, given, tmp_path / "g.plx")
    assert not feeds["x"].requires_grad and given[0].grad is None


def test_what_does_not_belong_together_is_refused(tmp_path):
    mlp, mixed = exported("mlp"), exported("mixed")
    with pytest.raises(parallax.UsageError, match="they must be one export"):
        path, _ = mlp.edited(tmp_path / "m.onnx", lambda model: None)
        pt.explain_conversion((path, mixed.program.exported_program), mixed.args)
    with pytest.raises(parallax.UsageError, match="the arguments have the structure"):
        pt.export_capture(mlp.program, (*mlp.args, 1), tmp_path / "x.plx")
    with pytest.raises(parallax.UsageError, match="dynamo=True"):
        pt.export_capture(mlp.module, mlp.args, tmp_path / "x.plx")


def test_the_program_sees_what_python_sees(tmp_path):
    """The dumps are the program's own: its verb blame says the same."""
    model = exported("attention")
    explanation = pt.explain_conversion(
        model.edited(tmp_path / "w.onnx", attribute("softmax", "axis", 2)), model.args, folder=tmp_path / "kept")
    again = parallax.blame(tmp_path / "kept/torch.plx", tmp_path / "kept/onnx/reference.plx")
    assert again.causes[0].why == explanation.causes[0].why
    assert made_by(onnx.load(tmp_path / "w.onnx"), "softmax").name == again.causes[0].node


def test_limits_of_the_caller_hold(tmp_path):
    model = exported("mlp")
    wrong = model.edited(tmp_path / "w.onnx", attribute("gelu", "approximate", "none"))
    assert pt.explain_conversion(wrong, model.args, rtol=0.1, atol=0.1)
    assert not pt.explain_conversion(wrong, model.args, rtol=1e-6, atol=1e-7)


def imported(folder, model, program):
    """The values that hooks on the modules of torch saw, under the names of the graph."""
    with pt.capture({"net": model.module}, path=folder / "hooks.plx", submodules=True), torch.no_grad():
        model.module(*model.args)
    subprocess.run([os.environ["PARALLAX_PROGRAM"], "import", str(folder / "hooks.plx"), "--model", str(program), "-o",
                    str(folder / "torch.plx")], check=True, capture_output=True)
    feeds = {value.name: given.numpy() for value, given in zip(parallax.load(program).inputs, model.args, strict=True)}
    parallax.run(program, feeds, executor="reference", dump=folder / "reference.plx", capture="all")
    return parallax.blame(folder / "torch.plx", folder / "reference.plx")


@pytest.mark.skipif("PARALLAX_PROGRAM" not in os.environ, reason="the program imports; PARALLAX_PROGRAM names it")
def test_what_hooks_saw_names_the_operator_between_two_modules(tmp_path):
    model = exported("block")
    model.program.save(tmp_path / "right.onnx")
    right = imported(tmp_path, model, tmp_path / "right.onnx")
    assert right and right.summary.compared == 10
    wrong, _ = model.edited(tmp_path / "wrong.onnx", attribute("softmax", "axis", 2))
    cause = imported(tmp_path, model, wrong).to_dict()["causes"][0]
    assert cause["node"] == "node_softmax" and cause["group"][-1] == "node_linear_3"
    assert cause["source"]["operator"] == "aten.softmax.int" and "axis=3 gives" in cause["why"]
