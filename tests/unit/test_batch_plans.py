"""Manifests and sources -> jobs: names, options, limits, and what is said of a manifest that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyshape.batch import Batch, Row
from anyshape.batch.jobs import (
    EXPORT_OPTIONS,
    Job,
    as_arguments,
    parse_bytes,
    parse_duration,
    readable_name,
    split_source,
    with_names,
)
from anyshape.batch.manifest import jobs_of, read_manifest
from anyshape.cli import with_ray_address
from anyshape.cli.late_options import write_batch
from anyshape.findings import UsageError
from anyshape.report import format_bytes


def written(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_manifest_gives_jobs_with_its_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    path = written(
        tmp_path / "in",
        'output = "exported"\njobs = 3\n[defaults]\nopset = 19\ntime_limit = "2m"\nmemory_limit = "4GB"\n'
        '[[model]]\nsource = "bert.py"\nwhere = "batch <= 8"\nfiles = ["weights.pt"]\n'
        '[[model]]\nsource = "timm:resnet18"\nname = "small"\nopset = 18\ncpus = 2\n',
    )
    manifest = read_manifest(path)
    first, second = manifest.jobs
    assert (manifest.output, manifest.workers) == (tmp_path / "in" / "exported", 3)
    assert (Path(first.source), first.name) == (Path("in/bert.py"), "in-bert")
    assert first.options == {"opset": 19, "where": ["batch <= 8"]}
    assert (first.time_limit, first.memory_limit, first.files) == (120.0, 4 * 10**9, (str(Path("in/weights.pt")),))
    assert (second.source, second.name, second.options["opset"], second.cpus) == ("timm:resnet18", "small", 18, 2.0)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[[model]\n", 1, "is no manifest of models"),
        ('[[model]]\nsource = "a.py"\nopsett = 3\n', 3, "key 'opsett' of [[model]] number 1: there is no such key"),
        ('[[model]]\nsource = "a.py"\n[[model]]\nname = "b"\n', 3, "key 'source' of [[model]] number 2"),
        ('[defaults]\nforce = "yes"\n[[model]]\nsource = "a.py"\n', 2, "key 'force' of [defaults]: 'yes' is not true"),
        ('[[model]]\nsource = "a.py"\ntime_limit = "soon"\n', 3, "'soon' is no duration"),
        ('[[model]]\nsource = "a.py"\n\nmemory_limit = -1\n', 4, "-1 is no amount of memory"),
        ('[[model]]\nsource = "a.py"\nverify = "quik"\n', 3, "'quik' is none of 'quick', 'none'"),
        ('[[model]]\nsource = "a.py"\nname = "../up"\n', 3, "'../up' is no name of a folder"),
        ('jobs = 0\n[[model]]\nsource = "a.py"\n', 1, "0 is no number of workers"),
        ('output = "x"\n', None, "there is no model in it"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_manifest(written(tmp_path, text))
    finding = refused.value.finding
    assert words in finding.what
    assert str(finding.where).endswith(f"models.toml:{line}" if line else "models.toml")


def test_a_manifest_that_is_not_there_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="AS040 missing-file"):
        read_manifest(tmp_path / "models.toml")


def test_no_two_models_share_a_folder(tmp_path: Path) -> None:
    jobs = jobs_of(["a/model.py", "b/model.py", "x/a/model.py", {"source": "a/model.py", "opset": 17}], {})
    names = [job.name.casefold() for job in jobs]
    assert len(set(names)) == 4
    assert names[1] == "b-model" and all(name.startswith("a-model-") for name in (names[0], *names[2:]))
    assert names == [job.name.casefold() for job in with_names([Job(source=j.source, options=j.options) for j in jobs])]
    same = jobs_of(["net.py", "Net.py"], {})
    assert same[0].name.casefold() != same[1].name.casefold()
    for models in (["net.py", "net.py"], [{"source": "a.py", "name": "n"}, {"source": "b.py", "name": "N"}]):
        with pytest.raises(UsageError, match="AS548"):
            jobs_of(models, {})


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("model.py", "model"),
        ("bert/model.py:Net", "bert-model-Net"),
        ("../model.py", "model"),
        ("hf:org/tiny-bert", "hf-org-tiny-bert"),
        ("package.module:Class", "package.module-Class"),
        ("nul.py", "nul-model"),
        ("日本.py", "model"),
    ],
)
def test_a_name_shows_its_source_and_suits_every_system(source: str, name: str) -> None:
    assert readable_name(source) == name


def test_a_source_has_its_path_apart(tmp_path: Path) -> None:
    assert split_source("C:\\m.py:Net").path == "C:\\m.py"
    assert split_source("hf:org/tiny", tmp_path).path is None
    (tmp_path / "org" / "tiny").mkdir(parents=True)
    assert split_source("hf:org/tiny", tmp_path).path == "org/tiny"
    assert str(split_source("a/m.py:Net")) == "a/m.py:Net"


def test_durations_and_amounts() -> None:
    assert [parse_duration(each) for each in ("60s", "1.5h", 5)] == [60.0, 5400.0, 5.0]
    assert [parse_bytes(each) for each in ("4GB", "500 MiB", 12)] == [4 * 10**9, 500 * 2**20, 12]
    sizes = (12, 999, 1000, 999_499, 999_600, 1_234_567, 999_999_999, 8_000_000_000, 7 * 10**16)
    texts = [format_bytes(size) for size in sizes]
    assert texts[:3] == ["12 bytes", "999 bytes", "1 kB"]
    assert texts[3:] == ["999 kB", "1 MB", "1.23 MB", "1 GB", "8 GB", "70000 TB"]
    assert [parse_bytes(text) for text in texts] == [pytest.approx(size, rel=0.005) for size in sizes]
    for wrong in ("0s", "", True, "GB"):
        with pytest.raises(ValueError, match="is no"):
            parse_duration(wrong)
        with pytest.raises(ValueError, match="is no"):
            parse_bytes(wrong)


def test_a_manifest_may_set_every_option_of_export() -> None:
    import typer

    from anyshape.cli.main import app

    command = typer.main.get_command(app).commands["export"]  # type: ignore[attr-defined]
    options = {max(each.opts, key=len)[2:].replace("-", "_") for each in command.params if each.opts[0].startswith("-")}
    of_one_run = {"output", "overwrite", "write_diff", "report", "json", "verbose", "quiet", "time_limit", "ray"}
    assert options - set(EXPORT_OPTIONS) - of_one_run == set()


def test_options_become_words_of_a_command_line() -> None:
    options = {"where": ["a <= 2", "-b < 3"], "force": True, "thorough": False, "opset": 18, "rtol": 0.5}
    words = ["--where=a <= 2", "--where=-b < 3", "--force", "--opset=18", "--rtol=0.5"]
    assert list(as_arguments(options)) == words


def test_ray_may_stand_without_an_address() -> None:
    assert with_ray_address(["a.py", "--ray"]) == ["a.py", "--ray=auto"]
    assert with_ray_address(["--ray", "a.py"]) == ["--ray=auto", "a.py"]
    for address in ("auto", "local", "10.0.0.1:6379", "head:6379"):
        assert with_ray_address(["--ray", address, "a.py"]) == ["--ray", address, "a.py"]


def test_the_page_of_a_batch_has_a_row_for_each_model(tmp_path: Path) -> None:
    finding = {"code": "AS541", "text": "AS541 model-crashes: 'b.py' crashed."}
    rows = (
        Row(name="a", source="a.py", outcome="kept", status=0, seconds=1.5, dims=("batch 1..",), compared=18),
        Row(name="<b>", source="b.py", outcome="crashed", status=1, seconds=2.0, finding=finding),
    )
    write_batch(tmp_path / "page.html", Batch(path=tmp_path / "out", rows=rows, total=2), quiet=True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1 of 2 kept" in page and "<td>18</td>" in page and "<code>batch 1..</code>" in page
    assert "AS541 model-crashes" in page and "&lt;b&gt;" in page and "<b>" not in page
