"""The package as users get it: a wheel from a clean checkout, installed where there is no source tree, and used there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pages import normalised, read_blocks

ROOT = Path(__file__).parent.parent
BIN = "Scripts" if os.name == "nt" else "bin"


@dataclass(frozen=True)
class Installed:
    """A checkout without anything untracked, the wheel that was built from it, and an environment that has the wheel."""

    checkout: Path
    wheel: Path
    environment: Path

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """A program of the environment, which finds neither the source tree nor its editable install."""
        program = self.environment / BIN / command[0]
        variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return subprocess.run(
            [str(program), *command[1:]], cwd=cwd, env=variables, capture_output=True, text=True, timeout=300
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, checkout / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index", "-q"]
    _do([*pip, "wheel", "--no-build-isolation", *offline, "-w", str(folder), str(checkout)])
    (wheel,) = folder.glob("anyshape-*.whl")
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=os.name != "nt")
    python = environment / BIN / Path(sys.executable).name
    python = python if python.exists() else environment / BIN / "python"
    _do([*pip, "--python", str(python), "install", *offline, str(wheel)])
    _borrow_packages(environment)
    return Installed(checkout, wheel, environment)


def _do(command: list[str]) -> None:
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def _borrow_packages(environment: Path) -> None:
    """torch and the rest from the running interpreter, after the environment's own packages.

    A folder that a .pth file names is searched, but its own .pth files are not read: the editable install that the
    running interpreter may have is one of these, and stays out.
    """
    (site_packages,) = environment.rglob("site-packages")
    folders = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site_packages / "borrowed.pth").write_text("\n".join(folders) + "\n", encoding="utf-8")


def expected_files(checkout: Path) -> list[str]:
    """What a wheel must hold: every file of the package, and the pages for `anyshape explain`."""
    package = checkout / "src"
    own = [path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()]
    pages = [f"anyshape/pages/{path.name}" for path in (checkout / "docs" / "errors").glob("*.md")]
    return [name for name in own if "__pycache__" not in name and ".egg-info" not in name] + pages


def missing_from(held: Iterable[str], expected: Iterable[str]) -> list[str]:
    return sorted(set(expected) - set(held))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(installed: Installed) -> None:
    held = [name for name in zipfile.ZipFile(installed.wheel).namelist() if ".dist-info/" not in name]
    expected = expected_files(installed.checkout)
    assert missing_from(held, expected) == []
    assert missing_from(expected, held) == []
    assert {"anyshape/py.typed", "anyshape/cli/main.py", "anyshape/pages/AS102.md"} <= set(held)
    assert missing_from([name for name in held if "/capture/" not in name], expected) != []  # it can fail


def test_the_readme_example_runs_where_only_the_wheel_is(installed: Installed, tmp_path: Path) -> None:
    blocks = read_blocks((installed.checkout / "README.md").read_text(encoding="utf-8"))
    scripts = [block.text for block in blocks if block.language == "python"]
    printed = [block.text for block in blocks if block.language == "text"]
    (tmp_path / "model.py").write_text("".join(scripts), encoding="utf-8")
    done = installed.run("python", "model.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert normalised(done.stdout) == normalised("".join(printed))
    asked = "import anyshape, sys; print(anyshape.__file__); print(any('editable' in name for name in sys.modules))"
    file, is_editable = installed.run("python", "-c", asked, cwd=tmp_path).stdout.split()
    assert Path(file).is_relative_to(installed.environment) and is_editable == "False"


def test_the_command_line_runs_where_only_the_wheel_is(installed: Installed, tmp_path: Path) -> None:
    helped = installed.run("anyshape", "--help", cwd=tmp_path)
    assert helped.returncode == 0 and "anyshape export model.py -o m.onnx" in helped.stdout
    version = installed.wheel.name.split("-")[1]
    assert installed.run("anyshape", "--version", cwd=tmp_path).stdout == f"anyshape {version}\n"
    assert installed.run("python", "-m", "anyshape", "--version", cwd=tmp_path).stdout == f"anyshape {version}\n"
    assert installed.run("anyshape", "explain", "AS102", cwd=tmp_path).stdout.startswith("# AS102 size-baked-in")


def test_every_module_of_the_wheel_can_be_imported(installed: Installed, tmp_path: Path) -> None:
    code = (
        "import importlib, pkgutil, anyshape\n"
        "for each in pkgutil.walk_packages(anyshape.__path__, 'anyshape.'):\n"
        "    if not each.name.endswith('__main__'): importlib.import_module(each.name)\n"
    )
    done = installed.run("python", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
