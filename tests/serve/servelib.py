"""servelib.py - start `ron serve` on free ports with a data directory of its own, talk to it."""
import http.server
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

WAIT_S = 60  # for anything that must happen; only a failure takes that long
FAILURE_BYTES, LOG_BYTES = 2000, 20_000  # as much is shown when a test fails
# A busy machine may take longer than the usual seconds for anything, and a quick one asks more than
# the usual number of times in a second; who tests a bound sets it (None: as it is by itself).
PATIENT = {"RON_SERVER__HEAD_TIMEOUT": "60s", "RON_SERVER__BODY_TIMEOUT": "60s",
           "RON_SERVER__REQUEST_TIMEOUT": "60s", "RON_LEDGER__COMMIT__MAX_LAG": "60s",
           "RON_LEDGER__DRAIN_TIMEOUT": "30s",
           "RON_SERVER__READS_PER_S": "0", "RON_LEDGER__READS_PER_S": "0"}


def until(condition, what):
    """Poll for a state of another process that cannot be waited for."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"never happened: {what}")


def unless_busy(ask_once, what):
    """The reply, asked again while it is 503: for what is refused until a start is over."""
    return until(lambda: (lambda reply: reply if reply.status != 503 else None)(ask_once()), what)


class Reply:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def json(self):
        return json.loads(self.body)

    def code(self):
        return self.json()["error"]["code"]


def ask(url, token=None, method="GET", body=None, fields=None):
    request = urllib.request.Request(url, data=body, method=method, headers=fields or {})
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

    def __init__(self, program, data, *options, env=None, pass_fds=(), admin="127.0.0.1:0",
                 wrapper=()):
        self.program, self.data = program, data
        self.log_file = tempfile.TemporaryFile("w+b")
        where = [] if data is None else ["--data", data]
        settings = os.environ | PATIENT | (env or {})
        self.process = subprocess.Popen(
            [*wrapper, program, "serve", "--listen", "127.0.0.1:0", "--admin", admin, *where,
             *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log_file,
            env={name: value for name, value in settings.items() if value is not None},
            pass_fds=pass_fds)
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

    def wait_ready(self):
        until(lambda: ask(self.admin + "/readyz").status == 200, "every role is ready")

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
            # First what went wrong: of a long log, the beginning may be all that is kept.
            print("# " + repr(failure[1])[:FAILURE_BYTES].replace("\n", "\n# "))
            print("# log:\n# " + self.log()[-LOG_BYTES:].replace("\n", "\n# "))
        self.log_file.close()


class Collector:
    """Takes OTLP/HTTP, checks it, keeps the spans. Modes: take, refuse (500), stall, down."""

    def __init__(self, mode="take"):
        self.bodies, self.wrong, self.released = [], [], threading.Event()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/json":
                    collector.wrong.append((self.path, dict(self.headers)))
                if mode == "stall":
                    collector.released.wait(WAIT_S)
                    return
                collector.bodies.append(body)
                self.send_response(200 if mode == "take" else 500)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler,
                                                      bind_and_activate=False)
        self.server.server_bind()
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # connections that the server gave up
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        if mode != "down":  # else nobody listens there
            self.server.server_activate()
            self.thread.start()

    def spans(self):
        """All of them, each member checked; attributes as a dictionary, times as numbers."""
        found = []
        for body in list(self.bodies):
            document = json.loads(body)
            assert set(document) == {"resourceSpans"}
            resource, = document["resourceSpans"]
            assert resource["resource"] == {"attributes": [
                {"key": "service.name", "value": {"stringValue": "ron"}}]}
            scope, = resource["scopeSpans"]
            assert scope["scope"] == {"name": "ron"} and len(scope["spans"]) <= 128
            for span in scope["spans"]:
                assert set(span) <= {"traceId", "spanId", "parentSpanId", "name", "kind", "status",
                                     "startTimeUnixNano", "endTimeUnixNano", "attributes"}, span
                for name, size in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
                    text = span.get(name, "1" * size)
                    assert re.fullmatch("[0-9a-f]{%d}" % size, text) and int(text, 16), span
                assert span["kind"] == 2 and span.get("status") in (None, {"code": 2})
                span["start"], span["end"] = (int(span[name]) for name in
                                              ("startTimeUnixNano", "endTimeUnixNano"))
                span["attributes"] = {
                    item["key"]: int(item["value"]["intValue"]) if "intValue" in item["value"]
                    else item["value"]["stringValue"] for item in span["attributes"]}
                found.append(span)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.released.set()
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
        self.server.server_close()
        if failure[0] is None:
            assert not self.wrong, self.wrong


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


def certificate(home, name):
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    files = [os.path.join(home, f"{name}.{end}") for end in ("pem", "key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout",
                    files[1]], check=True, capture_output=True, timeout=60)
    os.chmod(files[1], 0o600)
    return files
