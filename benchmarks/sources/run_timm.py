"""Fifteen architectures of timm of different kinds: `anyshape export timm:NAME --config-only`, judged independently.

Each has a process of its own. Where torchvision is not installed, tests/stand_ins has the names that timm imports.

    python benchmarks/sources/run_timm.py [resnet18 ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = (
    "resnet10t",  # residual
    "mobilenetv3_small_050",  # depthwise, squeeze and excite
    "efficientnet_b0",  # compound scaling
    "convnext_atto",  # modern convolutions
    "regnetx_002",  # grouped convolutions
    "densenet121",  # concatenations
    "vgg11",  # plain
    "vit_tiny_patch16_224",  # attention over patches
    "deit_tiny_distilled_patch16_224",  # two heads
    "swin_tiny_patch4_window7_224",  # windows
    "mixer_s32_224",  # perceptrons alone
    "poolformer_s12",  # pooling as the mixer
    "edgenext_xx_small",  # convolutions and attention over channels
    "repvgg_a0",  # branches
    "ghostnet_050",  # cheap features
)
SIZES = 4
TIME_LIMIT_S = 3600.0  # real time: a busy machine decides nothing
_LIMITS = {"batch": 3, "height": 300, "width": 300}


def run_one(name: str, folder: str) -> dict[str, Any]:
    """Export an architecture in this process, and judge the file at sizes of its contract."""
    import judged_parts as judge

    from anyshape import AnyshapeError, sources
    from anyshape.domain import format_condition

    source = sources.resolve(f"timm:{name}", sources.SourceOptions(config_only=True))
    path = Path(folder) / "model.onnx"
    row: dict[str, Any] = {"error": "", "dims": "", "tried": 0, "wrong": []}

    def run() -> Any:
        try:
            return sources.export(source, path, time_limit=TIME_LIMIT_S)
        except AnyshapeError as error:
            row["error"] = str(error)
            return None

    result, row["seconds"] = judge.cpu_seconds(run)
    if result is None:
        return row
    domain = result.files[0].contract.domain
    part = source.parts[0]
    rules = [
        *(f"{dim.name} >= {dim.min}" for dim in domain.dims),
        *(f"{dim.name} <= {dim.max}" for dim in domain.dims if dim.max is not None),
        *(f"{dim.name} % {dim.multiple} == 0" for dim in domain.dims),
        *(format_condition(each) for each in domain.relations),
    ]
    row["dims"] = ", ".join(
        f"{dim.name} {dim.min}.." + (f" % {dim.multiple}" * (dim.multiple > 1)) for dim in domain.dims
    )
    judged = sources.Part(
        model=part.model,
        inputs=part.inputs,
        where=rules,
        input_names=part.input_names,
        output_names=part.output_names,
    )
    for number, sizes in enumerate(judge.choose_sizes(judged, _LIMITS, SIZES, seed=3)):
        row["tried"] += 1
        difference = judge.find_difference(judged, path, sizes, seed=number)
        row["wrong"] += [f"at {sizes}: {difference}"] if difference else []
    return row


def run_in_child(name: str) -> dict[str, Any]:
    """The row of one architecture, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", __file__, "--one", name, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip()[-300:], "seconds": 0.0, "tried": 0, "wrong": [], "dims": ""}
    return json.loads(done.stdout.splitlines()[-1])


def main(names: list[str]) -> int:
    """Print the table; the status is 1 where a file is not kept or not right."""
    failed = []
    print("| architecture | outcome | dims | right | CPU s |\n|---|---|---|---|---|")
    for name in names or NAMES:
        row = run_in_child(name)
        right = row["tried"] - len(row["wrong"])
        outcome = "refused" if row["error"] else "kept"
        print(f"| {name} | {outcome} | {row['dims']} | {right}/{row['tried']} | {row['seconds']:.1f} |", flush=True)
        for text in filter(None, [row["error"], *row["wrong"][:2]]):
            print(f"  {name}: {text[:400]}", file=sys.stderr)
        failed += [name] if row["error"] or row["wrong"] or not row["tried"] else []
    print(f"\nnot kept or not right: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tests.stand_ins import stand_ins_on_path

    if sys.argv[1:2] == ["--one"]:
        warnings.simplefilter("ignore")
        with stand_ins_on_path():
            print(json.dumps(run_one(*sys.argv[2:4])))
    else:
        sys.exit(main(sys.argv[1:]))
