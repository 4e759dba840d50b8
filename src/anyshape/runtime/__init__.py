"""Running ONNX files: in this process (`Session`), or in a child that may crash, hang or starve (`ChildRunner`).

Files, in the order in which data flows:

    dtypes               element types that numpy lacks
    runtimes             the tuple RUNTIMES: what can run a file
    session              onnxruntime, its only import
    openvino_session     OpenVINO, its only import
    custom_node_plan     a model with custom nodes -> pieces
    custom_node_session  runs those pieces, and the user's functions between them
    client               ChildRunner: submit a run to the child process, wait for it
    process              start and end the child process
    child_messages       what goes over the pipes, and the errors of a run
    child                what the child process does
    offline_optimizer    onnxruntime's optimizer, in a process of its own
    timing               time and memory of calls, in a process of its own
"""

from anyshape.runtime.child_messages import ChildDied, Death, RunError, RuntimeFailed, RuntimeRejected
from anyshape.runtime.client import ChildRunner, Pending
from anyshape.runtime.custom_node_session import PiecedSession, open_session
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
