# SPDX-License-Identifier: Apache-2.0
"""Makes healthy and faulty pairs, each proven by onnxruntime: a healthy one computes the same within its type, a faulty one does not."""
from __future__ import annotations

import collections
import copy
import itertools
import json
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx

from tools.architectures import Arrays, Exports, number_of, save_arrays
from tools.forms import FORMS, GROUPS, Source
from tools.mistakes import FOR_GROUP, MISTAKES, Scene
from tools.partners import Partners, farthest, name_nodes, outputs_of, values_of

# The most that a healthy pair's outputs differ (|a - b| / |a|), and the least that a mistake must move them.
HEALTHY_LIMIT = {"float": 1e-3, "half": 0.05, "quantized": 0.35}
LEAST_EFFECT = {"float": 2e-4, "half": 0.03, "quantized": 0.05}
MATCH_TOLERANCE = {"float": 1e-3, "half": 0.03, "quantized": 0.25}
MARGIN = 4.0  # times the healthy pair's difference
SHARES = {"float": 0.45, "half": 0.2, "quantized": 0.35}  # of the faulty pairs
BASES = ("dynamo", "script")
WIDEST_STEP = 1e6  # of a quantizer: beyond, its range was taken from a mask of -3.4e38, and what the mask leaves is lost
TRIED = 60  # nodes that a kind is tried on before it is given up


@dataclass
class Root:
    """The nodes that may be named for one mistake: those of A, and those of B."""

    kind: str
    a: set[str]
    b: set[str]


@dataclass
class Pair:
    """A, B, the inputs; what was seeded, and how far the outputs are from A's: of the healthy pair and of this one."""

    name: str
    a: onnx.ModelProto
    b: onnx.ModelProto
    inputs: Arrays
    architecture: str
    form: str
    roots: list[Root] = field(default_factory=list)
    healthy_difference: float = 0.0
    difference: float = 0.0

    def write(self, folder: pathlib.Path) -> None:
        """A.onnx, B.onnx, inputs.npz and pair.json: what may be named."""
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(self.a, str(folder / "A.onnx"))
        onnx.save(self.b, str(folder / "B.onnx"))
        save_arrays(folder / "inputs.npz", self.inputs)
        roots = [{"kind": root.kind, "a": sorted(root.a), "b": sorted(root.b)} for root in self.roots]
        about = {"architecture": self.architecture, "form": self.form, "roots": roots, "healthy_difference": self.healthy_difference, "difference": self.difference}
        (folder / "pair.json").write_text(json.dumps(about, indent=1))


class Healthy:
    """A sound pair with what mistakes are seeded by: values of both and partners."""

    def __init__(self, pair: Pair) -> None:
        group = GROUPS[pair.form]
        self.pair, self.group = pair, group
        self.outputs = outputs_of(pair.a, pair.inputs)
        self.values = values_of(pair.b, pair.inputs)
        self.partners = Partners(pair.a, pair.b, values_of(pair.a, pair.inputs), self.values, MATCH_TOLERANCE[group])

    def root_of(self, kind: str, names: list[str], changed: onnx.ModelProto) -> Root:
        """The changed nodes, what carries their constant or quantization on, and A's partners of all."""
        present = {node.name: node for node in self.pair.b.graph.node}
        named = set(names)
        for name in names:
            node = present.get(name)
            if node is not None and not named_by_itself(node):
                named |= carriers(self.pair.b, node)
        partners = set[str]().union(*(self.partners.of(present[name]) for name in named if name in present))
        return Root(kind, partners, named & {node.name for node in changed.graph.node})


def widest_step(model: onnx.ModelProto) -> float:
    """The largest scale that the model's quantizers read; 0 where nothing is quantized by a stored one."""
    scales = {name for node in model.graph.node if "Quant" in node.op_type or node.op_type.startswith("QLinear") for name in node.input if name.endswith("scale")}
    held = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.name in scales]
    return max((float(np.abs(scale).max()) for scale in held if scale.size), default=0.0)


def named_by_itself(node: onnx.NodeProto) -> bool:
    return node.op_type not in ("QuantizeLinear", "DequantizeLinear", "Cast", "Transpose", "Reshape", "Unsqueeze", "Identity", "Mul", "Constant")


