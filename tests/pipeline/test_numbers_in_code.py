"""Rules that only look right at few sizes: the numbers in the user's code say where to look."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import anyshape
from anyshape.explore import sizes_at_numbers
from anyshape.inputs import declare
from anyshape.modules.numbers_in_code import numbers_in_code

LIMIT = 300


class OneSize(nn.Module):
    def forward(self, x):
        length = int(x.shape[1])
        return x * 2 if length == 97 else x + length


class Sevenths(nn.Module):
    def forward(self, x):
        return torch.cat([x, x[:, : int(x.shape[1]) // 7]], 1)


class Attribute(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.window = 61

    def forward(self, x):
        return x[:, -self.window :] if int(x.shape[1]) > LIMIT else x


def inputs(b=2, t=6):
    return torch.randn(b, t)


@pytest.mark.parametrize(
    ("model", "lengths"), [(OneSize(), (96, 97, 98)), (Sevenths(), (6, 7, 13, 14)), (Attribute(), (60, 300, 301))]
)
def test_a_line_that_matters_at_few_sizes_is_right_at_those(model, lengths, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(model, inputs, path, strategy="generalized")
    assert not result.contract.tested.capture_proved
    loaded = anyshape.load(path)
    for length in lengths:
        x = torch.randn(3, length)
        torch.testing.assert_close(loaded(x), model(x))


def test_a_condition_is_put_down_to_the_dim_that_has_it() -> None:
    result = anyshape.export(OneSize(), inputs, strategy="generalized")
    assert [str(region.condition) for region in result.regions] == ["t == 97", "t != 97"]


def test_check_looks_at_the_numbers_of_the_code_too(tmp_path) -> None:
    class Plain(nn.Module):
        def forward(self, x):
            return x + x.shape[1]

    anyshape.export(Plain(), inputs, tmp_path / "m.onnx")
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.check(tmp_path / "m.onnx", OneSize(), inputs)
    assert caught.value.finding.sizes["t"] == 97


def helper(x):
    return x[:, :77]


class Calling(nn.Module):
    @property
    def half(self):
        return 1234

    def forward(self, x):
        return [helper(piece) for piece in (x, x[:, :55])]


def test_numbers_of_code_globals_and_attributes_are_found() -> None:
    assert {61, 300} <= set(numbers_in_code(Attribute()))


class Default(nn.Module):
    def forward(self, x, chunk: int = 640, *, limit: int = 1300):
        return x[:, :chunk] if x.shape[1] > limit else x


def test_defaults_of_parameters_are_numbers_of_the_code() -> None:
    assert {640, 1300} <= set(numbers_in_code(Default()))


def test_numbers_of_named_functions_properties_and_inner_code_are_found() -> None:
    assert {55, 77, 1234} <= set(numbers_in_code(nn.Sequential(Calling())))


def test_torch_s_own_numbers_are_no_suspects() -> None:
    assert numbers_in_code(nn.TransformerEncoderLayer(48, 4)) == ()


def test_sizes_at_numbers_change_one_dim_at_a_time_and_stay_in_the_domain() -> None:
    declared = declare(nn.Identity(), inputs, where=["t <= 50", "t % 2 == 0"])
    points = sizes_at_numbers(declared, (30, 99))
    assert {"b": 2, "t": 30} in points and all(declared.domain.contains(sizes) for sizes in points)
    assert all(sum(sizes[name] != declared.example_sizes[name] for name in sizes) <= 1 for sizes in points)
    assert {sizes["b"] for sizes in points} >= {29, 30, 31, 98, 99, 100}


class Written(nn.Module):
    """A number that only a text has, looked up once for each length."""

    settings = "650:0.5,1350:0.25"

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, float] = {}

    def find(self, n):
        """No number of a docstring counts: 777."""
        found = [float(part.split(":")[1]) for part in self.settings.split(",") if n >= int(part.split(":")[0])]
        return found[-1] if found else 1.0

    def forward(self, x):
        key = f"length {x.shape[1]}"
        if key not in self.kept:
            self.kept[key] = self.find(int(key.split()[1]))
        return x * self.kept[key]


def test_numbers_of_texts_and_of_class_attributes_are_found_those_of_docstrings_are_not() -> None:
    found = numbers_in_code(Written())
    assert {650, 1350} <= set(found) and 777 not in found


def test_a_number_that_a_text_has_is_right_on_both_sides(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(Written(), inputs, path)
    loaded, model = anyshape.load(path), Written()
    for length in (513, 600, 649, 650, 1349, 1350, 1400):
        x = torch.randn(2, length)
        torch.testing.assert_close(loaded(x), model(x))
    with pytest.raises(anyshape.ContractBroken, match="compared with the model up to there"):
        loaded(torch.randn(2, 4096))  # each size up to the end was compared: nothing follows a text


def test_sizes_without_a_number_in_the_code_are_compared_all_over_an_open_range() -> None:
    class Plain(nn.Module):
        def forward(self, x):
            return x.reshape(int(x.shape[0]) * 2, -1) * 2

    result = anyshape.export(Plain(), lambda n=3: torch.randn(n, 4), strategy="generalized")
    tried = sorted(sizes["n"] for sizes in result.verdict.tried)
    assert max(after / before for before, after in itertools.pairwise(tried) if before >= 8) <= 2
    assert len([size for size in tried if size > 1000]) >= 6


FACTORS = {13: 2.0, 29: 3.0}


def _by_closure():
    factors = {31: 2.0}

    class ByClosure(nn.Module):
        def forward(self, x):
            return x * factors.get(int(x.shape[0]), 1.0)

    return ByClosure()


class ByTable(nn.Module):
    def forward(self, x):
        return x * FACTORS.get(int(x.shape[0]), 1.0)


def test_keys_of_a_dict_are_numbers_of_the_code():
    assert {13, 29} <= set(numbers_in_code(ByTable()))


def test_numbers_of_a_closure_are_numbers_of_the_code():
    assert 31 in numbers_in_code(_by_closure())


def test_a_factor_by_size_is_noticed(tmp_path):
    with pytest.raises(anyshape.PromiseBroken):
        anyshape.export(ByTable(), (torch.rand(4),), tmp_path / "m.onnx", dynamic={"x": "n"})
