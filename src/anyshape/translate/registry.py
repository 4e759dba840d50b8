"""torch.onnx's operator library, built once a process, with our own translations in front.

torch.onnx builds it anew in every call; here it is kept. Its modules are private: of our files only this one, `legacy` and
`fewer_nodes` import them, so a change in torch is mended here.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from anyshape.intercept.patching import patched
from anyshape.leaves import leaf_translations
from anyshape.leaves.own_operators import counted, number, refused, whole
from anyshape.modules.raised_errors import chain_of
from anyshape.modules.registered import Translation
from anyshape.processes.quiet import quiet_libraries
from anyshape.records.export import Untranslatable
from anyshape.translate.custom import (
    Inliner,
    find_overloads,
    mutating_operator,
    nodes_of,
    operators_of,
    resolve_translations,
)
from anyshape.translate.decomposed_nodes import decompose_nodes, is_check
from anyshape.translate.fewer_nodes import insert_promotions, keep_assertions, take_out_idle_nodes, translate_refused
from anyshape.translate.floats import (
    WITH_ATTRIBUTES,
    constants_in_double,
    has_doubles,
    write_floats,
    write_out_small_sigmoids,
)
from anyshape.translate.loops import loop_translations
from anyshape.translate.operators import (
    complex_translations,
    decomposed_operators,
    library_translations,
    operator_translations,
)
from anyshape.translate.opsets import WRITTEN_OPSET
from anyshape.translate.whole_numbers import (
    gather_whole_numbers,
    mark_floors,
    size_translations,
    translate_counted,
    translate_number,
    translate_whole,
)

if TYPE_CHECKING:
    import onnx_ir as ir
    from torch.export import ExportedProgram

_BODIES = "pkg.torch.__subgraph__"
_EINSUM: OpOverload = torch.ops.aten.einsum.default
_SAME = "has_same_metadata"
_NAMED_NODE = re.compile(r"translating node %(\w+)")


class Translator:
    """Decomposes and translates captured programs; the user's own translations go before all others."""

    def __init__(
        self,
        translations: Mapping[Any, Callable[..., Any]] | None = None,
        users: Mapping[Any, Translation] | None = None,
    ) -> None:
        """`translations` are by torch's own targets; `users`, which go before them, by name as well."""
        self._registry = _registry()
        self._decompositions = _decompositions()
        self._of_doubles = _decompositions_of_doubles()
        self._users = dict(users or {})
        self._seen: dict[str, None] = {}
        self._inliner = Inliner(self._registry.is_registered)
        added = {**library_translations(), **(translations or {}), **resolve_translations(self._users)}
        if added:
            self._registry = copy.copy(self._registry)
            self._registry.functions = dict(self._registry.functions)
            self._decompositions = {each: self._decompositions[each] for each in self._decompositions.keys() - added}
            self._of_doubles = {each: self._of_doubles[each] for each in self._of_doubles.keys() - added}
            for target, translation in added.items():
                self._registry.functions.pop(target.name() if isinstance(target, OpOverload) else target, None)
                self._registry.register_op(target, translation)
            self._inliner = Inliner(self._registry.is_registered)

    def decompose(self, program: ExportedProgram) -> ExportedProgram:
        """The program in the operators that have a translation. Guards may appear here: look at them afterwards."""
        self._seen |= dict.fromkeys(target.name() for target in operators_of(program))
        table = self._decompositions | (self._of_doubles if has_doubles(program) else {})
        if decompose_nodes(program, table, self._registry.is_registered):
            return program
        if any(map(_is_view_by_einsum, nodes_of(program))):
            from torch._export.utils import _get_decomp_for_cia

            table = table | {_EINSUM: _get_decomp_for_cia(_EINSUM)}
        with _views_compared_without_conditions():
            return self._inliner.decompose(program, table)

    def find_untranslatable(self, program: ExportedProgram) -> tuple[Untranslatable, ...]:
        """Operators of a decomposed program that have no translation, each once."""
        found: dict[str, Untranslatable] = {}
        for node in nodes_of(program):
            target = mutating_operator(node) or node.target
            if not isinstance(target, OpOverload) or target.namespace == "onnx" or is_check(target):
                continue
            if target is not node.target or not self._registry.is_registered(target):
                found.setdefault(target.name(), self._describe(target, node.meta.get("stack_trace")))
        return tuple(found.values())

    def find_unknown(self) -> dict[str, tuple[str, ...]]:
        """The user's translations of operators that do not exist, each with the operators of the captured programs."""
        names = [target for target in self._users if isinstance(target, str) and not find_overloads(target)]
        return {name: tuple(self._seen) for name in names}

    def _describe(self, target: OpOverload, stack: str | None) -> Untranslatable:
        tensors = [argument.name for argument in target._schema.arguments if "Tensor" in str(argument.type)]
        others = [argument.name for argument in target._schema.arguments if argument.name not in tensors]
        return Untranslatable(
            target.name(),
            stack,
            tuple(tensors),
            tuple(others),
            len(target._schema.returns),
            self._inliner.refusals.get(target.name()),
            target._schema.is_mutable,
        )

    def translate(self, program: ExportedProgram, names: Mapping[str, Any] | None = None) -> ir.Model:
        """A decomposed program as an ONNX model; `names` has torch's symbols in dims.

        Raises what torch.onnx raises, with the stack of the node in a note.
        """
        from torch.fx.experimental import _config
        from torch.onnx._internal.exporter import _building, _core, _fx_passes

        take_out_idle_nodes(program, names or {})
        write_out_small_sigmoids(program)
        _view_as_reshape(program)
        gather_whole_numbers(program)
        mark_floors(program)
        # Some operators on complex numbers refuse to be differentiated, which nobody asks of them here.
        with _config.patch(backed_size_oblivious=True), torch.no_grad():  # type: ignore[attr-defined]
            insert_promotions(program)
            keep_assertions(program)
            _fx_passes.remove_assertion_nodes(program.graph_module)
            write_floats(program)
            with constants_in_double(program, _building), _noting_stacks(program):
                model: ir.Model = _core._exported_program_to_onnx_program(program, registry=self._registry).model
        _inline_bodies(model)
        return model


