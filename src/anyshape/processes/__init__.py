"""Processes that are forked from the caller's: an export runs in one, and calls of the user's module run in further ones.

A fork has the caller's module, classes, closures and custom operators without pickling, and whatever it does to them ends with
it. It computes with one thread, as the workers of `torch.utils.data.DataLoader` do: OpenMP's threads do not survive a fork.

This file: where a fork is possible, and whether this process is one of ours.

Files, in the order in which data flows:

    forked     fork a process, exchange messages with it, kill it with all that it has started
    deaths     why a process ended: the signal, and the line of Python at which it ended
    idleness   whether a process still computes, and how much it has computed
    run_folders  a folder for the temporary files of one process
    guarded    tensors past whose end nothing can be read
    transport  results and errors as bytes; tensors that the caller has as well travel by name
    quiet      what libraries log and print goes to one logger
    endings    findings about a process that ended without a result
    preload    load what exports load, before a process is forked for one of them
    isolated   run a public function in a process of its own: time limit, progress, output, warnings, errors
    workers    call a function in a process that may crash, hang or take too much memory
"""

from __future__ import annotations

import os
import sys

NO_FORK = "ANYSHAPE_ISOLATE"
"""The environment variable that keeps everything in the caller's process: `ANYSHAPE_ISOLATE=0`, for a debugger."""

_STATE = {"is_own": False}


def can_fork() -> bool:
    """Whether processes can be forked here. On macOS, system libraries do not work after a fork."""
    return hasattr(os, "fork") and sys.platform.startswith("linux") and os.environ.get(NO_FORK) != "0"


def is_own_process() -> bool:
    """Whether this process was forked by anyshape, so that no code of the caller runs in it afterwards."""
    return _STATE["is_own"]


def become_own_process() -> None:
    """To be called first in a forked process."""
    _STATE["is_own"] = True
