"""Does a batch lose or repeat anything when it is killed, does a dying node of a cluster change a row, and do workers help?

python benchmarks/batch/run.py                      everything; writes table.md beside this file
python benchmarks/batch/run.py whole killed         some of: whole, killed, ray, workers
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from made_models import BAD, write_models

HERE = Path(__file__).parent
KILLS = 10
COMMAND = [sys.executable, "-m", "anyshape", "batch"]


def start(manifest: Path, out: Path, *words: str) -> subprocess.Popen[bytes]:
    """A batch, in the background."""
    return subprocess.Popen(
        [*COMMAND, str(manifest), "-o", str(out), "--quiet", *words], stdout=subprocess.DEVNULL, cwd=manifest.parent
    )


def rows_of(out: Path) -> dict[str, dict]:
    """The rows of results.jsonl by name; every line must be whole."""
    path = out / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    assert len({row["name"] for row in rows}) == len(rows), "a model has two rows"
    return {row["name"]: row for row in rows}


def same(row: dict, out: Path) -> tuple:
    """What must not depend on kills, workers or machines: the outcome, the finding, and the bytes of the file."""
    code = (row["finding"] or {}).get("code")
    content = (out / row["path"]).read_bytes() if row["path"] else None
    return row["outcome"], code, tuple(row["dims"]), row["compared"], content


def check_rows(out: Path, count: int) -> dict[str, tuple]:
    """All rows, with the four failures under their names."""
    rows = rows_of(out)
    assert len(rows) == count, (len(rows), count)
    for name, (_, outcome, code) in BAD.items():
        assert (rows[name]["outcome"], rows[name]["finding"]["code"]) == (outcome, code), rows[name]
    kept = [row for name, row in rows.items() if name not in BAD]
    assert all(row["outcome"] == "kept" for row in kept), [row["name"] for row in kept if row["outcome"] != "kept"]
    return {name: same(row, out) for name, row in rows.items()}


def check_files(out: Path) -> None:
    """Every folder of a model is whole, and nothing else is there: no temporary file, no file of a row without one."""
    from anyshape.batch.output_folder import OutputFolder

    folder = OutputFolder(out)
    for each in out.iterdir() if out.exists() else ():
        if each.is_dir() and each.name != ".work":
            stored = folder.find(each.name)
            assert stored is not None, f"{each} is not whole"
            there = {path.name for path in each.iterdir()} - {"row.json"}
            assert there == set(stored.written), (each, there)
        else:
            assert each.name in (".work", "results.jsonl", "summary.md"), each


def processes_of(out: Path) -> list[int]:
    """Processes that have the folder on their command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes()
        except OSError:
            continue
        if str(out).encode() in words and int(each.parent.name) != os.getpid():
            found.append(int(each.parent.name))
    return found


def runs_of(manifest: Path) -> Counter[str]:
    """How often each model file was run."""
    path = manifest.parent / "runs.txt"
    return Counter(path.read_text().split()) if path.exists() else Counter()


def run_whole(folder: Path) -> dict:
    """40 models, two at a time, undisturbed."""
    manifest, out, began = write_models(folder / "whole"), folder / "whole-out", time.monotonic()
    status = start(manifest, out, "--jobs", "2").wait()
    seconds = time.monotonic() - began
    rows = check_rows(out, 40)
    check_files(out)
    assert status == 1 and max(runs_of(manifest).values()) == 1
    began = time.monotonic()
    assert start(manifest, out, "--jobs", "2").wait() == 1
    again = time.monotonic() - began
    assert sum(runs_of(manifest).values()) == 40, "a model that was done was done again"
    return {"rows": rows, "figures": {"models": 40, "seconds": round(seconds), "seconds, again": round(again, 1)}}


def run_killed(folder: Path, seed: int = 0) -> dict:
    """40 models, killed at ten random moments by SIGKILL and SIGINT in turn, and resumed each time."""
    manifest, out = write_models(folder / "killed"), folder / "killed-out"
    chance, moments, repeated = random.Random(seed), [], 0
    done, runs = set(), Counter()
    for number in range(KILLS):
        how = signal.SIGKILL if number % 2 == 0 else signal.SIGINT
        process, began = start(manifest, out, "--jobs", "2"), time.monotonic()
        wait_for_more(process, out, len(done) + chance.randrange(6))  # so that the moments lie all over the batch
        time.sleep(chance.uniform(0.0, 8.0))
        assert process.poll() is None, "the batch ended before it was killed: more models are needed"
        process.send_signal(how)
        status = process.wait(60)
        moments.append(round(time.monotonic() - began, 1))
        assert status == (-9 if how is signal.SIGKILL else 130), status
        wait_until_gone(out)
        check_files(out)
        repeated += sum((runs_of(manifest) - runs)[name] for name in done)
        done, runs = finished(out), runs_of(manifest)
        print(f"  {how.name} after {moments[-1]} s: {len(done)} models are done", flush=True)
    assert start(manifest, out, "--jobs", "2").wait() == 1
    repeated += sum((runs_of(manifest) - runs)[name] for name in done)
    assert repeated == 0, f"{repeated} models were done again"
    check_files(out)
    rows = check_rows(out, 40)
    begun = sum(runs_of(manifest).values())
    return {"rows": rows, "figures": {"kills": KILLS, "moments, s": moments, "done twice": repeated, "begun": begun}}


