"""A custom node that runs in the child, and its Python function, which is here: a call over the pipes and back.

child: call mylib::Scale with these arrays  ->  here: the user's function  ->  child: returned, or raised
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from anyshape.runtime.dtypes import Array
from anyshape.runtime.errors import RuntimeFailed
from anyshape.runtime.frames import Message

Ask = Callable[[Message], Message]


def remote_operator(name: str, ask: Ask) -> Callable[..., Any]:
    """In the child: the function that asks the parent."""

    def call(*inputs: Array | None, **attributes: Any) -> list[Array]:
        arrays = {str(place): array for place, array in enumerate(inputs) if array is not None}
        reply = ask(Message("call", {"operator": name, "count": len(inputs), "attributes": attributes}, arrays))
        if reply.kind == "raised":
            raise RuntimeFailed(reply.facts["message"])
        return list(reply.arrays.values())

    return call


def answer_call(call: Message, operators: Mapping[str, Callable[..., Any]]) -> Message:
    """In the parent: what the user's function says."""
    facts = call.facts
    inputs = [call.arrays.get(str(place)) for place in range(facts["count"])]
    try:
        result = operators[facts["operator"]](*inputs, **facts["attributes"])
        given = [np.asarray(each) for each in (result if isinstance(result, (tuple, list)) else [result])]
    except Exception as error:
        return Message("raised", {"message": f"operator {facts['operator']} raised {type(error).__name__}: {error}"})
    return Message("returned", {}, {str(place): array for place, array in enumerate(given)})
