"""A file that is wrong only at integers below all that the user's inputs have: right from the lowest of them on.

A function that gives group numbers from 0 on says nothing about -1. What the file does there is compared all the same; where
it differs, the comparisons are made again without such numbers, and the verdict says from which number on it holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from anyshape.records.verdict import Verdict
from anyshape.verify.request import VerifyRequest
from anyshape.verify.run import verify


def verify_from_lowest(request: VerifyRequest) -> Verdict:
    """The verdict; where only lower integers than the inputs' make the file fail, that of the others."""
    verdict = verify(request)
    if not verdict.failures or any(failure.values == "random" for failure in verdict.failures):
        return verdict
    shown = request.lowest_shown()
    subsets = [{name: low} for name, low in shown.items()]
    for lowest in [*subsets, *([shown] if len(shown) > 1 else [])]:
        again = verify(_from(request, lowest))
        if again.passed:
            return replace(again, lowest=lowest)
    return verdict


def _from(request: VerifyRequest, lowest: Mapping[str, int]) -> VerifyRequest:
    bounds = {name: (float(low), math.inf) for name, low in lowest.items()}
    return replace(request, ranges=lambda sizes: {**request.ranges(sizes), **bounds})
