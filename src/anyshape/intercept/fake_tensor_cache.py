"""During a capture, torch puts results of operators on fake tensors into its cache without making each result twice.

For each new entry, torch makes the result again from the entry, with all of its symbolic sizes, only to see whether the two
have the same dispatch keys. These do not depend on sizes, so here that second tensor has one element, and results of the same
dtype, device and layout share it. A third of the time of
torch.export goes into it where sizes are long expressions (SpeechT5).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from anyshape.intercept.patching import patched

_MAKE, _READ = "_get_output_info_for_cache_entry", "_output_from_cache_entry"
_KIND = ("dtype", "device", "layout", "requires_grad", "is_quantized", "is_conj", "is_neg")


@contextmanager
def small_cache_checks() -> Iterator[None]:
    """Enter around `torch.export.export(..., strict=False)` or `make_fx`."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    make, read = (vars(FakeTensorMode).get(name) for name in (_MAKE, _READ))
    if make is None or read is None:  # another version of torch
        yield
        return
    made: list[Any] = []  # modes that make an entry right now
    shared: dict[Any, Any] = {}

    def make_entry(mode: Any, *args: Any, **kwargs: Any) -> Any:
        made.append(mode)
        try:
            return make(mode, *args, **kwargs)
        finally:
            made.pop()

    def read_entry(mode: Any, state: Any, entry: Any, key: Any, func: Any, args: Any) -> Any:
        if not made or _has_unbacked_sizes(mode):
            return read(mode, state, entry, key, func, args)
        (info,) = entry.output_infos
        kind = tuple(getattr(info.metadata, name) for name in _KIND)
        if kind not in shared:
            shared[kind] = read(mode, state, _with_one_element(entry, info), key, None, args)
        return shared[kind]

    with patched([(FakeTensorMode, _MAKE, make_entry), (FakeTensorMode, _READ, read_entry)]):
        yield


def _has_unbacked_sizes(mode: Any) -> bool:
    """Whether sizes without a value may be in an entry: torch leaves such an entry out if its result cannot be made."""
    return bool(mode.shape_env is not None and mode.shape_env.unbacked_symint_counter)


def _with_one_element(entry: Any, info: Any) -> Any:
    """The entry of a tensor with the same keys, that is no view and has one element."""
    metadata = replace(info.metadata, shape=(1,), stride=(1,), storage_offset=0, storage_bytes=None)
    return replace(entry, output_infos=(replace(info, metadata=metadata, view_idx=None),))
