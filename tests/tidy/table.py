# SPDX-License-Identifier: Apache-2.0
"""The tidy check's data about this tree: the direction of includes, who may use which library, limits and exemptions."""

# The top level of the tree; dot files are free.
TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "NOTICE", "CONTRIBUTING.md", "SECURITY.md",
    "CHANGELOG.md",
    "gui", "inspector", "runtime", "reference", "tests", "samples", "assets",
}

# The line that every source file begins with, as a comment.
LICENSE = "SPDX-License-Identifier: Apache-2.0"

# Folder -> the folders it may include besides itself. The relation is closed transitively by the check.
INCLUDES = {
    "inspector/base/loading": [],
    "inspector/base": ["inspector/base/loading"],
    "inspector/tensor": ["inspector/base"],
    "inspector/model/opset": ["inspector/tensor"],
    "inspector/model": ["inspector/model/opset"],
    "inspector/model/shape_inference": ["inspector/model"],
    "inspector/model/io": ["inspector/model/shape_inference"],
    "inspector/exec": ["inspector/model/io"],
    "inspector/dump/statistics": ["inspector/exec"],
    "inspector/dump/tensor_files": ["inspector/exec"],
    "inspector/dump": ["inspector/dump/statistics", "inspector/dump/tensor_files"],
    "inspector/dump/convert": ["inspector/dump"],
    "inspector/diff/metrics": ["inspector/tensor"],
    "inspector/diff": ["inspector/dump/convert", "inspector/diff/metrics"],
    "inspector/diff/tolerance": ["inspector/diff"],
    "inspector/diff/matching": ["inspector/diff/tolerance"],
    "inspector/diff/compare": ["inspector/diff/matching"],
    "inspector/diff/localize": ["inspector/diff/compare"],
    "inspector/diff/localize_models": ["inspector/diff/localize"],
    "inspector/diff/diagnose": ["inspector/diff/localize_models"],
    "inspector/transform": ["inspector/diff/diagnose"],
    "inspector/transform/half_precision": ["inspector/transform"],
    "inspector/render/layout": ["inspector/diff/diagnose"],
    "inspector/render": ["inspector/render/layout"],
    "inspector/workbench/inputs": ["inspector/transform/half_precision", "inspector/render"],
    "inspector/workbench": ["inspector/workbench/inputs", "inspector/workbench/doctor"],
    "inspector/workbench/doctor": ["inspector/transform/half_precision", "inspector/render"],
    "inspector/workbench/transforms": ["inspector/workbench"],
    "inspector/workbench/half_precision": ["inspector/workbench"],
    "inspector/workbench/reduce": ["inspector/workbench/transforms"],
    "inspector/workbench/generate": ["inspector/workbench"],
    "inspector/executors/foreign": ["inspector/transform"],
    "inspector/executors": ["reference", "runtime/plan", "inspector/executors/foreign"],
    "inspector/cli": ["inspector/workbench/half_precision", "inspector/workbench/reduce", "inspector/workbench/generate", "inspector/executors"],
    "inspector/python": ["inspector/workbench/half_precision", "inspector/workbench/reduce", "inspector/workbench/generate", "inspector/executors"],
    "reference/kernels": ["inspector/tensor"],
    "reference/images": ["inspector/tensor"],
    "reference/ops": ["inspector/exec", "reference/kernels", "reference/images"],
    "reference/ops/contrib": ["reference/ops"],
    "reference/ops/control": ["reference/ops"],
    "reference/ops/spatial": ["reference/ops"],
    "reference/ops/math": ["reference/ops"],
    "reference/ops/ml": ["reference/ops"],
    "reference/ops/nn": ["reference/ops"],
    "reference/ops/tensor": ["reference/ops"],
    "reference": ["reference/ops"],
    "runtime/device": ["inspector/tensor"],
    "runtime/device/cpu": ["runtime/device"],
    "runtime/device/cpu/rows": ["runtime/device/cpu"],
    "runtime/device/cpu/products": ["runtime/device/cpu/rows"],
    "runtime/device/gpu": ["runtime/device/cpu/products"],
    "runtime/device/cuda": ["runtime/device/gpu"],
    "runtime/ops": ["runtime/device/cuda", "inspector/model"],
    "runtime/ops/pointwise": ["runtime/ops"],
    "runtime/ops/movement": ["runtime/ops/pointwise"],
    "runtime/ops/spatial": ["runtime/ops/pointwise"],
    "runtime/ops/products": ["runtime/ops/spatial"],
    "runtime/ops/contrib": ["runtime/ops/products", "runtime/ops/movement"],
    "runtime/rewrite": ["inspector/model"],
    "runtime/plan": ["runtime/ops/contrib", "runtime/rewrite", "inspector/exec"],
    "gui/viewmodel": ["inspector/workbench"],
    "gui/panels": ["gui/viewmodel"],
    "gui/app": ["gui/panels", "inspector/executors"],
    "samples": ["inspector/workbench/half_precision", "inspector/workbench/reduce", "inspector/workbench/generate", "inspector/executors"],
    "tests": ["inspector/cli", "inspector/python", "gui/app", "samples"],
}

