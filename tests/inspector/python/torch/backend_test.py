# SPDX-License-Identifier: Apache-2.0
"""The backend "parallax" of torch.compile: options, what it records, and results in the form that eager has."""

import functools
import warnings

import numpy as np
import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch_models import Mlp, assert_same, check_inference, pair

import parallax
import parallax.torch as pt


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compiled(function, storage=None, dynamic=False, fullgraph=True, **options):
    return torch.compile(function, backend=pt.backend(storage=storage, **options), dynamic=dynamic, fullgraph=fullgraph)


def check(function, *inputs, dynamic=False, calls=1):
    """Results of a function and its compiled form, of each call."""
    storage = pt.Storage()
    ours = compiled(function, storage, dynamic)
    for _ in range(calls):
        want, got = function(*inputs), ours(*inputs)
        assert_same(got, want)
    return got, want, storage.graphs


# ---- Ways to name the backend ----

def test_is_found_by_name():
    assert {"parallax", "parallax_debug"} <= set(torch._dynamo.list_backends(exclude_tags=()))
    storage = pt.Storage()
    net = torch.compile(Mlp(), backend="parallax", options={"storage": storage, "patterns": "standard"})
    assert net(torch.ones(3, 10)).shape == (3, 1)
    assert [graph.kind for graph in storage.graphs] == ["forward"]
    assert storage.graphs[0].patterns == "standard"


def test_unknown_option_is_an_error_that_names_the_known_ones():
    with pytest.raises(Exception, match="there is no option 'storag'; did you mean 'storage'.*Known: executor, patterns"):
        torch.compile(Mlp(), backend="parallax", options={"storag": {}})(torch.ones(3, 10))
    with pytest.raises(parallax.UsageError, match="there is no option 'pattern'"):
        pt.fx_compiler(torch.fx.symbolic_trace(Mlp()), [], pattern="x")
    with pytest.raises(parallax.UsageError, match="freeze is 'no'; it must be 'auto' or 'never'"):
        pt.backend(freeze="no")
    with pytest.raises(Exception, match="no rewrite pattern 'nothing'"):
        compiled(Mlp(), patterns="nothing")(torch.ones(3, 10))
    with pytest.raises(Exception, match="this backend has no modes"):
        torch.compile(Mlp(), backend="parallax", mode="max-autotune")(torch.ones(3, 10))


def test_fx_compiler_serves_aot_autograd_and_dynamo():
    eager, copied = pair(Mlp)
    x = torch.randn(4, 10)
    storage = pt.Storage()
    compiler = functools.partial(pt.fx_compiler, storage=storage)
    aot = aot_autograd(fw_compiler=compiler, decompositions=pt.decompositions())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as: the compiled function does not take boxed arguments
        result = torch.compile(copied, backend=aot)(x)
        result.sum().backward()
    eager(x).sum().backward()
    assert_same(result, eager(x))
    torch.testing.assert_close(copied.layers[0].weight.grad, eager.layers[0].weight.grad)
    assert [graph.kind for graph in storage.graphs] == ["forward", "backward"]
    torch._dynamo.reset()
    assert_same(torch.compile(copied, backend=compiler)(x), eager(x))


# ---- What is recorded ----

