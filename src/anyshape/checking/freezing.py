"""Dims of a file made static: inputs get numbers, what follows from them is folded, the contract is renewed.

The frozen file is compared with the original at the frozen sizes before it is written.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir

from anyshape.checking.file_evidence import FilePair, kinds_of, write_to_run
from anyshape.contract import check_names, find_contract, write_contract
from anyshape.contract.digest import digest_model
from anyshape.contract.file_messages import outside_contract, runtime_rejects
from anyshape.contract.graph_rules import contract_of_foreign
from anyshape.domain import Domain, Expr, Number, dims_of, format_sizes, simplify, smallest_point, substitute
from anyshape.findings import PromiseBroken, UsageError
from anyshape.processes.quiet import quiet_libraries
from anyshape.records.contract import Contract, StatePromise, TensorPromise, Tested
from anyshape.repair.repair_findings import repair_differs
from anyshape.runtime import ChildRunner, RunError
from anyshape.runtime.child_messages import dtype_called

_TRIED = ((1, 1), (2, 3), (7, 11), (32, 64))
_FOLDED_INPUT, _FOLDED_OUTPUT = 64 * 1024, 64 * 1024 * 1024
_ROUNDS = 2


@dataclass(frozen=True)
class Frozen:
    """The contract of a frozen file; `has_contract`: whether the file's metadata has it."""

    contract: Contract
    has_contract: bool
    folded: int


def freeze_model(model: ir.Model, path: Path, sizes: Mapping[str, int]) -> Frozen:
    """Freeze the model in place. Raises UsageError for sizes outside its contract, PromiseBroken where outputs differ."""
    own = find_contract(path)
    if own is not None:
        check_names(own, model, str(path))
    contract = own if own is not None else contract_of_foreign(model)
    _check_sizes(contract, sizes, path, is_own=own is not None)
    frozen = _frozen_contract(contract, sizes)
    before = sum(1 for graph in model.graphs() for _ in graph)
    kinds = kinds_of(model.graph)
    with ChildRunner(path) as original:
        try:
            original.load()  # only what the runtime takes is folded
        except RunError as error:
            raise UsageError(runtime_rejects(str(path), str(error))) from error
        _declare(model, frozen)
        _fold(model)
        _compare(model, path, original, frozen, sizes, kinds)
    if own is not None:
        frozen = replace(frozen, digest=digest_model(model))
        write_contract(model, frozen)
    return Frozen(frozen, own is not None, before - sum(1 for graph in model.graphs() for _ in graph))


def _check_sizes(contract: Contract, sizes: Mapping[str, int], path: Path, *, is_own: bool) -> None:
    for name, size in sizes.items():
        if not contract.domain.dim(name).contains(size):
            alone = Domain((contract.domain.dim(name),))
            raise UsageError(outside_contract(str(path), {name: size}, alone, is_own))


def _frozen_contract(contract: Contract, sizes: Mapping[str, int]) -> Contract:
    numbers: dict[str, Expr] = {name: Number(size) for name, size in sizes.items()}
    dims = tuple(dim for dim in contract.domain.dims if dim.name not in sizes)
    relations = [substitute(each, numbers) for each in contract.domain.relations]
    domain = Domain(dims, tuple(each for each in relations if dims_of(each)))
    rules = [replace(rule, condition=substitute(rule.condition, numbers)) for rule in contract.rules]
    tested = [
        dict(each) for each in contract.tested.sizes if all(each.get(name) == size for name, size in sizes.items())
    ]
    return replace(
        contract,
        domain=domain,
        rules=tuple(rule for rule in rules if dims_of(rule.condition)),
        inputs=tuple(_frozen_tensor(each, numbers) for each in contract.inputs),
        outputs=tuple(_frozen_tensor(each, numbers) for each in contract.outputs),
        refused=tuple(
            {name: size for name, size in each.items() if name not in sizes}
            for each in contract.refused
            if all(each.get(name, size) == size for name, size in sizes.items())
        ),
        state=tuple(_frozen_state(each, sizes) for each in contract.state),
        tested=Tested(
            tuple({name: size for name, size in each.items() if name not in sizes} for each in tested),
            contract.tested.capture_proved,
            {name: size for name, size in contract.tested.largest.items() if name not in sizes},
        ),
    )


