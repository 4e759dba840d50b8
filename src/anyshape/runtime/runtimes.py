"""What runs ONNX files. A runtime is one entry of RUNTIMES: a name, and a function that opens a file with it.

What it opens has `inputs`, `outputs` and `run(feeds)`, and raises RuntimeRejected and RuntimeFailed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from typing import Any, Protocol

from anyshape.findings import Finding, UsageError, check_choice
from anyshape.runtime.child_messages import RuntimeRejected
from anyshape.runtime.custom_node_session import open_session
from anyshape.runtime.dtypes import Array
from anyshape.runtime.openvino_session import OpenvinoSession
from anyshape.runtime.session import CPU, TensorInfo


class AnySession(Protocol):
    """A loaded file."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    def run(self, feeds: Mapping[str, Array]) -> list[Array]: ...


class Opens(Protocol):
    """Opens a file. Raises RuntimeRejected."""

    def __call__(
        self,
        path: str | PathLike[str],
        operators: Mapping[str, Callable[..., Any]],
        /,
        *,
        threads: int = 0,
        optimize: bool = True,
        providers: Sequence[str] = (CPU,),
    ) -> AnySession: ...


@dataclass(frozen=True)
class Runtime:
    """`package` is what has to be installed, `extra` the extra of anyshape that installs it ("": it always is)."""

    name: str
    open: Opens
    package: str
    extra: str = ""


def _open_openvino(
    path: str | PathLike[str],
    operators: Mapping[str, Callable[..., Any]],
    *,
    threads: int = 0,
    optimize: bool = True,
    providers: Sequence[str] = (CPU,),
) -> AnySession:
    if operators:
        raise RuntimeRejected(f"OpenVINO has no operator {next(iter(operators))}", unsupported=True)
    return OpenvinoSession(path, threads=threads, optimize=optimize)


ONNXRUNTIME = Runtime("onnxruntime", open_session, "onnxruntime")
OPENVINO = Runtime("openvino", _open_openvino, "openvino", extra="openvino")
RUNTIMES = (ONNXRUNTIME, OPENVINO)


def runtime_called(name: str) -> Runtime:
    """The runtime of this name. Raises UsageError (AS060) for another word."""
    check_choice("runtime", name, [runtime.name for runtime in RUNTIMES])
    return next(runtime for runtime in RUNTIMES if runtime.name == name)


def check_runtime(name: str) -> Runtime:
    """The same; UsageError (AS556) where its package is not installed."""
    runtime = runtime_called(name)
    if find_spec(runtime.package) is None:
        raise UsageError(package_missing(runtime.package, runtime.extra))
    return runtime


def package_missing(package: str, extra: str) -> Finding:
    """AS556: an optional package is not installed."""
    return Finding(
        code="AS556",
        name="package-missing",
        what=f"this needs the package {package!r}, which is not installed.",
        fix=f'pip install "anyshape[{extra}]"',
        is_fix_untried=True,
    )
