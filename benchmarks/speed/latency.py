"""Milliseconds of one call in onnxruntime, at the five sizes of a model: our file beside torch's two and a static one.

    python benchmarks/speed/latency.py MODEL FOLDER        prints one line of JSON

The files are those that one_export.py wrote into FOLDER; a static file is exported here at each size. One thread for each
session, no spinning, the files in turn, the minimum of many calls. Our file is opened twice, and once more as
target="onnxruntime" writes it: the difference between the first two is what the machine adds. A file counts only where its
answer is right, and the reference is eager torch.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir
import onnxruntime
import torch
import torch.utils._pytree as pytree
from one_export import quiet
from torch import nn
from zoo_models import Case, Sizes, find_case

from anyshape.optimize import split_skip_norms
from anyshape.runtime.child import optimize_file

_MOST_CALLS, _FEWEST_CALLS, _SECONDS = 200, 8, 12.0


def open_session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def find_session(path: Path) -> onnxruntime.InferenceSession | str:
    """The session, or why there is none."""
    try:
        return open_session(path) if path.exists() else "not exported"
    except Exception as error:
        return str(error).splitlines()[0][:200]


def static_session(case: Case, module: nn.Module, sizes: Sizes, folder: Path) -> onnxruntime.InferenceSession | str:
    path = folder / f"{case.name}-static.onnx"
    try:
        with quiet():
            torch.onnx.export(module, case.inputs(**sizes), str(path), dynamo=True, verbose=False)
        return open_session(path)
    except Exception as error:
        return (str(error).splitlines() or [""])[0][:200]
    finally:
        for each in folder.glob(f"{case.name}-static.onnx*"):
            each.unlink()


def fused_session(path: Path) -> onnxruntime.InferenceSession | str:
    """Our file as `target="onnxruntime"` writes it: optimized by onnxruntime beforehand."""
    target = path.with_name(f"{path.stem}-fused.onnx")
    try:
        optimize_file(path, target)
        fused = onnx_ir.load(target)
        split_skip_norms(fused)
        onnx_ir.save(fused, target)
        return open_session(target)
    except Exception as error:
        return (str(error).splitlines() or [""])[0][:200]
    finally:
        target.unlink(missing_ok=True)


def is_right(session: onnxruntime.InferenceSession, feeds: dict[str, Any], expected: list[Any]) -> bool:
    """Whether the file gives what eager gives, to a hundredth of the largest magnitude in narrow types, else a thousandth."""
    try:
        actual = session.run(None, feeds)
    except Exception:
        return False
    for one, other in zip(actual, expected, strict=True):
        wide, wanted = np.asarray(one, np.float64), np.asarray(other, np.float64)
        allowed = (1e-3 if one.dtype == np.float32 else 3e-2) * max(1.0, float(np.abs(wanted).max(initial=0.0)))
        if wide.shape != wanted.shape or not np.allclose(wide, wanted, rtol=0, atol=allowed, equal_nan=True):
            return False
    return True


def as_array(tensor: torch.Tensor) -> Any:
    return tensor.detach().float().numpy() if tensor.dtype is torch.bfloat16 else tensor.detach().numpy()


def measure(case: Case, module: nn.Module, sizes: Sizes, sessions: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(0)
    inputs = case.inputs(**sizes)
    with torch.no_grad():
        expected = [as_array(each) for each in pytree.tree_leaves(module(*inputs))]
    arrays = [as_array(each) for each in pytree.tree_leaves(inputs)]
    opened = {name: each for name, each in sessions.items() if not isinstance(each, str)}
    feeds = {name: dict(zip((i.name for i in each.get_inputs()), arrays, strict=True)) for name, each in opened.items()}
    right = {name: is_right(each, feeds[name], expected) for name, each in opened.items()}
    running = {name: each for name, each in opened.items() if right[name]}
    best = dict.fromkeys(running, float("inf"))
    began = time.perf_counter()
    for call in range(_MOST_CALLS):
        for name, each in running.items():
            before = time.perf_counter()
            each.run(None, feeds[name])
            best[name] = min(best[name], time.perf_counter() - before)
        if call >= _FEWEST_CALLS and time.perf_counter() - began > _SECONDS:
            break
    return {"sizes": sizes, "ms": {name: round(1000 * each, 4) for name, each in best.items()}, "right": right}


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    case = find_case(name)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    module = case.build().eval()
    sessions: dict[str, Any] = {
        each: find_session(folder / f"{name}-{each}.onnx") for each in ("dynamo", "torchscript", "anyshape")
    }
    sessions["anyshape, again"] = find_session(folder / f"{name}-anyshape.onnx")
    sessions["anyshape, fused"] = fused_session(folder / f"{name}-anyshape.onnx")
    refused = {each: told for each, told in sessions.items() if isinstance(told, str)}
    rows = [
        measure(case, module, sizes, sessions | {"static": static_session(case, module, sizes, folder)})
        for sizes in case.sizes
    ]
    print(json.dumps({"rows": rows, "refused": refused}))


if __name__ == "__main__":
    main()
