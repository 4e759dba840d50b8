"""Which of an image's sides may vary: found by calling the model at twice the side."""

from __future__ import annotations

from typing import Any

import torch

SIDES = ("height", "width")


def find_open_axes(model: Any, name: str | None, channels: int, size: tuple[int, int]) -> dict[str, int]:
    """The sides at which the model also answers when each alone is doubled, with their sizes in the example.

    A patch is never cut by doubling. Which other sizes are allowed is found by the export itself. The image is the input
    `name`, or the only one where that is None.
    """
    return {
        side: size[index]
        for index, side in enumerate(SIDES)
        if _answers(model, name, (channels, *(2 * each if at == index else each for at, each in enumerate(size))))
    }


def _answers(model: Any, name: str | None, shape: tuple[int, ...]) -> bool:
    image = torch.zeros(1, *shape)
    try:
        with torch.no_grad():
            model(image) if name is None else model(**{name: image})
    except Exception:
        return False
    return True
