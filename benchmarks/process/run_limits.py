"""Commands that would not end: each gets `--time-limit 10s` and has to end within 15 s, with a finding.

python benchmarks/process/run_limits.py [NAME ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper, parser

MOST_S = 15.0

FINE = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(400, 400)
    def forward(self, x):
        return self.linear(x)
def model():
    return Net()
def inputs(batch=3):
    return torch.randn(batch, 400)
"""
SLEEP, LOOP, SLOW_C = "__import__('time').sleep(3600)", "exec('while True: pass')", "sum(range(10**14))"


def _model(*, at_import: str = "", in_model: str = "", in_inputs: str = "", in_forward: str = "") -> str:
    text = FINE.replace("def model():\n", f"def model():\n    {in_model or 'pass'}\n")
    text = text.replace("def inputs(batch=3):\n", f"def inputs(batch=3):\n    {in_inputs or 'pass'}\n")
    text = text.replace("def forward(self, x):\n", f"def forward(self, x):\n        {in_forward or 'pass'}\n")
    return text + "\n" + at_import


EXPORTS = {
    "import-loop": _model(at_import=LOOP),
    "import-sleep": _model(at_import=SLEEP),
    "import-c": _model(at_import=SLOW_C),
    "model-loop": _model(in_model=LOOP),
    "model-sleep": _model(in_model=SLEEP),
    "inputs-loop": _model(in_inputs=LOOP),
    "inputs-sleep": _model(in_inputs=SLEEP),
    "inputs-c": _model(in_inputs=SLOW_C),
    "forward-loop": _model(in_forward=LOOP),
    "forward-sleep": _model(in_forward=SLEEP),
    "forward-c": _model(in_forward=SLOW_C),
    "forward-regex": _model(in_forward="__import__('re').match('(a+)+b', 'a' * 60)"),
    "forward-matmul": _model(in_forward="[torch.randn(9000, 9000) @ torch.randn(9000, 9000) for _ in range(99)]"),
    "forward-subprocess": _model(in_forward="__import__('subprocess').run(['sleep', '3600'])"),
    "forward-catches": _model(
        in_forward="exec('while True:\\n try:\\n  while True: pass\\n except BaseException: pass')"
    ),
    "forward-reads": _model(in_forward="__import__('os').read(__import__('os').pipe()[0], 1)"),
}


def _endless_loop(path: Path) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        agraph (float[3, 4] x) => (float[3, 4] y) {
            trips = Constant <value = int64 {4611686018427387904}> ()
            yes = Constant <value = bool {1}> ()
            y = Loop (trips, yes, x) <body = body (int64 i, bool c, float[3, 4] a) => (bool d, float[3, 4] b) {
                d = Identity (c)
                b = Relu (a)
            }>
        }"""
    )
    onnx.save(model, path)


def _nested_functions(path: Path) -> None:
    depth, functions = 40, []
    for level in range(depth):
        inner = "Relu" if level == 0 else f"f{level - 1}"
        domain = "" if level == 0 else "mine"
        nodes = [
            helper.make_node(inner, ["x"], ["t"], domain=domain),
            helper.make_node(inner, ["t"], ["y"], domain=domain),
        ]
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
        functions.append(helper.make_function("mine", f"f{level}", ["x"], ["y"], nodes, opsets))
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain="mine")], "g", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    onnx.save(helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=8), path)


def _with_weights_in_a_pipe(folder: Path) -> Path:
    path = folder / "pipe.onnx"
    command = [
        sys.executable,
        "-m",
        "anyshape",
        "export",
        str(folder / "fine.py"),
        "-o",
        str(path),
        "-q",
        "--verify",
        "none",
    ]
    subprocess.run(command, check=False, capture_output=True)
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="pipe.data", size_threshold=0)
    (folder / "pipe.data").unlink()
    os.mkfifo(folder / "pipe.data")
    return path


def commands(folder: Path) -> dict[str, list[str]]:
    found = {}
    for name, text in EXPORTS.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        found[name] = ["export", str(path), "-o", str(folder / f"{name}.onnx")]
    fine, loop = folder / "fine.py", folder / "forward-loop.py"
    fine.write_text(FINE)
    pipe = _with_weights_in_a_pipe(folder)
    _endless_loop(folder / "endless.onnx")
    _nested_functions(folder / "nested.onnx")
    found["check-loop"] = ["check", str(folder / "fine.onnx"), "-m", str(loop)]
    found["axes-loop"] = ["axes", str(loop)]
    found["check-pipe"] = ["check", str(pipe), "-m", str(fine)]
    found["inspect-pipe"] = ["inspect", str(pipe)]
    found["bench-pipe"] = ["bench", str(pipe), "-m", str(fine)]
    found["fix-endless"] = ["fix", str(folder / "endless.onnx"), "-d", "x: batch 4", "-o", str(folder / "fixed.onnx")]
    found["freeze-nested"] = ["freeze", str(folder / "nested.onnx"), "batch=2", "-o", str(folder / "frozen.onnx")]
    found["inspect-nested"] = ["inspect", str(folder / "nested.onnx")]
    found["deploy-pipe"] = ["deploy", str(pipe), "--to", "openvino", "-o", str(folder / "deployed")]
    subprocess.run(
        [sys.executable, "-m", "anyshape", "export", str(fine), "-o", str(folder / "fine.onnx"), "-q"],
        check=True,
        capture_output=True,
    )
    return found


def main() -> int:
    late = 0
    with tempfile.TemporaryDirectory() as name:
        rows = commands(Path(name))
        for row in sys.argv[1:] or rows:
            began = time.monotonic()
            command = [sys.executable, "-m", "anyshape", *rows[row], "--time-limit", "10s"]
            try:
                ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
                words, status = (
                    (ended.stderr.strip().splitlines() or ended.stdout.splitlines() or [""])[0],
                    ended.returncode,
                )
            except subprocess.TimeoutExpired:
                words, status = "", -1
            seconds = time.monotonic() - began
            is_late = seconds > MOST_S or status not in (0, 1, 2)
            late += is_late
            print(f"{row:20} {seconds:5.1f} s  status {status}  {'LATE  ' if is_late else ''}{words[:110]}", flush=True)
    print(f"{late} rows were late or had another status")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
