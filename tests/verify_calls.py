"""What requests of the tests of verification share: a call of a module, a domain that has all sizes, files from x to y."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx

from anyshape.verify import Reference, VerifyRequest
from anyshape.verify.tensors import to_array


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


class Everything:
    def contains(self, sizes: object) -> bool:
        return True


def request_of(
    model: onnx.ModelProto,
    reference: Reference,
    make: Callable[[Any, int], Call],
    sizes: Sequence[Mapping[str, int]],
    **more: Any,
) -> VerifyRequest:
    """For a file with one input x and one output y."""
    return VerifyRequest(
        model=model.SerializeToString(),
        output_names=["y"],
        reference=reference,
        make=make,
        feeds=lambda inputs: {"x": to_array(inputs.args[0])},
        domain=Everything(),
        sizes=sizes,
        **more,
    )
