"""The expressions of code that has no text are those of its text."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from torch import nn

from anyshape.modules.code_expressions import expressions_in, has_source
from anyshape.modules.numbers_in_code import numbers_in_code
from anyshape.modules.unfollowed_uses import watch_uses
from anyshape.modules.user_code import is_users, source_of_error
from anyshape.modules.uses_in_code import lines_that_pass_on
from anyshape.modules.watched_comparisons import watch_comparisons

EXPRESSIONS = [
    "n % 97 == 3",
    "n & 255 != 1",
    "f'{n:04d}'.startswith('03')",
    "f'{x.shape[0]}-{n!r}' in t",
    "str(n)[::-1] == '773'",
    "t.get((n, 3), default=1.0)",
    "t.get(n, 1.0)",
    "self.a[n][k]",
    "getattr(self, f'b_{n}_{k}', None)",
    "round(n, -1) == 310",
    "sum(map(int, str(n)))",
    "n not in [1, 2, k]",
    "t[1:n]",
    "{n: 2}[k] is None",
    "n * k + 3 > -k",
    "math.isqrt(n) ** 2",
]


def code_of(text: str) -> CodeType:
    space: dict[str, Any] = {}
    exec(compile(text, "<string>", "exec"), space)
    code: CodeType = space["f"].__code__
    return code


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_read_from_its_code(text: str) -> None:
    code = code_of(f"def f(n, k, t, x, self):\n    return {text}\n")
    found = [
        ast.unparse(ast.fix_missing_locations(node)) for node in expressions_in(code) if not isinstance(node, ast.Slice)
    ]
    same = text.replace("[1, 2, k]", "(1, 2, k)").replace("[::-1]", "[None:None:-1]").replace("> -k", "> -k")
    assert ast.unparse(ast.parse(same)) in found
    assert all(node.lineno == 2 for node in expressions_in(code))


def test_what_is_not_known_is_not_evaluated() -> None:
    code = code_of("def f(n):\n    with n as m:\n        return [i % 3 for i in m if i == 7]\n")
    (inner,) = [each for each in code.co_consts if isinstance(each, CodeType)]
    texts = [ast.unparse(ast.fix_missing_locations(node)) for node in expressions_in(inner)]
    assert "i % 3" in texts and "i == 7" in texts


def test_code_without_text_is_watched() -> None:
    space: dict[str, Any] = {}
    text = "def f(n):\n    k = 400\n    if n + 13 < k:\n        print(f'{n}')\n    return f'{n:04d}'.startswith('03')\n"
    exec(compile(text, "<string>", "exec"), space)
    assert list(watch_comparisons(lambda: space["f"](7)).values()) == [-380.0]
    seen = watch_uses(lambda: space["f"](7)).uses
    assert {use.line for use in seen} == {5} and {each.text for each in seen.values()} == {"'0007'"}


PASSING = """
def f(self, n):
    key = self.key(n)
    self.name = self.key(n)
    first, second = self.pair(n)
    value = self.table[self.key(n)]
    made = Key.of(n).text(n)
    return self.key(n)
"""


def test_a_result_that_is_given_a_name_or_returned_is_found_in_code_as_in_text(tmp_path: Path) -> None:
    file = tmp_path / "passing.py"
    file.write_text(PASSING)
    of_text: dict[str, Any] = {}
    exec(compile(PASSING, str(file), "exec"), of_text)
    assert lines_that_pass_on(of_text["f"].__code__) == lines_that_pass_on(code_of(PASSING)) == {3, 8}


def test_a_text_that_code_without_text_returns_is_a_use() -> None:
    space: dict[str, Any] = {"steps": {"s310": 2.0, "s311": 3.0}}
    text = "def key(n):\n    return f's{n}'\ndef f(n):\n    if n > 3:\n        return steps.get(key(n), 1.0)\n"
    exec(compile(text, "<string>", "exec"), space)
    seen = watch_uses(lambda: space["f"](7)).uses
    assert "'s7'" in [each.text for use, each in seen.items() if (use.file, use.line) == ("<string>", 5)]


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int


def test_code_that_makes_a_named_tuple_is_not_the_users() -> None:
    assert {file for file, _ in watch_uses(lambda: Pair(3, 4)).lines or ()} == {__file__}


def test_a_name_that_many_codes_have_is_no_text() -> None:
    assert not has_source(code_of("def f(): pass\n"))
    assert has_source(test_a_name_that_many_codes_have_is_no_text.__code__)


def test_code_is_the_users_unless_it_is_torchs_ours_or_pythons() -> None:
    installed = Path(sysconfig.get_path("purelib"))
    users = ["<string>", "<stdin>", "<ipython-input-3-0123>", "<frozen mylib.layers>", "model.py"]
    users += [str(installed / name / "core.py") for name in ("einops", "scipy", "transformers", "of_a_colleague")]
    users += [
        str(installed / name / "core.py") for name in ("torchaudio", "torch_geometric", "numpyro", "anyshape_models")
    ]
    others = ["<frozen os>", "<eval_with_key>.3", torch.__file__, ast.__file__, str(installed / "numpy" / "core.py")]
    assert [file for file in users if not is_users(file)] == []
    assert [file for file in others if is_users(file)] == []


LIBRARY = """
def rearrange(x):
    if x.shape[0] == 377:
        raise ValueError("not this one")
    return x
"""


def installed(name: str) -> dict[str, Any]:
    """A library in the folder of installed packages, as far as its code shows."""
    space: dict[str, Any] = {"__name__": f"{name}.core"}
    file = str(Path(sysconfig.get_path("purelib")) / name / "core.py")
    exec(compile(LIBRARY, file, "exec"), space)
    return space


class Calls(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return rearrange(x) * 2


rearrange = installed("a_library")["rearrange"]


def test_code_of_a_library_is_read_and_watched_and_told_by_the_line_that_calls_it() -> None:
    assert 377 in numbers_in_code(Calls())
    assert -374.0 in watch_comparisons(lambda: Calls()(torch.ones(3))).values()
    with pytest.raises(ValueError, match="not this one") as raised:
        Calls()(torch.ones(377))
    line = source_of_error(raised.value)
    assert line is not None and line.text == "return rearrange(x) * 2"


def test_numpy_is_no_code_of_the_user_wherever_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy, "__file__", "/elsewhere/numpy/__init__.py")
    assert not is_users("/elsewhere/numpy/_core/numeric.py")
    assert is_users("/elsewhere/numpy_helpers.py")


def test_a_list_of_sizes_that_is_no_none_is_no_use_of_them() -> None:
    def call() -> None:
        sizes = [2, 9, 16]
        if sizes is not None:
            pass

    assert not watch_uses(call).uses


def test_a_table_that_is_written_in_the_code_is_one() -> None:
    code = compile("def f(n): return {384: 0.5, 640: 2.0}.get(n, 1.0)", "<string>", "exec").co_consts[0]
    found = [ast.unparse(each) for each in expressions_in(code)]
    assert "{384: 0.5, 640: 2.0}.get(n, 1.0)" in found
