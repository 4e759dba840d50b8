"""The round trip: models of one size -> files of both exporters -> made dynamic -> compared with eager at other sizes.

python benchmarks/repair/round_trip.py [NAME ...]      right, refused by node, or wrong: one line for each model and exporter
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import torch
from convnets import ROWS as CONVNETS
from repair_rows import Row
from sequences import HARD_ROWS
from sequences import ROWS as SEQUENCES
from traps import ROWS as TRAPS

from anyshape.files import fix
from anyshape.findings import AnyshapeError
from anyshape.runtime import RunError, Session

EXPORTERS = {"dynamo": True, "legacy": False}


ALL_ROWS = (*CONVNETS, *SEQUENCES, *HARD_ROWS, *TRAPS)


def find_row(name: str) -> Row:
    return next(row for row in ALL_ROWS if row.name == name)


def export_static(row: Row, path: Path, *, dynamo: bool) -> torch.nn.Module:
    """The model, whose file at the row's own sizes is written."""
    torch.manual_seed(0)
    module = row.make().eval()
    inputs = row.inputs(**row.sizes)
    outputs = [name for name in row.words if name not in inputs] or None
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, tuple(inputs.values()), str(path), dynamo=dynamo, input_names=list(inputs), output_names=outputs
        )
    return module


def compare(row: Row, module: torch.nn.Module, path: Path) -> str:
    """`right`, or what differs from eager."""
    session = Session(path)
    for sizes in row.others:
        inputs = row.inputs(**{**row.sizes, **sizes})
        with torch.no_grad():
            answer = module(**inputs)
        expected = [each.numpy() for each in (answer if isinstance(answer, tuple) else (answer,))]
        try:
            actual = session.run({name: value.numpy() for name, value in inputs.items()})
        except RunError as error:
            return f"FAILS at {sizes}: {str(error)[:100]}"
        for one, other in zip(expected, actual, strict=True):
            if one.shape != other.shape or not np.allclose(one, other, rtol=1e-3, atol=1e-4):
                return f"WRONG at {sizes}: {one.shape}, {other.shape}"
    return "right"


def judge(row: Row, exporter: str) -> tuple[str, float]:
    """How the round trip of one model ends, and the CPU seconds of the repair."""
    with tempfile.TemporaryDirectory() as folder:
        static, dynamic = Path(folder) / "static.onnx", Path(folder) / "dynamic.onnx"
        try:
            module = export_static(row, static, dynamo=EXPORTERS[exporter])
        except Exception as error:
            return f"not exported: {type(error).__name__}", 0.0
        began = time.process_time()
        try:
            fix(static, dynamic, row.words)
        except AnyshapeError as refused:
            return f"refused: {refused.finding.what} {refused.finding.why}", time.process_time() - began
        took = time.process_time() - began
        return compare(row, module, dynamic), took


def main(names: list[str]) -> int:
    logging.disable(logging.WARNING)
    rows = [row for row in ALL_ROWS if not names or row.name in names]
    hard = {row.name for row in (*HARD_ROWS, *TRAPS)}
    found: Counter[tuple[bool, str]] = Counter()
    for row in rows:
        for exporter in EXPORTERS:
            verdict, seconds = judge(row, exporter)
            found[row.name in hard, verdict.split()[0].rstrip(":")] += 1
            print(
                json.dumps({"model": row.name, "exporter": exporter, "verdict": verdict, "cpu_s": round(seconds, 2)}),
                flush=True,
            )
    for (is_hard, verdict), count in sorted(found.items()):
        print(f"{'hard' if is_hard else 'usual'}: {verdict} {count}")
    return 1 if any(verdict in ("WRONG", "FAILS") for _, verdict in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
