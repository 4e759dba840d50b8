"""Verdicts of shares of one plan -> one verdict. A share is every n-th trial of the plan, made elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from anyshape.domain import Sizes
from anyshape.records.verdict import ComparedSizes, Failure, OutputError, RoundedOtherwise, Untried, Verdict

_NOT_COMPARED = "no share of the comparisons has these sizes"


def join_verdicts(shares: Sequence[Verdict], planned: Iterable[Sizes]) -> Verdict:
    """What the shares have shown together; `planned` are all sizes of the plan, and stay accounted for.

    A size that one share compared is tried, whatever the others say of it. Failures come in the order of the shares.
    """
    first = shares[0]
    tried = {_key(sizes): sizes for share in shares for sizes in share.tried}
    refused = {_key(each.sizes): each for share in shares for each in share.refused}
    untried = {_key(each.sizes): each for share in shares for each in share.untried}
    compared = _joined_errors(shares)
    order = dict.fromkeys(map(_key, planned))
    known = {*tried, *refused, *untried}
    untried |= {key: Untried(dict(key), _NOT_COMPARED) for key in order if key not in known}
    stopped = [share.stopped_after for share in shares if share.stopped_after is not None]
    return replace(
        first,
        tried=tuple(dict(key) for key in dict.fromkeys([*order, *tried]) if key in tried),
        compared=tuple(compared[key] for key in dict.fromkeys([*order, *compared]) if key in compared),
        failures=tuple(failure for share in shares for failure in share.failures),
        smallest_failure=_smallest(share.smallest_failure for share in shares),
        refused=tuple(refused.values()),
        untried=tuple(each for key, each in untried.items() if key not in tried and key not in refused),
        outputs=_worst(share.outputs for share in shares),
        rounded=_most_rounded(each for share in shares for each in share.rounded),
        trials=sum(share.trials for share in shares),
        set_aside=dict(sum((Counter(share.set_aside) for share in shares), Counter())),
        seconds=max(share.seconds for share in shares),
        stopped_after=max(stopped, default=None),
        at_nan=tuple(failure for share in shares for failure in share.at_nan),
    )


def _joined_errors(shares: Sequence[Verdict]) -> dict[tuple[tuple[str, int], ...], ComparedSizes]:
    """The worst errors at each size at which no share has a failure."""
    failed = {_key(failure.sizes) for share in shares for failure in share.failures}
    joined: dict[tuple[tuple[str, int], ...], ComparedSizes] = {}
    for each in (compared for share in shares for compared in share.compared):
        key = _key(each.sizes)
        known = joined[key].errors if key in joined else {}
        names = dict.fromkeys([*known, *each.errors])
        worst = {name: max(known.get(name, 0.0), each.errors.get(name, 0.0)) for name in names}
        if key not in failed:
            joined[key] = replace(each, errors=worst)
    return joined


def _smallest(failures: Iterable[Failure | None]) -> Failure | None:
    found = [failure for failure in failures if failure is not None]
    return min(found, key=lambda failure: prod(size + 1 for size in failure.sizes.values()), default=None)


def _worst(outputs: Iterable[Sequence[OutputError]]) -> tuple[OutputError, ...]:
    worst: dict[str, OutputError] = {}
    for each in (error for errors in outputs for error in errors):
        known = worst.get(each.output)
        worst[each.output] = each if known is None or each.worst > known.worst else known
    return tuple(worst.values())


def _most_rounded(rounded: Iterable[RoundedOtherwise]) -> tuple[RoundedOtherwise, ...]:
    most: dict[str, RoundedOtherwise] = {}
    for each in rounded:
        known = most.get(each.output)
        most[each.output] = each if known is None or each.tolerances > known.tolerances else known
    return tuple(most.values())


def _key(sizes: Sizes) -> tuple[tuple[str, int], ...]:
    return tuple(sizes.items())
