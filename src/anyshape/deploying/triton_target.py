"""Triton: a model repository with `config.pbtxt`, batching where it is right, and warm-up requests at boundary sizes.

contract  ->  NAME/config.pbtxt, NAME/1/model.onnx, NAME/warmup/...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from anyshape.checking.contract_inputs import any_answered, not_refused, run_outside
from anyshape.deploying.deploy_messages import cannot_take
from anyshape.deploying.deployment import Built, DeployRequest, Target, copy_model
from anyshape.deploying.served_sizes import Batching, boundary_sizes, find_batching, run_requests, served_domain
from anyshape.domain import Number
from anyshape.findings import UsageError
from anyshape.records.contract import TensorPromise
from anyshape.runtime.child_messages import Array, raw

_TYPES = {
    "bool": "TYPE_BOOL",
    "float16": "TYPE_FP16",
    "float32": "TYPE_FP32",
    "float64": "TYPE_FP64",
    "bfloat16": "TYPE_BF16",
    "string": "TYPE_STRING",
    **{f"{sign}int{bits}": f"TYPE_{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_QUEUE_DELAY_US = 100


def build_triton(request: DeployRequest, folder: Path) -> Built:
    """Write the repository. Raises UsageError (AS555) for an output whose rank is open, and for types that Triton lacks."""
    for tensor in (*request.contract.inputs, *request.contract.outputs):
        _check_tensor(tensor)
    name = re.sub(r"[^\w.-]", "_", request.path.stem) or "model"
    domain = served_domain(request)
    batching = find_batching(request, domain)
    warm_ups, refused = _warm_ups(request, boundary_sizes(request, domain))
    versions = folder / name / "1"
    versions.mkdir(parents=True)
    copy_model(request.path, versions)
    config = config_text(name, request, batching, _write_warm_ups(folder / name, warm_ups))
    (folder / name / "config.pbtxt").write_text(config, encoding="utf-8", newline="\n")
    request.tell("running outside the contract", 0, 0)
    outside = run_outside(request.path, request.contract, "onnxruntime")
    lines = [
        f"model   {name}, max_batch_size {batching.most}" + (f": {batching.why_not}" if batching.why_not else ""),
        f"warm-up {', '.join(warm_ups) or 'none'}, each run here by onnxruntime",
        *(f"warm-up {each} is left out: onnxruntime refuses inputs made from the contract" for each in refused),
        f"refuses {sum(not run.answered for run in outside)} of {len(outside)} calls outside the contract, run by onnxruntime",
    ]
    facts = {"model": name, "max_batch_size": batching.most, "batch": batching.dim, "why_no_batch": batching.why_not}
    found = (not_refused("onnxruntime", outside),) if any_answered(outside) else ()
    return Built(lines=tuple(lines), facts={**facts, "warm_up": list(warm_ups)}, findings=found)


TRITON = Target("triton", "Triton: a model repository", build_triton)


def _check_tensor(tensor: TensorPromise) -> None:
    if tensor.any_rank:
        raise UsageError(
            cannot_take(
                "Triton",
                f"output {tensor.name!r} has an open number of axes",
                "config.pbtxt lists the axes of each output.",
                "return a tensor with the same number of axes at all sizes.",
            )
        )
    if tensor.dtype not in _TYPES:
        raise UsageError(
            cannot_take(
                "Triton",
                f"{tensor.name!r} has the type {tensor.dtype}",
                f"Triton's types are those of {', '.join(_TYPES)}.",
                "convert it in forward.",
            )
        )


def _warm_ups(
    request: DeployRequest, points: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, dict[str, Array]], list[str]]:
    """Requests with their inputs, and those that onnxruntime refuses. A file with text inputs has none."""
    if any(tensor.dtype == "string" for tensor in request.contract.inputs):
        return {}, []
    return run_requests(request, dict(points))


def _write_warm_ups(
    folder: Path, requests: Mapping[str, Mapping[str, Array]]
) -> dict[str, dict[str, tuple[Array, str | None]]]:
    """Each request's inputs with the file that holds their values; None where they are all zero."""
    found: dict[str, dict[str, tuple[Array, str | None]]] = {}
    for name, feeds in requests.items():
        found[name] = {}
        for place, (tensor, array) in enumerate(feeds.items()):
            file = None if not np.any(array) else f"{name}-{place}"
            if file is not None:
                (folder / "warmup").mkdir(exist_ok=True)
                (folder / "warmup" / file).write_bytes(raw(array).tobytes())
            found[name][tensor] = (array, file)
    return found


def config_text(
    name: str,
    request: DeployRequest,
    batching: Batching,
    warm_ups: Mapping[str, Mapping[str, tuple[Array, str | None]]],
) -> str:
    """The text of config.pbtxt."""
    contract, types = request.contract, {tensor.name: _TYPES[tensor.dtype] for tensor in request.contract.inputs}
    lines = [f"name: {text(name)}", 'backend: "onnxruntime"', 'default_model_filename: "model.onnx"']
    lines += [f"max_batch_size: {batching.most}"]
    for side, tensors in (("input", contract.inputs), ("output", contract.outputs)):
        for tensor in tensors:
            lines += [f"{side} {{", *_indented(_tensor(tensor, is_batched=bool(batching.most))), "}"]
    if batching.most:
        lines += ["dynamic_batching {", *_indented(_batching(request, batching)), "}"]
    for each, feeds in warm_ups.items():
        lines += ["model_warmup {", *_indented(_warm_up(each, feeds, types, batching)), "}"]
    return "\n".join(lines) + "\n"


def _tensor(tensor: TensorPromise, is_batched: bool) -> Iterator[str]:
    yield f"name: {text(tensor.name)}"
    yield f"data_type: {_TYPES[tensor.dtype]}"
    axes = tensor.axes[1:] if is_batched else tensor.axes
    if axes:
        yield f"dims: [ {', '.join(str(axis.value if isinstance(axis, Number) else -1) for axis in axes)} ]"
    else:  # Triton wants an axis; the model gets none
        yield "dims: [ 1 ]"
        yield "reshape: { shape: [ ] }"


def _batching(request: DeployRequest, batching: Batching) -> Iterator[str]:
    preferred = sorted({at[batching.dim] for at in request.options.at if at.get(batching.dim, 0) > 1})
    if preferred:
        yield f"preferred_batch_size: [ {', '.join(map(str, preferred))} ]"
    yield f"max_queue_delay_microseconds: {_QUEUE_DELAY_US}"


def _warm_up(
    name: str, feeds: Mapping[str, tuple[Array, str | None]], types: Mapping[str, str], batching: Batching
) -> Iterator[str]:
    yield f"name: {text(name)}"
    if batching.most:
        yield f"batch_size: {next(iter(feeds.values()))[0].shape[0]}"
    for tensor, (array, file) in feeds.items():
        shape: Sequence[int] = array.shape[1:] if batching.most else array.shape
        yield "inputs {"
        yield f"  key: {text(tensor)}"
        yield "  value {"
        yield f"    data_type: {types[tensor]}"
        yield f"    dims: [ {', '.join(map(str, shape or (1,)))} ]"
        yield "    zero_data: true" if file is None else f"    input_data_file: {text(file)}"
        yield "  }"
        yield "}"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def text(value: str) -> str:
    """A string of protobuf's text format; whatever is no plain character is written as its bytes."""
    return '"' + "".join(_character(byte) for byte in value.encode("utf-8")) + '"'


def _character(byte: int) -> str:
    is_plain = 32 <= byte < 127 and chr(byte) not in '"\\'
    return chr(byte) if is_plain else f"\\{byte:03o}"
