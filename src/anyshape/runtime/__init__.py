"""Running ONNX files: in this process (`Session`), or in a child that may crash, hang or starve (`ChildRunner`)."""

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
