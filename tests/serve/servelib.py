"""servelib.py - start `ron serve` on free ports with a data directory of its own, talk to it."""
import json
import os
import select
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

WAIT_S = 30  # for anything that must happen; only a failure takes that long


def until(condition, what):
    """Poll for a state of another process that cannot be waited for."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"never happened: {what}")


class Reply:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def json(self):
        return json.loads(self.body)

    def code(self):
        return self.json()["error"]["code"]


def ask(url, token=None, method="GET", body=None):
    request = urllib.request.Request(url, data=body, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
            return Reply(reply.status, reply.headers, reply.read())
    except urllib.error.HTTPError as reply:
        return Reply(reply.code, reply.headers, reply.read())


class Serve:
    """A running server; its stderr goes to a file, so that it never blocks on it."""

    def __init__(self, program, data, *options, env=None, pass_fds=(), admin="127.0.0.1:0"):
        self.program, self.data = program, data
        self.log_file = tempfile.TemporaryFile("w+b")
        where = [] if data is None else ["--data", data]
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--admin", admin, *where, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log_file,
            env=dict(os.environ, **(env or {})), pass_fds=pass_fds)
        self.output = b""
        lines = self.lines(3)
        assert lines is not None, ("it did not start", self.process.wait(WAIT_S), self.log())
        self.announced = lines
        self.api = lines[0].removeprefix("api ")
        self.admin = lines[1].removeprefix("admin ")

    def lines(self, count):
        while self.output.count(b"\n") < count:
            ready, _, _ = select.select([self.process.stdout], [], [], WAIT_S)
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                return None
            self.output += piece
        return self.output.decode().splitlines()[:count]

    def log(self):
        self.log_file.seek(0)
        return self.log_file.read().decode()

    def wait_log(self, text):
        until(lambda: text in self.log(), f"the log says {text!r}")

    def token(self):
        with open(os.path.join(self.data, "operator.token"), encoding="ascii") as file:
            return file.read().strip()

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        """Wait for the end: exit code and all output."""
        rest, _ = self.process.communicate(timeout=WAIT_S)
        self.output += rest
        return self.process.returncode

    def stop(self, number=signal.SIGTERM):
        self.send(number)
        return self.end()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            if failure[0] is None:
                assert self.stop() == 0, self.log()
            else:
                self.process.kill()
                self.process.communicate()
        if failure[0] is not None:
            print("# log:\n# " + self.log().replace("\n", "\n# "))
        self.log_file.close()


def refused(program, *options, **more):
    """A start that must fail: exit code and stderr."""
    done = subprocess.run([program, "serve", *options], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=WAIT_S, check=False, **more)
    assert done.stdout == "", done.stdout
    return done.returncode, done.stderr


def token_command(program, *arguments, text=None):
    done = subprocess.run([program, "token", *arguments], input=text, capture_output=True,
                          text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
