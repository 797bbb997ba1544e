# SPDX-License-Identifier: Apache-2.0
"""Malformed command lines: unknown words, numbers that are none, files that are not there."""

from cases import FILE, MODEL, USAGE, Case

USAGE_ERRORS = """
frobnicate
runn m.onnx
--frobnicate
run
run m.onnx --frobnicate
run m.onnx --with
run m.onnx --with gpu
run m.onnx --with reference,
run m.onnx --with ,cpu
run m.onnx --with reference:half
run m.onnx --with reference,cpu,reference
run m.onnx --with Reference
run m.onnx --capture everything
run m.onnx --capture
run m.onnx --seed
run m.onnx --seed red
run m.onnx --seed 1.5
run m.onnx --threads -1
run m.onnx --threads many
run m.onnx --threads 0
run m.onnx --rtol
run m.onnx --rtol big --atol 1
run m.onnx --rtol -1 --atol 0
run m.onnx --rtol nan --atol 0
run m.onnx --rtol 1 --atol -1
run m.onnx --policy strict
run m.onnx --policy auto --rtol 1 --atol 1
run m.onnx --per x
run m.onnx --per x@rtol
run m.onnx --per x@shade=1
run m.onnx --shape x
run m.onnx --shape x=
run m.onnx --shape x=2xx3
run m.onnx --shape x=-1x3
run m.onnx --shape x=2,3
run m.onnx --shape x=99999999999999999999x3
run m.onnx --shape nobody=2x3
run m.onnx --dim
run m.onnx --dim batch
run m.onnx --dim batch=two
run m.onnx --dim nobody=2
run m.onnx --range x
run m.onnx --range x=1
run m.onnx --range x=5..1
run m.onnx --range x=a..b
run m.onnx --range nobody=0..1
run m.onnx --input x
run m.onnx --input nobody=x.npy
run m.onnx --memory-limit lots
run m.onnx --memory-limit -5
run m.onnx --capture-limit -5
run m.onnx --repeat 0
run m.onnx --repeat -1
run m.onnx --fallback cuda
run m.onnx extra.onnx
run m.onnx --json=maybe
diff
diff a.plx
diff a.plx b.plx --top -2
diff a.plx b.plx --top many
diff a.plx b.plx --rtol x --atol y
diff a.plx b.plx --policy nothing
show
show m.onnx --depth deep
show m.onnx --depth -1
show --op Nothing
show --op Relu-999
show --op Relu-x
show --op
dot
dot m.onnx --depth -1
dot m.onnx -o picture.bmp
tensor
tensor a.plx --slice
tensor a.plx nobody
tensor a.plx x --slice a:b
tensor a.plx x --slice 0,0,0,0,0
tensor a.plx x --slice 99
tensor a.plx x --slice ::0
tensor a.plx step[x]//y
tensor a.plx step[99999999999999999999]//y
import
import folder
import t.npz
export a.plx
export
check
repair a.plx
repair
test
test folder --with nobody
bench
bench m.onnx --iterations 0
bench m.onnx --iterations -3
bench m.onnx --iterations many
bench m.onnx --with gpu
doctor now
generate m.onnx
bisect m.onnx
merge-decoders a b
""".strip().splitlines()

