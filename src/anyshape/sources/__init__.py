"""Models by their names: `hf:DIR`, `timm:NAME`, `model.py`, `package.module:Class`, or what a package registers.

from anyshape import sources
sources.export("hf:DIR", "out")

Files, in the order in which data flows:

    source             the records: ModelSource, Part, SourceKind
    resolving          SOURCES: a text -> its kind -> the loaded source
    model_file         FILE.py
    python_module      package.module:Class
    timm_models        timm:NAME
    image_sides        which sides of an image may vary
    hugging_face/      hf:PATH_OR_ID
    exporting_sources  export every model of a source
    unusable_sources   findings about sources
"""

from anyshape.sources.exporting_sources import SourceExport, export
from anyshape.sources.resolving import load_part, resolve
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions

__all__ = ["ModelSource", "Part", "SourceExport", "SourceKind", "SourceOptions", "export", "load_part", "resolve"]
