"""Many models at once: each in a process of its own, on this machine or on a Ray cluster.

from anyshape.batch import export_many
export_many(["bert.py", "hf:org/tiny"], "exported", jobs=2, time_limit="5m")
"""

from anyshape.batch.many import Batch, export_many
from anyshape.batch.rows import Row
from anyshape.batch.summary import rows_as_records

__all__ = ["Batch", "Row", "export_many", "rows_as_records"]