def wait_for_more(process: subprocess.Popen[bytes], out: Path, count: int) -> None:
    """Wait until so many models are done."""
    while len(finished(out)) < count:
        assert process.poll() is None, "the batch ended by itself"
        time.sleep(0.1)


def finished(out: Path) -> set[str]:
    """Models whose folder is in its place."""
    return {each.parent.name for each in out.glob("*/row.json")}


def wait_until_gone(out: Path, seconds: float = 20.0) -> None:
    """Children of a killed batch end by themselves."""
    deadline = time.monotonic() + seconds
    while processes_of(out):
        assert time.monotonic() < deadline, f"left behind: {processes_of(out)}"
        time.sleep(0.2)


def run_ray(folder: Path) -> dict:
    """40 models on two nodes of a Ray cluster, one of them killed in the middle."""
    from ray.cluster_utils import Cluster

    manifest, out = write_models(folder / "ray"), folder / "ray-out"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "memory": 4 << 30})
    other = cluster.add_node(num_cpus=1, memory=4 << 30)
    try:
        began = time.monotonic()
        process = start(manifest, out, "--ray", cluster.address)
        while len(rows_of(out)) < 12:
            assert process.poll() is None, "the batch ended early"
            time.sleep(0.5)
        before = len(rows_of(out))
        cluster.remove_node(other, allow_graceful=False)
        print(f"  a node is killed after {before} rows", flush=True)
        assert process.wait() == 1
        seconds = time.monotonic() - began
    finally:
        cluster.shutdown()
    check_files(out)
    left = [each.name for each in Path(tempfile.gettempdir()).glob("anyshape-batch-*") if (each / ".owner").exists()]
    rows = check_rows(out, 40)
    figures = {"nodes": 2, "killed after": before, "seconds": round(seconds), "left on workers": len(left)}
    return {"rows": rows, "figures": figures}


def run_workers(folder: Path) -> dict:
    """Twelve models that are kept, one at a time and two at a time."""
    seconds = {}
    for workers in (1, 2):
        manifest, out = write_models(folder / f"w{workers}", widths=(8,), bad=False), folder / f"w{workers}-out"
        load, began = os.getloadavg()[0], time.monotonic()
        assert start(manifest, out, "--jobs", str(workers)).wait() == 0
        seconds[workers] = time.monotonic() - began
        print(f"  {workers} workers: {seconds[workers]:.1f} s, load of the machine before: {load:.1f}", flush=True)
    ratio = round(seconds[2] / seconds[1], 2)
    return {"figures": {"1 worker, s": round(seconds[1]), "2 workers, s": round(seconds[2]), "ratio": ratio}}


PARTS = {"whole": run_whole, "killed": run_killed, "ray": run_ray, "workers": run_workers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which parts; all if none is named")
    parser.add_argument("--folder", type=Path, help="keep models and results here")
    arguments = parser.parse_args()
    stored = HERE / "figures.json"
    figures = json.loads(stored.read_text()) if stored.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        for part in arguments.parts or PARTS:
            print(f"{part}: {PARTS[part].__doc__}", flush=True)
            result = PARTS[part](folder)
            figures[part] = {**result["figures"], "load of the machine": round(os.getloadavg()[0], 1)}
            if "rows" in result:
                figures[part]["rows"] = f"{len(result['rows'])} ({digest_of(result['rows'])})"
            print(f"  {figures[part]}", flush=True)
            assert len({found["rows"] for found in figures.values() if "rows" in found}) <= 1, (
                "rows differ between parts"
            )
            stored.write_text(json.dumps(figures, indent=1) + "\n")
            (HERE / "table.md").write_text(as_table(figures))


def digest_of(rows: dict[str, tuple]) -> str:
    """A digest of what all rows say, and of the bytes of all files."""
    return hashlib.sha256(repr(sorted(rows.items())).encode()).hexdigest()[:12]


def as_table(figures: dict[str, dict]) -> str:
    """The figures as a page."""
    lines = [
        "# A batch of forty models",
        "",
        "`make batch` writes this page. `rows` has their number, and a digest of what they say and of all files.",
        "",
        "| part | figures |",
        "|---|---|",
    ]
    for part, found in figures.items():
        lines.append(f"| {PARTS[part].__doc__} | {', '.join(f'{name}: {value}' for name, value in found.items())} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
