"""Running ONNX files: in this process (`Session`), or in a child that may crash, hang or starve (`ChildRunner`).

Files, in the order in which data flows:

    child_messages    what goes over the pipes, the errors of a run, element types that numpy lacks
    runtimes          the tuple RUNTIMES: what can run a file; custom nodes, and the user's functions between pieces
    session           onnxruntime, its only import
    openvino_session  OpenVINO, its only import
    custom_node_plan  a model with custom nodes -> pieces
    client            ChildRunner: submit a run to the child process, wait for it
    process           start and end the child process
    child             what child processes do: run a model, time its calls, optimize a file
"""

from anyshape.runtime.child_messages import ChildDied, Death, RunError, RuntimeFailed, RuntimeRejected
from anyshape.runtime.client import ChildRunner, Pending
from anyshape.runtime.runtimes import PiecedSession, open_session
from anyshape.runtime.session import Session, TensorInfo

__all__ = [
    "ChildDied",
    "ChildRunner",
    "Death",
    "Pending",
    "PiecedSession",
    "RunError",
    "RuntimeFailed",
    "RuntimeRejected",
    "Session",
    "TensorInfo",
    "open_session",
]
