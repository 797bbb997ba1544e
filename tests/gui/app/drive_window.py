#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drive_window.py PROGRAM A.plx B.plx CULPRIT MODEL: the real window, driven by keys and mouse through the X server.

The program writes its state to a FIFO whenever it has come to rest: after each key or click, states are read until the
expected one is there. No step waits for a fixed time; a deadline ends a test that hangs. Run it under xvfb-run.
"""
import json
import math
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
import zlib

LIMIT_SECONDS = 90  # on a loaded machine, too
SHOWN_AT_FAILURE = ("files", "verdict", "busy", "messages", "note", "selection", "preset", "tab", "search", "dialog", "tensor")


class Window:
    def __init__(self, program, files, folder, *options):
        self.fifo = f"{folder}/state{len(os.listdir(folder))}"
        os.mkfifo(self.fifo)
        environment = dict(os.environ, XDG_CONFIG_HOME=folder, LIBGL_ALWAYS_SOFTWARE="1")
        self.process = subprocess.Popen([program, *files, "--window", "--state-out", self.fifo, *options], env=environment)
        self.state = {}
        self.states = queue.SimpleQueue()
        self.checks = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Reads states as soon as they are written, so that the program is never blocked and can answer requests for the
        clipboard."""
        decoder = json.JSONDecoder()
        while True:
            with open(self.fifo) as file:
                text = file.read()
            while text:
                state, end = decoder.raw_decode(text)
                self.states.put(state)
                text = text[end:].lstrip()

    def until(self, what, holds):
        """Reads states until one holds."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            try:
                self.state = self.states.get(timeout=1)
            except queue.Empty:
                if self.process.poll() is not None:
                    sys.exit(f"the program ended before: {what}")
                continue
            try:
                if holds(self.state):
                    self.checks += 1
                    return
            except (KeyError, TypeError, IndexError):
                pass
        print(json.dumps({key: self.state.get(key) for key in SHOWN_AT_FAILURE}))
        sys.exit(f"not seen within {LIMIT_SECONDS} s: {what}")

    def xdotool(self, *arguments):
        subprocess.run(["xdotool", *map(str, arguments)], check=True)

    def key(self, name):
        self.xdotool("key", name)

    def position(self, widget):
        return self.state["widgets"][widget]

    def keys(self, *names):
        self.xdotool("key", "--delay", 12, *names)  # GLFW drops a second press of a key in one millisecond

    def id(self):
        return subprocess.run(["xdotool", "search", "--name", "Parallax"], capture_output=True, text=True).stdout.split()[0]

    def focus(self):
        """There is no window manager that would do it."""
        self.xdotool("search", "--name", "Parallax", "windowfocus", "--sync")

    def close(self):
        self.key("ctrl+q")
        if self.process.wait(LIMIT_SECONDS) != 0:
            sys.exit("the program did not end well")

    def click(self, widget, *more):
        x, y = self.position(widget)
        self.xdotool("mousemove", int(x), int(y), *(more or ("click", 1)))


def find_fault(window, culprit):
    window.until(
        "the fault is selected when all is compared",
        lambda s: s["selection"]["node"] == culprit and s["lists"]["causes"],
    )
    window.focus()
    window.xdotool("mousemove", 640, 300)
    first = window.state["selection"]["path"]
    window.key("Home")
    window.until("Home leads to the first divergence", lambda s: s["selection"]["path"] == s["lists"]["alerts"][0]["path"])
    window.key("n")
    window.until("N leads to the second", lambda s: s["selection"]["path"] == s["lists"]["alerts"][1]["path"])
    window.key("shift+n")
    window.until("Shift+N leads back", lambda s: s["selection"]["path"] == s["lists"]["alerts"][0]["path"])
    window.key("alt+Left")
    window.until("Alt+Left walks back", lambda s: s["selection"]["path"] == s["lists"]["alerts"][1]["path"])
    window.key("e")
    window.until("E picks the worst element", lambda s: s["tensor"]["element"] is not None)
    return first


def use_keys(window):
    for key, preset in (("F2", "graph"), ("F3", "tensor"), ("F4", "table"), ("F1", "all")):
        window.key(key)
        window.until(f"{key} shows {preset}", lambda s, preset=preset: s["preset"] == preset)
    window.key("t")
    window.until("T changes the theme", lambda s: s["theme"] == "light")
    window.key("question")
    window.until("? shows the keys", lambda s: s["dialog"] == "help")
    window.key("Escape")
    window.until("Escape closes them", lambda s: s["dialog"] == "")
    window.xdotool("key", "ctrl+f", "type", "--delay", "0", "op:MatMul")  # at once: no letter may be lost
    window.until("letters go to the search", lambda s: s["search"] == "op:MatMul" and s["lists"]["row_count"] > 0)
    count = window.state["lists"]["row_count"]
    window.key("Return")
    window.until("Enter selects a hit", lambda s: s["selection"]["op"] == "MatMul")
    window.key("Escape")
    window.until("Escape clears the search", lambda s: s["search"] == "" and s["lists"]["row_count"] > count)
    window.key("ctrl+p")
    window.until("Ctrl+P opens the palette", lambda s: s["dialog"] == "palette")
    window.key("Escape")
    window.until("Escape closes it", lambda s: s["dialog"] == "")


def use_mouse(window):
    window.click("tab.alerts")
    window.until("a click shows the alerts", lambda s: s["tab"] == "alerts" and "alert:0" in s["widgets"])
    window.click("alert:0")
    window.until("a click selects an alert", lambda s: s["selection"]["path"] == s["lists"]["alerts"][0]["path"])
    window.click("mode.a")
    window.until("a click shows side A", lambda s: s["tensor"]["mode"] == "a")
    window.click("split")
    window.until("both sides are shown", lambda s: s["tensor"]["split"] and "heat.a" in s["widgets"])
    window.click("heat.a")
    window.until("a click picks an element", lambda s: s["tensor"]["element"] is not None)
    zoom = window.state["graph"]["zoom"]
    x, y = window.position("graph")
    window.xdotool("mousemove", int(x), int(y), "keydown", "ctrl", "click", 4, "click", 4, "keyup", "ctrl")
    window.until("Ctrl with the wheel zooms", lambda s: s["graph"]["zoom"] > zoom)
    window.key("space")
    window.until("Space shows the graph", lambda s: s["graph"]["zoom"] < zoom)
    # A node, not a group, and in the middle: at the edges the pane's own buttons cover it.
    nodes = [name for name in window.state["widgets"] if name.startswith("item:node_")]
    item = min(nodes, key=lambda name: math.dist(window.position(name), window.position("graph")))
    window.click(item)
    window.until("a click selects a node of the graph", lambda s: s["selection"].get("item") == item[5:])


def use_dialogs(window, model):
    window.key("ctrl+o")
    window.until("Ctrl+O asks for a path", lambda s: s["dialog"] == "open")
    window.xdotool("type", "--delay", "0", "/no/such.plx")
    window.key("Return")
    window.until("what cannot be opened is said", lambda s: s["dialog"] == "" and any("such.plx" in m for m in s["messages"]))
    files = window.state["files"]
    window.key("Escape")
    window.until("Escape dismisses it, and what was open stays", lambda s: not s["messages"] and s["files"] == files)
    window.xdotool("key", "ctrl+r", "type", "--delay", "0", model)
    window.until("Ctrl+R asks what to run", lambda s: s["dialog"] == "run")
    window.key("Return")
    window.until(
        "two executors have run, all is compared, and a value's elements are shown",
        lambda s: s["verdict"] == "pass" and s["dialog"] == "" and s["tab"] == "table" and s["tensor"]["dtype"] == "float32",
    )


def type_at_five_pictures_a_second(window):
    window.until("all is compared", lambda s: s["lists"]["causes"])
    window.focus()
    window.xdotool("key", "ctrl+f", "type", "--delay", "0", "ab")
    window.keys("ctrl+a", "ctrl+c", "End", *["ctrl+v"] * 12)
    window.until("each of twelve pastes arrives", lambda s: s["search"] == "ab" * 13)
    window.keys("ctrl+a", "Delete", "x", "y", "z", "Left", "BackSpace", "Home", "Delete")
    window.until("keys that edit keep their order", lambda s: s["search"] == "z")
    window.keys("Escape", "Escape")
    window.until("the search is cleared", lambda s: s["search"] == "")
    window.key("BackSpace")
    window.until("Backspace closes the block around", lambda s: f"item:{s['selection']['item']}" in s["widgets"] and s["selection"]["item"] not in s["graph"]["open"])
    block = window.state["selection"]["item"]
    window.click(f"item:{block}", "click", "--repeat", 2, "--delay", 60, 1)
    window.until("a double click opens it", lambda s: block in s["graph"]["open"])


def use_layout(window, layout):
    """The characters that commands are bound to, wherever the layout has them."""
    window.until("all is compared", lambda s: s["lists"]["causes"])
    window.focus()
    zoom = window.state["graph"]["zoom"]
    window.key("plus")
    window.until(f"{layout}: + zooms in", lambda s: s["graph"]["zoom"] > zoom * 1.2)
    window.key("minus")
    window.until(f"{layout}: - zooms out", lambda s: abs(s["graph"]["zoom"] / zoom - 1) < 0.01)
    path = window.state["selection"]["path"]
    window.key("bracketright")
    window.until(f"{layout}: ] goes to the next value", lambda s: s["selection"]["path"] != path)
    window.key("bracketleft")
    window.until(f"{layout}: [ goes back", lambda s: s["selection"]["path"] == path)
    window.key("question")
    window.until(f"{layout}: ? shows the keys", lambda s: s["dialog"] == "help")
    window.key("Escape")
    window.until("Escape closes them", lambda s: s["dialog"] == "")
    window.keys("slash", "a", "q")
    window.until(f"{layout}: / leads to the search", lambda s: s["search"] == "aq")
    window.keys("ctrl+a", "BackSpace", "Escape")
    window.until(f"{layout}: Ctrl+A marks all", lambda s: s["search"] == "")


def choose_files(window, model):
    """Ctrl+O at a folder's path: Tab completes, Enter opens; the title names the file; recent files outlive a kill."""
    window.until("the start is shown", lambda s: "welcome.open" in s["widgets"])
    window.focus()
    start = model[: model.rindex("/") + 3]  # up to the first two characters of its name
    window.xdotool("key", "ctrl+o", "type", "--delay", "0", start)
    window.key("Tab")
    window.key("Return")
    window.until("a completed path is opened", lambda s: s["files"] == [model])
    name = subprocess.run(["xdotool", "getwindowname", window.id()], capture_output=True, text=True).stdout
    if "/".join(model.split("/")[-2:]) not in name:
        sys.exit(f"the title is {name!r}")
    window.click("menu.File")
    window.until("the menu has recent files", lambda s: "file.recent" in s["widgets"])
    window.key("Escape")
    window.key("ctrl+w")
    window.until("the start is there again", lambda s: not s["files"] and "welcome.open" in s["widgets"])
    window.process.kill()
    window.process.wait()


