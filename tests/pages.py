"""A page of the documents, read and done: its blocks, what they print, and what the page says that they print.

A `python` block runs in the page's own namespace and folder; a block that begins with `# model.py` is also that file. A
`text` block directly under it is what it prints, with the warnings for narrowed contracts. In a `console` block each
`$ anyshape ...` or `$ NAME=VALUE anyshape ...` is run, and what follows is what it says. A block that begins with
`# not run` is left alone.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest import mock

import anyshape

NOT_RUN = "# not run"

BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_MEASURED = (  # what differs from run to run and from machine to machine
    (re.compile(r"\bin \d+\.\d s\b"), "in 0.0 s"),
    (re.compile(r"[\d.e+-]+ x its noise floor"), "0 x its noise floor"),
    (re.compile(r"[\d.e+-]+ of its tolerance"), "0 of its tolerance"),
    (re.compile(r"\(tested up to \d+\)"), "(tested up to 0)"),
    (re.compile(r"expected -?[\d.e-]+, actual -?[\d.e-]+ at"), "expected 0, actual 0 at"),
    (re.compile(r"made by .*"), "made by ..."),
    (re.compile(r"\bby OpenVINO [\d.]+"), "by OpenVINO 0"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `follows` says whether nothing but empty lines stands between it and the one before."""

    language: str
    text: str
    line: int
    follows: bool

    @property
    def is_run(self) -> bool:
        return not self.text.startswith(NOT_RUN)


def read_blocks(text: str) -> list[Block]:
    blocks = []
    end = 0
    for match in BLOCK.finditer(text):
        follows = bool(blocks) and not text[end : match.start()].strip()
        blocks.append(Block(match["language"], match["text"], text[: match.start()].count("\n") + 1, follows))
        end = match.end()
    return blocks


@dataclass
class Reader:
    """Somebody who does what a page says, in an empty folder."""

    folder: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    lines: dict[str, int] = field(default_factory=dict)
    status: int = 0

    def run_python(self, block: Block) -> str:
        """What the block prints. Blocks without a name are one file, `example.py`, one under the other."""
        name = match[1] if (match := _FILE.match(block.text)) else "example.py"
        before = 0 if match else self.lines.get(name, 0)
        self.lines[name] = before + block.text.count("\n")
        with (self.folder / name).open("w" if before == 0 else "a", encoding="utf-8") as file:
            file.write(block.text)
        linecache.checkcache()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), _showing_warnings(printed):
            exec(compile("\n" * before + block.text, name, "exec"), self.namespace)
        return printed.getvalue()

    def run_console(self, command: str) -> str:
        """What `anyshape ...` says on both channels, progress left out, or nothing if a file takes it.

        `echo $?` says how the last one ended.
        """
        if command == "echo $?":
            return f"{self.status}\n"
        command, _, file = command.partition(" > ")
        words = shlex.split(command)
        environment = dict(word.split("=", 1) for word in takewhile(lambda word: "=" in word, words))
        words = words[len(environment) :]
        assert words[0] == "anyshape", f"a console block can run anyshape only, not {words[0]!r}"
        said = io.StringIO()
        with (
            mock.patch.dict(os.environ, environment),
            _as_process(["anyshape", *words[1:]]),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            self.status = run_command_line()
        lines = [line for line in said.getvalue().splitlines(keepends=True) if not line.startswith("anyshape: ")]
        if not file:
            return "".join(lines)
        (self.folder / file).write_text("".join(lines), encoding="utf-8")
        return ""


@contextlib.contextmanager
def _showing_warnings(stream: io.StringIO) -> Iterator[None]:
    """Write the warnings for narrowed contracts to the stream, as Python writes them to stderr."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        stream.write(warnings.formatwarning(message, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.simplefilter("always", anyshape.NarrowedWarning)
        warnings.showwarning = show
        yield


def run_command_line() -> int:
    """The status of a command that runs in this process.

    A command forks before it loads anything. Here, a fork would have libraries with threads of their own, such as the one that
    draws charts, in which a second chart waits forever.
    """
    from anyshape.cli.main import main

    try:
        with mock.patch.dict(os.environ, {"ANYSHAPE_ISOLATE": "0"}):
            main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@contextlib.contextmanager
def _as_process(arguments: list[str]) -> Any:
    """A model file that the command line runs is a module for the length of its run."""
    argv, path, modules = sys.argv, list(sys.path), set(sys.modules)
    sys.argv = arguments
    linecache.checkcache()
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        for name in set(sys.modules) - modules:
            if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__ or "").is_relative_to(
                Path.cwd()
            ):
                del sys.modules[name]


def normalised(text: str) -> str:
    for measured, instead in _MEASURED:
        text = measured.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def read_commands(text: str) -> list[tuple[str, str]]:
    """Each `$ command` with the output that the page shows under it."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    assert not parts[0].strip(), "a console block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def run_page(text: str, folder: Path, name: str = "page.md") -> None:
    """Do what the page says; AssertionError where something else comes out."""
    reader = Reader(folder)
    printed = ""
    for block in read_blocks(text):
        place = f"{name}:{block.line}"
        if block.language == "python" and block.is_run:
            try:
                printed = reader.run_python(block)
            except Exception as error:
                raise AssertionError(f"{place}: the block raises {type(error).__name__}: {error}") from error
        elif block.language == "python":
            printed = ""
        elif block.language == "text" and block.follows:
            assert normalised(printed) == normalised(block.text), f"{place}: the block above prints something else"
        elif block.language == "console":
            for command, shown in read_commands(block.text):
                assert normalised(reader.run_console(command)) == normalised(shown), f"{place}: {command}"