# (arguments, exit codes): names of files and folders that are wrong in themselves.
FILE_ERRORS = [
    ("run gone.onnx", (USAGE, MODEL, FILE)),
    ("run folder", (USAGE, MODEL, FILE)),
    ("run m.onnx --against gone.onnx", (USAGE, MODEL, FILE)),
    ("run m.onnx --against folder", (USAGE, MODEL, FILE)),
    ("run m.onnx --inputs gone", (USAGE, FILE)),
    ("run m.onnx --inputs gone.npz", (USAGE, FILE)),
    ("run m.onnx --inputs gone.safetensors", (USAGE, FILE)),
    ("run m.onnx --input x=gone.npy", (USAGE, FILE)),
    ("run m.onnx --dump m.onnx", (USAGE, FILE)),
    ("run m.onnx --dump m.onnx/below", (USAGE, FILE)),
    ("run m.onnx --with reference,cpu --html gone/report.html", (USAGE, FILE)),
    ("run m.onnx --with reference,cpu --csv gone/values.csv", (USAGE, FILE)),
    ("run m.onnx --with reference,cpu --svg gone/graph.svg", (USAGE, FILE)),
    ("run m.onnx --baseline gone.plx", (USAGE, FILE)),
    ("run m.onnx --policy-file gone.json", (USAGE, FILE)),
    ("diff gone.plx a.plx", (USAGE, FILE)),
    ("diff a.plx gone.plx", (USAGE, FILE)),
    ("diff a.plx m.onnx", (USAGE, FILE)),
    ("diff folder folder", (USAGE, FILE)),
    ("diff a.plx a.plx --html gone/x.html", (USAGE, FILE)),
    ("diff a.plx a.plx --policy-file gone.json", (USAGE, FILE)),
    ("show gone.onnx", (USAGE, MODEL, FILE)),
    ("dot m.onnx -o gone/m.dot", (USAGE, FILE)),
    ("tensor gone.plx", (USAGE, FILE)),
    ("tensor m.onnx unknown", (USAGE, FILE)),
    ("tensor a.plx x -o gone/x.npy", (USAGE, FILE)),
    ("tensor a.plx x -o x.png", (USAGE, FILE)),
    ("check gone.plx", (USAGE, FILE)),
    ("check folder", (USAGE, MODEL, FILE)),
    ("repair gone.plx -o b.plx", (USAGE, FILE)),
    ("repair a.plx -o gone/b.plx", (USAGE, FILE)),
    ("repair a.plx -o a.plx", (USAGE, FILE)),
    ("import gone -o b.plx", (USAGE, FILE)),
    ("import m.xyz -o b.plx", (USAGE, FILE)),
    ("export gone.plx -o b.npz", (USAGE, FILE)),
    ("export a.plx -o b.xyz", (USAGE, FILE)),
    ("export a.plx -o gone/b.npz", (USAGE, FILE)),
    ("test gone", (USAGE, FILE)),
    ("bench gone.onnx", (USAGE, MODEL, FILE)),
]

POLICIES = {
    "empty": b"",
    "no JSON": b"rtol = 1",
    "cut": b'{"rtol": 1e-3, ',
    "an array": b"[1, 2]",
    "a word for a number": b'{"rtol": "small", "atol": 0}',
    "negative": b'{"rtol": -1, "atol": 0}',
    "unknown key": b'{"shade": 1}',
    "nested 10,000 deep": b"[" * 10_000 + b"]" * 10_000,
    "not UTF-8": b'{"rtol": 1, "\xff\xfe": 2}',
    "number beyond double": b'{"rtol": 1e999, "atol": 0}',
}


def cases(good_dump):
    around = {"m.onnx": "MODEL", "a.plx": good_dump, "b.plx": good_dump, "c.plx": good_dump, "folder/note.txt": b"a note\n", "m.xyz": b"x"}
    for line in USAGE_ERRORS:
        yield Case(f"arguments/{line}", around, line.split(), (USAGE,))
    for line, exit_codes in FILE_ERRORS:
        yield Case(f"files/{line}", around, line.split(), exit_codes)
    for name, content in POLICIES.items():
        files = {**around, "policy.json": content}
        yield Case(f"policy/{name}", files, ["diff", "a.plx", "b.plx", "--policy-file", "policy.json"], (USAGE, FILE))
    yield Case("arguments/an empty model name", around, ["run", ""], (USAGE, MODEL, FILE))
    yield Case("arguments/a name of 100,000 letters", around, ["run", "x" * 100_000], (USAGE, MODEL, FILE))
    yield Case("arguments/a name that is not UTF-8", around, ["run", b"\xff\xfe.onnx"], (USAGE, MODEL, FILE))
    yield Case("arguments/an option of 100,000 letters", around, ["run", "m.onnx", "--" + "x" * 100_000], (USAGE,))
    yield Case("arguments/a verb with control characters", around, ["\x1b[31mrun\x07"], (USAGE,))
    yield Case("arguments/a path of 10,000 frames", around, ["tensor", "a.plx", "step[0]//" * 10_000 + "y"], (USAGE,))
    yield Case("arguments/a glob of 10,000 stars", around, ["diff", "a.plx", "b.plx", "--per", "*" * 10_000 + "@rtol=x"], (USAGE,))
