"""Many models at once: each in a process of its own, on this machine or on a Ray cluster.

from anyshape.batch import export_many
export_many(["bert.py", "hf:org/tiny"], "exported", jobs=2, time_limit="5m")

Files, in the order in which data flows:

    many              export_many(), start reading here
    export_options    options that a manifest may set
    model_limits      limits: `10m`, `4GB`
    jobs              one model of a batch
    manifest          MANIFEST.toml -> jobs
    output_folder     the folder of a batch
    model_digest      whether a result still holds
    local_pool        run models on this machine
    ray_pool          run models on a Ray cluster
    ray_cluster       the connection to it
    ray_task          what a worker does
    ray_shares        one piece of work in shares
    travelling_files  files that go to another machine
    model_process     start and watch the process of one model
    process_tree      its processes, their memory, their end
    model_child       what that process does
    failures          how it ended -> its row
    keeping           its folder, put in its place
    rows              the result of one model
    summary           rows as tables
    batch_page        the page of a batch
"""

from anyshape.batch.many import Batch, export_many
from anyshape.batch.rows import Row
from anyshape.batch.summary import rows_as_records

__all__ = ["Batch", "Row", "export_many", "rows_as_records"]
