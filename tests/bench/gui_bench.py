#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gui_bench.py [BUILD]: what parallax-gui needs from its start to a picture: models of 2,691 and of 50,025 nodes, and a dump of 10 GiB.

Prints wall time (the least of several), processor time and resident memory. The picture is drawn and written, too, so the
first frame of a window comes earlier.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
RUNS = 7


def measure(arguments):
    """Wall seconds, processor seconds and MiB of one run."""
    begin = time.perf_counter()
    process = subprocess.Popen(arguments)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"{' '.join(arguments)}: failed")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def report(name, program, file, folder, limit):
    runs = [measure([program, file, "--shot", f"{folder}/shot.png"]) for _ in range(RUNS)]
    wall, processor, memory = (min(run[i] for run in runs) for i in range(3))
    print(f"{name:28} wall {wall:.2f} s, processor {processor:.2f} s, {memory:.0f} MiB resident   (aim: {limit})")


def write_model(build, blocks, path):
    subprocess.run([str(build / "bin" / "frame_bench"), "WRITE", str(blocks), path], check=True)


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/ci")
    program = str(build / "bin" / "parallax-gui")
    with tempfile.TemporaryDirectory() as folder:
        model, dump = f"{folder}/transformer.onnx", f"{folder}/sparse.plx"
        write_model(build, 39, model)
        subprocess.run([str(HERE / "sparse_dump.py"), dump, "10"], check=True)
        report("model of 2,691 nodes", program, model, folder, "0.35 s")
        write_model(build, 725, model)
        report("model of 50,025 nodes", program, model, folder, "2 s")
        report("dump of 10 GiB", program, dump, folder, "1 s, 500 MiB")


if __name__ == "__main__":
    main()