class Gated(torch.nn.Module):
    """SwiGLU, a residual and a norm: there is something to fuse in every set."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.norm = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(torch.nn.functional.silu(self.gate(x)) * self.up(x) + x)



def test_storage_has_graphs_models_and_counts(tmp_path):
    storage = pt.Storage()
    net = compiled(Mlp(), storage, dump_prefix=tmp_path / "out" / "mlp", opset=18)
    x = torch.randn(4, 10)
    net(x), net(x)
    with torch.no_grad():
        net(x)
    forward, inference = storage.graphs
    assert storage["instance"] is storage.graphs and storage["instance"][0]["onnx"].opset_import[0].version == 18
    assert (forward.kind, inference.kind) == ("forward", "inference")
    assert (forward.calls, inference.calls) == (2, 1)
    assert set(forward.seconds) == {"to_onnx", "prepare", "run"} and all(forward.seconds.values())
    assert forward["providers"] == ["CPUExecutionProvider"] and forward["graph_module"] is forward.graph_module
    assert inference.frozen == 4 and forward.frozen == 0
    assert inference.custom_ops == {"com.microsoft": 1} and inference.applied_patterns["linear-activation"] == 1
    for ending in (".onnx", ".txt", ".npz"):
        assert (tmp_path / "out" / f"mlp_0_forward{ending}").exists()
    again = parallax.Session(tmp_path / "out" / "mlp_1_inference.onnx").run(dict(np.load(tmp_path / "out" / "mlp_1_inference.npz")))
    np.testing.assert_allclose(next(iter(again.values())), net(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_plain_dict_is_a_storage_too():
    storage = {}
    compiled(Mlp(), storage)(torch.ones(3, 10))
    assert len(storage["instance"]) == 1


def test_pattern_sets_grow_and_compute_the_same():
    counts = []
    for patterns in ("none", "standard", "standard+microsoft", "standard+microsoft+own"):
        torch._dynamo.reset()
        graph = check_inference(Gated, torch.randn(3, 8), patterns=patterns)[0]
        counts.append(graph.custom_ops)
    assert counts[:2] == [{}, {}]
    assert list(counts[2]) == ["com.microsoft"] and "parallax.fused" in counts[3]


def test_transforms_are_applied_in_order():
    seen = []

    def transform(number):
        return lambda model: seen.append((number, len(model.nodes))) or model

    compiled(Mlp(), transforms=[transform(1), transform(2)])(torch.ones(3, 10))
    assert [number for number, _ in seen] == [1, 2]


def test_graph_breaks_are_recorded_with_their_reason():
    def branching(x):
        y = x * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    storage = pt.Storage()
    ours = compiled(branching, storage, fullgraph=False)
    for x in (torch.ones(3), -torch.ones(3)):
        assert_same(ours(x), branching(x))
    assert len(storage.graphs) == 3
    assert "backend_test.py" in storage.graphs[0].break_reason


def test_verbose_prints_a_line_a_graph(capsys):
    compiled(Mlp(), verbose=1)(torch.ones(3, 10))
    assert "graph 0 (forward)" in capsys.readouterr().out


# ---- The form of results ----

def test_strides_are_eagers():
    x = torch.randn(2, 3, 4, 5)
    check(lambda x: (x.transpose(1, 2) * 2, (x + 1).permute(3, 0, 2, 1), x.mT.contiguous() + 1, (x * 2)[:, ::2]), x)
    check(lambda x: torch.relu(x), x.to(memory_format=torch.channels_last))
    check(lambda x: x.sum(0).expand(3, -1, -1, -1), x)


def test_views_share_memory_as_eagers_do():
    def views(x):
        y = x + 1
        return x, x.t(), y, y.view(-1), y[0]

    x = torch.randn(3, 4)
    got, want, _ = check(views, x)
    assert got[0] is x and got[1].data_ptr() == x.data_ptr()
    base = got[2].untyped_storage().data_ptr()
    assert [tensor.untyped_storage().data_ptr() == base for tensor in got[3:]] == [True, True]
    got[2].add_(5)
    assert torch.equal(got[3], got[2].view(-1))


def test_parts_of_a_split_value_share_its_memory():
    def parts(x):
        a, b, c = (x * 2).split(4, dim=1)
        return a, b + 1, c

    got, _, graphs = check(parts, torch.randn(1, 2, 12).squeeze(0))
    assert got[0].untyped_storage().data_ptr() == got[2].untyped_storage().data_ptr()
    assert got[0].stride() == (12, 1)


def test_results_do_not_share_memory_where_eagers_do_not():
    got, _, _ = check(lambda x: (x + 1, x + 1, x.clone(), x.reshape(-1) * 1), torch.randn(3, 4))
    addresses = [tensor.untyped_storage().data_ptr() for tensor in got]
    assert len(set(addresses)) == len(addresses)


def test_results_of_an_earlier_call_stay():
    ours = compiled(lambda x: x * 2)
    first = ours(torch.ones(4))
    ours(torch.zeros(4))
    assert first.tolist() == [2.0] * 4


def test_integers_bools_and_none():
    def kinds(x, i):
        return x > 0, i + 1, i // 2, None, x.argmax(-1), x.shape[0], (i.to(torch.uint8), x.half() * 2, x.double() + 1)

    x, i = torch.randn(3, 4), torch.arange(3, dtype=torch.int32)
    got, want, _ = check(kinds, x, i)
    assert got[3] is None and got[5] == want[5] == 3


def test_same_result_twice_is_one_object():
    def twice(x):
        y = x * 3
        return y, y

    got, want, _ = check(twice, torch.randn(3))
    assert got[0] is got[1]


def test_complex_views():
    def rotate(x, angles):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * angles).flatten(-2)

    angles = torch.polar(torch.ones(4, 3), torch.randn(4, 3))
    check(rotate, torch.randn(2, 4, 6), angles)
    check(lambda x: torch.view_as_complex(x), torch.randn(3, 2))


def test_inputs_may_be_views():
    x = torch.randn(6, 8)
    check(lambda x: x * 2 + 1, x.t())
    check(lambda x: x * 2 + 1, x[::2, 1:5])
    check(lambda x: x * 2, torch.randn(4, dtype=torch.complex64).conj().imag)


def test_empty_and_scalar_inputs():
    check(lambda x: x * 2, torch.zeros(0, 3))
    check(lambda x: x * 2, torch.tensor(3.0))


def test_dynamic_shapes_make_one_graph():
    storage = pt.Storage()
    function = lambda x: (x.relu().t(), x.reshape(-1), x.shape[0] * 2 + 1, x.new_zeros(x.shape[0], 2))  # noqa: E731
    ours = compiled(function, storage, dynamic=True)
    for rows in (2, 5, 7):
        x = torch.randn(rows, 3)
        got, want = ours(x), function(x)
        assert_same(got, want)
        assert got[2] == want[2]
    assert len(storage.graphs) == 1


def test_graph_without_computation_runs():
    got, _, graphs = check(lambda x: (x.t(), x), torch.randn(2, 3))
    assert got[1].shape == (2, 3) and graphs[0].calls == 1


def test_inputs_that_the_graph_changes():
    def in_place(x):
        x.mul_(2)
        return x + 1

    x = torch.ones(3)
    assert compiled(in_place)(x).tolist() == [3.0] * 3
    assert x.tolist() == [2.0] * 3


def test_observer_sees_the_values():
    class Watch:
        def __init__(self):
            self.paths = []

        def observe(self, path, value):
            self.paths.append(path)

    watch = Watch()
    compiled(lambda x: (x * 2).relu(), executor="reference", observer=watch)(torch.ones(3))
    assert "relu" in watch.paths


def test_reference_executor_and_double():
    for executor in ("reference", "reference:double"):
        torch._dynamo.reset()
        check_inference(Mlp, torch.randn(3, 10), executor=executor)
