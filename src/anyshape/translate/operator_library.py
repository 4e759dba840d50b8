"""torch.onnx's operator library, with signatures only of the functions that a program needs.

torch.onnx parses the source of some 500 functions of onnxscript, and infers the signatures of 830, before it translates
anything: a second of each process. It reads none of them but those of the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.onnx._internal.exporter import _registration


class OperatorLibrary(_registration.ONNXRegistry):  # type: ignore[misc]
    """torch's registry of translations, which infers a signature when its operator is looked up for the first time."""

    def register_op(self, target: Any, function: Callable[..., Any], is_complex: bool = False) -> None:
        """Put a translation before all others of this operator."""
        self._register(target, _without_signature(function, target, is_custom=True, is_complex=is_complex))

    def get_decomps(self, target: Any) -> list[Any]:
        """The translations of an operator with their signatures, our own before torch's."""
        found = super().get_decomps(target)
        for each in found:
            if isinstance(each, _Unread):
                each.infer_signature()
        return found

    def is_registered(self, target: Any) -> bool:
        """Whether an operator has a translation; no signature is inferred for that."""
        return bool(super().get_decomps(target))


class _Unread(_registration.OnnxDecompMeta):  # type: ignore[misc]
    """A translation whose signature is inferred later."""

    skip_signature_inference: bool

    def infer_signature(self) -> None:
        if self.skip_signature_inference:
            self.skip_signature_inference = False
            self.__post_init__()


def _without_signature(function: Callable[..., Any], target: Any, *, is_custom: bool, is_complex: bool) -> _Unread:
    return _Unread(
        onnx_function=function,
        fx_target=target,
        signature=None,
        is_custom=is_custom,
        is_complex=is_complex,
        skip_signature_inference=True,
    )


def load_library(opset: int) -> OperatorLibrary:
    """What `ONNXRegistry.from_torchlib` gives: the translations of torch.onnx and of onnxscript for an opset."""
    from torch.onnx._internal.exporter._torchlib import _torchlib_registry

    library = OperatorLibrary()
    library._opset_version = opset
    for each in _torchlib_registry.get_torchlib_ops():
        library._register(each.fx_target, each)
    for name, function, is_complex in _functions_of_onnxscript():
        target = _registration._get_overload(name)
        if target is not None:
            library._register(target, _without_signature(function, target, is_custom=False, is_complex=is_complex))
    library._cleanup_registry_based_on_opset_version()
    return library


def _functions_of_onnxscript() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """The qualified name of each operator, its function, and whether that is for complex numbers."""
    from onnxscript.function_libs.torch_lib import ops as ops  # which registers its functions
    from onnxscript.function_libs.torch_lib import registration

    for name, found in registration.default_registry.items():
        if not name.startswith("internal::"):
            yield from ((name, function, False) for function in found.overloads)
            yield from ((name, function, True) for function in found.complex)
