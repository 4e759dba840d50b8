"""The operator library has what torch.onnx's own registry has, and infers signatures when they are needed."""

from __future__ import annotations

import pytest
import torch
from torch.onnx._internal.exporter import _registration

from anyshape.processes.quiet import quiet_libraries
from anyshape.translate.legacy import OperatorLibrary, load_library

RELU = torch.ops.aten.relu.default


@pytest.fixture(scope="module")
def library() -> OperatorLibrary:
    with quiet_libraries():
        return load_library(18)


def test_it_has_the_translations_of_torchs_registry_in_their_order(library: OperatorLibrary) -> None:
    with quiet_libraries():
        theirs = _registration.ONNXRegistry.from_torchlib(opset_version=18)

    def listed(registry: _registration.ONNXRegistry) -> list[object]:
        return [
            (name, [(each.onnx_function, each.fx_target, each.is_complex, each.opset_introduced) for each in found])
            for name, found in registry.functions.items()
        ]

    assert listed(library) == listed(theirs)


def test_a_signature_is_inferred_when_its_operator_is_looked_up(library: OperatorLibrary) -> None:
    unread = [each for found in library.functions.values() for each in found if each.signature is None]
    assert len(unread) > 400
    assert library.is_registered(RELU) and library.functions[RELU.name()][0].signature is None
    assert library.get_decomps(RELU)[0].signature is not None


def test_our_own_translation_goes_first() -> None:
    library = OperatorLibrary()
    library.register_op(RELU, lambda x: x)
    library.register_op(RELU, lambda x, y: y)
    assert [len(each.signature.params) for each in library.get_decomps(RELU)] == [2, 1]
