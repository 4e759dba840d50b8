"""Models by their names: `hf:DIR`, `timm:NAME`, `model.py`, `package.module:Class`, or what a package registers.

from anyshape import sources
sources.export("hf:DIR", "out")

Files, in the order in which data flows:

    source         the records ModelSource, Part, SourceKind; findings about sources
    resolving      SOURCES: a text -> its kind -> the loaded source; export every model of a source
    model_file     FILE.py, package.module:Class
    timm_models    timm:NAME; which sides of an image may vary
    hugging_face/  hf:PATH_OR_ID
"""

from anyshape.sources.resolving import SourceExport, export, load_part, resolve
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions

__all__ = ["ModelSource", "Part", "SourceExport", "SourceKind", "SourceOptions", "export", "load_part", "resolve"]
