"""A page that runs the file in a browser: a slider for each dim, inputs within the contract's bounds, the files of
onnxruntime-web.

    contract  ->  index.html, page.js, page.css, model.onnx, model.json, ort/

What the page shows of the contract is in model.json, and is put into the page as text: names of inputs are anything.

Only these files are taken from the package, and nothing of it is run here. Its digest is known in advance.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from anyshape.checking.contract_inputs import shapes_outside
from anyshape.deploying.deploy_messages import cannot_take, no_ort_web
from anyshape.deploying.deployment import Built, DeployRequest, Target, Tell, copy_model, read_asset, write_json
from anyshape.deploying.profiles import ProfileSearch
from anyshape.deploying.served_sizes import boundary_sizes, served_domain, table_rows
from anyshape.domain import All, AnyOf, Compare, Condition, Domain, Expr, Not, Number, Op, Ref, Sizes, format_condition
from anyshape.findings import UsageError
from anyshape.records.contract import Contract, TensorPromise
from anyshape.saving.leftovers import temporary_folder

_ASSETS = ("index.html", "page.js", "page.css")
_DTYPES = (
    "bool",
    "float16",
    "float32",
    "float64",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
_BEYOND = 4  # a slider goes beyond the last size by this part of it, so that a refusal can be seen
VERSION = "1.30.0"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
_DIGEST = "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
_PACKAGE = "onnxruntime-web"
_TIME_LIMIT_S = 600


def build_web(request: DeployRequest, folder: Path) -> Built:
    """Write the page. Raises UsageError without the files of onnxruntime-web (AS561), and for types that it lacks (AS555)."""
    for tensor in (*request.contract.inputs, *request.contract.outputs):
        _check_type(tensor)
    runtime = find_ort_web(request.options.ort_web, request.tell)
    names = copy_model(request.path, folder)
    (folder / "ort").mkdir()
    for name in FILES:
        shutil.copyfile(runtime / name, folder / "ort" / name)
    for name in _ASSETS:
        (folder / name).write_text(read_asset(name), encoding="utf-8", newline="\n")
    domain = served_domain(request)
    start = _start(request, domain)
    write_json(folder / "model.json", describe_model(request, domain, start, names))
    lines = (
        "page    index.html: a slider for each dim, the graph's own refusal outside the contract",
        "serve   python -m http.server --bind 127.0.0.1 8000      in this folder, then http://127.0.0.1:8000",
    )
    return Built(lines=lines, facts={"starts_at": dict(start)})


WEB = Target("web", "a page for browsers: onnxruntime-web", build_web, takes=("ort_web",))


def _check_type(tensor: TensorPromise) -> None:
    if tensor.dtype not in _DTYPES:
        raise UsageError(
            cannot_take(
                "onnxruntime-web",
                f"{tensor.name!r} has the type {tensor.dtype}",
                f"a browser's tensors are {', '.join(_DTYPES)}.",
                "convert it in forward.",
            )
        )


def _start(request: DeployRequest, domain: Domain) -> Sizes:
    """The sizes that the page shows first: the user's, else the middle of those that are not large."""
    if not domain.names:
        return {}
    axes = [axis for each in request.contract.input_axes.values() for axis in each if axis is not None]
    if request.options.at:
        return ProfileSearch(domain, axes).complete(request.options.at[0])
    return boundary_sizes(request, domain)["smallest"]


def describe_model(request: DeployRequest, domain: Domain, start: Sizes, files: list[str]) -> dict[str, Any]:
    """What the page needs, as JSON: expressions are numbers, names of dims, or lists that begin with an operator."""
    contract = request.contract
    rows = table_rows(request.path)
    return {
        "name": request.path.name,
        "file": files[0],
        "weights": files[1:],
        "dims": [
            {
                "name": dim.name,
                "start": start[dim.name],
                "step": dim.multiple,
                "slider": _slider_end(dim.max or dim.smallest),
            }
            for dim in domain.dims
        ],
        "rules": [{"text": format_condition(rule), "holds": _condition(rule)} for rule in request.domain.conditions()],
        "inputs": [{**_tensor(tensor), **_values(contract, tensor, rows)} for tensor in contract.inputs],
        "outputs": [_tensor(tensor) for tensor in contract.outputs],
        "outside": [
            {"rule": rule, "shapes": {name: list(shape) for name, shape in shapes.items()}}
            for rule, shapes in shapes_outside(contract)
        ],
    }


