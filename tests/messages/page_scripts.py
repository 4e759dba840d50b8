"""The pages of docs/errors: their parts, and their scripts run as a user would run them.

A script stands in a file `model.py` of an empty folder. A `console` block with `$ anyshape ...` below it becomes its last
lines, which run the command in this process. What a script writes with `anyshape.export` is kept, and a later script
that begins with the very same lines gets the same files: an export costs seconds, and many pages begin with the same one.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType

import torch

from anyshape.findings import AnyshapeError

_TITLE = re.compile(r"# (AS\d{3}) ([a-z][a-z-]*)\n")
_BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SCRIPT = r"(?:python|console|python console)"
_KINDS = re.compile(rf"{_SCRIPT} text {_SCRIPT}")


@dataclass(frozen=True)
class Page:
    """What a page shows: a script that triggers the finding, its text, and a script that does not."""

    code: str
    name: str
    script: str
    text: str
    fixed: str


def parse_page(markdown: str) -> Page:
    """The parts of a page. Raises ValueError where one is missing."""
    title = _TITLE.match(markdown)
    blocks = [(kind, text.rstrip("\n")) for kind, text in _BLOCK.findall(markdown)]
    kinds = [kind for kind, _ in blocks]
    if title is None or not _KINDS.fullmatch(" ".join(kinds)):
        raise ValueError(f"not a title and blocks of a script, text, a script: {markdown[:60]!r}")
    middle = kinds.index("text")
    return Page(title[1], title[2], _script(blocks[:middle]), blocks[middle][1], _script(blocks[middle + 1 :]))


def _script(blocks: Sequence[tuple[str, str]]) -> str:
    """The blocks as one Python script."""
    return "\n".join(text if kind == "python" else _run_command(text) for kind, text in blocks)


def _run_command(console: str) -> str:
    """`$ anyshape explain AS102` -> the lines of Python that do the same, and raise the error that it would print."""
    words = shlex.split(console)
    if words[:2] != ["$", "anyshape"] or "\n" in console:
        raise ValueError(f"not one command of anyshape: {console!r}")
    return f"from anyshape.cli.main import app\napp({words[2:]!r}, standalone_mode=False)"


def with_text(markdown: str, text: str) -> str:
    """The page with another text block."""
    return re.sub(r"^```text\n.*?^```$", lambda _: f"```text\n{text}\n```", markdown, flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Said:
    """How a script ended."""

    text: str
    is_error: bool


@dataclass
class Workshop:
    """Runs scripts; `kept` has the files that exports wrote, by the lines that wrote them."""

    kept: dict[str, dict[str, bytes]] = field(default_factory=dict)
    # torch takes an operator's definition back when it is collected, even where a later script has defined it anew.
    modules: list[ModuleType] = field(default_factory=list)

    def run(self, script: str, folder: Path) -> Said:
        """What the script printed, or the error that it raised: ours alone, others go through."""
        file = folder / "model.py"
        file.write_text(script, encoding="utf-8")
        module = ModuleType("model")
        self.modules.append(module)
        printed = io.StringIO()
        torch.manual_seed(0)
        with _inside(folder):
            try:
                with contextlib.redirect_stdout(printed):
                    for part in self._parts(script, file):
                        exec(part, vars(module))
            except AnyshapeError as error:
                return Said(str(error), is_error=True)
        return Said(printed.getvalue().rstrip("\n"), is_error=False)

    def _parts(self, script: str, file: Path) -> Iterator[CodeType]:
        """The script in one piece, or in two: up to its last plain `anyshape.export(...)`, and the rest."""
        body = ast.parse(script).body
        last = max((index for index, each in enumerate(body) if _is_export(each)), default=-1)
        start, rest = body[: last + 1], body[last + 1 :]
        lines = "\n".join(map(ast.dump, start))
        if lines in self.kept:
            yield _compiled([each for each in start if not _is_export(each)], file)
            for name, content in self.kept[lines].items():
                (file.parent / name).write_bytes(content)
        elif start:
            yield _compiled(start, file)
            written = (each for each in file.parent.rglob("*") if each.is_file() and each != file)
            self.kept[lines] = {str(each.relative_to(file.parent)): each.read_bytes() for each in written}
        yield _compiled(rest, file)


def _is_export(statement: ast.stmt) -> bool:
    """A call for the sake of its file: nothing later in the script can ask for what it returns."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) == "anyshape.export"


def _compiled(body: list[ast.stmt], file: Path) -> CodeType:
    return compile(ast.Module(body=body, type_ignores=[]), str(file), "exec")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
