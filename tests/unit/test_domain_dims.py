from __future__ import annotations

import subprocess
import sys

import pytest

from anyshape.domain import Dim, Domain, declare_domain, describe_dim, format_domain, parse_condition
from anyshape.findings import DeclarationError

NAMES = ("batch", "seq", "past")


@pytest.mark.parametrize(
    ("where", "dim"),
    [
        ([], Dim("batch")),
        (["1 <= batch <= 64"], Dim("batch", 1, 64, 1, True)),
        (["batch >= 0"], Dim("batch", 0, None, 1, True)),
        (["batch >= -5"], Dim("batch", 0, None, 1, True)),
        (["batch < 65"], Dim("batch", 1, 64, 1, True)),
        (["batch % 8 == 0"], Dim("batch", 1, None, 8, True)),
        (["batch % 8 == 0", "batch % 12 == 0"], Dim("batch", 1, None, 24, True)),
        (["batch == 3"], Dim("batch", 3, 3, 1, True)),
        (["batch >= 1"], Dim("batch", 1, None, 1, True)),
        (["batch >= 2", "batch >= 0", "batch <= 9", "batch <= 99"], Dim("batch", 2, 9, 1, True)),
        (["0 <= batch <= 0"], Dim("batch", 0, 0, 1, True)),
        (["batch != 3"], Dim("batch")),
    ],
)
def test_rules_on_one_dim_go_into_the_dim(where: list[str], dim: Dim) -> None:
    domain = declare_domain(NAMES, where)
    assert domain.dim("batch") == dim
    assert declare_domain(NAMES, format_domain(domain)) == domain


def test_other_rules_stay_relations() -> None:
    domain = declare_domain(NAMES, ["1 <= batch <= seq", parse_condition("past + seq <= 4096 and past >= 0")])
    assert [str(relation) for relation in domain.relations] == ["batch <= seq", "past + seq <= 4096"]
    assert format_domain(domain) == ("batch >= 1", "past >= 0", "batch <= seq", "past + seq <= 4096")


def test_given_dims_are_narrowed_by_the_rules() -> None:
    domain = declare_domain([Dim("h", 32, 512, 32, True), Dim("w", 4)], ["h <= 256", "h % 48 == 0", "w >= 2"])
    assert domain.dims == (Dim("h", 32, 256, 96, True), Dim("w", 2, None, 1, True))


def test_an_unknown_dim_is_shown_with_what_was_meant() -> None:
    with pytest.raises(DeclarationError) as caught:
        declare_domain(NAMES, ["1 <= batch <= 64", "past + sep <= 4096"])
    assert str(caught.value) == (
        "AS001 unknown-dim: there is no dim 'sep'.\n"
        "    past + sep <= 4096\n"
        "           ^^^\n"
        "  Why:    the dims are batch, seq, past.\n"
        "  Fix:    did you mean 'seq'?"
    )


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (["batch >= 5", "batch <= 3"], "'batch >= 5' and 'batch <= 3' cannot hold together."),
        (["batch == 5", "batch == 3"], "'batch == 5' and 'batch == 3' cannot hold together."),
        (
            ["batch % 8 == 0", "3 <= batch <= 7"],
            "'3 <= batch', 'batch <= 7' and 'batch % 8 == 0' cannot hold together.",
        ),
        (
            ["batch <= 0"],
            "'batch >= 1' and 'batch <= 0' cannot hold together. A size is at least 1 unless a rule says otherwise.",
        ),
        (["batch > seq", "seq >= batch"], "'batch > seq' and 'seq >= batch' cannot hold together."),
        (
            ["batch + seq == 3", "batch >= 2", "seq >= 2", "past <= 9"],
            "'batch >= 2', 'seq >= 2' and 'batch + seq == 3' cannot hold together.",
        ),
        (["2*batch == 2*seq + 1"], "'2*batch == 2*seq + 1' never holds."),
        (["False"], "'False' never holds."),
    ],
)
def test_an_empty_domain_names_the_rules_that_disagree(where: list[str], why: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare_domain(NAMES, where)
    assert caught.value.finding.code == "AS003"
    assert caught.value.finding.why == why


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: Dim("x", min=-1), "AS006"),
        (lambda: Dim("x", multiple=0), "AS006"),
        (lambda: Dim("x", min=5, max=4), "AS003"),
        (lambda: Dim("x", min=1, max=7, multiple=8), "AS003"),
        (lambda: Dim("2x"), "AS004"),
        (lambda: declare_domain(["x", "x"]), "AS007"),
        (lambda: Domain((Dim("x"),)).dim("y"), "AS001"),
        (lambda: Domain((Dim("x"),), (parse_condition("x < y"),)), "AS001"),
        (lambda: Domain((Dim("x"),)).contains({}), "AS001"),
        (lambda: Domain((Dim("x"),)).with_dim(Dim("y")), "AS001"),
    ],
)
def test_what_cannot_be_meant_is_refused(build: object, code: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        build()  # type: ignore[operator]
    assert caught.value.finding.code == code


def test_a_domain_narrows_without_claiming_that_the_user_said_so() -> None:
    domain = declare_domain(NAMES, ["seq <= 512"])
    narrowed = domain.narrowed(*map(parse_condition, ["batch % 2 == 0", "seq >= 4 and seq <= 999", "past < seq"]))
    assert narrowed.dim("batch") == Dim("batch", multiple=2)
    assert narrowed.dim("seq") == Dim("seq", 4, 512, 1, True)
    assert [str(relation) for relation in narrowed.relations] == ["past < seq"]


def test_narrowing_to_nothing_leaves_a_domain_that_contains_nothing() -> None:
    narrowed = declare_domain(["a"], ["a <= 4"]).narrowed(parse_condition("a > 4"))
    assert not any(narrowed.contains({"a": size}) for size in range(9))


def test_a_dim_knows_its_sizes() -> None:
    dim = Dim("h", 5, 70, 32)
    assert (dim.smallest, dim.largest_up_to(999), dim.largest_up_to(40), dim.largest_up_to(8)) == (32, 64, 32, None)
    assert [size for size in range(99) if dim.contains(size)] == [32, 64]
    assert describe_dim(dim) == "h in 5..70 (multiples of 32)"
    assert describe_dim(Dim("b")) == "b in 1.."


def test_a_domain_without_dims_contains_the_empty_point() -> None:
    assert declare_domain([]).contains({})
    assert format_domain(declare_domain([])) == ()


def test_declaring_without_relations_loads_no_solver() -> None:
    code = (
        "import sys; from anyshape.domain import declare_domain;"
        "declare_domain(['a', 'b'], ['a <= 4', 'a <= b']); assert 'z3' not in sys.modules;"
        "from anyshape.domain import decide; assert 'z3' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
