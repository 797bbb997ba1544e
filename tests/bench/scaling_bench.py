#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scaling_bench.py PARALLAX [--gui PARALLAX_GUI] [--only TEXT] [--shapes TEXT] [--size N] [--instructions]: time against size.

Every verb reads models of one shape with n, 2n and 4n nodes. The exponent is the slope of log(time) over log(size) by least
squares, the time being the user time of the program (so that other load is irrelevant) less what it takes for a model of
ten nodes. Prints a table of exponents and the seconds at 4n; an exponent beyond 1.15 is a failure and exit code 1. Times
below 0.3 s are too short to fit and are printed alone.

With --instructions valgrind counts the instructions of models an eighth of the size, in billions: steps that grow with the
square of the size show there, while caches that a larger model no longer fits show in the times alone.
"""

import argparse
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bad_input"))
import wire as w  # noqa: E402

STEEPEST = 1.15
SHORTEST_SECONDS = 0.3
LONGEST_SECONDS = 300
TINY = 10
RUNS = 2
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
FEWEST_BILLIONS = 0.01


# ---- Models: n nodes; `fault` replaces the first operator by another one, so that all that follows diverges --------------

def graph_of(nodes, result, initializers=(), inputs=("x",), more=b""):
    return w.model(w.graph(nodes, [w.value(name, w.FLOAT, (4,)) for name in inputs], [w.value(result, w.FLOAT, (4,))],
                           list(initializers), more=more), opsets=w.opset(17), functions=[])


def first_op(fault):
    return "Neg" if fault else "Abs"


def chain(n, fault=False):
    """Each node reads the one before it."""
    ops = ("Neg", "Abs", "Relu", "Tanh")
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node(ops[i % 4], [f"v{i - 1}"], [f"v{i}"]) for i in range(1, n)]
    return graph_of(nodes, f"v{n - 1}")


def identities(n, fault=False):
    """A chain of nodes that rewriting drops."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node("Identity", [f"v{i - 1}"], [f"v{i}"]) for i in range(1, n - 1)]
    return graph_of(nodes + [w.node("Relu", [f"v{n - 2}"], ["y"])], "y")


def weights(n, fault=False):
    """A chain in which each node reads a weight of its own."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node("Add" if i % 2 else "Mul", [f"v{i - 1}", f"w{i}"], [f"v{i}"]) for i in range(1, n)]
    return graph_of(nodes, f"v{n - 1}", [w.tensor(f"w{i}", (4,)) for i in range(1, n)])


def residual(n, fault=False):
    """Each node reads the one before it and the model's input."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node("Add" if i % 2 else "Mul", [f"v{i - 1}", "x"], [f"v{i}"]) for i in range(1, n)]
    return graph_of(nodes, f"v{n - 1}")


def products(n, fault=False):
    """A chain of products with one weight, and their biases."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node("MatMul" if i % 2 else "Add", [f"v{i - 1}", "w" if i % 2 else "b"], [f"v{i}"]) for i in range(1, n)]
    return graph_of(nodes, f"v{n - 1}", [w.tensor("w", (4, 4)), w.tensor("b", (4,))])


def fan_out(n, fault=False):
    """Half of the nodes read one value; the other half adds up what they make."""
    half = n // 2
    nodes = [w.node(first_op(fault), ["x"], ["a0"]), w.node("Abs", ["a0"], ["s0"])]
    nodes += [w.node("Sub", ["a0", f"w{i}"], [f"r{i}"]) for i in range(1, half)]
    nodes += [w.node("Add", [f"s{i - 1}", f"r{i}"], [f"s{i}"]) for i in range(1, half)]
    return graph_of(nodes, f"s{half - 1}", [w.tensor(f"w{i}", ()) for i in range(1, half)])


def duplicates(n, fault=False):
    """Half of the nodes compute the same of one value, of which rewriting keeps one; the other half adds them up."""
    half = n // 2
    nodes = [w.node(first_op(fault), ["x"], ["a0"]), w.node("Abs", ["a0"], ["s0"])]
    nodes += [w.node("Exp", ["a0"], [f"r{i}"]) for i in range(1, half)]
    nodes += [w.node("Add", [f"s{i - 1}", f"r{i}"], [f"s{i}"]) for i in range(1, half)]
    return graph_of(nodes, f"s{half - 1}")


def variadic(n, fault=False):
    """One Sum of n values."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node("Abs", [f"v{i - 1}"], [f"v{i}"]) for i in range(1, n)]
    return graph_of(nodes + [w.node("Sum", [f"v{i}" for i in range(n)], ["y"])], "y")


