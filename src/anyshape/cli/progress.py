"""Progress on stderr: a bar that moves on a terminal, plain lines elsewhere, nothing when told to be quiet."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_EVERY_SECONDS = 2.0


class ProgressLine:
    """Call it with a stage and how much of it is done. A context manager: what it draws, it takes away."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty()
        self._status: Any = None
        self._stage = ""
        self._told = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._quiet:
            return
        text = f"{stage} {done}/{total}" if total else stage
        if self._is_terminal:
            self._draw(text)
        elif stage != self._stage or time.monotonic() - self._told > _EVERY_SECONDS:
            sys.stderr.write(f"anyshape: {text}\n")
            self._told = time.monotonic()
        self._stage = stage

    def _draw(self, text: str) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status(text)
            self._status.start()
        self._status.update(text)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
