"""The option `--ray [ADDRESS]`: it may stand without an address, which typer's own options cannot."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

_ADDRESS = re.compile(r"auto|local|ray://\S+|[\w.-]+:\d+")

RayAddress = Annotated[
    str | None,
    typer.Option("--ray", help="Run on a Ray cluster; without ADDRESS, on that of this machine.", metavar="[ADDRESS]"),
]
RayForComparisons = Annotated[
    str | None,
    typer.Option(
        "--ray",
        help="Spread the comparisons over a Ray cluster; without ADDRESS, that of this machine.",
        metavar="[ADDRESS]",
    ),
]


class WithRayAddress(TyperCommand):
    """A command whose `--ray` may stand without an address: it is then the cluster of this machine."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_ray_address(args))


def with_ray_address(args: list[str]) -> list[str]:
    """`--ray` that no address follows -> `--ray=auto`."""
    pairs = zip(args, [*args[1:], ""], strict=True)
    return [f"{each}=auto" if each == "--ray" and not _ADDRESS.fullmatch(after) else each for each, after in pairs]
