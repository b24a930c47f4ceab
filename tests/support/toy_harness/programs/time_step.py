"""Does what the name of the spec's case says, without torch; each behaviour is one function."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from perfkit.wire.environment import Environment
from perfkit.wire.payloads import StepTimes, Timing
from perfkit.wire.spec import Spec

_ENVIRONMENT = Environment(
    python="3", torch="none", triton=None, cuda=None, driver=None, cpu="toy", num_threads=1,
    device="cpu", gpu=None, fp32_precision="ieee", target_file="",
)  # fmt: skip
_AGES = "300"


def run(spec: Spec, *, slot_dir: Path) -> tuple[StepTimes, Environment]:
    """Misbehaves as asked, then answers unless that was prevented."""
    assert spec.case is not None
    behaviour: Callable[[Path], int | None] = _BEHAVIOURS[spec.case.name]
    num_samples = behaviour(slot_dir) or 1
    timing = Timing(
        direction="full", launch="launch", cache="warm", clock="perf_counter", samples_us=(1.5,) * num_samples
    )
    return StepTimes(timings=(timing,)), _ENVIRONMENT


def _say_pid(slot_dir: Path, name: str, pid: int) -> None:
    """Leaves a pid for the test, under its final name only once it is whole."""
    draft = slot_dir / f"{name}.tmp"
    draft.write_text(str(pid))
    draft.rename(slot_dir / f"{name}.pid")


def _hang(slot_dir: Path) -> None:
    _say_pid(slot_dir, "child", os.getpid())
    while True:
        time.sleep(1)


def _fork_sleeper() -> int:
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                time.sleep(1)
        finally:
            os._exit(0)
    return pid


def _fork(slot_dir: Path) -> None:
    _say_pid(slot_dir, "grandchild", _fork_sleeper())


def _popen(slot_dir: Path, **options: object) -> None:
    process = subprocess.Popen(["sleep", _AGES], **options)  # type: ignore[call-overload]
    _say_pid(slot_dir, "grandchild", process.pid)


def _popen_new_session(slot_dir: Path) -> None:
    _popen(slot_dir, start_new_session=True)


def _popen_bare_new_session(slot_dir: Path) -> None:
    """No marker in its environment, no session in common: only its ancestry gives it away."""
    _popen(slot_dir, start_new_session=True, env={})


def _popen_orphan(slot_dir: Path) -> None:
    """A daemon: its parent is dead and its session its own, so only the marker gives it away."""
    script = (
        "import os, pathlib, subprocess, sys\n"
        f"p = subprocess.Popen(['sleep', '{_AGES}'], start_new_session=True)\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "(folder / 'g.tmp').write_text(str(p.pid)); (folder / 'g.tmp').rename(folder / 'grandchild.pid')\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(slot_dir)], check=True)


def _result_fds() -> list[int]:
    """Every pipe of this process beyond the standard streams."""
    links = [p for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]
    return [int(p.name) for p in links if int(p.name) > 2 and "pipe:" in str(p.readlink())]


def _fork_holding_pipe(slot_dir: Path) -> None:
    (fd,) = _result_fds()
    _popen(slot_dir, pass_fds=(fd,))


def _then_hang(start: Callable[[Path], None]) -> Callable[[Path], None]:
    def behaviour(slot_dir: Path) -> None:
        start(slot_dir)
        _hang(slot_dir)

    return behaviour


def _raise(slot_dir: Path) -> None:
    raise ValueError("tokens must be\npositive")


def _exit_by_sys(slot_dir: Path) -> None:
    sys.exit(3)


def _interrupt(slot_dir: Path) -> None:
    raise KeyboardInterrupt


class OutOfMemoryError(RuntimeError):
    """Stands for torch.OutOfMemoryError."""


def _cuda_out_of_memory(slot_dir: Path) -> None:
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


def _allocate(slot_dir: Path) -> None:
    bytearray(1 << 60)


def _garbage(slot_dir: Path) -> None:
    for fd in (1, 2):
        os.write(fd, bytes(range(256)) * 4096)


def _leave(slot_dir: Path) -> None:
    os._exit(0)


def _segfault(slot_dir: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _kill_group(slot_dir: Path) -> None:
    _fork(slot_dir)
    os.killpg(0, signal.SIGKILL)


def _large_reply(slot_dir: Path) -> int:
    return 30_000_000 // 4


def _close_all(slot_dir: Path) -> None:
    os.closerange(0, 4096)


def _replace_all(slot_dir: Path) -> None:
    """Every descriptor becomes a file of the user, which must not receive the reply."""
    fds = [0, 1, 2, *_result_fds()]
    file = os.open(slot_dir / "user.txt", os.O_CREAT | os.O_WRONLY)
    for fd in fds:
        os.dup2(file, fd)


def _not_json(slot_dir: Path) -> None:
    (fd,) = _result_fds()
    os.write(fd, b"\xff\x00 this is no JSON")
    os._exit(0)


def _torn_reply(slot_dir: Path) -> None:
    (fd,) = _result_fds()
    os.write(fd, b'{"version": 1, "payl')
    os.kill(os.getpid(), signal.SIGKILL)


def _other_version(slot_dir: Path) -> None:
    (fd,) = _result_fds()
    os.write(fd, b'{"version": 99}')
    os._exit(0)


def _fork_and_return(slot_dir: Path) -> None:
    """Both processes come back from the target; only one may answer."""
    os.fork()


def _atexit_hang(slot_dir: Path) -> None:
    import atexit
    import threading

    atexit.register(time.sleep, 300)
    threading.Thread(target=time.sleep, args=(300,)).start()


def _fill_caches(slot_dir: Path) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        folder = Path(os.environ[name])
        assert not folder.exists()
        folder.mkdir(parents=True)
        (folder / "kernel.bin").write_bytes(b"x")


def _tell_world(slot_dir: Path) -> None:
    """Prints what a target would see, for the test to read from the log."""
    folders = [p for p in sys.path if "toy" in p]
    sys.stdout.write(
        f"argv={sys.argv[1:]} folders={folders} fds={len(_result_fds())} stdin={os.read(0, 1)!r}\n"
    )


def _nothing(slot_dir: Path) -> None:
    return None


_BEHAVIOURS: dict[str, Callable[[Path], int | None]] = {
    "answer": _nothing,
    "tell_world": _tell_world,
    "raise": _raise,
    "sys_exit": _exit_by_sys,
    "interrupt": _interrupt,
    "cuda_out_of_memory": _cuda_out_of_memory,
    "allocate": _allocate,
    "garbage": _garbage,
    "os_exit": _leave,
    "segfault": _segfault,
    "kill_group": _kill_group,
    "large_reply": _large_reply,
    "close_all": _close_all,
    "replace_all": _replace_all,
    "not_json": _not_json,
    "torn_reply": _torn_reply,
    "other_version": _other_version,
    "fork_and_return": _fork_and_return,
    "atexit_hang": _atexit_hang,
    "fill_caches": _fill_caches,
    "hang": _hang,
    "fork": _fork,
    "popen": _popen,
    "new_session": _popen_new_session,
    "bare_new_session": _popen_bare_new_session,
    "orphan": _popen_orphan,
    "holding_pipe": _fork_holding_pipe,
    "fork_then_hang": _then_hang(_fork),
    "popen_then_hang": _then_hang(_popen),
    "new_session_then_hang": _then_hang(_popen_new_session),
    "bare_new_session_then_hang": _then_hang(_popen_bare_new_session),
    "orphan_then_hang": _then_hang(_popen_orphan),
    "fill_caches_then_hang": _then_hang(_fill_caches),
    "holding_pipe_then_hang": _then_hang(_fork_holding_pipe),
}
