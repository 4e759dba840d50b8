"""TensorRT: optimization profiles as arguments of trtexec and polygraphy, as JSON, and as Python that builds the engine.

contract  ->  model.onnx, profiles.json, build_engine.py, trtexec.sh, polygraphy.sh
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anyshape.deploying.deploy_messages import cannot_take, defence_not_measured, no_upper_end, sizes_left_out
from anyshape.deploying.deployment import Built, DeployRequest, Target, copy_model, read_asset, write_json
from anyshape.deploying.profiles import Profile, ProfileSearch, Shape, find_endless
from anyshape.domain import Expr, Number, dims_of, format_sizes
from anyshape.findings import Finding, UsageError
from anyshape.records.contract import Contract

_PLAIN = re.compile(r"[\w./-]+")
_ENDS = ("min", "opt", "max")
_DTYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool")


def build_tensorrt(request: DeployRequest, folder: Path) -> Built:
    """Write the profiles. Raises UsageError for a dim without an end (AS551), and for sizes that break a rule (AS552)."""
    check_types(request.contract)
    inputs = open_inputs(request.contract)
    profiles, left_out = find_profiles(request, inputs)
    shapes = [profile.shapes(inputs) for profile in profiles]
    copy_model(request.path, folder)
    write_json(folder / "profiles.json", profiles_as_plain(profiles, shapes))
    (folder / "build_engine.py").write_text(read_asset("build_engine.txt"), encoding="utf-8", newline="\n")
    commands = {"trtexec.sh": trtexec_arguments(shapes), "polygraphy.sh": polygraphy_arguments(shapes)}
    for name, arguments in commands.items():
        if arguments is not None:
            (folder / name).write_text(shell_script(arguments), encoding="utf-8", newline="\n")
    lines = [_line(place, profile) for place, profile in enumerate(profiles)]
    lines.append(
        "proved  the corners of each profile keep every rule" + ("" if left_out else ", and every size has a profile")
    )
    if commands["trtexec.sh"] is None:
        lines.append("trtexec cannot be given a name with a quote in it: use build_engine.py")
    found = [*([left_out] if left_out else []), defence_not_measured("TensorRT")]
    return Built(lines=tuple(lines), facts=profiles_as_plain(profiles, shapes), findings=tuple(found))


TENSORRT = Target("tensorrt", "TensorRT: optimization profiles", build_tensorrt, takes=("profiles",))


def open_inputs(contract: Contract) -> dict[str, tuple[Expr, ...]]:
    """The inputs with at least one axis that depends on dims; TensorRT takes no profile for the others."""
    found = {}
    for tensor in contract.inputs:
        axes = tuple(axis for axis in tensor.axes if axis is not None)
        if len(axes) != len(tensor.axes):
            raise UsageError(
                cannot_take(
                    "TensorRT",
                    f"an axis of input {tensor.name!r} follows no dim",
                    "a profile has a size for each axis.",
                    "name the axis: dynamic={...} in anyshape.export",
                )
            )
        if any(dims_of(axis) for axis in axes):
            found[tensor.name] = axes
    return found


def check_types(contract: Contract) -> None:
    """Raise UsageError (AS555) for a file of onnxruntime alone, and for element types that TensorRT's inputs do not have."""
    if contract.target:
        raise UsageError(
            cannot_take(
                "TensorRT",
                f"it was written for {contract.target} alone",
                "it has fused operators that no other runtime has.",
                "export the model again, without target.",
            )
        )
    for tensor in contract.inputs:
        if tensor.dtype not in _DTYPES:
            raise UsageError(
                cannot_take(
                    "TensorRT",
                    f"input {tensor.name!r} has the type {tensor.dtype}",
                    f"its inputs are {', '.join(_DTYPES)}.",
                    "give the model inputs of one of these types, and convert inside forward.",
                )
            )


def find_profiles(request: DeployRequest, inputs: Mapping[str, Sequence[Expr]]) -> tuple[list[Profile], Finding | None]:
    """The profiles, and a warning where some sizes lie in none."""
    axes = list(dict.fromkeys(axis for each in inputs.values() for axis in each if not isinstance(axis, Number)))
    if not axes:
        return [], None
    endless = find_endless(request.domain, axes)
    if endless:
        raise UsageError(no_upper_end(endless, "TensorRT"))
    search = ProfileSearch(request.domain, axes)
    request.tell("searching profiles", 0, 0)
    wanted = [search.complete(sizes) for sizes in request.options.at]
    ranges = request.options.profiles
    profiles = search.given(ranges, wanted) if ranges else search.cover(wanted)
    search.check(profiles)
    left = search.find_left_out(profiles)
    return profiles, None if left is None else sizes_left_out(left, len(profiles))


def profiles_as_plain(
    profiles: Sequence[Profile], shapes: Sequence[Mapping[str, tuple[Shape, Shape, Shape]]]
) -> dict[str, Any]:
    """For profiles.json."""
    return {
        "profiles": [
            {
                "name": profile.name,
                "sizes": dict(zip(_ENDS, map(dict, profile.corners), strict=True)),
                "inputs": {name: dict(zip(_ENDS, map(list, each), strict=True)) for name, each in of.items()},
            }
            for profile, of in zip(profiles, shapes, strict=True)
        ]
    }


def trtexec_arguments(profiles: Sequence[Mapping[str, tuple[Shape, Shape, Shape]]]) -> list[str] | None:
    """The command; None where a name has a quote, which trtexec has no way to write."""
    command = ["trtexec", "--onnx=model.onnx", "--saveEngine=model.plan"]
    for place, shapes in enumerate(profiles):
        if any("'" in name for name in shapes):
            return None
        command += [f"--profile={place}"] if len(profiles) > 1 else []
        for end, option in enumerate(("--minShapes", "--optShapes", "--maxShapes")):
            listed = (f"{_trtexec_name(name)}:{'x'.join(map(str, ends[end]))}" for name, ends in shapes.items())
            command.append(f"{option}={','.join(listed)}")
    return command


def _trtexec_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"'{name}'"


def polygraphy_arguments(profiles: Sequence[Mapping[str, tuple[Shape, Shape, Shape]]]) -> list[str]:
    """`polygraphy convert`, with each of its three options once for each profile."""
    command = ["polygraphy", "convert", "model.onnx", "--convert-to", "trt", "-o", "model.plan"]
    for shapes in profiles:
        for end, option in enumerate(("--trt-min-shapes", "--trt-opt-shapes", "--trt-max-shapes")):
            command += [option, *(f"{name}:[{','.join(map(str, ends[end]))}]" for name, ends in shapes.items())]
    return command


def shell_script(arguments: Sequence[str]) -> str:
    """A script that runs the command in its own folder, with further arguments of the caller."""
    lines = " \\\n  ".join(map(shlex.quote, arguments))
    return f'#!/bin/sh\ncd "$(dirname "$0")" || exit 1\nexec {lines} \\\n  "$@"\n'


def _line(place: int, profile: Profile) -> str:
    low, usual, high = (format_sizes(corner) for corner in profile.corners)
    return f"profile {place} ({profile.name}): min {low}; opt {usual}; max {high}"
