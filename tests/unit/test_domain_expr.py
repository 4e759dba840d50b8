from __future__ import annotations

import pytest

from anyshape.domain import Number, Op, Ref, Undefined, as_expr, dims_of, evaluate, format_expr, parse_expr, simplify
from anyshape.findings import DeclarationError

a, b, n, seq, past = (Ref(name) for name in ("a", "b", "n", "seq", "past"))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (2 * seq, "2*seq"),
        (past + seq, "past + seq"),
        ((a + 1) // 2, "(a + 1)//2"),
        (32 - a, "32 - a"),
        (Op("min", (seq, Number(512))), "min(seq, 512)"),
        (a % 8, "a % 8"),
        (8 % a, "8 % a"),
        (-a, "-a"),
        (-(a * b), "-(a*b)"),
        (a - (b - 1), "a - (b - 1)"),
        (a - -3, "a - -3"),
        (2 * (a // 2), "2*(a//2)"),
        (1 + a, "1 + a"),
        (7 // a, "7//a"),
    ],
)
def test_operators_build_what_the_text_says(expr: Op, text: str) -> None:
    assert format_expr(expr) == text
    assert str(expr) == text
    assert parse_expr(text) == expr


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("seq + past", "past + seq"),
        ("2*seq - seq", "seq"),
        ("(4*n)//2", "2*n"),
        ("(2*n) % 2", "0"),
        ("0*n", "0"),
        ("(h + 2*1 - 3)//2 + 1", "(h + 1)//2"),
        ("(3*t + 5)//2", "t + (t + 1)//2 + 2"),
        ("(2*n + 1)//4", "n//2"),
        ("(4*n + 6)//8", "(n + 1)//2"),
        ("(n//2)//3", "n//6"),
        ("(n//2 + 1)//3", "(n + 2)//6"),
        ("(n % 6) % 3", "n % 3"),
        ("(2*(n % 6)) % 6", "2*(n % 3)"),
        ("((a % 2) % 4) % 2", "a % 2"),
        ("(a % 2 + 2*(b % 3)) % 6", "a % 2 + 2*(b % 3)"),
        ("(1//0)//2", "1//0//2"),
        ("(a % 4 + 1)//5", "0"),
        ("(a % 4 + 2)//5", "(a % 4 + 2)//5"),
        ("(2*n + 1) % 4", "2*(n % 2) + 1"),
        ("n//-2", "n//2 - n"),
        ("(batch*seq)//batch", "seq"),
        ("(a*b + a*c)//(b + c)", "a"),
        ("(a*b + a*c) % (b + c)", "0"),
        ("(3*a*b + 3*a*c)//(2*b + 2*c)", "(3*a*b + 3*a*c)//(2*b + 2*c)"),
        ("(2*a + 3*b)//(a + b)", "(2*a + 3*b)//(a + b)"),
        ("(a + 1)//b", "(a + 1)//b"),
        ("(6*a)//(4*b)", "3*a//(2*b)"),
        ("(6*a) % (4*b)", "2*(3*a % (2*b))"),
        ("a//(-b)", "-a//b"),
        ("a//0", "a//0"),
        ("a % 0", "a % 0"),
        ("max(a, a + 1, b)", "max(a + 1, b)"),
        ("min(3, min(seq, 5))", "min(seq, 3)"),
        ("min(a, a)", "a"),
        ("32 - t", "32 - t"),
        ("-t - 3", "-t - 3"),
        ("3 - 3", "0"),
        ("(a + b)*(a - b)", "a*a - b*b"),
    ],
)
def test_simplify(text: str, simple: str) -> None:
    assert format_expr(simplify(parse_expr(text))) == simple


def test_dims_come_in_the_order_of_their_appearance() -> None:
    assert dims_of(parse_expr("b*a + min(c, b) - 3")) == ("b", "a", "c")


def test_division_by_zero_has_its_own_error() -> None:
    with pytest.raises(Undefined) as caught:
        evaluate(a % (b - 2), {"a": 5, "b": 2})
    assert str(caught.value).splitlines()[0] == "AS005 division-by-zero: a % (b - 2) has no value here: b - 2 is 0."


def test_a_missing_size_is_named() -> None:
    with pytest.raises(DeclarationError, match="AS001 unknown-dim: there is no size for dim 'b'"):
        evaluate(a + b, {"a": 5})


@pytest.mark.parametrize("name", ["", "1x", "a b", "class", "x-y", "\ufb01"])
def test_what_python_cannot_read_back_is_no_name(name: str) -> None:
    with pytest.raises(DeclarationError, match="AS004"):
        Ref(name)


def test_only_known_operations_on_enough_arguments_are_built() -> None:
    for symbol, args in (("**", (a, b)), ("+", (a, b, n)), ("min", (a,))):
        with pytest.raises(ValueError, match=r"unknown|does not take"):
            Op(symbol, args)
    with pytest.raises(TypeError):
        Number(True)
    with pytest.raises(TypeError):
        as_expr("a")  # type: ignore[arg-type]
