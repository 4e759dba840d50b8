"""The Fix of every page of docs/errors is applied to the page's first script, and what it promises happens.

A Fix is applied as its text says it: a rule or an option goes into the call, an edit into the line, a command is run. Two
kinds cannot be: code that the user has to complete, which says that nothing has tried it, and advice in words, which the last
script of its page follows (`test_error_pages` runs it). Both are listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from fix_appliers import Shown, apply_fix, read_fix
from page_scripts import Page, Said, Workshop, parse_page

import anyshape

FOLDER = Path(__file__).parent.parent.parent / "docs" / "errors"
PAGES = {path.stem: parse_page(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("AS*.md"))}
FIXES = {code: shown for code, page in PAGES.items() if (shown := read_fix(page.text)) is not None}

TO_COMPLETE = {
    "AS027": "a function that makes legal values: only the user can tell which are",
    "AS045": "pip installs another anyshape",
    "AS049": "converts a file that anyshape has not read",
    "AS058": "the body of the user's own operator",
    "AS062": "which lines are for running the file by itself",
    "AS111": "the two sides of the choice",
    "AS160": "whether memory runs out, or what else ends the process",
    "AS116": "the two sides of the choice",
    "AS144": "the noise as an argument of forward",
    "AS148": "the shape of the buffer",
    "AS201": "the body of the translation",
    "AS204": "the function below the decorator",
    "AS310": "the buffer in place of a parameter",
    "AS542": "whether the model needs more time, or hangs",
    "AS543": "whether the model needs more memory",
    "AS546": "pip installs Ray",
    "AS551": "the largest size that will be served",
    "AS553": "the ranges that are used",
    "AS556": "pip installs a package",
    "AS559": "the path of the model file",
    "AS560": "which values are legal",
    "AS561": "npm fetches a package",
}
"""Code that the user has to complete, and with what."""

IN_WORDS = {
    "another declaration": "AS002 AS004 AS005 AS007 AS008 AS012 AS014 AS015 AS016 AS021 AS022 AS025 AS029 AS104 AS142 "
    "AS311 AS312 AS316 AS501 AS502",
    "other inputs": "AS010 AS017 AS019 AS023 AS024 AS033 AS105 AS119 AS126 AS136 AS152 AS308 AS401 AS403 AS413 AS414 "
    "AS417 AS418 AS419 AS158 AS159",
    "another forward": "AS110 AS113 AS114 AS117 AS120 AS121 AS122 AS123 AS124 AS125 AS127 AS128 AS129 AS135 AS139 AS145 "
    "AS149 AS151 AS156 AS161 AS202 AS507",
    "another file, folder or machine": "AS039 AS041 AS042 AS043 AS046 AS047 AS051 AS052 AS053 AS141 AS412 AS421 "
    "AS071 AS503 AS504 AS505",
    "the weights of the module": "AS038 AS318",
    "another source, or one of its options": "AS521 AS522 AS523 AS524 AS525 AS526 AS527 AS528 AS529",
    "the models of a batch, or its folder": "AS540 AS544 AS545 AS547 AS548 AS549",
    "the call of deploy": "AS550 AS552 AS554 AS555 AS562",
    "the program that calls the file": "AS557 AS558",
    "nothing": "AS423",
    "a report to us": "AS901 AS902",
}
"""Advice about what the user alone can change: what that is -> codes."""

WORDS = {code: subject for subject, codes in IN_WORDS.items() for code in codes.split()}
SLOW = ("AS130",)  # waits for a loop of 15 seconds
APPLIED = [code for code in FIXES if code not in TO_COMPLETE and code not in WORDS]


@pytest.fixture(scope="module")
def workshop() -> Workshop:
    return Workshop()


def is_gone(code: str, said: Said) -> bool:
    """Whether the script ends without an error, and without the finding."""
    return not said.is_error and re.search(rf"^{code} ", said.text, re.MULTILINE) is None


def is_refused(said: Said, folder: Path) -> bool:
    return said.is_error and not (folder / "m.onnx").exists()


def carries_state(said: Said, folder: Path) -> bool:
    graph = onnx.load(folder / "m.onnx").graph
    return "state.ema" in [each.name for each in graph.input] and "state.ema.next" in [
        each.name for each in graph.output
    ]


def is_compared(said: Said, folder: Path) -> bool:
    return anyshape.load(folder / "m.onnx").contract.domain.dim("n").max == 8192


def is_done(said: Said, folder: Path) -> bool:
    return said.text.endswith("exit status 0")


def is_signed(said: Said, folder: Path) -> bool:
    anyshape.load(folder / "m.onnx")  # a warning would be an error here
    return is_done(said, folder)


PROMISES: dict[str, Callable[[Said, Path], bool]] = {
    "AS044": is_done,
    "AS064": lambda said, folder: "batch" in said.text and is_done(said, folder),
    "AS065": is_done,
    "AS108": is_refused,
    "AS132": is_compared,
    "AS143": carries_state,
    "AS146": carries_state,
    "AS317": is_signed,
    "AS420": is_signed,
}
"""What a fix promises more than that the finding is gone; a promise to have something refused is the only one without that."""


def broken_promise(code: str, said: Said, folder: Path) -> str:
    """What the applied fix did not bring about; empty if it brought about everything."""
    if code not in ("AS108",) and not is_gone(code, said):
        return f"the finding is not gone: {said.text}"
    kept = PROMISES.get(code, lambda said, folder: True)
    return "" if kept(said, folder) else f"not what the fix promises: {said.text}"


def lists_disagree(fixes: dict[str, Shown], pages: dict[str, Page]) -> list[str]:
    """What is wrong between the lists of this file and the pages."""
    listed = [*TO_COMPLETE, *WORDS]
    return [
        *(f"{code} is listed twice" for code in {code for code in listed if listed.count(code) > 1}),
        *(f"{code} is listed, and has no Fix" for code in listed if code not in fixes),
        *(f"{code} can be applied" for code in listed if code in fixes and _can_be_applied(pages[code], fixes[code])),
        *(
            f"{code} does not say that it was not tried"
            for code in TO_COMPLETE
            if code in fixes and not fixes[code].is_untried
        ),
        *(
            f"{code} is advice, and says that it was not tried"
            for code in WORDS
            if code in fixes and fixes[code].is_untried
        ),
        *(f"{code} promises nothing" for code in PROMISES if code not in fixes),
    ]


def _can_be_applied(page: Page, shown: Shown) -> bool:
    try:
        return apply_fix(page.script, shown) is not None
    except (AssertionError, ValueError):
        return False


def test_what_is_not_applied_is_listed_with_its_reason() -> None:
    assert lists_disagree(FIXES, PAGES) == []


def test_a_stale_entry_of_the_lists_is_noticed() -> None:
    words = Shown("AS111", "", "", "think of something", is_untried=False)
    applied = {**FIXES, "AS111": words, "AS417": Shown("AS417", "", "", "opset=17", is_untried=False)}
    wrong = lists_disagree({code: shown for code, shown in applied.items() if code != "AS004"}, PAGES)
    assert "AS111 does not say that it was not tried" in wrong
    assert "AS417 can be applied" in wrong
    assert "AS004 is listed, and has no Fix" in wrong


ROWS = [pytest.param(code, marks=pytest.mark.thorough) if code in SLOW else code for code in APPLIED]


@pytest.mark.long_table
@pytest.mark.parametrize("code", ROWS)
def test_what_the_fix_promises_happens(code: str, workshop: Workshop, tmp_path: Path) -> None:
    fixed = apply_fix(PAGES[code].script, FIXES[code])
    assert fixed is not None, "a fix that cannot be applied belongs into a list above"
    assert broken_promise(code, workshop.run(fixed, tmp_path), tmp_path) == ""


def test_a_fix_that_does_not_help_is_noticed(workshop: Workshop, tmp_path: Path) -> None:
    page, shown = PAGES["AS035"], FIXES["AS035"]
    wrong = Shown(shown.code, shown.what, shown.text, "opset=10", is_untried=False)
    fixed = apply_fix(page.script, wrong)
    assert fixed is not None and "not gone" in broken_promise("AS035", workshop.run(fixed, tmp_path), tmp_path)


def test_most_fixes_can_be_applied() -> None:
    assert len(APPLIED) >= 45
