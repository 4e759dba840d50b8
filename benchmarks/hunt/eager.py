"""Call every model in eager mode at all sizes and values that its author wrote; print where one raises.

    python eager.py hunt

No export: this checks the models, not anyshape.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import torch
from comparison import answers, arguments
from registry import load_set
from trials import copied


def main() -> None:
    warnings.simplefilter("ignore")
    models = load_set(sys.argv[1] if len(sys.argv) > 1 else "all")
    raised: Counter[str] = Counter()
    for key, model in models.items():
        base = model.sizes
        if not all(eval(rule, {}, dict(base)) for rule in model.where):  # a rule is a Python expression, too
            print(f"{key}: the example lies outside of its own domain")
        sizes = [base, *(base | point for point in model.points)]
        sizes += [base | {dim: size} for dim, far in model.far.items() for size in far]
        trials = [(model.inputs, one) for one in sizes] + [(make, base) for make in model.rare.values()]
        for make, one in trials:
            try:
                torch.manual_seed(1)
                args, kwargs = arguments(copied(make(**one)))
                with torch.no_grad():
                    answers(model.module()(*args, **kwargs))
            except Exception as error:
                raised[key] += 1
                if raised[key] == 1:
                    print(f"{key} at {one}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    themes = Counter(model.theme for model in models.values())
    print(
        f"{len(models)} models {dict(themes)}; {sum(model.unproved for model in models.values())} expected without proof"
    )
    print(f"{len(raised)} raise somewhere")


if __name__ == "__main__":
    main()
