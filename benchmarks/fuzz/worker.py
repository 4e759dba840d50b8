"""One process that runs cases: a line on stdin has a number and a seed, a line on stdout the outcome as JSON."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import damaged_files as damage
import odd_sources
import onnx

KINDS = {  # how many of 100 cases
    "bytes": 10,
    "fields": 20,
    "contract": 24,
    "external": 12,
    "structure": 8,
    "path": 5,
    "model file": 6,
    "manifest": 3,
    "command line": 6,
    "python": 6,
}
_MEMORY = 12 * 2**30


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("base", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    import anyshape.checking  # the slow imports come before the first case
    import anyshape.cli.main
    import anyshape.deploying
    import anyshape.files
    import anyshape.sources  # noqa: F401

    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        number, seed = line.split()
        print(json.dumps(run_case(int(number), seed, arguments.base, arguments.folder)), file=replies, flush=True)


def run_case(number: int, seed: str, base: Path, folder: Path) -> dict[str, Any]:
    random = Random(f"{seed}:{number}")
    kind = random.choices(list(KINDS), list(KINDS.values()))[0]
    case = folder / f"case{number}"
    shutil.rmtree(case, ignore_errors=True)
    work, outside = case / "work", case / "outside"
    outside.mkdir(parents=True)
    shutil.copytree(base, work)
    (work / "temporary").mkdir()
    (outside / "secret.bin").write_bytes(bytes(range(256)) * 64)
    before = _listing(case)
    os.chdir(work)
    os.environ["TMPDIR"] = tempfile.tempdir = str(work / "temporary")
    modules = set(sys.modules)
    _reset()
    try:
        call, shown = make_case(kind, random, work)
        outcome, code, detail = _outcome(call)
    finally:
        os.chdir(folder)
        for name in set(sys.modules) - modules:
            if name.startswith(("case_", "linear")):
                del sys.modules[name]
    if _listing(case) != before:
        outcome, detail = "written outside", f"{outcome} {detail}"
    reported = {
        "number": number,
        "kind": kind,
        "shown": shown,
        "outcome": outcome,
        "code": code,
        "detail": detail[-1500:],
    }
    shutil.rmtree(case, ignore_errors=True)
    return reported


def _reset() -> None:
    """What a model file of an earlier case may have changed in this process."""
    import torch

    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float32)


def _listing(case: Path) -> dict[str, str]:
    """Everything in the case's folder but the working folder."""
    found = {}
    for path in sorted(case.rglob("*")):
        if (case / "work") not in (path, *path.parents):
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def _outcome(call: Callable[[], Any]) -> tuple[str, str, str]:
    from anyshape import AnyshapeError

    out, errors = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = call()
    except AnyshapeError as error:
        text = str(error)
        code = error.finding.code
        return ("AS901" if code.startswith("AS9") else "finding"), code, text
    except BaseException as error:
        return "raw", type(error).__name__, "".join(traceback.format_exception(error))
    if not isinstance(status, int):
        return "accepted", "", ""
    text = errors.getvalue()
    if status == 0:
        return "accepted", "", text
    words = text.split()
    code = next(
        (word for word in words if word.startswith("AS") and word[2:5].isdigit()),
        "usage" if status == 2 and "Error:" in text else "",
    )
    code = code or ("interrupted" if status == 130 else "")
    if status == 3 or code.startswith("AS9"):
        reports = [path.read_text() for path in Path("temporary").glob("anyshape-report-*")]
        return "AS901", code, (reports or [text])[0]
    if "Traceback (most recent" in text:
        return "raw", code, text
    return ("finding" if code or status == 1 else "raw"), code, text


def command(*arguments: str) -> Callable[[], int]:
    def run() -> int:
        from anyshape.cli.main import main as run_main

        given = sys.argv
        sys.argv = ["anyshape", *arguments]
        try:
            run_main()
        except SystemExit as error:
            return error.code if isinstance(error.code, int) else 1
        finally:
            sys.argv = given
        return 0

    return run


