# SPDX-License-Identifier: Apache-2.0
"""Who computes cells: processes of this machine, or the workers of an existing Dask cluster. Both write the same records."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from parallax.errors import Error, IoError
from parallax.sweep.execution import Outcome, Stopped, failure, run_cell
from parallax.sweep.identity import check_identity
from parallax.sweep.packages import needed
from parallax.sweep.plan import Cell
from parallax.sweep.spec import Limits

__all__ = ["run_locally", "run_on_cluster"]

CONNECT_SECONDS = 20
Finished = Callable[[Cell, Outcome], None]
_TASKS_PER_THREAD = 4  # that the scheduler holds: enough that no worker waits, few enough that it stays small


def run_locally(cells: Iterable[Cell], jobs: int, limits: Limits, finished: Finished, **settings: Any) -> None:
    """Runs cells by ``jobs`` processes at a time; ``finished`` is called in this thread, in order of their ends.

    An exception, KeyboardInterrupt too, kills the processes first. Raises UsageError of run_cell().
    """
    stop = threading.Event()
    waiting: queue.Queue[Cell | None] = queue.Queue(maxsize=2 * jobs)
    done: queue.Queue[tuple[Cell, Outcome | BaseException]] = queue.Queue()

    def work() -> None:
        while (cell := waiting.get()) is not None:
            try:
                done.put((cell, run_cell(cell, limits, stop=stop, **settings)))
            except Stopped:
                return
            except BaseException as error:  # raised in the thread that waits
                done.put((cell, error))
                return

    threads = [threading.Thread(target=work, name=f"cell-{at}") for at in range(jobs)]
    for thread in threads:
        thread.start()
    pending = 0
    try:
        for cell in cells:
            while pending >= 2 * jobs:
                pending -= _take(done, finished)
            waiting.put(cell)
            pending += 1
        while pending:
            pending -= _take(done, finished)
    except BaseException:
        stop.set()
        raise
    finally:
        with contextlib.suppress(queue.Empty):  # other threads take from it, too
            while True:
                waiting.get_nowait()
        for _ in threads:
            waiting.put(None)
        for thread in threads:
            thread.join()


def _take(done: queue.Queue[tuple[Cell, Outcome | BaseException]], finished: Finished) -> int:
    cell, outcome = done.get()
    if isinstance(outcome, BaseException):
        raise outcome
    finished(cell, outcome)
    return 1


def run_on_cluster(cells: Iterable[Cell], address: str, limits: Limits, finished: Finished, **settings: Any) -> None:
    """Runs cells on the workers of the Dask scheduler at ``address``, as many at a time as they have threads.

    Dask gives the cells of a lost worker to others; after it has lost several with one cell, that cell is a crash. The
    workers need this package and the program; models come by path or from the store. Raises UsageError, IoError where the
    scheduler is not reached.
    """
    distributed = needed("distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise IoError(f"there is no Dask scheduler at '{address}': {error}; dask scheduler starts one") from None
    with client:
        _Cluster(distributed, client, limits, finished, settings).run(iter(cells))


class _Cluster:
    """A window of tasks over the cells: the scheduler never holds more than a few for each thread."""

    def __init__(self, distributed: Any, client: Any, limits: Limits, finished: Finished, settings: dict[str, Any]) -> None:
        self._distributed = distributed
        self._client = client
        self._limits = limits
        self._finished = finished
        self._settings = settings

    def run(self, cells: Iterator[Cell]) -> None:
        by_key: dict[str, Cell] = {}
        ended = self._distributed.as_completed(loop=self._client.loop)
        self._fill(cells, by_key, ended)
        while by_key:
            future = next(ended)
            self._take(by_key.pop(future.key), future)
            future.release()
            self._fill(cells, by_key, ended)

    def _fill(self, cells: Iterator[Cell], by_key: dict[str, Cell], ended: Any) -> None:
        """Submits cells up to the window, many at once: each submission costs the scheduler a message."""
        room = self._window() - len(by_key)
        if by_key and room < self._window() // 4:
            return
        for _ in range(room):
            cell = next(cells, None)
            if cell is None:
                return
            key = f"parallax-{cell.id}"
            by_key[key] = cell
            ended.add(self._client.submit(_run_here, tuple(cell), self._limits, self._settings, key=key, pure=False))

    def _window(self) -> int:
        info = self._client.scheduler_info(n_workers=-1)
        threads = sum(int(worker["nthreads"]) for worker in info["workers"].values())
        return max(8, _TASKS_PER_THREAD * threads)

    def _take(self, cell: Cell, future: Any) -> None:
        if future.status == "finished":
            record, files, is_final = future.result()
            self._finished(cell, Outcome(record, files, is_final))
            return
        error = future.exception() if future.status == "error" else None
        if isinstance(error, self._distributed.KilledWorker):
            sentence = "the workers that ran it were lost; its memory or the program may have ended them"
            self._finished(cell, Outcome(failure(cell, "crash", sentence, self._settings["version"], self._limits), {}))
        elif isinstance(error, Error):
            raise error
        else:
            raise IoError(f"the cluster did not run a cell of model '{cell.model}': {error or future.status}; the same command goes on")


def _run_here(cell: tuple[Any, ...], limits: Limits, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes], bool]:
    """A task of the cluster: plain data in and out. Raises UsageError where an executor differs from the planned one."""
    planned = Cell(*cell)
    for executor, identity in planned.foreign:
        if identity:
            check_identity(executor, identity)
    return tuple(run_cell(planned, limits, **settings))  # type: ignore[return-value]
