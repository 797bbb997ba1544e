"""What belongs to the process as a whole: the version, threads and executors."""

from parallax._core import executors, set_threads, threads, version

__all__ = ["__version__", "executors", "set_threads", "threads"]

__version__ = version()
