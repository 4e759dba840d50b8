"""Stand-ins for imports that the models do not use (no librosa, polars, ... needed), and for a torchvision whose C part does not load."""

import importlib
import importlib.machinery
import sys
import types
from contextlib import contextmanager


class _Any:
    def __init__(self, *a, **k):
        pass

    def __call__(self, *a, **k):
        return a[0] if a and callable(a[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Any()


class _Stub(types.ModuleType):
    __path__: list = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Any


@contextmanager
def absent(*names):
    """Within this, these names import as empty stand-ins where they are not installed."""
    made = []
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:
            stub = _Stub(name)
            stub.__spec__ = importlib.machinery.ModuleSpec(name, None)
            sys.modules[name] = stub
            made.append(name)
    try:
        yield
    finally:
        for name in made:
            sys.modules.pop(name, None)


_LIB = None


def torchvision():
    """import torchvision, also where its C extension does not load."""
    global _LIB
    try:
        import torchvision
    except Exception:
        import torch

        for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        if _LIB is None:
            _LIB = torch.library.Library("torchvision", "FRAGMENT")
            for schema in (
                "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
                "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
                "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
            ):
                try:
                    _LIB.define(schema)
                except Exception:
                    pass
        import torchvision
    return torchvision
