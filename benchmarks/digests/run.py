"""Digests of the files that are written, for changes that must not change them.

    python benchmarks/digests/run.py                        compare with stored.json: exit status 1 and a list where one differs
    python benchmarks/digests/run.py --store                store them
    python benchmarks/digests/run.py --corpus FOLDER        the cases of the corpus as well

A row is a module of the zoo on one rung of the ladder, or a case of the corpus. Its entry has the rung that made the file, the
codes of the findings, and the digests of graph and weights; a refusal has its codes alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
STORED = Path(__file__).parent / "stored.json"
Entry = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="the folder of the corpus")
    parser.add_argument("--store", action="store_true", help="store the digests instead of comparing them")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    arguments = parser.parse_args()
    stored: dict[str, Entry] = json.loads(STORED.read_text()) if STORED.exists() else {}
    found: dict[str, Entry] = {}
    for name, export in _rows(arguments.corpus):
        if arguments.only in name:
            found[name] = _entry(export)
            print("same" if found[name] == stored.get(name) else "differs", name, flush=True)
    if arguments.store:
        STORED.write_text(json.dumps(dict(sorted({**stored, **found}.items())), indent=1) + "\n")
        return 0
    different = [name for name, entry in found.items() if entry != stored.get(name)]
    for name in different:
        print(f"{name}\n  stored  {stored.get(name)}\n  now     {found[name]}")
    print(f"{len(found) - len(different)} of {len(found)} as stored")
    return 1 if different else 0


def _rows(corpus: Path | None) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield from _zoo()
    if corpus is not None:
        yield from _corpus(corpus)


def _zoo() -> Iterator[tuple[str, Callable[[], Any]]]:
    sys.path.insert(0, str(ROOT))
    from tests.zoo import ZOO, Row

    import anyshape
    from anyshape.exporting.ladder import STRATEGIES

    def export(row: Row, strategy: str | None) -> Any:
        return anyshape.export(row.module(), row.inputs, where=row.where, strategy=strategy)

    for row in ZOO:
        for strategy in (None, *STRATEGIES):
            yield f"zoo {row.name} {strategy or 'ladder'}", lambda row=row, strategy=strategy: export(row, strategy)


def _corpus(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    sys.path[:0] = [str(folder), str(ROOT / "benchmarks")]
    from corpus import CASES
    from corpus_plugin import function_of_sizes

    import anyshape

    def export(case: Any) -> Any:
        return anyshape.export(case.make(), function_of_sizes(case), where=case.where, state="frozen")

    for case in CASES:
        yield f"corpus {case.name}", lambda case=case: export(case)


def _entry(export: Callable[[], Any]) -> Entry:
    import torch

    from anyshape import AnyshapeError
    from anyshape.contract.digest import digest_model

    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = export()
    except AnyshapeError as error:
        return {"refused": sorted({finding.code for finding in error.findings})}
    digest = digest_model(result.model)
    codes = sorted({finding.code for finding in result.findings})
    return {"strategy": result.strategy, "findings": codes, "graph": digest.graph, "weights": digest.weights}


if __name__ == "__main__":
    sys.exit(main())
