"""The plug-in of the suites, of the families and of the corpus, which also notes the rung that made each file.

    python PEERS/run.py noting_plugin:export --path benchmarks/gaps --out RESULTS

The line of a case is appended to the file that ANYSHAPE_RUNGS names; list_gaps.py reads it.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from anyshape.contract.metadata import read_contract

CORPUS_PLUGIN = Path(__file__).parents[1] / "corpus_plugin.py"


def export(model: Any, args: Any, kwargs: Any, dynamic: Any, path: str) -> None:
    """A case of the suites or a record of the families: write the file, or raise to refuse."""
    import plugin  # of the folder whose run.py runs

    plugin.export(model, args, kwargs, dynamic, path)
    note_rung(path, "")


def export_corpus(model: Any, args: Any, kwargs: Any, **given: Any) -> None:
    """A case of the corpus."""
    spec = importlib.util.spec_from_file_location("corpus_plugin", CORPUS_PLUGIN)
    corpus_plugin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpus_plugin)
    corpus_plugin.export(model, args, kwargs, **given)
    note_rung(given["path"], given["case"].name)


def note_rung(path: str, case: str) -> None:
    contract, _ = read_contract(path)
    with Path(os.environ["ANYSHAPE_RUNGS"]).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"case": case, "strategy": contract.strategy}) + "\n")
