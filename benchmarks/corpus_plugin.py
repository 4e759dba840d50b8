"""anyshape as a plug-in of the corpus runner: each case declared as a function of sizes, the best way.

    python CORPUS/run.py --plugin benchmarks/corpus_plugin.py:export -e corpus_plugin

The corpus judges a file by the first call of a fresh model, so state is frozen: that is what its cases mean.

ANYSHAPE_WAY=words declares the same cases by an example and words, ANYSHAPE_WAY=examples by several examples.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import anyshape


def export(model: Any, args: Any, kwargs: Any, *, dynamic: Any, names: Any, path: str, case: Any) -> None:
    """Write the file, or raise to refuse."""
    way = os.environ.get("ANYSHAPE_WAY", "function")
    if way == "function":
        anyshape.export(model, function_of_sizes(case), path, where=case.where, state="frozen")
    elif way == "words":
        words = {leaf: dict(axes) for leaf, axes in dynamic.items()}
        anyshape.export(model, anyshape.Inputs(args, kwargs), path, dynamic=words, where=case.where, state="frozen")
    else:
        examples = [anyshape.Inputs(*example) for example in case.examples]
        anyshape.export(model, examples, path, state="frozen")


def function_of_sizes(case: Any) -> Any:
    """The case's own function, its defaults the sizes of its first example."""
    first = case.sizes[0] if isinstance(case.sizes[0], tuple) else (case.sizes[0],)
    parameters = list(inspect.signature(case.inputs).parameters.values())
    defaulted = [parameter.replace(default=size) for parameter, size in zip(parameters, first, strict=True)]

    def inputs(*sizes: Any, **named: Any) -> anyshape.Inputs:
        made = case.inputs(*sizes, **named)
        if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], tuple) and isinstance(made[1], dict):
            return anyshape.Inputs(*made)
        return anyshape.Inputs(made if isinstance(made, tuple) else (made,), {})

    inputs.__signature__ = inspect.Signature(defaulted)  # type: ignore[attr-defined]
    return inputs
