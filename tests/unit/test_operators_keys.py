"""Each key of a table of translations is an operator of torch: a mistyped key would be left out without a word."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
import torch

from anyshape.translate import operators
from anyshape.translate.operators import DECOMPOSED, FILES, find_operator

_ROOT = Path(__file__).parents[2]
TABLES = ("TRANSLATIONS", "COMPLEX_TRANSLATIONS")  # operators of libraries exist only after their import


def is_pinned() -> bool:
    """Whether this torch is the one that the tables are made for."""
    constraints = (_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return f"torch=={torch.__version__.partition('+')[0]}" in constraints


only_pinned = pytest.mark.skipif(not is_pinned(), reason="every torch has its own set of overloads")


def keys_of(file: str) -> list[str]:
    module = import_module(f"anyshape.translate.operators.{file}")
    return [key for table in TABLES for key in getattr(module, table, {})]


@only_pinned
@pytest.mark.parametrize("file", FILES)
def test_each_key_is_an_operator_of_the_pinned_torch(file: str) -> None:
    assert [key for key in keys_of(file) if find_operator(key) is None] == []


@only_pinned
def test_each_operator_that_is_taken_apart_is_one_of_the_pinned_torch() -> None:
    assert [key for key in DECOMPOSED if find_operator(key) is None] == []


def test_a_mistyped_key_is_no_operator() -> None:
    assert find_operator("sort.stable") is torch.ops.aten.sort.stable
    assert find_operator("prims::gcd") is torch.ops.prims.gcd.default
    assert [find_operator(key) for key in ("sort.stabel", "srot", "aten:sort", "prims::gdc")] == [None] * 4


def test_no_key_is_in_two_files() -> None:
    keys = [(table, key) for table in TABLES for file in FILES for key in _table(file, table)]
    assert [key for key in dict.fromkeys(keys) if keys.count(key) > 1] == []


def test_each_file_with_a_table_is_listed() -> None:
    folder = Path(operators.__file__).parent
    with_table = {path.stem for path in folder.glob("*.py") if "TRANSLATIONS: dict" in path.read_text(encoding="utf-8")}
    assert with_table == set(FILES)


def _table(file: str, name: str) -> list[str]:
    return list(getattr(import_module(f"anyshape.translate.operators.{file}"), name, {}))
