"""Data that sandboxes read: what each runtime shows, to whom, and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.uid_level import start_uid_worker
from toolenvs import engine
from toolenvs.channel import ChannelWorker
from toolenvs.drivers import run
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.protocols import Worker
from toolenvs.runtimes.docker import Docker
from toolenvs.runtimes.local import Local
from toolenvs.runtimes.scripted import Scripted
from toolenvs.supervisor import preload
from toolenvs.testing import DATA_PROBES, PROBE_DATA, Probe, check_sandbox, write_probe_data
from toolenvs.types import Limits

from .conftest import DOCKER, DOCKER_ALONE, DOCKER_RUNSC, DOCKER_STREAM, LOCAL, make_runtime, start
from .test_levels import engine_allows

LEVEL_U = pytest.param("docker-U", marks=pytest.mark.docker)
LEVEL_N = pytest.param("docker-N", marks=pytest.mark.docker)
LEVEL_R = pytest.param("docker-R", marks=pytest.mark.docker)
BOTH = pytest.mark.parametrize(
    "make",
    [
        pytest.param(Local, marks=pytest.mark.local, id="local"),
        pytest.param(Docker, marks=pytest.mark.docker, id="docker"),
    ],
)
NOT_HELD = {
    ("docker-runsc", "other_data_is_out_of_reach"): "gVisor has no Landlock",
    ("docker-runsc", "each_sandbox_has_its_own_data"): "gVisor has no Landlock",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of the probes."""
    made = tmp_path_factory.mktemp("data")
    write_probe_data(made)
    return made


@pytest.fixture(
    scope="module",
    params=[LOCAL, DOCKER, DOCKER_STREAM, DOCKER_ALONE, LEVEL_U, LEVEL_N, LEVEL_R, DOCKER_RUNSC],
)
def worker(request: pytest.FixtureRequest, folder: Path) -> Iterator[Worker]:
    """A worker of each runtime that shows the data of the probes."""
    options: dict[str, Any] = {"preload": "standard", "data": {PROBE_DATA: folder}}
    name, _, level = request.param.partition("-")
    if level in ("U", "N", "R"):
        if not engine_allows(level):
            pytest.skip(f"the engine does not allow level {level}")
        started = start(make_runtime(name, level=level, **options))
    else:
        started = start(make_runtime(request.param, **options))
    yield started
    run(started.stop())


@pytest.mark.parametrize("probe", DATA_PROBES, ids=lambda probe: probe.__name__)
def test_data_is_read_by_whom_it_is_for(
    worker: Worker, probe: Probe, request: pytest.FixtureRequest
) -> None:
    """The promise is the probe's docstring."""
    reason = NOT_HELD.get((request.node.callspec.params["worker"], probe.__name__))
    if reason:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    run(probe(worker))


@pytest.mark.skipif(os.geteuid() != 0, reason="makes user ids")
@pytest.mark.local
@pytest.mark.parametrize("probe", DATA_PROBES, ids=lambda probe: probe.__name__)
def test_user_ids_alone_let_each_sandbox_read_its_data(folder: Path, probe: Probe) -> None:
    """What containers do at level U, without an engine."""
    worker = start_uid_worker(Limits(timeout_s=5.0), data={PROBE_DATA: str(folder)})
    run(probe(worker))
    run(worker.stop())


@pytest.mark.local
def test_the_suite_checks_data_too(folder: Path) -> None:
    """``check_sandbox`` names the promise about data that a runtime breaks."""

    class Open(Local):
        """Shows every sandbox all data."""

        async def start(self) -> ChannelWorker:
            worker = await super().start()
            spawn = worker.spawn

            async def spawn_with_all(**given: Any) -> Any:
                return await spawn(**given | {"data": [PROBE_DATA]})

            worker.spawn = spawn_with_all  # type: ignore[method-assign]
            return worker

    broken = Open(capacity=2, data={PROBE_DATA: folder})
    with pytest.raises(AssertionError, match="other_data_is_out_of_reach: Neither a neighbour"):
        check_sandbox(broken, python=False, data=True)


@BOTH
def test_whom_permissions_keep_out_is_told_what_to_do(
    make: Callable[..., Local | Docker], tmp_path: Path
) -> None:
    """The file or folder that others cannot read is named, with the command that lets them."""
    if os.geteuid() != 0 and make is Local:
        pytest.skip("there the sandboxes' user is the one who runs this")
    (tmp_path / "shut").mkdir()
    for place in ("own.txt", "shut/a.txt", "open.txt"):
        (tmp_path / place).write_text("x")
    tmp_path.chmod(0o755)
    (tmp_path / "open.txt").chmod(0o644)
    (tmp_path / "own.txt").chmod(0o640)
    (tmp_path / "shut").chmod(0o700)
    worker = start(make(data={"d": tmp_path}, preload="standard"))
    for place, advice in {
        "d/own.txt": r"chmod o\+r .*own.txt",
        "d/shut/a.txt": r"o\+x .*shut",
    }.items():
        with pytest.raises(RuntimeFailure, match=advice) as refused:
            run(worker.spawn(seed=0, files={}, data=[place]))
        assert refused.value.kind == "data"
    sandbox = run(worker.spawn(seed=0, files={}, data=["d/open.txt"]))
    assert run(sandbox.execute("print(open('/data/d/open.txt').read())")).stdout == "x\n"
    run(worker.stop())


