"""onnxruntime's own optimizer, which writes a file with fused operators; in a process of its own, since it may crash.

python -c "from anyshape.runtime.offline_optimizer import main; main()" ... SOURCE TARGET
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from anyshape.runtime.child_messages import RuntimeRejected
from anyshape.runtime.process import child_environment, child_search_path, package_parent
from anyshape.runtime.session import write_optimized

_START = "import sys; sys.path[:] = sys.argv[3:]; from anyshape.runtime.offline_optimizer import main; main()"
_SECONDS = 300.0
_REJECTED = 3


def optimize_file(source: Path, target: Path) -> None:
    """Write the optimized file. Raises RuntimeRejected where onnxruntime does not load the file, crashes or hangs.

    Weights that lie beside `source` stay there: put `target` into the same folder.
    """
    command = [sys.executable, "-P", "-c", _START, str(source.absolute()), str(target.absolute()), *child_search_path()]
    try:
        child = subprocess.run(
            command, capture_output=True, env=child_environment(), cwd=package_parent(), timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeRejected(f"it took longer than {_SECONDS:g} s") from error
    if child.returncode == 0 and target.exists():
        return
    lines = child.stderr.decode(errors="replace").strip().splitlines()
    if child.returncode == _REJECTED and lines:
        raise RuntimeRejected(lines[-1])
    raise RuntimeRejected(f"its process ended with status {child.returncode}")


def main() -> None:
    """Run by the child process."""
    try:
        write_optimized(sys.argv[1], sys.argv[2])
    except RuntimeRejected as error:
        sys.stderr.write(" ".join(error.message.split()) + "\n")
        sys.exit(_REJECTED)
