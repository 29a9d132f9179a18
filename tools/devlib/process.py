"""process.py - run a command within bounds: seconds, bytes of output, and nothing left behind.

A child runs in a session of its own, so that ending it ends its children too.
"""
import os
import selectors
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

OUTPUT_SIZE_MAX = 16 << 20  # of stdout and stderr together
READ_SIZE = 65536
TICK_S = 0.1


@dataclass
class Result:
    """How a command ended. `problem` is None when it ended by itself, whatever its status."""
    status: int = 0  # exit status; negative is the signal, as in subprocess
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of it and of the children it waited for
    stdout: str = ""
    stderr: str = ""
    problem: str | None = None

    def ending(self):
        """One phrase for a person: "exit 1", "killed by SIGABRT", "still running after 60 s"."""
        if self.problem is not None:
            return self.problem
        if self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}"
        return f"exit {self.status}"


class Stopped(Exception):
    """The runner was told to stop; no further command starts."""


class Runner:
    """Starts commands, from any thread; stop() ends them all, and later ones never start."""

    def __init__(self):
        self._lock = threading.Lock()
        self._running = set()
        self._stopped = False

    def stop(self):
        with self._lock:
            self._stopped = True
            for child in self._running:
                kill_group(child)

    def run(self, command, cwd, timeout_s, env=None):
        """Run to the end, or kill at timeout_s or OUTPUT_SIZE_MAX. Raises Stopped."""
        start = time.monotonic()
        with self._lock:
            if self._stopped:
                raise Stopped()
            try:
                child = subprocess.Popen(
                    command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, start_new_session=True)
            except OSError as error:
                return Result(status=127, problem=f"does not start: {error}")
            self._running.add(child)
        try:
            problem, out, err = collect(child, start + timeout_s, timeout_s)
        finally:
            kill_group(child)
            with self._lock:  # once reaped, its id may be another's: stop() must not see it
                usage = reap(child)
                self._running.discard(child)
        if self._stopped:
            raise Stopped()
        return Result(child.returncode, time.monotonic() - start, usage.ru_utime + usage.ru_stime,
                      out, err, problem)


def kill_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def reap(child):
    """Wait for its end, as child.wait() does, and return what it used."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage


def collect(child, deadline, timeout_s):
    """Read both pipes until they close. Returns the problem, if any, and what was read."""
    taken = {child.stdout: bytearray(), child.stderr: bytearray()}
    problem = None
    with selectors.DefaultSelector() as selector:
        for pipe in taken:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(min(TICK_S, max(0.0, deadline - time.monotonic())))
            for key, _ in ready:
                data = os.read(key.fd, READ_SIZE)
                taken[key.fileobj] += data
                if not data:
                    selector.unregister(key.fileobj)
            if sum(map(len, taken.values())) > OUTPUT_SIZE_MAX:
                problem = f"printed more than {OUTPUT_SIZE_MAX} bytes"
                break
            if time.monotonic() >= deadline:
                problem = f"still running after {timeout_s:g} s"
                break
            if not ready and exited(child):
                break  # a grandchild holds the pipes: it is not waited for
    while problem is None and not exited(child):  # closed its output, still runs
        if time.monotonic() >= deadline:
            problem = f"still running after {timeout_s:g} s"
        time.sleep(0.01)
    for pipe in taken:
        pipe.close()
    out, err = (bytes(text).decode("utf-8", "replace") for text in taken.values())
    return problem, out, err


def exited(child):
    """True once the child has ended; leaves it unreaped, so that its group id stays taken."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
