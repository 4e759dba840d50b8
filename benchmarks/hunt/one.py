"""Export one model and judge its file, in a process of its own; the result goes into a JSON file.

    python one.py SET KEY RESULT_FILE

The file is run by plain onnxruntime and compared with the user's module in eager mode. anyshape only exports, and its
contract decides which sizes and calls are inside.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from comparison import answers, arguments, difference, feeds
from registry import Model, Sizes, load_set
from trials import choose_sizes, copied, invent, is_small_enough, map_tensors

_SECONDS_OF_COMPARING = float(os.environ.get("HUNT_SECONDS", "45"))
_MOST_FAILURES = 3
_WIDER = {torch.float32: torch.float64, torch.float16: torch.float64, torch.complex64: torch.complex128}


def main() -> None:
    chosen, key, result_file = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    model = load_set(chosen)[key]
    model = replace(model, options={**model.options, **json.loads(os.environ.get("HUNT_OPTIONS", "{}"))})
    write = Path(result_file).write_text
    row: dict[str, Any] = {"phase": "exporting"}
    write(json.dumps(row))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = export(model, Path(folder) / "m.onnx")
        except Exception as error:
            row |= refusal(error)
        else:
            row |= describe(result, model) | {"phase": "judging", "export_s": round(time.monotonic() - began, 1)}
            write(json.dumps(row))
            row |= Judge(model, result, Path(folder) / "m.onnx").judge()
    row["seconds"] = round(time.monotonic() - began, 1)
    write(json.dumps(row | {"phase": "done"}))


def export(model: Model, path: Path) -> Any:
    import anyshape

    if model.reset:
        model.reset()
    torch.manual_seed(0)
    inputs = model.inputs if model.dynamic is None else model.inputs()
    extra = {} if model.dynamic is None else {"dynamic": model.dynamic}
    return anyshape.export(model.module(), inputs, path, where=list(model.where), **extra, **model.options)


def refusal(error: Exception) -> dict[str, Any]:
    """Refused where anyshape raises an error of its own; a crash for all else, and where it reports its own fault."""
    import anyshape

    if not isinstance(error, anyshape.AnyshapeError):
        return {
            "outcome": "CRASH",
            "words": f"{type(error).__name__}: {error}"[:400],
            "trace": traceback.format_exc()[-2500:],
        }
    codes = [finding.code for finding in error.findings]
    own_fault = any(code.startswith("AS9") for code in codes)
    return {"outcome": "CRASH" if own_fault else "REFUSED", "codes": codes, "words": str(error)[:1200]}


def describe(result: Any, model: Model) -> dict[str, Any]:
    """What was exported: how it was captured, what the contract says, which warnings were given."""
    domain = result.contract.domain
    return {
        "strategy": result.strategy,
        "proved": bool(result.contract.tested.capture_proved),
        "codes": [finding.code for finding in result.findings],
        "domain": {dim.name: [dim.min, dim.max, dim.multiple] for dim in domain.dims},
        "relations": [str(relation) for relation in domain.relations],
        "untried": len(result.verdict.untried),
        "unknown_dims": sorted(set(domain.names) ^ set(model.sizes)),
    }


class Judge:
    """Compares one file with one model."""

    def __init__(self, model: Model, result: Any, path: Path) -> None:
        self.model = model
        self.contract = result.contract
        self.path = path
        self.session = self._open()
        self.ends_at = time.monotonic() + _SECONDS_OF_COMPARING
        self.failures: list[dict[str, Any]] = []
        self.counts = dict.fromkeys(("compared", "outside", "eager_refuses", "too_large"), 0)
        self.is_random = False

    def _open(self) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])

    def judge(self) -> dict[str, Any]:
        self.is_random = self._judge_randomness()
        self._judge_sequence()
        for sizes, values, inputs in self._trials():
            if len(self.failures) >= _MOST_FAILURES or time.monotonic() > self.ends_at:
                break
            self._compare(self.model.module(), sizes, values, inputs)
        kinds = {failure["kind"] for failure in self.failures}
        outcome = "KEPT_WRONG" if "wrong" in kinds else "KEPT_FAILS" if kinds else "KEPT_RIGHT"
        if not self.counts["compared"] and not kinds:
            outcome = "NOTHING_COMPARED"
        return {"outcome": outcome, "failures": self.failures, **self.counts, "is_random": self.is_random}

    def _trials(self) -> Iterator[tuple[Sizes, str, Any]]:
        """The author's sizes and values first."""
        chosen = choose_sizes(self.model, self._contains, self._ends())
        authored = 1 + len(self.model.points) + sum(map(len, self.model.far.values()))
        for sizes in chosen[:authored]:
            yield sizes, "random", self._make(sizes)
        for name, make in self.model.rare.items():
            for sizes in chosen[:6]:
                yield sizes, name, self._make(sizes, make)
        for sizes in chosen[authored:]:
            yield sizes, "random", self._make(sizes)
        for sizes in chosen[:5]:
            inputs = self._make(sizes)
            if inputs is not None and is_small_enough(inputs):
                for name, changed in invent(inputs):
                    yield sizes, name, changed

    def _make(self, sizes: Sizes, make: Any = None) -> Any:
        """Inputs at these sizes; None where the author's function makes none."""
        torch.manual_seed(sum(sizes.values()) * 7919 + len(sizes))
        try:
            return (make or self.model.inputs)(**sizes)
        except Exception:
            self.counts["eager_refuses"] += 1
            return None

    def _contains(self, sizes: Sizes) -> bool:
        domain = self.contract.domain
        missing = {name: 1 for name in domain.names if name not in sizes}
        return bool(domain.contains(sizes | missing))

    def _ends(self) -> dict[str, list[int]]:
        found = {}
        for dim in self.contract.domain.dims:
            step = dim.multiple
            low = -(-dim.min // step) * step
            found[dim.name] = [low, low + step]
            if dim.max is not None:
                high = dim.max // step * step
                found[dim.name] += [high, high - step, high - 2 * step, (low + high) // 2 // step * step]
        return found

    def _eager(self, module: torch.nn.Module, inputs: Any) -> list[np.ndarray] | None:
        """Eager's answers, or None where the module raises."""
        args, kwargs = arguments(copied(inputs))
        try:
            with torch.no_grad():
                return answers(module(*args, **kwargs))
        except Exception:
            return None

    def _run(
        self, module: torch.nn.Module, inputs: Any, state: dict[str, np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """The file's answers, without its state outputs; these go into `state` under the names of their inputs."""
        given = feeds(module, inputs, self.contract)
        names = [item.name for item in self.session.get_inputs()]
        for name in names:
            if name.startswith("state.") and name not in given:
                given[name] = (state or {}).get(name, _initial_state(self.model.module(), name.removeprefix("state.")))
        outputs = [item.name for item in self.session.get_outputs()]
        found = dict(zip(outputs, self.session.run(None, {name: given[name] for name in names}), strict=True))
        if state is not None:
            state.update({name.removesuffix(".next"): found[name] for name in outputs if _is_state(name)})
        return [found[name] for name in outputs if not _is_state(name)]

    def _compare(self, module: torch.nn.Module, sizes: Sizes, values: str, inputs: Any, state: Any = None) -> None:
        if inputs is None:
            return
        if not is_small_enough(inputs):
            self.counts["too_large"] += 1
            return
        if self.model.reset and state is None:
            self.model.reset()
        expected = self._eager(module, inputs)
        if expected is None:
            self.counts["eager_refuses"] += 1
            return
        try:
            actual = self._run(module, inputs, state)
        except Exception as error:
            if self._is_outside(inputs):
                self.counts["outside"] += 1
            else:
                self._fail("fails", sizes, values, f"{type(error).__name__}: {error}")
            return
        words = self._difference(inputs, expected, actual) if state is None else difference(expected, actual)
        if words and state is not None and not self._depends_on_calls(inputs, expected):
            return  # not a matter of state: the comparison with a fresh module judges it
        if words is None:
            self.counts["compared"] += 1
        elif self._is_outside(inputs):
            self.counts["outside"] += 1
        else:
            self._fail("wrong", sizes, values, words)
            self.failures[-1]["finite"] = all(np.isfinite(one).all() for one in expected if one.dtype.kind == "f")

    def _difference(self, inputs: Any, expected: list[np.ndarray], actual: list[np.ndarray]) -> str | None:
        if self.is_random:
            shapes = [[(array.shape, array.dtype) for array in side] for side in (expected, actual)]
            return None if shapes[0] == shapes[1] else f"random answers: {shapes[0]} expected, {shapes[1]} given"
        words = difference(expected, actual)
        if words is None or self._depends_on_calls(inputs, expected):
            return words  # eager's distance from float64 would be that between two random or two later answers
        return difference(expected, actual, self._sensitivities(inputs, expected))

    def _depends_on_calls(self, inputs: Any, expected: list[np.ndarray]) -> bool:
        """Whether a fresh module answers otherwise than this one, which was called before."""
        fresh = self._eager(self.model.module(), inputs)
        return fresh is None or difference(expected, fresh) is not None

    def _sensitivities(self, inputs: Any, expected: list[np.ndarray]) -> list[np.ndarray] | None:
        """How far eager's own answers are from those with wider floats: there a float32 answer is free to vary."""
        wide = map_tensors(lambda _, tensor: tensor.to(_WIDER.get(tensor.dtype, tensor.dtype)), inputs)
        exact = self._eager(self.model.module().double(), wide)
        if exact is None or [array.shape for array in exact] != [array.shape for array in expected]:
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            return [
                np.abs(np.nan_to_num(one.astype(np.float64) - other.astype(np.float64), nan=0, posinf=0, neginf=0))
                for one, other in zip(expected, exact, strict=True)
            ]

    def _is_outside(self, inputs: Any) -> bool:
        """Whether the contract, asked by `anyshape.load`, excludes this call."""
        import anyshape

        args, kwargs = arguments(copied(inputs))
        try:
            anyshape.load(self.path)(*args, **kwargs)
        except anyshape.ContractBroken:
            return True
        except Exception:
            return False
        return False

    def _fail(self, kind: str, sizes: Sizes, values: str, words: str) -> None:
        self.failures.append({"kind": kind, "sizes": sizes, "values": values, "words": words[:300]})

    def _judge_randomness(self) -> bool:
        """Whether eager's answers depend on a random state; a file that always gives the same is then wrong."""
        inputs = self._make(self.model.sizes)
        found = []
        for seed in (11, 12, 13):
            if self.model.reset:
                self.model.reset()
            module = self.model.module()
            _seed_all(seed)
            found.append(self._eager(module, inputs))
        if any(one is None for one in found) or all(difference(found[0], one) is None for one in found[1:]):
            return False
        runs = [self._run(self.model.module(), inputs) for _ in range(3)]
        if all(difference(runs[0], run) is None for run in runs[1:]):
            self._fail("wrong", self.model.sizes, "random state", "eager varies from call to call, the file never does")
        return True

    def _judge_sequence(self) -> None:
        """Calls in a row on one module: a file without memory is wrong where the module's answers depend on earlier calls."""
        if self.is_random or self.model.options.get("state") == "frozen":
            return
        if self.model.reset:
            self.model.reset()
        live, state = self.model.module(), {}
        base = self.model.sizes
        others = [sizes for sizes in choose_sizes(self.model, self._contains, self._ends()) if sizes != base][:3]
        for number, sizes in enumerate([base, base, base, *others, base]):
            self._compare(live, sizes, f"call {number} in a row", self._make(sizes), state)


def _is_state(name: str) -> bool:
    return name.startswith("state.") and name.endswith(".next")


def _initial_state(module: torch.nn.Module, path: str) -> np.ndarray:
    value: Any = module
    for part in path.split("."):
        value = value[int(part)] if part.isdigit() else getattr(value, part)
    return value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


if __name__ == "__main__":
    main()
