"""The documents tell the truth: every example in them runs and prints what the page says, every link leads somewhere.

`pages.py` says how a page is done. Few examples are left alone.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import shlex
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

import anyshape
import anyshape.compat
from anyshape.cli.main import app
from tests.deployed import find_runtime_or_skip
from tests.pages import BLOCK, Reader, normalised, read_blocks, run_page
from tests.stand_ins import stand_ins_on_path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MOST_NOT_RUN = 5

_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<words>.+)$", re.MULTILINE)


def pages_to_run() -> list[Path]:
    return [ROOT / "README.md", *sorted((DOCS / "tutorial").glob("*.md")), *sorted((DOCS / "how-to").glob("*.md"))]


def all_pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = BLOCK.sub("", text)
    return {re.sub(r"[^\w -]", "", m["words"].lower()).replace(" ", "-") for m in _HEADING.finditer(prose)}


def broken_links(page: Path) -> list[str]:
    """The links of a page, to files of the project and to headings in them, that lead nowhere."""
    broken = []
    for match in _LINK.finditer(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        file, _, anchor = match["target"].partition("#")
        if file.startswith(("http://", "https://")):
            continue
        target = (page.parent / file).resolve() if file else page
        found = target.exists()
        if found and anchor:
            found = target.is_file() and anchor in anchors(target.read_text(encoding="utf-8"))
        if not found:
            broken.append(match["target"])
    return broken


def show(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", pages_to_run(), ids=show)
def test_examples_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8")
    if "--to web" in text:
        find_runtime_or_skip()
    monkeypatch.chdir(tmp_path)
    with stand_ins_on_path() if page.stem == "export-from-timm" else contextlib.nullcontext():
        run_page(text, tmp_path, show(page))


_COMMAND = re.compile(r"^(?:\$ |- run: )?(anyshape .+)", re.MULTILINE)


def shown_commands(text: str) -> list[str]:
    """The command lines of anyshape in the blocks of a page; two spaces before the words that explain one end it."""
    return [
        re.split(" {2,}", match[1])[0]
        for block in read_blocks(text)
        if block.language in ("", "sh", "console", "yaml")
        for match in _COMMAND.finditer(block.text)
    ]


def refusal_of(command: str) -> str:
    """What the command line has against a command before anything is done; "" for nothing."""
    words = shlex.split(command.partition(" > ")[0])[1:]
    if words[0].startswith("-"):
        return "" if words[0] == "--version" else f"no option {words[0]}"
    known = get_command(app).commands  # type: ignore[attr-defined]
    if words[0] not in known:
        return f"no command {words[0]}"
    try:
        known[words[0]].make_context(words[0], words[1:])
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.parametrize("page", all_pages(), ids=show)
def test_the_command_line_takes_every_command_that_a_page_shows(page: Path) -> None:
    commands = shown_commands(page.read_text(encoding="utf-8"))
    refused = {command: said for command in commands if (said := refusal_of(command))}
    assert refused == {}


def test_a_command_that_is_not_taken_is_seen() -> None:
    lines = ("anyshape chek m.onnx", "anyshape check m.onnx --modle model.py", "anyshape inspect m.onnx    text")
    commands = shown_commands("\n".join(["```sh", *lines, "```", ""]))
    assert [bool(refusal_of(command)) for command in commands] == [True, True, False]


def test_few_examples_are_not_run() -> None:
    blocks = [block for page in pages_to_run() for block in read_blocks(page.read_text(encoding="utf-8"))]
    left_out = [block for block in blocks if block.language == "python" and not block.is_run]
    assert len(left_out) <= MOST_NOT_RUN


@pytest.mark.parametrize("page", all_pages(), ids=show)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_every_page_can_be_reached_from_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = {(DOCS / match["target"].partition("#")[0]).resolve() for match in _LINK.finditer(index)}
    pages = {page.resolve() for page in DOCS.rglob("*.md") if page.parent.name != "errors"} - {
        (DOCS / "README.md").resolve()
    }
    assert sorted(map(show, pages - linked)) == []


def section(page: str, title: str) -> str:
    """The part of a reference page under the heading that begins with the title. AssertionError if there is none."""
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    found = [part for part in re.split(r"^## `", text, flags=re.MULTILINE) if part.startswith(title)]
    assert found, f"{page} has no section on {title}"
    return found[0]


def missing(words: Iterable[str], text: str) -> list[str]:
    """The words that a text does not have as code."""
    return [word for word in words if f"`{word}`" not in text]


def test_reference_has_every_public_name() -> None:
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert [name for name in anyshape.__all__ if f"`anyshape.{name}" not in text] == []


@pytest.mark.parametrize("name", ["export", "axes", "check", "load", "deploy", "dim", "compat.export"])
def test_reference_has_every_parameter(name: str) -> None:
    function = anyshape.compat.export if name == "compat.export" else getattr(anyshape, name)
    assert missing(inspect.signature(function).parameters, section("api.md", f"anyshape.{name}(")) == []


def test_reference_has_every_attribute_of_a_finding_and_an_export() -> None:
    for record in (anyshape.Finding, anyshape.Export):
        names = [name for name in dir(record) if not name.startswith("_")]
        names += [field.name for field in fields(record)]
        assert missing(names, section("api.md", f"anyshape.{record.__name__}`")) == []


def test_command_line_reference_has_every_command_and_option() -> None:
    import typer

    from anyshape.cli.main import app

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        options = [max(option.opts, key=len) for option in command.params if option.opts[0].startswith("-")]
        assert missing(options, section("command-line.md", f"anyshape {name}")) == []


def test_every_word_of_the_naming_guide_is_in_the_glossary() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = ("dim", "size", "axis", "shape", "promise", "domain", "contract", "expected", "actual", "inputs", "guard")
    assert [word for word in words if f"**{word}**" not in text] == []


# Each checker is seen to fail.


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    run_page("```python\nprint('one')\n```\n\n```text\none\n```\n", tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md:5: the block above prints something else"):
        run_page("```python\nprint('one')\n```\n\n```text\ntwo\n```\n", tmp_path)


def test_an_example_that_raises_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="raises ZeroDivisionError"):
        run_page("```python\n1 / 0\n```\n", tmp_path)
    run_page("```python\n# not run\n1 / 0\n```\n", tmp_path)


def test_blocks_of_a_page_share_names_and_lines(tmp_path: Path) -> None:
    page = "```python\nname = 'shared'\n```\nwords\n```python\nimport sys\nprint(name, sys._getframe().f_lineno)\n```\n"
    run_page(page + "\n```text\nshared 3\n```\n", tmp_path)


def test_only_measured_numbers_are_forgiven() -> None:
    assert normalised("kept, in 1.4 s") == normalised("kept, in 23.0 s")
    assert normalised("at 31 sizes, in 1.4 s") != normalised("at 30 sizes, in 1.4 s")


def test_a_command_that_ends_otherwise_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    missing = "```console\n$ anyshape inspect missing.onnx\n{said}\n$ echo $?\n{status}\n```\n"
    said = Reader(tmp_path).run_console("anyshape inspect missing.onnx").rstrip()
    run_page(missing.format(said=said, status=2), tmp_path)
    with pytest.raises(AssertionError):
        run_page(missing.format(said=said, status=0), tmp_path)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading, here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#a-heading-here) [c](https://example.org) [d](gone.md) [e](there.md#gone)\n"
    )
    assert broken_links(page) == ["gone.md", "there.md#gone"]


def test_a_word_that_the_reference_lacks_is_found() -> None:
    assert missing(["path", "sizes"], section("api.md", "anyshape.load(")) == ["sizes"]
    with pytest.raises(AssertionError, match=r"api\.md has no section on anyshape\.lode"):
        section("api.md", "anyshape.lode")
