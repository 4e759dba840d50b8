"""A GRUCell decoder written as a Python loop: the rolled-up file beside the unrolled one, and beside a Scan.

    python benchmarks/speed/rerolled_decoder.py

Exported from traces of few steps, timed in onnxruntime at 200; the unrolled file is torch's of exactly 200 steps. The Scan
is written by hand with the same weights: what a `Scan` in place of our `Loop` would give. Results go to results/.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import anyshape

STEPS, BATCH, WIDTH, RUNS = 200, 4, 32, 30
RESULTS = Path(__file__).parents[1] / "results" / "rerolled_decoder.json"


class Decoder(nn.Module):
    """Teacher-forced: one cell, one step after another."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        answers = []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
            answers.append(self.head(state))
        return torch.stack(answers, 1)


def median_ms(session: onnxruntime.InferenceSession, feeds: dict[str, np.ndarray]) -> float:
    session.run(None, feeds)
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        session.run(None, feeds)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def open_session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options)


def write_scan(model: Decoder, path: Path) -> None:
    """The same decoder with Scan over the steps."""
    cell, head = model.cell, model.head
    weights = {
        "wi": cell.weight_ih.T, "wh": cell.weight_hh.T, "bi": cell.bias_ih, "bh": cell.bias_hh,
        "wo": head.weight.T, "bo": head.bias,
    }  # fmt: skip
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["xt", "wi"], ["xi0"]),
            helper.make_node("Add", ["xi0", "bi"], ["xi"]),
            helper.make_node("MatMul", ["h", "wh"], ["hh0"]),
            helper.make_node("Add", ["hh0", "bh"], ["hh"]),
            helper.make_node("Split", ["xi"], ["xr", "xz", "xn"], axis=-1, num_outputs=3),
            helper.make_node("Split", ["hh"], ["hr", "hz", "hn"], axis=-1, num_outputs=3),
            helper.make_node("Add", ["xr", "hr"], ["r0"]),
            helper.make_node("Sigmoid", ["r0"], ["r"]),
            helper.make_node("Add", ["xz", "hz"], ["z0"]),
            helper.make_node("Sigmoid", ["z0"], ["z"]),
            helper.make_node("Mul", ["r", "hn"], ["n0"]),
            helper.make_node("Add", ["xn", "n0"], ["n1"]),
            helper.make_node("Tanh", ["n1"], ["n"]),
            helper.make_node("Sub", ["h", "n"], ["d"]),
            helper.make_node("Mul", ["z", "d"], ["zd"]),
            helper.make_node("Add", ["n", "zd"], ["h2"]),
            helper.make_node("MatMul", ["h2", "wo"], ["y0"]),
            helper.make_node("Add", ["y0", "bo"], ["y"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, WIDTH]) for name in ("h", "xt")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, WIDTH]) for name in ("h2", "y")],
    )
    scan = helper.make_node(
        "Scan", ["state", "x"], ["last", "answers"], body=body, num_scan_inputs=1, scan_input_axes=[1],
        scan_output_axes=[1],
    )  # fmt: skip
    graph = helper.make_graph(
        [scan],
        "scan",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "t", WIDTH]),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, ["b", WIDTH]),
        ],
        [helper.make_tensor_value_info("answers", TensorProto.FLOAT, ["b", "t", WIDTH])],
        [numpy_helper.from_array(np.ascontiguousarray(v.detach().numpy()), name) for name, v in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


def main() -> None:
    torch.manual_seed(0)
    model = Decoder().eval()

    def inputs(b: int = 2, t: int = 6) -> tuple[torch.Tensor, ...]:
        return torch.randn(b, t, WIDTH), torch.randn(b, WIDTH)

    with tempfile.TemporaryDirectory() as folder:
        rolled, unrolled, scan = (Path(folder) / f"{name}.onnx" for name in ("rolled", "unrolled", "scan"))
        began = time.perf_counter()
        result = anyshape.export(model, inputs, rolled, where=["1 <= t <= 200"])
        seconds = time.perf_counter() - began
        given = inputs(BATCH, STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, given, str(unrolled), dynamo=False, input_names=["x", "state"])
        write_scan(model, scan)
        sessions = {path.stem: open_session(path) for path in (rolled, unrolled, scan)}
        right = {}
        for steps in (1, 2, 13, STEPS):
            x, state = inputs(BATCH, steps)
            (actual,) = sessions["rolled"].run(None, {"x": x.numpy(), "state": state.numpy()})
            right[steps] = bool(np.allclose(actual, model(x, state).detach().numpy(), atol=1e-5))
        feeds = {"x": given[0].numpy(), "state": given[1].numpy()}
        figures = {
            "strategy": result.strategy,
            "export_s": round(seconds, 1),
            "right_at_steps": right,
            "ms_at_200_steps": {name: round(median_ms(session, feeds), 2) for name, session in sessions.items()},
            "bytes": {path.stem: path.stat().st_size for path in (rolled, unrolled, scan)},
        }
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
