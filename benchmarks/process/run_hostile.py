"""Export models that end their process, hang or take all memory at some sizes: this process has to live.

python benchmarks/process/run_hostile.py [NAME ...]     exit status 1 where fewer than 20 of 24 are verified
"""

from __future__ import annotations

import resource
import sys
import time
import warnings

import hostile_models
import psutil
import torch

import anyshape

MOST_S = 240.0


def outcome(name: str) -> tuple[str, str]:
    module, inputs, dynamic = hostile_models.ROWS[name]
    torch.manual_seed(0)
    try:
        result = anyshape.export(module, inputs, dynamic=dynamic, time_limit=MOST_S)
    except anyshape.AnyshapeError as error:
        return f"refused {error.finding.code}", " / ".join(str(error).splitlines()[:3])
    rules = [str(rule.condition) for rule in result.contract.rules]
    return result.contract.status, f"{result.contract.domain} {rules}"


def main() -> int:
    warnings.simplefilter("ignore")
    names = sys.argv[1:] or list(hostile_models.ROWS)
    verified = 0
    for name in names:
        began = time.perf_counter()
        status, words = outcome(name)
        verified += status == "kept"
        left = [each.pid for each in psutil.Process().children(recursive=True)]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"{name:22} {status:14} {time.perf_counter() - began:6.1f} s  {peak} MB  left {left}  {words[:200]}",
            flush=True,
        )
    print(f"{verified} of {len(names)} verified")
    return 0 if verified >= len(names) * 20 / 24 else 1


if __name__ == "__main__":
    sys.exit(main())
