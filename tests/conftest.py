"""Shared by all tests: one thread, and the projects' examples at hand."""

from __future__ import annotations

import signal
from pathlib import Path

import hypothesis
import pytest
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile("anyshape", deadline=None)  # no test here is about time
hypothesis.settings.load_profile("anyshape")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would every process that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent


@pytest.fixture
def examples() -> Path:
    return ROOT / "examples"
