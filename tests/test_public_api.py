"""The public names: sorted, complete, documented."""

from __future__ import annotations

import inspect

import anyshape


def test_public_names_are_sorted_and_few() -> None:
    assert anyshape.__all__ == sorted(anyshape.__all__)
    assert len(anyshape.__all__) <= 16


def test_every_public_name_exists_and_is_documented() -> None:
    for name in anyshape.__all__:
        assert inspect.getdoc(getattr(anyshape, name)), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    try:
        anyshape.exprot  # noqa: B018
    except AttributeError as error:
        assert "exprot" in str(error)
    else:
        raise AssertionError("no error")


def test_compat_has_the_signature_of_torch() -> None:
    import torch

    theirs = inspect.signature(torch.onnx.export).parameters
    ours = inspect.signature(anyshape.compat.export).parameters
    assert [name for name in theirs if name not in ours] == []
    assert list(ours)[:3] == list(theirs)[:3]
    assert all(ours[name].kind == theirs[name].kind for name in theirs)
