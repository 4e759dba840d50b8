"""A captured region -> an ONNX model in the user's names."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.domain import Domain
from anyshape.records.captured import Answer, Region
from anyshape.records.exported import Exported
from anyshape.translate.empty_means import admit_empty_means
from anyshape.translate.leaves import admit_empty_batch, fold_leaf_weights
from anyshape.translate.loops import build_loops
from anyshape.translate.names import name_dims, name_inputs, name_outputs, name_weights
from anyshape.translate.opsets import WRITTEN_OPSET
from anyshape.translate.registry import Translator
from anyshape.translate.sources import keep_sources

IR_VERSION = 10
PRODUCER = "anyshape"


def translate(
    region: Region,
    answers: Sequence[Answer],
    translator: Translator,
    input_names: Sequence[str],
    output_names: Sequence[str],
    *,
    domain: Domain,
) -> Exported:
    """A region's model, not yet optimized. Raises what torch.onnx raises where an operator has no translation.

    The domain says whether sizes may be 0, which onnxruntime's recurrent kernels do not survive and its means do not see.
    """
    model = translator.translate(region.program, region.symbols)
    build_loops(model, region.loops, translator)
    fold_leaf_weights(model)
    if any(dim.min == 0 for dim in domain.dims):
        admit_empty_batch(model)
    keep_sources(model)
    name_dims(model, region.symbols, domain)
    admit_empty_means(model, domain.narrowed(region.condition))
    name_weights(model)
    name_inputs(model, input_names)
    name_outputs(model, output_names)
    model.producer_name, model.producer_version = PRODUCER, None
    model.ir_version = IR_VERSION
    model.opset_imports.setdefault("", WRITTEN_OPSET)  # torch leaves it out of a graph that had no nodes
    return Exported(model, tuple(input_names), tuple(zip(output_names, answers, strict=True)), WRITTEN_OPSET)
