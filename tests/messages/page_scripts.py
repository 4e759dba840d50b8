"""The pages of docs/errors: their parts, and their scripts run as a user would run them.

A script stands in a file `model.py` of an empty folder. What it writes with `anyshape.export` is kept, and a later script
that begins with the very same lines gets the same files: an export costs seconds, and many pages begin with the same one.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType

import torch

from anyshape.findings import AnyshapeError

_TITLE = re.compile(r"# (AS\d{3}) ([a-z][a-z-]*)\n")
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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
    blocks = [(kind, text) for kind, text in _BLOCK.findall(markdown)]
    if title is None or [kind for kind, _ in blocks] != ["python", "text", "python"]:
        raise ValueError(f"not a title and blocks of python, text, python: {markdown[:60]!r}")
    return Page(title[1], title[2], *(text.rstrip("\n") for _, text in blocks))


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
