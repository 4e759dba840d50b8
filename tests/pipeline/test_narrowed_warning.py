"""A file whose contract is smaller than declared is a warning in Python, at the user's line; on the command line it is not."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import anyshape
import anyshape.compat
from anyshape.records.export import Export, describe_untried
from anyshape.records.verdict import Untried

pytestmark = pytest.mark.filterwarnings("error::anyshape.NarrowedWarning")


class Pairs(torch.nn.Module):
    def forward(self, x):
        return x.view(-1, 2).sum(1)


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2


class Cube(torch.nn.Module):
    def forward(self, x):
        side = round(x.shape[0] ** (1 / 3))
        return x.view(side, side, side)


class Pick(torch.nn.Module):
    def forward(self, x, index):
        return x[index]


def numbers(n=4):
    return torch.randn(n)


def warned(export) -> tuple[Export, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = export()
    return result, found


def test_a_learned_rule_is_one_warning_with_the_finding_at_the_calling_line() -> None:
    result, (warning,) = warned(lambda: anyshape.export(Pairs(), numbers))
    assert warning.category is anyshape.NarrowedWarning
    assert isinstance(warning.message, anyshape.NarrowedWarning)
    assert [finding.code for finding in warning.message.findings] == ["AS106"]
    assert str(warning.message) == str(result.findings[0])
    assert Path(warning.filename) == Path(__file__)
    assert "anyshape.export(Pairs(), numbers)" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


def test_compat_warns_at_the_line_that_calls_it() -> None:
    _, (warning,) = warned(
        lambda: anyshape.compat.export(Pairs(), (torch.randn(4),), input_names=["x"], dynamic_axes={"x": {0: "n"}})
    )
    assert warning.category is anyshape.NarrowedWarning
    assert "anyshape.compat.export(" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


def test_a_file_for_all_of_the_domain_is_no_warning() -> None:
    assert warned(lambda: anyshape.export(Doubled(), numbers))[1] == []
    assert warned(lambda: anyshape.export(Pairs(), numbers, where="n % 2 == 0"))[1] == []


def test_learned_values_and_an_end_that_was_compared_are_narrower() -> None:
    x, index = torch.rand(5, 3), torch.tensor([0, 2, 4])
    with pytest.warns(anyshape.NarrowedWarning, match="AS315 values-learned"):
        anyshape.export(Pick(), (x, index), dynamic={"x": "rows 3", "index": "n"})
    with pytest.warns(anyshape.NarrowedWarning, match="AS132 open-range-ends"):
        result = anyshape.export(Doubled(), numbers, strategy="generalized")
    assert "\n  AS132 open-range-ends: n has no declared upper end: " in str(result)


def test_refused_sizes_without_a_rule_are_a_warning() -> None:
    with pytest.warns(anyshape.NarrowedWarning, match="AS142 rule-unknown"):
        anyshape.export(Cube(), lambda n=8: torch.randn(n))


def test_a_narrower_domain_that_was_accepted_is_a_warning() -> None:
    with pytest.warns(anyshape.NarrowedWarning, match="AS103 promise-not-kept"):
        anyshape.export(Pairs(), numbers, where="n <= 64", accept_narrower=True)


def test_a_caller_can_make_it_an_error() -> None:
    with pytest.raises(anyshape.NarrowedWarning, match="AS106"):
        anyshape.export(Pairs(), numbers)


def test_the_command_line_prints_the_finding_once_and_no_warning(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\n"
        "class Pairs(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x.view(-1, 2).sum(1)\n"
        "def model(): return Pairs()\n"
        "def inputs(n=4): return torch.randn(n)\n"
    )
    command = [sys.executable, "-W", "always", "-m", "anyshape", "export", "model.py", "-o", "m.onnx", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.count("AS106") == 1
    assert "AS106" not in done.stderr and "NarrowedWarning" not in done.stderr


def test_sizes_that_were_not_compared_are_named_by_reason() -> None:
    far = [Untried({"n": size}, "too far") for size in (10, 40, 30, 20, 50)]
    other = Untried({"n": 7, "m": 2}, "too slow")
    assert describe_untried([*far, other]) == [
        "untried n=50; n=40; n=30 and 2 more: too far",
        "untried n=7, m=2: too slow",
    ]
    assert describe_untried([]) == []


def test_a_printed_result_names_sizes_that_were_not_compared() -> None:
    result = anyshape.export(Doubled(), numbers)
    assert "untried" not in str(result)
    short = replace(result, verdict=replace(result.verdict, untried=(Untried({"n": 9000}, "too far"),)))
    assert str(short).endswith("\n  untried n=9000: too far")
