"""The pytest plug-in: a fixture `anyshape` whose `check` and `export` fail the test with the finding's own text.

pytest loads this file in every run, of whatever project: it imports nothing heavy until a test uses the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from anyshape.records.export import Export
    from anyshape.records.verdict import Verdict


class AnyshapeInTest:
    """`anyshape.check` and `anyshape.export`, with a failing test in place of an exception and its traceback."""

    def check(self, path: Any, model: Any, inputs: Any, **options: Any) -> Verdict:
        """Compare an ONNX file with the model over its domain; the arguments of `anyshape.check`."""
        return self._do("check", path, model, inputs, **options)

    def export(self, model: Any, inputs: Any, path: Any = None, **options: Any) -> Export:
        """Convert a model, by default in memory only; the arguments of `anyshape.export`."""
        return self._do("export", model, inputs, path, **options)

    def _do(self, what: str, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        import anyshape
        from anyshape.findings import AnyshapeError

        try:
            return getattr(anyshape, what)(*args, **options)
        except AnyshapeError as error:
            pytest.fail(str(error), pytrace=False)


@pytest.fixture(name="anyshape")
def anyshape_in_test() -> AnyshapeInTest:
    """Check and export models: `def test_export(anyshape): anyshape.check("m.onnx", model, inputs)`."""
    return AnyshapeInTest()