def use_desktop_chooser(window, model):
    window.until("a file is recent, though the program was killed", lambda s: "recent:0" in s["widgets"])
    window.focus()
    window.key("ctrl+o")
    window.until("the desktop's chooser is offered", lambda s: "open.desktop" in s["widgets"])
    window.click("open.desktop")
    window.until("a file chosen there is opened", lambda s: s["files"] == [model] and s["dialog"] == "")


def draw_picture(program, files, folder):
    """A picture of the window shows what the window does."""
    picture, script = f"{folder}/window.png", pathlib.Path(folder, "script")
    script.write_text(f"shot {picture}\n")
    environment = dict(os.environ, XDG_CONFIG_HOME=folder, LIBGL_ALWAYS_SOFTWARE="1")
    command = [program, *files, "--window", "--script", str(script)]
    subprocess.run(command, env=environment, check=True, timeout=LIMIT_SECONDS)
    data, offset, packed = pathlib.Path(picture).read_bytes(), 8, b""
    while offset < len(data):
        size = int.from_bytes(data[offset : offset + 4], "big")
        if data[offset + 4 : offset + 8] == b"IDAT":
            packed += data[offset + 8 : offset + 8 + size]
        offset += size + 12
    shades = len(set(zlib.decompress(packed)))
    if shades < 32:
        sys.exit(f"the picture of the window holds {shades} shades: nothing was drawn")


