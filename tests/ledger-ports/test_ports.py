#!/usr/bin/env python3
"""test_ports.py DRIVER - the ledger's remote checks over real sockets; TAP.

Method: a stub in Python stands for KMS, policy or wallet and misbehaves byte by byte; the driver
(ports_driver.c) asks. Time is only looked at coarsely; its rules are models/ledger_checks.c's.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

DRIVER = sys.argv[1] if len(sys.argv) > 1 else "build/tests/ledger-ports/ports_driver"
COARSE_S = 60
CAPABILITY = "k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"
YES = {"ok": True, "kid": "k1", "capability_ref": CAPABILITY, "epoch": 1}
PATHS = {"kms": "/verify", "policy": "/guard", "wallet": "/spend"}
RETRIES = {"kms": 2, "policy": 1, "wallet": 1}
REFUSAL = {"kms": "Unauthorized", "policy": "PolicyDenied", "wallet": "Conflict"}
CASES = []


def case(function):
    CASES.append(function)
    return function


def reply(body, status="200 OK", size=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status.encode(), len(data) if size is None else size, data)


class Stub:
    """An upstream: answer(connection, stub) for each request; its return value closes."""

    def __init__(self, answer, path=None):
        if path is None:
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
            self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.listener.listen()
            self.url = "unix:" + path
        self.answer, self.requests, self.released = answer, [], threading.Event()
        self.lock = threading.Lock()
        self.connections = 0  # with a request: a stranger may knock here
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            data, first = b"", True
            try:
                while True:
                    while b"\r\n\r\n" not in data:
                        more = connection.recv(65536)
                        if not more:
                            return
                        data += more
                    head, data = data.split(b"\r\n\r\n", 1)
                    fields = dict(line.lower().split(b": ", 1)
                                  for line in head.split(b"\r\n")[1:])
                    size = int(fields[b"content-length"])
                    with self.lock:
                        self.connections += first
                    first = False
                    while len(data) < size:
                        data += connection.recv(65536)
                    self.requests.append((head.split(b"\r\n")[0].decode(), json.loads(data[:size])))
                    data = data[size:]
                    if self.answer(connection, self):
                        return
            except OSError:
                return


class Driver:
    def __init__(self, port, url, attempt_ms=30000, half_open_ms=600000, retries=None,
                 in_flight=400):
        arguments = [DRIVER, port, url, str(attempt_ms),
                     str(RETRIES[port] if retries is None else retries), str(half_open_ms),
                     str(in_flight)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        try:
            rest, _ = self.process.communicate(timeout=COARSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        if failure[0] is None:
            assert self.process.returncode == 0, (self.process.returncode, rest)
            assert rest.endswith("ended\n"), rest

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, deadline_ms=60000):
        return self.say("ask %d" % deadline_ms)


def until(condition, what):
    end = time.monotonic() + COARSE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def asked(stub, count):
    """So many requests came; a try may be given up before the stub has read it."""
    until(lambda: len(stub.requests) >= count, "%d of %d" % (len(stub.requests), count))
    assert len(stub.requests) == count, len(stub.requests)


def send(data, close=False):
    def answer(connection, _stub):
        connection.sendall(data)
        return close
    return answer


def stall(_connection, stub):
    stub.released.wait(60)
    return True


def close_mid_body(connection, _stub):
    connection.sendall(reply(YES)[:-5])
    return True


def stall_mid_body(connection, stub):
    connection.sendall(reply(YES)[:-5])
    stub.released.wait(60)
    return True


def drip(connection, stub):
    for byte in reply(YES):
        connection.sendall(bytes([byte]))
        if stub.released.wait(0.2):
            break
    return True


def close_at_once(_connection, _stub):
    return True


@case
def each_port_asks_its_question_and_takes_a_yes():
    who = {"kid": "k1", "capability_ref": CAPABILITY, "tenant": "0", "caller": "direct",
           "command": "ingest"}
    leg = {"asset": "roc", "amount": "40"}
    expected = {
        "kms": who,
        "policy": {**who, "entries": [{"kind": "Transfer", "debit": "alice", "credit": "bob",
                                       **leg}]},
        "wallet": {**who, "idem_key": "", "debits": [{"id": "t1", "account": "alice", **leg,
                                                      "nonce": 3}]},
    }
    for port, question in expected.items():
        with Stub(send(reply({**YES, "more": [1, None]}))) as stub, \
                Driver(port, stub.url) as driver:
            assert driver.ask() == "Ok"
            assert stub.requests == [("POST %s HTTP/1.1" % PATHS[port], question)], stub.requests
            assert driver.say("breaker") == "closed"


def failing(answer, code, port="kms", **options):
    """Every try fails; the breaker opens and asks no more."""
    with Stub(answer) as stub, Driver(port, stub.url, **options) as driver:
        heard = driver.ask()
        assert heard.startswith(code + " " + port + ": "), heard
        tries = RETRIES[port] + 1
        asked(stub, tries)
        assert driver.say("breaker") == "open"
        heard = driver.ask()
        assert heard == "UpstreamUnavailable %s: not asked: the breaker is open" % port, heard
        asked(stub, tries)


@case
def status_5xx_is_a_failure():
    for status in ("500 x", "501 x", "502 x", "503 x", "599 x"):
        failing(send(reply(YES, status)), "UpstreamUnavailable", port="policy")


@case
def garbage_is_a_failure():
    for text in (b"\x00\xff garbage\r\n\r\n", reply(b"<html>no</html>"), reply(b"{\"ok\":true"),
                 reply({}), reply({**YES, "ok": "yes"}), reply({**YES, "x": "y" * 5000}),
                 reply(YES, "200 OK", 10 ** 12)):
        failing(send(text, close=True), "UpstreamUnavailable", port="wallet")


@case
def a_wrong_kid_is_a_failure():
    failing(send(reply({**YES, "kid": "k2"})), "UpstreamUnavailable")
    failing(send(reply({**YES, "capability_ref": CAPABILITY[:-1] + "W"})), "UpstreamUnavailable")


@case
def closing_is_a_failure():
    failing(close_mid_body, "UpstreamUnavailable")
    failing(close_at_once, "UpstreamUnavailable")


@case
def stalls_end_with_the_bound_of_a_try():
    for answer in (stall, stall_mid_body, drip):
        begin = time.monotonic()
        failing(answer, "Timeout", attempt_ms=150)
        assert time.monotonic() - begin < COARSE_S


@case
def a_deadline_ends_it_and_blames_nobody():
    with Stub(stall) as stub, Driver("kms", stub.url) as driver:
        begin = time.monotonic()
        heard = driver.ask(200)
        assert heard.startswith("Timeout kms: "), heard
        assert time.monotonic() - begin < COARSE_S
        asked(stub, 1)
        assert driver.say("breaker") == "closed"


@case
def refusals_are_not_asked_again():
    for port, code in REFUSAL.items():
        for data, why in ((reply(b"", "403 x"), "status 403"), (reply(b"", "401 x"), "status 401"),
                          (reply({"ok": False, "reason": "spent"}), "spent")):
            with Stub(send(data)) as stub, Driver(port, stub.url) as driver:
                assert driver.ask() == "%s %s refuses: %s" % (code, port, why)
                assert len(stub.requests) == 1
                assert driver.say("breaker") == "closed"


@case
def a_busy_upstream_is_not_asked_again():
    with Stub(send(reply(b"", "429 x"))) as stub, Driver("policy", stub.url) as driver:
        assert driver.ask() == "UpstreamUnavailable policy: status 429"
        assert len(stub.requests) == 1
        assert driver.say("breaker") == "closed"


@case
def one_success_closes_the_breaker():
    broken = [True]

    def answer(connection, _stub):
        connection.sendall(reply(b"", "500 x") if broken[0] else reply(YES))
        return False
    with Stub(answer) as stub, Driver("wallet", stub.url, half_open_ms=300) as driver:
        assert driver.ask().startswith("UpstreamUnavailable")
        broken[0] = False
        until(lambda: driver.say("breaker") == "half-open", "it does not half-open")
        assert driver.ask() == "Ok"
        assert driver.say("breaker") == "closed"


@case
def a_retry_that_works_is_enough():
    def answer(connection, stub):
        connection.sendall(reply(b"", "503 x") if len(stub.requests) < 3 else reply(YES))
        return False
    with Stub(answer) as stub, Driver("kms", stub.url) as driver:
        assert driver.ask() == "Ok"
        assert len(stub.requests) == 3
        assert driver.say("breaker") == "closed"


@case
def a_kept_connection_that_closed_is_no_failure():
    with Stub(send(reply(YES), close=True)) as stub, \
            Driver("policy", stub.url, retries=0) as driver:
        for _ in range(5):
            assert driver.ask() == "Ok"
        assert driver.say("breaker") == "closed"
        assert len(stub.requests) == 5


@case
def nobody_there_is_a_failure():
    with socket.socket() as taken:  # where nobody listens
        taken.bind(("127.0.0.1", 0))
        with Driver("kms", "http://127.0.0.1:%d" % taken.getsockname()[1]) as driver:
            assert driver.ask().startswith("UpstreamUnavailable kms: ")
            assert driver.say("breaker") == "open"


@case
def a_unix_socket_will_do():
    with tempfile.TemporaryDirectory() as folder:
        with Stub(send(reply(YES)), os.path.join(folder, "kms")) as stub, \
                Driver("kms", stub.url) as driver:
            assert driver.ask() == "Ok"


@case
def after_a_cancel_nothing_is_asked():
    with Stub(send(reply(YES))) as stub, Driver("kms", stub.url) as driver:
        assert driver.say("cancel") == "canceled"
        assert driver.ask() == "Draining kms: not asked: the ledger is draining"
        assert not stub.requests


def gather(count):
    """Nobody is answered before all have asked."""
    def answer(connection, stub):
        until(lambda: len(stub.requests) >= count, "%d requests" % count)
        connection.sendall(reply(YES))
    return answer


@case
def many_questions_are_in_flight_together():
    with tempfile.TemporaryDirectory() as folder:
        for port in ("policy", "wallet"):
            for path in (None, os.path.join(folder, port)):
                with Stub(gather(100), path) as stub, Driver(port, stub.url) as driver:
                    assert driver.say("crowd 100 60000") == "100 0 0"
                    asked(stub, 100)
                    assert driver.say("crowd 300 60000") == "300 0 0"
                    assert driver.say("breaker") == "closed"
                    asked(stub, 400)


@case
def a_crowd_shares_256_connections():
    with Stub(gather(256)) as stub, Driver("policy", stub.url) as driver:
        assert driver.say("crowd 400 60000") == "400 0 0"
        asked(stub, 400)
        assert stub.connections == 256, stub.connections


@case
def the_kms_is_asked_once_about_one_capability():
    with Stub(gather(1)) as stub, Driver("kms", stub.url) as driver:
        driver.say("breaker")
        answered, refused, together = map(int, driver.say("crowd 200 60000").split())
        assert answered == 200 and refused == 0, (answered, refused)
        asked(stub, 200 - together)


@case
def beyond_the_bound_the_answer_is_busy():
    with Stub(gather(64)) as stub, Driver("policy", stub.url, in_flight=64) as driver:
        assert driver.say("crowd 100 60000") == "64 36 0"
        asked(stub, 64)
        assert driver.say("breaker") == "closed"


@case
def a_crowd_without_answers_ends_with_its_deadline():
    with Stub(gather(1000)) as stub, Driver("wallet", stub.url) as driver:
        assert driver.say("crowd 50 200") == "0 50 0"
        assert driver.say("breaker") == "closed"


def main():
    failed = 0
    print("1..%d" % len(CASES))
    for number, function in enumerate(CASES, 1):
        try:
            function()
            print("ok %d - %s" % (number, function.__name__), flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print("not ok %d - %s: %r" % (number, function.__name__, error), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
