#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges `parallax run` on models with data: exit code 0, every float value compared, none mistrusted without cause, and every
value of every branch taken and every iteration present.

    check_models.py --parallax build/release/bin/parallax --with reference,cpu FOLDER...

What must be present follows from the model and a peer: onnxruntime's length of a Loop's scan outputs is its number of
iterations. A mistrusted value has a cause when the peer finds all its elements equal, too.
"""
import argparse
import re
import sys

import onnx

from program import FLOATS, Parallax, all_equal, cases, frame, node_names, peer_values, read_tensors, subgraphs


def iterations(node, values):
    """How often the body of a Loop or Scan ran, from the length of a scan output; None without one."""
    for attribute in node.attribute:
        if attribute.name == "body":
            body = attribute.g
    carried = len(body.output) - 1 if node.op_type == "Loop" else None
    if node.op_type == "Scan":
        scanned = next(a.i for a in node.attribute if a.name == "num_scan_inputs")
        lengths = [values[name].shape[0] for name in node.input[len(node.input) - scanned:] if name in values]
        return lengths[0] if lengths else None
    states = len(node.input) - 2
    for name in node.output[states:carried]:
        if name in values:
            return values[name].shape[0]
    return None


def missing_paths(graph, prefix, paths, values):
    """Paths of values that must be there and are not; inside bodies the iterations found must be complete and gapless."""
    missing = [prefix + name for node in graph.node for name in node.output if name and prefix + name not in paths]
    for node, name in zip(graph.node, node_names(graph)):
        if node.op_type == "If":
            missing += missing_branch(dict(subgraphs(node)), prefix, name, paths)
        elif node.op_type in ("Loop", "Scan"):
            missing += missing_iterations(node, prefix, name, paths, values if not prefix else {})
    return missing


def missing_branch(branches, prefix, name, paths):
    wanted = {}
    for attribute, label in (("then_branch", "then"), ("else_branch", "else")):
        start = f"{prefix}{frame(name, label)}//"
        if any(path.startswith(start) for path in paths) or not branches[attribute].node:
            wanted[label] = missing_paths(branches[attribute], start, paths, {})
    if len(wanted) == 0:
        return [f"{prefix}{name}: no branch"]
    return [path for label in wanted for path in wanted[label]]


def missing_iterations(node, prefix, name, paths, values):
    body = next(graph for attribute, graph in subgraphs(node) if attribute == "body")
    pattern = re.compile(re.escape(prefix + frame(name, "body")) + r"\[(\d+)\]//")
    found = {int(m.group(1)) for path in paths if (m := pattern.match(path))}
    expected = iterations(node, values)
    count = len(found) if expected is None else expected
    missing = [f"{prefix}{frame(name, 'body', i)}" for i in range(count) if i not in found and body.node]
    missing += [f"{prefix}{frame(name, 'body', i)} must not exist" for i in found if i >= count]
    for i in sorted(found):
        missing += missing_paths(body, f"{prefix}{frame(name, 'body', i)}//", paths, {})
    return missing


def problems_of(model, feeds, code, document):
    found = [] if code == 0 else [f"exit code {code}"]
    if "error" in document:
        return [*found, document["error"]["message"]]
    if document["verdict"] != "pass":
        found.append(f"verdict {document['verdict']}, first divergence {document['first_divergence']}")
    try:
        peer = peer_values(model, feeds)
    except Exception as error:  # a peer that cannot run the model is no judge of it
        print(f"  onnxruntime: {str(error)[:160]}")
        peer = {}
    for value in document["values"]:
        verdict = value["verdict"]
        if verdict == "pass" or verdict == "not_compared" and value["dtype"] not in FLOATS:
            continue
        if verdict == "mistrusted" and value["path"] in peer and all_equal(peer[value["path"]]):
            continue
        found.append(f"{value['path']} ({value['op']}, {value['dtype']}{value['shape']}): {verdict}, {value.get('reason')}, severity {value['severity']}")
    for value in document.get("expected", []):
        if value["verdict"] not in ("pass", "mistrusted"):
            found.append(f"expected {value['path']}: {value['verdict']}, {value.get('reason')}, severity {value['severity']}")
    if not document.get("expected"):
        found.append("the data set's outputs were not compared")
    missing = missing_paths(onnx.load(str(model)).graph, "", {v["path"] for v in document["values"]}, peer)
    return found + [f"not present: {path}" for path in missing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True)
    parser.add_argument("--with", dest="executors", default="reference,cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--shown", type=int, default=8, help="problems shown for each run")
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    parallax, failed, runs = Parallax(options.parallax, options.threads), 0, 0
    for model, data_sets in cases(options.folders):
        for inputs in data_sets:
            arguments = ["run", model, "--with", options.executors, "--inputs", inputs, "--observe-all"]
            code, document = parallax.json(*arguments)
            found = problems_of(model, read_tensors(inputs, "input"), code, document)
            runs, failed = runs + 1, failed + bool(found)
            print(f"{'FAIL' if found else 'ok  '} {model} {inputs.name}: {document.get('summary')}")
            for line in found[: options.shown]:
                print(f"  {line}")
            if len(found) > options.shown:
                print(f"  and {len(found) - options.shown} more")
            if found:
                print(f"  repeat: {parallax.path} {' '.join(map(str, arguments))}")
    print(f"{runs} runs, {failed} with problems")
    sys.exit(1 if failed or not runs else 0)


if __name__ == "__main__":
    main()
