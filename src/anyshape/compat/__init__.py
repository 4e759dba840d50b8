"""`torch.onnx.export`'s own signature, and an object like the one that it returns: change one import.

Files, in the order in which data flows:

    export_call   export() with torch's arguments
    onnx_program  what it returns, and the files beside it: report, profile, captured program
"""

from anyshape.compat.export_call import export
from anyshape.compat.onnx_program import NotHonoured, ONNXProgram

__all__ = ["NotHonoured", "ONNXProgram", "export"]