def carriers(model: onnx.ModelProto, node: onnx.NodeProto) -> set[str]:
    """The other node of a pair of quantization; of a node that reads constants alone, the nodes that read its result, too."""
    held = {tensor.name for tensor in model.graph.initializer} | {name for other in model.graph.node if other.op_type == "Constant" for name in other.output}
    found: set[str] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        readers = [other for other in model.graph.node if current.output[0] in other.input]
        if all(name in held or not name for name in current.input):
            held |= set(current.output)
            found |= {reader.name for reader in readers}
            waiting += [reader for reader in readers if not named_by_itself(reader)]
        elif current.op_type == "QuantizeLinear":
            found |= {reader.name for reader in readers if reader.op_type == "DequantizeLinear"}
        elif current.op_type == "DequantizeLinear":
            found |= {other.name for other in model.graph.node if current.input[0] in other.output and other.op_type == "QuantizeLinear"}
    return found


def seeded(model: onnx.ModelProto, values: Arrays, kind: str, rng: np.random.Generator) -> tuple[onnx.ModelProto, list[str]] | None:
    """The model with one mistake of the kind, and the names of the changed nodes; None where no node suits."""
    copied = copy.deepcopy(model)
    scene = Scene(copied, values)
    before = copied.SerializeToString(deterministic=True)
    for number in rng.permutation(len(copied.graph.node))[:TRIED]:
        node = copied.graph.node[int(number)]
        try:
            names = MISTAKES[kind](scene, node, rng)
        except (AttributeError, IndexError, TypeError, KeyError, ValueError):  # a node of a form that the kind does not know
            return None
        if names and copied.SerializeToString(deterministic=True) != before:
            return copied, names
        if len(copied.graph.initializer) != len(model.graph.initializer):  # a constant was copied for nothing
            copied = copy.deepcopy(model)
            scene = Scene(copied, values)
    return None


