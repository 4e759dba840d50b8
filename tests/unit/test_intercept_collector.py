"""The garbage collector runs less often during an export, and as before afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from anyshape.intercept.turns import fewer_collections, no_collections


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_collections_are_rarer_and_then_as_before() -> None:
    with pytest.raises(ValueError), fewer_collections():
        assert gc.get_threshold() == (20_000, 10, 10)
        with fewer_collections():
            assert gc.get_threshold() == (20_000, 10, 10)
        assert gc.get_threshold() == (20_000, 10, 10)
        assert gc.get_freeze_count() > 0
        raise ValueError
    assert gc.get_threshold() == (700, 10, 10) and gc.get_freeze_count() == 0


def test_what_the_user_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        with fewer_collections():
            assert gc.get_threshold() == (700, 10, 10)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_nothing_is_collected_while_libraries_are_loaded() -> None:
    with pytest.raises(ValueError), no_collections():
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("own", [(0, 10, 10), (50_000, 5, 5)], ids=["switched off", "rarer already"])
def test_a_threshold_of_the_users_is_kept(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with fewer_collections():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_what_the_users_code_sets_meanwhile_is_kept() -> None:
    with fewer_collections():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)
