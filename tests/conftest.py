"""Shared by all tests: one thread, and the projects' examples at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)

ROOT = Path(__file__).parent.parent


@pytest.fixture
def examples() -> Path:
    return ROOT / "examples"
