"""One row through anyshape, and its contract beside the truth.

Only public names are used: `anyshape.export`, `anyshape.load`, `Export.contract` and its text in the file.
"""

from __future__ import annotations

import ast
import json
import math
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from points import choose_points, random_points, small_points
from rows import Row, Sizes
from truths import runs

import anyshape

POINTS = 2000
_RUN_AT = 6
_REFUSED_AT = 24
_ENDS_OF_COMPARING = ("AS132", "AS137")
_TOLERANCE = 2e-3
_FUNCTIONS = {"isqrt": math.isqrt, "min": min, "max": max, "abs": abs}


def judge(row: Row, folder: Path, time_limit: int) -> dict[str, Any]:
    """What became of a row: `outcome`, the texts that were printed, and where contract, file and truth differ."""
    began = time.monotonic()
    path = folder / f"{row.name}.onnx"
    found: dict[str, Any] = {"row": row.name, "truth": row.truth, "example": row.sizes}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = anyshape.export(
                row.build(), row.make(row.sizes), path, dynamic=row.dynamic, time_limit=time_limit, **row.options
            )
    except anyshape.AnyshapeError as error:
        found |= _refused(row, error)
    else:
        found |= _kept(row, result)
    found["wrong_fixes"] = _wrong_fixes(row, found)
    return found | {"seconds": round(time.monotonic() - began, 1)}


def _refused(row: Row, error: anyshape.AnyshapeError) -> dict[str, Any]:
    text = str(error)
    names_cause = bool(row.pinned) and all(re.search(rf"\b{word}\b", text) for word in row.pinned)
    if isinstance(error, anyshape.PromiseBroken) and names_cause:
        outcome = "PINNED"
    else:
        outcome = "OVER TIME" if error.finding.code == "AS140" else "REFUSED"
    return {"outcome": outcome, "code": error.finding.code, "text": text}


def _kept(row: Row, result: Any) -> dict[str, Any]:
    contract = result.contract
    written = _written(Path(result.path))
    named = [dict(sizes) for sizes in written.get("refused", [])]
    ends = _ends_of_comparing(result.findings)
    points = [sizes for sizes in points_of(row) if _is_below(sizes, ends)]
    wider, narrower = [], []
    for sizes in points:
        is_admitted = contract.domain.contains(sizes)
        if is_admitted and not row.is_true(sizes) and sizes not in named:
            wider.append(sizes)
        if row.is_true(sizes) and not is_admitted:
            narrower.append(sizes)
    found: dict[str, Any] = {
        "outcome": _outcome(row, written, wider, narrower),
        "text": "\n".join(map(str, result.findings)),
        "rules": [rule["condition"] for rule in written["rules"]],
        "dims": [{key: dim[key] for key in ("name", "min", "max", "multiple")} for dim in written["dims"]],
        "relations": written["relations"],
        "strategy": result.strategy,
        "points": len(points),
        "wider": wider[:3],
        "narrower": narrower[:3],
        "ends": ends,
    }
    return found | _run_beside(row, result, wider)


def _outcome(row: Row, written: dict[str, Any], wider: list[Sizes], narrower: list[Sizes]) -> str:
    if row.pinned:
        return "KEPT, NOT PINNED"
    if written.get("rule") == "unknown":
        return "UNKNOWN"
    if wider and narrower:
        return "WIDER AND NARROWER"
    if wider or narrower:
        return "WIDER" if wider else "NARROWER"
    return "EQUAL"


def _written(path: Path) -> dict[str, Any]:
    """The contract's text in the file."""
    model = onnx.load(str(path), load_external_data=False)
    texts = {prop.key: prop.value for prop in model.metadata_props}
    return json.loads(texts["anyshape.contract"])


def _ends_of_comparing(findings: Any) -> Sizes:
    """Upper ends of the contract that come from how far the file was compared, and not from the model."""
    ends: Sizes = {}
    for finding in findings:
        if finding.code in _ENDS_OF_COMPARING:
            ends |= {dim: int(end) for dim, end in re.findall(r"(\w+) <?= (\d+)", finding.what)}
    return ends


def _is_below(sizes: Sizes, ends: Sizes) -> bool:
    return all(sizes[dim] <= end for dim, end in ends.items() if dim in sizes)


