"""Other libraries, silent for a while: what they have to say of their own internals is no finding."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any, TextIO


@contextmanager
def quiet_logger(name: str) -> Iterator[None]:
    """Within this, the logger and all below it say nothing; afterwards they are as they were."""
    logger = logging.getLogger(name)
    muted = [logger, *(each for key, each in logging.root.manager.loggerDict.items() if key.startswith(f"{name}."))]
    before = [(each, each.disabled) for each in muted if isinstance(each, logging.Logger)]
    for each, _ in before:
        each.disabled = True
    try:
        yield
    finally:
        for each, disabled in before:
            each.disabled = disabled


@contextmanager
def quiet_graphs() -> Iterator[None]:
    """Within this, torch.export prints no graph of its own on stderr when it gives up; all else is printed."""
    with redirect_stderr(_WithoutGraphs(sys.stderr)):  # type: ignore[type-var]
        yield


class _WithoutGraphs:
    """A stream that leaves out programs of torch."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ends_graph = False

    def write(self, text: str) -> int:
        is_graph = "def forward(" in text and "torch.ops." in text
        is_left_out = is_graph or (self._ends_graph and text == "\n")
        self._ends_graph = is_graph
        return len(text) if is_left_out else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
