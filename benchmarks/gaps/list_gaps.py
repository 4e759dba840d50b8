"""Print what our own rungs do not reach: cases whose file is of torch's exporter, cases without a right file, and files
whose contract refuses sizes at which eager returns a result.

    python benchmarks/gaps/list_gaps.py NAME=RESULTS=RUNGS ...        `make gaps` does this at its end

RESULTS are the rows of a run of noting_plugin.py, RUNGS the lines that it noted, one for each file in the order of the rows.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

NO_FILE = ("EXPORT_FAIL", "EAGER_FAIL", "HARNESS", "TIMEOUT", "CRASH")
TORCH = "legacy"


def read_lines(path: str) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
        if Path(path).exists()
        else []
    )


def name_of(row: dict[str, Any]) -> str:
    return str(row.get("id") or row.get("name") or row.get("case"))


def with_rungs(rows: list[dict[str, Any]], rungs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each row with what was noted of its file, which is nothing where there is none."""
    named = {each["case"]: each for each in rungs if each["case"]}
    in_order = iter([each for each in rungs if not each["case"]])
    files = sum(row["status"] not in NO_FILE for row in rows)
    if not named and files != len(rungs):
        raise SystemExit(
            f"{files} rows have a file, but {len(rungs)} rungs were noted: remove both files and run again."
        )
    return [(row, {} if row["status"] in NO_FILE else named.get(name_of(row)) or next(in_order, {})) for row in rows]


def print_gaps(suite: str, rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    counts = Counter(noted.get("strategy", "no file") for _, noted in rows)
    print(f"{suite}: {len(rows)} cases; " + ", ".join(f"{rung} {count}" for rung, count in counts.most_common()))
    for row, noted in rows:
        if noted.get("refused"):
            print(f"  {name_of(row):60} the contract refuses {noted['refused']}, where eager returns a result")
        if noted.get("strategy") == TORCH:
            print(f"  {name_of(row):60} torch's exporter, {row['status']}")
        elif row["status"] != "PASS" and not is_rightly_refused(row):
            print(f"  {name_of(row):60} {row['status']}  {str(row.get('error') or row.get('message') or '')[:110]}")


def is_rightly_refused(row: dict[str, Any]) -> bool:
    """A case of the corpus whose model answers at one size only, refused with the line."""
    return row.get("truth") == "model_static" and row["status"] == "EXPORT_FAIL" and bool(row.get("names_line"))


def main() -> None:
    for argument in sys.argv[1:]:
        suite, results, rungs = argument.split("=")
        print_gaps(suite, with_rungs(read_lines(results), read_lines(rungs)))


if __name__ == "__main__":
    main()
