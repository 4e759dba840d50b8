"""Files that were changed after they were verified: every reader says so, and a check can renew the contract."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from typer.testing import CliRunner

import anyshape
from anyshape.cli.main import app
from anyshape.contract import find_contract
from anyshape.contract.digest import FileChanged
from anyshape.findings import PromiseBroken, UsageError

OLD = Path(__file__).parent.parent / "data" / "linear-0.1.0.onnx"
MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(40, 20)
    def forward(self, x, mask):
        return self.linear(x) * mask[:, None]
def model():
    return Net()
def inputs(batch=3):
    return {"x": torch.randn(batch, 40), "mask": torch.ones(batch)}
where = ["1 <= batch <= 16"]
"""


class Small(torch.nn.Module):
    """The model of the file of anyshape 0.1.0."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x, mask):
        return self.linear(x) * mask[:, None]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("exported")
    (folder / "model.py").write_text(MODEL)
    done = CliRunner().invoke(app, ["export", str(folder / "model.py"), "-o", str(folder / "m.onnx"), "-q"])
    assert done.exit_code == 0, done.output
    return (folder / "m.onnx").read_bytes()


@pytest.fixture
def folder(exported: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(exported)
    (tmp_path / "model.py").write_text(MODEL)
    yield tmp_path


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and stdout of a command; errors come back as their text."""
    try:
        done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    except anyshape.AnyshapeError as error:
        return error.exit_status, str(error)
    return done.exit_code, done.stdout


def change_graph() -> None:
    file = onnx.load("m.onnx")
    for node in file.graph.node:
        node.name = f"{node.name} simplified"
    onnx.save(file, "m.onnx")


def change_weights(by: float) -> None:
    file = onnx.load("m.onnx")
    tensor = next(each for each in file.graph.initializer if each.name == "linear.weight")
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(by), tensor.name))
    onnx.save(file, "m.onnx")


