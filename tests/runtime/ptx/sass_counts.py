# SPDX-License-Identifier: Apache-2.0
"""Counts in what ptxas makes of the kernels, with limits: widths of accesses, divisions, registers, spills.

sass_counts.py [--table] [--cuobjdump PROGRAM] [--nvcc PROGRAM] OBJECT...

The objects of the executor cuda are disassembled, and a kernel that exceeds a limit of its family is a failure. With
--nvcc, small kernels that have one defect each are compiled, and each has to be named. --table prints the counts.
Exit code 77: no cuobjdump is here, or no object has kernels.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

SKIPPED = 77


class Kernel(NamedTuple):
    """The counts of one kernel, compiled for one architecture."""

    architecture: str
    name: str
    instructions: int
    registers: int
    stack: int  # bytes a thread: arrays with an index that is known at run time, and spills
    spills: int  # loads of registers that were spilled
    load_bits: int  # of the widest access to global memory
    store_bits: int
    divisions_64: int  # kinds of quotients and remainders of 64-bit integers
    divisions: int  # of integers: a 64-bit one has a path of 32 bits, too


class Family(NamedTuple):
    """Kernels whose names match an expression, and their limits."""

    name: str
    pattern: str
    kernels: int  # at least so many, or the expression misses kernels that were renamed
    registers: int  # a GPU has 32 for each thread that fits on it, and allots them by eights
    instructions: int
    load_bits: int = 128  # at least
    store_bits: int = 128  # at least
    divisions_64: int = 0
    divisions: int = 0
    stack: int = 0
    spills: int = 0


STORED = r"(float|parallax::B?Float16)"
ACTIVATIONS = ("(Relu|LeakyRelu|PRelu|Sigmoid|HardSigmoid|HardSwish|Swish|Tanh|GeluErf|GeluTanh|Erf|Exp|Elu|Selu|"
               "Softplus|Clamp<float>)")


def packed(functor: str, elements: str = "[48]", stored: str = STORED) -> str:
    """Maps of contiguous rows: each thread computes that number of neighbors."""
    return rf"PackedMapKernel<Cuda, {elements}, OfStored<float, float, {functor}, {stored}>"


def scanned(name: str) -> str:
    return rf"ScanRowsKernel<Cuda, float, float, ({name})"


# The first family that matches has a kernel.
FAMILIES = (
    Family("maps: Add, Sub, Mul, Maximum, Minimum", packed("(Add|Sub|Mul|Maximum|Minimum)"), 15, 32, 500),
    Family("maps: Div, Sqrt, Reciprocal", packed("(Div|Sqrt|Reciprocal)"), 9, 32, 700),
    Family("maps: activations", packed(ACTIVATIONS), 40, 32, 1200),
    Family("maps: casts", packed("Same"), 4, 32, 400, 64, 64),
    Family("maps: other functors of float32", packed(".*", "4", "float"), 30, 40, 1700, stack=32),
    Family("maps: other functors of narrow floats", packed(".*"), 60, 40, 3200, 64, 64, stack=32),
    Family("maps: comparisons", r"PackedMapKernel<Cuda, \d, OfStored<\w+, bool, ", 20, 32, 400, 128, 32),
    Family("maps with strides or mixed types", "MapKernel<Cuda, float, float, ", 50, 32, 900, 32, 32),
    Family("copies of 16 bytes", "CopyStridedKernel<Cuda, Bytes16>", 1, 16, 100),
    Family("copies of 1 to 8 bytes", "CopyStridedKernel<", 4, 32, 300, 32, 32),
    Family("transposes", "TransposeKernel<", 5, 32, 600, 32, 32),
    Family("fills", "FillKernel<", 1, 32, 500, 0, 128, divisions_64=2, divisions=3),
    Family("gathers and index maps", "IndexMapKernel<", 10, 64, 3200, divisions_64=2, divisions=17, stack=1152),
    Family("reductions of rows", "FoldRowsKernel<Cuda, float, ", 12, 32, 3200, 128, 64),
    Family("reductions of columns", "FoldColumnsKernel<Cuda, float, ", 12, 48, 1000, 64, 64, 1, 1),
    Family("Softmax, LogSoftmax", scanned("(Log)?SoftmaxRow"), 2, 40, 4200, 128, 128, 1, 1),
    Family("norms", scanned("NormRow|GroupNormRow|ChannelRow|BatchNormRow|LpRow"), 5, 56, 8000, 128, 128, 2, 24),
    Family("attention: scores to weights", scanned("SoftenedScores|Masked"), 3, 72, 10000, 128, 128, 1, 3),
    Family("rows held in registers", "HeldRowsKernel<", 3, 80, 3800),
    Family("long rows in pieces", "(Fold|FoldColumn|Merge|Scan|Run)PiecesKernel<Cuda, float, ", 50, 56, 4000, 32, 32, 2, 2, 32),
    Family("attention: float32", "FlashKernel<Cuda, FmaEngine", 1, 255, 7400, 128, 32, 1, 18),
    Family("attention: TF32, float16, bfloat16", "FlashKernel<Cuda, MmaEngine", 3, 255, 7400, 128, 32, 1, 18),
    Family("attention: before and after the tiles", "(UnboundedTiles|FlashMerge)Kernel<", 6, 32, 1300, 32, 32, 1, 8),
    Family("statistics", "ChunkStatisticsKernel<", 4, 128, 12900, 128, 64, 1, 240),
    Family("chains of pointwise operators", "ProgramKernel<", 3, 48, 3600, stack=512),
    Family("rotary embeddings", r"RotateKernel<Cuda, \S+, [48]>", 3, 48, 1900, 128, 128, 1, 1),
)

# Kernels with one defect each, and words of the sentence that names it when they are maps; `wide` has none.
CONTROLS = {
    "quotient": ("unsigned long long* x, unsigned long long y", "x[threadIdx.x] /= y;", "64-bit divisions"),
    "remainder": ("long long* x, long long y", "x[threadIdx.x] %= y;", "64-bit divisions"),
    "quotient_32": ("uint4* x, unsigned y", "x[threadIdx.x].x /= y;", "divisions of integers"),
    "narrow": ("char* x, const char* y", "x[threadIdx.x] = y[threadIdx.x];", "loads of 32 bits"),
    "indexed": ("float4* x, int y", "float4 z[32]; for (int i = 0; i < 32; ++i) z[(i * y) & 31] = x[i]; x[0] = z[y];",
                "bytes of stack"),
    "spilled": ("float* x, int", "float y[96]; for (int i = 0; i < 96; ++i) y[i] = x[threadIdx.x + 1024 * i]; "
                "__syncthreads(); for (int i = 0; i < 96; ++i) x[threadIdx.x + 1024 * i] = y[95 - i];", "spilled"),
    "wide": ("float4* x, const float4* y", "x[threadIdx.x] = y[threadIdx.x];", ""),
}

INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@\S+ )?([A-Z0-9_.]+)")
USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
ACCESS = re.compile(r"(LD|ST)G\.(?:.*\.)?(128|64)(\.|$)")
# An integer is divided by an approximate reciprocal of the divisor as a float that is rounded up, which no conversion
# in a program is: in 64 bits by a subroutine, unless both numbers have at most 32; in 32 bits inline.
RECIPROCAL_64, RECIPROCAL_32 = "I2F.U64.RP", "I2F.U32.RP"
RELOAD = "LDL.LU"  # a register's last use of local memory; arrays are read by LDL


def output_of(command: list[str], text: str | None = None) -> str:
    return subprocess.run(command, input=text, check=True, text=True, stdout=subprocess.PIPE).stdout


def opcodes_of(cuobjdump: str, file: pathlib.Path) -> dict[tuple[str, str], list[str]]:
    """The opcodes of each kernel, by architecture and mangled name."""
    found: dict[tuple[str, str], list[str]] = {}
    architecture, current = "", []
    for line in output_of([cuobjdump, "-sass", str(file)]).splitlines():
        if line.startswith("arch = "):
            architecture = line.split()[-1]
        elif "Function : " in line:
            current = found.setdefault((architecture, line.split()[-1]), [])
        elif match := INSTRUCTION.match(line):
            current.append(match[1])
    return found


def usage_of(cuobjdump: str, file: pathlib.Path) -> dict[tuple[str, str], tuple[int, int]]:
    """Registers and bytes of stack of each kernel."""
    found = {}
    architecture, name = "", ""
    for line in output_of([cuobjdump, "-res-usage", str(file)]).splitlines():
        if line.startswith("arch = "):
            architecture = line.split()[-1]
        elif match := re.match(r"\s*Function (\S+):", line):
            name = match[1]
        elif match := USAGE.search(line):
            found[architecture, name] = (int(match[1]), int(match[2]))
    return found


def widest(opcodes: list[str], kind: str) -> int:
    widths = [int(match[2]) for opcode in opcodes if (match := ACCESS.match(opcode)) and match[1] == kind]
    return max(widths, default=32 if any(opcode.startswith(kind + "G") for opcode in opcodes) else 0)


def kernels_of(cuobjdump: str, file: pathlib.Path) -> list[Kernel]:
    opcodes, usage = opcodes_of(cuobjdump, file), usage_of(cuobjdump, file)
    names = output_of(["c++filt"], "\n".join(name for _, name in opcodes)).splitlines()
    kernels = []
    for ((architecture, mangled), found), name in zip(opcodes.items(), names):
        name = re.sub(r"parallax::runtime::|gpu::|\(anonymous namespace\)::|^void ", "", name)
        registers, stack = usage[architecture, mangled]
        kernels.append(Kernel(
            architecture, name, sum(opcode != "NOP" for opcode in found), registers, stack, found.count(RELOAD),
            widest(found, "LD"), widest(found, "ST"), found.count(RECIPROCAL_64), found.count(RECIPROCAL_32)))
    return kernels


def breaches(kernel: Kernel, family: Family) -> list[str]:
    """A sentence for each limit that the kernel exceeds."""
    most = (("instructions", "{} instructions"), ("registers", "{} registers"), ("stack", "{} bytes of stack"),
            ("spills", "{} spilled registers are loaded"), ("divisions_64", "{} kinds of 64-bit divisions"),
            ("divisions", "{} divisions of integers"))
    least = (("load_bits", "loads of {} bits"), ("store_bits", "stores of {} bits"))
    found = [(words, getattr(kernel, field), f"at most {getattr(family, field)}") for field, words in most
             if getattr(kernel, field) > getattr(family, field)]
    found += [(words, getattr(kernel, field), f"at least {getattr(family, field)}") for field, words in least
              if getattr(kernel, field) < getattr(family, field)]
    return [f"{family.name}: {kernel.name.split('>(')[0]} ({kernel.architecture}): {words.format(value)}; the limit is {limit}"
            for words, value, limit in found]


def by_family(kernels: list[Kernel]) -> dict[str, list[Kernel]]:
    found: dict[str, list[Kernel]] = {family.name: [] for family in FAMILIES}
    for kernel in kernels:
        for family in FAMILIES:
            if re.search(rf"run_(bounded_)?kernel<{family.pattern}", kernel.name):
                found[family.name].append(kernel)
                break
    return found


def table_of(architecture: str, families: dict[str, list[Kernel]]) -> str:
    lines = [f"| Kernels ({architecture}) | number | instructions | registers | stack | spills | bits of a load | of a store | "
             "64-bit divisions | all of integers |", "|---|---|---|---|---|---|---|---|---|---|"]
    for name, kernels in families.items():
        own = [kernel for kernel in kernels if kernel.architecture == architecture]
        if not own:
            continue
        most = [max(getattr(kernel, field) for kernel in own) for field in ("instructions", "registers", "stack", "spills")]
        least = [min(kernel.load_bits for kernel in own), min(kernel.store_bits for kernel in own)]
        divisions = [max(kernel.divisions_64 for kernel in own), max(kernel.divisions for kernel in own)]
        lines.append("| " + " | ".join(str(cell) for cell in (name, len(own), *most, *least, *divisions)) + " |")
    return "\n".join(lines)


def control_failures(cuobjdump: str, nvcc: str, architecture: str) -> list[str]:
    """A sentence for each control whose defect is not named, or that is blamed without one."""
    source = "".join(f'extern "C" __global__ void __launch_bounds__(1024) {name}_control({parameters}) {{ {body} }}\n'
                     for name, (parameters, body, _) in CONTROLS.items())
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "controls.cu"
        file.write_text(source)
        cubin = file.with_suffix(".cubin")
        subprocess.run([nvcc, "-cubin", f"-arch={architecture}", "-o", cubin, file], check=True)
        kernels = {kernel.name: kernel for kernel in kernels_of(cuobjdump, cubin)}
    limits = Family("control", "", 1, 64, 1000)
    failures = []
    for name, (_, _, words) in CONTROLS.items():
        found = " ".join(breaches(kernels[name + "_control"], limits))
        if words not in found or (not words and found):
            failures.append(f"control '{name}' ({architecture}) must be found with '{words}'; found is '{found}'")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="print the counts")
    parser.add_argument("--cuobjdump", default=shutil.which("cuobjdump") or "", help="NVIDIA's disassembler")
    parser.add_argument("--nvcc", default="", help="compiles the controls")
    parser.add_argument("objects", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if not options.cuobjdump:
        print("skipped: there is no cuobjdump; it comes with the CUDA toolkit, or from PyPI as nvidia-cuda-cuobjdump with "
              "nvidia-cuda-nvdisasm (tests/inspector/python/environment core)")
        return SKIPPED
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda file: kernels_of(options.cuobjdump, file), options.objects)
        # An operator's kernel is in several objects where several sources use it.
        kernels = list(dict.fromkeys(kernel for of_file in found for kernel in of_file))
    if not kernels:
        print("skipped: the objects have no kernels: " + " ".join(map(str, options.objects)))
        return SKIPPED
    architectures = sorted({kernel.architecture for kernel in kernels})
    families = by_family(kernels)
    failures = []
    for family in FAMILIES:
        for architecture in architectures:
            own = [kernel for kernel in families[family.name] if kernel.architecture == architecture]
            if len(own) < family.kernels:
                failures.append(f"{family.name} ({architecture}): {len(own)} kernels match '{family.pattern}'; at least "
                                f"{family.kernels} must")
            failures += [breach for kernel in own for breach in breaches(kernel, family)]
    if options.nvcc:
        for architecture in architectures:
            failures += control_failures(options.cuobjdump, options.nvcc, architecture)
    if options.table or failures:
        print("\n\n".join(table_of(architecture, families) for architecture in architectures))
    print("\n".join(failures))
    print(f"{len(kernels)} kernels, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
