"""`anyshape axes`: a dry run that shows which axes of a model's inputs can vary."""

from __future__ import annotations

from typing import Annotated

import typer

from anyshape.cli.arguments import parse_seconds
from anyshape.cli.options import AsJson, Quiet, Seed
from anyshape.cli.output import Outcome, ProgressLine

__is_entrance__ = True


def axes(
    model: Annotated[
        str, typer.Argument(help="FILE.py, or FILE.py:NAME for NAME() and NAME_inputs().", show_default=False)
    ],
    where: Annotated[
        list[str], typer.Option("--where", "-w", help="A rule, as for export. May be given several times.")
    ] = [],  # noqa: B006
    every_axis: Annotated[
        bool, typer.Option("--every-axis", help="Try each axis of the example, whatever the file declares.")
    ] = False,
    time_limit: Annotated[str, typer.Option(help="Time for the whole search, such as 60s or 5m.")] = "60s",
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Outcome:
    """Show which axes of which inputs can vary, and under which rules. Nothing is written.

    The model is called at other sizes. With an example and no declaration each axis is tried, and what it found is printed as
    text to paste; with inputs(batch=3, …) the axes are the declared ones, and the rules are those that an export would learn.

    anyshape axes model.py

    anyshape axes model.py --every-axis

    The status is 1 where an export would be refused, or where no rule describes what the model refuses.
    """
    import anyshape
    from anyshape.sources import resolve

    with ProgressLine(quiet=quiet) as progress:
        progress(f"loading {model}", 0, 0)
        found = {
            part.name: anyshape.axes(
                part.model,
                part.inputs,
                dynamic=part.dynamic,
                where=[*part.where, *where],
                values=part.values,
                every_axis=every_axis,
                time_limit=parse_seconds(time_limit, "--time-limit"),
                seed=seed,
                progress=progress,
            )
            for part in resolve(model).parts
        }
    status = 0 if all(each.is_kept for each in found.values()) else 1
    if len(found) == 1:
        only = next(iter(found.values()))
        return Outcome(only.as_plain() if as_json else str(only), status)
    if as_json:
        return Outcome({"models": {name: each.as_plain() for name, each in found.items()}}, status)
    return Outcome("\n\n".join(f"{name}\n{each}" for name, each in found.items()), status)
