#!/usr/bin/env python3
"""test_client.py [SERVER] - the client over real sockets; TAP.

Method: the driver http_client (beside the server's program) against the test server over TCP, Unix
socket and TLS, and against peers in Python that misbehave byte by byte. Time is only looked at
coarsely: a call with a deadline of 300 ms must not take seconds.
"""
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

from serverlib import WAIT_S, Server, tap, wait_until

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/tests/http/http_server"
RON = os.path.join(os.path.dirname(PROGRAM), "..", "..", "ron")
DRIVER = os.path.join(os.path.dirname(PROGRAM), "http_client")
COARSE_S = 30  # of a call that must end within a second: sanitizers and loaded machines
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


MORE = []  # options of every driver


class Client:
    """The driver; ended by the end of its input."""

    def __init__(self, url, *options):
        self.process = subprocess.Popen([DRIVER, url, *options, *MORE], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

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
            assert rest.endswith("ended\n"), rest

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, line):
        self.say(line)
        return self.hear()

    def stats(self):
        words = self.ask("stats").split()
        return {words[i]: words[i + 1] for i in range(0, len(words), 2)}


class Peer:
    """A server in Python: serve(connection, number) for each connection, on a thread."""

    def __init__(self, serve):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.count, self.requests, self.open = 0, [], []
        self.released = threading.Event()
        self.serve = serve
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self.listener.close()
        for connection in self.open:
            connection.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(connection)
            number, self.count = self.count, self.count + 1
            threading.Thread(target=self.run, args=(connection, number), daemon=True).start()

    def run(self, connection, number):
        try:
            self.serve(self, connection, number)
        except OSError:
            pass

    def request(self, connection):
        """Read one request whole; None at the end."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, value = line.split(b": ", 1)
            length = int(value) if name == b"Content-Length" else length
        while len(body) < length:
            body += connection.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        return self.requests[-1]


def script(*replies):
    """Answer with each of them in turn, over all connections; the last one again and again."""
    def serve(peer, connection, _):
        while peer.request(connection) is not None:
            connection.sendall(replies[min(len(peer.requests), len(replies)) - 1])
    return serve


def calls_over_tcp_keep_their_connection():
    with Server(PROGRAM) as server, Client(server.url) as client:
        assert client.ask("GET /healthz 60000") == '200 1 11 {"ok":true}'
        for i in range(50):
            assert client.ask(f"POST /later 60000 k{i} [{i}]") == f"200 1 {len(str(i)) + 2} [{i}]"
        assert client.ask("GET /secret 60000").startswith("200 ")
        assert client.ask("GET /nothing 60000").startswith("404 1 ")
        stats = client.stats()
        assert stats["connects"] == "1" and stats["reused"] == "52", stats
        assert server.stats()["accepted"] == 1


def calls_over_a_unix_socket():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        with Server(PROGRAM, "--unix", path) as server, Client("unix:" + path) as client:
            assert '"local":1' in client.ask("GET /peer 60000")
            assert server.local == "unix:" + path, server.local
    with Client("unix:" + path) as client:
        assert client.ask("GET / 60000").startswith("UpstreamUnavailable localhost: connect")


def many_callers_share_few_connections():
    with Server(PROGRAM) as server, Client(server.url, "--conns", "3") as client:
        for i in range(40):
            client.say(f"&POST /later 8000 k [{i}]")
        seen = sorted(client.hear() for _ in range(40))
        assert seen == sorted(f"200 1 {len(str(i)) + 2} [{i}]" for i in range(40)), seen
        assert int(client.stats()["connects"]) <= 3
        assert server.stats()["accepted"] <= 3


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=WAIT_S)


def make_certificates(folder):
    """ca, foreign; server and client of ca (localhost, 127.0.0.1), expired of ca."""
    def path(name):
        return os.path.join(folder, name)

    for name in ("ca", "foreign"):
        openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2", "-subj",
                f"/CN={name}", "-keyout", path(f"{name}.key"), "-out", path(f"{name}.pem"))
    with open(path("ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name, days in (("server", "2"), ("client", "2"), ("expired", "-1")):
        openssl("req", "-newkey", "ed25519", "-nodes", "-subj", f"/CN={name}", "-keyout",
                path(f"{name}.key"), "-out", path(f"{name}.csr"))
        openssl("x509", "-req", "-in", path(f"{name}.csr"), "-CA", path("ca.pem"), "-CAkey",
                path("ca.key"), "-CAcreateserial", "-days", days, "-extfile", path("ext"), "-out",
                path(f"{name}.pem"))
    return path


def tls_trusts_its_authority_and_the_name_alone():
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)

        def ask(server, *options):
            with Client(server.url, *options) as client:
                return client.ask("GET /peer 60000")

        good = ("--ca", path("ca.pem"), "--host", "localhost")
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key")) as server:
            assert '"tls":1,"certificate":0' in ask(server, *good)
            assert ask(server, "--ca", path("ca.pem"), "--host", "127.0.0.1").startswith("200 ")
            for options, why in (
                    (("--ca", path("foreign.pem"), "--host", "localhost"), "certificate"),
                    (("--ca", path("ca.pem"), "--host", "example.org"), "hostname mismatch"),
                    (("--ca", path("ca.pem"), "--host", "127.0.0.2"), "IP address mismatch")):
                seen = ask(server, *options)
                assert seen.startswith("Unauthorized ") and why.lower() in seen.lower(), seen
            with Client(server.url, *good) as client:  # session tickets do not end a connection
                for _ in range(20):
                    assert client.ask("GET /healthz 60000").startswith("200 ")
                assert client.stats()["connects"] == "1"
        with Server(PROGRAM, "--tls", path("expired.pem"), path("expired.key")) as server:
            seen = ask(server, *good)
            assert seen.startswith("Unauthorized ") and "expired" in seen, seen
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key"),
                    path("ca.pem")) as server:
            seen = ask(server, *good, "--cert", path("client.pem"), "--key", path("client.key"))
            assert '"certificate":1,"name":"client"' in seen, seen
            assert ask(server, *good).startswith("UpstreamUnavailable ")
        os.chmod(path("client.key"), 0o644)
        process = subprocess.run([DRIVER, "https://127.0.0.1:1", *good, "--cert",
                                  path("client.pem"), "--key", path("client.key")],
                                 capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert process.stdout.startswith("Forbidden ") and "client.key" in process.stdout


def plain_bytes_are_no_tls_and_the_reverse():
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        with Server(PROGRAM) as server, \
                Client(server.url.replace("http:", "https:"), "--ca", path("ca.pem"), "--host",
                       "localhost") as client:
            assert client.ask("GET / 60000").startswith("UpstreamUnavailable ")
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key")) as server, \
                Client(server.url.replace("https:", "http:")) as client:
            assert client.ask("GET / 60000").startswith("UpstreamUnavailable ")


def an_idle_connection_closed_by_the_server_is_replaced():
    with Server(PROGRAM, "--idle-ms", "50") as server, Client(server.url) as client:
        for i in range(3):
            assert client.ask(f"POST /later 60000 - [{i}]") == f"200 1 3 [{i}]"
            wait_until(lambda: server.stats()["open"] == 0)
        stats = client.stats()
        assert stats["connects"] == "3" and stats["retries"] == "0", stats


def closes_after_the_request(peer, connection, number):
    """The first connection answers once, then reads a second request and closes."""
    peer.request(connection)
    connection.sendall(OK)
    if peer.request(connection) is not None:
        if number == 0:
            connection.close()
        else:
            connection.sendall(OK)


def a_stale_connection_is_replaced_once_where_that_is_safe():
    with Peer(closes_after_the_request) as peer, Client(peer.url) as client:
        assert client.ask("GET / 60000") == "200 1 2 ok"
        assert client.ask("GET / 60000") == "200 2 2 ok"
        stats = client.stats()
        assert stats["stale"] == "1" and stats["breaker"] == "closed", stats
    with Peer(closes_after_the_request) as peer, Client(peer.url) as client:
        assert client.ask("POST / 60000 - x") == "200 1 2 ok"
        assert client.ask("POST / 60000 - x").startswith("UpstreamUnavailable ")  # no key
        assert len(peer.requests) == 2
    with Peer(closes_after_the_request) as peer, Client(peer.url) as client:
        assert client.ask("POST / 60000 k x") == "200 1 2 ok"
        assert client.ask("POST / 60000 k x") == "200 2 2 ok"
        assert len({r.split(b"Idempotency-Key: ")[1].split(b"\r")[0] for r in peer.requests}) == 1


def a_busy_server_is_asked_again():
    with Peer(script(BUSY, BUSY, OK)) as peer, Client(peer.url, "--retries", "3") as client:
        assert client.ask("POST / 60000 key x") == "200 3 2 ok"
        assert len(peer.requests) == 3 and all(b"key" in r for r in peer.requests)
        assert client.stats()["retries"] == "2"
    with Peer(script(BUSY)) as peer, Client(peer.url, "--retries", "2") as client:
        assert client.ask("GET / 60000") == "503 3 0 "
        assert client.ask("POST / 60000 - x") == "503 1 0 "


def a_stalled_server_ends_in_a_timeout():
    def stall(peer, connection, _):
        peer.request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1")
        peer.released.wait(60)

    with Peer(stall) as peer, Client(peer.url, "--retries", "9") as client:
        started = time.monotonic()
        assert client.ask("GET / 300").startswith("Timeout ")
        assert 0.29 <= time.monotonic() - started < COARSE_S
        assert client.stats()["timeouts"] == "1"
    # A server that never accepts: the backlog answers the handshake, nobody answers the request.
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener, \
            Client("http://127.0.0.1:%d" % listener.getsockname()[1]) as client:
        assert client.ask("GET / 200").startswith("Timeout ")


def a_slow_drip_does_not_restart_the_deadline():
    def drip(peer, connection, _):
        peer.request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not peer.released.wait(0.02):
            connection.sendall(b"x")

    with Peer(drip) as peer, Client(peer.url) as client:
        started = time.monotonic()
        assert client.ask("GET / 300").startswith("Timeout ")
        assert time.monotonic() - started < COARSE_S


def a_try_that_hangs_is_given_up_for_another():
    def first_hangs(peer, connection, number):
        while peer.request(connection) is not None:
            if number == 0:
                peer.released.wait(60)
                return
            connection.sendall(OK)

    with Peer(first_hangs) as peer, \
            Client(peer.url, "--attempt-ms", "100", "--retries", "3") as client:
        assert client.ask("GET / 60000") == "200 2 2 ok"


def the_breaker_opens_and_half_opens():
    with socket.socket() as taken:  # where nobody listens
        taken.bind(("127.0.0.1", 0))
        url = "http://127.0.0.1:%d" % taken.getsockname()[1]
        with Client(url, "--breaker-ms", "300000") as client:
            for _ in range(5):
                assert "connect" in client.ask("GET / 60000")
            assert client.stats()["breaker"] == "open"
            assert "breaker" in client.ask("GET / 60000")
            assert client.stats()["tries"] == "5"
    with Peer(script(BUSY, BUSY, BUSY, BUSY, BUSY, OK)) as peer, \
            Client(peer.url, "--breaker-ms", "1") as client:
        for _ in range(5):
            assert client.ask("GET / 60000") == "503 1 0 "
        wait_until(lambda: client.stats()["breaker"] == "half-open")
        assert client.ask("GET / 60000") == "200 1 2 ok"
        assert client.stats()["breaker"] == "closed"


def replies_over_the_cap_are_refused():
    large = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (10 << 20)

    def pour(peer, connection, number):
        peer.request(connection)
        if number == 0:
            connection.sendall(large + b"x" * (10 << 20))
        elif number == 1:  # until the connection closes
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (10 << 20))
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nall of it")
            connection.close()

    with Peer(pour) as peer, Client(peer.url) as client:
        assert "a body of 10485760 bytes, at most 1048576" in client.ask("GET / 9000")
        assert client.ask("GET / 9000").startswith("TooLarge ")
        assert client.ask("GET / 9000") == "200 1 9 all of it"
        assert client.stats()["reused"] == "0"
    with Peer(lambda p, c, n: (p.request(c), c.sendall(large + b"x" * (10 << 20)))) as peer, \
            Client(peer.url, "--body-max", str(10 << 20)) as client:
        assert client.ask("GET / 9000").startswith("200 1 10485760 xxx")


def cut_replies_are_no_replies():
    pieces = OK[:10], OK[:-1], b"", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"

    def cut(peer, connection, number):
        peer.request(connection)
        connection.sendall(pieces[number])
        connection.close()

    with Peer(cut) as peer, Client(peer.url) as client:
        for _ in pieces:
            assert client.ask("GET / 60000").startswith("UpstreamUnavailable ")


def a_cancel_wakes_a_stalled_call():
    def stall(peer, connection, _):
        peer.request(connection)
        peer.released.wait(60)

    with Peer(stall) as peer, Client(peer.url, "--conns", "1", "--retries", "5") as client:
        client.say("&GET /1 300000")
        client.say("&GET /2 300000")  # waits for the only connection
        wait_until(lambda: len(peer.requests) == 1)
        client.say("cancel")
        assert client.hear().startswith("Canceled ") and client.hear().startswith("Canceled ")
        assert client.ask("GET /3 60000").startswith("Canceled ")
        assert len(peer.requests) == 1


def an_early_refusal_is_read_before_the_upload_ends():
    with Server(PROGRAM) as server, Client(server.url) as client:
        reply = client.ask("POST /echo 60000 k " + "[" + "1," * 1500 + "1]")
        assert reply.startswith("413 "), reply


def flights_are_in_the_air_together():
    """Nobody is answered before all have asked: on one thread, each on a connection of its own."""
    count = 200

    def gather(peer, connection, _):
        data = peer.request(connection)
        wait_until(lambda: len(peer.requests) >= count)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + data[5:8])
        peer.released.wait(60)

    with Peer(gather) as peer, Client(peer.url, "--fly", str(count)) as client:
        for i in range(count):
            client.say(f"&GET /{i:03} 60000")
        seen = sorted(client.hear() for _ in range(count))
        assert seen == sorted(f"200 1 3 {i:03}" for i in range(count)), seen
        assert client.stats()["peak"] == str(count)
        assert peer.count == count


def flights_beyond_the_bound_are_refused():
    def stall(peer, connection, _):
        peer.request(connection)
        peer.released.wait(60)

    with Peer(stall) as peer, Client(peer.url, "--fly", "2") as client:
        client.say("&GET /1 300000")
        client.say("&GET /2 300000")
        wait_until(lambda: len(peer.requests) == 2)
        assert client.ask("GET /3 60000").startswith("Busy ")
        peer.open[0].close()
        assert client.hear().startswith("UpstreamUnavailable ")
        assert client.ask("GET /4 100").startswith("Timeout ")
        client.say("cancel")
        assert client.hear().startswith("Canceled ")


def a_connection_that_is_idle_too_long_is_closed():
    ended = threading.Event()

    def serve(peer, connection, number):
        script(OK)(peer, connection, number)
        ended.set()

    with Peer(serve) as peer, Client(peer.url, "--fly", "2", "--idle-ms", "50") as client:
        assert client.ask("GET /1 60000") == "200 1 2 ok"
        wait_until(ended.is_set)  # nobody asks it to
        assert client.ask("GET /2 60000") == "200 1 2 ok"
        assert client.stats()["connects"] == "2"


def flying(case):
    def run():
        MORE[:] = ["--fly", "256"]
        try:
            case()
        finally:
            MORE.clear()
    run.__name__ = case.__name__ + "_as_flights"
    return run


def bench(*arguments):
    """`ron bench http`: its exit code and its figures by name."""
    process = subprocess.run([RON, "bench", "http", *arguments], capture_output=True, text=True,
                             timeout=WAIT_S, check=False)
    lines = [line.split(None, 1) for line in process.stdout.splitlines()]
    return process.returncode, dict(lines), process.stderr


def the_generator_keeps_its_rate_and_counts_what_it_missed():
    dropped = 1
    while dropped:  # again where the machine was too busy: a drop is no reply
        with Server(PROGRAM) as server:
            code, seen, _ = bench(server.url + "/healthz", "--rate", "200", "--duration", "1s",
                                  "--connections", "4")
            replies, dropped = int(seen["replies"].split()[0]), int(seen["dropped"])
            assert replies + dropped == 200 and (code == 0) == (dropped == 0), seen
            assert server.stats()["requests"] == replies
    with Server(PROGRAM) as server:
        replies = 0
        while replies <= 64:  # more than one on each connection
            code, seen, _ = bench(server.url + "/healthz", "--duration", "200ms")
            replies = int(seen["replies"].split()[0])
            assert code == 0 and replies > 0, seen
        code, seen, _ = bench(server.url + "/nothing", "--duration", "100ms")
        assert code == 1 and seen["refused"] == seen["replies"].split()[0]

    def stall(peer, connection, _):
        peer.request(connection)
        peer.released.wait(60)

    # Two requests hang for ever; what is due meanwhile waits a second at most, then is a drop.
    with Peer(stall) as peer:
        code, seen, _ = bench(peer.url, "--rate", "10", "--duration", "2s", "--connections", "2")
        assert code == 1 and seen["replies"].startswith("0 in ") and int(seen["dropped"]) >= 2, seen
    for arguments in (("http://127.0.0.1:1", "--rate", "0"), ("x" * 600,),
                      ("http://127.0.0.1:1", "--wrong", "1"), ("http://127.0.0.1:1", "--body")):
        assert bench(*arguments)[0] == 2
    code, _, words = bench("http://127.0.0.1:1/")
    assert code == 1 and "connect" in words


CASES = [calls_over_tcp_keep_their_connection, calls_over_a_unix_socket,
         many_callers_share_few_connections, tls_trusts_its_authority_and_the_name_alone,
         plain_bytes_are_no_tls_and_the_reverse,
         an_idle_connection_closed_by_the_server_is_replaced,
         a_stale_connection_is_replaced_once_where_that_is_safe, a_busy_server_is_asked_again,
         a_stalled_server_ends_in_a_timeout, a_slow_drip_does_not_restart_the_deadline,
         a_try_that_hangs_is_given_up_for_another, the_breaker_opens_and_half_opens,
         replies_over_the_cap_are_refused, cut_replies_are_no_replies,
         a_cancel_wakes_a_stalled_call, an_early_refusal_is_read_before_the_upload_ends,
         the_generator_keeps_its_rate_and_counts_what_it_missed,
         flights_are_in_the_air_together, flights_beyond_the_bound_are_refused,
         a_connection_that_is_idle_too_long_is_closed,
         *map(flying, (calls_over_tcp_keep_their_connection, calls_over_a_unix_socket,
                       many_callers_share_few_connections,
                       tls_trusts_its_authority_and_the_name_alone,
                       plain_bytes_are_no_tls_and_the_reverse,
                       an_idle_connection_closed_by_the_server_is_replaced,
                       a_stale_connection_is_replaced_once_where_that_is_safe,
                       a_slow_drip_does_not_restart_the_deadline,
                       replies_over_the_cap_are_refused, cut_replies_are_no_replies,
                       a_cancel_wakes_a_stalled_call,
                       an_early_refusal_is_read_before_the_upload_ends))]

if __name__ == "__main__":
    sys.exit(tap([(case.__name__.replace("_", " "), case) for case in CASES]))
