"""The parts of a source repair: sites of a function, texts of tables, readings of numbers, probes, and diffs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from anyshape.domain import declare_domain
from anyshape.domain.dims import Dim
from anyshape.repair.source.axis_readings import Size, read_number
from anyshape.repair.source.source_patch import probe_sizes, unified_diff
from anyshape.repair.source.source_sites import Site, read_sources
from anyshape.repair.source.source_tables import inlined_texts, read_definitions, table_texts


class Sites(torch.nn.Module):
    def __init__(self, frames: int = 5) -> None:
        super().__init__()
        steps = torch.arange(frames)
        self.grid = steps / 5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[1] == 5
        if x.shape[0] == 3:
            y = x.view(3, self.width) if x.shape[1] == 7 else x
        mask = torch.arange(9)[None] < x.shape[1]
        for _ in range(11):
            y = y + mask
        return y


def sites_of(function: Any) -> list[str]:
    return [site.text for statement in read_sources([function]).statements for site in statement.sites]


def test_numbers_of_conditions_are_no_sites() -> None:
    found = sites_of(Sites.forward)
    assert {"3", "self.width", "9", "11"} <= set(found)
    assert not {"5", "7"} & set(found)


def test_a_statement_has_the_names_that_it_reads_and_writes() -> None:
    statements = read_sources([Sites.forward]).statements
    head = next(each for each in statements if "range" in each.calls)
    assert head.line == head.end_line and head.writes == {"_"}
    assert any(each.writes == {"y"} and {"x", "self.width"} <= each.reads for each in statements)


TABLES = (
    (torch.zeros(1, 3, 6), {1: "b"}, "h.new_zeros(1, b, 6)"),
    (torch.ones(3, dtype=torch.bool), {0: "b"}, "h.new_ones(b)"),
    (torch.full((3, 2), -0.5), {0: "b"}, "h.new_full((b, 2), -0.5)"),
    (torch.tensor([[1.0, 2.0]] * 3), {0: "b"}, "h[:1].expand(b, -1)"),
    (torch.arange(5), {0: "t"}, "torch.arange(t, dtype=h.dtype, device=h.device)"),
    (
        2 + 3 * torch.arange(5).view(1, -1),
        {1: "t"},
        "(2 + 3 * torch.arange(t, dtype=h.dtype, device=h.device)).view(1, -1)",
    ),
    (torch.ones(5, 5).tril(), {0: "t", 1: "t"}, "h.new_ones(t, t).tril()"),
    (torch.ones(1, 5, 5).triu(1), {1: "t", 2: "t"}, "h.new_ones(1, t, t).triu(1)"),
    (torch.full((5, 5), float("-inf")).triu(1), {0: "t", 1: "t"}, 'h.new_full((t, t), float("-inf")).triu(1)'),
    (torch.ones(5, 5, dtype=torch.bool).triu(1).logical_not(), {0: "t", 1: "t"}, "h.new_ones(t, t).tril()"),
    (torch.eye(5), {0: "t", 1: "t"}, "h.new_ones(t, t).tril().triu()"),
)


@pytest.mark.parametrize(("table", "axes", "text"), TABLES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_table_with_a_pattern_is_made_at_any_size(table: torch.Tensor, axes: dict[int, str], text: str) -> None:
    found = next(table_texts("h", table, axes))
    assert found == text
    names = {size: table.shape[axis] for axis, size in axes.items()}
    again = eval(found, {"torch": torch}, {"h": table, **names})
    assert torch.equal(again, table) and again.dtype == table.dtype


@pytest.mark.parametrize(
    "table",
    [torch.randn(5, 2), torch.linspace(0, 1, 5), torch.nn.Parameter(torch.zeros(5)), torch.tensor([0, 1, 1, 0, 1])],
)
def test_a_table_without_a_pattern_can_only_be_cut(table: torch.Tensor) -> None:
    assert list(table_texts("h", table, {0: "t"})) == ["h[: t]"]


def test_each_number_of_a_definition_is_a_reading() -> None:
    definitions = read_definitions([Sites.forward])
    assert list(inlined_texts("s.grid", definitions, {5: "x.shape[1]"})) == [
        "(torch.arange(x.shape[1]) / x.shape[1])",
        "(torch.arange(5) / x.shape[1])",
        "(torch.arange(x.shape[1]) / 5)",
    ]
    assert list(inlined_texts("s.other", definitions, {5: "t"})) == []


def test_readings_of_a_number() -> None:
    sizes = [Size("b", (3, 7)), Size("t", (5, 11))]
    assert [each.text for each in read_number(3, sizes)] == ["b"]
    assert [each.text for each in read_number(15, sizes)] == ["5 * b", "3 * t", "b * t"]
    assert [each.text for each in read_number(6, sizes)] == ["2 * b", "t + 1"]
    assert [each.vector for each in read_number(8, sizes)] == [(8, 18)]


def test_probes_lie_in_the_domain_and_differ_from_the_example() -> None:
    domain = declare_domain((Dim("b"), Dim("t", min=2, max=12, multiple=2)), ["b <= t"])
    probes = probe_sizes(domain, {"b": 2, "t": 4})
    assert len(probes) > 3
    assert all(domain.contains(sizes) and sizes != {"b": 2, "t": 4} and 1 not in sizes.values() for sizes in probes)
    assert all(sizes["t"] < 4 for sizes in probe_sizes(domain, {"b": 2, "t": 4}, ["t"], smaller=["t"]))


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_a_diff_applies_with_git(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "net.py"
    newline = ending or "\n"
    text = newline.join(["# größer", "y = x.view(3, 10)", "z = 'ä', 3"]) + ending
    file.write_bytes(text.encode())
    sites = {
        Site(str(file), 2, 11, 12, "3"): "x.shape[0]",
        Site(str(file), 3, 10, 11, "3"): "n",
    }
    diff, folder = unified_diff(sites)
    assert folder == ""
    (tmp_path / "fix.patch").write_bytes(diff.encode())
    subprocess.run(["git", "apply", "fix.patch"], check=True)
    assert file.read_bytes().decode() == text.replace("view(3", "view(x.shape[0]").replace("'ä', 3", "'ä', n")
