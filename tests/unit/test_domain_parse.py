from __future__ import annotations

import pytest

from anyshape.domain import parse_condition, parse_expr
from anyshape.findings import DeclarationError

CONDITION_FIX = "  Fix:    a condition compares expressions (< <= == != >= >), joined by and, or, not."
EXPR_FIX = "  Fix:    an expression is made of dims, whole numbers, + - * // %, min(...) and max(...)."
ARITHMETIC = "only simple arithmetic on dims is read."


def message_of(text: str, *, condition: bool) -> list[str]:
    with pytest.raises(DeclarationError) as caught:
        parse_condition(text) if condition else parse_expr(text)
    first, *rest = str(caught.value).splitlines()
    start = f"AS002 unreadable-expression: cannot read {' '.join(text.split())!r}: "
    assert first.startswith(start)
    return [first.removeprefix(start), *rest]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ["it is empty.", EXPR_FIX]),
        ("a +", ["it ends too early.", "    a +", "       ^", EXPR_FIX]),
        ("a $ b", ["it stops making sense at the mark.", "    a $ b", "      ^", EXPR_FIX]),
        (
            "é + a/2",
            [ARITHMETIC, "    é + a/2", "        ^^^", "  Fix:    sizes are whole numbers: write // for division."],
        ),
        ("n**2", [ARITHMETIC, "    n**2", "    ^^^^", "  Fix:    write a power as a product: n*n."]),
        ("2.5*n", [ARITHMETIC, "    2.5*n", "    ^^^", EXPR_FIX]),
        ("True", [ARITHMETIC, "    True", "    ^^^^", EXPR_FIX]),
        ("ceil(n)", [ARITHMETIC, "    ceil(n)", "    ^^^^^^^", EXPR_FIX]),
        ("x.shape", [ARITHMETIC, "    x.shape", "    ^^^^^^^", EXPR_FIX]),
        ("min(n)", ["min(...) takes two or more expressions.", "    min(n)", "    ^^^^^^", EXPR_FIX]),
        (
            "min(n, key=n)",
            ["min(...) takes two or more expressions.", "    min(n, key=n)", "    ^^^^^^^^^^^^^", EXPR_FIX],
        ),
        ("a <  b", [ARITHMETIC, "    a < b", "    ^^^^^", EXPR_FIX]),
        ("~n", [ARITHMETIC, "    ~n", "    ^^", "  Fix:    write `not` in front of a condition."]),
        ("min(*n, 2)", [ARITHMETIC, "    min(*n, 2)", "        ^^", EXPR_FIX]),
    ],
)
def test_an_unreadable_expression_is_shown_with_its_place(text: str, message: list[str]) -> None:
    assert message_of(text, condition=False) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "batch = 3",
            ["it stops making sense at the mark.", "    batch = 3", "          ^", "  Fix:    write == for equality."],
        ),
        (
            "a > 1 && b > 1",
            [
                "it stops making sense at the mark.",
                "    a > 1 && b > 1",
                "           ^",
                "  Fix:    write `and`, `or` and `not` between conditions.",
            ],
        ),
        (
            "a + 1",
            ["it compares nothing, so it is not a condition.", "    a + 1", "    ^^^^^", CONDITION_FIX],
        ),
        (
            "(a > 1) & (b > 1)",
            [ARITHMETIC, "    (a > 1) & (b > 1)", "    ^^^^^^^^^^^^^^^^^", "  Fix:    write `and` between conditions."],
        ),
        (
            "(a > 1) | (b > 1)",
            [ARITHMETIC, "    (a > 1) | (b > 1)", "    ^^^^^^^^^^^^^^^^^", "  Fix:    write `or` between conditions."],
        ),
        (
            "a in b",
            [ARITHMETIC, "    a in b", "    ^^^^^^", "  Fix:    write a range as 1 <= batch <= 64."],
        ),
        ("3", ["it compares nothing, so it is not a condition.", "    3", "    ^", CONDITION_FIX]),
    ],
)
def test_an_unreadable_condition_is_shown_with_its_place(text: str, message: list[str]) -> None:
    assert message_of(text, condition=True) == message


@pytest.mark.parametrize("text", ["a\0b", "9" * 5000, "(" * 500 + "a" + ")" * 500])
def test_what_breaks_the_parser_is_unreadable_too(text: str) -> None:
    with pytest.raises(DeclarationError, match="AS002"):
        parse_expr(text)


def test_signs_and_spaces_are_read() -> None:
    assert parse_expr(" +a\n -  -2 ") == parse_expr("a - -2")
