"""The module at given sizes -> a trace, by make_fx on fake tensors above the dispatcher.

Operators are recorded as the user called them (`linear`, `reshape`, `matmul`), since what they come down to depends on
sizes: a reshape is a view or a copy, a matmul folds or not, and a size of 1 changes both.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from anyshape.capture.generalized.asked import AskedValues
from anyshape.capture.generalized.steps import steps_of
from anyshape.capture.generalized.trace import Trace
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.control_flow import control_flow_in_python
from anyshape.intercept.operation_counts import count_real_call
from anyshape.intercept.patching import uncached, without_fused_layers
from anyshape.leaves import leaves
from anyshape.leaves.transformer_layers import masks_as_in_eager
from anyshape.modules.state import kept

TraceKey = tuple[tuple[str, int], ...]
_MOST_OPERATORS = 1_000_000


class Recorder:
    """Traces one module at one assignment of sizes after another; `traces` keeps those that were made."""

    def __init__(
        self, module: torch.nn.Module, declared: Declared, traces: dict[TraceKey, Trace] | None = None
    ) -> None:
        self.module = module
        self._declared = declared
        self._traces = traces if traces is not None else {}
        self.weights = weights_of(module)

    def trace(self, sizes: Mapping[str, int]) -> Trace:
        """The steps at these sizes. Raises ValueAsked, and whatever the module raises on fake tensors."""
        key = tuple(sorted(sizes.items()))
        if key not in self._traces:
            self._traces[key] = self._record(sizes)
        return self._traces[key]

    def count(self, sizes: Mapping[str, int]) -> int | None:
        """How many operators a call at these sizes runs, counted while it really runs; None where it raises."""
        inputs = self._declared.make(sizes, 0)
        with _untouched(self.module):
            counted = count_real_call(lambda: self._declared.call(self.module, inputs), _MOST_OPERATORS)
        return counted.operators if counted is not None else None

    def _record(self, sizes: Mapping[str, int]) -> Trace:
        declared = self._declared
        values = open_values(declared, sizes)
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        paths: list[str] = []

        def run(*given: torch.Tensor) -> Any:
            rest = iter(given)
            leaves_given = [next(rest) if isinstance(value, torch.Tensor) else value for value in values]
            with AskedValues():
                answered = flatten_outputs(declared.call(self.module, declared.rebuild(leaves_given)))
            answers = [(path, leaf) for path, leaf in answered if leaf is not None and not isinstance(leaf, str)]
            paths.extend(path for path, _ in answers)
            return tuple(leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf) for _, leaf in answers)

        with _untouched(self.module), _quiet_tracing(), leaves(), control_flow_in_python(), torch.no_grad():
            recorded = make_fx(
                run, tracing_mode="fake", _allow_non_fake_inputs=True, pre_dispatch=True, record_stack_traces=True
            )(*tensors)
        positions = [position for position, value in enumerate(values) if isinstance(value, torch.Tensor)]
        steps = steps_of(recorded, positions, self.weights)
        shapes = tuple(tuple(value.shape) if isinstance(value, torch.Tensor) else () for value in values)
        dtypes = tuple(value.dtype if isinstance(value, torch.Tensor) else torch.int64 for value in values)
        return Trace(dict(sizes), steps, shapes, dtypes, tuple(paths))


def open_values(declared: Declared, sizes: Mapping[str, int]) -> list[Any]:
    """The open leaves at these sizes; a float becomes a tensor of no axes, since as a number it would be baked in."""
    values = declared.open_values(declared.make(sizes, 0))
    return [torch.tensor(value) if isinstance(value, float) else value for value in values]


def weights_of(module: torch.nn.Module) -> dict[int, tuple[str, torch.Tensor]]:
    """Every tensor that the module holds, by identity: parameters, buffers, and plain attributes."""
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        found.setdefault(id(tensor), (name, tensor))
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            for path, tensor in _tensors_in(name, value):
                found.setdefault(id(tensor), (f"{prefix}.{path}" if prefix else path, tensor))
    return found


def _tensors_in(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _tensors_in(f"{name}.{index}", item)
    elif isinstance(value, dict) and name not in ("_parameters", "_buffers", "_modules"):
        for key, item in value.items():
            yield from _tensors_in(f"{name}.{key}", item)


@contextmanager
def _untouched(module: torch.nn.Module) -> Iterator[None]:
    with kept(module), uncached(module), masks_as_in_eager(module):
        yield


@contextmanager
def _quiet_tracing() -> Iterator[None]:
    with ExitStack() as stack:
        # One fused operator for a whole encoder layer: it has no translation, and its parts have.
        stack.enter_context(without_fused_layers())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield
