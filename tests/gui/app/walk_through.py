#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""walk_through.py parallax-gui parallax SAMPLES WIDTHxHEIGHT SCALE [TASK...]: what people come for, by keys and mouse.

Each function of TASKS is one task in the real window, at most five pictures a second: a step is what the user presses,
and what must be seen after it. PARALLAX_PICTURES=FOLDER keeps a picture of the end of each task; the X server must have
been started with -fbdir FOLDER then. Run it under xvfb-run.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from drive_window import LIMIT_SECONDS, Window

LOGARITHM = """ir_version: 8 opset_import { version: 17 } graph { name: "logarithm"
node { name: "magnitude" op_type: "Abs" input: "x" output: "p" }
node { name: "shift" op_type: "Add" input: "p" input: "c" output: "q" }
node { name: "logarithm" op_type: "Log" input: "q" output: "y" }
node { name: "scale" op_type: "Mul" input: "y" input: "y" output: "z" }
initializer { name: "c" data_type: 1 float_data: SHIFT }
input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 24 } dim { dim_value: 32 } } } } }
output { name: "z" type { tensor_type { elem_type: 1 shape { dim { dim_value: 24 } dim { dim_value: 32 } } } } } }
"""


class Files:
    """Models and dumps as the command line makes them of the samples."""

    def __init__(self, program, samples, folder):
        self.program, self.samples, self.folder = program, samples, folder
        self.fault_pair = [f"{samples}/fault_pair/A.onnx", f"{samples}/fault_pair/B.onnx"]

    def parallax(self, *arguments):
        ran = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=LIMIT_SECONDS)
        if ran.returncode not in (0, 1):
            sys.exit(f"parallax {' '.join(arguments)}: {ran.stderr}")
        return ran.stdout

    def run(self, name, model, *options):
        """The two dumps of a run."""
        folder = f"{self.folder}/{name}"
        self.parallax("run", model, "--dump", folder, *options)
        return sorted(str(file) for file in pathlib.Path(folder).iterdir())

    def fault(self):
        a, b = self.fault_pair
        return self.run("fault", a, "--against", b)

    def three_runs(self):
        other = self.run("cpu", self.fault_pair[0], "--with", "reference,cpu")
        return [*self.fault(), other[1]]

    def changed(self, name, text, before, after):
        """A run of a model against one in whose text something is another thing."""
        a, b = (pathlib.Path(self.folder, f"{name}-{side}.textproto") for side in "ab")
        a.write_text(text)
        b.write_text(text.replace(before, after, 1))
        return self.run(name, str(a), "--against", str(b))

    def nan(self):
        return self.changed("nan", LOGARITHM.replace("SHIFT", "1"), "float_data: 1", "float_data: -1")

    def loop(self):
        text = pathlib.Path(self.samples, "greedy_decoder/model.textproto").read_text()
        return self.changed("loop", text, 'raw_data: "fff?"', 'raw_data: "333?"')  # "forget" is 0.7 instead of 0.9


class User(Window):
    """Does one thing at a time and looks at what has become of it."""

    def begin(self, what, holds):
        self.until(what, holds)
        self.focus()

    def press(self, keys, what, holds, text=""):
        """Keys with blanks between them; then a text is typed."""
        self.xdotool("key", "--delay", 12, *keys.split(), *(["type", "--delay", 0, text] if text else []))
        self.until(f"{keys} {text}: {what}", holds)

    def point(self, widget, what, holds, button=1):
        """A click on something that is in sight."""
        if widget not in self.state["widgets"]:
            self.until(f"{widget} is in sight", lambda s: widget in s["widgets"])
        self.click(widget, "click", button)
        self.until(f"a click on {widget}: {what}", holds)

    def drag(self, widget, by, what, holds):
        """From the left of its middle to the right."""
        x, y = map(int, self.position(widget))
        self.xdotool("mousemove", x - by, y, "mousedown", 1, "mousemove", x, y, "mousemove", x + by, y, "mouseup", 1)
        self.until(f"a drag over {widget}: {what}", holds)

    def clipboard(self):
        command = ["xsel", "--clipboard", "--output"]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT_SECONDS).stdout

    def expect(self, what, found, wanted):
        if found != wanted:
            sys.exit(f"{what}: {found!r} instead of {wanted!r}")
        self.checks += 1


def shows(state, *widgets):
    return all(widget in state["widgets"] for widget in widgets)


def selects(state, node):
    """The node is selected, and its box is in sight."""
    return state["selection"]["node"] == node and shows(state, f"item:{node}")


def inspector_lines(state):
    return [line for section in state["inspector"]["sections"] for line in section["lines"]]


