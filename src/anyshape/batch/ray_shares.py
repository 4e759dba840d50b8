"""Spread one piece of work over a Ray cluster: its files are put once into the object store, each share is one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyshape.batch.ray_cluster import check_worker, connected, first_line, memory_to_reserve, sweep_nodes
from anyshape.batch.ray_task import read_pieces, run_share
from anyshape.batch.travelling_files import Travelling
from anyshape.findings import Finding, UsageError

_RETRIES = 3


def spread(
    address: str,
    travelling: Travelling,
    function: Callable[[Any, tuple[int, int]], Any],
    call: Any,
    *,
    most: int,
    tell: Callable[[int, int], None],
) -> list[Any]:
    """The results of `function(call, (place, count))` for each share: one for each processor, `most` at the most.

    Ray runs a share again when its node dies. Raises UsageError if one has no result: nothing is said of the whole then.
    """
    with connected(address) as ray:
        try:
            return _run(ray, travelling, function, call, most, tell)
        except ray.exceptions.RayTaskError as error:
            check_worker(error)
            raise error.as_instanceof_cause() from error
        except ray.exceptions.RayError as error:
            check_worker(error)
            raise UsageError(_lost(first_line(error))) from error
        finally:
            sweep_nodes(ray)


def _run(
    ray: Any,
    travelling: Travelling,
    function: Callable[[Any, tuple[int, int]], Any],
    call: Any,
    most: int,
    tell: Callable[[int, int], None],
) -> list[Any]:
    files = {name: [ray.put(each) for each in read_pieces(path)] for name, path in travelling.files.items()}
    count = max(1, min(most, int(ray.cluster_resources().get("CPU", 1))))
    memory = min(memory_to_reserve(travelling.data_bytes), int(ray.cluster_resources().get("memory", 0)) // count)
    # A process for each share: the code of the model may leave anything behind in its own.
    task = ray.remote(num_cpus=1, memory=memory, max_retries=_RETRIES, max_calls=1)(run_share)
    tasks = [task.remote(function, call, (place, count), files) for place in range(count)]
    waiting = list(tasks)
    while waiting:
        tell(count - len(waiting), count)
        done, waiting = ray.wait(waiting, num_returns=1)
        ray.get(done)  # a share that failed ends the work at once
    return list(ray.get(tasks))


def _lost(why: str) -> Finding:
    return Finding(
        code="AS547",
        name="worker-lost",
        what="a share of the comparisons has no result: its worker was gone at each attempt.",
        why=why,
        fix="run the same command again, or without --ray.",
    )