def points_of(row: Row, count: int = POINTS) -> list[Sizes]:
    """`count` inside the truth and at its boundary; and others anywhere, since a contract may be too wide far from both."""
    far = far_of(row)
    return [
        *choose_points(row, count, far),
        *random_points(row, count // 2, far),
        *random_points(row, count // 2, row.cheap, seed=1),
        *small_points(row, count // 2),
    ]


def far_of(row: Row) -> Callable[[str], int]:
    """How far contracts are compared: further, where there are few dims; the module is not run there."""
    least = {1: 1500, 2: 200}.get(len(row.dims), 0)
    return lambda dim: max(6 * row.cheap(dim), least)


def _run_beside(row: Row, result: Any, wider: list[Sizes]) -> dict[str, Any]:
    """The file in onnxruntime and through `load`, beside eager: inside, outside, and where the contract is too wide."""
    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(str(result.path))
    loaded = anyshape.load(result.path)
    module = row.build()
    points = choose_points(row, 400, row.cheap, seed=7)
    inside = [sizes for sizes in points if row.is_true(sizes) and result.contract.domain.contains(sizes)][-_RUN_AT:]
    refused = [sizes for sizes in points if not row.is_true(sizes)][:_REFUSED_AT]
    refused += [sizes for sizes in wider if all(size <= row.cheap(dim) for dim, size in sizes.items())][:_REFUSED_AT]
    found: dict[str, Any] = {"run": len(inside), "differs": [], "answers_where_eager_raises": [], "load_differs": []}
    for sizes in inside:
        why = _difference(module, session, row.make(sizes, seed=3))
        if why:
            found["differs"].append({"sizes": sizes, "why": why})
    for sizes in refused:
        if _runs_in(session, row.make(sizes, seed=3)):
            found["answers_where_eager_raises"].append(sizes)
    for sizes in inside + refused:
        if _is_let_in(loaded, row.make(sizes, seed=3)) != result.contract.domain.contains(sizes):
            found["load_differs"].append(sizes)
    return found


def _feeds(session: Any, inputs: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    names = {each.name for each in session.get_inputs()}
    return {name: value.numpy() for name, value in inputs.items() if name in names}


def _runs_in(session: Any, inputs: dict[str, torch.Tensor]) -> bool:
    try:
        session.run(None, _feeds(session, inputs))
    except Exception:
        return False
    return True


def _is_let_in(loaded: Any, inputs: dict[str, torch.Tensor]) -> bool:
    try:
        loaded(**inputs)
    except anyshape.AnyshapeError as error:
        return error.finding.code == "AS417"  # let in, and then failed in onnxruntime
    return True


def _difference(module: torch.nn.Module, session: Any, inputs: dict[str, torch.Tensor]) -> str:
    """How the file differs from eager on these inputs, or ''."""
    feeds = _feeds(session, {name: value.clone() for name, value in inputs.items()})
    is_right, expected = runs(module, inputs)
    if not is_right:
        return f"eager raised: {expected}"
    try:
        actual = session.run(None, feeds)
    except Exception as error:
        return f"onnxruntime raised: {error}"
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    for one, other in zip(expected, actual, strict=True):
        array = one.detach().numpy()
        if array.shape != other.shape or array.dtype != other.dtype:
            return f"{array.dtype}{list(array.shape)} in eager, {other.dtype}{list(other.shape)} in the file"
        if not np.allclose(array.astype(float), other.astype(float), _TOLERANCE, _TOLERANCE, equal_nan=True):
            return f"values, by up to {np.abs(array.astype(float) - other.astype(float)).max()}"
    return ""


def _wrong_fixes(row: Row, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rules that the texts propose (`where=[...]`) and that hold at sizes where eager raises.

    The notes of a file that is kept propose one rule each, and are meant together.
    """
    texts = [text for text in re.findall(r"where=(\[[^\]]*\])", found["text"]) if text != "[...]"]
    proposals = [ast.literal_eval(text) for text in texts]
    if "rules" in found:
        proposals = [[rule for rules in proposals for rule in rules]] if proposals else []
    points = [sizes for sizes in points_of(row) if not row.is_true(sizes)]
    wrong = []
    for rules in proposals:
        compiled = [compile(rule, "<rule>", "eval") for rule in rules]
        unknown = {name for code in compiled for name in code.co_names} - {*row.dims, *_FUNCTIONS}
        if unknown:
            wrong.append({"where": rules, "no_such_dim": sorted(unknown)})
            continue
        holds = (sizes for sizes in points if all(eval(rule, dict(_FUNCTIONS), sizes) for rule in compiled))
        if at := next(holds, None):
            wrong.append({"where": rules, "eager_raises_at": at})
    return wrong
