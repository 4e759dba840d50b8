"""Is there a file, an argument or a model file at which anyshape fails otherwise than by a finding?

    python benchmarks/fuzz/run.py --cases 10000 --seed 0 --jobs 2
    python benchmarks/fuzz/run.py --only 17,923 --seed 0        these cases, with their details
    python benchmarks/fuzz/run.py --kind contract --cases 500   the cases of one kind among these numbers

The exit status is 1 if any case is not clean.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
CLEAN = ("finding", "accepted")
_START_S = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one case")
    parser.add_argument("--only", default="", help="numbers of cases: 17,923")
    parser.add_argument("--kind", default="", help="cases of this kind alone")
    parser.add_argument("--out", type=Path, help="a line of JSON for each case")
    arguments = parser.parse_args()
    numbers = [int(each) for each in arguments.only.split(",") if each] or list(range(arguments.cases))
    if arguments.kind:
        numbers = [number for number in numbers if kind_of(number, arguments.seed) == arguments.kind]
    with tempfile.TemporaryDirectory(prefix="anyshape-fuzz-") as folder:
        results = run(numbers, arguments, Path(folder))
    if arguments.out:
        arguments.out.write_text(
            "".join(json.dumps(each) + "\n" for each in sorted(results, key=lambda each: each["number"]))
        )
    show(results, details=bool(arguments.only))
    return 0 if all(each["outcome"] in CLEAN for each in results) and len(results) == len(numbers) else 1


def kind_of(number: int, seed: str) -> str:
    from worker import KINDS

    return Random(f"{seed}:{number}").choices(list(KINDS), list(KINDS.values()))[0]


def run(numbers: list[int], arguments: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    base = folder / "base"
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")])),
    }
    environment |= {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
    made = "import sys, base_models; from pathlib import Path; base_models.make(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", made, str(base)], env=environment, check=True)
    left: queue.Queue[int] = queue.Queue()
    for number in numbers:
        left.put(number)
    results: list[dict[str, Any]] = []

    def work(index: int) -> None:
        own = folder / f"worker{index}"
        own.mkdir()
        worker: Worker | None = None
        while True:
            try:
                number = left.get_nowait()
            except queue.Empty:
                break
            worker = worker if worker is not None else Worker(base, own, environment)
            result, is_alive = worker.ask(number, arguments.seed, arguments.limit)
            results.append(result)
            if result["outcome"] not in CLEAN:
                print(f"{number}: {result['outcome']} {result['code']}", file=sys.stderr, flush=True)
            if not is_alive:
                worker.end()
                worker = None
            if len(results) % 200 == 0:
                print(f"{len(results)} of {len(numbers)}", file=sys.stderr, flush=True)
        if worker is not None:
            worker.end()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(arguments.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Worker:
    """A process that runs cases, one at a time."""

    def __init__(self, base: Path, folder: Path, environment: dict[str, str]) -> None:
        self.errors = (folder / "stderr.txt").open("w+b")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), str(base), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment,
            text=True,
            start_new_session=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.lines.get(timeout=_START_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def ask(self, number: int, seed: str, limit: float) -> tuple[dict[str, Any], bool]:
        """The result of a case, and whether the process can take another one."""
        assert self.process.stdin is not None
        failed = {"number": number, "kind": kind_of(number, seed), "shown": "", "code": "", "detail": ""}
        self.errors.truncate(0)
        try:
            self.process.stdin.write(f"{number} {seed}\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=limit)
        except queue.Empty:
            return {**failed, "outcome": "hang", "detail": f"longer than {limit:g} s"}, False
        except BrokenPipeError:
            line = ""
        if not line:
            self.errors.seek(0)
            text = self.errors.read().decode(errors="replace")[-1500:]
            return {**failed, "outcome": "died", "code": str(self.process.wait()), "detail": text}, False
        return json.loads(line), True

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()


def show(results: list[dict[str, Any]], *, details: bool) -> None:
    kinds = sorted({each["kind"] for each in results})
    outcomes = sorted({each["outcome"] for each in results})
    print(f"{'':14}" + "".join(f"{outcome:>17}" for outcome in outcomes))
    for kind in [*kinds, ""]:
        counts = Counter(each["outcome"] for each in results if each["kind"] == kind or not kind)
        print(f"{kind or 'all':14}" + "".join(f"{counts[outcome]:17}" for outcome in outcomes))
    codes = Counter(each["code"] or "no code" for each in results if each["outcome"] == "finding")
    print("findings: " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))
    for each in sorted(results, key=lambda each: each["number"]):
        if each["outcome"] not in CLEAN or details:
            last = each["detail"].strip().splitlines()[-1:] or [""]
            print(
                f"{each['number']}: {each['outcome']} {each['code']}: {each['shown'].splitlines()[:1]} {last[0][:200]}"
            )
            if details:
                print(each["shown"], each["detail"], sep="\n")


if __name__ == "__main__":
    sys.exit(main())
