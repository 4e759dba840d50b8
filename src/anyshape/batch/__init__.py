"""Many models at once: each in a process of its own, on this machine or on a Ray cluster.

from anyshape.batch import export_many
export_many(["bert.py", "hf:org/tiny"], "exported", jobs=2, time_limit="5m")

Files, in the order in which data flows:

    many           export_many(), start reading here
    jobs           one model of a batch: source, name, options, limits
    manifest       MANIFEST.toml -> jobs
    output_folder  the folder of a batch
    model_files    whether a result still holds, and files that go to another machine
    model_process  run models on this machine: start and watch the process of each
    ray_pool       run models on a Ray cluster
    ray_cluster    the connection to a Ray cluster, and what a worker does
    process_tree   what the process of a model does; its processes, their memory, their end
    keeping        how the process of a model ended -> its row, and its folder in its place
    rows           the result of one model; tables and the page of a batch
"""

from anyshape.batch.many import Batch, export_many
from anyshape.batch.rows import Row, rows_as_records

__all__ = ["Batch", "Row", "export_many", "rows_as_records"]
