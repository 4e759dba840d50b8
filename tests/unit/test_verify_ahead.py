"""Several children give the verdict of one: in the same order, with nothing left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from tests.verify_calls import Call, request_of

from anyshape.records.verdict import Verdict, as_plain
from anyshape.runtime import ChildRunner
from anyshape.verify import Reference, VerifyOptions, VerifyRequest, run, verify
from anyshape.verify import run as prefetch

RIGHT = "y = Add(x, x)"
WRONG_FROM_FIVE = """n = Shape<start = 0, end = 1>(x) five = Constant<value_ints = [5]>() long = GreaterOrEqual(n, five)
  more = Cast<to = 1>(long) d = Add(x, x) y = Add(d, more)"""


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 4:
            raise ValueError("not four")
        return x + x


def make(sizes: Any, seed: int) -> Call:
    return Call((torch.randn(sizes["b"], 3, generator=torch.Generator().manual_seed(seed)),))


def verdict_on(body: str) -> Verdict:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g (float[b, 3] x) => (float[?, 3] y) {{ {body} }}'
    with Reference(Doubled(), lambda outputs: [("y", outputs)]) as reference:
        return verify(
            request_of(
                onnx.parser.parse_model(text),
                reference,
                make,
                [{"b": b} for b in (3, 4, 7, 1, 2, 5, 9, 4, 6)],
                options=VerifyOptions(locate_s=0.0),
            )
        )


@pytest.fixture
def hired(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ChildRunner]]:
    """The children beside the first; as many as four are always worth it."""
    found: list[ChildRunner] = []
    monkeypatch.setattr(prefetch, "_WORTH_S", -1.0)
    monkeypatch.setattr(run, "_most_children", lambda request, path: 4)
    hire = run._runner

    def hire_and_note(request: VerifyRequest, path: str) -> ChildRunner:
        found.append(hire(request, path))
        return found[-1]

    monkeypatch.setattr(run, "_runner", hire_and_note)
    yield found


def plain(verdict: Verdict) -> Any:
    return as_plain(replace(verdict, seconds=0.0))


@pytest.mark.parametrize("body", [RIGHT, WRONG_FROM_FIVE], ids=["right", "wrong"])
def test_the_verdict_of_four_children_is_that_of_one(body: str, request: pytest.FixtureRequest) -> None:
    alone = verdict_on(body)
    hired = request.getfixturevalue("hired")
    together = verdict_on(body)
    assert len(hired) == 4
    assert plain(together) == plain(alone)
    assert alone.passed is (body == RIGHT)


def test_the_children_are_gone_afterwards(hired: list[ChildRunner]) -> None:
    pids: list[int] = []
    start = ChildRunner.start

    def note(runner: ChildRunner) -> None:
        start(runner)
        assert runner.pid is not None
        pids.append(runner.pid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildRunner, "start", note)
        assert verdict_on(RIGHT).passed
    assert len(set(pids)) == 4
    assert not any(is_running(pid) for pid in pids)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_cheap_model_keeps_to_one_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_most_children", lambda request, path: 4)
    monkeypatch.setattr(prefetch, "_WORTH_S", 300.0)  # a busy machine takes longer for what is cheap, too
    runners: list[Any] = []
    hire = run._runner
    monkeypatch.setattr(run, "_runner", lambda *given: runners.append(hire(*given)) or runners[-1])
    assert verdict_on(RIGHT).passed
    assert len(runners) == 1


def test_large_weights_keep_to_one_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"")
    request: Any = type("Asked", (), {"operators": {}})
    monkeypatch.setattr(run, "usable_cores", lambda: 3)
    assert run._most_children(request, str(path)) == 3
    with (tmp_path / "m.onnx.data").open("wb") as data:
        data.truncate(1 << 28)
    assert run._most_children(request, str(path)) == 1
