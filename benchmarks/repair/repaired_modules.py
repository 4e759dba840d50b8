"""Modules that answer at one size: refused with the line, repaired with `repair=True`, compared with the model that is meant.

python benchmarks/repair/repaired_modules.py [NAME ...]

The rows are those of hardcoded.py and the cases `hardcoded` of ../shared/corpus. For each: without `repair` the line is named;
with it the file equals the meant model at other sizes, the diff applies with `git apply`, and the patched source answers there.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CORPUS = HERE.parents[2] / "shared" / "corpus"
sys.path[:0] = [str(HERE), str(CORPUS)]

import hardcoded  # noqa: E402
import torch  # noqa: E402

import anyshape  # noqa: E402


@dataclass(frozen=True)
class Case:
    """One module. `make(source)` builds it from a module of Python that holds its source, the original or a patched one."""

    name: str
    file: Path
    make: Callable[[Any], torch.nn.Module]
    meant: Callable[[], torch.nn.Module] | None
    inputs: Any
    others: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    is_trap: bool = False

    def source(self) -> Any:
        return sys.modules[self.file.stem]


def own_cases() -> Iterator[Case]:
    for row in hardcoded.ALL:
        name = row.name

        def make(source: Any, name: str = name) -> torch.nn.Module:
            torch.manual_seed(0)
            return next(each for each in source.ALL if each.name == name).make().eval()

        def meant(row: Any = row) -> torch.nn.Module:
            torch.manual_seed(0)
            return row.repaired().eval()

        others = [anyshape.Inputs((), row.inputs(**sizes)) for sizes in row.others]
        options = {"where": list(row.where)}
        yield Case(
            name,
            Path(hardcoded.__file__),
            make,
            meant if row.repaired is not None else None,
            row.inputs,
            others,
            options,
            is_trap=row.repaired is None,
        )


def corpus_cases() -> Iterator[Case]:
    if not CORPUS.is_dir():
        return
    import corpus

    for case in corpus.CASES:
        if case.kind != "hardcoded":
            continue

        def make(source: Any, name: str = case.name) -> torch.nn.Module:
            return next(each for each in source.CASES if each.name == name).make()

        examples = [anyshape.Inputs(args, kwargs) for args, kwargs in case.examples]
        options = {"dynamic": case.dynamic, "where": case.where}
        meant = (lambda case=case: case.make(repaired=True)) if case.repaired else None
        yield Case(f"corpus:{case.name}", Path(corpus.__file__), make, meant, examples[0], examples, options)


def export(case: Case, **options: Any) -> anyshape.Export:
    return anyshape.export(case.make(case.source()), case.inputs, **case.options, **options)


def is_line_named(case: Case) -> str:
    """Empty if the export without `repair` is refused and names a line of the source."""
    try:
        result = export(case)
    except anyshape.PromiseBroken as broken:
        return "" if case.file.name + ":" in str(broken) else "NO LINE"
    return "" if any(found.narrows for found in result.findings) else "NOT REFUSED"


def patched(case: Case, diff: str, folder: Path) -> Any:
    """The source after `git apply`, as a module of Python."""
    copy = folder / case.file.name
    shutil.copy(case.file, copy)
    name = next(line for line in diff.splitlines() if line.startswith("--- a/")).removeprefix("--- a/")
    (folder / "fix.patch").write_text(
        diff.replace(f"a/{name}", f"a/{copy.name}").replace(f"b/{name}", f"b/{copy.name}")
    )
    subprocess.run(["git", "apply", "fix.patch"], cwd=folder, check=True, capture_output=True)
    spec = importlib.util.spec_from_file_location(f"patched_{len(sys.modules)}", copy)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def compare(case: Case, result: anyshape.Export, folder: Path) -> str:
    """`right`, or what differs from the meant model at other sizes."""
    assert result.repair is not None and case.meant is not None
    source = patched(case, result.repair.diff, folder)
    loaded = anyshape.load(result.path)
    for inputs in case.others:
        with torch.no_grad():
            expected = case.meant()(*inputs.args, **inputs.kwargs)
            eager = case.make(source)(*inputs.args, **inputs.kwargs)
            actual = loaded(*inputs.args, **inputs.kwargs)
        shapes = [list(value.shape) for value in [*inputs.args, *inputs.kwargs.values()]]
        for who, value in (("source", eager), ("file", actual)):
            if expected.shape != value.shape or not torch.allclose(expected, value, rtol=1e-3, atol=1e-4):
                return f"WRONG {who} at {shapes}"
    return "right"


def judge(case: Case) -> tuple[str, float]:
    """How it ends, and the CPU seconds of the export with `repair`."""
    missing = is_line_named(case)
    if missing:
        return missing, 0.0
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        try:
            result = export(case, path=Path(folder) / "m.onnx", repair=True)
        except anyshape.PromiseBroken as broken:
            return f"refused: {broken.findings[-1].code} {broken.findings[-1].what}", time.process_time() - began
        took = time.process_time() - began
        if result.repair is None:
            return "refused: narrowed, not repaired", took
        if case.meant is None:
            return f"WRONG: repaired, {result.repair.edits[0]}", took
        return compare(case, result, Path(folder)), took


def main(names: list[str]) -> int:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    found: Counter[tuple[str, str]] = Counter()
    for case in (*own_cases(), *corpus_cases()):
        if names and case.name not in names:
            continue
        verdict, seconds = judge(case)
        kind = "trap" if case.meant is None else "repairable"
        found[kind, verdict.split()[0].rstrip(":")] += 1
        print(json.dumps({"model": case.name, "verdict": verdict, "cpu_s": round(seconds, 2)}), flush=True)
    for (kind, verdict), count in sorted(found.items()):
        print(f"{kind}: {verdict} {count}")
    bad = [key for key in found if key[1] not in ("right", "refused") or key == ("repairable", "refused")]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
