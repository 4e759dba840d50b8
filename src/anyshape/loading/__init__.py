"""A file behind its contract: `anyshape.load`.

This file: `anyshape.load`: an ONNX file as a function that takes what the PyTorch module took, or raises with the reason.

onnxruntime runs only calls that keep the contract: a call outside it is an error that names the rule, never a wrong
answer.

Files, in the order in which data flows:

    binding       arguments of a call -> inputs of the file
    call_checks   whether a call keeps the contract
    broken_calls  findings about calls that do not
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyshape.loading.broken_calls as say
from anyshape.contract import check_names, find_contract, read_model
from anyshape.contract.digest import FileChanged, find_change
from anyshape.contract.file_messages import missing_operators, no_contract, runtime_rejects
from anyshape.contract.read_file import name_of
from anyshape.findings import ContractBroken, PromiseBroken, UsageError, raises_for_caller
from anyshape.findings.arguments import read_list, read_threads, wrong_argument
from anyshape.loading.binding import Binder, as_pairs, to_torch
from anyshape.loading.call_checks import CallChecker
from anyshape.modules.registered import collect_operators
from anyshape.records.contract import Contract
from anyshape.runtime import PiecedSession, RuntimeFailed, RuntimeRejected, Session, open_session
from anyshape.runtime.session import check_providers

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyshape.runtime.child_messages import Array

    ModelFile = str | PathLike[str] | bytes

_OPERATORS = 'operators={"mylib::Scale": function}'
_PROVIDERS = 'providers=["CPUExecutionProvider"]'
_REFUSED_VALUES = re.compile(r"Name:'(?:[^']*/)?anyshape AS419: the model refuses these values: (.*?)' Status Message")


class Outputs(tuple[Any, ...]):
    """Outputs in the file's order, by index (`outputs[0]`), by name (`outputs["logits"]`), or unpacked.

    `dict(outputs)` has them by name.
    """

    _names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], values: Iterable[Any]) -> Outputs:
        made = super().__new__(cls, values)
        if len(names) != len(made):
            raise ValueError(f"{len(names)} names for {len(made)} outputs")
        made._names = tuple(names)
        return made

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self._names:
            raise KeyError(f"there is no output {key!r}; the outputs are {', '.join(self._names)}")
        return super().__getitem__(self._names.index(key))

    def keys(self) -> tuple[str, ...]:
        return self._names

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self._names, self, strict=True)

    def __reduce__(self) -> tuple[type[Outputs], tuple[tuple[str, ...], tuple[Any, ...]]]:
        return type(self), (self._names, tuple(self))

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{name}={value!r}' for name, value in self.items())})"


@raises_for_caller
def load(
    path: ModelFile,
    *,
    allow_broken: bool = False,
    threads: int = 0,
    providers: Sequence[str] | None = None,
    operators: Mapping[str, Callable[..., Any]] | None = None,
) -> Loaded:
    """The file, ready to be called: `load("m.onnx")(x=..., mask=...)`.

    `path` may also be the bytes of a file. `threads` are those of one operator; 0 leaves it to onnxruntime.
    `providers` are onnxruntime's, such as ["CUDAExecutionProvider", "CPUExecutionProvider"]; the CPU by default. Raises
    UsageError if the file is missing, is no ONNX model or has no contract, and ContractBroken if its contract says
    that it is broken or was not verified, unless `allow_broken`. Warns (FileChanged) where the graph is not the one that
    was verified.

    `operators` has the Python functions of custom nodes, `{"mylib::Scale": function}`; those registered with
    `anyshape.translation(..., node="mylib::Scale")` are known. The file is then run in pieces around these nodes.
    """
    name = name_of(path)
    on = check_providers(None if providers is None else read_list("providers", providers, (str,), _PROVIDERS))
    threads = read_threads(threads)
    contract = find_contract(path)
    if contract is None:
        raise UsageError(no_contract(name))
    if contract.status != "kept" and not allow_broken:
        if contract.status == "unverified":
            raise ContractBroken(say.unverified_contract(name))
        raise ContractBroken(say.broken_contract(name, len(contract.findings)), *contract.findings)
    needed = needed_operators(name, contract.needs, operators)
    # onnxruntime runs in this process: a file is checked before it is opened.
    check_names(contract, read_model(path, needs_weights=True), name)
    try:
        session = open_session(path, needed, threads=threads, providers=on)
    except RuntimeRejected as error:
        raise UsageError(runtime_rejects(name, error.message)) from error
    if (changed := find_change(path, contract)) is not None:
        warnings.warn(str(changed), FileChanged, stacklevel=2)
    options = {"allow_broken": allow_broken, "threads": threads, "providers": list(on), "operators": operators}
    source = path if isinstance(path, bytes) else Path(name).absolute()
    return Loaded(name, contract, session, (source, options))


def needed_operators(
    name: str, needs: tuple[str, ...], given: Mapping[str, Callable[..., Any]] | None
) -> dict[str, Callable[..., Any]]:
    """The functions of a file's custom nodes, given or registered. Raises UsageError where one is missing."""
    if given is not None and not (isinstance(given, Mapping) and all(map(callable, given.values()))):
        raise UsageError(wrong_argument("operators", given, "it has a function for each node.", _OPERATORS))
    known = collect_operators(given)
    missing = [operator for operator in needs if operator not in known]
    if missing:
        raise UsageError(missing_operators(name, missing))
    return {operator: known[operator] for operator in needs}


