# SPDX-License-Identifier: Apache-2.0
"""The program's jobs as functions, which answer with its documents: Python never says anything else than it does."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from parallax import _arguments as arguments
from parallax import _files
from parallax._arguments import Inputs, JobOptions, Paths, PolicyOptions, RunOptions
from parallax._sentences import translated
from parallax._results import Bench, BackendTests, Doctor, Part, Profile, RunResult
from parallax.comparison import Comparison
from parallax.errors import Error, UsageError
from parallax.model import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Bench", "Comparison", "Doctor", "Part", "Profile", "RunResult", "backend_tests", "bench", "blame", "compare",
    "diff", "doctor", "extract", "profile", "reduce", "run",
]  # fmt: skip

_Result = TypeVar("_Result")
_log = logging.getLogger("parallax")


def run(
    model: Any,
    inputs: Inputs = None,
    *,
    executor: str = "cpu",
    dump: Paths | None = None,
    capture: str | None = None,
    capture_limit: int | str | None = None,
    only: str | Sequence[str] = (),
    save_baseline: Paths | None = None,
    force: bool = False,
    **options: Unpack[JobOptions],
) -> RunResult:
    """Runs a model once on one executor.

    - ``model``: a path, Model, bytes, onnx.ModelProto, onnx_ir.Model or ONNXProgram;
    - ``inputs``: arrays by name (a ``pathlib.Path`` for a .npy file), the path of a test_data_set folder (its outputs
      are compared, too), .npz or .safetensors file, or None: generated, as what is left out of a mapping is;
    - ``dump``: keeps the values, in this folder as EXECUTOR.plx, or in this file where the name ends with .plx;
    - ``capture``: "shape", "stats", "sample" or "all" of each value; those beyond ``capture_limit`` bytes keep a
      sample; ``only``: globs over value paths;
    - ``save_baseline``: writes a dump of statistics for compare(baseline=...);
    - ``force``: replaces files that Parallax did not write; one that is read is never replaced (UsageError);
    - ``options``: seed, shapes, dims, ranges, rewrite, observe_all, fallback, tf32, accumulate, keep_casts,
      memory_limit, threads, policy, rtol, atol, per.

    Raises UsageError, InvalidModel, Unsupported, ExecutionError with the node at fault, KeyboardInterrupt.

    >>> import parallax
    >>> result = parallax.run("samples/cnn/model.onnx", seed=1, dims={"batch": 2})                  # doctest: +SKIP
    >>> result.outputs["log_probabilities"].shape                                                   # doctest: +SKIP
    (2, 10)
    """
    request = _request("run", model, None, inputs, options)
    arguments.set_names(request, only=only)
    arguments.set_texts(
        request, executor=executor, capture=capture, capture_limit=capture_limit, save_baseline=save_baseline, dump=dump
    )
    request["force"] = force
    # The dump is written in the folder it belongs to, and named when it is whole.
    if request.get("dump", "").endswith(".plx"):
        request["dump_file"] = request.pop("dump")
        os.makedirs(os.path.dirname(os.path.abspath(request["dump_file"])), exist_ok=True)
    answer = arguments.run_job("run", request)
    return _with_notes_logged(RunResult(answer), answer["notes"])


def compare(
    model: Any,
    against: Any = None,
    *,
    inputs: Inputs = None,
    executors: str | Sequence[str] | None = None,
    only: str | Sequence[str] = (),
    dump: Paths | None = None,
    capture: str | None = None,
    capture_limit: int | str | None = None,
    baseline: Paths | None = None,
    repeat: int = 0,
    on_value: Callable[[dict[str, Any]], Any] | None = None,
    force: bool = False,
    **options: Unpack[JobOptions],
) -> Comparison:
    """Runs two sides at once on the same inputs and compares every value while they run; what diverged has its causes.

    - ``against``: a second model as side B; or ``baseline``: a kept dump as side A; or ``repeat``: one executor so many
      times against itself, bit by bit; with none of them, two executors run one model;
    - ``executors``: names, A's first (default: reference and cuda, or cpu where there is no GPU; with ``against``,
      reference for both);
    - ``only``: globs over value paths to compare; graph outputs are always compared;
    - ``dump``: a folder for both sides' values, as A-EXECUTOR.plx and B-EXECUTOR.plx;
    - ``on_value``: called with each value's part of the document as soon as it is compared; what it raises ends the
      runs;
    - ``inputs``, ``capture``, ``capture_limit``, ``force``, ``options``: as of run().

    Raises UsageError, InvalidModel, Unsupported, ExecutionError, KeyboardInterrupt (Ctrl-C ends the runs).

    >>> import parallax
    >>> bool(parallax.compare("samples/cnn/model.onnx", executors=("reference", "cpu")))            # doctest: +SKIP
    True
    """
    request = _request("compare", model, against, inputs, options)
    arguments.set_names(request, executors=executors, only=only)
    arguments.set_texts(request, dump=dump, capture=capture, capture_limit=capture_limit, baseline=baseline)
    if repeat:
        if not isinstance(repeat, int) or repeat < 2:
            raise UsageError(f"repeat is {repeat!r}; it must be 2 or more")
        request["repeat"] = repeat
    if on_value is not None:
        request["on_value"] = _reader_of_values(on_value)
    request["force"] = force
    return _comparison("compare", "run", request)


def _reader_of_values(on_value: Callable[[dict[str, Any]], Any]) -> Callable[[str], Any]:
    import json

    return lambda text: on_value(json.loads(text))


def diff(a: Paths, b: Paths, **options: Unpack[PolicyOptions]) -> Comparison:
    """Compares two dumps, value by value; ``a`` is the expected side. ``options``: policy, rtol, atol, per.

    Raises UsageError, CorruptFile, IoError. Of a dump that is damaged, what is intact is compared; it warns.

    >>> import parallax
    >>> parallax.diff("out/A-reference.plx", "out/B-cpu.plx").summary.diverged                      # doctest: +SKIP
    0
    """
    request = arguments.request_of("diff", options, (PolicyOptions,))
    arguments.set_texts(request, a=a, b=b)
    return _comparison("diff", "diff", request)


def blame(
    a: Paths | None = None,
    b: Paths | None = None,
    *,
    model: Any = None,
    against: Any = None,
    inputs: Inputs = None,
    executors: str | Sequence[str] | None = None,
    **options: Unpack[JobOptions],
) -> Comparison:
    """Names the nodes that are to blame for a difference: of two dumps, or of a ``model`` that is run.

    Two dumps take policy, rtol, atol and per alone; a model takes what compare() takes.

    >>> import parallax
    >>> parallax.blame("out/A-reference.plx", "out/B-cpu.plx").causes                               # doctest: +SKIP
    []
    """
    if model is None:
        if a is None or b is None:
            raise UsageError(
                "blame takes two dumps, or model=: a model to run on two executors or against another model")
        of_a_run = {"against": against, "inputs": inputs, "executors": executors}
        given = [name for name, value in of_a_run.items() if value is not None]
        if given:
            raise UsageError(f"{given[0]} belongs to a model that is run: two dumps are judged as they are")
        request = arguments.request_of("blame", options, (PolicyOptions,))
        arguments.set_texts(request, a=a, b=b)
        return _comparison("diff", "blame", request)
    if a is not None or b is not None:
        raise UsageError("blame takes two dumps or a model, not both")
    request = _request("blame", model, against, inputs, options)
    arguments.set_names(request, executors=executors)
    return _comparison("blame", "blame", request)


def reduce(
    model: Any,
    against: Any = None,
    *,
    check: str | Callable[[Model, dict[str, Any]], Any] | None = None,
    executors: str | Sequence[str] | None = None,
    inputs: Inputs = None,
    directory: Paths | None = None,
    fail_codes: Sequence[int] = (),
    fail_regex: str | None = None,
    timeout: float | None = None,
    max_checks: int = 5000,
    force: bool = False,
    **options: Unpack[JobOptions],
) -> Part:
    """Finds the smallest part of a model that still fails, and writes it with its data.

    What fails is ``check``, a function that is given a candidate (a Model) and its inputs (numpy arrays by name) and
    answers whether it fails, or a command ("CMD {model} {inputs}", see ``parallax reduce --help`` for ``fail_codes``,
    ``fail_regex`` and ``timeout`` in seconds); or the comparison with ``against`` or of two ``executors``.
    ``directory`` (default: MODEL-reduced) gets model.onnx (A.onnx and B.onnx), test_data_set_0 and repeat.sh. An
    exception of a function ends the search. ``force``: as of run().

    Raises Error with code 1 where the model as it is does not fail; UsageError, ExecutionError, KeyboardInterrupt (the
    verdicts so far stay in journal.jsonl: a later call goes on from there).

    >>> import parallax
    >>> a, b = "samples/fault_pair/A.onnx", "samples/fault_pair/B.onnx"
    >>> part = parallax.reduce(a, b, directory="small")                                             # doctest: +SKIP
    >>> part.nodes, (part / "A.onnx").exists()                                                      # doctest: +SKIP
    (['block1/depthwise_bn'], True)
    """
    request = _request("reduce", model, against, inputs, options)
    arguments.set_names(request, executors=executors, fail_codes=[str(code) for code in fail_codes])
    arguments.set_texts(request, directory=directory, fail_regex=fail_regex)
    request["max_checks"] = max_checks
    request["force"] = force
    if timeout is not None:
        request["timeout"] = float(timeout)
    if callable(check):
        request["check_function"] = lambda core, arrays: check(Model(core), arrays)
    elif check is not None:
        arguments.set_texts(request, check=check)
    answer = arguments.run_job("reduce", request)
    if not answer["fails"]:
        raise Error(answer["explanation"], code=1)
    return _with_notes_logged(Part(answer), answer["notes"])


def extract(
    model: Any,
    from_: str | Sequence[str] = (),
    to: str | Sequence[str] = (),
    *,
    inputs: Inputs = None,
    executor: str = "reference",
    directory: Paths | None = None,
    force: bool = False,
    **options: Unpack[RunOptions],
) -> Part:
    """Writes a part of a model with its data as a test_data_set; Model.extract() makes one in memory.

    ``from_``: value paths that become inputs (default: the graph's inputs, as far as needed); ``to``: those that become
    outputs. ``directory`` (default: MODEL-part) gets model.onnx and test_data_set_0, computed by ``executor``.
    ``force``: as of run().

    >>> import parallax
    >>> parallax.extract("samples/cnn/model.onnx", "max_pool2d", "add", directory="part").inputs    # doctest: +SKIP
    ['max_pool2d']
    """
    request = _request("extract", model, None, inputs, options, RunOptions)
    arguments.set_names(request, **{"from": from_, "to": to})
    arguments.set_texts(request, executor=executor, directory=directory)
    request["force"] = force
    if not request["to"]:
        raise UsageError("to is missing: values that become outputs")
    answer = arguments.run_job("extract", request)
    return _with_notes_logged(Part(answer), answer["notes"])


def profile(
    model: Any,
    inputs: Inputs = None,
    *,
    executor: str | None = None,
    iterations: int = 5,
    trace: Paths | None = None,
    force: bool = False,
    **options: Unpack[RunOptions],
) -> Profile:
    """Measures the time of each operator and node; ``trace`` writes the last run for chrome://tracing or Perfetto.

    ``executor``: default cuda where there is a GPU, else cpu. ``force``: as of run().

    >>> import parallax
    >>> parallax.profile("samples/cnn/model.onnx", executor="cpu").ops[0].op                        # doctest: +SKIP
    'Conv+Relu'
    """
    request = _request("profile", model, None, inputs, options, RunOptions)
    arguments.set_texts(request, executor=executor)
    request["iterations"] = iterations
    if trace is not None:
        _files.admit(trace, force, [path for path in (request["model"],) if isinstance(path, str)])
    answer = arguments.run_job("profile", request)
    result = Profile(answer)
    if trace is not None:
        result.save_trace(trace, force=force)
    return _with_notes_logged(result, answer["notes"])


def bench(
    model: Any,
    inputs: Inputs = None,
    *,
    executor: str | None = None,
    iterations: int = 10,
    **options: Unpack[RunOptions],
) -> Bench:
    """Measures latency (after a warm-up) and peak memory. ``executor``: default cuda where there is a GPU, else cpu.

    >>> import parallax
    >>> parallax.bench("samples/cnn/model.onnx", iterations=3).latency_ms.median > 0                # doctest: +SKIP
    True
    """
    request = _request("bench", model, None, inputs, options, RunOptions)
    arguments.set_texts(request, executor=executor)
    request["iterations"] = iterations
    answer = arguments.run_job("bench", request)
    return _with_notes_logged(Bench(answer), answer["notes"])


def backend_tests(
    *folders: Paths,
    executor: str | None = None,
    glob: str | None = None,
    strict: bool = False,
    rewrite: str | None = None,
    fallback: str | None = None,
) -> BackendTests:
    """Runs ONNX backend-test folders (model.onnx with test_data_set_N) at any depth; ``glob`` chooses by case name.

    ``strict`` judges by the policy's limits instead of rtol 1e-3, atol 1e-7. True where no case failed.

    >>> from parallax.jobs import backend_tests
    >>> backend_tests("samples", glob="cnn", executor="cpu").passed                                 # doctest: +SKIP
    1
    """
    request: dict[str, Any] = {"folders": [os.fspath(folder) for folder in folders], "strict": strict}
    arguments.set_texts(request, executor=executor, glob=glob, rewrite=rewrite, fallback=fallback)
    return BackendTests(arguments.run_job("test", request))


def doctor() -> Doctor:
    """Says what this machine offers: instruction sets, GPU, libraries, executors; what is missing and how to get it.

    >>> import parallax
    >>> parallax.doctor()["parallax"].available
    True
    """
    return Doctor(arguments.run_job("doctor", {}))


def _request(
    verb: str, model: Any, against: Any, inputs: Inputs, options: Mapping[str, Any], kind: type = JobOptions
) -> dict[str, Any]:
    request = arguments.request_of(verb, options, (kind,))
    request["model"] = arguments.model_of(model)
    if against is not None:
        request["against"] = arguments.model_of(against)
    arguments.set_inputs(request, inputs)
    return request


def _comparison(job: str, verb: str, request: dict[str, Any]) -> Comparison:
    core = arguments.run_job(job, request)
    for sentence in core.warnings:
        warnings.warn(sentence, stacklevel=3)
    return _with_notes_logged(Comparison(core, arguments.command_of(verb, request)), core.notes)


def _with_notes_logged(result: _Result, notes: Sequence[str]) -> _Result:
    for note in notes:
        _log.info(translated(note))
    return result
