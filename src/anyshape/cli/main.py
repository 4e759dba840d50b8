"""The command line: arguments -> pipeline -> report -> exit status.

Exit status: 0 kept, 1 a promise is broken, 2 usage, 3 our own fault, 130 interrupted. Results go to stdout, progress and
findings that stop us to stderr.
"""

from __future__ import annotations

import os
import sys

import typer

from anyshape.cli.commands import check, explain, export, inspect
from anyshape.cli.ending import Interrupted, ended, interruptible, our_fault
from anyshape.findings import AnyshapeError
from anyshape.report.github import tell_github

app = typer.Typer(
    name="anyshape",
    help=(
        "Declare the sizes. Get an ONNX file that is right at every one of them, or the line of your code in the way.\n\n"
        "  anyshape export model.py -o m.onnx        model.py defines model() and inputs(batch=3, …)\n\n"
        "  anyshape check m.onnx --model model.py    verify a file, whoever exported it\n\n"
        "  anyshape inspect m.onnx                   what the file promises\n\n"
        "  anyshape explain AS102                    one page per finding\n\n"
        "Exit status: 0 kept, 1 a promise is broken, 2 usage, 3 our own fault."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (export, check, inspect, explain):
    app.command()(interruptible(command))


def main() -> None:
    """Run the command line and end the process with its status."""
    try:
        app()
    except Interrupted:
        sys.exit(ended("interrupted: nothing was written.", 130))
    except AnyshapeError as error:
        tell_github(" ".join(sys.argv[1:3]), error.findings, os.environ, sys.stderr)
        sys.exit(ended(str(error), error.exit_status))
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:  # what nobody foresaw is our fault, and says so
        sys.exit(ended(our_fault(error), 3))