def find_fault(user, files):
    """Two dumps: which node is at fault, why, and at which elements."""
    first, second = "block1/depthwise_bn", "block2/depthwise_bn"
    user.begin("the first divergence is selected", lambda s: selects(s, first) and s["lists"]["causes"])
    user.press("n", "the second divergence", lambda s: selects(s, "block1/depthwise_relu"))
    user.press("Home", "back at the first", lambda s: selects(s, first))
    user.point("tab.causes", "the causes", lambda s: s["tab"] == "causes" and shows(s, "cause:1", "cause:2"))
    found = [(cause["node"], cause["why"]) for cause in user.state["lists"]["causes"][:2]]
    reason = "attribute epsilon is 1e-05 (the default) in B and 0.001 in A"
    user.expect("two causes", found, [(first, reason), (second, reason)])
    user.point("cause:2", "its node is selected", lambda s: selects(s, second))
    user.press("7 e", "severities, and the worst element",
               lambda s: s["tensor"]["mode"] == "severity" and float(s["tensor"]["element"]["severity"]) > 1)


def look_at_a_weight(user, files):
    """A model alone: how a weight's values are distributed, and which are the large ones."""
    user.begin("the model is shown", lambda s: s["graph"]["nodes"] > 0)
    model, name = user.state["files"][0], "stem.weight"
    stats = json.loads(files.parallax("tensor", model, name, "--stats", "--json"))["stats"]
    user.press("ctrl+f", "convolutions are found", lambda s: s["search"] == "op:conv" and s["lists"]["rows"], "op:conv")
    user.press("Return", "the first is selected", lambda s: s["selection"]["op"] == "Conv" and shows(s, "link:Inputs:1"))
    user.point("link:Inputs:1", "its weight has a histogram, of all slices",
               lambda s: s["selection"]["path"] == name and s["tensor"]["whole"] and shows(s, "histogram"))
    figures = {line[0]: line[1] for line in inspector_lines(user.state)}
    user.expect("the range", [abs(float(figures[key]) - stats[key]) < 1e-5 for key in ("min", "max")], [True, True])
    user.press("h", "counts are linear", lambda s: s["tensor"]["linear_counts"])
    user.drag("histogram", 20, "some values are chosen", lambda s: s["tensor"]["brush"])
    low, high = user.state["tensor"]["brush"]
    user.expect("they are inside its range", stats["min"] < low < high < stats["max"], True)
    user.expect("in its middle", abs(low + high - stats["min"] - stats["max"]) < 0.1, True)
    user.press("ctrl+shift+2", "they are listed", lambda s: s["tensor"]["list"] == "values" and shows(s, "element:0"))
    user.point("element:0", "one of them is picked", lambda s: low <= float(s["tensor"]["element"]["a"]) <= high)
    user.press("c", "all values again", lambda s: s["tensor"]["brush"] is None)


def compare_models(user, files):
    """Two models in one window: what differs, and in which nodes."""

    def selects_both(state, difference, node):
        found = [state["selection"][key] for key in ("difference", "item", "item_b")]
        return found == [difference, node, node]

    user.begin("both graphs, the first difference selected",
               lambda s: s["lists"]["difference_count"] == 3 and selects_both(s, 0, "block1/depthwise_bn"))
    user.expect("the verdict, in both graphs", (user.state["verdict"], shows(user.state, "graph", "graph_b")), ("different", True))
    user.press("n", "the second difference", lambda s: selects_both(s, 1, "block2/depthwise_bn"))
    values = ["epsilon", "0.001", "1e-05  (default)"]
    user.expect("both values of the attribute", values in inspector_lines(user.state), True)
    user.point("difference:0", "the first again", lambda s: selects_both(s, 0, "block1/depthwise_bn"))


def compare_three_runs(user, files):
    """Three runs: which of them differs from the baseline."""

    def is_shown(state, run, verdict):
        return (state["run"], state["verdict"]) == (run, verdict)

    user.begin("both others are compared, the first is shown",
               lambda s: [run["verdict"] for run in s["runs"]] == ["diverged", "pass"] and is_shown(s, 1, "diverged"))
    user.press("alt+2", "the second passes", lambda s: is_shown(s, 2, "pass"))
    user.press("alt+1", "the first does not", lambda s: is_shown(s, 1, "diverged"))
    user.point("tab.runs", "all runs are listed", lambda s: s["tab"] == "runs" and shows(s, "run:1", "run:2"))
    user.point("run:2", "the second is shown", lambda s: is_shown(s, 2, "pass"))


def look_at_nan(user, files):
    """NaN in a value: which node makes it, and at which elements."""
    user.begin("all is compared", lambda s: s["verdict"] == "diverged" and s["lists"]["causes"])
    user.press("ctrl+f", "two values have NaN", lambda s: s["lists"]["rows"] == ["y", "z"] and s["tab"] == "table", "nan")
    user.press("Return", "the first is selected", lambda s: selects(s, "logarithm"))
    user.press("Escape Escape 2 m e", "the elements that are NaN in B",
               lambda s: s["tensor"]["mode"] == "b" and s["tensor"]["element"]["b"] == "nan" and shows(s, "element:0"))
    user.press("1", "they are numbers in A, and listed there, too",
               lambda s: s["tensor"]["mode"] == "a" and float(s["tensor"]["element"]["a"]) > 0 and shows(s, "element:0"))


