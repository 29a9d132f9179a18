#!/usr/bin/env python3
"""test_server.py [SERVER] - how the server treats its clients; TAP.

Method: real connections to the test server, one behaviour each; no sleep but to be slow on purpose.
"""
import calendar
import gzip
import http.client
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from serverlib import WAIT_S, Reader, Server, tap, wait_until

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/tests/http/http_server"
GOOD = b"GET /healthz HTTP/1.1\r\nHost: good\r\n\r\n"


def post(path, body, *fields):
    lines = [f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json",
             f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


def ask(server, request, **options):
    with server.connect() as connection:
        connection.sendall(request)
        return Reader(connection).reply(**options)


def code_of(reply):
    return json.loads(reply.body)["error"]["code"]


def replies_carry_what_they_must():
    with Server(PROGRAM) as server:
        reply = ask(server, GOOD)
        assert reply.status == 200 and reply.body == b'{"ok":true}'
        assert reply.fields["date"].endswith(" GMT") and len(reply.fields["date"]) == 29
        assert len(reply.fields["x-corr-id"]) == 26 and "connection" not in reply.fields
        mine = GOOD.replace(b"\r\n\r\n", b"\r\nX-Corr-ID: abc-1.2:3_\r\n\r\n")
        assert ask(server, mine).fields["x-corr-id"] == "abc-1.2:3_"
        odd = GOOD.replace(b"\r\n\r\n", b"\r\nX-Corr-ID: a b\r\n\r\n")
        assert len(ask(server, odd).fields["x-corr-id"]) == 26
        head = ask(server, GOOD.replace(b"GET", b"HEAD"), head_only=True)
        assert head.status == 200 and head.fields["content-length"] == "11" and head.body == b""
        reply = ask(server, GOOD.replace(b"GET", b"PUT"))
        assert reply.status == 405 and reply.fields["allow"] == "GET, HEAD"
        reply = ask(server, b"GET /nothing HTTP/1.1\r\nHost: a\r\nX-Corr-ID: me\r\n\r\n")
        assert json.loads(reply.body)["error"]["corr_id"] == "me"
        wait_until(lambda: server.stats()["open"] == 0)
        assert server.stats()["reset"] == 0  # to end after a refusal is no reset


def dates_are_of_the_moment():
    """Of a reply, one from another thread, a refusal, a stream's head; and they move on."""
    requests = [(GOOD, False), (post("/later", b"[]"), False),
                (b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", False),
                (b"HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n", True)]
    with Server(PROGRAM) as server:
        def date_of(request, head_only):
            before = int(time.time())
            date = ask(server, request, head_only=head_only).fields["date"]
            said = calendar.timegm(time.strptime(date, "%a, %d %b %Y %H:%M:%S GMT"))
            assert before <= said <= time.time(), (before, date)
            return said

        first = [date_of(*request) for request in requests]
        wait_until(lambda: int(time.time()) > first[-1])
        assert all(date_of(*request) > then for request, then in zip(requests, first))


def admin_routes_are_on_the_admin_listener_only():
    with Server(PROGRAM) as server:
        port = int(server.admin.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
            connection.sendall(GOOD + b"POST /echo HTTP/1.1\r\nHost: a\r\n\r\n")
            reader = Reader(connection)
            assert reader.reply().status == 200 and reader.reply().status == 404


def answers_from_another_thread_keep_their_order():
    with Server(PROGRAM, "--loops", "2") as server:
        def client(number):
            with server.connect() as connection:
                bodies = [b"[%d,%d]" % (number, i) for i in range(300)]
                connection.sendall(b"".join(post("/later", body) for body in bodies))
                reader = Reader(connection)
                for body in bodies:
                    reply = reader.reply()
                    assert reply.status == 200 and reply.body == body, (body, reply.body)
                done.append(number)

        done = []
        threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert sorted(done) == list(range(8)), done


def no_answer_becomes_504_and_a_late_one_is_dropped():
    with Server(PROGRAM) as server:
        started = time.monotonic()
        reply = ask(server, b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
        assert reply.status == 504 and code_of(reply) == "Timeout"
        assert time.monotonic() - started >= 0.3
        for asked in (b"50", b"0"):
            request = b"GET /never HTTP/1.1\r\nHost: a\r\nX-Deadline-Ms: %s\r\n\r\n" % asked
            assert ask(server, request).status == 504
    # The end of the server answers both; it stops cleanly, so they were freed.


def a_peer_that_leaves_takes_nothing_with_it():
    with Server(PROGRAM) as server:
        for _ in range(20):
            with server.connect() as connection:
                connection.sendall(b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
                wait_until(lambda: server.stats()["requests"] > 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        wait_until(lambda: server.stats()["open"] == 0)
        assert ask(server, GOOD).status == 200


def a_half_closed_connection_gets_its_answer():
    with Server(PROGRAM) as server:
        with server.connect() as connection:
            connection.sendall(post("/later", b"[1]"))
            connection.shutdown(socket.SHUT_WR)
            reader = Reader(connection)
            assert reader.reply().body == b"[1]" and reader.closed()


def slow_heads_and_bodies_are_ended_by_one_deadline():
    """covers: LED-C51 LED-S09"""
    with Server(PROGRAM, "--head-ms", "300", "--body-ms", "300") as server:
        for request in (GOOD, post("/echo", b"{" + b" " * 900 + b"}")):
            with server.connect() as connection:
                reader = Reader(connection)
                started = time.monotonic()
                if request is not GOOD:
                    head, request = request.split(b"\r\n\r\n", 1)
                    connection.sendall(head + b"\r\n\r\n")
                try:
                    for byte in request:  # each byte in time, all of them not
                        connection.sendall(bytes([byte]))
                        time.sleep(0.02)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                reply = reader.reply()
                assert reply.status == 408 and code_of(reply) == "Timeout"
                assert 0.25 < time.monotonic() - started < 15  # all bytes would take 18 s
        assert server.stats()["slow"] == 2


def idle_connections_are_closed_quietly():
    with Server(PROGRAM, "--idle-ms", "100") as server:
        closed = 0
        answered = False
        while not answered:  # again where this process was too slow for its own request
            with server.connect() as connection:
                connection.sendall(GOOD)
                reader = Reader(connection)
                reply = reader.reply()
                answered = reply is not None
                assert not answered or reply.status == 200
                assert reader.closed()
                closed += 1
        with server.connect() as connection:
            assert Reader(connection).closed()
        wait_until(lambda: server.stats()["idle"] == closed + 1)


def connections_have_caps():
    """covers: LED-S09"""
    with Server(PROGRAM, "--conns", "16") as server:
        held = [server.connect() for _ in range(4)]
        for connection in held:
            connection.sendall(GOOD)
            assert Reader(connection).reply().status == 200
        with server.connect() as connection:  # one address has a quarter
            reader = Reader(connection)
            reply = reader.reply()
            assert reply.status == 429 and code_of(reply) == "Busy" and reader.closed()
        held.pop().close()
        wait_until(lambda: server.stats()["open"] == 3)
        assert ask(server, GOOD).status == 200
        for connection in held:
            connection.close()


def memory_has_a_budget():
    with Server(PROGRAM, "--bytes", str(256 * 1024), "--body-ms", "60000") as server:
        request = post("/upload", b"x" * 200000)
        with server.connect() as first, server.connect() as second:
            first.sendall(request[:-1])
            wait_until(lambda: server.stats()["held"] > 200000)
            try:
                second.sendall(request)
            except (BrokenPipeError, ConnectionResetError):
                pass
            reply = Reader(second).reply()
            assert reply.status == 429 and code_of(reply) == "Busy"
            first.sendall(request[-1:])
            assert Reader(first).reply().body == b"200000"
        server.wait_empty()


def rates_are_bounded():
    """covers: LED-S09"""
    with Server(PROGRAM, "--rate", "20", "--conns", "400") as server:
        statuses, end = [], time.monotonic() + WAIT_S
        while 429 not in statuses:  # again where this process was slower than the rate
            assert time.monotonic() < end, "there is no bound"
            peers = [server.connect() for _ in range(60)]
            for peer in peers:
                peer.sendall(post("/later", b"{}"))
            for peer in peers:
                statuses.append(Reader(peer).reply().status)
                peer.close()
        assert set(statuses) == {200, 429}, statuses


def requests_inflight_are_bounded():
    """covers: LED-S09"""
    with Server(PROGRAM, "--inflight", "2") as server:
        status = 200
        while status == 200:  # again where this process was slower than the two requests
            before = server.stats()["requests"]
            waiting = [server.connect() for _ in range(2)]
            for connection in waiting:
                connection.sendall(b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda least=before + 2: server.stats()["requests"] >= least)
            reply = ask(server, GOOD)
            status = reply.status
            for connection in waiting:
                assert Reader(connection).reply().status == 504
                connection.close()
        assert status == 429 and reply.fields["retry-after"] == "1"


def capabilities_come_before_bodies():
    with Server(PROGRAM) as server:
        asked = b"GET /secret HTTP/1.1\r\nHost: a\r\n%s\r\n"
        assert ask(server, asked % b"").status == 401
        assert ask(server, asked % b"Authorization: Bearer bad\r\n").status == 401
        assert ask(server, asked % b"Authorization: Bearer good\r\n").status == 200


def a_refused_upload_can_be_read():
    with Server(PROGRAM) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
        body = b"x" * (10 << 20)
        try:
            connection.request("POST", "/upload", body, {"Content-Type": "application/json"})
        except (BrokenPipeError, ConnectionResetError):
            pass  # it stopped reading: the answer is there all the same
        reply = connection.getresponse()
        assert reply.status == 413
        assert json.loads(reply.read())["error"]["code"] == "TooLarge"
        connection.close()


def curl_shows_the_refusal():
    with Server(PROGRAM) as server, tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * (10 << 20))
        file.flush()
        done = subprocess.run(
            ["curl", "-sS", "-H", "Expect:", "-H", "Content-Type: application/json",
             "--data-binary", f"@{file.name}", f"{server.url}/upload"],
            capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert json.loads(done.stdout)["error"]["code"] == "TooLarge", done


def expect_is_answered_before_the_body():
    """covers: LED-C48 LED-C51"""
    with Server(PROGRAM) as server:
        head, body = post("/echo", b"{}", "Expect: 100-continue").split(b"\r\n\r\n", 1)
        with server.connect() as connection:
            connection.sendall(head + b"\r\n\r\n")
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(body)
            assert Reader(connection).reply().body == b"{}"
        head = head.replace(b"Content-Length: 2", b"Content-Length: 2000")
        with server.connect() as connection:
            connection.sendall(head + b"\r\n\r\n")
            assert Reader(connection).reply().status == 413


def compressed_bodies_are_opened_under_caps():
    """covers: LED-S09"""
    with Server(PROGRAM) as server:
        text = json.dumps(list(range(200))).encode()
        packed = gzip.compress(text)
        assert ask(server, post("/echo", packed, "Content-Encoding: gzip")).body == text
        reply = ask(server, post("/echo", gzip.compress(b"x" * 2000), "Content-Encoding: gzip"))
        assert reply.status == 413 and code_of(reply) == "TooLarge"
        bomb = gzip.compress(b"0" * (1 << 20))
        reply = ask(server, post("/upload", bomb, "Content-Encoding: gzip"))
        assert reply.status == 400 and code_of(reply) == "DecompressRatio"
        damaged = packed[:20] + bytes([packed[20] ^ 1]) + packed[21:]
        for bad in (packed[:-1], packed + b"x", b"nonsense", damaged):
            reply = ask(server, post("/echo", bad, "Content-Encoding: gzip"))
            assert reply.status == 400, (bad[:30], reply.status)
        server.wait_empty()


def events_are_streamed_and_resumed():
    with Server(PROGRAM) as server:
        with server.connect() as connection:
            connection.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\nLast-Event-ID: 41\r\n\r\n")
            reader = Reader(connection)
            reply = reader.reply()
            assert reply.fields["content-type"] == "text/event-stream"
            while not reader.ended:
                reader.more()
            assert reader.bytes == b"".join(
                b"id: %d\nevent: tick\ndata: a\ndata: b\n\n" % i for i in (42, 43, 44))


def a_head_of_events_has_none():
    with Server(PROGRAM) as server:
        for path in (b"/events", b"/feed"):
            with server.connect() as connection:
                connection.sendall(b"HEAD %s HTTP/1.1\r\nHost: a\r\n\r\n" % path)
                reader = Reader(connection)
                assert reader.reply(head_only=True).fields["content-type"] == "text/event-stream"
                assert reader.closed()
        wait_until(lambda: server.stats()["held"] == 0)


def unix_sockets_know_who_asks():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        with Server(PROGRAM, "--unix", path) as server:
            assert server.local == f"unix:{path}" and os.stat(path).st_mode & 0o777 == 0o600
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(b"GET /peer HTTP/1.1\r\nHost: a\r\n\r\n")
                seen = json.loads(Reader(connection).reply().body)
            assert seen["local"] == 1 and seen["uid"] == os.getuid()
            seen = json.loads(ask(server, b"GET /peer HTTP/1.1\r\nHost: a\r\n\r\n").body)
            assert seen["local"] == 0 and seen["uid"] == -1  # nobody, and not root
        assert not os.path.exists(path)


def draining_refuses_writes_and_serves_reads():
    with Server(PROGRAM) as server:
        assert server.tell("d") == "draining"
        reply = ask(server, post("/later", b"{}"))
        assert reply.status == 503 and code_of(reply) == "Draining"
        with server.connect() as connection:
            connection.sendall(GOOD)
            reader = Reader(connection)
            reply = reader.reply()
            assert reply.status == 200 and reply.fields["connection"] == "close"
            assert reader.closed()


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def make_certificates(folder):
    """ca, server (localhost), client, other (of another authority)."""
    def path(name):
        return os.path.join(folder, name)

    for name in ("ca", "foreign"):
        openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2", "-subj",
                f"/CN={name}", "-keyout", path(f"{name}.key"), "-out", path(f"{name}.pem"))
    for name, authority in (("server", "ca"), ("client", "ca"), ("other", "foreign")):
        openssl("req", "-newkey", "ed25519", "-nodes", "-subj", f"/CN={name}", "-keyout",
                path(f"{name}.key"), "-out", path(f"{name}.csr"))
        with open(path("ext"), "w", encoding="ascii") as file:
            file.write("subjectAltName=DNS:localhost\n")
        openssl("x509", "-req", "-in", path(f"{name}.csr"), "-CA", path(f"{authority}.pem"),
                "-CAkey", path(f"{authority}.key"), "-CAcreateserial", "-days", "2", "-extfile",
                path("ext"), "-out", path(f"{name}.pem"))
    return path


def tls_client(path, name=None, version=None):
    context = ssl.create_default_context(cafile=path("ca.pem"))
    if name is not None:
        context.load_cert_chain(path(f"{name}.pem"), path(f"{name}.key"))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def ask_tls(server, context, request=b"GET /peer HTTP/1.1\r\nHost: a\r\n\r\n"):
    with server.connect() as plain, context.wrap_socket(plain,
                                                        server_hostname="localhost") as connection:
        connection.sendall(request)
        return Reader(connection).reply()


def refused_tls(server, context):
    try:
        return ask_tls(server, context) is None
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return True


def tls_has_three_suites(server, path):
    """Those of the design are spoken, any other is refused."""
    for suite, spoken in (("TLS_AES_128_GCM_SHA256", True), ("TLS_AES_256_GCM_SHA384", True),
                          ("TLS_CHACHA20_POLY1305_SHA256", True), ("TLS_AES_128_CCM_SHA256", False),
                          ("TLS_AES_128_CCM_8_SHA256", False)):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}",
                               "-CAfile", path("ca.pem"), "-ciphersuites", suite], input="",
                              capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert (f"Cipher is {suite}" in done.stdout) == spoken, (suite, done.stdout)


def tls_is_1_3_with_or_without_client_certificates():
    """covers: LED-S02"""
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key")) as server:
            assert server.url.startswith("https://")
            seen = json.loads(ask_tls(server, tls_client(path)).body)
            assert seen["tls"] == 1 and seen["certificate"] == 0
            assert refused_tls(server, tls_client(path, version=ssl.TLSVersion.TLSv1_2))
            tls_has_three_suites(server, path)
            with server.connect() as connection:  # plain bytes on the TLS port
                connection.sendall(GOOD)
                assert Reader(connection).closed()
            big = post("/upload", b"x" * 1000000)
            assert ask_tls(server, tls_client(path), big).body == b"1000000"
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key"),
                    path("ca.pem")) as server:
            seen = json.loads(ask_tls(server, tls_client(path, "client")).body)
            assert seen["certificate"] == 1 and seen["name"] == "client"
            assert refused_tls(server, tls_client(path))
            assert refused_tls(server, tls_client(path, "other"))


def certificates_rotate_under_load():
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key")) as server:
            done, failures = threading.Event(), []

            def load():
                while not done.is_set():
                    try:
                        assert ask_tls(server, tls_client(path)).status == 200
                    except Exception as failure:  # pylint: disable=broad-except
                        failures.append(repr(failure))
                        return

            threads = [threading.Thread(target=load) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(20):
                assert server.tell("r") == "reload ok"
            os.rename(path("server.pem"), path("kept.pem"))
            assert "server.pem" in server.tell("r")  # names what is missing, goes on with the old
            assert ask_tls(server, tls_client(path)).status == 200
            done.set()
            for thread in threads:
                thread.join(WAIT_S)
            assert not failures, failures


def half_open_handshakes_do_not_stop_others():
    """covers: LED-V30"""
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key"), "--head-ms", "1500",
                    "--conns", "4000") as server:
            held = [server.connect() for _ in range(500)]
            for connection in held:
                connection.sendall(b"\x16\x03\x01")
            while refused_tls(server, tls_client(path)):
                pass  # this process was slower than the time for a handshake
            wait_until(lambda: server.stats()["open"] == 0)
            assert server.stats()["slow"] >= 500
            for connection in held:
                connection.close()


def slowloris_does_not_stop_others():
    """covers: LED-C51 LED-V28"""
    with Server(PROGRAM, "--head-ms", "1500", "--conns", "4000") as server:
        held = [server.connect() for _ in range(500)]
        for connection in held:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX:")
        assert ask(server, GOOD).status == 200
        wait_until(lambda: server.stats()["slow"] == 500)
        for connection in held:
            connection.close()
        server.wait_empty()


def a_client_that_never_reads_is_held_up_then_ended():
    with Server(PROGRAM, "--idle-ms", "700") as server:
        with server.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            asked = b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 400
            try:
                while asked:
                    asked = asked[connection.send(asked):]
            except BlockingIOError:
                pass  # it stopped reading: so much the better
            most = 0
            end = time.monotonic() + WAIT_S
            while (stats := server.stats())["open"] > 0 or stats["requests"] == 0:
                most = max(most, stats["held"])
                assert time.monotonic() < end, "it is not ended"
            assert most < 2 << 20, most
        server.wait_empty()


def a_reply_waits_for_a_slow_reader():
    """256 KiB and a close, read only after what would be the time to linger."""
    with Server(PROGRAM) as server:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(WAIT_S)
            connection.connect(("127.0.0.1", server.port))
            for _ in range(12):
                connection.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            time.sleep(2.5)
            reader = Reader(connection)
            for _ in range(13):
                assert len(reader.reply().body) == 256 << 10
            assert reader.closed()


def a_refusal_behind_a_long_reply_cuts_nothing():
    with Server(PROGRAM) as server:
        for _ in range(100):
            with server.connect() as connection:
                connection.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\nbad\r\n\r\n")
                reader = Reader(connection)
                reader.more()
                for _ in range(12):  # more than it has read when it says no
                    connection.sendall(b"x" * 3000)
                connection.shutdown(socket.SHUT_WR)
                assert len(reader.reply().body) == 256 << 10
                assert reader.reply().status == 400 and reader.closed()


def a_thousand_requests_in_one_piece():
    with Server(PROGRAM) as server, server.connect() as connection:
        threading.Thread(target=connection.sendall, args=(GOOD * 1000,)).start()
        reader = Reader(connection)
        for _ in range(1000):
            assert reader.reply().status == 200


def a_peer_that_resets_mid_reply_costs_nothing():
    with Server(PROGRAM) as server:
        for i in range(50):
            with server.connect() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 2)
                if i % 2:
                    connection.recv(1000)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        server.wait_empty()
        assert ask(server, GOOD).status == 200


def out_of_descriptors_it_waits_without_spinning():
    with Server(PROGRAM) as server:
        used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used + 8, used + 8))
        held = [server.connect() for _ in range(12)]
        wait_until(lambda: server.stats()["open"] == 8)
        before = cpu_seconds(server.process.pid)
        time.sleep(1)
        assert cpu_seconds(server.process.pid) - before < 0.5
        for connection in held[:8]:
            connection.close()
        for connection in held[8:]:  # they were waiting in the kernel
            connection.sendall(GOOD)
            assert Reader(connection).reply().status == 200
            connection.close()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def http_1_0_is_told_that_it_may_go_on():
    with Server(PROGRAM) as server:
        old = b"GET /healthz HTTP/1.0\r\n%s\r\n"
        with server.connect() as connection:
            reader = Reader(connection)
            for _ in range(3):
                connection.sendall(old % b"Connection: keep-alive\r\n")
                assert reader.reply().fields["connection"] == "keep-alive"
            connection.sendall(old % b"")
            assert reader.reply().fields["connection"] == "close" and reader.closed()


