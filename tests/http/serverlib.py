"""serverlib.py - start the test server, talk to it in bytes."""
import re
import socket
import subprocess
import time

WAIT_S = 60  # for anything that must happen; only a failure takes that long


class Server:
    """build/tests/http/http_server with options; stopped by the end of its input."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.admin = self.process.stdout.readline().strip()
        assert self.url, "the server did not start"
        self.local = self.process.stdout.readline().strip() if "--unix" in options else None
        self.port = int(self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        try:
            rest, _ = self.process.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        if failure[0] is None:
            assert self.process.returncode == 0, (self.process.returncode, rest)
            assert rest.endswith("stopped\n"), rest

    def tell(self, command):
        self.process.stdin.write(command)
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def stats(self):
        words = self.tell("s").split()
        return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}

    def wait_empty(self):
        """Until there is no connection and no byte is held: a request or stream whose connection is
        gone keeps its bytes until whoever has it ends it."""
        end = time.monotonic() + WAIT_S
        while (stats := self.stats())["open"] > 0 or stats["held"] > 0:
            assert time.monotonic() < end, stats
            time.sleep(0.005)
        return stats

    def connect(self, timeout=WAIT_S):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Reply:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body


class Reader:
    """Replies from a connection, one after the other."""

    def __init__(self, connection):
        self.connection, self.bytes, self.ended = connection, b"", False

    def more(self):
        try:
            piece = self.connection.recv(65536)
        except ConnectionResetError:
            piece = b""
        self.ended = self.ended or piece == b""
        self.bytes += piece

    def reply(self, head_only=False):
        """The next reply; None when the server closed without a word."""
        while True:
            while b"\r\n\r\n" not in self.bytes:
                if self.ended:
                    assert self.bytes == b"", self.bytes
                    return None
                self.more()
            head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
            lines = head.decode("ascii").split("\r\n")
            status = int(re.fullmatch(r"HTTP/1\.1 (\d{3}) .+", lines[0]).group(1))
            if status != 100:
                break
        fields = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            assert name.lower() not in fields, line
            fields[name.lower()] = value
        length = 0 if head_only else int(fields.get("content-length", 0))
        while len(self.bytes) < length:
            assert not self.ended, "the body is cut"
            self.more()
        body, self.bytes = self.bytes[:length], self.bytes[length:]
        return Reply(status, fields, body)

    def closed(self):
        """Does the server close now?"""
        while not self.ended:
            self.more()
        return self.bytes == b""


def wait_until(condition, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def tap(cases):
    """Run the functions, print TAP, return the exit code."""
    failures = 0
    print(f"1..{len(cases)}")
    for number, (name, function) in enumerate(cases, 1):
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Exception as failure:  # pylint: disable=broad-except
            failures += 1
            print(f"not ok {number} - {name}")
            print("# " + f"{type(failure).__name__}: {failure}".replace("\n", "\n# "), flush=True)
    return 1 if failures else 0
