"""OpenVINO: the IR with the ranges of every axis, run here against onnxruntime, or against the PyTorch model.

contract  ->  model.xml, model.bin     inputs [1..8,1..512], weights as they are
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from anyshape.checking.contract_inputs import any_answered, bytes_at, make_inputs, not_refused, run_outside
from anyshape.deploying.deploy_messages import cannot_take, differs_from_file, nothing_compared
from anyshape.deploying.deployment import Built, DeployRequest, Target
from anyshape.deploying.served_sizes import served_domain, table_rows
from anyshape.domain import Sizes, choose_sizes, range_of
from anyshape.findings import Finding, PromiseBroken, UsageError
from anyshape.records.contract import TensorPromise
from anyshape.runtime import ChildRunner, RunError, RuntimeRejected
from anyshape.runtime.child_messages import Array
from anyshape.runtime.openvino_session import AxisRange, openvino_version, save_ir
from anyshape.runtime.runtimes import OPENVINO as RUNTIME
from anyshape.runtime.runtimes import check_runtime
from anyshape.verify.compare import OutputTolerance, compare_outputs

_MOST_BYTES = 1 << 24
_SIZES = 16


def build_openvino(request: DeployRequest, folder: Path) -> Built:
    """Write the IR. Raises UsageError where OpenVINO does not take the file (AS555), PromiseBroken where it answers otherwise
    than onnxruntime or the model."""
    check_runtime(RUNTIME.name)
    ir_file = folder / "model.xml"
    ranges = {tensor.name: axis_ranges(request, tensor) for tensor in request.contract.inputs}
    try:
        save_ir(request.path, ir_file, ranges)
    except RuntimeRejected as error:
        raise UsageError(_not_loaded(error)) from error
    if request.compare is not None:
        compared = request.compare(ir_file)
        evidence = f"equal to the PyTorch model at {compared} sizes"
    else:
        compared = compare_with_onnxruntime(request, ir_file)
        evidence = f"equal to onnxruntime at {compared} sizes" if compared else "not compared: it draws random numbers"
    request.tell("running outside the contract", 0, 0)
    outside = run_outside(ir_file, request.contract, RUNTIME.name)
    shapes = {name: [_spoken(ends) for ends in axes] for name, axes in ranges.items()}
    lines = [
        *(f"input   {name}: [{', '.join(axes)}]" for name, axes in shapes.items()),
        f"run     by OpenVINO {openvino_version()} on the CPU, {evidence}",
        f"refuses {sum(not run.answered for run in outside)} of {len(outside)} calls outside the contract",
    ]
    found = (not_refused(RUNTIME.name, outside),) if any_answered(outside) else ()
    return Built(lines=tuple(lines), facts={"inputs": shapes, "sizes_compared": compared}, findings=found)


OPENVINO = Target("openvino", "OpenVINO: the IR, with ranges", build_openvino, takes=("model",))


def axis_ranges(request: DeployRequest, tensor: TensorPromise) -> list[AxisRange]:
    """The smallest and the largest size of each axis of an input over the domain."""
    found: list[AxisRange] = []
    for axis in tensor.axes:
        ends = None if axis is None else range_of(request.domain, axis)
        low, high = (0, None) if ends is None else ends
        found.append((low if isinstance(low, int) else 0, high if isinstance(high, int) else None))
    return found


def compare_with_onnxruntime(request: DeployRequest, ir_file: Path) -> int:
    """At how many sizes the IR answers as the file does in onnxruntime. Raises PromiseBroken where it does not."""
    contract = request.contract
    if contract.random:
        return 0
    points = choose_sizes(
        served_domain(request), cost=lambda sizes: bytes_at(contract, sizes), budget=_MOST_BYTES, limit=_SIZES
    ).points
    tolerances = [OutputTolerance(tensor.name) for tensor in contract.outputs]
    rows, compared = table_rows(request.path), 0
    refusals: list[str] = []
    with ChildRunner(request.path) as reference, ChildRunner(ir_file, runtime=RUNTIME.name) as runner:
        for place, sizes in enumerate(points):
            request.tell("comparing", place, len(points))
            feeds = make_inputs(contract, sizes, seed=place, rows=rows)
            try:
                expected = reference.run(feeds)
            except RunError as error:  # values that the contract does not know to be illegal
                refusals.append(str(error))
                continue
            _compare(sizes, expected, partial(runner.run, feeds), tolerances)
            compared += 1
    if not compared:
        raise PromiseBroken(nothing_compared(refusals[0] if refusals else "there are no sizes."))
    return compared


def _compare(
    sizes: Sizes, expected: list[Array], run: Callable[[], list[Array]], tolerances: list[OutputTolerance]
) -> None:
    try:
        actual = run()
    except RuntimeRejected as error:
        raise UsageError(_not_loaded(error)) from error
    except RunError as error:
        raise PromiseBroken(differs_from_file(sizes, f"it raises: {str(error).splitlines()[0][:200]}")) from error
    found = compare_outputs(expected, actual, tolerances)
    if found is not None:
        why = (
            f"output {found.output!r}: expected {found.expected}, actual {found.actual}, {found.count} elements differ."
        )
        raise PromiseBroken(differs_from_file(sizes, why))


def _not_loaded(error: RuntimeRejected) -> Finding:
    lines = [line for line in error.message.splitlines() if line.strip()]
    return cannot_take(
        "OpenVINO",
        "it does not load it",
        " ".join(lines[:3])[:300],
        'export it with another opset, or without target="onnxruntime".',
    )


def _spoken(ends: AxisRange) -> str:
    low, high = ends
    return str(low) if low == high else f"{low}.." if high is None else f"{low}..{high}"