def a_second_server_leaves_the_first_its_socket():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        with Server(PROGRAM, "--unix", path):
            second = subprocess.run([PROGRAM, "--unix", path], stdin=subprocess.DEVNULL,
                                    capture_output=True, text=True, timeout=WAIT_S, check=False)
            assert second.returncode == 1 and "cannot listen" in second.stderr, second
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(GOOD)
                assert Reader(connection).reply().status == 200


def draining_ends_streams():
    with Server(PROGRAM) as server, server.connect() as connection:
        connection.sendall(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
        reader = Reader(connection)
        assert reader.reply().status == 200
        first = b"id: 0\ndata: a\ndata: b\ndata: c\ndata: \ndata: d\n\n"
        while len(reader.bytes) < len(first):
            reader.more()
        assert server.tell("d") == "draining"
        while not reader.ended:
            reader.more()
        assert reader.bytes == first, reader.bytes


def streams_of_other_threads_end_while_peers_leave():
    with Server(PROGRAM, "--loops", "2") as server:
        def client(number):
            for i in range(150):
                with server.connect() as connection:
                    connection.sendall(b"GET /feed HTTP/1.1\r\nHost: a\r\n\r\n")
                    if (i + number) % 3 == 0:
                        reader = Reader(connection)
                        assert reader.reply().status == 200
                        while not reader.ended:
                            reader.more()
                        assert reader.bytes.endswith(b"data: x\n\n" * 4), reader.bytes
                        whole.append(i)
                    elif (i + number) % 3 == 1:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                              b"\1\0\0\0\0\0\0\0")

        whole = []
        threads = [threading.Thread(target=client, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert len(whole) == 6 * 50, len(whole)
        server.wait_empty()  # once their owner closed them, too


def bodies_in_pieces_go_at_the_peers_pace():
    """Whole, in order; while the peer does not read, the server keeps a buffer and no more."""
    whole = b"".join(b"%08d\0" % i + b"." * 2991 for i in range(4000))
    with Server(PROGRAM) as server:
        for pause in (False, True):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.request("GET", "/pieces")
            if pause:
                wait_until(lambda: server.stats()["held"] > 0)
                steps = []
                while len(steps) < 2 or steps[-1] != steps[-2]:  # until nothing moves any more
                    steps.append(int(server.stats()["held"]))
                assert max(steps) < 64 << 10, steps
            reply = connection.getresponse()
            assert reply.getheader("transfer-encoding") == "chunked"
            assert reply.getheader("content-type") == "text/plain"
            assert reply.read() == whole
            connection.close()
        wait_until(lambda: server.stats()["held"] == 0)


def bodies_that_are_cut_are_seen_to_be():
    with Server(PROGRAM) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", "/cut")
        try:
            connection.getresponse().read()
            raise AssertionError("it seemed whole")
        except http.client.IncompleteRead as cut:
            assert len(cut.partial) == 3000
        connection.close()
        with server.connect() as plain:  # a peer that leaves ends it
            plain.sendall(b"GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n")
            reader = Reader(plain)
            assert reader.reply().status == 200
            while b"00000000" not in reader.bytes:
                assert not reader.ended
                reader.more()
        wait_until(lambda: server.stats()["held"] == 0)
        old = ask(server, b"GET /pieces HTTP/1.0\r\n\r\n")
        assert old.status == 400 and "HTTP/1.1" in json.loads(old.body)["error"]["message"]
        head = ask(server, b"HEAD /pieces HTTP/1.1\r\nHost: a\r\n\r\n", head_only=True)
        assert head.fields["transfer-encoding"] == "chunked"
        wait_until(lambda: server.stats()["held"] == 0)


def a_reader_that_stalls_does_not_hold_up_a_stop():
    """Its beat is 15 s; a server that drains waits for 2."""
    with Server(PROGRAM) as server, socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(("127.0.0.1", server.port))
        plain.sendall(b"GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n")
        steps = [0]
        while steps[-1] == 0 or len(steps) < 300 or len(set(steps[-300:])) > 1:  # nothing moves
            steps.append(int(server.stats()["held"]))
        server.process.stdin.close()
        server.process.stdin = None
        try:
            assert server.process.wait(timeout=10) == 0
        except subprocess.TimeoutExpired as late:
            raise AssertionError("it waits for the reader") from late


def chunked_bodies_leave_the_next_request_alone():
    with Server(PROGRAM) as server:
        head = (b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n")
        for size in (1, 4000, 4096, 8192, 70000):
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in
                            (b"x" * size, b"y" * 3)) + b"0\r\nX-Sum: 1\r\n\r\n"
            with server.connect() as connection:
                connection.sendall((head + body + GOOD) * 3)
                reader = Reader(connection)
                for _ in range(3):
                    assert reader.reply().body == b"%d" % (size + 3)
                    assert reader.reply().body == b'{"ok":true}'


def bodies_and_heads_fill_buffers_exactly():
    with Server(PROGRAM) as server:
        base = len(post("/upload", b"", "X-Fill: ")) + 3
        for whole in (4095, 4096, 4097, 8191, 8192, 8193):
            request = post("/upload", b"b" * 1000)
            request = post("/upload", b"b" * 1000, "X-Fill: " + "f" * (whole - len(request) - 10))
            assert len(request) == whole, (len(request), base)
            with server.connect() as connection:
                connection.sendall(request * 3 + GOOD)
                reader = Reader(connection)
                for _ in range(3):
                    assert reader.reply().body == b"1000"
                assert reader.reply().status == 200
        for size, status in ((16384, 200), (16385, 431)):
            head = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n"
            head = head.replace(b"X: ", b"X: " + b"x" * (size - len(head)))
            assert len(head) == size and ask(server, head).status == status


def allocations_that_fail_cost_a_request_at_most():
    with Server(PROGRAM, "--fail", "5") as server:
        requests = [GOOD, post("/echo", b"[1]"), post("/later", b"[2]" * 3000),
                    post("/upload", b"x" * 100000), post("/upload", b"x" * 3000),
                    post("/upload", gzip.compress(b"abc" * 100), "Content-Encoding: gzip"),
                    b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n",
                    b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n",
                    b"GET /feed HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
                    b"GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n"]
        seen = set()
        for i in range(600):
            with server.connect() as connection:
                try:
                    connection.sendall(requests[i % len(requests)])
                    connection.shutdown(socket.SHUT_WR)
                    reply = Reader(connection).reply()
                    seen.add(None if reply is None else reply.status)
                except (ConnectionResetError, BrokenPipeError, OSError):
                    seen.add(None)
        assert {200, 400} <= seen <= {None, 200, 400, 429, 500, 503}, seen
        server.wait_empty()


def expired_and_foreign_certificates_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        openssl("x509", "-req", "-in", path("client.csr"), "-CA", path("ca.pem"), "-CAkey",
                path("ca.key"), "-CAcreateserial", "-days", "-1",
                "-out", path("old.pem"))
        os.link(path("client.key"), path("old.key"))
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key"),
                    path("ca.pem")) as server:
            for name in ("old", "other", None):
                assert refused_tls(server, tls_client(path, name)), name
            assert ask_tls(server, tls_client(path, "client")).status == 200
            wait_until(lambda: server.stats()["open"] == 0)


def tls_peers_beyond_the_cap_are_closed_without_plain_words():
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key"), "--conns",
                    "4") as server, server.connect():
            wait_until(lambda: server.stats()["open"] == 1)
            with server.connect() as connection:
                assert Reader(connection).closed()


