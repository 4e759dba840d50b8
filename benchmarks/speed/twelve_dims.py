"""How long do choosing sizes and solving take for ten dynamic inputs with twelve dims and relations between them?

python benchmarks/speed/twelve_dims.py        writes benchmarks/results/twelve_dims.json
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from anyshape.domain import choose_sizes, decide, declare_domain, parse_condition

RESULTS = Path(__file__).parents[1] / "results" / "twelve_dims.json"
NAMES = [f"d{index}" for index in range(12)]
WHERE = [
    *(f"1 <= d{index} <= {64 + index}" for index in range(8)),
    "d8 % 8 == 0",
    "d0 + d1 <= 96",
    "d2 >= d3",
    "d4 * d5 <= 1024",
    "d9 + d10 == d11",
]
CONDITIONS = ["d0 > 3", "d1 % 2 == 0", "d2 <= 17", "d6 == d7", "d8 >= 32"]


def main() -> None:
    choose_sizes(declare_domain(["warm"]))  # z3 is loaded
    began = time.perf_counter()
    domain = declare_domain(NAMES, WHERE)
    conditions = [parse_condition(text) for text in CONDITIONS]
    decisions = [decide(domain, condition).status for condition in conditions]
    points = choose_sizes(domain, conditions=conditions, cost=lambda sizes: sum(sizes.values()) * 1000).points
    seconds = time.perf_counter() - began
    print(f"{len(points)} points, {len(decisions)} decisions in {seconds:.2f} s")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"points": len(points), "decisions": decisions, "seconds": round(seconds, 3)}, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