class Maker:
    """The pairs of one seed over the given architectures, forms and kinds. `dropped` counts what was left out, by reason."""

    def __init__(self, exports: Exports, scratch: pathlib.Path, architectures: list[str], forms: list[str], kinds: list[str]) -> None:
        self.exports, self.seed, self.scratch = exports, exports.seed, scratch
        self.architectures, self.forms, self.kinds = architectures, forms, kinds
        self.dropped: collections.Counter[str] = collections.Counter()
        self.reasons: dict[str, str] = {}
        self.kept: list[Pair] = []

    def pairs(self, healthy: int, faulty: int) -> Iterator[Pair]:
        """Healthy ones, and after the first twenty the faulty ones in between, which are seeded on those so far."""
        wanted, made = max(healthy, min(faulty, 40)), 0
        mistaken = self.faulty(faulty)
        for number, pair in enumerate(itertools.islice(self.healthy(), wanted), 1):
            self.kept.append(pair)
            if number <= healthy:
                yield pair
            due = faulty * max(0, number - 20) // max(1, wanted - 20)
            for found in itertools.islice(mistaken, max(0, due - made)):
                made += 1
                yield found
        yield from mistaken

    def drop(self, reason: str, why: object = "") -> None:
        self.dropped[reason] += 1
        self.reasons.setdefault(reason, str(why)[:200])

    def healthy(self) -> Iterator[Pair]:
        """Every architecture with every form, in an order that takes each architecture and each form about as often."""
        rng = np.random.default_rng(number_of(self.seed, "healthy"))
        rounds = [(name, self.forms[(index + shift) % len(self.forms)]) for shift in rng.permutation(len(self.forms))
                  for index, name in enumerate(self.architectures)]
        for name, form in rounds:
            pair = self.healthy_pair(name, form)
            if pair is not None:
                yield pair

    def healthy_pair(self, name: str, form: str) -> Pair | None:
        rng = np.random.default_rng(number_of(self.seed, name, form))
        source = next((export for variant in rng.permutation(BASES) if (export := self.exports.get(name, str(variant))) is not None), None)
        if source is None:
            self.drop(f"{name} is not exported")
            return None
        try:
            b = FORMS[form](Source(source.model, source.inputs, name, self.scratch, self.exports), rng)
            if b is None:
                self.drop("the form does not apply")
                return None
            a = onnx.ModelProto()
            a.CopyFrom(source.model)
            for model in (a, b):
                name_nodes(model)
            difference = farthest(outputs_of(a, source.inputs), outputs_of(b, source.inputs))
        except Exception as error:  # tools and onnxruntime raise what they like; the pair is then not made
            self.drop(f"{form} fails", f"{name}: {type(error).__name__}: {error}")
            return None
        if not difference <= HEALTHY_LIMIT[GROUPS[form]]:
            self.drop(f"{form} is too far from A", f"{name}: {difference:.3g}")
            return None
        if (step := widest_step(b)) > WIDEST_STEP:
            self.drop(f"{form} quantizes a mask", f"{name}: a step of {step:.3g}")
            return None
        return Pair(f"healthy-{name}-{form}", a, b, source.inputs, name, form, [], difference, difference)

    def faulty(self, count: int) -> Iterator[Pair]:
        """Mistakes on the healthy pairs, kind after kind; every seventh pair has two."""
        rng = np.random.default_rng(number_of(self.seed, "faulty"))
        uses: dict[str, float] = collections.defaultdict(float)
        by_group: collections.Counter[str] = collections.Counter()
        by_pair: collections.Counter[str] = collections.Counter()
        made, ready = 0, dict[str, Healthy]()
        for _ in range(40 * count):
            if made >= count or not self.kept:
                return
            present = sorted({GROUPS[pair.form] for pair in self.kept})
            group = max(present, key=lambda name: SHARES[name] * made - by_group[name]) if rng.random() < 0.85 else str(rng.choice(present))
            pairs = [pair for pair in self.kept if GROUPS[pair.form] == group]
            pair = min((pairs[int(number)] for number in rng.permutation(len(pairs))), key=lambda known: by_pair[known.name])
            by_pair[pair.name] += 1
            suited = [kind for kind in self.kinds if FOR_GROUP.get(kind, group) == group]
            if group == "quantized" and rng.random() < 0.6:  # half of the quantized pairs have a mistake of quantization
                suited = [kind for kind in suited if kind in FOR_GROUP] or suited
            if not suited:
                continue
            kind = min(rng.permutation(suited), key=lambda name: uses[str(name)])
            uses[str(kind)] += 0.3  # a kind that does not apply is given up after the others, too
            if pair.name not in ready:
                ready = dict(list(ready.items())[-15:])
                try:
                    ready[pair.name] = Healthy(pair)
                except Exception as error:  # onnxruntime does not give the inner values
                    self.drop("values are not given", f"{pair.name}: {error}")
                    continue
            kinds = [str(kind), *([str(rng.choice(suited))] if made % 7 == 3 else [])]
            found = self.faulty_pair(ready[pair.name], kinds, rng)
            if found is not None:
                made += 1
                uses[str(kind)] += 0.7
                by_group[group] += 1
                found.name = f"{made:03d}-{pair.architecture}-{pair.form}-{'+'.join(kinds)}"
                yield found

    def faulty_pair(self, healthy: Healthy, kinds: list[str], rng: np.random.Generator) -> Pair | None:
        """None where no node suits, what onnxruntime does not run, and what does not show by the margin."""
        pair, model, roots = healthy.pair, healthy.pair.b, list[Root]()
        differences, before = [], healthy.outputs
        limit = max(MARGIN * pair.difference, LEAST_EFFECT[healthy.group])
        for kind in kinds:
            made = seeded(model, healthy.values, kind, rng)
            if made is None:
                self.drop("no node suits the kind", kind)
                return None
            model, names = made
            try:
                outputs = outputs_of(model, pair.inputs)
            except Exception as error:  # the mistake makes a model that does not run
                self.drop("onnxruntime does not run it", f"{kind}: {error}")
                return None
            root = healthy.root_of(kind, names, model)
            moved = [farthest(healthy.outputs, outputs), farthest(before, outputs)]
            if not min(moved) > limit:
                self.drop("its effect is not clear", kind)
                return None
            if any(root.a & other.a or root.b & other.b for other in roots):
                self.drop("two mistakes at one node", kind)
                return None
            roots.append(root)
            differences.append(moved[0])
            before = outputs
        return Pair("", pair.a, model, pair.inputs, pair.architecture, pair.form, roots, pair.difference, differences[-1])