@BOTH
def test_a_folder_that_is_not_there_is_named(
    make: Callable[..., Local | Docker], tmp_path: Path
) -> None:
    """A worker does not start without its data, and nothing is left."""
    before = len(engine.leftovers()) if make is Docker else 0
    with pytest.raises(RuntimeFailure, match=r"no folder .*/nowhere .*'d'") as refused:
        run(make(data={"d": tmp_path / "nowhere"}).start())
    assert refused.value.kind == "data"
    assert make is Local or len(engine.leftovers()) == before


@pytest.mark.parametrize("make", [Local, Docker])
def test_names_and_folders_are_checked(make: Callable[..., object], tmp_path: Path) -> None:
    """A name that could lead elsewhere, and a file in place of a folder, are refused at once."""
    for name in ("", "..", "a/b", "/etc", ".hidden", "a b", "x" * 65):
        with pytest.raises(UsageError, match="cannot name a folder"):
            make(data={name: tmp_path})
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="which is no folder"):
        make(data={"d": tmp_path / "file"})
    with pytest.raises(UsageError, match="it is the path of a folder"):
        make(data={"d": 3})


@BOTH
def test_where_the_data_lies_is_no_part_of_the_fingerprint(
    make: Callable[..., Local | Docker], tmp_path: Path
) -> None:
    """Two machines keep it at different paths and share their recordings."""
    assert make(data={"d": tmp_path}).fingerprint() == make().fingerprint()


@BOTH
def test_data_inside_the_machine_s_own_temporary_folder_is_shown(
    make: Callable[..., Local | Docker], tmp_path: Path
) -> None:
    """Two folders of any depth appear under their names, whatever the machine calls them."""
    folders = {"a": tmp_path / "deep" / "er", "b.2": tmp_path / "with a space"}
    for name, folder in folders.items():
        folder.mkdir(parents=True, mode=0o755)
        (folder / "f").write_text(name)
    worker = start(make(data=folders, preload="standard"))
    sandbox = run(worker.spawn(seed=0, files={}, data=["a/f", "b.2/f"]))
    code = "print(*(open(f'/data/{name}/f').read() for name in ('a', 'b.2')))"
    assert run(sandbox.execute(code)).stdout == "a b.2\n"
    run(worker.stop())


@pytest.mark.local
def test_without_landlock_data_is_read_and_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mount is read-only by itself; a bad place is still told."""
    monkeypatch.setattr("toolenvs.channel.BOOT", ("-s", "-P", "-c", _NO_LANDLOCK))
    worker = start(Local(data={PROBE_DATA: folder}, preload="standard"))
    assert isinstance(worker, ChannelWorker)
    assert worker.hello["landlock"] == 0
    for probe in DATA_PROBES:
        if probe.__name__ not in ("other_data_is_out_of_reach", "each_sandbox_has_its_own_data"):
            run(probe(worker))
    run(worker.stop())


_NO_LANDLOCK = """
import sys, types
sys.modules["supervisor"] = types.ModuleType("supervisor")
sys.modules["supervisor"].__path__ = ["/opt/supervisor"]
from supervisor import landlock, server
landlock.version = lambda: 0
server.main(sys.argv[2:])
"""  # boot.py on a kernel without it


@BOTH
def test_the_flavour_for_databases_is_loaded(make: Callable[..., Local | Docker]) -> None:
    """SQLAlchemy and the package that answers requests are there before the first call."""
    worker = start(make(preload="sql", **({"image": "sql"} if make is Docker else {})))
    code = (
        "import sys\n"
        "print({'sqlalchemy.dialects.sqlite', 'toolenvs_database'} <= set(sys.modules))\n"
        "import sqlalchemy, toolenvs_database\n"
        "print(hasattr(toolenvs_database, 'answer'), 'numpy' in sys.modules)\n"
        "with sqlalchemy.create_engine('sqlite://').connect() as connection:\n"
        "    print(connection.execute(sqlalchemy.text('SELECT 6 * 7')).scalar())"
    )
    sandbox = run(worker.spawn(seed=0, files={}))
    result = run(sandbox.execute(code))
    assert result.stdout == "True\nTrue False\n42\n", result
    run(worker.stop())


def test_the_image_says_what_is_loaded() -> None:
    """Image and flavour go together where only one is named."""
    assert (Docker().preload, Docker(image="sql").preload) == ("sympy", "sql")
    assert (Local().image, Local(preload="sql").image, Local(image="sql").preload) == (
        "python",
        "sql",
        "sql",
    )
    with pytest.raises(UsageError, match="image is 'cobol'"):
        Local(image="cobol")  # type: ignore[arg-type]


def test_a_flavour_without_what_it_is_for_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each query would meet a missing module as if that were its own fault."""
    monkeypatch.setitem(preload.MODULES, "sql", "toolenvs_database")
    with pytest.raises(ImportError, match="toolenvs_database"):
        preload.load("sql")


def test_scripted_sandboxes_record_their_data() -> None:
    """Tests of what lies above see which places were asked for; the same shapes are refused."""
    runtime = Scripted(default="")
    worker = run(runtime.start())
    run(run(worker.spawn(seed=0, files={}, data=["spider/a.sqlite"])).execute("x"))
    assert runtime.calls[0].data == ("spider/a.sqlite",)
    for places in (["/a"], ["a/../b"], [""], "a/b"):
        with pytest.raises(UsageError):
            run(worker.spawn(seed=0, files={}, data=places))
