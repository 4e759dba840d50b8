"""The pages about extending anyshape: each is done as it says, on a copy of the package, and gives what it says.

A `python` block that begins with `# src/...` is a new file of the package, a `diff` block a change of one that exists; the last
`python` block is a script, and the `text` block under it what the script prints first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import read_blocks

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "how-to" / "extend").glob("add-*.md"))


def extend(page: str, package: Path) -> None:
    """Do what the page says to the copy of the package: new files, and changed lines."""
    for block in read_blocks(page):
        if block.language == "python" and block.text.startswith("# src/"):
            name, _, text = block.text.partition("\n")
            (package / name.removeprefix("# ")).write_text(text, encoding="utf-8")
        if block.language == "diff":
            subprocess.run(["git", "apply", "-"], cwd=package, input=block.text, text=True, check=True)


def run_script(page: str, package: Path) -> str:
    """What the page's script prints, with the package as it is there."""
    script = [block.text for block in read_blocks(page) if block.text.startswith("# model.py")][-1]
    (package / "model.py").write_text(script, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(package / "src")}
    command = [sys.executable, "-W", "ignore", "model.py"]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_these_pages_are_there() -> None:
    assert [page.stem for page in PAGES] == [
        "add-a-finding",
        "add-a-leaf",
        "add-a-rung",
        "add-a-source",
        "add-an-operator",
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_page_extends_the_package(path: Path, tmp_path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    shutil.copytree(
        ROOT / "src" / "anyshape", tmp_path / "src" / "anyshape", ignore=shutil.ignore_patterns("__pycache__")
    )
    promised = [block.text for block in read_blocks(page) if block.language == "text"][-1]
    if path.stem == "add-a-finding":  # one is enough to see that the script needs what the page adds
        assert not run_script(page, tmp_path).startswith(promised)
    extend(page, tmp_path)
    assert run_script(page, tmp_path).startswith(promised)
