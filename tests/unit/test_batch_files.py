"""The folder of a batch, digests, and files that travel: without any model's process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.batch.jobs import Job
from anyshape.batch.keeping import judge
from anyshape.batch.model_files import digests_of, files_to_watch, is_unchanged, key_of, pack, returned
from anyshape.batch.model_process import Ended
from anyshape.batch.output_folder import OutputFolder, Stored, opened
from anyshape.batch.process_tree import ProcessTable, find_tree, identity_of, kill_tree, list_processes
from anyshape.batch.rows import Row, as_markdown, as_text, count_outcomes, rows_as_records
from anyshape.findings import UsageError

JOB = Job(source="net.py", name="net")
ROW = Row(name="net", source="net.py", outcome="kept", status=0, seconds=1.0, dims=("batch 1..",))
FAILED = Row(
    name="bad|one",
    source="b.py",
    outcome="hung",
    status=1,
    seconds=9.0,
    finding={"code": "X", "text": "X x: why.\n  Fix"},
)


@pytest.fixture
def output(tmp_path: Path) -> Iterator[OutputFolder]:
    with opened(tmp_path / "out") as folder:
        yield folder


def stored(content: str = "digest") -> Stored:
    return Stored(ROW, content, {}, {})


def test_a_folder_gets_its_place_whole(output: OutputFolder) -> None:
    folder = output.new_folder(JOB)
    (folder / "model.onnx").write_text("file")
    output.keep(folder, Stored(ROW, "key", {}, {"model.onnx": digests_of([folder / "model.onnx"]).popitem()[1]}))
    assert not folder.exists()
    assert output.find("net") is not None and output.find("net").row == ROW  # type: ignore[union-attr]
    (output.path / "net" / "model.onnx").write_text("other")
    assert output.find("net") is None


def test_a_new_result_replaces_the_old_one(output: OutputFolder) -> None:
    for key in ("old", "new"):
        output.keep(output.new_folder(JOB), stored(key))
    assert output.find("net").key == "new"  # type: ignore[union-attr]


def test_after_a_kill_finished_folders_are_kept_and_others_removed(tmp_path: Path) -> None:
    with opened(tmp_path) as output:
        output.keep(output.new_folder(JOB), stored("old"))
        finished, half = output.new_folder(JOB), output.new_folder(Job(source="b.py", name="b"))
    for folder in (finished, half):
        folder.mkdir()
    (finished / "row.json").write_text(
        json.dumps({"row": ROW.as_plain(), "key": "new", "read": {}, "written": {}, "format": 1})
    )
    (half / "model.onnx").write_text("half")
    with opened(tmp_path) as output:
        assert output.find("net").key == "new"  # type: ignore[union-attr]
        assert [each.name for each in output.work.iterdir()] == ["lock"]


def test_half_a_line_is_gone_at_the_next_start(output: OutputFolder) -> None:
    output.write_rows([ROW])
    output.add_row(ROW)
    with (output.path / "results.jsonl").open("a") as stream:
        stream.write('{"name": "ha')
    output.write_rows([ROW])
    lines = (output.path / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["net"]


def test_two_batches_do_not_share_a_folder(output: OutputFolder) -> None:
    code = "import sys; from pathlib import Path; from anyshape.batch.output_folder import opened\n"
    code += "with opened(Path(sys.argv[1])): pass"
    other = subprocess.run([sys.executable, "-c", code, str(output.path)], capture_output=True, text=True, check=False)
    assert "AS545 batch-at-work" in other.stderr


def test_a_folder_of_the_user_is_left_alone(output: OutputFolder) -> None:
    (output.path / "net").mkdir()
    output.check_places([JOB])
    (output.path / "net" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="AS549"):
        output.check_places([JOB])


def test_a_result_holds_as_long_as_what_it_read(tmp_path: Path) -> None:
    source, weights, cache = (tmp_path / name for name in ("net.py", "w.pt", "cache.txt"))
    for each in (source, weights, cache):
        each.write_text("1")
    job = Job(source=str(source))
    noted = f"r {weights}\nw {cache}\nr {cache}\nr {tmp_path / 'gone.tmp'}\n"
    read = digests_of(files_to_watch(job, noted))
    assert set(read) == {str(source), str(weights)}
    cache.write_text("2")
    assert is_unchanged(read)
    weights.write_text("2")
    assert not is_unchanged(read)
    weights.unlink()
    assert not is_unchanged(read)
    assert not is_unchanged(digests_of([source], began=time.time() - 1000))  # written while it was read


def test_the_compiled_form_of_a_neighbour_is_the_neighbour(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("1")
    noted = f"r {tmp_path / '__pycache__' / f'layers.{sys.implementation.cache_tag}.pyc'}\n"
    assert files_to_watch(Job(source="hf:x"), noted) == {tmp_path / "layers.py"}


def test_options_and_versions_make_another_key() -> None:
    key = key_of(JOB, {"torch": "2"})
    assert key == key_of(Job(source="net.py", name="other", time_limit=3.0), {"torch": "2"})
    assert key != key_of(JOB, {"torch": "3"})
    assert key != key_of(Job(source="net.py", options={"opset": 17}), {"torch": "2"})


def test_files_travel_and_are_spoken_of_where_they_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for path in (here / "m" / "net.py", here / "m" / "part.py", here / "m" / "own" / "__init__.py", elsewhere / "w.pt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    (here / "m" / "large.bin").write_text("not asked for")
    monkeypatch.chdir(here)
    packed = pack(Job(source="m/net.py:Net", name="n", files=(str(elsewhere),)))
    assert packed.job.source == "m/net.py:Net"
    assert set(packed.files) == {"m/net.py", "m/part.py", "m/own/__init__.py", "outside0/w.pt"}
    assert packed.data_bytes == 1
    noted = "r /tmp/x/source/m/net.py\nr /tmp/x/source/outside0/w.pt\nr /etc/passwd\n"
    assert returned(noted, "/tmp/x/source", packed.folders) == f"r {here}/m/net.py\nr {elsewhere}/w.pt\n"
    far = pack(Job(source=str(elsewhere / "net.py"), name="n"))
    assert far.job.source == "outside0/net.py"
    assert far.files == {}


def test_no_model_is_kept_without_a_file(tmp_path: Path) -> None:
    ended = Ended(how="itself", returncode=0, seconds=1.0, began=0.0)
    assert judge(JOB, ended, tmp_path).outcome == "crashed"  # nothing was printed
    (tmp_path / ".printed.json").write_text('{"kept": true, "path": "model.onnx", "findings": []}')
    assert judge(JOB, ended, tmp_path).outcome == "crashed"
    (tmp_path / "model.onnx").write_text("file")
    assert judge(JOB, ended, tmp_path).outcome == "kept"
    for code, outcome in ((1, "broken"), (2, "refused"), (3, "fault"), (-11, "crashed"), (77, "crashed")):
        assert judge(JOB, replace(ended, returncode=code), tmp_path).outcome == outcome
    assert judge(JOB, replace(ended, returncode=-9, how="time"), tmp_path).outcome == "hung"
    assert judge(JOB, replace(ended, returncode=-9, how="memory"), tmp_path).outcome == "out of memory"


@pytest.mark.skipif(not list_processes(), reason="this system lists no processes")
def test_a_tree_of_processes_is_found_and_ended() -> None:
    code = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {0!r}], start_new_session=True); {0}"
    code = code.format("import time; time.sleep(1000)")
    root = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + 30
    while len(find_tree(root.pid, list_processes())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    members = [each.pid for each in find_tree(root.pid, list_processes())]
    assert len(members) == 2 and os.getpid() not in members
    kill_tree(root.pid)
    root.wait()
    assert [identity_of(pid) for pid in members] == [None, None]


def test_psutil_finds_the_same_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psutil")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
    try:
        monkeypatch.setattr("anyshape.batch.process_tree._PROC", Path("/no/such/folder"))
        assert [each.pid for each in find_tree(child.pid, list_processes())] == [child.pid]
        assert ProcessTable().resident(child.pid) > 10**6
        identity = identity_of(child.pid)
        assert identity is not None and identity_of(child.pid) == identity
    finally:
        kill_tree(child.pid)
        child.wait()
    assert identity_of(child.pid) is None and ProcessTable().resident(child.pid) == 0


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this system shares no such numbers")
def test_memory_that_a_process_shares_with_its_fork_counts_once() -> None:
    code = "import os, time; held = bytearray(b'x') * 200_000_000; os.fork(); os.write(1, b'1'); time.sleep(1000)"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.read(2) == b"11"
        assert len(find_tree(child.pid, list_processes())) == 2
        assert 200_000_000 <= ProcessTable().resident(child.pid) < 300_000_000
    finally:
        kill_tree(child.pid)
        child.communicate()


def test_rows_are_records_a_table_and_a_page() -> None:
    records = rows_as_records([ROW, FAILED])
    assert [record["outcome"] for record in records] == ["kept", "hung"]
    assert records[0].keys() == records[1].keys()
    assert records[1]["finding"] == "X x: why."
    assert count_outcomes([ROW, FAILED], 3) == "1 of 3 models kept, 1 hung, 1 not done"
    assert len(as_text([ROW, FAILED]).splitlines()) == 3
    page = as_markdown([ROW, FAILED], 2)
    assert "| bad\\|one | hung |" in page and "X x: why.\n  Fix" in page


KILLED = """
import sys, time
from anyshape.batch.ray_cluster import run_share
def wait(call, share):
    print("waiting", flush=True)
    time.sleep(100)
