"""Stage: writing files, whole or not at all.

Files, in the order in which data flows:

    atomic  one file
    models  an ONNX model, weights inside or beside it; a folder
"""

from anyshape.saving.atomic import check_writable, write_atomically
from anyshape.saving.models import model_bytes, save_model, save_to_run, writing_folder

__all__ = ["check_writable", "model_bytes", "save_model", "save_to_run", "write_atomically", "writing_folder"]