def make_case(kind: str, random: Random, work: Path) -> tuple[Callable[[], Any], str]:
    """The call to make, and how to show it."""
    if kind == "model file":
        name = f"case_{random.randrange(10**9)}.py"
        (work / name).write_text(odd_sources.model_file(random))
        verb = random.choice(["export", "export", "axes", "check"])
        rest = {"export": ["-o", "out.onnx", "--budget", "2s"], "axes": ["--time-limit", "5s"], "check": []}[verb]
        line = ["check", "linear.onnx", "-m", name, "--sizes", "batch=2"] if verb == "check" else [verb, name, *rest]
        return command(*line, "-q"), f"{' '.join(line)}\n{(work / name).read_text()}"
    if kind == "manifest":
        (work / "models.toml").write_text(odd_sources.manifest(random))
        return command("batch", "models.toml", "-q"), (work / "models.toml").read_text()[:500]
    if kind == "command line":
        line = odd_sources.command_line(random)
        return command(*line), repr(line)[:500]
    if kind == "python":
        return _python_case(random)
    return _file_case(kind, random, work)


def _file_case(kind: str, random: Random, work: Path) -> tuple[Callable[[], Any], str]:
    name = random.choice(["linear", "linear", "outside", "bag", "foreign", "static"])
    path = work / f"{name}.onnx"
    data = path.read_bytes()
    given = str(path.name)
    if kind == "bytes":
        path.write_bytes(damage.damage_bytes(data, random))
    elif kind == "path":
        path.unlink()
        given = damage.no_regular_file(Path(path.name), random)
    else:
        model = onnx.load_from_string(data)
        if kind == "fields":
            damage.damage_fields(model, random)
        elif kind == "contract":
            damage.damage_contract(model, random)
        elif kind == "external":
            name = "outside" if not model.graph.initializer else name
            model = model if model.graph.initializer else onnx.load("outside.onnx", load_external_data=False)
            damage.damage_external(model, work, random)
        else:
            damage.grow(model, random)
        path.write_bytes(model.SerializeToString())
    call, shown = _use(given, path.stem, random)
    return call, f"{kind} of {name}.onnx: {shown}"


def _use(given: str, stem: str, random: Random) -> tuple[Callable[[], Any], str]:
    """A command or a call on a damaged file."""
    kind = random.choices(
        ["inspect", "load", "load bytes", "freeze", "fix", "check", "bench", "compare", "deploy", "sign"],
        [24, 24, 6, 12, 10, 6, 4, 4, 8, 2],
    )[0]
    size = random.choice(["1", "2", "3", "64", "0", "99999999999"])
    dim = {"foreign": "n", "bag": "seq"}.get(stem, "batch")
    words = {"static": "x: batch 3 4", "foreign": "x: n 10"}.get(stem, "input: batch 64")
    target = random.choice(["triton", "tensorrt", "web", "openvino"])
    if kind == "load":
        return lambda: _load_and_call(given), "load"
    if kind == "load bytes":
        return lambda: _load_and_call(
            Path(given).read_bytes() if Path(given[:200].replace("\0", "")).is_file() else b""
        ), "load bytes"
    line = {
        "inspect": ["inspect", given, *(["--json"] if random.random() < 0.4 else [])],
        "freeze": ["freeze", given, f"{dim}={size}", "-o", "one.onnx"],
        "fix": ["fix", given, "-d", words, "-o", "fixed.onnx"],
        "check": ["check", given, "-m", "linear.py", "--sizes", "batch=2"],
        "bench": ["bench", given, "-m", "linear.py", "--sizes", "batch=2", "--seconds", "0.01s"],
        "compare": ["compare", given, "linear.onnx", "-m", "linear.py", "--sizes", "batch=2", "--measure", "0"],
        "deploy": ["deploy", given, "--to", target, "-o", "served", "--at", f"{dim}=2", "--max", f"{dim}=4"],
        "sign": ["check", given, "-m", "linear.py", "--sign", "--budget", "1s"],
    }[kind]
    quiet = [] if kind == "inspect" else ["-q"]
    return command(*line, *quiet), " ".join(line)[:300]


