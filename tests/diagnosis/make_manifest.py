#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chooses the benchmark's faults: those that onnxruntime can run and whose outputs differ. Writes manifest.json, which is committed; needed
only when models or faults change.

    make_manifest.py [--count 170] [--seed N] [-o manifest.json]
"""
import argparse
import itertools
import json

import numpy as np
import onnxruntime
from onnx.reference import ReferenceEvaluator

from base_models import BASE_MODELS
from make_pairs import HEALTHY, KINDS, Pair, fault_pair, healthy_pair

# Below this part of an output's size a change is no more than rounding: float32, and models that round to less.
LEAST = {"half": 4e-3, "quantized": 1e-2}


def outputs_of(model, inputs, by_reference=False):
    if by_reference:  # onnxruntime has few kernels in half and computes in float instead
        evaluator = ReferenceEvaluator(model)
        return evaluator.run(None, dict(zip(evaluator.input_names, inputs.values())))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs.values())))


def effect_of(pair):
    """Largest relative difference of an output; 0 where the changed model does not run or gives other shapes."""
    try:
        by_reference = "half_island" in pair.name
        a, b = (outputs_of(model, pair.inputs, by_reference) for model in (pair.a, pair.b))
    except Exception:
        return 0.0
    if any(x.shape != y.shape for x, y in zip(a, b)):
        return 1.0
    if not all(np.isfinite(x).all() for x in [*a, *b]):
        return 0.0
    return max(float(np.abs(x.astype(np.float64) - y).max() / max(np.abs(x).max(), 1e-12)) for x, y in zip(a, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=170)
    parser.add_argument("--seed", type=int, default=0, help="another set of pairs, to judge by what nothing was tuned on")
    parser.add_argument("-o", dest="output", default="manifest.json")
    options = parser.parse_args()
    kinds, bases = sorted(KINDS), sorted(BASE_MODELS)
    chosen, uses, tried = [], dict.fromkeys(kinds, 0), 0
    rng = np.random.default_rng(options.seed)
    combinations = itertools.cycle([(kind, base) for base in bases for kind in kinds])
    order = list(itertools.islice(combinations, len(kinds) * len(bases)))
    for round_number in range(6):
        for index in rng.permutation(len(order)):
            kind, base = order[index]
            if len(chosen) >= options.count or uses[kind] > options.count // 20:
                continue
            tried += 1
            is_double = len(chosen) % 7 == 3
            pair_kinds = [kind, kinds[rng.integers(len(kinds))]] if is_double else [kind]
            flags = {"renamed": len(chosen) % 4 == 0, "reordered": len(chosen) % 8 == 0, "restructured": len(chosen) % 6 == 1}
            number = options.seed * 100000 + round_number * 1000 + int(index)
            pair = fault_pair(number, base, pair_kinds, **flags)
            if pair is None:
                continue
            effects = [effect_of(pair)]
            if is_double:  # each must show: the first by itself, the second next to it
                first = fault_pair(number, base, pair_kinds[:1])
                effects += [effect_of(first), effect_of(Pair("", first.b, pair.b, pair.inputs))]
            if min(effects) < LEAST.get(base, 1e-5):
                continue
            uses[kind] += 1
            chosen.append({"number": number, "base": base, "kinds": pair_kinds, **flags, "effect": float(f"{effects[0]:.3g}")})
    healthy = []
    for number, (base, change, _) in enumerate(itertools.product(bases, HEALTHY, range(2))):
        pair = healthy_pair(number, base, change)
        if pair is not None and 0 <= effect_or_fail(pair) < (0.05 if change == "half" else 1e-4):
            if number % 2 and change not in ("renamed", "restructured", "accumulated"):
                continue  # one of each is enough
            healthy.append({"number": number, "base": base, "change": change})
    with open(options.output, "w") as file:
        rows = ",\n".join("  " + json.dumps(row) for row in chosen)
        sound = ",\n".join("  " + json.dumps(row) for row in healthy)
        file.write(f'{{"faults": [\n{rows}\n],\n"healthy": [\n{sound}\n]}}\n')
    print(f"{len(chosen)} faults of {sum(1 for count in uses.values() if count)} kinds ({tried} tried), {len(healthy)} healthy pairs")
    print({key: sum(1 for row in chosen if row[key]) for key in ("renamed", "reordered", "restructured")}, "two roots:", sum(1 for row in chosen if len(row["kinds"]) > 1), "weak:", sum(1 for row in chosen if row["effect"] < 1e-3))
    print("unused kinds:", [key for key, count in uses.items() if not count])


def effect_or_fail(pair):
    try:
        outputs_of(pair.b, pair.inputs)
    except Exception as error:
        print("healthy pair does not run:", pair.name, str(error)[:150])
        return -1.0
    return effect_of(pair)


if __name__ == "__main__":
    main()