@contextmanager
def _noting_stacks(program: ExportedProgram) -> Iterator[None]:
    """Within this, an error about a node gets the node's stack as a note: torch.onnx (2.13) says the name of the node only."""
    try:
        yield
    except Exception as error:
        named = {found[1] for each in chain_of(error) if (found := _NAMED_NODE.search(str(each)))}
        for node in program.graph.nodes:
            if node.name in named:
                error.add_note(str(node.meta.get("stack_trace")))
        raise


@contextmanager
def _views_compared_without_conditions() -> Iterator[None]:
    """Within this, torch compares an output that is a view with its base by what is known, and adds no condition on sizes.

    torch 2.15 asks whether both have the same sizes, in order to compute such an output after each call from the other one.
    Exported programs return both, so that the condition would change nothing.
    """
    from torch._functorch._aot_autograd import collect_metadata_analysis
    from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq

    space = vars(collect_metadata_analysis)
    if _SAME not in space:
        yield
        return
    own = space[_SAME]

    def compare(view: torch.Tensor, base: torch.Tensor) -> bool:
        facts = (torch.Tensor.size, torch.Tensor.stride, torch.Tensor.storage_offset)
        are_strided = view.layout == base.layout == torch.strided
        is_known = not are_strided or all(statically_known_true(sym_eq(each(view), each(base))) for each in facts)
        return is_known and own(view, base)

    with patched([(space, _SAME, compare)]):
        yield


@lru_cache(maxsize=1)
def _registry() -> Any:
    # Loads torch.onnx's exporter, which only a translation needs.
    from anyshape.translate.legacy import load_library

    with quiet_libraries():  # it warns that torchvision, which nobody asked for, is absent
        registry = load_library(WRITTEN_OPSET)
    for target in decomposed_operators():
        registry.functions.pop(target.name(), None)
    for target, translation in (operator_translations() | leaf_translations() | loop_translations()).items():
        registry.register_op(target, translation)
    registry.register_op(whole, lambda *args: translate_whole(*args))
    registry.register_op(counted, lambda *args: translate_counted(*args))
    registry.register_op(number, lambda *args: translate_number(*args))
    registry.register_op(refused, lambda *args: translate_refused(*args))
    for function, translation in size_translations().items():
        registry.register_op(function, translation)
    for target, translation in complex_translations().items():
        registry.register_op(target, translation, is_complex=True)
    return registry


@lru_cache(maxsize=1)
def _decompositions() -> dict[Any, Callable[..., Any]]:
    from torch.onnx._internal.exporter import _decomp

    translated = set(_decomp.get_onnx_implemented_overloads(_registry()))
    return _decomp.create_onnx_friendly_decomposition_table(translated)


@lru_cache(maxsize=1)
def _decompositions_of_doubles() -> dict[Any, Callable[..., Any]]:
    from torch._decomp import decomposition_table

    return {
        each: function
        for each, function in decomposition_table.items()
        if str(each).removeprefix("aten.") in WITH_ATTRIBUTES
    }


def _inline_bodies(model: ir.Model) -> None:
    """A graph that calls a function, as torch.onnx writes the bodies of If, Loop and Scan  ->  the body itself."""
    import onnx_ir.passes.common as passes

    if any(domain == _BODIES for domain, *_ in model.functions):
        passes.InlinePass()(model)
        model.opset_imports.pop(_BODIES, None)


def _view_as_reshape(program: ExportedProgram) -> None:
    """view(x, sizes)  ->  reshape(x, sizes). torch.onnx runs the program once more on fake tensors, where an operator may
    lay its answer out otherwise than when it was captured; ONNX has no layouts, so both are the same to the file."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.target is torch.ops.aten.view.default:
                node.target = torch.ops.aten.reshape.default


def _is_view_by_einsum(node: Node) -> bool:
    """Whether this may be a view of one tensor. torch's pass takes `einsum` for new memory if it is kept whole (to 2.13)."""
    return node.target is _EINSUM and len(node.all_input_nodes) == 1