def repeated(n, fault=False):
    """One Sum that reads one value n times."""
    return graph_of([w.node(first_op(fault), ["x"], ["v0"]), w.node("Sum", ["v0"] * n, ["y"])], "y")


def scopes(n, fault=False):
    """A chain whose nodes stand in scopes up to 100 deep."""
    deep = ["/".join(f"scope{level}" for level in range(depth + 1)) for depth in range(100)]
    nodes = [w.node(first_op(fault), ["x"], ["v0"], name="first")]
    for i in range(1, n):
        name = f"/block{i // 100}/{deep[i % 100]}/node"
        nodes.append(w.node("Neg" if i % 2 else "Abs", [f"v{i - 1}"], [f"v{i}"], name=name))
    return graph_of(nodes, f"v{n - 1}")


def namesakes(n, fault=False):
    """A chain of nodes that all have one name."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"], name="same")]
    nodes += [w.node("Neg", [f"v{i - 1}"], [f"v{i}"], name="same") for i in range(1, n)]
    return graph_of(nodes, f"v{n - 1}")


def bodies(n, fault=False):
    """A chain of If nodes, whose two bodies read a value of the graph around them."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    for i in range(1, max(2, n // 3)):
        branches = [w.attribute(f"{branch}_branch", g=w.graph([w.node(op, [f"v{i - 1}"], ["b"])], [], [w.value("b", w.FLOAT, (4,))]))
                    for branch, op in (("then", "Abs"), ("else", "Neg"))]
        nodes.append(w.node("If", ["c"], [f"v{i}"], *branches))
    return graph_of(nodes, f"v{max(2, n // 3) - 1}", [w.tensor("c", (), w.BOOL, b"\x01")])


