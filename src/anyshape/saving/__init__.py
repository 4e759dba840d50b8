"""Stage: writing files, whole or not at all.

Files, in the order in which data flows:

    atomic   one file
    folders  a folder
    models   an ONNX model, weights inside or beside it
"""

from anyshape.saving.atomic import check_writable, write_atomically
from anyshape.saving.folders import writing_folder
from anyshape.saving.models import model_bytes, save_model, save_to_run

__all__ = ["check_writable", "model_bytes", "save_model", "save_to_run", "write_atomically", "writing_folder"]
