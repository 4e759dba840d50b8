"""Does verification notice broken exports of our own, and point at the node that was broken?

    python benchmarks/verify_sabotage.py                 a sample of the mutants of every model
    python benchmarks/verify_sabotage.py --every 1       all of them (about an hour)
    python benchmarks/verify_sabotage.py -k heads,rnn    some models; writes no figures

The mutations and models are those of tests/sabotage. A mutant counts where onnxruntime answers otherwise than for the
good file, or no longer. Noticed: the verdict is no pass. Located: the node that the verdict names was mutated, or reads
from one that was. Writes benchmarks/results/verify_sabotage.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "verify_sabotage.json"
sys.path.insert(0, str(HERE.parent / "tests" / "sabotage"))

from exported import SUBJECTS  # noqa: E402
from judged import Row, broken  # noqa: E402


def main() -> None:
    arguments = parsed()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    wanted = [word for word in arguments.models.split(",") if word]
    rows: list[Row] = []
    for subject in SUBJECTS:
        if not wanted or any(word in subject.name for word in wanted):
            for row in broken(subject, arguments.every, arguments.mutation):
                rows.append(row)
                print(shown(row), flush=True)
            print(f"{subject.name}: {said([row for row in rows if row.model == subject.name])}", flush=True)
    print(said(rows))
    if not wanted and not arguments.mutation:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(figures(rows, arguments.every), indent=1) + "\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=7, help="every so many mutants")
    parser.add_argument("-m", dest="mutation", default="", help="mutants whose description contains this")
    parser.add_argument("-k", dest="models", default="", help="models whose name contains one of these words")
    return parser.parse_args()


def shown(row: Row) -> str:
    if row.noticed and row.is_located is not False:
        return f"  ok      {row.mutation} ({row.seconds} s)"
    what = "MISSED " if not row.noticed else "UNFOUND"
    return f"  {what} {row.mutation}: {row.located or 'nothing'}, not {', '.join(row.right_places)} ({row.seconds} s)"


def said(rows: Sequence[Row]) -> str:
    noticed = sum(row.noticed for row in rows)
    looked_for = [row for row in rows if row.is_located is not None]
    located = sum(bool(row.is_located) for row in looked_for)
    share = 100 * located / max(1, len(looked_for))
    return f"{noticed} of {len(rows)} noticed, {located} of {len(looked_for)} located ({share:.1f} %)"


def figures(rows: Sequence[Row], every: int) -> dict[str, Any]:
    return {
        "summary": said(rows),
        "models": len({row.model for row in rows}),
        "every": every,
        "missed": [asdict(row) for row in rows if not row.noticed],
        "not located": [asdict(row) for row in rows if row.is_located is False],
        "seconds": round(sum(row.seconds for row in rows)),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "onnx": onnx.__version__,
            "onnxruntime": onnxruntime.__version__,
        },
    }


if __name__ == "__main__":
    main()