def step_through_a_loop(user, files):
    """A value in the body of a Loop, iteration by iteration."""

    def shows_iteration(state, iteration):
        return state["selection"]["path"] == f"decode.body[{iteration}]//scores" and selects(state, "score_state")

    user.begin("all is compared", lambda s: s["verdict"] == "diverged" and s["lists"]["causes"])
    user.press("ctrl+f", "it is found in each iteration",
               lambda s: s["search"] == "op:matmul scores" and s["lists"]["row_count"] == 3, "op:matmul scores")
    user.press("Return", "the first iteration", lambda s: shows_iteration(s, 0))
    user.press("Escape Escape period", "the next", lambda s: shows_iteration(s, 1) and not s["search"])
    user.press("period", "the last", lambda s: shows_iteration(s, 2))
    user.press("comma", "back", lambda s: shows_iteration(s, 1))
    user.press("greater greater", "the graph's colors are of that iteration", lambda s: s["graph"]["iteration"] == 1)


def copy_rows(user, files):
    """A row of each list, where another program can paste it."""
    name = "block1/depthwise_bn_output"
    user.begin("all is compared", lambda s: s["lists"]["causes"] and shows(s, "element:1"))
    user.point("element:1", "a menu at the second row of elements", lambda s: shows(s, "copy:Copy the row"), button=3)
    user.point("copy:Copy the row", "it is copied", lambda s: "copied" in s["note"] and not shows(s, "copy:Copy the row"))
    copied = user.clipboard()
    user.point("element:1", "it is picked", lambda s: s["tensor"]["element"]["index"] == copied.split("\t")[0])
    element = user.state["tensor"]["element"]
    figures = [element[key] for key in ("index", "a", "b", "difference", "ulp", "severity")]
    user.expect("the row of the element", copied.split("\t"), figures)
    user.press("ctrl+alt+c", "the value's row is copied", lambda s: s["note"].startswith("copied") and name in s["note"])
    row = user.clipboard().split("\t")
    user.expect("the row of the value", (row[1], name in row, "diverged" in row), ("BatchNormalization", True, True))
    user.press("ctrl+c", "its name is copied", lambda s: s["note"].endswith(name))
    user.expect("the name", user.clipboard(), name)


def open_a_folder(user, files):
    """The folder that `run --dump` has written, by keys alone."""
    files.fault()
    user.begin("the start is shown", lambda s: shows(s, "welcome.open"))
    user.press("ctrl+o", "the folder is listed", lambda s: shows(s, "open.entry:fault"), f"{files.folder}/fa")
    user.press("Tab Return", "its dumps are compared", lambda s: s["dialog"] == "" and s["lists"]["causes"])
    dumps = [f"{files.folder}/fault/{side}-reference.plx" for side in "AB"]
    user.expect("the files", user.state["files"], dumps)


TASKS = {
    find_fault: Files.fault,
    look_at_a_weight: lambda files: [f"{files.samples}/cnn/model.onnx"],
    compare_models: lambda files: files.fault_pair,
    compare_three_runs: Files.three_runs,
    look_at_nan: Files.nan,
    step_through_a_loop: Files.loop,
    copy_rows: Files.fault,
    open_a_folder: lambda files: [],
}


def keep_picture(screen, path):
    """The screen as Xvfb keeps it (X11/XWDFile.h), as PNG."""
    data = pathlib.Path(screen).read_bytes()
    header = struct.unpack(">25I", data[:100])
    begin, width, height, row_bytes = header[0] + 12 * header[19], header[4], header[5], header[12]
    rows = bytearray()
    for y in range(height):
        row, at = bytearray(3 * width + 1), begin + y * row_bytes
        for color in range(3):  # blue comes first there
            row[1 + color :: 3] = data[at + 2 - color : at + 4 * width : 4]
        rows += row
    picture = b"\x89PNG\r\n\x1a\n"
    chunks = {b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0), b"IDAT": zlib.compress(bytes(rows), 1), b"IEND": b""}
    for kind, body in chunks.items():
        picture += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    pathlib.Path(path).write_bytes(picture)


def main():
    program, command_line, samples, size, scale, *names = sys.argv[1:]
    pictures = os.environ.get("PARALLAX_PICTURES")
    known = {task.__name__: task for task in TASKS}
    steps = 0
    for task in [known[name] for name in names or known]:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as settings:
            files = Files(command_line, samples, folder)
            user = User(program, TASKS[task](files), settings, "--size", size, "--scale", scale, "--fps", "5")
            try:
                task(user, files)
                if pictures:
                    keep_picture(f"{pictures}/Xvfb_screen0", f"{pictures}/{task.__name__}-{size}.png")
                user.close()
            finally:
                if user.process.poll() is None:
                    user.process.kill()
        print(f"{task.__name__}: {user.checks} things seen, {time.monotonic() - begun:.1f} s", flush=True)
        steps += user.checks
    print(f"{steps} states seen")


if __name__ == "__main__":
    main()
