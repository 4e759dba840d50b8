"""What translation gives: an ONNX model whose names and dims are the user's, or the operator that has no translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyshape.records.captured import Answer

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class Exported:
    """An ONNX model in memory: its inputs' names, its outputs' names with what each answers, its opset.

    `target` is the only runtime for which it is made; "" for any.
    """

    model: ir.Model
    input_names: tuple[str, ...]
    outputs: tuple[tuple[str, Answer], ...]
    opset: int
    target: str = ""

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)


@dataclass(frozen=True)
class Untranslatable:
    """An operator without a translation, torch's stack text of its first use, and what its template needs.

    `tensors` and `others` are the names of its parameters, `outputs` counts what it returns. `body` is the error with which
    its Python body refused to be followed, and None where it has none. `mutates`: it changes its arguments.
    """

    operator: str
    stack: str | None
    tensors: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    outputs: int = 1
    body: BaseException | None = None
    mutates: bool = False
