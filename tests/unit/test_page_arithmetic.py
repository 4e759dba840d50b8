"""The page of a report computes what anyshape computes: shapes, rules, regions and costs at random sizes, in node."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from contract_builder import contract

from anyshape.domain import (
    Condition,
    Dim,
    Domain,
    Expr,
    Number,
    Ref,
    Sizes,
    Undefined,
    evaluate,
    format_condition,
    holds,
)
from anyshape.domain.condition import All, AnyOf, Compare, Not
from anyshape.domain.expr import Op
from anyshape.explore import costing
from anyshape.inputs import declare
from anyshape.records.captured import Region
from anyshape.records.contract import Contract, TensorPromise
from anyshape.records.runs import Run
from anyshape.report.page import _asset
from anyshape.report.page.explorer_data import explorer_data
from anyshape.report.page.page_facts import PageFacts

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node here to run the page's arithmetic")
POINTS = 1000
NAMES = ("batch", "seq", "α", "__proto__")
WRITTEN = (
    contract("x: float32[batch, seq, 64]", "1 <= batch <= 64", "seq % 8 == 0", outputs="y: float32[batch, seq//8]"),
    contract(
        "x: int64[batch, seq]; p: float16[batch, past, 8]",
        "past >= 0",
        "past + seq <= 4096",
        outputs="y: bool[past + seq]",
    ),
    contract("x: float32[3, h, w]", "h >= 32", "w <= h or w == 7", outputs="y: float32[(h + 1)//2, (w - 3)//2 + 1, ?]"),
    contract(
        "x: float32[n]", "n % 3 != 1", "not n == 9", outputs="y: float32[isqrt(n), min(n, 512), max(n, 3, 7 - n)]"
    ),
    contract("x: float32[a, b]", "a % b == 0", outputs="y: float32[a//b, a % b, (5 - a)//b, (5 - a) % b]"),
)


def random_expr(source: random.Random, depth: int) -> Expr:
    """An expression over NAMES; divisions may be by zero and numbers negative."""
    if depth == 0 or source.random() < 0.2:
        return (
            Ref(source.choice(NAMES))
            if source.random() < 0.6
            else Number(source.randint(-9, 1 << source.randint(1, 40)))
        )
    symbol = source.choice(("+", "-", "*", "//", "%", "min", "max", "isqrt"))
    count = 1 if symbol == "isqrt" else source.randint(2, 3) if symbol in ("min", "max") else 2
    return Op(symbol, tuple(random_expr(source, depth - 1) for _ in range(count)))


def random_condition(source: random.Random, depth: int) -> Condition:
    kind = source.choice(("compare", "all", "any", "not")) if depth else "compare"
    if kind == "compare":
        op = source.choice(("<", "<=", "==", "!=", ">=", ">"))
        return Compare(op, random_expr(source, 2), random_expr(source, 2))
    if kind == "not":
        return Not(random_condition(source, depth - 1))
    parts = tuple(random_condition(source, depth - 1) for _ in range(source.choice((0, 2, 3))))
    return All(parts) if kind == "all" else AnyOf(parts)


def random_contract(seed: int) -> Contract:
    source = random.Random(seed)
    dims = tuple(
        Dim(name, source.randint(0, 3), source.choice((None, 40, 1 << 50)), source.choice((1, 1, 4))) for name in NAMES
    )
    domain = Domain(dims, tuple(random_condition(source, 2) for _ in range(4)))
    shape = tuple(random_expr(source, 3) for _ in range(5))
    inputs = (TensorPromise("x", "x", "float32", tuple(map(Ref, NAMES))),)
    return Contract(
        status="kept", domain=domain, rules=(), inputs=inputs, outputs=(TensorPromise("y", "y", "int8", shape),)
    )


def regions_of(seed: int) -> tuple[Region, ...]:
    source = random.Random(-seed)
    conditions = [random_condition(source, 1) for _ in range(seed % 4)]
    return tuple(Region(None, {}, (), {}, condition) for condition in conditions)  # type: ignore[arg-type]


def random_sizes(source: random.Random, domain: Domain) -> dict[str, int]:
    return {name: source.randint(0, 1 << source.choice((3, 6, 12, 45))) for name in domain.names}


def run_page(contracts: list[dict[str, Any]], scripts: tuple[str, ...], elements: int = 0) -> list[Any]:
    """What the scripts of the page answer at each point of each contract."""
    assert NODE is not None
    request = {"scripts": "\n".join(map(_asset, scripts)), "contracts": contracts, "elements": elements}
    script = Path(__file__).parent / "page_arithmetic.js"
    done = subprocess.run([NODE, str(script)], input=json.dumps(request), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def plain_sizes(sizes: Sizes) -> list[list[str]]:
    return [[name, str(size)] for name, size in sizes.items()]


def expected_at(facts: PageFacts, sizes: Sizes) -> dict[str, Any]:
    """What anyshape itself says."""

    def value(axis: Expr | None) -> str | None:
        try:
            return None if axis is None else str(evaluate(axis, sizes))
        except Undefined:
            return None

    assert facts.domain is not None
    conditions = facts.domain.conditions()
    broken = [format_condition(condition) for condition in conditions if not holds(condition, sizes)]
    found = next(
        (index for index, region in enumerate(facts.regions) if holds(region.condition, sizes)), len(facts.regions) - 1
    )
    shapes = [[value(axis) for axis in tensor.axes] for tensor in (*facts.inputs, *facts.outputs)]
    return {"broken": broken, "region": found if facts.regions else None, "shapes": shapes, "cost": None}


@needs_node
def test_the_page_computes_what_we_compute_at_1000_sizes_of_20_contracts() -> None:
    contracts = [*WRITTEN, *(random_contract(seed) for seed in range(1, 16))]
    facts = [
        PageFacts(title="", status="kept", contract=each, regions=() if index < len(WRITTEN) else regions_of(index))
        for index, each in enumerate(contracts)
    ]
    source = random.Random(0)
    points = [[random_sizes(source, each.domain) for _ in range(POINTS)] for each in contracts]
    given = [
        {"data": explorer_data(each), "points": list(map(plain_sizes, at))}
        for each, at in zip(facts, points, strict=True)
    ]
    answers = run_page(given, ("arithmetic.js", "estimates.js"))
    assert len(answers) == 20
    for each, at, answered in zip(facts, points, answers, strict=True):
        assert answered == [expected_at(each, sizes) for sizes in at]
    inside = [not answer["broken"] for answered in answers for answer in answered]
    assert any(inside) and not all(inside)
    assert any(None in shape for answered in answers for answer in answered for shape in answer["shapes"])


@needs_node
def test_the_page_estimates_a_call_as_the_export_does() -> None:
    module = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    declared = declare(module, lambda batch=2, seq=5: torch.randn(batch, seq, 16), where=["1 <= batch <= 64"])
    cost = costing(module, declared)
    points = [{"batch": 1, "seq": 1}, {"batch": 2, "seq": 5}, {"batch": 5, "seq": 31}, {"batch": 60, "seq": 5000}]
    expected = [(cost.operations(sizes), cost.elements(sizes)) for sizes in points]
    table = cost.table()  # what has been counted so far
    assert table is not None
    run = Run(model="", domain=declared.domain, inputs=(), example=declared.example_sizes, costs=table)
    data = explorer_data(PageFacts(title="", status="refused", run=run))
    for sizes, (operations, elements) in zip(points, expected, strict=True):
        given = [{"data": data, "points": [plain_sizes(sizes)]}]
        [[answer]] = run_page(given, ("arithmetic.js", "estimates.js"), declared.elements(sizes))
        assert answer["cost"]["seconds"] == pytest.approx(operations / table.rates.per_second, rel=1e-6)
        assert answer["cost"]["elements"] == pytest.approx(elements, rel=1e-6)
