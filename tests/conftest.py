"""Shared by all tests: one thread, and the projects' examples at hand."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile("anyshape", deadline=None)  # no test here is about time
hypothesis.settings.load_profile("anyshape")

ROOT = Path(__file__).parent.parent


@pytest.fixture
def examples() -> Path:
    return ROOT / "examples"
