"""Which axes can vary, found by trying: alone, together with axes of the same size, or with one that grows along.

A group of axes is one dim when only together they can change; an axis that must grow whenever others do is their sum.
What cannot change stays as it is, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anyshape.domain import Expr, Ref, simplify
from anyshape.inputs.fit_one import affine
from anyshape.inputs.trying import Place, Trial


@dataclass(frozen=True)
class Group:
    """Axes that are one dim, and axes that grow by as much whenever it does."""

    members: frozenset[Place]
    followers: frozenset[Place]


def name_of(place: Place) -> str:
    """`ids_0` for axis 0 of ids; a made-up name that a person can guess."""
    path, axis = place
    spoken = "".join(char if char.isalnum() else "_" for char in path)
    return f"{spoken if not spoken[:1].isdigit() else f'x{spoken}'}_{axis}"


def find_open_axes(trial: Trial, sizes: Mapping[Place, int]) -> dict[Place, Expr]:
    """An expression for every axis that can vary, among those given with their sizes in the example."""
    groups = _merged([group for place in sizes if (group := _group_of(trial, place, sizes)) is not None])
    found: dict[Place, Expr] = {}
    names = {group: name_of(min(group.members, key=list(sizes).index)) for group in groups}
    for group in groups:
        found.update({member: Ref(names[group]) for member in group.members})
    for place, size in sizes.items():
        causes = [group for group in groups if place in group.followers]
        if place not in found and causes:
            terms: list[tuple[int, Expr]] = [(1, Ref(names[group])) for group in causes]
            rest = size - sum(sizes[next(iter(group.members))] for group in causes)
            found[place] = simplify(affine(terms, rest))
    return found


def _group_of(trial: Trial, place: Place, sizes: Mapping[Place, int]) -> Group | None:
    if _varies(trial, [place], sizes):
        return Group(frozenset([place]), frozenset())
    alike = [other for other in sizes if other != place and sizes[other] == sizes[place]]
    if alike and _varies(trial, [place, *alike], sizes):
        return Group(frozenset(_pruned(trial, place, alike, [], sizes)), frozenset())
    for along in dict.fromkeys(sizes[other] for other in sizes if sizes[other] > sizes[place]):
        larger = [other for other in sizes if sizes[other] == along]
        if not _varies(trial, [place, *alike, *larger], sizes):
            continue
        followers = _pruned(trial, None, larger, [place, *alike], sizes)
        members = _pruned(trial, place, alike, followers, sizes)
        return Group(frozenset(members), frozenset(followers))
    return None


def _varies(trial: Trial, places: Iterable[Place], sizes: Mapping[Place, int]) -> bool:
    """Whether the module answers with all of these longer by one, and by as much as the first is long."""
    together = list(places)
    steps = (1, max(sizes[together[0]], 2))
    return all(trial.accepts({place: sizes[place] + step for place in together}) for step in steps)


def _pruned(
    trial: Trial, first: Place | None, others: Sequence[Place], fixed: Sequence[Place], sizes: Mapping[Place, int]
) -> list[Place]:
    """Those that are needed: each is left out once, and stays out if the module answers without it."""
    needed = list(others)
    head = [first] if first is not None else []
    for other in others:
        fewer = [place for place in needed if place != other]
        if _varies(trial, [*head, *fewer, *fixed] if head else [*fixed, *fewer], sizes):
            needed = fewer
    return [*head, *needed]


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Groups that share a member are one; an axis that can vary alone is in no other's group."""
    alone = {member for group in groups if len(group.members) == 1 and not group.followers for member in group.members}
    merged: list[Group] = []
    for group in groups:
        members = group.members if len(group.members) == 1 else group.members - alone
        followers = group.followers - alone
        for other in [other for other in merged if other.members & members]:
            merged.remove(other)
            members, followers = members | other.members, followers | other.followers
        merged.append(Group(members, followers))
    return merged
