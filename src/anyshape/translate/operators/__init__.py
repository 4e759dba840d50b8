"""ATen operators that torch.onnx lacks, or writes for the traced sizes only, in ONNX for every size: one file a family.

Ours go before torch's, and an operator that has a translation is not decomposed. Each file says what was wrong with
torch's and up to which version it was seen, so that it can go when torch's own is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch._ops import OpOverload

Translation = Callable[..., Any]


def operator_translations() -> dict[OpOverload, Translation]:
    """What `ONNXRegistry.register_op(target, function)` takes, for real numbers."""
    from anyshape.translate.operators.table import TRANSLATIONS

    return _by_overload(TRANSLATIONS)


def complex_translations() -> dict[OpOverload, Translation]:
    """The same for complex numbers, which are pairs: a last axis of size 2 holds real and imaginary part."""
    from anyshape.operators.spectra import istft
    from anyshape.translate.operators.table import COMPLEX_TRANSLATIONS

    return {**_by_overload(COMPLEX_TRANSLATIONS), istft: _without_types(COMPLEX_TRANSLATIONS["istft"])}


def library_translations() -> dict[OpOverload, Translation]:
    """The same for operators of libraries that are imported by now."""
    from anyshape.translate.operators.table import LIBRARY_TRANSLATIONS

    return _by_overload(LIBRARY_TRANSLATIONS)


def decomposed_operators() -> list[OpOverload]:
    """Those that are taken apart, though torch.onnx has a translation."""
    from anyshape.translate.operators.table import DECOMPOSED

    return list(_by_overload(dict.fromkeys(DECOMPOSED, _unused)))


def _unused(*args: Any) -> Any:
    raise NotImplementedError


def _by_overload(table: dict[str, Translation]) -> dict[OpOverload, Translation]:
    import torch

    found = {}
    for name, translation in table.items():
        packet, _, overload = name.rpartition("::")[2].partition(".")
        namespace = getattr(torch.ops, name.rpartition("::")[0] or "aten")
        operator = getattr(getattr(namespace, packet, None), overload or "default", None)
        if operator is not None:  # every torch has its own set of overloads
            found[operator] = _without_types(translation)
    return found


def _without_types(translation: Translation) -> Translation:
    # torch.onnx would read the annotations as ONNX types, and warn that it cannot.
    return lambda *args, **kwargs: translation(*args, **kwargs)


__all__ = ["complex_translations", "decomposed_operators", "library_translations", "operator_translations"]
