"""The command line: arguments -> pipeline -> report -> exit status.

Exit status: 0 kept, 1 a promise is broken, 2 usage, 3 our own fault, 130 interrupted. Results go to stdout, progress,
prints of the model and findings that stop us to stderr. With --json there is JSON on stdout in every case.
"""

from __future__ import annotations

import io
import os
import sys
from typing import IO, Annotated, Any, Protocol, runtime_checkable

import typer

from anyshape.cli.bench_command import bench
from anyshape.cli.commands import check, explain, export, inspect
from anyshape.cli.ending import Ending, end_by_arguments, end_by_error, end_by_our_fault
from anyshape.cli.output import Interrupted, keep_stdout_for_results, show, with_outcome
from anyshape.findings import AnyshapeError
from anyshape.report.github import tell_github


@runtime_checkable
class _ParserError(Protocol):
    """Arguments that typer refuses: click's own exception in older versions of typer, a copy of it in newer ones."""

    def format_message(self) -> str: ...
    def show(self, file: IO[Any] | None = None) -> None: ...


app = typer.Typer(
    name="anyshape",
    help=(
        "Declare the sizes. Get an ONNX file that is right at every one of them, or the line of your code in the way.\n\n"
        "  anyshape export model.py -o m.onnx        model.py defines model() and inputs(batch=3, …)\n\n"
        "  anyshape check m.onnx --model model.py    compare a file of any exporter with its model\n\n"
        "  anyshape bench m.onnx --model model.py    latency and memory over sizes\n\n"
        "  anyshape inspect m.onnx                   what the file promises\n\n"
        "  anyshape explain AS102                    one page per finding, by its code or its name\n\n"
        "Exit status: 0 kept, 1 a promise is broken, 2 usage, 3 our own fault."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich alone takes longer to load than everything else that --help needs
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 128},
)
for command in (export, check, bench, inspect, explain):
    app.command()(with_outcome(command))


def _show_version(wanted: bool) -> None:
    if wanted:
        import anyshape

        show(f"anyshape {anyshape.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line and end the process with its status."""
    is_own = keep_stdout_for_results()
    status = _run(as_json="--json" in sys.argv[1:])
    if is_own:
        sys.stdout = sys.stderr  # what the model prints when the process ends does not follow the result
    sys.exit(status)


def _run(*, as_json: bool) -> int:
    try:
        status = app(standalone_mode=False)
        return status if isinstance(status, int) else 0
    except Exception as error:
        return _ending_of(error).report(as_json=as_json)


def _ending_of(error: Exception) -> Ending:
    if isinstance(error, Interrupted):
        return Ending("interrupted: nothing was written.", 130)
    if isinstance(error, AnyshapeError):
        tell_github(" ".join(sys.argv[1:3]), error.findings, os.environ, sys.stderr)
        return end_by_error(error)
    if isinstance(error, _ParserError):
        return end_by_arguments(error.format_message(), _text_of_parser(error))
    return end_by_our_fault(error)  # an exception that no code expects is a fault of ours


def _text_of_parser(error: _ParserError) -> str:
    """The usage line and the reason, as typer words them."""
    text = io.StringIO()
    error.show(file=text)
    return text.getvalue()
