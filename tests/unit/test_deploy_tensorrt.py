"""TensorRT's profiles: corners that keep every rule, several profiles where one cannot hold all, and clear refusals."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from contract_builder import contract, echo_model

import anyshape
from anyshape.cli.main import app
from anyshape.contract import write_contract
from anyshape.deploying.profiles import Profile, ProfileSearch
from anyshape.deploying.tensorrt_target import polygraphy_arguments, trtexec_arguments
from anyshape.domain import Domain, Expr, dims_of, evaluate, parse_condition, parse_expr
from anyshape.findings import InternalError, UsageError
from anyshape.records.contract import Contract
from anyshape.saving import save_model

CONTRACTS = {
    "no rule": contract("x: float32[batch, seq]", "1 <= batch <= 8", "1 <= seq <= 16"),
    "one dim twice": contract("x: float32[n, n]; y: int64[n]", "1 <= n <= 12"),
    "sum of dims": contract(
        "ids: int64[b, s]; past: float32[b, p, 8]; mask: float32[b, p + s]", "1 <= b <= 3", "0 <= p <= 6", "1 <= s <= 6"
    ),
    "cache with a limit": contract(
        "ids: int64[b, s]; past: float32[b, p, 8]; mask: float32[b, p + s]",
        "1 <= b <= 3",
        "p >= 0",
        "s >= 1",
        "p + s <= 9",
    ),
    "multiples": contract("x: float32[1, 3, h, w]", "4 <= h <= 24", "4 <= w <= 24", "h % 4 == 0", "w % 4 == 0"),
    "area": contract("x: float32[1, 3, h, w]", "2 <= h <= 12", "2 <= w <= 12", "h * w <= 48"),
    "larger than": contract("q: float32[a, 4]; k: float32[b, 4]", "1 <= a <= 9", "1 <= b <= 9", "a <= b"),
    "a difference": contract("x: float32[n - k]; y: float32[n]", "2 <= n <= 9", "1 <= k <= 4", "n > k"),
    "a product that stays": contract("x: float32[a, b]", "1 <= a <= 24", "1 <= b <= 24", "a * b == 24"),
    "an equality": contract("x: float32[h]; y: float32[w]", "1 <= h <= 9", "1 <= w <= 9", "w == 2 * h - 1"),
    "rounded up": contract("x: float32[n]; y: float32[(n + 2) // 3]", "1 <= n <= 20"),
    "groups": contract("x: float32[2 * g, s]", "1 <= g <= 5", "1 <= s <= 5", "g + s >= 4"),
}


def axes_of(promised: Contract) -> list[Expr]:
    every = [axis for each in promised.input_axes.values() for axis in each if axis is not None and dims_of(axis)]
    return list(dict.fromkeys(every))


def points(domain: Domain) -> list[dict[str, int]]:
    """Every point, found by trying: the solver has no part in this."""
    box = itertools.product(range(30), repeat=len(domain.names))
    every = (dict(zip(domain.names, sizes, strict=True)) for sizes in box)
    return [sizes for sizes in every if domain.contains(sizes)]


def holds(profile: Profile, axes: list[Expr], sizes: dict[str, int]) -> bool:
    return all(evaluate(axis, profile.min) <= evaluate(axis, sizes) <= evaluate(axis, profile.max) for axis in axes)


@pytest.mark.parametrize("promised", CONTRACTS.values(), ids=CONTRACTS.keys())
def test_every_corner_is_a_point_and_every_left_out_size_is_told(promised: Contract) -> None:
    axes = axes_of(promised)
    search = ProfileSearch(promised.domain, axes)
    profiles = search.cover()
    every = points(promised.domain)
    for profile in profiles:
        for corner in profile.corners:
            assert dict(corner) in every
        for axis in axes:
            low, usual, high = (evaluate(axis, corner) for corner in profile.corners)
            assert low <= usual <= high
    left = [sizes for sizes in every if not any(holds(profile, axes, sizes) for profile in profiles)]
    found = search.find_left_out(profiles)
    assert (found is None) == (left == [])
    assert found is None or dict(found) in left


def test_prefill_and_decode_are_two_profiles() -> None:
    promised = CONTRACTS["cache with a limit"]
    found = {profile.name: profile for profile in ProfileSearch(promised.domain, axes_of(promised)).cover()}
    assert list(found) == ["largest s", "largest p", "middle"]
    assert found["largest s"].max == {"b": 3, "s": 9, "p": 0}
    assert found["largest p"].max == {"b": 3, "s": 1, "p": 8}


def test_usual_sizes_are_the_users_and_get_a_profile() -> None:
    promised = CONTRACTS["cache with a limit"]
    search = ProfileSearch(promised.domain, axes_of(promised))
    wanted = search.complete({"s": 2, "p": 7})
    assert wanted == {"b": 2, "s": 2, "p": 7}
    profiles = search.cover([wanted])
    assert [profile.opt for profile in profiles if profile.opt == wanted] == [wanted]
    search.check(profiles)


def test_two_usual_sizes_of_one_range_are_two_profiles() -> None:
    promised = CONTRACTS["no rule"]
    search = ProfileSearch(promised.domain, axes_of(promised))
    wanted = [{"batch": 1, "seq": 16}, {"batch": 8, "seq": 2}]
    profiles = search.cover(wanted)
    assert [profile.opt for profile in profiles] == wanted
    assert len({(tuple(profile.min.items()), tuple(profile.max.items())) for profile in profiles}) == 1


def test_a_corner_that_breaks_a_rule_is_our_own_fault() -> None:
    promised = CONTRACTS["cache with a limit"]
    search = ProfileSearch(promised.domain, axes_of(promised))
    inside = {"b": 1, "s": 1, "p": 0}
    with pytest.raises(InternalError, match="AS902"):
        search.check([Profile("wrong", inside, inside, {"b": 3, "s": 9, "p": 9})])
    with pytest.raises(InternalError, match="AS902"):
        search.check([Profile("turned", {"b": 2, "s": 1, "p": 0}, inside, inside)])


def written(tmp_path: Path, promised: Contract) -> Path:
    """A file with this contract, which gives its inputs back."""
    model = echo_model(promised)
    write_contract(model, promised)
    save_model(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"at": {"p": 6, "s": 6}}, "AS552", "p == 6, s == 6 cannot hold together with p + s <= 9"),
        ({"profiles": [{"p": (0, 9), "s": (1, 9)}]}, "AS552", "p == 9, s == 9 cannot hold together with p + s <= 9"),
        ({"max_sizes": {"s": 0}}, "AS552", "s <= 0 cannot hold together with s >= 1"),
        ({"profiles": [{"p": (0, 0)}], "at": {"p": 1}}, "AS552", "lies in none of the given profiles"),
        ({"at": {"q": 1}}, "AS001", "'q'"),
        ({"model": object()}, "AS562", "model has no effect for tensorrt"),
    ],
)
def test_sizes_that_break_a_rule_are_refused_with_it(
    tmp_path: Path, options: dict[str, Any], code: str, words: str
) -> None:
    path = written(tmp_path, CONTRACTS["cache with a limit"])
    with pytest.raises(anyshape.AnyshapeError, match=code) as refused:
        anyshape.deploy(path, "tensorrt", tmp_path / "out", **options)
    assert words in str(refused.value)
    assert not (tmp_path / "out").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.onnx"]


def test_a_dim_without_an_end_needs_one(tmp_path: Path) -> None:
    path = written(tmp_path, contract("x: float32[batch, seq]", "1 <= batch <= 8", "seq >= 1"))
    with pytest.raises(UsageError, match=r"AS551 no-upper-end: .* for seq\.") as refused:
        anyshape.deploy(path, "tensorrt", tmp_path / "out")
    assert "--max seq=512" in str(refused.value)
    anyshape.deploy(path, "tensorrt", tmp_path / "out", max_sizes={"seq": 64})
    (profile,) = json.loads((tmp_path / "out" / "profiles.json").read_text())["profiles"]
    assert profile["inputs"] == {"x": {"min": [1, 1], "opt": [4, 32], "max": [8, 64]}}


def test_every_form_of_the_profiles_is_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, CONTRACTS["cache with a limit"])
    deployed = anyshape.deploy(path, "tensorrt", tmp_path / "out", profiles=[{"p": (0, 0)}, {"s": (1, 1)}])
    assert [finding.name for finding in deployed.findings] == ["sizes-in-no-profile", "refusal-not-tested"]
    profiles = json.loads((tmp_path / "out" / "profiles.json").read_text())["profiles"]
    assert profiles[0]["inputs"]["mask"] == {"min": [1, 1], "opt": [2, 5], "max": [3, 9]}
    script = (tmp_path / "out" / "trtexec.sh").read_text()
    words = shlex.split(script.partition("exec ")[2].replace("\\\n", ""))
    assert words[1:3] == ["--onnx=model.onnx", "--saveEngine=model.plan"]
    assert words[3:7] == [
        "--profile=0",
        "--minShapes=ids:1x1,past:1x0x8,mask:1x1",
        "--optShapes=ids:2x5,past:2x0x8,mask:2x5",
        "--maxShapes=ids:3x9,past:3x0x8,mask:3x9",
    ]
    recorded: list[tuple[Any, ...]] = []
    run_build_engine(tmp_path / "out", recorded)
    assert recorded == [
        (place, name, *(tuple(shapes[end]) for end in ("min", "opt", "max")))
        for place, each in enumerate(profiles)
        for name, shapes in each["inputs"].items()
    ]
    polygraphy = shlex.split((tmp_path / "out" / "polygraphy.sh").read_text().partition("exec ")[2].replace("\\\n", ""))
    assert polygraphy.count("--trt-max-shapes") == 2 and "mask:[3,9]" in polygraphy


def run_build_engine(folder: Path, recorded: list[tuple[Any, ...]]) -> None:
    """Call `add_profiles` of the written script with a builder that records what it is given."""
    names: dict[str, Any] = {"__file__": str(folder / "build_engine.py"), "__name__": "build_engine"}
    exec(compile((folder / "build_engine.py").read_text(), "build_engine.py", "exec"), names)

    class Recorder:
        count = -1

        def create_optimization_profile(self) -> Recorder:
            self.count += 1
            return self

        def set_shape(self, name: str, low: list[int], usual: list[int], high: list[int]) -> None:
            recorded.append((self.count, name, tuple(low), tuple(usual), tuple(high)))

        def add_optimization_profile(self, profile: Recorder) -> int:
            return profile.count

    recorder = Recorder()
    names["add_profiles"](recorder, recorder)


def test_hostile_names_stay_one_word() -> None:
    shapes = [{"a;rm -rf:0": ((1,), (2,), (3,))}]
    assert trtexec_arguments(shapes) == [
        "trtexec",
        "--onnx=model.onnx",
        "--saveEngine=model.plan",
        "--minShapes='a;rm -rf:0':1",
        "--optShapes='a;rm -rf:0':2",
        "--maxShapes='a;rm -rf:0':3",
    ]
    assert trtexec_arguments([{"it's": ((1,), (1,), (1,))}]) is None
    assert "a;rm -rf:0:[3]" in polygraphy_arguments(shapes)


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    path = written(tmp_path, CONTRACTS["no rule"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="AS550 folder-not-empty"):
        anyshape.deploy(path, "tensorrt", tmp_path / "out")
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["mine.txt"]
    (tmp_path / "out" / "mine.txt").unlink()
    for _ in range(2):  # the second one replaces the first
        anyshape.deploy(path, "tensorrt", tmp_path / "out")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.onnx", "out"]
    (tmp_path / "out" / "model.plan").write_text("an engine that took an hour")
    with pytest.raises(UsageError, match=r"such as 'model\.plan'"):
        anyshape.deploy(path, "tensorrt", tmp_path / "out")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interruption_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    path = written(tmp_path, CONTRACTS["no rule"])
    anyshape.deploy(path, "tensorrt", tmp_path / "out")
    before = {each.name: each.read_bytes() for each in (tmp_path / "out").iterdir()}

    def fail(*_: Any) -> None:
        raise interruption

    monkeypatch.setattr("anyshape.deploying.write_mark", fail)
    with pytest.raises((KeyboardInterrupt, UsageError)):
        anyshape.deploy(path, "tensorrt", tmp_path / "out", at={"batch": 2})
    assert {each.name: each.read_bytes() for each in (tmp_path / "out").iterdir()} == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.onnx", "out"]


def test_the_command_line_gives_json_and_refuses_what_is_no_size(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path, CONTRACTS["no rule"])
    command = ["deploy", str(path), "--to", "tensorrt", "-o", str(tmp_path / "out"), "--json", "--quiet"]
    app([*command, "--at", "batch=2,seq=5"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert told["profiles"][0]["sizes"]["opt"] == {"batch": 2, "seq": 5}
    assert "profiles.json" in told["files"] and told["findings"][0]["code"] == "AS558"
    for wrong in (["--at", "batch"], ["--max", "seq=x"], ["--profile", "seq=1..x"]):
        with pytest.raises(UsageError, match="which is no size"):
            app([*command, *wrong], standalone_mode=False)


def test_what_has_no_kept_contract_is_not_deployed(tmp_path: Path) -> None:
    promised = CONTRACTS["no rule"]
    save_model(echo_model(promised), tmp_path / "foreign.onnx")
    with pytest.raises(UsageError, match="AS044"):
        anyshape.deploy(tmp_path / "foreign.onnx", "tensorrt", tmp_path / "out")
    for status, code in (("broken", "AS412"), ("unverified", "AS425")):
        path = written(tmp_path, contract("x: float32[n]", "n <= 4", status=status))
        with pytest.raises(anyshape.ContractBroken, match=code):
            anyshape.deploy(path, "tensorrt", tmp_path / "out")
    path = written(tmp_path, contract("x: float32[n]", "n <= 4", needs=("mylib::Scale",)))
    with pytest.raises(UsageError, match="AS555"):
        anyshape.deploy(path, "tensorrt", tmp_path / "out")
    with pytest.raises(UsageError, match="AS060"):
        anyshape.deploy(path, "tensort", tmp_path / "out")


def test_a_rule_is_read_as_it_is_written() -> None:
    assert parse_condition("p + s <= 9") in CONTRACTS["cache with a limit"].domain.relations
    assert parse_expr("p + s") in axes_of(CONTRACTS["cache with a limit"])