def main():
    program, a, b, culprit, model = sys.argv[1:6]

    with tempfile.TemporaryDirectory() as folder:
        window = Window(program, [a, b], folder)
        try:
            draw_picture(program, [a, b], folder)
            find_fault(window, culprit)
            use_keys(window)
            use_mouse(window)
            use_dialogs(window, model)
            window.close()
            checks = window.checks
            window = Window(program, [a, b], folder, "--fps", "5")
            type_at_five_pictures_a_second(window)
            window.close()
            checks += window.checks
            window = Window(program, [], folder)
            choose_files(window, model)
            checks += window.checks
            chooser = pathlib.Path(folder, "zenity")
            chooser.write_text(f"#!/bin/sh\necho '{model}'\n")
            chooser.chmod(0o755)
            os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
            window = Window(program, [], folder)
            use_desktop_chooser(window, model)
            window.close()
            checks += window.checks
            for layout in ("de", "fr", "us"):
                subprocess.run(["setxkbmap", layout], check=True)
                window = Window(program, [a, b], folder)
                use_layout(window, layout)
                window.close()
                checks += window.checks
        finally:
            if window.process.poll() is None:
                window.process.kill()
        settings = pathlib.Path(folder, "parallax", "gui.conf").read_text()
        if "theme light" not in settings:
            sys.exit("the theme was not kept")
    print(f"{checks} states seen")


if __name__ == "__main__":
    main()