def _frozen_tensor(tensor: TensorPromise, numbers: Mapping[str, Expr]) -> TensorPromise:
    return replace(
        tensor,
        axes=tuple(None if axis is None else simplify(substitute(axis, numbers)) for axis in tensor.axes),
        number=None if tensor.number is None else simplify(substitute(tensor.number, numbers)),
    )


def _frozen_state(state: StatePromise, sizes: Mapping[str, int]) -> StatePromise:
    """The first value of a state, stored once along a dim, is repeated along it where the dim becomes a number."""
    shape = tuple(sizes.get(str(size), size) for size in state.shape)
    if shape == state.shape or not state.data:
        return replace(state, shape=shape)
    stored = [1 if isinstance(size, str) else size for size in state.shape]
    wanted = [1 if isinstance(size, str) else size for size in shape]
    value = np.frombuffer(base64.b64decode(state.data), dtype=np.dtype(dtype_called(state.dtype))).reshape(stored)
    data = np.ascontiguousarray(np.broadcast_to(value, wanted)).tobytes()
    return replace(state, shape=shape, data=base64.b64encode(data).decode())


def _declare(model: ir.Model, contract: Contract) -> None:
    """The sizes of inputs and outputs; those of inner values are found anew."""
    ends = {id(value) for value in (*model.graph.inputs, *model.graph.outputs)}
    for graph in model.graphs():
        for node in graph:
            for value in node.outputs:
                if id(value) not in ends:
                    value.shape = None
    promised = {each.name: each for each in (*contract.inputs, *contract.outputs)}
    for value in (*model.graph.inputs, *model.graph.outputs):
        tensor = promised.get(str(value.name))
        if tensor is not None and value.shape is not None and len(tensor.axes) == len(value.shape):
            value.shape = ir.Shape(
                [
                    axis.value if isinstance(axis, Number) else (str(axis) if axis is not None else old)
                    for axis, old in zip(tensor.axes, value.shape, strict=True)
                ]
            )


def _fold(model: ir.Model) -> None:
    """Nodes whose values follow from the numbers become constants."""
    import onnx_ir.passes.common as passes
    from onnxscript.optimizer import fold_constants

    names = [value.name for value in (*model.graph.inputs, *model.graph.outputs)]
    with quiet_libraries():
        for _ in range(_ROUNDS):
            fold_constants(model, input_size_limit=_FOLDED_INPUT, output_size_limit=_FOLDED_OUTPUT)
            passes.RemoveUnusedNodesPass()(model)
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    for value, name in zip((*model.graph.inputs, *model.graph.outputs), names, strict=True):
        value.name = name


def _compare(
    model: ir.Model,
    path: Path,
    original: ChildRunner,
    frozen: Contract,
    sizes: Mapping[str, int],
    kinds: Mapping[str, object],
) -> None:
    """Raise PromiseBroken where the frozen file answers otherwise than the original, at sizes at which that answers."""
    inputs = {each.name: tuple(axis for axis in each.axes if axis is not None) for each in frozen.inputs}
    outputs = {each.name: () for each in frozen.outputs}
    why = ""
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        target = Path(folder) / "frozen.onnx"
        write_to_run(model, target, str(path))
        with ChildRunner(target) as runner:
            for tried in _points(frozen.domain):
                pair = FilePair(original, runner, kinds, inputs, outputs, tried)  # type: ignore[arg-type]
                try:
                    difference = pair.difference_at_own_sizes()
                except RunError as error:
                    why = str(error)
                    continue
                if difference is not None:
                    raise PromiseBroken(repair_differs(f"the frozen file differs from {str(path)!r}.", difference))
                return
    what = f"cannot run {{}} at {format_sizes(sizes)}."
    raise UsageError(runtime_rejects(str(path), why, what, "freeze it at sizes at which it runs."))


def _points(domain: Domain) -> list[dict[str, int]]:
    """Sizes of the dims that stay open."""
    if not domain.dims:
        return [{}]
    smallest = smallest_point(domain)
    made = [{name: tried[index % 2] for index, name in enumerate(domain.names)} for tried in _TRIED]
    return [*([dict(smallest)] if smallest else []), *(each for each in made if domain.contains(each))]
