"""The plug-in of the suites, of the families and of the corpus, which also notes the rung that made each file, and which
sizes up to four times those of the case the contract refuses although eager returns a result.

    python PEERS/run.py noting_plugin:export --path benchmarks/gaps --out RESULTS

The line of a case is appended to the file that ANYSHAPE_RUNGS names; list_gaps.py reads it.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from anyshape.contract import read_contract

CORPUS_PLUGIN = Path(__file__).parents[1] / "corpus_plugin.py"


def export(model: Any, args: Any, kwargs: Any, dynamic: Any, path: str) -> None:
    """A case of the suites or a record of the families: write the file, or raise to refuse."""
    import plugin  # of the folder whose run.py runs
    from admitted import refused_though_answered

    before = copy.deepcopy((args, kwargs))
    plugin.export(model, args, kwargs, dynamic, path)
    contract, _ = read_contract(path)
    note(contract.strategy, "", refused=refused_though_answered(contract, model, *before))


def export_corpus(model: Any, args: Any, kwargs: Any, **given: Any) -> None:
    """A case of the corpus."""
    spec = importlib.util.spec_from_file_location("corpus_plugin", CORPUS_PLUGIN)
    corpus_plugin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpus_plugin)
    corpus_plugin.export(model, args, kwargs, **given)
    contract, _ = read_contract(given["path"])
    note(contract.strategy, given["case"].name)


def note(strategy: str, case: str, **further: Any) -> None:
    with Path(os.environ["ANYSHAPE_RUNGS"]).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"case": case, "strategy": strategy, **further}) + "\n")
