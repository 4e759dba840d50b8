"""Sizes at which a module that answers at one size is called: each dim alone a little larger, smaller and twice, then all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from anyshape.domain import Domain, Sizes

_MOST = 14
_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def probe_sizes(
    domain: Domain,
    own: Sizes,
    names: Sequence[str] | None = None,
    multiples: Collection[str] = (),
    smaller: Collection[str] = (),
) -> list[dict[str, int]]:
    """Sizes of the domain other than the example's; no dim is 1, where tensors broadcast.

    Only `names` vary, all dims by default. Some dims are multiples of their size in the example, others only smaller.
    """
    limited = {name: [2 * own[name], 3 * own[name]] for name in multiples}
    limited |= {name: [size for size in (own[name] - 1, own[name] // 2, 2) if size > 1] for name in smaller}
    found: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
    for sizes in _wished(domain, own, domain.names if names is None else names, limited):
        is_new = any(sizes[name] != own[name] for name in domain.names)
        if is_new and domain.contains(sizes):
            found.setdefault(tuple(sizes.items()), sizes)
    return list(found.values())[:_MOST]


def _wished(
    domain: Domain, own: Sizes, names: Sequence[str], limited: Mapping[str, Sequence[int]]
) -> Iterator[dict[str, int]]:
    free = [name for name in names if name not in limited]
    for name in names:
        for size in limited.get(name, (own[name] + 1, 2 * own[name] + 1, 2 * own[name])):
            yield {**own, name: size}
    far = [prime for prime in _PRIMES if prime not in own.values()]
    others = {**own, **{name: limited[name][0] for name in names if limited.get(name)}}
    yield {**others, **{name: far[index % len(far)] for index, name in enumerate(free)}}
    yield {**others, **{name: own[name] + 1 + index for index, name in enumerate(free)}}
    for name in free:
        for size in (own[name] - 1, own[name] + 2, own[name] + domain.dim(name).multiple):
            if size > 1:
                yield {**own, name: size}
    for step in (1, 2, 3):
        yield {**others, **{name: own[name] + step * domain.dim(name).multiple for name in free}}
