"""Limits of one model: how they are written (`10m`, `4GB`), and what a machine allows by itself."""

from __future__ import annotations

import re
from pathlib import Path

from anyshape.findings import Finding
from anyshape.runtime.process import physical_memory

DEFAULT_TIME_S = 600.0
GRACE_S = 5.0  # an export ends by itself at its time limit; a process that does not is killed so much later
_USED_BY_MODELS = 0.9
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i)?)?(?:b|bytes?)?", re.IGNORECASE)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}


def parse_duration(value: object) -> float:
    """Seconds of `60s`, `5m`, `1.5h` or a number of seconds. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"{value!r} is no duration, such as '60s' or '10m'")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_bytes(value: object) -> int:
    """Bytes of `4GB`, `500 MiB` or a number of bytes. Raises ValueError for anything else."""
    match = _BYTES.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    if match is None or float(match[1]) <= 0:
        raise ValueError(f"{value!r} is no amount of memory, such as '4GB' or '500MB'")
    power = _POWERS[match[2].lower()] if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def machine_memory() -> int | None:
    """Bytes of memory that processes may have here: the machine's, or the container's where that is less."""
    machine = physical_memory()
    try:
        container = int(_CGROUP.read_text())
    except (OSError, ValueError):
        return machine
    return container if machine is None else min(machine, container)


def share_of_memory(jobs: int) -> int | None:
    """The memory limit of a model that has none of its own: nine tenths of the machine, divided by the workers."""
    memory = machine_memory()
    return None if memory is None else int(memory * _USED_BY_MODELS / jobs)


def memory_not_measured() -> Finding:
    """A limit is asked for on a system that lists no processes."""
    return Finding(
        code="AS544",
        name="memory-not-measured",
        what="memory_limit cannot be kept here: this system lists no processes under /proc.",
        why="the memory of a model is that of its process and of all processes that it starts.",
        fix="pip install psutil",
    )
