"""What belongs to the process as a whole: threads and executors."""

from parallax._core import executors, set_threads, threads

__all__ = ["executors", "set_threads", "threads"]
