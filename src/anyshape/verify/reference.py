"""Run the user's own, unpatched module, which gives the expected outputs.

Every call starts from the same state and leaves none behind; after `close` the module is as it was handed over.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import perf_counter
from types import TracebackType
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves

from anyshape.findings import AnyshapeError, Source
from anyshape.findings.finding import text_of_error
from anyshape.intercept.control_flow import ForeseenRefusals, eager_under_modes
from anyshape.modules.call_limits import allowance, memory_ceiling
from anyshape.modules.raised_errors import find_raising_part
from anyshape.modules.state import ModuleState, Written
from anyshape.modules.user_code import source_of_error
from anyshape.processes import is_own_process
from anyshape.processes.endings import user_line
from anyshape.processes.workers import Worker, WorkerDied
from anyshape.runtime.child_messages import Array
from anyshape.verify.tensors import cloned, fingerprint, has_nan, to_array

Flatten = Callable[[Any], Sequence[tuple[str, Any]]]
_MOST_NOTED = 6
_LONG_S = 0.05
_MOST_KEPT_BYTES = 256 * 2**20
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


class CallInputs(Protocol):
    """What a module is called with: `module(*args, **kwargs)`."""

    @property
    def args(self) -> tuple[Any, ...]: ...

    @property
    def kwargs(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Answer:
    """What the module answered: arrays in the order of its leaves (None left out), and how long it took.

    `python_floats`: for each, whether it was a Python float, whose dtype means nothing.
    """

    paths: tuple[str, ...]
    arrays: tuple[Array, ...]
    python_floats: tuple[bool, ...]
    seconds: float

    @property
    def outputs(self) -> tuple[tuple[str, str], ...]:
        """The path and the dtype of each output; no dtype for a Python float."""
        dtypes = (
            "" if is_python else str(array.dtype)
            for array, is_python in zip(self.arrays, self.python_floats, strict=True)
        )
        return tuple(zip(self.paths, dtypes, strict=True))


class KeptAnswers:
    """Answers of calls that took long, by what the module was called with."""

    def __init__(self) -> None:
        self._answers: dict[bytes, Answer] = {}
        self._bytes = 0

    def find(self, inputs: CallInputs) -> Answer | None:
        key = fingerprint((inputs.args, dict(inputs.kwargs))) if self._answers else None
        return None if key is None else self._answers.get(key)

    def keep(self, inputs: CallInputs, answer: Answer) -> None:
        """Keep an answer that took long to compute, while all that are kept are small enough."""
        size = sum(array.nbytes for array in answer.arrays)
        if answer.seconds < _LONG_S or self._bytes + size > _MOST_KEPT_BYTES:
            return
        key = fingerprint((inputs.args, dict(inputs.kwargs)))
        if key is not None:
            self._answers[key] = answer
            self._bytes += size


@dataclass(frozen=True)
class Refused:
    """The module raised: its message, the user's line, and the layer of torch.nn in which it raised, by its name.

    `memory`: the machine has too little memory. `ended`: the process of the call ended, or was ended.
    """

    message: str
    source: Source | None
    memory: bool = False
    layer: str = ""
    ended: bool = False


@dataclass(frozen=True, eq=False)
class NotedCall:
    """The inputs of a call that wrote into the module or drew random numbers, and which of both it did.

    `answer` is that of a call that took long; None for others. `has_nan`: NaN is among the inputs.
    """

    inputs: CallInputs
    has_drawn: bool
    has_written: bool
    answer: Answer | None = None
    has_nan: bool = False


@dataclass(frozen=True)
class _Kind:
    """What a call did. Calls with NaN among their inputs are noted apart: what they write shows nothing about other values."""

    has_drawn: bool
    written: Written
    has_nan: bool

    def contains(self, other: _Kind) -> bool:
        """Whether the other one wrote some of these places, and not all."""
        return other.written < self.written and (self.has_nan or not other.has_nan)


@dataclass(frozen=True)
class _Ran:
    """What came of a call, and what it did to random numbers and to the state."""

    outcome: Answer | Refused
    has_drawn: bool
    written: Written

    @property
    def has_answered(self) -> bool:
        return isinstance(self.outcome, Answer)


@dataclass(frozen=True, eq=False)
class _Begun:
    """A call that a further worker makes meanwhile; `inputs` are those that it was begun for."""

    inputs: CallInputs
    request: tuple[tuple[Any, ...], dict[str, Any], int | None]
    worker: Worker


class Reference:
    """Runs a module in eval mode and without gradients; a context manager that puts everything back.

    `noted` has inputs of calls that drew random numbers, or wrote what no call before had written: a rare value or a far
    size may be what makes it. Of calls that wrote the same it has the smallest inputs that were answered: the module
    is called with them again.
    """

    def __init__(self, module: torch.nn.Module, flatten: Flatten, *, apart: bool = False, seconds: float = inf) -> None:
        """`apart`: calls are made in a worker, as far as this process is one of ours, and take at most `seconds`."""
        self.module = module
        self.flatten = flatten
        self._seconds = seconds
        self._worker = Worker(self._run, seconds=seconds) if apart and is_own_process() else None
        self._idle: list[Worker] = []  # further ones
        self._begun: dict[int, _Begun] = {}
        self._came_back: set[bytes] = set()
        self._state = ModuleState(module)
        self._allowance = allowance()
        self._answers = KeptAnswers()
        self._foreseen = ForeseenRefusals()
        self._noted: dict[_Kind, tuple[tuple[bool, int], CallInputs]] = {}
        self._example_outputs: list[tuple[tuple[str, str], ...] | None] = []  # empty until they are asked for

    def run(self, inputs: CallInputs, draw: int | None = None, *, watched: bool = False) -> Answer | Refused:
        """The module's answer, or its refusal; `inputs` themselves are never touched.

        Random numbers are the same in every call, or those of torch under the seed `draw`. With `watched`, the call is made in
        this process, where modes, traces and settings of the caller hold, once an equal call in a worker has come back.
        """
        request = inputs.args, dict(inputs.kwargs), draw
        try:
            if self._worker is None or (watched and self._comes_back(self._worker, request)):
                ran = self._run(cloned(request))
            elif draw is None and (begun := self._begun.pop(id(inputs), None)) is not None:
                self._idle.append(begun.worker)
                ran = begun.worker.call(begun.request)
            else:
                ran = self._worker.call(request)
        except WorkerDied as died:
            return Refused(str(died), user_line(died.death), ended=True)
        self._note(inputs, ran)
        return ran.outcome

    def begin(self, inputs: CallInputs) -> None:
        """Have a further worker make the call meanwhile: `run` and `recall` wait for its answer when it is their turn.

        Each call starts from the same state, so that it does not matter which worker makes it.
        """
        if self._worker is None or self._answers.find(inputs) is not None:
            return
        worker = self._idle.pop() if self._idle else Worker(self._run, seconds=self._seconds)
        begun = _Begun(inputs, (inputs.args, dict(inputs.kwargs), None), worker)
        worker.begin(begun.request)
        self._begun[id(inputs)] = begun

    def drop(self, inputs: CallInputs) -> None:
        """End the call that was begun with these inputs; its answer is not read."""
        begun = self._begun.pop(id(inputs), None)
        if begun is not None:
            begun.worker.close()
            self._idle.append(begun.worker)

    def _comes_back(self, worker: Worker, request: tuple[tuple[Any, ...], dict[str, Any], int | None]) -> bool:
        """Whether a call in a worker comes back, with an answer or an error."""
        key = fingerprint(request[:2])
        if key is None or key not in self._came_back:
            try:
                worker.call(request)
            except WorkerDied:
                return False
            if key is not None:
                self._came_back.add(key)
        return True

    def _run(self, request: tuple[tuple[Any, ...], dict[str, Any], int | None]) -> _Ran:
        """Call the module with inputs that are ours alone, and put its state back."""
        args, kwargs, draw = request
        self._state.random.restore()
        if draw is not None:
            torch.manual_seed(draw)
        started, has_drawn = perf_counter(), False
        outcome: Answer | Refused
        try:
            with torch.no_grad(), quiet(), memory_ceiling(self._allowance), eager_under_modes():
                self.module.eval()
                with self._foreseen.raised_early():
                    outputs = self.module(*args, **kwargs)
                has_drawn = draw is None and self._state.random.is_advanced()
                outcome = _read_leaves(self.flatten(outputs), perf_counter() - started)  # it may be a view of the state
        except AnyshapeError:  # an output that no file has: true at all sizes
            self._state.restore()
            raise
        except Exception as error:
            outcome = _refusal(error, self.module)
        except BaseException:
            self._state.restore()
            raise
        written = self._state.restore()
        return _Ran(outcome, has_drawn, frozenset((place, _sendable(key)) for place, key in written))

    def recall(self, inputs: CallInputs) -> Answer | Refused:
        """`run`, but the outputs of an earlier call where one that took long had equal inputs."""
        known = self._answers.find(inputs)
        if known is not None:
            return known
        answer = self.run(inputs)
        if isinstance(answer, Answer):
            self._answers.keep(inputs, answer)
        return answer

    def remember(self, inputs: CallInputs, leaves: Sequence[tuple[str, Any]], seconds: float) -> None:
        """Keep the leaves that a call of the module from its first state gave, so that `recall` need not make that call."""
        self._answers.keep(inputs, _read_leaves(leaves, seconds))

    def expect_outputs(self, leaves: Sequence[tuple[str, Any]]) -> None:
        """Take the paths and dtypes of these leaves for those at the example's sizes."""
        self._example_outputs[:] = [_read_leaves(leaves, 0.0).outputs]

    def answers(self, inputs: CallInputs) -> bool:
        """Whether the module answers, rather than raises."""
        return not isinstance(self.run(inputs), Refused)

    def outputs_at_example(self, make_example: Callable[[], CallInputs]) -> tuple[tuple[str, str], ...] | None:
        """The outputs at the example's sizes, None where the module raises; it is called for them once."""
        if not self._example_outputs:
            answer = self.recall(make_example())
            self._example_outputs.append(None if isinstance(answer, Refused) else answer.outputs)
        return self._example_outputs[0]

    @property
    def noted(self) -> list[NotedCall]:
        """One call of each kind; none that drew nothing and wrote only what several others wrote between them."""
        return [
            NotedCall(inputs, kind.has_drawn, bool(kind.written), self._answers.find(inputs), kind.has_nan)
            for kind, (_, inputs) in self._noted.items()
            if kind.has_drawn or not self._is_union(kind)
        ]

    def _is_union(self, kind: _Kind) -> bool:
        """Whether other calls wrote each of these places, and nothing else."""
        parts = [other.written for other in self._noted if kind.contains(other)]
        return bool(parts) and frozenset[tuple[int, Any]]().union(*parts) == kind.written

    def _note(self, inputs: CallInputs, ran: _Ran) -> None:
        if not ran.has_drawn and not ran.written:
            return
        request = inputs.args, dict(inputs.kwargs)
        kind = _Kind(ran.has_drawn, ran.written, has_nan(request))
        if kind not in self._noted and sum(each.has_nan == kind.has_nan for each in self._noted) >= _MOST_NOTED:
            return
        size = sum(leaf.numel() for leaf in tree_leaves(request) if isinstance(leaf, torch.Tensor))
        rank = (not ran.has_answered, size)
        if kind not in self._noted or rank < self._noted[kind][0]:
            self._noted[kind] = (rank, inputs)

    def close(self) -> None:
        """Put everything back as it was before the first call."""
        for worker in (self._worker, *self._idle, *(begun.worker for begun in self._begun.values())):
            if worker is not None:
                worker.close()
        self._state.restore(thorough=True)

    def __enter__(self) -> Reference:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings: the user has seen them, and where they are made errors they must not look like refusals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _read_leaves(leaves: Sequence[tuple[str, Any]], seconds: float) -> Answer:
    """Copies of the leaves as arrays; None is left out."""
    given = [(path, leaf) for path, leaf in leaves if leaf is not None]
    return Answer(
        tuple(path for path, _ in given),
        tuple(to_array(leaf) for _, leaf in given),
        tuple(isinstance(leaf, float) for _, leaf in given),
        seconds,
    )


def _sendable(key: Any) -> Any:
    if type(key) is tuple:
        return tuple(map(_sendable, key))
    return key if key is None or type(key) in (str, int, bool) else repr(key)


def _refusal(error: Exception, module: torch.nn.Module) -> Refused:
    message = _with_reason(text_of_error(error).strip()) or type(error).__name__
    memory = isinstance(error, MemoryError) or any(words in message.lower() for words in _OUT_OF_MEMORY)
    return Refused(
        f"{type(error).__name__}: {message}" if not isinstance(error, RuntimeError) else message,
        source_of_error(error),
        memory,
        find_raising_part(error, module),
    )


def _with_reason(message: str) -> str:
    """The first line is shown alone; if it ends with a colon, the next one has the reason, and is put beside it."""
    first, _, rest = message.partition("\n")
    if not first.endswith(":") or not rest.strip():
        return message
    reason, _, more = rest.strip().partition("\n")
    return f"{first} {reason.strip()}\n{more}"
