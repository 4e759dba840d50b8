"""Rows that refuse sizes themselves, by `assert` or `raise`."""

from __future__ import annotations

from rows import Row, row
from torch import Tensor, nn

ROWS: list[Row] = []
_PAIR = {"x": "a 2", "y": "c 2"}


class Pair(nn.Module):
    """Two inputs; subclasses refuse some of their sizes."""

    def check(self, a: int, c: int) -> None:
        raise NotImplementedError

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        self.check(x.shape[0], y.shape[0])
        return x.sum(0) + y.amax(0)


@row(ROWS, _PAIR, "a + c <= 48", a=5, c=7, upto={"a": 56, "c": 56})
class AtMostInAll(Pair):
    def check(self, a: int, c: int) -> None:
        if a + c > 48:
            raise ValueError(f"{a} prompt and {c} new tokens: at most 48 in all")


@row(ROWS, _PAIR, "a % c == 0", a=12, c=4)
class Divides(Pair):
    def check(self, a: int, c: int) -> None:
        assert a % c == 0, "the beams must divide the batch"


@row(ROWS, _PAIR, "2 * a == c", a=4, c=8)
class Twice(Pair):
    def check(self, a: int, c: int) -> None:
        if 2 * a != c:
            raise ValueError("two targets for each query")


@row(ROWS, _PAIR, "a <= c", a=3, c=6)
class NotLonger(Pair):
    def check(self, a: int, c: int) -> None:
        assert a <= c, "more queries than keys"


@row(ROWS, _PAIR, "a < c", a=3, c=6)
class Shorter(Pair):
    def check(self, a: int, c: int) -> None:
        assert a < c


@row(ROWS, _PAIR, "a * c <= 64", a=4, c=6, upto={"a": 70, "c": 70})
class Area(Pair):
    def check(self, a: int, c: int) -> None:
        if a * c > 64:
            raise ValueError("at most 64 pairs")


@row(ROWS, _PAIR, "a * a == c", a=3, c=9, upto={"a": 8, "c": 50})
class SideAndArea(Pair):
    def check(self, a: int, c: int) -> None:
        assert a * a == c


@row(ROWS, _PAIR, "abs(a - c) <= 3", a=6, c=7)
class AboutEqual(Pair):
    def check(self, a: int, c: int) -> None:
        assert abs(a - c) <= 3


@row(ROWS, _PAIR, "(a + c) % 4 == 0", a=5, c=7)
class TogetherMultiple(Pair):
    def check(self, a: int, c: int) -> None:
        assert (a + c) % 4 == 0, "pad the whole to a multiple of 4"


@row(ROWS, _PAIR, "min(a, c) >= 6", a=8, c=9)
class NeitherSmall(Pair):
    def check(self, a: int, c: int) -> None:
        if min(a, c) < 6:
            raise ValueError("too small")


class Single(nn.Module):
    """One input; subclasses refuse some of its sizes."""

    def check(self, n: int) -> None:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        self.check(x.shape[1])
        return x.softmax(1) * 3


_ONE = {"x": "b n"}


@row(ROWS, _ONE, "n >= 12", b=2, n=20, upto={"n": 40})
class AtLeast(Single):
    def check(self, n: int) -> None:
        assert n >= 12


@row(ROWS, _ONE, "4 <= n <= 20", b=2, n=8, upto={"n": 40})
class Between(Single):
    def check(self, n: int) -> None:
        if not 4 <= n <= 20:
            raise ValueError("4 to 20 steps")


@row(ROWS, _ONE, "n % 2 == 1", b=2, n=7)
class Odd(Single):
    def check(self, n: int) -> None:
        if n % 2 == 0:
            raise ValueError("a kernel must be odd")


@row(ROWS, _ONE, "n % 8 == 0 and n <= 64", b=2, n=16, upto={"n": 90})
class MultipleAndEnd(Single):
    def check(self, n: int) -> None:
        assert n % 8 == 0 and n <= 64


@row(ROWS, _ONE, "n <= 4 or n % 4 == 0", b=2, n=12)
class FewOrMultiple(Single):
    def check(self, n: int) -> None:
        assert n <= 4 or n % 4 == 0


@row(ROWS, _ONE, "n & (n - 1) == 0", b=2, n=8, upto={"n": 140})
class PowerOfTwo(Single):
    def check(self, n: int) -> None:
        assert n & (n - 1) == 0, "the butterfly needs a power of two"


@row(ROWS, _ONE, "b <= 8", b=2, n=5, upto={"b": 20})
class SmallBatch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 8:
            raise ValueError(f"a batch of {x.shape[0]}: at most 8")
        return x.cumsum(1)


@row(ROWS, {"x": "b 1 h w"}, "h >= w and w % 2 == 0", b=2, h=8, w=4)
class Portrait(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        batch, _, height, width = x.shape
        if height < width:
            raise ValueError("portrait images only")
        return x.view(batch, height, width // 2, 2).mean(-1)
