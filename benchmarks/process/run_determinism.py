"""Exports models alone, and again at nice 19 beside busy loops: the same bytes, the same findings, the same refusals.

python benchmarks/process/run_determinism.py [MODELS]        60 models unless given: the zoo, then features of torch
python benchmarks/process/run_determinism.py 20 --loops 4 --loop-nice 19     the busy loops that run beside
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Entries = dict[str, list[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", type=int, default=60)
    parser.add_argument("--loops", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--loop-nice", type=int, default=0)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)  # in the child: where its entries go
    chosen = parser.parse_args()
    if chosen.write is not None:
        _export_all(chosen.models, chosen.write)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        alone, alone_s = _exported(chosen.models, Path(folder) / "alone.json", 0)
        with _busy(chosen.loops, chosen.loop_nice):
            beside, beside_s = _exported(chosen.models, Path(folder) / "beside.json", 19)
    different = [name for name in alone if alone[name] != beside.get(name)]
    for name in different:
        print(f"differs  {name}\n  alone   {alone[name]}\n  beside  {beside.get(name)}")
    kept = sum(entry[0].startswith("file ") for entry in alone.values())
    print(f"{len(alone) - len(different)} of {len(alone)} the same ({kept} files, {len(alone) - kept} refusals)")
    print(f"alone {alone_s:.0f} s, at nice 19 beside {chosen.loops} loops of nice {chosen.loop_nice} {beside_s:.0f} s")
    return 1 if different else 0


def _exported(models: int, path: Path, nice: int) -> tuple[Entries, float]:
    """What each export gave in a process of its own, and how long all of them took."""
    began = time.monotonic()
    command = ["nice", "-n", str(nice), sys.executable, __file__, str(models), "--write", str(path)]
    subprocess.run(command, check=True)
    entries: Entries = json.loads(path.read_text())
    return entries, time.monotonic() - began


@contextlib.contextmanager
def _busy(loops: int, nice: int) -> Iterator[None]:
    command = ["nice", "-n", str(nice), sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in running:
            loop.kill()
            loop.wait()


def _export_all(models: int, path: Path) -> None:
    import torch

    found: Entries = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (name, export) in enumerate(_rows()):
            if number == models:
                break
            torch.manual_seed(0)
            file = Path(folder) / "m.onnx"
            found[name] = _entry(export, file)
            file.unlink(missing_ok=True)
            print(f"{name}: {found[name][0][:60]}", flush=True)
    path.write_text(json.dumps(found))


def _entry(export: Callable[[Path], Any], file: Path) -> list[str]:
    from anyshape.findings import AnyshapeError

    try:
        result = export(file)
    except AnyshapeError as error:
        return [f"refused {error.findings[0].code}", *map(str, error.findings)]
    return [f"file {hashlib.sha256(file.read_bytes()).hexdigest()}", *map(str, result.findings)]


def _rows() -> Iterator[tuple[str, Callable[[Path], Any]]]:
    """The modules of the zoo, then every sixth feature of torch, then those after them, and so on."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]
    from features import caches, flow, forms, hard, language, loose  # noqa: F401 - they list their features
    from features.feature import FEATURES, Case

    import anyshape
    from zoo import ZOO, Row

    def of_zoo(row: Row) -> Callable[[Path], Any]:
        return lambda file: anyshape.export(row.module(), row.inputs, file, where=row.where)

    def of_feature(case: Case) -> Callable[[Path], Any]:
        inputs = anyshape.Inputs(case.args, case.kwargs)
        return lambda file: anyshape.export(case.model, inputs, file, dynamic=case.dynamic, **case.options)

    for row in ZOO:
        yield f"zoo {row.name}", of_zoo(row)
    for first in range(6):
        for feature in FEATURES[first::6]:
            yield f"feature {feature.name}", of_feature(feature.make())


if __name__ == "__main__":
    sys.exit(main())
