"""The child may crash, hang or starve: we hear of it, stay alive, and leave nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from anyshape.runtime import ChildDied, ChildRunner, Death, RuntimeFailed, RuntimeRejected, process
from anyshape.runtime.process import seconds_worked

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
DOUBLE = "g (float[n] x) => (float[n] y) { y = Add(x, x) }"
ENDLESS = """g (float[n] x) => (float[n] y) {
  go = Constant<value = bool {1}>()
  most = Constant<value = int64 {9223372036854775807}>()
  y = Loop(most, go, x) <body = b (int64 i, bool c, float[n] s) => (bool c2, float[n] s2) {
    c2 = Identity(c)
    s2 = Neg(s)
  }>
}"""
HUGE = "g (int64[k] shape) => (float y) { z = ConstantOfShape(shape) y = ReduceMax<keepdims = 0>(z) }"
X = {"x": np.array([1.0, 2.0], np.float32)}


def write(folder: Path, text: str) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + text), path)
    return path


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


def test_runs_again_and_again_in_one_child(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, DOUBLE)) as runner:
        assert runner.pid is None
        assert runner.run(X)[0].tolist() == [2.0, 4.0]
        pid = runner.pid
        assert runner.run({"x": np.zeros(0, np.float32)})[0].shape == (0,)
        assert runner.pid == pid
        assert runner.inputs is not None
        assert [info.name for info in runner.inputs] == ["x"]
        assert runner.outputs is not None
        assert [info.dtype for info in runner.outputs] == ["float32"]


def test_arrays_larger_than_any_pipe_go_through(tmp_path: Path) -> None:
    large = np.arange(3_000_000, dtype=np.float32)
    with ChildRunner(write(tmp_path, DOUBLE)) as runner:
        assert np.array_equal(runner.run({"x": large})[0], large * 2)


def test_the_caller_works_while_the_child_does(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, DOUBLE)) as runner:
        pending = runner.submit(X)
        assert sum(range(10)) == 45
        assert pending.result()[0].tolist() == [2.0, 4.0]


def test_a_second_run_waits_for_the_first_to_be_collected(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, ENDLESS)) as runner:
        pending = runner.submit(X)
        with pytest.raises(RuntimeError, match="neither been collected nor discarded"):
            runner.submit(X)
        pending.discard(0.0)


def test_a_failed_run_leaves_the_child_alive(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, DOUBLE)) as runner:
        with pytest.raises(RuntimeFailed, match="missing"):
            runner.run({})
        pid = runner.pid
        assert runner.run(X)[0].tolist() == [2.0, 4.0]
        assert runner.pid == pid


def test_a_file_that_cannot_be_loaded_is_rejected(tmp_path: Path) -> None:
    with ChildRunner(tmp_path / "missing.onnx") as runner, pytest.raises(RuntimeRejected, match=r"missing\.onnx"):
        runner.run(X)


def test_a_hang_ends_at_the_time_limit_and_the_next_run_has_a_new_child(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, ENDLESS), time_limit_s=1.0) as runner:
        pending = runner.submit(X)
        pid = runner.pid
        started = time.monotonic()
        with pytest.raises(ChildDied, match="took longer than 1 s") as caught:
            pending.result()
        assert caught.value.death is Death.TIMED_OUT
        assert time.monotonic() - started < 30  # a busy machine; without the limit it never ends
        assert pid is not None
        assert wait_until_gone(pid)
        runner.submit(X).discard(0.2)
        assert runner.pid != pid


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_a_model_that_does_not_get_loaded_in_time_is_given_up(tmp_path: Path) -> None:
    endless = tmp_path / "endless.onnx"
    os.mkfifo(endless)  # nobody writes into it, so whoever reads it waits
    with ChildRunner(endless, load_limit_s=0.2) as runner:
        pending = runner.submit(X)
        pid = runner.pid
        with pytest.raises(ChildDied, match="to load"):
            pending.result()
    assert pid is not None
    assert wait_until_gone(pid)


def test_the_time_of_starting_and_loading_is_not_the_runs_own(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, DOUBLE), time_limit_s=0.05) as runner:
        assert runner.run(X)[0].tolist() == [2.0, 4.0]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_crash_is_told_by_its_signal(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, ENDLESS), time_limit_s=30) as runner:
        pending = runner.submit(X)
        killer = threading.Thread(target=_kill_twice, args=(runner,))
        killer.start()
        with pytest.raises(ChildDied, match=r"crashed with signal 11 \(SIGSEGV\)") as caught:
            pending.result()
        killer.join()
        assert caught.value.death is Death.CRASHED


def _kill_twice(runner: ChildRunner) -> None:
    killed: list[int] = []  # a child that ended once is tried again
    while len(killed) < 2:
        time.sleep(0.5)
        pid = runner.pid
        if pid is not None and pid not in killed:
            os.kill(pid, signal.SIGSEGV)
            killed.append(pid)


def test_terabytes_are_out_of_memory_and_the_next_run_is_fine(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, HUGE)) as runner:
        with pytest.raises(ChildDied, match="out of memory") as caught:
            runner.run({"shape": np.array([1 << 42])})
        assert caught.value.death is Death.OUT_OF_MEMORY
        assert runner.run({"shape": np.array([2])})[0] == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces the limit")
def test_the_memory_limit_holds_below_what_the_machine_has(tmp_path: Path) -> None:
    shape = {"shape": np.array([1 << 28])}
    with ChildRunner(write(tmp_path, HUGE), memory_limit=2**30) as runner, pytest.raises(ChildDied, match="memory"):
        runner.run(shape)
    with ChildRunner(write(tmp_path, HUGE), memory_limit=2**32) as runner:
        assert runner.run(shape)[0] == 0.0


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with ChildRunner(write(tmp_path, ENDLESS)) as runner:
        runner.submit(X)
        pid = runner.pid
    assert pid is not None
    assert wait_until_gone(pid)
    assert list(scratch.iterdir()) == []


def test_an_error_in_the_caller_ends_the_child(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), ChildRunner(write(tmp_path, ENDLESS)) as runner:
        runner.submit(X)
        pid = runner.pid
        raise KeyboardInterrupt
    assert pid is not None
    assert wait_until_gone(pid)


def test_a_runner_that_is_dropped_takes_its_child_along(tmp_path: Path) -> None:
    runner = ChildRunner(write(tmp_path, DOUBLE))
    runner.run(X)
    pid = runner.pid
    del runner
    gc.collect()
    assert pid is not None
    assert wait_until_gone(pid)


SCRIPT = """
import os, sys
sys.path.insert(0, {extra!r})
import numpy as np
from anyshape.runtime import ChildRunner
runner = ChildRunner({path!r}, time_limit_s=60)
pending = runner.submit({{"x": np.ones(2, np.float32)}})
print(runner.pid, flush=True)
{then}
"""


def script(tmp_path: Path, text: str, then: str) -> subprocess.Popen[str]:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # What a child must not pick up: its parent's working folder is not on its parent's search path.
    (elsewhere / "queue.py").write_text("raise SystemExit('shadowed')")
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(extra=str(tmp_path / "lib"), path=str(write(tmp_path, text)), then=then))
    return subprocess.Popen([sys.executable, str(file)], cwd=elsewhere, stdout=subprocess.PIPE, text=True)


def test_an_unguarded_script_with_a_changed_search_path_works(tmp_path: Path) -> None:
    with script(tmp_path, DOUBLE, "print(pending.result()[0].tolist())") as process:
        out, _ = process.communicate(timeout=60)
    pid, answer = out.splitlines()
    assert answer == "[2.0, 2.0]"
    assert wait_until_gone(int(pid))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_child_dies_with_its_parent_in_the_middle_of_a_run(tmp_path: Path, end: signal.Signals) -> None:
    then = "import contextlib\nwith contextlib.suppress(KeyboardInterrupt):\n    pending.result()"
    with script(tmp_path, ENDLESS, then) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        time.sleep(0.7)
        assert is_running(pid)
        process.send_signal(end)
        process.wait(timeout=30)
    assert wait_until_gone(pid)


def test_a_child_that_is_kept_from_working_is_not_given_up(tmp_path: Path) -> None:
    with ChildRunner(write(tmp_path, DOUBLE), time_limit_s=0.2) as runner:
        runner.run(X)
        assert runner.pid is not None
        os.kill(runner.pid, signal.SIGSTOP)
        pending = runner.submit(X)
        timer = threading.Timer(0.6, os.kill, (runner.pid, signal.SIGCONT))
        timer.start()
        assert pending.result()[0].tolist() == [2.0, 4.0]
        assert pending.waited_s > 0.4
        timer.join()


@pytest.mark.parametrize("is_told", [True, False], ids=["of the child's work", "of all time where that is not told"])
def test_an_endless_run_ends_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool) -> None:
    if not is_told:
        monkeypatch.setattr(process, "seconds_worked", lambda pid: None)
    with ChildRunner(write(tmp_path, ENDLESS), time_limit_s=0.3) as runner, pytest.raises(ChildDied) as died:
        runner.run(X)
    assert died.value.death is Death.TIMED_OUT
    assert died.value.how == "took longer than 0.3 s"


def test_the_work_of_a_process_is_told_or_it_is_not_there() -> None:
    before = seconds_worked(os.getpid())
    assert before is not None
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    after = seconds_worked(os.getpid())
    assert after is not None
    assert after > before
    assert seconds_worked(2**22 + 1) is None
