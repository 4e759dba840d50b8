"""Findings about files: not readable or not usable as an ONNX model with a contract, sizes outside it, signatures not given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from anyshape.domain import Domain, dims_of, format_condition, holds
from anyshape.findings import Finding
from anyshape.findings.finding import quoted

_TRY_ANOTHER = "if anyshape wrote this file with this onnxruntime, please report it; otherwise try a newer onnxruntime."
_NO_KERNEL = (
    "export the model in a dtype that has kernels on this device (model.float() for the CPU), or load the file on another"
    ' device: providers=["CUDAExecutionProvider"].'
)


def missing_file(path: str) -> Finding:
    """There is nothing at the path; a file of almost that name may be meant."""
    folder = Path(path).parent
    if not folder.is_dir():
        return _missing(path, f"there is no folder {str(folder)!r}.", "")
    models = sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".onnx")
    near = get_close_matches(Path(path).name, models, n=1)
    listed = _some(models) if models else "no .onnx file"
    return _missing(
        path, f"the folder {str(folder)!r} has {listed}.", f"did you mean {str(folder / near[0])!r}?" if near else ""
    )


def _missing(path: str, why: str, fix: str) -> Finding:
    return Finding(code="AS040", name="missing-file", what=f"there is no file {path!r}.", why=why, fix=fix)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def not_a_file(path: str) -> Finding:
    """The path is a folder."""
    return Finding(
        code="AS040",
        name="missing-file",
        what=f"{path!r} is a folder, not an ONNX file.",
        fix=f"name the file in it, such as {str(Path(path) / 'model.onnx')!r}.",
    )


def unreadable_file(path: str, error: OSError) -> Finding:
    """The system does not let us read the file."""
    return Finding(
        code="AS040",
        name="missing-file",
        what=f"the file {path!r} cannot be read.",
        why=f"the system says: {error.strerror or error}.",
    )


def no_source(kind: str) -> Finding:
    """A value that is no path, and no bytes."""
    return Finding(
        code="AS036",
        name="argument",
        what=f"the ONNX file is given as {kind}.",
        why="it is a path, or the bytes of a file.",
        fix="'model.onnx'",
    )


def contract_of_another(path: str, kind: str, names: Sequence[str], promised: Sequence[str]) -> Finding:
    """AS046: the contract is about other inputs or outputs than the graph has."""
    return Finding(
        code="AS046",
        name="unreadable-contract",
        what=f"the contract of {path!r} is about other {kind} than its graph has.",
        why=f"the graph has {_some(list(names)) or 'none'}, and the contract {_some(list(promised)) or 'none'}.",
        fix="export the model again: a tool renamed them, or the contract is that of another file.",
    )


def not_onnx(name: str) -> Finding:
    """The bytes are something else."""
    return Finding(
        code="AS041",
        name="not-an-onnx-file",
        what=f"{name!r} is not an ONNX model.",
        why="its bytes are not those of an ONNX protobuf message.",
        fix="give a file that an exporter wrote, usually one that ends in .onnx.",
    )


def cut_short(name: str, size: int, needed: int) -> Finding:
    """The file is the beginning of a model."""
    return Finding(
        code="AS042",
        name="file-cut-short",
        what=f"{name!r} is only the beginning of an ONNX model.",
        why=f"it has {size} bytes, and needs {needed} or more.",
        fix="copy or download it again; a file that anyshape writes is whole, or is not there.",
    )


def missing_data(path: str, locations: list[str]) -> Finding:
    """The weights lie in other files, which are not there."""
    listed = ", ".join(repr(location) for location in locations)
    return Finding(
        code="AS043",
        name="missing-weights",
        what=f"the weights of {path!r} are missing.",
        why=f"they lie in {listed}, which is not next to the model.",
        fix="keep a model and its .data file in the same folder.",
    )


def no_contract(path: str) -> Finding:
    """The file was not written by anyshape."""
    return Finding(
        code="AS044",
        name="no-contract",
        what=f"{path!r} has no contract, so its calls cannot be checked.",
        why="it was not written by anyshape, or its metadata was removed.",
        fix=f"anyshape check {quoted(path)} --model model.py      compares it with its PyTorch model",
        alternative="run it with onnxruntime itself, unchecked.",
    )


def missing_operators(path: str, needs: list[str]) -> Finding:
    """The file has custom nodes, and no functions for them are given."""
    listed = ", ".join(needs)
    return Finding(
        code="AS058",
        name="operator-not-given",
        what=f"{path!r} needs {listed}, and no function for {'it' if len(needs) == 1 else 'them'} is known.",
        why="the model was exported with nodes of its own, which onnxruntime does not have.",
        fix=f"anyshape.load({path!r}, operators={{{needs[0]!r}: function}})",
        alternative=f'import the module that says @anyshape.translation(..., node="{needs[0]}").',
    )


def runtime_rejects(path: str, message: str, what: str = "cannot load {}.", fix: str | None = None) -> Finding:
    """onnxruntime does not take the file, whose name is put into `what`."""
    fix = fix or (_NO_KERNEL if "NOT_IMPLEMENTED" in message else _TRY_ANOTHER)
    return Finding(
        code="AS047", name="runtime-rejects-file", what=f"onnxruntime {what.format(repr(path))}", why=message, fix=fix
    )


def outside_contract(path: str, sizes: Mapping[str, int], domain: Domain, is_own: bool) -> Finding:
    """AS064: nothing is promised at these sizes; `is_own`: whether the domain is that of the file's contract."""
    broken = [condition for condition in domain.conditions() if not holds(condition, sizes)]
    named = dict.fromkeys(name for condition in broken for name in dims_of(condition))
    given = ", ".join(f"{name}={sizes[name]}" for name in named)
    rules = ", ".join(format_condition(condition) for condition in broken)
    return Finding(
        code="AS064",
        name="sizes-outside-contract",
        what=f"{given} lies outside {f'the contract of {path!r}' if is_own else 'the declared domain'}.",
        why=f"{'it promises' if is_own else 'declared is'} {rules}; at other sizes there is nothing to compare.",
        fix=f"anyshape inspect {quoted(path)}      shows what it promises" if is_own else "widen the rules in `where`.",
    )


def cannot_sign(path: str, why: str) -> Finding:
    """AS065: there is nothing that a signature could be about."""
    return Finding(
        code="AS065",
        name="cannot-sign",
        what=f"the contract of {path!r} cannot be renewed.",
        why=why,
        fix=f"anyshape check {quoted(path)} --model model.py      compares without signing",
    )


def other_dims(path: str, promised: Sequence[str], declared: Sequence[str]) -> Finding:
    """AS065: the model file declares other dims than the contract has."""
    why = f"its dims are {', '.join(promised) or 'none'}; those of the model file are {', '.join(declared) or 'none'}."
    return cannot_sign(path, why)


def other_names(path: str, names: Sequence[str], promised: Sequence[str]) -> Finding:
    """AS065: the file no longer has the inputs or outputs that its contract promises."""
    return cannot_sign(path, f"it has {', '.join(names)}, and its contract promises {', '.join(promised)}.")


def providers_elsewhere(providers: Sequence[str], runtime: str) -> Finding:
    """AS422: execution providers belong to onnxruntime."""
    return Finding(
        code="AS422",
        name="unknown-provider",
        what=f"{runtime} has no execution provider {providers[0]!r}.",
        why="execution providers are onnxruntime's.",
        fix="leave --provider out, or --runtime.",
    )
