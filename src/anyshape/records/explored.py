"""What exploring gives: where the module itself answers, and the rules that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anyshape.domain import Domain
from anyshape.records.contract import Rule
from anyshape.records.verdict import Refusal


@dataclass(frozen=True, kw_only=True)
class Explored:
    """The domain on which the module answers, and the rules that were added to the user's own.

    `pinned` are dims that answer at one size only. `is_explained` is False when no simple rule tells the refused sizes
    from the answered ones: the domain is then the declared one, and must not be promised.
    """

    domain: Domain
    rules: tuple[Rule, ...]
    answered: tuple[Mapping[str, int], ...]
    refused: tuple[Refusal, ...]
    pinned: Mapping[str, int] = field(hash=False)
    is_explained: bool
