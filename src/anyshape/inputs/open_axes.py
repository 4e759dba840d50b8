"""An expression for each axis that can vary: from the moves of an example's axes to dims and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyshape.domain import Expr, Ref, simplify
from anyshape.inputs.axis_moves import Accepts, Move, Place, find_moves, is_taken
from anyshape.inputs.by_trying import Trial
from anyshape.inputs.fit_one import affine, fit_one

_BELOW, _ABOVE = 3, 10  # sizes around the example's at which the size of a rounded axis is looked for


def name_of(place: Place) -> str:
    """`ids_0` for axis 0 of ids; a made-up name that a person can guess."""
    path, axis = place
    spoken = "".join(char if char.isalnum() else "_" for char in path)
    return f"{spoken if not spoken[:1].isdigit() else f'x{spoken}'}_{axis}"


def find_open_axes(trial: Trial, sizes: Mapping[Place, int]) -> dict[Place, Expr]:
    """An expression for every axis that can vary, among those given with their sizes in the example.

    The meta device admits sizes that a kernel refuses. So moves that were found there are tried for real where the module is
    small, and if one of them is refused, all are found for real.
    """
    moves = find_moves(trial, sizes)
    if trial.on_meta and trial.is_small:
        real = trial.for_real()
        if not all(is_taken(real, sizes, move) for move in moves):
            moves, trial = find_moves(real, sizes), real
    bases = _bases(moves, sizes)
    if bases is None:  # no axis belongs to one move alone: each is a dim, and rules have to say the rest
        return {place: Ref(name_of(place)) for place in sizes if any(place in move for move in moves)}
    found: dict[Place, Expr] = {}
    for base, move in zip(bases, moves, strict=True):
        found.update(_rounded(trial, sizes, move, moves))
        if not any(place in found for place in move):
            found[base] = Ref(name_of(_first(base, move, sizes)))
    for place in sizes:
        causes = [(base, move) for base, move in zip(bases, moves, strict=True) if place in move]
        if place not in found and causes:
            terms: list[tuple[int, Expr]] = [(move[place] // move[base], found[base]) for base, move in causes]
            rest = sizes[place] - sum(move[place] // move[base] * sizes[base] for base, move in causes)
            found[place] = simplify(affine(terms, rest))
    return found


def _first(base: Place, move: Move, sizes: Mapping[Place, int]) -> Place:
    """The first axis that always has the size of the base, which gives the dim its name."""
    alike = [place for place in move if sizes[place] == sizes[base] and move[place] == move[base]]
    return min(alike, key=list(sizes).index)


def _bases(moves: Sequence[Move], sizes: Mapping[Place, int]) -> list[Place] | None:
    """For each move an axis of no other move, by whose step all others are divisible: the smallest, then the first."""
    order = list(sizes)
    bases = []
    for move in moves:
        own = [
            place
            for place, step in move.items()
            if not any(place in other for other in moves if other is not move)
            and all(other % step == 0 for other in move.values())
        ]
        if not own:
            return None
        bases.append(min(own, key=lambda place: (sizes[place], order.index(place))))
    return bases


def _rounded(trial: Accepts, sizes: Mapping[Place, int], move: Move, moves: Sequence[Move]) -> dict[Place, Expr]:
    """Where an axis has steps of 2 or more beside steps of 1: whether it takes the sizes between, which are then rounded.

    `{x: 2, y: 1}`: does the module answer with x one longer, with y as it is or one longer?  Then y is a quotient of x.
    """
    largest = max(move.values())
    steps = set(move.values())
    if (
        steps != {1, largest}
        or largest < 2
        or any(place in other for place in move for other in moves if other is not move)
    ):
        return {}
    fine = [place for place, step in move.items() if step == largest]
    coarse = [place for place, step in move.items() if step == 1]
    size, quotient = sizes[fine[0]], sizes[coarse[0]]
    samples: dict[int, int] = {}
    for moved in range(max(2, size - _BELOW), size + _ABOVE):
        near = quotient + (moved - size) // largest
        for other in (near, near + 1):
            at = {**dict.fromkeys(fine, moved), **{place: sizes[place] - quotient + other for place in coarse}}
            if min(at.values()) >= 2 and moved not in samples and trial.accepts(at):
                samples[moved] = other
    name = name_of(fine[0])
    takes_all = all(moved in samples for moved in range(size, size + _ABOVE))
    fitted = fit_one(name, samples) if takes_all else None
    if fitted is None:
        return {}
    found: dict[Place, Expr] = dict.fromkeys(fine, Ref(name))
    for place in coarse:
        found[place] = simplify(affine([(1, fitted)], sizes[place] - quotient))
    return found
