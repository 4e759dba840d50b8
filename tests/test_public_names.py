"""Documents and examples use public names alone: a user who copies them depends on nothing that may move."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import anyshape
import anyshape.batch
import anyshape.compat
import anyshape.files
import anyshape.sources
from tests.pages import BLOCK

ROOT = Path(__file__).parent.parent
MODULES = (anyshape, anyshape.batch, anyshape.compat, anyshape.files, anyshape.sources)
PUBLIC = {module.__name__: set(module.__all__) for module in MODULES}
_INTERNAL = re.compile(r"anyshape\.[a-z_]+(\.\w+)+")

EXTENDING = ROOT / "docs" / "how-to" / "extend"  # these pages add files to anyshape itself
NOT_SHOWN_BY_A_CALL = {
    "AS007": "no form of declaration has a dim twice: it protects the record Domain",
    "AS049": "an export to an opset below 13 leaves the checks out (AS427): it protects the function that adds them",
    "AS055": "it takes a graph of 2 GB",
    "AS101": "it takes a capture that has lost one side of a branch",
    "AS125": "no model is known whose numbers follow another rule at every further trace",
    "AS310": "it takes parameters of 256 MB",
    "AS544": "it takes a system without /proc",
    "AS547": "it takes a Ray cluster whose nodes die",
    "AS554": "no contract is known whose profile the solver cannot decide",
    "AS901": "it takes a fault of anyshape",
    "AS902": "it takes a fault of the solver",
}
"""Pages that call the function that makes their finding, or replace one of anyshape's own functions, and why."""


def internal_names(script: str) -> list[str]:
    """What a script imports from anyshape, or replaces in it, that is not public."""
    return [name for node in ast.walk(ast.parse(script)) for name in _names_used(node) if not _is_public(name)]


def _names_used(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{each.name}" for each in node.names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _INTERNAL.fullmatch(node.value):
        yield node.value  # mock.patch("anyshape.room.file.function")


def _is_public(name: str) -> bool:
    room, _, last = name.rpartition(".")
    return name.split(".")[0] != "anyshape" or name in PUBLIC or last in PUBLIC.get(room, ())


def test_every_public_module_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert [name for name in PUBLIC if f"`{name}." not in reference and f"## `{name}`" not in reference] == []


def scripts() -> Iterator[tuple[Path, str]]:
    """Every script of a user: the Python blocks of documents, and the examples."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not page.is_relative_to(EXTENDING):
            for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
                if block["language"] == "python":
                    yield page, block["text"]
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")


def test_documents_and_examples_use_public_names_alone() -> None:
    used = {path: names for path, script in scripts() if (names := internal_names(script))}
    assert {path: names for path, names in used.items() if path.stem not in NOT_SHOWN_BY_A_CALL} == {}
    assert {path.stem for path in used} == set(NOT_SHOWN_BY_A_CALL), "a page that is excepted needs no exception"


@pytest.mark.parametrize(
    "script",
    [
        "import anyshape.domain",
        "from anyshape.domain import Dim",
        "from anyshape.batch.jobs import Job",
        "from anyshape.batch import Job",
        "def f():\n    from anyshape.cli import read_sizes",
        'mock.patch("anyshape.runtime.Pending.result")',
    ],
)
def test_an_internal_name_is_found(script: str) -> None:
    assert internal_names(script) != []


def test_a_public_name_is_not() -> None:
    script = "import torch\nimport anyshape.compat\nfrom anyshape import files\nfrom anyshape.batch import export_many"
    assert internal_names(script) == []
