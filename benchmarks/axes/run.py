"""`anyshape.axes` on every case of the corpus, judged by eager: the axes, the rules, and the time.

    python benchmarks/axes/run.py --corpus CORPUS [NAME ...]

Two starting points. *function*: the case's function of sizes, as a model file has it. *example*: one example call, and
no declaration at all; there each axis that the model itself can vary is found, also those that the case does not mean to vary
(the channels of a model without weights), so further axes are right if eager answers when they vary.
Seconds are CPU seconds of this process for one case, after the imports; all cases run one after the other.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

LIMIT_S = 5.0
ENOUGH = 85


def main() -> int:
    arguments = read_arguments()
    sys.path[:0] = [str(arguments.corpus), str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    warnings.simplefilter("ignore")
    import corpus

    cases = [case for case in corpus.CASES if not arguments.names or case.name in arguments.names]
    rows = [row for case in cases for row in (run(case, "function"), run(case, "example"))]
    show(rows)
    if not arguments.names:
        arguments.out.write_text(json.dumps({"versions": versions(), "rows": rows}, indent=1) + "\n", encoding="utf-8")
    exact = sum(row["way"] == "function" and row["outcome"] == "exact" and row["seconds"] < LIMIT_S for row in rows)
    return 0 if arguments.names or exact >= ENOUGH else 1


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="anyshape.axes on the corpus, judged by eager.")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results" / "axes.json")
    parser.add_argument("names", nargs="*", help="only these cases")
    return parser.parse_args()


def versions() -> dict[str, str]:
    """What the figures depend on."""
    return {"python": platform.python_version(), "torch": metadata.version("torch"), "machine": platform.machine()}


def run(case: Any, way: str) -> dict[str, Any]:
    """One case by one starting point: what was found, whether it is right, and the CPU seconds."""
    from corpus_plugin import function_of_sizes
    from judge import judge

    import anyshape

    model = case.make()
    case.examples  # noqa: B018 - made before the clock starts
    began = time.process_time()
    try:
        if way == "function":
            found = anyshape.axes(model, function_of_sizes(case), where=case.where)
        else:
            found = anyshape.axes(model, anyshape.Inputs(*case.examples[0]))
    except anyshape.AnyshapeError as error:
        return {"case": case.name, "way": way, "outcome": "error", "seconds": 0.0, "wrong": [str(error)]}
    seconds = time.process_time() - began
    judged = judge(case, found)
    return {
        "case": case.name,
        "kind": case.kind,
        "truth": case.truth,
        "way": way,
        "outcome": outcome_of(case, found, judged),
        "seconds": round(seconds, 2),
        "calls": found.calls,
        "dynamic": found.dynamic,
        "where": list(found.where),
        "points": judged.points,
        "answered": judged.answered,
        "missing": [list(place) for place in judged.missing],
        "further": [list(place) for place in judged.further],
        "wrong": list(judged.wrong),
    }


def outcome_of(case: Any, found: Any, judged: Any) -> str:
    """exact: the axes of `case.dynamic`, and right rules. more: further axes, all of which eager varies. fixed: an axis that
    the case calls dynamic stays a number, and eager refuses other sizes of it. unknown: it is said that no rule was found.
    wrong: anything else."""
    if judged.wrong:
        return "wrong" if found.is_explained else "unknown"
    if judged.missing:
        return "fixed" if case.truth == "model_static" else "wrong"
    return "more" if judged.further else "exact"


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["outcome"] in ("unknown", "wrong", "error") or row["seconds"] >= LIMIT_S:
            print(
                f"{row['case']} ({row['way']}): {row['outcome']}, {row['seconds']} s; {'; '.join(row['wrong'])[:300]}"
            )
    for way in ("function", "example"):
        own = [row for row in rows if row["way"] == way]
        counts = {
            name: sum(row["outcome"] == name for row in own)
            for name in ("exact", "more", "fixed", "unknown", "wrong", "error")
        }
        slowest = max(own, key=lambda row: row["seconds"])
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        print(f"{way:9} {len(own)} cases: {said}; slowest {slowest['seconds']} s ({slowest['case']})")


if __name__ == "__main__":
    sys.exit(main())
