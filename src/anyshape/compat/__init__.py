"""`torch.onnx.export`'s own signature, and an object like the one that it returns: change one import."""

from anyshape.compat.artifacts import NotHonoured
from anyshape.compat.export_call import export
from anyshape.compat.onnx_program import ONNXProgram

__all__ = ["NotHonoured", "ONNXProgram", "export"]