def _slider_end(last: int) -> int:
    return last + max(1, last // _BEYOND)


def _tensor(tensor: TensorPromise) -> dict[str, Any]:
    axes = None if tensor.any_rank else [None if axis is None else expression(axis) for axis in tensor.axes]
    return {"name": tensor.name, "dtype": tensor.dtype, "axes": axes, "text": str(tensor)}


def _values(contract: Contract, tensor: TensorPromise, rows: dict[str, int]) -> dict[str, Any]:
    bounds = contract.value_bounds.get(tensor.name)
    limits = [
        {"symbol": bound.symbol, "limit": expression(bound.limit) if isinstance(bound.limit, Expr) else bound.limit}
        for bound in (bounds.bounds if bounds is not None else ())
    ]
    return {"bounds": limits, "rows": rows.get(tensor.name, 2)}


def expression(expr: Expr) -> Any:
    """`2 * seq` as `["*", 2, "seq"]`."""
    if isinstance(expr, Number):
        return expr.value
    if isinstance(expr, Ref):
        return expr.name
    assert isinstance(expr, Op)
    return [expr.symbol, *map(expression, expr.args)]


def _condition(condition: Condition) -> Any:
    if isinstance(condition, Compare):
        return [condition.op, expression(condition.left), expression(condition.right)]
    if isinstance(condition, Not):
        return ["not", _condition(condition.part)]
    assert isinstance(condition, (All, AnyOf))
    return ["all" if isinstance(condition, All) else "any", *map(_condition, condition.parts)]


def find_ort_web(given: Path | None, tell: Tell) -> Path:
    """The folder with the files. Raises UsageError (AS561) where there is none, and npm cannot fetch the package."""
    if given is not None:
        places = (given, given / "dist", given / _PACKAGE / "dist", given / "node_modules" / _PACKAGE / "dist")
        found = next((place for place in places if _is_complete(place)), None)
        if found is None:
            raise UsageError(no_ort_web(f"{str(given)!r} has no {FILES[0]}, also not in a folder dist."))
        return found
    cached = cache_folder() / f"{_PACKAGE}-{VERSION}"
    if not _is_complete(cached):
        tell(f"fetching {_PACKAGE} {VERSION}", 0, 0)
        _fetch(cached)
    return cached


def cache_folder() -> Path:
    """Where fetched files are kept on this system."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(given) if given else Path.home() / ".cache") / "anyshape"


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in FILES)


def _fetch(target: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise UsageError(no_ort_web("npm is not installed, and the package is not in the cache."))
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        command = [npm, "pack", f"{_PACKAGE}@{VERSION}", "--pack-destination", folder, "--silent"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=_TIME_LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(no_ort_web(f"npm did not fetch the package: {error}.")) from error
        packed = next(Path(folder).glob("*.tgz"), None)
        if done.returncode or packed is None:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise UsageError(no_ort_web(f"npm could not fetch the package: {said[-1] if said else 'it said nothing'}"))
        unpack(packed, target)


def unpack(packed: Path, target: Path, digest: str = _DIGEST) -> None:
    """Put the files of a package into the target, all or none. Raises UsageError for another package than the known one."""
    if digest_of(packed) != digest:
        raise UsageError(no_ort_web(f"the package is not {_PACKAGE} {VERSION} as it was published."))
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(target.parent) as growing:
        with tarfile.open(packed) as archive:
            for name in FILES:
                stream = archive.extractfile(f"package/dist/{name}")
                if stream is None:
                    raise UsageError(no_ort_web(f"the package has no {name}."))
                with (growing / name).open("wb") as file:
                    shutil.copyfileobj(stream, file)
        if not _is_complete(target):  # another process may have been faster
            shutil.rmtree(target, ignore_errors=True)
            growing.replace(target)


def digest_of(packed: Path) -> str:
    """The checksum of a package in the form of npm: sha512 in base64."""
    return "sha512-" + base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