def calls(n, fault=False):
    """A chain of calls of one function of the model."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node("F", [f"v{i - 1}"], [f"v{i}"], domain="local") for i in range(1, max(2, n // 2))]
    body = [w.node("Neg", ["x"], ["t"]), w.node("Abs", ["t"], ["y"])]
    return w.model(w.graph(nodes, [w.value("x", w.FLOAT, (4,))], [w.value(f"v{max(2, n // 2) - 1}", w.FLOAT, (4,))]),
                   opsets=w.opset(17) + w.opset(1, "local"), functions=[w.function("F", body)])


def outputs(n, fault=False):
    """A chain in which every value is an output of the model."""
    nodes = [w.node(first_op(fault), ["x"], ["v0"])]
    nodes += [w.node("Neg" if i % 2 else "Abs", [f"v{i - 1}"], [f"v{i}"]) for i in range(1, n)]
    return w.model(w.graph(nodes, [w.value("x", w.FLOAT, (4,))], [w.value(f"v{i}", w.FLOAT, (4,)) for i in range(n)]))


SHAPES = {"chain": (chain, 10_000), "identities": (identities, 10_000), "weights": (weights, 10_000), "residual": (residual, 10_000), "products": (products, 6_000), "fan-out": (fan_out, 10_000),
          "duplicates": (duplicates, 10_000),
          "variadic": (variadic, 6_000), "repeated": (repeated, 6_000), "scopes": (scopes, 5_000), "namesakes": (namesakes, 10_000),
          "bodies": (bodies, 6_000), "calls": (calls, 8_000), "outputs": (outputs, 6_000)}


# ---- Verbs: the arguments for a folder that holds m.onnx, the model with a fault f.onnx, and dumps of both ---------------

def verbs(gui):
    rows = {
        "show": ["show", "m.onnx"],
        "check": ["check", "m.onnx"],
        "dot": ["dot", "m.onnx", "-o", "out.dot"],
        "run reference": ["run", "m.onnx", "--with", "reference", "--threads", "1"],
        "run cpu": ["run", "m.onnx", "--with", "cpu", "--threads", "1"],
        "run both": ["run", "m.onnx", "--with", "reference,cpu", "--threads", "1"],
        "run --against": ["run", "m.onnx", "--against", "f.onnx", "--threads", "1"],
        "diff": ["diff", "m/reference.plx", "f/reference.plx"],
        "blame": ["blame", "m.onnx", "--against", "f.onnx", "--threads", "1"],
        "rewrite": ["rewrite", "m.onnx", "-o", "out.onnx", "--force"],
        "profile": ["profile", "m.onnx", "--with", "cpu", "--threads", "1"],
    }
    if gui:
        rows["gui"] = ["m.onnx", "--shot", "out.png"]
    return rows


ACCEPTED = {"run --against": (0, 1), "run both": (0, 1), "diff": (0, 1), "blame": (0, 1)}  # they report what differs


def user_seconds(command, folder, accepted):
    """User time of one run of the program, None where it runs for too long."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode not in accepted:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def billions_of_instructions(command, folder, accepted):
    """The instructions of one run of the program, as valgrind counts them."""
    done = subprocess.run([*VALGRIND, *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in accepted:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return int(re.search(r"I +refs: +([\d,]+)", done.stderr)[1].replace(",", "")) / 1e9


def make_models(folder, shape, size, program, with_dumps):
    folder.mkdir()
    (folder / "m.onnx").write_bytes(shape(size))
    (folder / "f.onnx").write_bytes(shape(size, fault=True))
    if not with_dumps:
        return
    for model in ("m", "f"):
        subprocess.run([program, "run", f"{model}.onnx", "--with", "reference", "--dump", model], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def exponent_of(sizes, seconds):
    """The slope of log(seconds) over log(sizes) by least squares."""
    xs, ys = [math.log(size) for size in sizes], [math.log(max(1e-3, second)) for second in seconds]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / sum((x - x_mean) ** 2 for x in xs)


def judged(command, folders, sizes, accepted, with_instructions):
    """The cell of a table for one verb and shape, and whether it grows too steeply."""
    costs = []
    for folder in folders:
        if with_instructions:
            costs.append(billions_of_instructions(command, folder, accepted))
            continue
        runs = [user_seconds(command, folder, accepted) for _ in range(RUNS)]
        if None in runs:
            return f"over {LONGEST_SECONDS} s", True
        costs.append(min(runs))
    costs = [cost - costs[0] for cost in costs[1:]]
    unit, least = ("G", FEWEST_BILLIONS) if with_instructions else ("s", SHORTEST_SECONDS)
    if costs[-1] < least:
        return f"{max(0, costs[-1]):.2f} {unit}", False
    exponent = exponent_of(sizes, costs)
    return f"{exponent:.2f} {costs[-1]:.2f} {unit}", exponent > STEEPEST


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--gui", help="the program parallax-gui, which is measured up to its first picture")
    parser.add_argument("--only", default="", help="only verbs that hold this text")
    parser.add_argument("--shapes", default="", help="only shapes that hold this text")
    parser.add_argument("--size", type=int, help="n in place of each shape's own")
    parser.add_argument("--instructions", action="store_true", help="instructions in place of time")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    chosen = {name: row for name, row in verbs(options.gui).items() if options.only in name}
    shapes = {name: row for name, row in SHAPES.items() if options.shapes in name}

    steep = []
    print(f"{'':14}" + "".join(f"{shape:>15}" for shape in shapes), flush=True)
    table = {verb: [] for verb in chosen}
    with tempfile.TemporaryDirectory() as temporary:
        for name, (shape, base) in shapes.items():
            first = options.size or (base // 8 if options.instructions else base)
            sizes = [first * factor for factor in (1, 2, 4)]
            folders = [pathlib.Path(temporary) / f"{name}-{size}" for size in (TINY, *sizes)]
            for folder, size in zip(folders, (TINY, *sizes)):
                make_models(folder, shape, size, program, "diff" in chosen)
            for verb, arguments in chosen.items():
                command = [os.path.abspath(options.gui) if verb == "gui" else program, *arguments]
                cell, is_steep = judged(command, folders, sizes, ACCEPTED.get(verb, (0,)), options.instructions)
                table[verb].append(cell + ("!" if is_steep else " "))
                if is_steep:
                    steep.append(f"{verb} of {name}: {cell}")
                print(f"  {name} {sizes[-1]} nodes, {verb}: {cell}", file=sys.stderr, flush=True)
    for verb, cells in table.items():
        print(f"{verb:14}" + "".join(f"{cell:>15}" for cell in cells))
    for line in steep:
        print(f"exponent beyond {STEEPEST}: {line}")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
