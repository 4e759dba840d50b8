"""Models through the rungs that learn from traces, and their files compared with eager at sizes of our choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import onnxscript.optimizer
import torch

from anyshape.domain import holds
from anyshape.inputs import Declared, declare, flatten_outputs
from anyshape.modules.state import kept
from anyshape.records.captured import Captured, Region
from anyshape.translate.loops import build_loops, loop_translations
from anyshape.translate.registry import Translator

Sizes = Mapping[str, int]
Rung = Callable[..., Captured]


@cache
def translator() -> Translator:
    return Translator(loop_translations())


@dataclass(frozen=True)
class Learned:
    """A model, what it was learned as, and its file in onnxruntime."""

    module: torch.nn.Module
    declared: Declared
    captured: Captured
    models: tuple[ir.Model, ...]

    @property
    def model(self) -> ir.Model:
        """The model of the first region."""
        return self.models[0]

    def differences(self, sizes: Sequence[Sizes]) -> list[str]:
        """Where the file answers otherwise than eager; empty when all is well."""
        sessions = [_session(model) for model in self.models]
        return [text for each in sizes for text in self._differences(sessions[self.region_of(each)], each)]

    def region_of(self, sizes: Sizes) -> int:
        """The first region whose condition holds."""
        return next(place for place, region in enumerate(self.captured.regions) if holds(region.condition, sizes))

    def _differences(self, session: Any, sizes: Sizes) -> list[str]:
        inputs = self.declared.make(sizes, 1)
        feeds = {
            given.name: value.numpy() if isinstance(value, torch.Tensor) else np.array(value)
            for given, value in zip(session.get_inputs(), self.declared.open_values(inputs), strict=True)
        }
        with torch.no_grad():
            expected = [value for _, value in flatten_outputs(self.declared.call(self.module, inputs))]
        found = []
        for number, (one, other) in enumerate(zip(expected, session.run(None, feeds), strict=True)):
            array = one.numpy() if isinstance(one, torch.Tensor) else np.array(one)
            if array.shape != other.shape:
                found.append(f"{dict(sizes)} output {number}: {array.shape} is {other.shape}")
            elif not np.allclose(
                array.astype(np.float64), other.astype(np.float64), rtol=1e-3, atol=1e-4, equal_nan=True
            ):
                found.append(f"{dict(sizes)} output {number}: values differ")
        return found


def learn(rung: Rung, module: torch.nn.Module, inputs: Any, where: Sequence[str] = ()) -> Learned:
    """The module through one rung, translated and optimized. Raises what the rung raises."""
    module = module.eval()
    declared = declare(module, inputs, where=list(where))
    captured = rung(module, declared, answering(module, declared), translator().decompose)
    return Learned(module, declared, captured, tuple(_translated(region) for region in captured.regions))


def _translated(region: Region) -> ir.Model:
    model = translator().translate(region.program)
    build_loops(model, region.loops, translator())
    onnxscript.optimizer.optimize_ir(model)
    return model


def _session(model: ir.Model) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options)


def answering(module: torch.nn.Module, declared: Declared) -> Callable[[Sizes], bool]:
    """Whether the module answers at given sizes in eager mode."""

    def answers(sizes: Sizes) -> bool:
        try:
            with kept(module), torch.no_grad():
                declared.call(module, declared.make(sizes, 0))
        except Exception:
            return False
        return True

    return answers
