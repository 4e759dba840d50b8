"""What does verification cost: in time on a model of BERT-base's size, in memory on one of 2 GB?

    python benchmarks/verify_cost.py         writes benchmarks/results/verify_cost.json (some minutes, 8 GB of memory)

Time: `verify` at 20 sizes, noise floor, edge values and further draws included, beside one eager and one onnxruntime run at
each of those sizes, all on one thread an operator. Memory: the largest sum of what the processes hold (RSS), the module's
own weights included, as a multiple of the weights.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

from anyshape.inputs import Declared, declare, flatten_outputs
from anyshape.runtime import Session
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.request import request_for

RESULTS = Path(__file__).parent / "results" / "verify_cost.json"
SIZES = [
    {"batch": batch, "seq": seq}
    for batch in (1, 2, 3, 4)
    for seq in (8 + batch, 17 * batch, 31 + batch, 64, 128 - batch)
]
LARGE, LARGE_LAYERS = 4096, 32


class Bert(nn.Module):
    """The size of BERT-base: 12 layers of 768, 12 heads, 30,522 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))


class Large(nn.Module):
    """2 GB of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(LARGE, LARGE, bias=False) for _ in range(LARGE_LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def ids(batch: int = 2, seq: int = 16) -> torch.Tensor:
    return torch.randint(0, 30522, (batch, seq))


def rows(batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, LARGE)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=["large"], help="for the script itself: runs in a process of its own")
    parser.add_argument("--file", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if arguments.part == "large":
        verify_large(arguments.file)
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = {"time": time_of_bert(Path(folder)), "memory": memory_of_large(Path(folder))}
    versions = {"python": platform.python_version(), "torch": torch.__version__, "onnxruntime": onnxruntime.__version__}
    RESULTS.write_text(json.dumps({**figures, "versions": versions}, indent=1) + "\n")
    print(RESULTS.read_text())


def time_of_bert(folder: Path) -> dict[str, Any]:
    import anyshape

    module, path = Bert().eval(), folder / "bert.onnx"
    anyshape.export(module, ids, path, where=["batch <= 4", "seq <= 128"], budget=5.0)
    declared = declare(module, ids, where=["batch <= 4", "seq <= 128"])
    runs = seconds_of_runs(module, path, declared)
    verdict = verified(module, path, declared, SIZES)
    assert verdict.passed and len(verdict.tried) == len(SIZES) == 20, verdict
    return {
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
        "sizes": len(SIZES),
        "trials": verdict.trials,
        "eager and onnxruntime runs, s": round(sum(runs), 1),
        "eager, s": round(runs[0], 1),
        "onnxruntime, s": round(runs[1], 1),
        "verification, s": round(verdict.seconds, 1),
        "ratio": round(verdict.seconds / sum(runs), 2),
    }


def seconds_of_runs(module: nn.Module, path: Path, declared: Declared) -> tuple[float, float]:
    session = Session(path, threads=1)
    eager = runtime = 0.0
    for sizes in SIZES:
        inputs = declared.make(sizes, 0)
        began = time.perf_counter()
        with torch.no_grad():
            declared.call(module, inputs)
        between = time.perf_counter()
        session.run(declared.feeds(inputs))
        eager, runtime = eager + between - began, runtime + time.perf_counter() - between
    return eager, runtime


def verified(module: nn.Module, path: Path, declared: Declared, sizes: list[dict[str, int]]) -> Any:
    import dataclasses

    with Reference(module, flatten_outputs) as reference:
        names = [value.name for value in onnx.load(path, load_external_data=False).graph.output]
        request = request_for(path, names, declared, reference)
        return verify(dataclasses.replace(request, sizes=sizes, options=VerifyOptions(budget_s=600.0)))


def memory_of_large(folder: Path) -> dict[str, Any]:
    path = folder / "large.onnx"
    write_large(path)
    process = subprocess.Popen([sys.executable, __file__, "--part", "large", "--file", str(path)])
    peak = 0
    finished = threading.Event()
    threading.Thread(target=lambda: (process.wait(), finished.set()), daemon=True).start()
    while not finished.wait(0.02):
        peak = max(peak, held_by_tree(process.pid))
    assert process.returncode == 0
    weights = 4 * LARGE * LARGE * LARGE_LAYERS
    return {"weights, GB": round(weights / 1e9, 2), "peak, GB": round(peak / 1e9, 2), "ratio": round(peak / weights, 2)}


def write_large(path: Path) -> None:
    """As an exporter would, but without holding the weights twice: one at a time goes to the file beside."""
    nodes, initializers, offset, x = [], [], 0, "x"
    with path.with_suffix(".onnx.data").open("wb") as data:
        for index, weight in enumerate(weights_of_large()):
            array = np.ascontiguousarray(weight.T)
            data.write(array.tobytes())
            tensor = onnx.TensorProto(name=f"w{index}", dims=array.shape, data_type=onnx.TensorProto.FLOAT)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", "large.onnx.data"), ("offset", offset), ("length", array.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
            offset += array.nbytes
            initializers.append(tensor)
            nodes.append(onnx.helper.make_node("MatMul", [x, tensor.name], [f"m{index}"]))
            nodes.append(onnx.helper.make_node("Tanh", [f"m{index}"], [x := f"t{index}"]))
    wide = onnx.TensorProto.FLOAT
    given = onnx.helper.make_tensor_value_info("x", wide, ["batch", LARGE])
    answer = onnx.helper.make_tensor_value_info(x, wide, ["batch", LARGE])
    graph = onnx.helper.make_graph(nodes, "large", [given], [answer], initializers)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10), path)


def weights_of_large() -> Any:
    torch.manual_seed(0)
    for _ in range(LARGE_LAYERS):
        yield nn.Linear(LARGE, LARGE, bias=False).weight.detach().numpy()


def verify_large(path: Path) -> None:
    torch.manual_seed(0)
    module = Large().eval()
    verdict = verified(module, path, declare(module, rows), [{"batch": batch} for batch in (1, 2, 3, 5, 8)])
    assert verdict.passed, verdict


def held_by_tree(pid: int) -> int:
    """Bytes that a process and those that it started hold."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = [
            int(each)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for each in (task / "children").read_text().split()
        ]
    except (OSError, IndexError):
        return 0
    return pages * 4096 + sum(map(held_by_tree, children))


if __name__ == "__main__":
    main()