class Loaded:
    """A file behind its contract. Call it as the PyTorch module was called."""

    def __init__(
        self,
        name: str,
        contract: Contract,
        session: Session | PiecedSession,
        opened_by: tuple[ModelFile, dict[str, Any]],
    ) -> None:
        self.name = name
        self._opened_by = opened_by
        self.contract = contract
        self._session = session
        self._binder = Binder(contract)
        self._checker = CallChecker.of(contract)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output: one array, or Outputs (by index, by name, or unpacked) where the file has several outputs.

        Takes numpy arrays, or torch tensors: with one of them among the inputs the outputs are torch tensors, on its
        device. Raises ContractBroken before onnxruntime sees a call that breaks a rule.
        """
        bound = self._binder.bind(args, kwargs)
        sizes = self._checker.check(bound.feeds, bound.torch_inputs)
        values: list[Any] = list(self._run(bound.feeds, sizes))
        if bound.torch_inputs:
            values = [to_torch(value, bound.device) for value in values]
        return values[0] if len(values) == 1 else Outputs([info.name for info in self._session.outputs], values)

    def initial_state(self, **sizes: int) -> dict[str, Array]:
        """The state before the first call, for a file that carries state: `loaded(x=..., state=loaded.initial_state())`.

        `sizes` has the dims that the state's axes follow: `initial_state(batch=3)`.
        """
        from anyshape.contract.build import first_value

        return {state.name: first_value(state, sizes) for state in self.contract.state}

    def next_state(self, outputs: Any) -> dict[str, Any]:
        """The state for the call after the one that gave these outputs."""
        return {state.name: outputs[state.output] for state in self.contract.state}

    def _run(self, feeds: Mapping[str, Array], sizes: Mapping[str, int]) -> list[Array]:
        try:
            return self._session.run({name: as_pairs(array) for name, array in feeds.items()})
        except RuntimeFailed as error:
            if refused := _REFUSED_VALUES.search(error.message):
                raise PromiseBroken(say.values_refused(refused[1], sizes)) from error
            bindings, is_unknown = self._checker.bindings(feeds), bool(self.contract.refused)
            raise PromiseBroken(say.run_failed(error.message, bindings, sizes, has_unknown_rule=is_unknown)) from error

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is what it was opened from: the path (or the bytes) and the options. Another process opens it again."""
        return _load_again, self._opened_by

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, side)) for side in (self.contract.inputs, self.contract.outputs))
        return f"<anyshape.load {self.name!r}: {inputs} -> {outputs}>"


def _load_again(source: ModelFile, options: dict[str, Any]) -> Loaded:
    return load(source, **options)
