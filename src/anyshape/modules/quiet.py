"""Other libraries' loggers, silent for a while: what they have to say of their own internals is no finding."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


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
