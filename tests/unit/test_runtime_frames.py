"""Messages survive the pipe unchanged."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from anyshape.runtime.child_messages import Message, read_message, write_message


def sent(message: Message) -> Message | None:
    stream = io.BytesIO()
    write_message(stream, message)
    stream.seek(0)
    return read_message(stream)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float16, np.int64, np.uint8, np.bool_, np.complex64]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    )
)
def test_any_array_comes_out_as_it_went_in(array: np.ndarray) -> None:
    back = sent(Message("run", {}, {"x": array}))
    assert back is not None
    assert (back.arrays["x"].dtype, back.arrays["x"].shape) == (array.dtype, array.shape)
    assert back.arrays["x"].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.broadcast_to(np.float32(3), (2, 2)),
        np.arange(4).astype(ml_dtypes.bfloat16),
        np.array([["a", "é"]], dtype=object),
        np.array(["x", "yz"]),
    ],
    ids=["transposed", "broadcast", "bfloat16", "objects", "strings"],
)
def test_odd_arrays_too(array: np.ndarray) -> None:
    back = sent(Message("run", {"k": [1]}, {"x": array, "empty": np.zeros((0, 3))}))
    assert back is not None
    assert back.arrays["x"].tolist() == array.tolist()
    assert back.arrays["empty"].shape == (0, 3)
    assert back.facts == {"k": [1]}


@pytest.mark.parametrize("cut", [0, 3, 12, -1])
def test_a_cut_message_is_the_end(cut: int) -> None:
    stream = io.BytesIO()
    write_message(stream, Message("run", {}, {"x": np.ones(5)}))
    assert read_message(io.BytesIO(stream.getvalue()[:cut])) is None
