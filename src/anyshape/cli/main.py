"""The command line: arguments -> pipeline -> report -> exit status.

Exit status: 0 kept, 1 a promise is broken, 2 usage, 3 our own fault, 130 interrupted. Results go to stdout, progress,
prints of the model and findings that stop us to stderr. With --json there is JSON on stdout in every case.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Protocol, runtime_checkable

import typer

from anyshape.cli import WithRayAddress
from anyshape.cli.batch_command import batch
from anyshape.cli.commands import axes, check, explain, inspect
from anyshape.cli.export_command import export
from anyshape.cli.file_commands import bench, compare, deploy, fix, freeze
from anyshape.cli.outcome import (
    Interrupted,
    ending_by_signals,
    keep_stdout_for_results,
    open_closed_handles,
    show,
    with_outcome,
)
from anyshape.cli.system_errors import StdoutRefused, stdout_refused
from anyshape.findings import AnyshapeError, Finding, InternalError, UsageError
from anyshape.findings.finding import shown_lines, text_of_error
from anyshape.report import findings_as_plain, tell_github


@dataclass(frozen=True)
class Ending:
    """Why a command ended without a result: the words for stderr, the exit status, and the findings for --json."""

    words: str
    status: int
    findings: Sequence[Finding] = ()

    def report(self, *, as_json: bool) -> int:
        """Write the words to stderr, and JSON to stdout if that was asked for; the status comes back."""
        sys.stderr.write(shown_lines(self.words.rstrip()) + "\n")
        if as_json:
            message = str(self.findings[0]) if self.findings else self.words
            error = message.strip().partition("\n")[0]
            plain = findings_as_plain(self.findings)
            show({"kept": False, "status": self.status, "error": error, "findings": plain})
        return self.status


def end_by_error(error: AnyshapeError) -> Ending:
    """An error that we raised on purpose."""
    return Ending(str(error), error.exit_status, error.findings)


def end_by_arguments(message: str, shown: str) -> Ending:
    """Arguments that the parser refuses; `shown` is its own text, with the usage line."""
    finding = Finding(code="AS036", name="argument", what=message.strip().replace("\n", " "))
    return Ending(shown, 2, (finding,))


def end_by_our_fault(error: Exception) -> Ending:
    """An apology with the file to attach: never the user's fault."""
    trace = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="anyshape-report-", suffix=".txt", delete=False, encoding="utf-8"
        ) as report:
            report.write(trace)
        fix = f"please report it, with this file attached: {Path(report.name)}"
    except OSError:
        fix = f"please report it, with this text:\n{trace}"
    finding = Finding(
        code="AS901",
        name="internal-error",
        what=f"sorry, this is a fault of anyshape's own: {type(error).__name__}.",
        why=(text_of_error(error).splitlines() or [""])[0],
        fix=fix,
    )
    return end_by_error(InternalError(finding))


@runtime_checkable
class _ParserError(Protocol):
    """Arguments that typer refuses: click's own exception in older versions of typer, a copy of it in newer ones."""

    def format_message(self) -> str: ...
    def show(self, file: IO[Any] | None = None) -> None: ...


app = typer.Typer(
    name="anyshape",
    help=(
        "Declare the sizes. Get an ONNX file that is right at every one of them, or the line of your code in the way.\n\n"
        "\b\n"
        "anyshape export model.py -o m.onnx             one model, from a Python file\n"
        "anyshape export hf:DIR_OR_ID -o out            of transformers, or timm:NAME\n"
        "anyshape batch models.toml                     many models, a process each\n"
        "anyshape axes model.py                         which axes can vary\n"
        "anyshape check m.onnx -m model.py              any file, beside its model\n"
        "anyshape compare a.onnx b.onnx -m model.py     two files of one model\n"
        "anyshape bench m.onnx -m model.py              latency and memory over sizes\n"
        "anyshape inspect m.onnx                        what a file promises\n"
        "anyshape fix s.onnx -d 'x: batch 3' -o d.onnx  a static file made dynamic\n"
        "anyshape freeze m.onnx batch=1 -o one.onnx     dims made static\n"
        "anyshape deploy m.onnx --to triton -o DIR      or tensorrt, openvino, web\n"
        "anyshape explain AS102                         one page for each finding\n"
        "\n"
        "Exit status: 0 kept, 1 a promise is broken, 2 usage, 3 our own fault."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich alone takes longer to load than everything else that --help needs
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 128},
)
for command in (export, axes, batch, check, compare, bench, inspect, fix, freeze, deploy, explain):
    app.command(cls=WithRayAddress)(with_outcome(command, apart=command not in (batch, explain)))


def _show_version(wanted: bool) -> None:
    if wanted:
        import anyshape

        if (refused := show(f"anyshape {anyshape.__version__}")) is not None:
            raise UsageError(stdout_refused(refused, ()))
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
    open_closed_handles()
    is_own = keep_stdout_for_results()
    status = _run(as_json="--json" in sys.argv[1:])
    if is_own:
        sys.stdout = sys.stderr  # what the model prints when the process ends does not follow the result
    sys.exit(status)


def _run(*, as_json: bool) -> int:
    try:
        with ending_by_signals():
            status = app(standalone_mode=False)
        return status if isinstance(status, int) else 0
    except Exception as error:
        return _ending_of(error).report(as_json=as_json)


def _ending_of(error: Exception) -> Ending:
    if isinstance(error, Interrupted):
        return Ending(_say_interrupted(error), 130)
    if isinstance(error, AnyshapeError):
        tell_github(" ".join(sys.argv[1:3]), error.findings, os.environ, sys.stderr)
        return end_by_error(error)
    if isinstance(error, _ParserError):
        return end_by_arguments(error.format_message(), _text_of_parser(error))
    if isinstance(error, StdoutRefused):
        return end_by_error(UsageError(stdout_refused(error, ())))
    return end_by_our_fault(error)  # an exception that no code expects is a fault of ours


def _say_interrupted(error: Interrupted) -> str:
    written = ", ".join(repr(str(path)) for path in error.written)
    return f"interrupted: {f'{written} was written before' if written else 'nothing was written'}."


def _text_of_parser(error: _ParserError) -> str:
    """The usage line and the reason, as typer words them."""
    text = io.StringIO()
    error.show(file=text)
    return text.getvalue()
