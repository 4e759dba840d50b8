"""Random numbers in the model's answers -> findings.

answers differ under other random numbers         ->  AS144; AS147, a warning, where `random="runtime"` keeps them
random numbers that no operator of ONNX draws     ->  AS149
"""

from __future__ import annotations

import re

from anyshape.diagnose.wording import say_sizes
from anyshape.findings import Finding, Severity, Source
from anyshape.modules.replay import TORCH
from anyshape.records.explored import Repeated

_TORCH_DROPOUT = re.compile(r"dropout\w*\(")


def diagnose_randomness(repeated: Repeated, choice: str | None) -> tuple[Finding, ...]:
    """The findings about a random model; `choice` is the user's `random=`."""
    if not repeated.random:
        return ()
    if choice is None:
        return (_random(repeated),)
    return (_kept(repeated),) if repeated.random == (TORCH,) else (_not_kept(repeated),)


def _random(repeated: Repeated) -> Finding:
    line = f" at line {repeated.drawn.line}" if repeated.drawn else ""
    is_torch = repeated.random == (TORCH,)
    return Finding(
        code="AS144",
        name="model-is-random",
        what=f"your model is random{line}: the same inputs give different answers.",
        where=repeated.drawn,
        why=f"at {say_sizes(repeated.sizes)} the answers differ under other random numbers of {_sources(repeated)}.",
        fix=_edit(repeated.drawn),
        is_fix_untried=True,
        alternative='random="runtime" keeps the random operators: the file draws anew in each call.'
        if is_torch
        else 'draw once in __init__:   self.register_buffer("noise", torch.rand(...))',
        sizes=repeated.sizes,
    )


def _edit(drawn: Source | None) -> str:
    if drawn is not None and _TORCH_DROPOUT.search(drawn.text.lower()):
        return "pass training=self.training, which model.eval() makes False."
    return "make the noise an input:   def forward(self, ..., noise)"


def _kept(repeated: Repeated) -> Finding:
    return Finding(
        code="AS147",
        name="random-at-run-time",
        severity=Severity.WARNING,
        what="the file is random as the model is: it draws new numbers in each call.",
        where=repeated.drawn,
        why='random="runtime" was given; file and model are compared by shape, dtype and distribution, not by values.',
        fix="",
        sizes=repeated.sizes,
    )


def _not_kept(repeated: Repeated) -> Finding:
    return Finding(
        code="AS149",
        name="random-not-kept",
        what=f"the file cannot draw the random numbers of {_sources(repeated)}.",
        where=repeated.drawn,
        why="ONNX has operators for torch's own random functions alone.",
        fix="use torch's own, such as torch.rand(()), or make the number an input of forward.",
        sizes=repeated.sizes,
    )


def _sources(repeated: Repeated) -> str:
    return " and ".join(repeated.random)