def _load_and_call(given: Any) -> None:
    import numpy as np

    import anyshape

    loaded = anyshape.load(given, allow_broken=True)
    sizes = dict.fromkeys(loaded.contract.domain.names, 2)
    feeds = {}
    for tensor in loaded.contract.inputs:
        shape = [2 if axis is None or not str(axis).isdigit() else int(str(axis)) for axis in tensor.axes]
        if np.prod([float(size) for size in shape]) > 2**20:
            return
        feeds[tensor.path] = np.zeros(shape, tensor.dtype if tensor.dtype in ("int64", "bool") else "float32")
    loaded(**feeds)
    loaded.initial_state(**sizes)


def _python_case(random: Random) -> tuple[Callable[[], Any], str]:
    import anyshape
    from anyshape import files

    values = [odd_sources.python_value(random) for _ in range(4)]
    odd, second = values[0], values[1]
    keyword = random.choice(["threads", "providers", "operators", "allow_broken"])
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("load(odd)", lambda: anyshape.load(odd)),
        (f"load({keyword}=odd)", lambda: anyshape.load("linear.onnx", **{keyword: odd})),
        ("loaded(odd)", lambda: anyshape.load("linear.onnx")(odd)),
        ("loaded(odd)", lambda: anyshape.load("linear.onnx")(odd)),
        ("loaded(ids=odd, mask=odd)", lambda: anyshape.load("bag.onnx")(ids=odd, mask=second)),
        ("loaded(odd, odd)", lambda: anyshape.load("linear.onnx")(odd, second)),
        ("initial_state(batch=odd)", lambda: anyshape.load("linear.onnx").initial_state(batch=odd)),
        ("freeze(sizes=odd)", lambda: files.freeze("linear.onnx", "one.onnx", odd)),
        ("freeze(batch=odd)", lambda: files.freeze("linear.onnx", "one.onnx", {"batch": odd})),
        ("freeze(odd)", lambda: files.freeze(odd, "one.onnx", {"batch": 2})),
        ("freeze(output=odd)", lambda: files.freeze("linear.onnx", odd, {"batch": 2})),
        ("fix(dynamic=odd)", lambda: files.fix("static.onnx", "fixed.onnx", odd)),
        ("fix(x=odd)", lambda: files.fix("static.onnx", "fixed.onnx", {"x": odd})),
        ("fix(read=odd)", lambda: files.fix("static.onnx", "fixed.onnx", {"x": "batch 3 4"}, read=odd)),
        ("deploy(to=odd)", lambda: anyshape.deploy("linear.onnx", odd, "served")),
        ("deploy(at=odd)", lambda: anyshape.deploy("linear.onnx", "triton", "served", at=odd)),
        ("deploy(max_sizes=odd)", lambda: anyshape.deploy("linear.onnx", "triton", "served", max_sizes=odd)),
        ("check(sizes=odd)", lambda: anyshape.check("linear.onnx", _linear(), _inputs, sizes=odd)),
        ("check(inputs=odd)", lambda: anyshape.check("linear.onnx", _linear(), odd, sizes={"batch": 2})),
        ("check(model=odd)", lambda: anyshape.check("linear.onnx", odd, _inputs, sizes={"batch": 2})),
        ("resolve(odd)", lambda: anyshape.sources.resolve(odd)),
    ]
    shown, call = random.choice(calls)
    return call, f"{shown}: {object.__repr__(odd) if type(odd).__module__ == 'odd_sources' else repr(odd)[:200]}"


def _linear() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(64, 32)


def _inputs(batch: int = 3) -> Any:
    import torch

    return torch.randn(batch, 64)


if __name__ == "__main__":
    main()
