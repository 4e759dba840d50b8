"""Shared by all tests: one thread, and the projects' examples at hand."""

from __future__ import annotations

import signal
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest
import torch

from tests.thorough import IS_THOROUGH

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


@pytest.fixture(autouse=True)
def gradients_on() -> None:
    """A time limit that ends a call may also end `torch.no_grad()` without its end; exports themselves restore it."""
    torch.set_grad_enabled(True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """An ordinary run has a third of the rows of long tables, and no test that only a thorough run is for."""
    left = [item for item in items if not IS_THOROUGH and _is_left_out(item)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def _is_left_out(item: pytest.Item) -> bool:
    is_row_left_out = crc32(item.name.encode()) % 3 != 0 and item.get_closest_marker("long_table") is not None
    return is_row_left_out or item.get_closest_marker("thorough") is not None
