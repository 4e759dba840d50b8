"""ATen operators that torch.onnx lacks, or writes for the traced sizes only, in ONNX for every size: one file a family.

Ours go before torch's, and an operator that has a translation is not decomposed. Each file has what was wrong with
torch's and up to which version it was seen, so that it can go when torch's own is right.

A file has up to three tables, each from a key `"name"` or `"name.overload"` to a function; the tuple FILES has these files:

    TRANSLATIONS          on real numbers
    COMPLEX_TRANSLATIONS  on complex numbers, which are pairs: a last axis of size 2
    LIBRARY_TRANSLATIONS  of operators of other libraries (`transformers::...`), used where the library is imported

Files, in the order in which data flows:

    size_values        functions that all translations use; Loop and If with bodies written like translations
    elementwise        functions of each element: logarithms, gamma, fmax, ...; elu, gelu and their like
    limits_of_floats   NaN, infinities and signs of zero: atan2, angle, clamp, sign, pow, ...; numbers that fill
    integers           divisions that round, gcd, shifts, products and powers of whole numbers
    special_functions  orthogonal polynomials, zeta, normal distribution
    bessel             Bessel functions, Chebyshev series
    complex_numbers    complex numbers as pairs
    reducing           reductions and running sums along an axis
    searching          search by halving, order statistics
    sorting            sort, count, unique
    ranges             arange, repeat, nonzero; random operators; roll and pad
    scattering         rows of tables, scatter, diagonals, strides
    pooling            adaptive pooling
    convolution        convolutions of open groups or sizes
    antialiased        upsample with antialias=True
    interpolating      upsample, grid_sampler
    fourier            fft, istft
    products           products and distances of matrices, attention
    linalg             solve, inverse, determinant
    factors            triangular factors, reflections
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch._ops import OpOverload

Translation = Callable[..., Any]


FILES = (
    "antialiased",
    "bessel",
    "complex_numbers",
    "convolution",
    "elementwise",
    "factors",
    "fourier",
    "integers",
    "interpolating",
    "limits_of_floats",
    "linalg",
    "pooling",
    "products",
    "ranges",
    "reducing",
    "scattering",
    "searching",
    "sorting",
    "special_functions",
)
"""The files of this folder with a table TRANSLATIONS, COMPLEX_TRANSLATIONS or LIBRARY_TRANSLATIONS."""

_OTHER_NAMES = (
    "divide.Tensor",
    "divide.Scalar",
    "divide.Tensor_mode",
    "true_divide.Tensor",
    "true_divide.Scalar",
    "multiply.Tensor",
    "multiply.Scalar",
    "subtract.Tensor",
    "subtract.Scalar",
)
"""Of div, mul and sub: torch.onnx (to 2.13) does not bring their operands to one dtype, as it does for those."""

DECOMPOSED = (
    *_OTHER_NAMES,
    "logdet",  # the logarithm of a determinant that may be too small or too large a number
    "cross_entropy_loss",  # drops label_smoothing, and does not load with probabilities for targets
    "_native_batch_norm_legit_functional",  # gives other statistics than torch in training mode
    "_native_batch_norm_legit",
    "native_batch_norm",
)
"""Whose translation in torch.onnx (to 2.13) is wrong, while torch's own decomposition is right: theirs is not used."""


def operator_translations() -> dict[OpOverload, Translation]:
    """What `ONNXRegistry.register_op(target, function)` takes, for real numbers."""
    from anyshape.leaves import without_types
    from anyshape.leaves.own_operators import grouped_mm

    table = _collect("TRANSLATIONS")
    return {**_by_overload(table), grouped_mm: without_types(table["_grouped_mm"])}


def complex_translations() -> dict[OpOverload, Translation]:
    """Our translations for complex numbers, which are pairs: a last axis of size 2 holds real and imaginary part."""
    from anyshape.leaves import without_types
    from anyshape.leaves.open_lengths import istft

    table = _collect("COMPLEX_TRANSLATIONS")
    return {**_by_overload(table), istft: without_types(table["istft"])}


def library_translations() -> dict[OpOverload, Translation]:
    """Our translations of operators of libraries that are imported by now."""
    return _by_overload(_collect("LIBRARY_TRANSLATIONS"))


def decomposed_operators() -> list[OpOverload]:
    """The operators that are decomposed although torch.onnx has a translation."""
    return list(_by_overload(dict.fromkeys(DECOMPOSED, _unused)))


def _collect(table: str) -> dict[str, Translation]:
    """The tables of this name in all files, as one."""
    files = [import_module(f"anyshape.translate.operators.{name}") for name in FILES]
    return {key: translation for file in files for key, translation in getattr(file, table, {}).items()}


def _unused(*args: Any) -> Any:
    raise NotImplementedError


def _by_overload(table: dict[str, Translation]) -> dict[OpOverload, Translation]:
    """The translations of operators that this torch has; a test finds keys that the pinned torch does not have."""
    from anyshape.leaves import without_types

    found = {find_operator(key): without_types(translation) for key, translation in table.items()}
    return {operator: translation for operator, translation in found.items() if operator is not None}


def find_operator(key: str) -> OpOverload | None:
    """`sort.stable`, `prims::gcd`: the operator, or None where this torch has none of that name."""
    import torch

    space, _, name = key.rpartition("::")
    packet, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, space or "aten"), packet, None), overload or "default", None)


__all__ = [
    "complex_translations",
    "decomposed_operators",
    "find_operator",
    "library_translations",
    "operator_translations",
]
