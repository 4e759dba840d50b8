"""What tests of deployments share: files to deploy, Triton's own protobuf, a page served on this machine, and a browser."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from google.protobuf import text_format

import anyshape
from anyshape.contract import read_contract
from anyshape.deploying.web_target import find_ort_web
from anyshape.findings import UsageError


def read_ir_shapes(path: Path) -> dict[str, str]:
    """The shape of each input as OpenVINO prints it: `[1..8,?]`."""
    import openvino

    loaded = openvino.Core().read_model(str(path))
    return {port.get_any_name(): str(port.get_partial_shape()) for port in loaded.inputs}


class Decoder(torch.nn.Module):
    """A step of a decoder with a cache, which is one more than it was after the call."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(11, 8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, ids: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        present = torch.cat([past, self.table(ids)], 1)
        return self.head(present * mask[..., None]), present


def decoder_inputs(batch: int = 2, past: int = 3, seq: int = 4) -> dict[str, torch.Tensor]:
    return {
        "ids": torch.randint(0, 11, (batch, seq)),
        "past": torch.randn(batch, past, 8),
        "mask": torch.ones(batch, past + seq),
    }


DECODER_RULES = ["1 <= batch <= 8", "past >= 0", "seq >= 1", "past + seq <= 32"]
DECODER_VALUES = {"ids": "0 <= ids < 11"}


def export_decoder(path: Path, **options: Any) -> Path:
    """The decoder as a file."""
    anyshape.export(
        Decoder(),
        decoder_inputs,
        path,
        where=DECODER_RULES,
        values=DECODER_VALUES,
        output_names=["logits", "present"],
        verify="quick",
        **options,
    )
    return path


def triton_protobuf() -> Any:
    """Triton's own protobuf classes, without gRPC, which its package imports and they do not need."""
    package = importlib.util.find_spec("tritonclient")
    if package is None or not package.submodule_search_locations:
        pytest.skip("tritonclient is not installed")
    path = Path(next(iter(package.submodule_search_locations))) / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location("triton_model_config_pb2", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_triton_config(folder: Path, protobuf: Any) -> Any:
    """The configuration as Triton reads it."""
    (path,) = folder.glob("*/config.pbtxt")
    return text_format.Parse(path.read_text(encoding="utf-8"), protobuf.ModelConfig())


def check_triton_config(config: Any, file: Path, folder: Path, protobuf: Any) -> None:
    """AssertionError unless the configuration describes this file, and each warm-up request keeps its contract."""
    contract, _ = read_contract(file)
    for side, tensors in ((config.input, contract.inputs), (config.output, contract.outputs)):
        assert [each.name for each in side] == [tensor.name for tensor in tensors]
        for each, tensor in zip(side, tensors, strict=True):
            rank = len(each.reshape.shape if each.HasField("reshape") else each.dims) + (config.max_batch_size > 0)
            assert rank == len(tensor.axes)
            assert protobuf.DataType.Name(each.data_type) != "TYPE_INVALID"
    loaded = anyshape.load(file)
    model = folder / config.name
    for request in config.model_warmup:
        feeds = {}
        for tensor in contract.inputs:
            given = request.inputs[tensor.name]
            shape = ([request.batch_size] if config.max_batch_size else []) + list(given.dims)
            dtype = np.dtype(tensor.dtype)
            if given.zero_data:
                feeds[tensor.name] = np.zeros(shape, dtype)
            else:
                data = (model / "warmup" / given.input_data_file).read_bytes()
                feeds[tensor.name] = np.frombuffer(data, dtype).reshape(shape)
        loaded(**feeds)  # raises ContractBroken outside the contract


def check_triton(file: Path, folder: Path) -> None:
    """Deploy a file for Triton and read what was written; one with custom nodes has to be refused."""
    protobuf = triton_protobuf()
    if read_contract(file)[0].needs:
        with pytest.raises(UsageError, match="AS555 target-cannot-run"):
            anyshape.deploy(file, "triton", folder)
        return
    anyshape.deploy(file, "triton", folder)
    config = read_triton_config(folder, protobuf)
    assert (folder / config.name / "1" / "model.onnx").read_bytes() == file.read_bytes()
    assert len(config.model_warmup) >= 1
    check_triton_config(config, file, folder, protobuf)


def find_runtime_or_skip() -> Path:
    """The files of onnxruntime-web, from the cache or by npm; skips the test without them."""
    try:
        return find_ort_web(None, lambda *_: None)
    except UsageError as error:
        pytest.skip(f"no onnxruntime-web here: {error.finding.why}")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which the folder is served, on this machine alone."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def started_browser() -> Iterator[Any]:
    """A real Chromium; skips the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("there is no Chromium here")
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(browser: Any, address: str) -> Iterator[Any]:
    """A page in which a request to another address, an error or a dialog fails the test."""
    wrong: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: None if _is_local(request.url, address) else wrong.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    try:
        page.goto(address)
        yield page
    finally:
        page.close()
    assert wrong == []


def _is_local(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))
