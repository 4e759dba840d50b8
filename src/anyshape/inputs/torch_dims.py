"""torch's own words for sizes: Dim, 2*Dim + 1, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC, ShapesCollection, AdditionalInputs.

torch starts every Dim at 0 and does not tell a written 0 from that, so a lower end of 0 counts as not written: sizes
are at least 1 unless `where` says 0.
"""

from __future__ import annotations

from typing import Any

from torch.export import AdditionalInputs, ShapesCollection
from torch.export import Dim as TorchDim

from anyshape.domain import Dim, Expr, Number, Ref
from anyshape.inputs.calls import Inputs
from anyshape.inputs.fit_one import affine
from anyshape.inputs.words import AsItIs, AxisWord, Open


def is_torch_dim(value: Any) -> bool:
    """Whether this is one of torch's words for a size."""
    return isinstance(value, TorchDim) or type(value) is type(TorchDim.AUTO)


def additional_examples(dynamic: Any) -> list[Inputs]:
    """The calls that a torch.export.AdditionalInputs has; an empty list for any other declaration."""
    if not isinstance(dynamic, AdditionalInputs):
        return []
    return [Inputs(tuple(args), dict(kwargs or {})) for args, kwargs in dynamic._examples]


def collected_shapes(dynamic: Any) -> dict[int, Any] | None:
    """The form of each tensor by its id, of a torch.export.ShapesCollection; None for any other declaration."""
    return dict(dynamic._shapes) if isinstance(dynamic, ShapesCollection) else None


def read_torch_dim(value: Any) -> tuple[AxisWord, Dim | None]:
    """What it says of an axis, and the dim that it declares with a range, if it does."""
    if isinstance(value, TorchDim):
        root = getattr(value, "root", value)
        return _expression(value, root), _with_range(root)
    kind = value.type.name
    if kind == "STATIC":
        return AsItIs(), None
    return Open(kind == "DYNAMIC", value.min, value.max), None


def _expression(value: Any, root: Any) -> Expr:
    """A derived dim is linear in its root, so two of its values tell it."""
    if hasattr(value, "value"):
        return Number(int(value.value))
    if value is root:
        return Ref(str(value.__name__))
    offset = int(value.fn(0))
    return affine([(int(value.fn(1)) - offset, Ref(str(root.__name__)))], offset)


def _with_range(root: Any) -> Dim | None:
    if hasattr(root, "value"):
        return None
    low = root.min if isinstance(root.min, int) and root.min > 0 else None
    high = root.max if isinstance(root.max, int) else None
    name = str(root.__name__)
    if low is None and high is None:
        return Dim(name)
    return Dim(name, 1 if low is None else low, high, declared=True)
