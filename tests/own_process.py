"""Run a test in a forked process, as an export runs: where the time limit has its alarm, and searches are kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from anyshape.processes.isolated import call_in_own_process


def in_own_process(test: Callable[..., None]) -> Callable[..., None]:
    """Decorate a test: it runs in a process of its own, and fails here with what it raises there."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        call_in_own_process(lambda tell: test(**fixtures))

    return run
