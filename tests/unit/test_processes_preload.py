"""While libraries are loaded, Python's collector is off, and afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from anyshape.processes.preload import no_collections


def test_nothing_is_collected_while_libraries_are_loaded() -> None:
    with pytest.raises(ValueError), no_collections():
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_a_collector_that_the_user_has_switched_off_stays_off() -> None:
    gc.disable()
    try:
        with no_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
