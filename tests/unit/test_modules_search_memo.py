"""A search through a module's code is made once in the process of an export, and again where there is something new to find."""

from __future__ import annotations

from typing import Any

import torch
from tests.own_process import in_own_process
from torch import nn

from anyshape.modules import kept_search

SPACE: dict[str, Any] = {}


class Counted:
    """A search that counts its calls."""

    def __init__(self) -> None:
        self.count = 0
        self.find = kept_search(spaces_of=lambda found: (SPACE,))(self._search)

    def _search(self, module: nn.Module) -> list[str]:
        self.count += 1
        return list(SPACE)


@in_own_process
def test_a_search_is_made_once_in_the_process_of_an_export() -> None:
    search, module = Counted(), nn.Linear(2, 2)
    assert search.find(module) is search.find(module)
    assert search.count == 1


@in_own_process
def test_a_new_name_or_attribute_is_found() -> None:
    search, module = Counted(), nn.Linear(2, 2)
    search.find(module)
    SPACE["later"] = 1
    assert search.find(module) == ["later"]
    SPACE.clear()
    search.find(module)
    module.helper = torch.relu
    search.find(module)
    module.register_forward_hook(lambda *_: None)
    search.find(module)
    assert search.count == 5


def test_nothing_is_kept_in_the_callers_process() -> None:
    search, module = Counted(), nn.Linear(2, 2)
    search.find(module)
    search.find(module)
    assert search.count == 2
