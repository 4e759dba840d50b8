"""Random numbers under a seed, and everybody else's left as they were.

Python's, numpy's and torch's generators are set, on every device that torch has started; afterwards all go on where
they stood, also after an error.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(*parts: object) -> Iterator[int]:
    """Within this, randomness depends on these parts alone; gives the number that they make."""
    number = seed_of(*parts)
    python, numpy = random.getstate(), np.random.get_state()
    cpu = torch.random.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    try:
        random.seed(number)
        np.random.seed(number)
        torch.default_generator.manual_seed(number)
        if cuda is not None:
            torch.cuda.manual_seed_all(number)
        yield number
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.random.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def seed_of(*parts: object) -> int:
    """A number that depends on the parts alone, the same in every process."""
    return zlib.crc32(repr(parts).encode())