def test_a_file_as_it_was_written_is_not_called_changed(folder: Path) -> None:
    assert find_contract("m.onnx").digest is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        anyshape.load("m.onnx")
        anyshape.load(Path("m.onnx").read_bytes())
    onnx.save(onnx.load("m.onnx"), "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    assert json.loads(run("inspect", "m.onnx", "--json")[1])["changed"] is False
    assert "AS420" not in run("inspect", "m.onnx")[1]


def test_load_inspect_and_check_say_that_a_file_was_changed(folder: Path) -> None:
    change_graph()
    with pytest.warns(FileChanged, match="AS420 file-changed: 'm.onnx' was changed after it was verified"):
        anyshape.load("m.onnx")
    status, shown = run("inspect", "m.onnx")
    assert status == 0 and shown.startswith("kept, changed since: m.onnx") and "AS420" in shown
    assert json.loads(run("inspect", "m.onnx", "--json")[1])["findings"][0]["code"] == "AS420"
    status, shown = run("check", "m.onnx", "-m", "model.py", "-q")
    assert status == 0 and shown.startswith("kept: m.onnx") and "AS420" in shown


def change_contract(**changes: object) -> None:
    file = onnx.load("m.onnx")
    plain = json.loads(file.metadata_props[0].value)
    onnx.helper.set_model_props(file, {"anyshape.contract": json.dumps({**plain, **changes})})
    onnx.save(file, "m.onnx")


@pytest.mark.parametrize("key", ["dims", "tested"])
def test_a_contract_that_was_edited_is_called_changed_until_it_is_signed_again(folder: Path, key: str) -> None:
    plain = json.loads(onnx.load("m.onnx").metadata_props[0].value)
    edited = {
        "dims": [{**plain["dims"][0], "max": 64}],
        "tested": {**plain["tested"], "capture_proved": not plain["tested"]["capture_proved"]},
    }[key]
    change_contract(**{key: edited})
    with pytest.warns(FileChanged, match="AS420 file-changed: the contract of 'm.onnx' was changed"):
        anyshape.load("m.onnx")
    status, shown = run("inspect", "m.onnx")
    assert status == 0 and shown.startswith("kept, changed since: m.onnx") and "AS420" in shown
    if key == "tested":
        assert "AS420" in run("check", "m.onnx", "-m", "model.py", "-q")[1]
        status, shown = run("check", "m.onnx", "-m", "model.py", "-q", "--sign")
        assert status == 0 and "signed" in shown
        assert "AS420" not in run("inspect", "m.onnx")[1]


def test_a_contract_that_is_formatted_anew_is_the_same(folder: Path) -> None:
    change_contract()
    assert "AS420" not in run("inspect", "m.onnx")[1]


def test_a_contract_without_a_digest_of_itself_is_not_called_changed(folder: Path) -> None:
    digest = json.loads(onnx.load("m.onnx").metadata_props[0].value)["digest"]
    change_contract(digest={key: text for key, text in digest.items() if key != "contract"}, strategy="another")
    assert "contract" in digest
    assert "AS420" not in run("inspect", "m.onnx")[1]


def test_changed_weights_are_noticed_by_check(folder: Path) -> None:
    change_weights(by=1.0000001)
    status, shown = run("check", "m.onnx", "-m", "model.py", "-q")
    assert status == 0 and "AS420" in shown and "its weights are not those" in shown


def test_signing_renews_the_contract_of_a_file_that_compares_equal(folder: Path) -> None:
    change_graph()
    before = find_contract("m.onnx")
    status, shown = run("check", "m.onnx", "-m", "model.py", "-q", "--sign")
    assert status == 0 and "signed" in shown and "AS420" not in shown
    after = find_contract("m.onnx")
    assert after.digest != before.digest and after.status == "kept"
    assert (after.domain, after.inputs, after.outputs) == (before.domain, before.inputs, before.outputs)
    assert after.tested.sizes and not after.tested.capture_proved
    assert [0 <= error <= 1 for error in after.tested.worst_error.values()] == [True]
    anyshape.load("m.onnx")


def test_a_file_that_differs_is_not_signed(folder: Path) -> None:
    change_weights(by=2.0)
    before = Path("m.onnx").read_bytes()
    status, shown = run("check", "m.onnx", "-m", "model.py", "-q", "--sign")
    assert status == 1 and "BROKEN" in shown and "signed" not in shown
    assert Path("m.onnx").read_bytes() == before
    loose = run("check", "m.onnx", "-m", "model.py", "-q", "--sign", "--rtol", "10", "--atol", "10")
    assert loose[0] == 0 and "signed" in loose[1]


def test_signing_an_unchanged_file_changes_nothing(folder: Path) -> None:
    before = Path("m.onnx").read_bytes()
    assert run("check", "m.onnx", "-m", "model.py", "-q", "--sign")[0] == 0
    assert Path("m.onnx").read_bytes() == before


def test_a_signature_is_about_the_whole_domain_of_the_contract(folder: Path) -> None:
    change_graph()
    status, shown = run("check", "m.onnx", "-m", "model.py", "--sizes", "batch=2", "--sign")
    assert status == 2 and shown.startswith("AS065 cannot-sign")
    narrower = run("check", "m.onnx", "-m", "model.py", "-q", "-w", "batch <= 4", "--sign", "--json")
    assert narrower[0] == 0
    assert find_contract("m.onnx").tested.largest == {"batch": 16}


def test_sizes_outside_the_contract_are_usage(folder: Path) -> None:
    for size in (0, 17):
        status, shown = run("check", "m.onnx", "-m", "model.py", "--sizes", f"batch={size}")
        assert status == 2 and shown.startswith(f"AS064 sizes-outside-contract: batch={size} lies outside")
    assert run("check", "m.onnx", "-m", "model.py", "-q", "--sizes", "batch=16")[0] == 0


def test_a_file_of_0_1_0_loads_and_can_be_signed(tmp_path: Path) -> None:
    path = tmp_path / "old.onnx"
    path.write_bytes(OLD.read_bytes())
    given = {"x": torch.randn(5, 4), "mask": torch.rand(5)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(anyshape.load(path)(**given), Small()(**given).detach())
        assert find_contract(path).digest is None
        assert run("inspect", str(path))[1].startswith("kept: ")
        anyshape.check(path, Small(), small_inputs, sign=True)
    assert find_contract(path).digest is not None


def small_inputs(batch=3):
    return {"x": torch.randn(batch, 4), "mask": torch.ones(batch)}


def test_what_cannot_be_signed_is_usage(tmp_path: Path) -> None:
    path = tmp_path / "old.onnx"
    path.write_bytes(OLD.read_bytes())
    with pytest.raises(UsageError, match="its dims are batch; those of the model file are rows"):
        anyshape.check(path, Small(), lambda rows=3: small_inputs(rows), sign=True)
    file = onnx.load(path)
    file.graph.node[-1].output[0] = file.graph.output[0].name = "other"
    onnx.save(file, path)
    with pytest.raises(UsageError, match="it has other, and its contract promises output"):
        anyshape.check(path, Small(), small_inputs, sign=True)


def test_a_changed_file_that_is_wrong_is_broken(folder: Path) -> None:
    change_weights(by=2.0)
    namespace: dict = {}
    exec(MODEL, namespace)
    with pytest.raises(PromiseBroken):
        anyshape.check("m.onnx", namespace["model"](), namespace["inputs"], where=namespace["where"], sign=True)