# Third-party headers: a pattern -> the folders that wrap the library. The tests' own libraries stand first.
LIBRARIES = [
    (r"(gtest|gmock|benchmark)/", ["tests"]),
    (r"fmt/", ["inspector", "reference", "runtime", "gui", "tests", "samples"]),
    (r"nlohmann/", ["gui/viewmodel", "inspector/model", "inspector/dump", "inspector/diff", "inspector/transform", "inspector/render",
                    "inspector/workbench", "inspector/executors", "inspector/cli", "tests"]),
    (r"(spdlog/|openssl/|xxhash\.h)", ["inspector/base"]),
    (r"hwy/", ["inspector/base", "inspector/tensor", "inspector/dump", "inspector/diff", "runtime/device"]),
    (r"(google/protobuf/|onnx/)", ["inspector/model", "tests/inspector/model"]),
    (r"(zstd|zip|zlib)\.h", ["inspector/dump"]),
    (r"graphviz/", ["inspector/render"]),
    (r"re2/", ["reference/ops"]),
    (r"png\.h", ["reference/images", "gui/app"]),
    (r"(turbojpeg|tiffio|openjpeg)\.h|webp/", ["reference/images"]),
    (r"CLI/", ["inspector/cli"]),
    (r"(oneapi/|dnnl|omp\.h|cblas|openblas|lapacke|sleef)", ["runtime/device"]),
    (r"(cuda|cublas|cudnn|cub/|nvrtc|nvml|nvtx|cooperative_groups|thrust/)", ["runtime/device", "tests/runtime/ptx"]),
    (r"(dlpack/)", ["inspector/tensor", "runtime/device", "inspector/python"]),
    (r"(GLFW/|GL/|EGL/|imgui|backends/imgui|implot)", ["gui", "tests/gui"]),
    (r"(nanobind/|Python\.h)", ["inspector/python"]),
]

# Headers of the operating system and the compiler; C++'s own have no ending and need no entry.
SYSTEM_HEADERS = (
    r"(sys|linux|asm|netinet|arpa)/.*|.*intrin\.h|arm_(acle|neon)\.h|"
    r"(cpuid|dirent|dlfcn|errno|fcntl|fenv|float|ftw|getopt|inttypes|libgen|limits|link|locale|malloc|math|poll|pthread|regex|sched|signal|"
    r"spawn|stdint|stdio|stdlib|string|strings|termios|time|ucontext|unistd|glob|fnmatch|pwd|langinfo|execinfo)\.h"
)

# Standard headers that GCC 12 or clang 14 do not have.
ABSENT_HEADERS = {"format", "expected", "print", "generator", "mdspan", "flat_map", "stacktrace"}

FILE_LINES = 500
FUNCTION_LINES = 70
README_LINES = 100  # a page of prose whose lines are wrapped at MARKDOWN_COLUMNS, and a table of files
MARKDOWN_COLUMNS = 120  # outside tables and blocks of code

# Files that may be longer than FILE_LINES, each with its reason.
LONG_FILES = {"inspector/cli/CLI.md": "the reference of the command line, read by searching"}

# READMEs that are walk-throughs rather than a map of their folder.
LONG_READMES = {"README.md", "samples/README.md"}

# Words that mark something unfinished, and paths of one machine. Written in two halves, so that this file passes its own check.
BANNED_WORDS = [
    r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b",
    r"(?i)\bnot (yet )?imple" r"mented\b",
    r"(?i)\bplace" r"holder\b",
    r"(?i)\bfor" r" now\b",
    r"/tm" r"p/",
]

# Such words that are a library's own terms, and where: torch's graphs call their inputs so.
LIBRARY_WORDS = {
    "place" "holder": ("inspector/python/parallax/torch/", "tests/inspector/python/torch/", "tests/inspector/model/scope_tree_test.cpp"),
}
