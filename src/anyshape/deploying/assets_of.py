"""Files that are copied into deployments as they are: `assets/`, beside this module."""

from __future__ import annotations

from importlib.resources import files


def read_asset(name: str) -> str:
    """The text of one of them."""
    return files("anyshape.deploying").joinpath("assets", name).read_text(encoding="utf-8")
