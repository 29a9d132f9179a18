"""chaoslib.py - ways to make a running ledger's world worse, and to look at it from outside."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "ledger-api"))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
from apilib import RON, WAIT_S, Ledger, Serve, Skip, unless_busy, until  # noqa: E402

FDATASYNC = "75"    # of x86-64, as /proc/PID/task/TID/syscall says it


def need_strace():
    if shutil.which("strace") is None:
        raise Skip("strace is not installed")
    probe = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True,
                           check=False)
    if probe.returncode != 0:
        raise Skip("strace may not trace here")


@contextlib.contextmanager
def injected(ledger, what, path=None):
    """While inside, strace has its way with the system calls of the ledger, or those on a file."""
    call = what.split(":")[0]
    only = ["-P", path] if path else []
    with subprocess.Popen(["strace", "-f", "-e", f"trace={call}", "-e", f"inject={what}", *only,
                           "-o", "/dev/null", "-p", str(ledger.process.pid)],
                          stderr=subprocess.PIPE, text=True) as tracer:
        said = tracer.stderr.readline()
        if "attached" not in said:
            tracer.wait(WAIT_S)
            raise Skip(f"strace may not attach here: {said.strip()}")
        try:
            yield tracer
        finally:
            if tracer.poll() is None:
                tracer.send_signal(signal.SIGINT)
            tracer.communicate(timeout=WAIT_S)


def is_syncing(pid):
    """Is a thread inside fdatasync?"""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/task/{task}/syscall", encoding="ascii") as file:
                    if file.read().split()[0] == FDATASYNC:
                        return True
    return False


@contextlib.contextmanager
def small_disk(home, size="8m"):
    """A file system of its own."""
    mount = os.path.join(home, "disk")
    os.mkdir(mount)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", mount],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip("no tmpfs may be mounted here: " + done.stderr.strip())
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


class Born(Ledger):
    """A ledger that nobody waits for, with the token of an earlier life; maybe under strace."""

    def __init__(self, home, token, inject=None):  # pylint: disable=super-init-not-called
        wrapper = []
        if inject:
            # -D: the ledger is our child, and the tracer its grandchild.
            wrapper = ["strace", "-D", "-f", "-e", f"trace={inject.split(':')[0]}", "-e",
                       f"inject={inject}", "-o", "/dev/null"]
        Serve.__init__(self, RON, os.path.join(home, "data"), "--roles", "ledger", wrapper=wrapper)
        self.all = token

    def wait_ready(self):
        until(lambda: self.ask("GET", "/readyz?role=ledger").status == 200, "ready again")


def is_over(ledger):
    """Damage was found in an earlier life, and the log replays again."""
    return (ledger.get("/recovery").json().get("damage") or {}).get("over")


def acknowledge(ledger):
    """The operator knows of the damage; the log replays again."""
    return unless_busy(lambda: ledger.post("/admin/ledger/acknowledge", {"ack": "INC-2"},
                                           admin=True), "the log was read")


def kill(ledger, tracer=None):
    """SIGKILL; a tracer that delays a call would keep the process until that is over."""
    ledger.process.kill()
    if tracer:
        tracer.kill()
    ledger.process.communicate()


def figures(ledger):
    """Every series of /metrics, by its whole name."""
    text = ledger.ask("GET", "/metrics", admin=True).body.decode()
    return {name: float(value) for name, value in re.findall(r"^([^#\s][^\n]*) (\S+)$", text, re.M)}


def resident_kib(ledger):
    """Resident memory: without the core's tables that are used at random, and in them. These are
    made at the start for millions of entries and touched huge page by huge page, as the kernel was
    told to. From one reading: they are touched while it goes on."""
    resident = others = tables = 0
    with open(f"/proc/{ledger.process.pid}/smaps", encoding="ascii") as file:
        for line in file:
            if line.startswith("Rss:"):
                resident = int(line.split()[1])
            elif line.startswith("VmFlags:"):
                if "hg" in line.split():
                    tables += resident
                else:
                    others += resident
    return others, tables


def addresses_of(ledger):
    """Bytes of the address space in use."""
    with open(f"/proc/{ledger.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def is_sanitized(ledger):
    """A sanitizer takes all addresses and keeps what was freed: memory says nothing then."""
    return addresses_of(ledger) > 1 << 40


def open_sockets(ledger):
    """Listeners and connections; files are opened when they are first read."""
    folder, count = f"/proc/{ledger.process.pid}/fd", 0
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(os.path.join(folder, name)).startswith("socket:")
    return count
