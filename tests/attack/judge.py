# SPDX-License-Identifier: Apache-2.0
"""Runs the program once and judges its answer by the contract of inspector/cli/CLI.md."""

import csv
import io
import json
import os
import re
import resource
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

from mutate_models import MARKER

HANG_SECONDS = 20
MESSAGE_CHARACTERS = 1000
EXIT_CODES = range(0, 6)
# Verbs whose answer can be 1: diverged, inconclusive, a verification that failed.
MAY_DIVERGE = {"run", "test", "diff", "blame", "generate", "reduce", "convert", "audit-fp16", "merge-decoders"}
# Verbs that execute a model. A valid model may ask for any amount of time (SECURITY.md): these end at Ctrl-C at least.
EXECUTES = {"run", "test", "bench", "profile", "generate", "blame", "extract", "reduce", "convert", "audit-fp16",
            "merge-decoders", "parallax-gui"}
CRASH_WORDS = re.compile(r"terminate called|Sanitizer|runtime error:|Assertion|what\(\):|internal error|PX_CHECK")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
MARKUP = re.compile(rb"<script>alert|<img src=x")
ADDRESS_SPACE = 8 << 30


class Answer(NamedTuple):
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    late: bool  # it used HANG_SECONDS of processor time, or waited ten times as long, and was sent SIGINT
    deaf: bool  # nor did it end after that


def limit_memory():
    """Bounds the address space of this process and its children; a program under AddressSanitizer needs all of it."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))


def processor_seconds(number):
    """The processor time of the process of a number that has not been waited for."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def output_of(process, seconds):
    """(stdout, stderr) of a process; TimeoutExpired once it has used the seconds, which no other program can cost it."""
    end = time.monotonic() + 10 * seconds
    while True:
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            if processor_seconds(process.pid) > seconds or time.monotonic() > end:
                raise


def run(command, folder, environment=None, **options):
    """Runs a command in a folder; it and its children have ended when this returns."""
    began = time.monotonic()
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}) as process:
        late = deaf = False
        try:
            stdout, stderr = output_of(process, HANG_SECONDS)
        except subprocess.TimeoutExpired:
            late = True
            process.send_signal(signal.SIGINT)
            try:
                stdout, stderr = output_of(process, processor_seconds(process.pid) + HANG_SECONDS / 4)
            except subprocess.TimeoutExpired:
                deaf = True
                process.kill()
                stdout, stderr = process.communicate()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return Answer(process.returncode, stdout or b"", stderr or b"", time.monotonic() - began, late, deaf)


def text_faults(text, name, argument_characters=0):
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        return [f"{name} is not UTF-8: byte {text[error.start]:#x}"]
    found = CONTROL.search(decoded)
    if found:
        return [f"{name} holds the control character {found[0]!r}"]
    if re.search(rf"^{MARKER}", decoded, re.MULTILINE):
        return [f"{name} holds a newline of a name"]
    longest = max((len(line) for line in decoded.splitlines()), default=0)
    if name == "stderr" and longest > MESSAGE_CHARACTERS + argument_characters:
        return [f"stderr has a message of more than {MESSAGE_CHARACTERS} characters"]
    return []


def parse_json(content):
    """The document; ValueError of anything that RFC 8259 does not allow."""
    def refuse(constant):
        raise ValueError(f"{constant} is no JSON")
    return json.loads(content.decode(), parse_constant=refuse)


def json_faults(answer):
    try:
        document = parse_json(answer.stdout)
    except ValueError as error:
        return [f"stdout is no JSON document: {type(error).__name__}"]
    if answer.code < 2 or "problems" in document:
        return []
    error = document.get("error") or {}
    if error.get("code") != answer.code or len(error.get("message", "")) < 10:
        return ["the JSON error does not fit the exit code"]
    if len(error["message"]) > MESSAGE_CHARACTERS:
        return [f"the JSON error has a message of more than {MESSAGE_CHARACTERS} characters"]
    return []


def faults(answer, command, allowed=EXIT_CODES):
    """The parts of an answer that the contract does not allow, each in words that do not depend on the input."""
    verb = Path(command[0]).name if "parallax-gui" in str(command[0]) else command[1]
    stderr = answer.stderr.decode(errors="replace")
    if answer.deaf:
        return [f"does not end, nor at SIGINT, within {HANG_SECONDS} s"]
    if answer.late and verb not in EXECUTES:
        return [f"does not end within {HANG_SECONDS} s"]
    if answer.late and answer.code not in EXIT_CODES:  # else it ended by itself before the signal reached it
        return [] if answer.code == -signal.SIGINT else [f"ends with {answer.code} at SIGINT"]
    if answer.code < 0:
        where = re.search(r"(internal error[^\n]*|ERROR: AddressSanitizer[^\n]*|terminate called[^\n]*)\n?([^\n]*)", stderr)
        return [f"signal {signal.Signals(-answer.code).name}: {where[0] if where else stderr[-200:]}"]
    crash = CRASH_WORDS.search(stderr)
    if crash:
        return [f"crash: {stderr[crash.start():crash.start() + 300]}"]
    if answer.code not in allowed:
        return [f"exit code {answer.code}: {stderr[-200:]}"]
    problems = text_faults(answer.stderr, "stderr", sum(len(str(argument)) for argument in command))
    if verb != "parallax-gui" and answer.code == 1 and verb not in MAY_DIVERGE:
        problems.append("exit code 1 of a verb that compares nothing")
    if "--json" in command:
        return problems + json_faults(answer)
    problems += text_faults(answer.stdout, "stdout")
    if answer.code >= 2:
        said = answer.stdout if verb == "check" and not answer.stderr else answer.stderr
        lines = said.decode(errors="replace").rstrip("\n").split("\n")
        if not re.search(r"[a-z]{3,}.*\s.*[a-z]{2,}", lines[-1]):
            problems.append("fails without a sentence")
        begins = [index for index, line in enumerate(lines) if line.startswith("parallax: ")]
        if verb not in ("check", "parallax-gui") and (not begins or begins[-1] != len(lines) - 1):
            problems.append("the message has more than one line" if begins else "the message does not begin 'parallax: '")
    return problems


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def html_faults(content):
    return (["holds markup of a name"] if MARKUP.search(content) else []) + text_faults(content, "the page")


def csv_faults(content):
    for row in csv.reader(io.StringIO(content.decode(), newline="")):
        for cell in row:
            if re.match(r"[=+\-@\t\r]", cell) and not is_number(cell):
                return ["a cell is a formula to a spreadsheet"]
            if CONTROL.search(cell):
                return ["a cell holds a control character"]
    return []


def xml_faults(content):
    ElementTree.fromstring(content)
    return (["holds markup of a name"] if MARKUP.search(content) else []) + text_faults(content, "the document")


def json_file_faults(content):
    parse_json(content)
    return []


ARTIFACTS = {".html": html_faults, ".csv": csv_faults, ".xml": xml_faults, ".svg": xml_faults, ".json": json_file_faults,
             ".dot": lambda content: text_faults(content, "the graph")}


def artifact_faults(path):
    """The faults of a written report."""
    kind = ARTIFACTS.get(path.suffix)
    if kind is None:
        return []
    try:
        return [f"{path.suffix}: {problem}" for problem in kind(path.read_bytes())]
    except (ValueError, csv.Error, ElementTree.ParseError) as error:
        return [f"{path.suffix} cannot be read: {type(error).__name__}"]


def contents(folder):
    """{relative path: bytes} of all files below a folder, folders as None, links as their target."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path).encode()
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found
