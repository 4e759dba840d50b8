"""The pages of docs/errors: one for each code, and each shows what really happens.

The text on a page is the golden text of its finding: the first script is run and must say exactly that, the last one must
run without it. ANYSHAPE_WRITE_PAGES=1 puts what is said now into the pages; read the diff before you keep it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from page_scripts import Page, Said, Workshop, parse_page, with_text
from source_codes import codes_spoken_of, names_by_code

from anyshape.cli.commands import read_page
from anyshape.findings import UsageError

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "anyshape"
FOLDER = ROOT / "docs" / "errors"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("AS*.md"))}

_ROW = re.compile(r"^\| \[(AS\d{3})\]\((AS\d{3})\.md\) \| ([a-z-]+) \| \S.*\. \|$", re.MULTILINE)
_LONGEST_PAGE = 65
_LONGEST_FIRST_LINE = 120


@pytest.fixture(scope="module")
def workshop() -> Workshop:
    return Workshop()


def differences(sources: dict[str, set[str]], pages: dict[str, str]) -> list[str]:
    """What is wrong between the codes of the source and the titles of pages."""
    titles = {code: parse_page(text) for code, text in pages.items()}
    return [
        *(f"{code} has several names: {sorted(names)}" for code, names in sources.items() if len(names) > 1),
        *(f"{code} has no page" for code in sources if code not in pages),
        *(f"{code} has a page, and nothing emits it" for code in pages if code not in sources),
        *(f"page {code} is titled {page.code}" for code, page in titles.items() if page.code != code),
        *(
            f"{code} is called {sorted(sources[code])}, and {page.name!r} on its page"
            for code, page in titles.items()
            if code in sources and page.name not in sources[code]
        ),
    ]


def test_every_code_has_its_page_and_every_page_its_code() -> None:
    assert differences(dict(names_by_code(PACKAGE)), PAGES) == []


def test_every_code_that_is_spoken_of_exists() -> None:
    assert codes_spoken_of(PACKAGE) <= set(names_by_code(PACKAGE))


def test_a_page_that_is_missing_or_wrong_is_noticed() -> None:
    page = "# AS001 unknown-dim\n\n```python\n1\n```\n\n```text\n1\n```\n\n```python\n1\n```\n"
    assert differences({"AS001": {"unknown-dim"}}, {"AS001": page}) == []
    assert differences({"AS001": {"unknown-dim"}}, {}) == ["AS001 has no page"]
    assert differences({}, {"AS001": page}) == ["AS001 has a page, and nothing emits it"]
    assert len(differences({"AS001": {"unknown-dim", "dim"}}, {"AS001": page})) == 1
    assert len(differences({"AS001": {"dim"}}, {"AS001": page})) == 1
    assert len(differences({"AS002": {"unknown-dim"}}, {"AS002": page})) == 1


def test_codes_are_found_in_calls_choices_and_tables(tmp_path: Path) -> None:
    source = tmp_path / "made.py"
    source.write_text(
        'Finding(code="AS001", name="one")\nFinding(code="AS002" if x else "AS003", name="b" if x else "c")'
    )
    (tmp_path / "table.py").write_text(
        '"""AS999"""\nT = {1: ("AS004", "four")}\ncode, name = T[1]\nFinding(code=code, name=name)'
    )
    assert names_by_code(tmp_path) == {"AS001": {"one"}, "AS002": {"b"}, "AS003": {"c"}, "AS004": {"four"}}
    assert codes_spoken_of(tmp_path) == {"AS001", "AS002", "AS003", "AS004", "AS999"}
    source.write_text('CODE = "AS001"\nFinding(code=CODE, name="one")')
    assert names_by_code(tmp_path) == {"AS001": {"one"}, "AS004": {"four"}}
    source.write_text('Finding(code="AS" + number, name="hidden")')
    with pytest.raises(ValueError, match="cannot be read"):
        names_by_code(tmp_path)


def test_the_index_lists_every_page_by_its_name_in_order() -> None:
    rows = _ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    assert rows == [(code, code, parse_page(text).name) for code, text in PAGES.items()]


@pytest.mark.parametrize("code", PAGES)
def test_a_page_says_what_it_is_about(code: str) -> None:
    page = parse_page(PAGES[code])
    first = page.text.splitlines()[0]
    assert first.startswith(f"{code} {page.name}: ")
    assert len(first) <= _LONGEST_FIRST_LINE
    assert PAGES[code].count("\n") <= _LONGEST_PAGE


@pytest.mark.parametrize("code", PAGES)
@pytest.mark.long_table
def test_the_first_script_says_what_the_page_says(code: str, workshop: Workshop, tmp_path: Path) -> None:
    page = parse_page(PAGES[code])
    said = workshop.run(page.script, tmp_path).text
    if os.environ.get("ANYSHAPE_WRITE_PAGES") == "1":
        (FOLDER / f"{code}.md").write_text(with_text(PAGES[code], said), encoding="utf-8")
    assert said == page.text


@pytest.mark.parametrize("code", PAGES)
@pytest.mark.long_table
def test_the_last_script_runs_without_the_finding(code: str, workshop: Workshop, tmp_path: Path) -> None:
    said = workshop.run(parse_page(PAGES[code]).fixed, tmp_path)
    assert not said.is_error, said.text
    assert not re.search(rf"^{code} ", said.text, re.MULTILINE)


def test_scripts_are_run_and_their_errors_come_back(tmp_path: Path) -> None:
    shop = Workshop()
    assert shop.run("print('said')", tmp_path) == Said("said", is_error=False)
    refused = shop.run("import anyshape\nanyshape.load('no.onnx')", tmp_path)
    assert refused.is_error and refused.text.startswith("AS040 missing-file: ")
    with pytest.raises(ZeroDivisionError):
        shop.run("1 / 0", tmp_path)


def test_a_page_without_all_its_parts_is_none() -> None:
    with pytest.raises(ValueError, match="not a title and blocks"):
        parse_page("# AS001 unknown-dim\n\n```python\n1\n```\n")
    assert parse_page(with_text(PAGES["AS102"], "other words")).text == "other words"
    assert parse_page(PAGES["AS102"]) == Page("AS102", "size-baked-in", *_parts(PAGES["AS102"]))


def test_a_code_that_does_not_exist_is_answered_with_the_nearest() -> None:
    assert read_page(" as102 ") == PAGES["AS102"]
    for wrong, near in (("102", "AS102"), ("AS999", max(PAGES)), ("nonsense", "AS")):
        with pytest.raises(UsageError, match=f"did you mean {near}"):
            read_page(wrong)


def _parts(markdown: str) -> list[str]:
    return [part.partition("\n")[2].rstrip("\n") for part in markdown.split("```")[1::2]]
