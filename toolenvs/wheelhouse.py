"""The packages of a sandbox image: fetched on the host for the image's Python, then unpacked.

So a build needs no network, and a machine without one needs only a folder of wheels.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from toolenvs.errors import RuntimeFailure, UsageError


class PythonTarget(msgspec.Struct, frozen=True):
    """The Python that packages are for.

    Attributes:
        version: ``"3.11"``.
        machine: ``"x86_64"`` or ``"aarch64"``.
        glibc: minor version of the C library: 36 for 2.36.
    """

    version: str
    machine: str
    glibc: int

    @classmethod
    def parse(cls, line: str) -> PythonTarget:
        """Read what ``PROBE`` printed.

        Raises:
            UsageError: It is no CPython on Linux with glibc.
        """
        words = line.split()
        if len(words) != 4 or words[0] != "CPython" or not words[3].startswith("2."):
            raise UsageError(
                f"the base image's Python says {line.strip()!r}; it must be a CPython on a Linux "
                "with glibc, such as python:3.11-slim-bookworm (not alpine)."
            )
        return cls(words[1], words[2], int(words[3].split(".")[1]))


PROBE = (
    "import platform as p; v = p.python_version_tuple();"
    "print(p.python_implementation(), v[0] + '.' + v[1], p.machine(), p.libc_ver()[1] or '-')"
)
"""A program that prints what ``PythonTarget.parse`` reads."""


def fetch(
    lock: Path,
    target: PythonTarget,
    *,
    cache: Path,
    source: Path | None = None,
    progress: Callable[[str], None],
) -> list[Path]:
    """Return the wheels that a lock file names, downloading them at most once.

    Args:
        lock: pip's requirements with exact versions and hashes.
        target: the Python they are for; it need not be this one.
        cache: where they are kept, in one folder for each lock and target.
        source: a folder of wheels to take instead of any package index.
        progress: told what goes on.

    Raises:
        RuntimeFailure: ``image_missing``: pip is absent or could not get them.
    """
    key = hashlib.sha256(lock.read_bytes() + repr(target).encode()).hexdigest()[:16]
    kept = cache / "wheels" / key
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        progress(f"fetching packages for Python {target.version} on {target.machine}")
        with tempfile.TemporaryDirectory(dir=kept.parent) as name:
            _download(lock, target, Path(name), source)
            complete = Path(name) / "complete"
            complete.mkdir()
            for wheel in Path(name).glob("*.whl"):
                wheel.rename(complete / wheel.name)
            if not kept.is_dir():
                complete.rename(kept)  # whole or not at all
    return sorted(kept.glob("*.whl"))


def unpacked(wheel: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield what a wheel puts into ``site-packages``: relative path and content.

    The packages' own tests are left out: a sixth of the size, and nothing imports them.

    Raises:
        UsageError: A path in the wheel leads out of the folder.
    """
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            path = PurePosixPath(item.filename)
            if path.parts[0].endswith(".data"):  # purelib and platlib belong here; scripts do not
                if path.parts[1] not in ("purelib", "platlib"):
                    continue
                path = PurePosixPath(*path.parts[2:])
            if item.is_dir() or "tests" in path.parts[:-1]:
                continue
            if path.is_absolute() or ".." in path.parts:
                raise UsageError(f"{wheel.name}: {item.filename!r} leads out of its folder.")
            yield path, archive.read(item)


def _download(lock: Path, target: PythonTarget, folder: Path, source: Path | None) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    command += ["--no-deps", "--require-hashes", "--requirement", str(lock), "--no-input"]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", target.version]
    command += [f"--abi={abi}" for abi in (f"cp{target.version.replace('.', '')}", "abi3", "none")]
    command += [f"--platform={tag}" for tag in _platforms(target)]
    if source is not None:
        command += ["--no-index", "--find-links", str(source)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, env=_environment()
    )
    if done.returncode == 0:
        return
    if "No module named pip" in done.stderr:
        remedy = f"{sys.executable} has no pip: run `{sys.executable} -m ensurepip`."
    else:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        remedy = " ".join(errors[-2:]) or done.stderr.strip()[-300:]
    raise RuntimeFailure(
        "image_missing",
        f"The packages of {lock} were not fetched for Python {target.version}: {remedy} Without "
        "a package index, set TOOLENVS_WHEELHOUSE to a folder that holds these wheels.",
    )


def _platforms(target: PythonTarget) -> list[str]:
    """Every platform tag that the image's C library satisfies, newest first."""
    minors = range(target.glibc, 16, -1)
    return [
        *(f"manylinux_2_{minor}_{target.machine}" for minor in minors),
        f"manylinux2014_{target.machine}",
        "any",
    ]


def _environment() -> dict[str, str]:
    """The user's own settings of pip stay; what would make it refuse to download does not."""
    unwanted = {"PIP_REQUIRE_VIRTUALENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX"}
    return {key: value for key, value in os.environ.items() if key not in unwanted}
