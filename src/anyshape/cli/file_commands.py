"""`anyshape fix` and `anyshape freeze`: files made dynamic and static without their model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyshape.cli.output import Outcome
from anyshape.findings import Finding, UsageError

__is_entrance__ = True

Output = Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def fix(
    file: Annotated[Path, typer.Argument(help="A static ONNX file of any exporter.", show_default=False)],
    output: Output,
    dynamic: Annotated[
        list[str],
        typer.Option(
            "--dynamic",
            "-d",
            help="Words for the axes of an input: 'input: batch 3 h w'. May be given often, for outputs, too.",
            show_default=False,
        ),
    ],
    read: Annotated[
        list[str], typer.Option(help="Answers a question (AS502): 'NODE: [batch, 8*seq]'. May be given often.")
    ] = [],  # noqa: B006
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="FILE.py, as for export: compare with the model, too.")
    ] = None,
    as_json: AsJson = False,
) -> Outcome:
    """Make a static file dynamic: right at other sizes, or the node in the way.

    Every constant that holds a size is replaced by an expression of the inputs' shapes, if only one fits.

    anyshape fix static.onnx --dynamic "input: batch 3 224 224" -o dynamic.onnx

    anyshape fix static.onnx -d "ids: batch seq" -d "mask: batch seq" -o dynamic.onnx

    A word for each axis: a name for one that varies, its number or _ for one that stays. What the file does not show (two
    dims of one size, a size in a formula) is asked by AS502: answer with --read, with words for more inputs and outputs,
    or export the static file at sizes that differ.
    """
    from anyshape import files

    if model is None:
        result = files.fix(file, output, dynamic, read=read)
    else:
        from anyshape.cli.arguments import load_model_file

        loaded = load_model_file(model)
        result = files.fix(
            file, output, dynamic, read=read, model=loaded.module, inputs=loaded.inputs, where=loaded.where
        )
    return Outcome({"path": str(result.path), **result.as_plain()} if as_json else str(result))


def freeze(
    file: Annotated[Path, typer.Argument(help="An ONNX file with dynamic dims.", show_default=False)],
    sizes: Annotated[list[str], typer.Argument(help="batch=1 seq=128", show_default=False)],
    output: Output,
    as_json: AsJson = False,
) -> Outcome:
    """Make dims of a file static, fold what follows, and renew its contract.

    anyshape freeze m.onnx batch=1 -o one.onnx
    """
    from anyshape import files
    from anyshape.contract.to_json import contract_as_plain

    result = files.freeze(file, output, _read_sizes(sizes))
    if not as_json:
        return Outcome(str(result))
    about = {"path": str(result.path), "folded": result.folded, "has_contract": result.has_contract}
    return Outcome({**about, "contract": contract_as_plain(result.contract)})


def _read_sizes(texts: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in (part for each in texts for part in each.split(",")):
        name, equals, size = text.partition("=")
        if not equals or not size.strip().isdigit():
            raise UsageError(
                Finding(
                    code="AS036", name="argument", what=f"{text!r} is no size.", fix="anyshape freeze m.onnx batch=1"
                )
            )
        found[name.strip()] = int(size)
    return found
