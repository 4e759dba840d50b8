"""The connection to a Ray cluster, and what is said where there is none, or where a node of it lacks something."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Generator
from typing import Any

from anyshape.batch.ray_task import sweep
from anyshape.findings import Finding, UsageError

_SWEEP_S = 30.0
_FIRST, _PER_BYTE = 2 << 30, 4


@contextlib.contextmanager
def connected(address: str) -> Generator[Any]:
    """Ray, connected to the cluster; a connection that was there before stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        what = "--ray needs Ray, which is not installed here."
        raise UsageError(no_cluster(what, fix="pip install anyshape[ray]")) from error
    if address.startswith("ray://"):
        what = f"{address!r} is the address of a Ray client, over which no files can be streamed."
        raise UsageError(no_cluster(what, fix="run the command on a node of the cluster: --ray, or --ray HOST:6379"))
    if ray.is_initialized():
        yield ray
        return
    try:
        with _keeping_handlers():
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        what = f"there is no Ray cluster at {address!r}."
        raise UsageError(no_cluster(what, first_line(error), "ray start --head, or --ray local")) from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _keeping_handlers() -> Generator[None]:
    """Ray gives SIGTERM a handler of its own; ours ends the work in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def alive_nodes(ray: Any) -> list[dict[str, Any]]:
    """What Ray tells of each node that is alive."""
    return [node for node in ray.nodes() if node["Alive"]]


def sweep_nodes(ray: Any) -> None:
    """Remove what killed workers left on their machines."""
    at = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    with contextlib.suppress(ray.exceptions.RayError):
        tasks = [
            ray.remote(sweep).options(num_cpus=0, max_retries=0, scheduling_strategy=at(node["NodeID"], soft=False))
            for node in alive_nodes(ray)
        ]
        ray.get([task.remote() for task in tasks], timeout=_SWEEP_S)


def check_worker(error: Exception) -> None:
    """Raise UsageError if the worker cannot even run anyshape: no other model would fare better."""
    cause = getattr(error, "cause", None) or error
    if isinstance(cause, ImportError) or "No module named 'anyshape'" in str(error):
        what = "a node of the cluster cannot import anyshape."
        raise UsageError(no_cluster(what, first_line(error), "pip install anyshape   on every node")) from error


def first_line(error: BaseException) -> str:
    """The kind of an error and the first line of its message; of what a task raised, not of Ray's report about it."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines()
    return ": ".join([type(cause).__name__, *lines[:1]])


def memory_to_reserve(data_bytes: int) -> int:
    """Bytes for torch and a small model, and for copies of weights of this size."""
    return _FIRST + _PER_BYTE * data_bytes


def no_cluster(what: str, why: str = "", fix: str = "") -> Finding:
    return Finding(code="AS546", name="ray-cluster", what=what, why=why, fix=fix, is_fix_untried=True)