run_share(wait, None, (0, 1), {})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_folder_of_a_worker_goes_when_it_was_killed_and_stays_while_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    from anyshape.batch.ray_cluster import sweep

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == "waiting\n"
        (folder,) = tmp_path.glob(".anyshape-*.tmp")
        assert folder.stat().st_mode & 0o077 == 0
        sweep()
        assert folder.is_dir()
        worker.kill()
        worker.wait(timeout=60)
    assert folder.is_dir()
    sweep()
    assert not folder.exists()


def answer_as_http(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 400 Bad Request")


def refuse_one(server: socket.socket) -> None:
    """Answer one connection as a server of HTTP/1.1 does."""
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 400 Bad Request")
        connection.recv(100)


@pytest.mark.parametrize("kind", ["refuses", "is silent", "is no Ray"])
def test_an_address_without_ray_is_a_usage_error_before_ray_tries(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    from anyshape.batch import ray_connection

    def init(**_: object) -> None:
        raise AssertionError("Ray was called")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray_connection, "_ANSWER_S", 0.2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if kind != "refuses":
            server.listen()
        if kind == "is no Ray":
            threading.Thread(target=refuse_one, args=(server,), daemon=True).start()
        with pytest.raises(UsageError) as caught, ray_connection.connected(f"127.0.0.1:{server.getsockname()[1]}"):
            pass
    assert caught.value.finding.code == "AS546" and "there is no Ray cluster" in caught.value.finding.what
