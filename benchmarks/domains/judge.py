"""Is the rule that anyshape learns the true one?

python benchmarks/domains/judge.py --truth                  the truths by hand, beside eager; no export
python benchmarks/domains/judge.py --out domains.jsonl      every row in a process of its own; may be stopped and resumed
python benchmarks/domains/judge.py --match 'u-net|view'     some rows
python benchmarks/domains/judge.py --one u-net-depth-1      one row, here, as JSON
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from modules import ROWS
from rows import Row
from truths import find_disagreements

GOOD = ("EQUAL", "PINNED")
FAULTS = ("differs", "answers_where_eager_raises", "load_differs", "wrong_fixes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", action="store_true", help="compare the truths with eager, export nothing")
    parser.add_argument("--one", help="judge the row of this name in this process, and print JSON")
    parser.add_argument("--match", default="", help="only rows whose name contains this regular expression")
    parser.add_argument("--out", type=Path, help="one JSON object per row; rows that are there are not judged again")
    parser.add_argument("--limit", type=int, default=300, help="seconds for one row; default 300")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [row for row in ROWS if re.search(arguments.match, row.name)]
    if arguments.truth:
        return print_truths(chosen)
    if arguments.one:
        return print_one(next(row for row in ROWS if row.name == arguments.one), arguments.limit)
    print_table(judge_all(chosen, arguments.out, arguments.limit))
    return 0


def print_truths(rows: list[Row]) -> int:
    """Print rows whose truth differs from eager; the exit status."""
    wrong = {row.name: differ for row in rows if (differ := find_disagreements(row))}
    for name, differ in wrong.items():
        print(f"{name}: {len(differ)} points, such as {differ[0]}")
    print(f"{len(rows)} rows, {len(rows) - len(wrong)} truths agree with eager")
    return 1 if wrong else 0


def print_one(row: Row, limit: int) -> int:
    from judged_exports import judge

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(judge(row, Path(folder), limit)))
    return 0


def judge_all(rows: list[Row], out: Path | None, limit: int) -> list[dict[str, Any]]:
    """A record for each row, one child process after the other."""
    lines = out.read_text(encoding="utf-8").splitlines() if out and out.exists() else []
    known = {record["row"]: record for record in map(json.loads, lines)}
    for row in rows:
        if row.name in known:
            continue
        known[row.name] = record = judge_apart(row, limit)
        print(format_line(record), flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    return [known[row.name] for row in rows]


def judge_apart(row: Row, limit: int) -> dict[str, Any]:
    """The record of a row that is judged in a process of its own."""
    start = {"row": row.name, "truth": row.truth, "example": row.sizes, "text": ""}
    command = [sys.executable, __file__, "--one", row.name, "--limit", str(limit)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit + 60, check=False)
    except subprocess.TimeoutExpired:
        return start | {"outcome": "OVER TIME"}
    if done.returncode:
        return start | {"outcome": "CRASHED", "text": done.stderr.strip().splitlines()[-1], "stderr": done.stderr}
    return json.loads(done.stdout.splitlines()[-1])


def format_line(record: dict[str, Any]) -> str:
    said = record["text"].splitlines()[:1] or [""]
    faults = [f"{fault} {record[fault][0]}" for fault in FAULTS if record.get(fault)]
    example = record.get("wider") or record.get("narrower") or [""]
    parts = [record["outcome"], record["row"], record["truth"], *map(str, example[:1]), *faults]
    if record["outcome"] not in GOOD:
        parts += [*record.get("rules", []), *said]
    return " | ".join(part for part in parts if part)


def print_table(records: list[dict[str, Any]]) -> None:
    """Rows that are not as they should be, and the counts."""
    print("\nNot as it should be:")
    for record in records:
        if record["outcome"] not in GOOD or any(record.get(fault) for fault in FAULTS):
            print(" ", format_line(record))
    print(
        "\n"
        + ", ".join(f"{outcome} {count}" for outcome, count in Counter(r["outcome"] for r in records).most_common())
    )
    unnamed = [record["row"] for record in records if record.get("wider") and record["outcome"] != "UNKNOWN"]
    print(f"{len(records)} rows; right {sum(record['outcome'] in GOOD for record in records)}")
    print(f"contracts with a refused point that they do not name: {len(unnamed)} {unnamed or ''}")
    for fault in FAULTS:
        print(f"{fault}: {sum(bool(record.get(fault)) for record in records)}")


if __name__ == "__main__":
    sys.exit(main())
