"""torch.export replaces `min`, `max` and `math.pow` for the whole process; here it does so for the exporting thread alone."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from anyshape.modules.patching import standing


@contextmanager
def thread_builtins() -> Iterator[None]:
    """Within this, torch.export in this thread leaves the builtins of other threads as they are (torch 2.13)."""
    import torch
    from torch._export import non_strict_utils
    from torch.export import _trace

    between: Any = getattr(non_strict_utils, "_tensor_min_max", None)

    @contextmanager
    def replaced() -> Iterator[None]:
        largest = partial(between, real_callable=builtins.max, tensor_callable=torch.maximum)
        smallest = partial(between, real_callable=builtins.min, tensor_callable=torch.minimum)
        space = vars(builtins)
        power = lambda number, exponent: number**exponent  # noqa: E731
        with standing([(space, "max", largest), (space, "min", smallest), (vars(math), "pow", power)]):
            yield

    name = "_override_builtin_ops"
    places = [vars(module) for module in (non_strict_utils, _trace) if name in vars(module)]
    with standing([(place, name, replaced) for place in places] if between is not None else []):
        yield
