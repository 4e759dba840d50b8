"""Findings about models whose calls differ with equal inputs: they keep state, or draw random numbers.

a later call answers otherwise than a first one     ->  AS143; AS146, a warning, where `state="frozen"` accepts that
... after a call with NaN in its inputs alone        ->  AS159, a warning
two identical calls answer otherwise                ->  AS145
`state="outputs"`, and a state cannot be one        ->  AS148, also where calls in a row differ
answers differ under other random numbers           ->  AS144; AS147, a warning, where `random="runtime"` keeps them
random numbers that no operator of ONNX draws       ->  AS149
"""

from __future__ import annotations

import re

from anyshape.diagnose import say_sizes
from anyshape.findings import Finding, Reason, Remedy, Severity, Source
from anyshape.intercept.replay import TORCH
from anyshape.records.explored import Repeated
from anyshape.records.verdict import RowDifference

_SHOWN = 3
_TORCH_DROPOUT = re.compile(r"dropout\w*\(")


def diagnose_state(repeated: Repeated, choice: str | None) -> tuple[Finding, ...]:
    """The findings about a model that keeps state; `choice` is the user's `state=`."""
    if repeated.unsteady:
        return (_unsteady(repeated),)
    if not repeated.has_memory or choice == "outputs":
        return ()
    names = named_state(repeated)
    if choice == "frozen":
        return (_frozen(repeated, names),)
    first = repeated.state[0].name if repeated.state else "state"
    return (
        Finding(
            code="AS143",
            name="model-keeps-state",
            reason=Reason.STATE_KEPT,
            what=f"the model keeps state in {names}, so later calls answer otherwise than the first.",
            where=repeated.written,
            why=_why_state(repeated),
            fix=f'state="outputs" makes state.{first} an input of the file and state.{first}.next an output.',
            remedy=Remedy(options=(("state", "outputs"),)),
            is_fix_untried=True,
            alternative='state="frozen" if every call of the file is meant to answer as the first call does.',
            sizes=repeated.sizes,
        ),
    )


def diagnose_state_at_nan(repeated: Repeated) -> Finding:
    """State that no call changed but those with NaN in their inputs: as for their own answers, that is no failure."""
    names = named_state(repeated) if repeated.state else "state"
    return Finding(
        code="AS159",
        name="nan-differs",
        severity=Severity.WARNING,
        what="after a call with NaN in its inputs the model's later calls answer otherwise than the file's.",
        where=repeated.written,
        why=f"NaN reaches {names}, which the model keeps; no other input that was tried changed it.",
        fix="look for NaN before the call, where it can occur.",
        sizes=repeated.sizes,
    )


def _why_state(repeated: Repeated) -> str:
    if repeated.is_foreseen:
        return (
            "forward writes it in each call and answers depend on it; no input that was tried changed it, but others do. "
            "A file has no memory."
        )
    return f"at {say_sizes(repeated.sizes)} the answer after other calls is not a fresh model's; a file has no memory."


def named_state(repeated: Repeated) -> str:
    """`'ema'`, or `'cache.0', 'cache.1' and others`."""
    names = list(dict.fromkeys(repr(kept.name) for kept in repeated.state))
    return ", ".join(names[:_SHOWN]) + (" and others" if len(names) > _SHOWN else "")


def _frozen(repeated: Repeated, names: str) -> Finding:
    return Finding(
        code="AS146",
        name="state-frozen",
        severity=Severity.WARNING,
        what=f"every call of the file answers as the model's first call does: {names} stays as it is now.",
        where=repeated.written,
        why="the model changes it in forward, and the file does not.",
        fix='state="outputs" carries it from call to call.',
        is_fix_untried=True,
        sizes=repeated.sizes,
    )


def _unsteady(repeated: Repeated) -> Finding:
    return Finding(
        code="AS145",
        name="calls-differ",
        what="two identical calls of the model give different answers.",
        where=repeated.differs,
        why="state and random numbers were the same both times; an iterator, a clock or unfilled memory remains.",
        fix="make what changes from call to call an input of forward.",
        sizes=repeated.sizes,
    )


def state_not_carried(path: str, why: str, repeated: Repeated) -> Finding:
    """A state that cannot be an input and an output of the file."""
    return Finding(
        code="AS148",
        name="state-not-carried",
        what=f"state {path!r} cannot be an input and an output of the file.",
        where=repeated.written,
        why=why,
        fix=f"keep it in a tensor of one shape from the beginning:   self.register_buffer({path.rpartition('.')[2]!r}, ...)",
        is_fix_untried=True,
        alternative="take it as an argument of forward and return it.",
    )


def diagnose_row(difference: RowDifference | None, repeated: Repeated) -> tuple[Finding, ...]:
    """A file whose calls in a row differ from the model's."""
    if difference is None:
        return ()
    return (
        Finding(
            code="AS148",
            name="state-not-carried",
            what=f"in a row of calls the file differs from the model at call {difference.call}.",
            where=repeated.written,
            why=f"at {say_sizes(difference.sizes)}, output {difference.output!r}: {difference.text}.",
            fix="take the state as an argument of forward and return it.",
            sizes=difference.sizes,
        ),
    )


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
