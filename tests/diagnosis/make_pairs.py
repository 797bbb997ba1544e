# SPDX-License-Identifier: Apache-2.0
"""Makes the pairs of the benchmark, each by number: the same number gives the same pair everywhere."""
import copy
import pathlib

import numpy as np
import onnx
from onnx import numpy_helper

import faults
import faults_of_structure
import harmless
import harmless_forms
from base_models import BASE_MODELS
from graphs import all_graphs, targets


KINDS = {**faults.KINDS, **faults_of_structure.KINDS}
HEALTHY = {**harmless.HEALTHY, **harmless_forms.FORMS}


class Pair:
    """A sound model, another one, the inputs, and which nodes are to be blamed (sets of acceptable names, one for each root)."""

    def __init__(self, name, a, b, inputs, roots=(), groups=()):
        self.name, self.a, self.b, self.inputs, self.roots, self.groups = name, a, b, inputs, list(roots), set(groups)

    def write(self, folder):
        folder = pathlib.Path(folder)
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        onnx.save(self.a, str(folder / "A.onnx"))
        onnx.save(self.b, str(folder / "B.onnx"))
        for index, (name, value) in enumerate(self.inputs.items()):
            (data / f"input_{index}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


def in_body(model, names):
    main = {node.name for node in model.graph.node}
    return not any(name in main for name in names)


def apply_fault(model, kind, rng):
    """Changes the model at a target that suits; the names to be blamed, or None."""
    found = list(targets(model.graph))
    for number in rng.permutation(len(found)):
        changed = copy.deepcopy(model)
        target = list(targets(changed.graph))[number]
        before = changed.SerializeToString()
        names = KINDS[kind](changed, target, rng)
        if names and changed.SerializeToString() != before:
            model.CopyFrom(changed)
            return names
    return None


def fault_pair(number, base, kinds, renamed=False, reordered=False, restructured=False):
    """None where a kind does not apply to the base model."""
    rng = np.random.default_rng(1000 + number)
    model, inputs = BASE_MODELS[base](number % 7)
    changed = copy.deepcopy(model)
    roots = []
    for kind in kinds:
        names = apply_fault(changed, kind, rng)
        if names is None or any(set(names) & root for root in roots):
            return None
        roots.append(set(names))
    groups = {"two roots"} if len(kinds) > 1 else set()
    if all(in_body(model, root) for root in roots) and base in ("loop", "branch", "scan", "nested"):
        groups.add("in bodies")
    if restructured:
        harmless.restructure(changed, rng)
        groups.add("restructured")
    if renamed:
        new_names = harmless.rename(changed, rng)
        known = {node.name for graph in all_graphs(model.graph) for node in graph.node}
        roots = [root & known | {new_names[name] for name in root if name not in known and name in new_names} for root in roots]
        groups.add("renamed")
    if reordered:
        harmless.reorder(changed, rng)
        groups.add("reordered")
    return Pair(f"{number:03d}-{base}-{'+'.join(kinds)}", model, changed, inputs, roots, groups)


def healthy_pair(number, base, change):
    rng = np.random.default_rng(5000 + number)
    model, inputs = BASE_MODELS[base](number % 5)
    changed = copy.deepcopy(model)
    if change == "renamed":
        harmless.rename(changed, rng)
        harmless.reorder(changed, rng)
    else:
        before = changed.SerializeToString()
        if HEALTHY[change](changed, rng) is None and changed.SerializeToString() == before:
            return None
        if number % 2:
            harmless.rename(changed, rng)
    return Pair(f"{number:03d}-{base}-{change}", model, changed, inputs, (), {"healthy", change})