def tls_peers_may_leave_at_any_byte():
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key")) as server:
            context = tls_client(path)
            for i in range(40):
                with server.connect() as plain:
                    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                    session = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
                    try:
                        session.do_handshake()
                    except ssl.SSLWantReadError:
                        pass
                    hello = outgoing.read()
                    plain.sendall(hello[:len(hello) * i // 39])
                    if i % 2:
                        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            for request in (GOOD[:10], GOOD, b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n"):
                with server.connect() as plain:
                    connection = context.wrap_socket(plain, server_hostname="localhost",
                                                     suppress_ragged_eofs=False)
                    connection.sendall(request)
                    os.close(connection.detach())  # no close_notify
            server.wait_empty()
            assert ask_tls(server, context).status == 200
            big = ask_tls(server, context, b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 40)
            assert len(big.body) == 256 << 10


CASES = [replies_carry_what_they_must, dates_are_of_the_moment,
         admin_routes_are_on_the_admin_listener_only,
         answers_from_another_thread_keep_their_order,
         no_answer_becomes_504_and_a_late_one_is_dropped, a_peer_that_leaves_takes_nothing_with_it,
         a_half_closed_connection_gets_its_answer, slow_heads_and_bodies_are_ended_by_one_deadline,
         idle_connections_are_closed_quietly, connections_have_caps, memory_has_a_budget,
         rates_are_bounded, requests_inflight_are_bounded, capabilities_come_before_bodies,
         a_refused_upload_can_be_read, curl_shows_the_refusal, expect_is_answered_before_the_body,
         compressed_bodies_are_opened_under_caps, events_are_streamed_and_resumed,
         a_head_of_events_has_none,
         unix_sockets_know_who_asks, draining_refuses_writes_and_serves_reads,
         tls_is_1_3_with_or_without_client_certificates, certificates_rotate_under_load,
         half_open_handshakes_do_not_stop_others, slowloris_does_not_stop_others,
         a_client_that_never_reads_is_held_up_then_ended, a_reply_waits_for_a_slow_reader,
         a_refusal_behind_a_long_reply_cuts_nothing, a_thousand_requests_in_one_piece,
         a_peer_that_resets_mid_reply_costs_nothing,
         out_of_descriptors_it_waits_without_spinning, http_1_0_is_told_that_it_may_go_on,
         a_second_server_leaves_the_first_its_socket, draining_ends_streams,
         streams_of_other_threads_end_while_peers_leave,
         bodies_in_pieces_go_at_the_peers_pace, bodies_that_are_cut_are_seen_to_be,
         a_reader_that_stalls_does_not_hold_up_a_stop,
         chunked_bodies_leave_the_next_request_alone, bodies_and_heads_fill_buffers_exactly,
         allocations_that_fail_cost_a_request_at_most,
         expired_and_foreign_certificates_are_refused,
         tls_peers_beyond_the_cap_are_closed_without_plain_words, tls_peers_may_leave_at_any_byte]

if __name__ == "__main__":
    sys.exit(tap([(case.__name__.replace("_", " "), case) for case in CASES]))
