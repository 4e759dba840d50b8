"""The files of the npm package onnxruntime-web that a page needs: from a folder, or fetched once by npm into a cache folder.

Only these files are taken from the package, and nothing of it is run here. Its digest is known in advance.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from anyshape.deploying.deploy_messages import no_ort_web
from anyshape.deploying.deployment import Tell
from anyshape.findings import UsageError

VERSION = "1.30.0"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
_DIGEST = "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
_PACKAGE = "onnxruntime-web"
_TIME_LIMIT_S = 600


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
    growing = target.parent / f".{target.name}-{secrets.token_hex(4)}"
    growing.mkdir()
    try:
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
    finally:
        shutil.rmtree(growing, ignore_errors=True)


def digest_of(packed: Path) -> str:
    """As npm writes it: sha512 in base64."""
    return "sha512-" + base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
