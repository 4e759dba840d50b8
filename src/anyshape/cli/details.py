"""What other libraries say, on stderr: with -vv only."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Show what each rung said, and every guard; -vv: log lines, graphs and tracebacks of torch, too.",
    ),
]
LIBRARIES = 2


def show_details(verbose: int) -> None:
    """From -vv on, write everything that is logged below `anyshape` to stderr."""
    if verbose < LIBRARIES:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("anyshape: %(message)s"))
    logger = logging.getLogger("anyshape")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
