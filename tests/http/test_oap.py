#!/usr/bin/env python3
"""test_oap.py [SERVER] - OAP/1 against the test server, in bytes written from the format; TAP.

Method: a codec of its own, real connections, one behaviour each; no sleep.
"""
import contextlib
import json
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

from serverlib import WAIT_S, Reader, Server, tap, wait_until

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/tests/http/http_server"
REQ, RESP, EVENT, START, END, ACK_REQ, COMP, E2E = (1 << i for i in range(8))
ECHO, LATER, NEVER, SECRET, UPLOAD, SHORT, DESCRIBE, HOLD, RELEASE, CALL = range(1, 11)
GET, POST = 1, 2
HEAD = struct.Struct(">IHHHH16sHQ")
FRAME_MAX = 1 << 20


def frame(code, body=b"", corr=1, flags=REQ, capability=b"", **odd):
    """Any member may be given another value by name."""
    size = odd.get("size", HEAD.size + len(capability) + len(body))
    return HEAD.pack(size, odd.get("version", 1), flags, code, odd.get("proto", 7),
                     odd.get("tenant", 0).to_bytes(16, "big"),
                     odd.get("capability_size", len(capability)), corr) + capability + body


def call(method, target, body=b""):
    """The body of a frame that asks a route."""
    return bytes([method]) + len(target).to_bytes(2, "little") + target.encode() + body


class Frame:
    def __init__(self, head, body):
        (self.size, self.version, self.flags, self.code, self.proto, tenant, self.capability_size,
         self.corr) = HEAD.unpack(head)
        self.tenant, self.body = int.from_bytes(tenant, "big"), body

    def error(self):
        """The code of its error envelope, whose corr_id must be the frame's."""
        envelope = json.loads(self.body)["error"]
        assert self.code >= 400 and int(envelope["corr_id"], 16) == self.corr, envelope
        return envelope["code"]


class Client(Reader):
    """Frames over a connection."""

    def send(self, *frames):
        self.connection.sendall(b"".join(frames))

    def exactly(self, size):
        while len(self.bytes) < size:
            if self.ended:
                return None
            self.more()
        piece, self.bytes = self.bytes[:size], self.bytes[size:]
        return piece

    def frame(self):
        """The next frame; None when the server closed."""
        head = self.exactly(HEAD.size)
        if head is None:
            assert self.bytes == b"", self.bytes
            return None
        reply = Frame(head, b"")
        reply.body = self.exactly(reply.size - HEAD.size)
        assert reply.version == 1 and reply.capability_size == 0 and reply.flags & RESP
        assert reply.body is not None, "a frame is cut"
        return reply

    def ask(self, *arguments, **members):
        self.send(frame(*arguments, **members))
        return self.frame()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def client(server):
    return Client(server.connect())


def zstd(*blocks):
    """A zstd stream of (bytes, count) as RFC 8878 has it: raw blocks, or one byte repeated."""
    stream = b"\x28\xb5\x2f\xfd\x00\x38"  # no checksum, window of 128 KiB
    for number, (data, count) in enumerate(blocks, 1):
        kind = 0 if count == 1 else 1
        size = len(data) if count == 1 else count
        stream += (size << 3 | kind << 1 | (number == len(blocks))).to_bytes(3, "little") + data
    return stream


def hello_tells_the_bounds():
    with Server(PROGRAM) as server, client(server) as peer:
        # The bytes of docs/formats.md.
        peer.connection.sendall(bytes.fromhex("00000026 0001 0001 0000 0000" + "00" * 16 +
                                              "0000 0000000000000102"))
        head = peer.exactly(HEAD.size)
        assert head.hex() == "00000036" "0001" "0002" "00c8" "0000" + "00" * 16 + (
            "0000" "0000000000000102"), head.hex()
        assert peer.exactly(16).hex() == "00001000" "00008000" "4000" "ff00" "0100" "0100"
        assert peer.ask(0, b"x", proto=0).error() == "Malformed"
        assert peer.ask(1, proto=0).error() == "Malformed"
        assert peer.ask(0, proto=0).code == 200  # and it goes on


def a_request_sees_its_frame():
    with Server(PROGRAM) as server, client(server) as peer:
        tenant = 0x0102030405060708090a0b0c0d0e0f10
        reply = peer.ask(DESCRIBE, corr=0xfedcba9876543210, tenant=tenant, flags=REQ | START | E2E,
                         capability=b"good")
        seen = json.loads(reply.body)
        assert reply.code == 200 and reply.proto == 7 and reply.flags == RESP | E2E
        assert reply.tenant == tenant and reply.corr == 0xfedcba9876543210
        assert seen == {"app_proto": 7, "code": DESCRIBE, "flags": REQ | START | E2E,
                        "tenant_low": tenant & (1 << 64) - 1, "tenant_high": tenant >> 64,
                        "corr_id": "fedcba9876543210", "capability": 0, "head": 0}


def sending(peer, frames, piece):
    """All of it, so many bytes at a time, while the caller reads what comes back; to be joined."""
    def send():
        for at in range(0, len(frames), piece):
            peer.connection.sendall(frames[at:at + piece])

    sender = threading.Thread(target=send)
    sender.start()
    return sender


def frames_come_in_any_pieces():
    bodies = [bytes([i % 251]) * i for i in (0, 1, 100, 2000, 3000, 5000)]
    frames = b"".join(frame(ECHO, body, i) for i, body in enumerate(bodies))
    with Server(PROGRAM) as server:
        for piece in (1, 7, 37, 39, 4096, len(frames)):
            with client(server) as peer:
                sender = sending(peer, frames, piece)
                for i, body in enumerate(bodies):
                    reply = peer.frame()
                    assert reply.code == 200 and reply.corr == i and reply.body == body, (piece, i)
                sender.join()
        server.wait_empty()


def large_frames_go_both_ways():
    with Server(PROGRAM, "--loops", "2") as server, client(server) as peer:
        bodies = [random.Random(i).randbytes(size) for i, size in enumerate(
            (16384, 65536, 768000, FRAME_MAX - HEAD.size, 4096 - HEAD.size, 999999))]

        def send():
            for i, body in enumerate(bodies):
                peer.send(frame(ECHO, body, i))

        sender = threading.Thread(target=send)
        sender.start()
        for i, body in enumerate(bodies):
            reply = peer.frame()
            assert reply.code == 200 and reply.corr == i and reply.body == body, i
        sender.join()
        peer.send(frame(ECHO, b"next"))
        assert peer.frame().body == b"next"


def answers_from_another_thread_find_their_request():
    with Server(PROGRAM, "--loops", "2") as server:
        def run(number):
            with client(server) as peer:
                for turn in range(30):
                    wanted = {turn * 64 + i: b"%d %d" % (number, i) * (i + 1) for i in range(64)}
                    peer.send(*(frame(LATER, body, corr) for corr, body in wanted.items()))
                    for _ in range(64):
                        reply = peer.frame()
                        assert reply.code == 200 and wanted.pop(reply.corr) == reply.body
            done.append(number)

        done = []
        threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert len(done) == 6


def replies_come_in_the_order_they_are_given():
    with Server(PROGRAM) as server, client(server) as peer, client(server) as other:
        peer.send(*(frame(HOLD, b"%d" % i, i) for i in range(64)))
        wait_until(lambda: server.stats()["requests"] == 64)
        reply = peer.ask(ECHO, b"one too many", 64)
        assert reply.corr == 64 and reply.code == 429 and reply.error() == "Busy"
        reply = peer.ask(ECHO, b"x" * 100000, 65)  # its body is thrown away
        assert reply.corr == 65 and reply.error() == "Busy"
        assert peer.ask(0, proto=0, corr=66).code == 200  # HELLO takes no place
        assert other.ask(ECHO, b"mine").body == b"mine"
        assert other.ask(RELEASE).code == 200
        for i in reversed(range(64)):  # the last first
            reply = peer.frame()
            assert reply.corr == i and reply.body == b"%d" % i
        assert peer.ask(ECHO, b"there is room again", 67).code == 200


def some_requests_do_not_wait_for_more():
    """As many as the loop looks for company of, and fewer than go at once."""
    with Server(PROGRAM) as server, client(server) as peer:
        peer.send(*(frame(LATER, b"%d" % i, i) for i in range(12)))
        assert sorted(peer.frame().corr for _ in range(12)) == list(range(12))


def many_replies_of_a_turn_all_go():
    """More connections are answered at once than a turn sends."""
    with Server(PROGRAM) as server, contextlib.ExitStack() as stack, client(server) as other:
        peers = [stack.enter_context(client(server)) for _ in range(50)]
        for i, peer in enumerate(peers):
            peer.send(frame(HOLD, b"%d" % i, i))
        wait_until(lambda: server.stats()["requests"] == 50)
        assert other.ask(RELEASE).code == 200
        for i, peer in enumerate(peers):
            reply = peer.frame()
            assert reply.corr == i and reply.body == b"%d" % i


def acknowledgements_tell_the_window():
    with Server(PROGRAM) as server, client(server) as peer, client(server) as other:
        for i in range(3):
            ack = peer.ask(HOLD, b"x", i, flags=REQ | ACK_REQ)
            assert (ack.code, ack.proto, ack.corr) == (202, 0, i)
            assert struct.unpack("<I", ack.body) == (63 - i,)
        other.ask(RELEASE)
        assert [peer.frame().corr for _ in range(3)] == [2, 1, 0]
        assert peer.ask(77, flags=REQ | ACK_REQ).error() == "NotFound"  # refused: not in hand


def capabilities_come_with_start_and_stay():
    with Server(PROGRAM) as server, client(server) as peer:
        assert peer.ask(SECRET, b"x").error() == "Unauthorized"
        reply = peer.ask(SECRET, b"yes", flags=REQ | START, capability=b"good")
        assert reply.code == 200 and reply.body == b"yes"
        assert peer.ask(SECRET, b"again").body == b"again"
        bad = peer.ask(SECRET, b"x" * 900, flags=REQ | START, capability=b"goods" * 800)
        assert bad.code == 401 and bad.error() == "Unauthorized"
        assert peer.ask(SECRET, b"x").error() == "Unauthorized"  # the new one counts
        peer.ask(0, proto=0, flags=REQ | START, capability=b"good")
        assert peer.ask(SECRET, b"back").body == b"back"
        with client(server) as other:
            assert other.ask(SECRET, b"x").error() == "Unauthorized"
        assert peer.ask(SECRET, b"x", flags=REQ | START).error() == "Unauthorized"


def refusals_leave_the_connection():
    with Server(PROGRAM) as server, client(server) as peer:
        assert peer.ask(77, b"x" * 50000).error() == "NotFound"
        assert peer.ask(ECHO, proto=8).error() == "NotFound"
        assert peer.ask(SHORT, b"x" * 17).error() == "TooLarge"
        assert peer.ask(RELEASE, b"x").error() == "TooLarge"
        assert peer.ask(SHORT, b"x" * 16).body == b"x" * 16
        # Inflated it may be longer than a frame; its echo may not.
        reply = peer.ask(ECHO, zstd(*[(bytes([i]) * 110000, 1) for i in range(9)],
                                    *[(b"a", 131072)] * 2), flags=REQ | COMP)
        assert reply.error() == "TooLarge"
        assert peer.ask(ECHO, b"fine").body == b"fine"


def compressed_bodies_are_opened_under_caps():
    with Server(PROGRAM) as server, client(server) as peer:
        reply = peer.ask(ECHO, zstd((b"hello ", 1), (b"!", 5)), flags=REQ | COMP)
        assert reply.body == b"hello !!!!!" and reply.flags == RESP
        noise = random.Random(1).randbytes(130000)
        big = zstd((noise, 1), (noise[::-1], 1), *[(b"x", 131072)] * 8)
        assert peer.ask(UPLOAD, big, flags=REQ | COMP).body == b"%d" % (260000 + 8 * 131072)
        bomb = peer.ask(UPLOAD, zstd(*[(b"x", 131072)] * 60), flags=REQ | COMP)
        assert bomb.error() == "DecompressRatio"
        long = zstd(*[(noise, 1)] * 7, *[(b"x", 131072)] * 64)
        assert peer.ask(UPLOAD, long, flags=REQ | COMP).error() == "TooLarge"  # above 8 MiB
        assert peer.ask(SHORT, zstd((b"x", 17)), flags=REQ | COMP).error() == "TooLarge"
        assert peer.ask(ECHO, b"", flags=REQ | COMP).error() == "Malformed"
        assert peer.ask(ECHO, b"not zstd", flags=REQ | COMP).error() == "Malformed"
        assert peer.ask(ECHO, zstd((b"a", 9))[:-1], flags=REQ | COMP).error() == "Malformed"
        assert peer.ask(ECHO, b"plain").body == b"plain"
        peer.connection.close()
        server.wait_empty()


BROKEN = [
    ("version 0", "VersionSkew", frame(ECHO, version=0)),
    ("version 2", "VersionSkew", frame(ECHO, version=2)),
    ("no length", "Malformed", frame(ECHO, size=0)),
    ("less than a head", "Malformed", frame(ECHO, size=37)),
    ("one byte too many", "TooLarge", frame(ECHO, size=FRAME_MAX + 1)),
    ("16 MiB", "TooLarge", frame(ECHO, size=(1 << 24) - 1)),
    ("an unknown flag", "Malformed", frame(ECHO, flags=REQ | 256)),
    ("no kind", "Malformed", frame(ECHO, flags=0)),
    ("two kinds", "Malformed", frame(ECHO, flags=REQ | RESP)),
    ("a response", "Malformed", frame(ECHO, flags=RESP)),
    ("an event", "Malformed", frame(ECHO, flags=EVENT)),
    ("START of an event", "Malformed", frame(ECHO, flags=EVENT | START)),
    ("COMP and APP_E2E", "Malformed", frame(ECHO, b"x", flags=REQ | COMP | E2E)),
    ("a capability without START", "Malformed", frame(ECHO, capability=b"good")),
    ("a capability beyond the frame", "Malformed",
     frame(ECHO, b"x" * 9, flags=REQ | START, capability_size=10)),
    ("a capability of 4,097 bytes", "TooLarge",
     frame(ECHO, flags=REQ | START, capability=b"x" * 4097)),
]


def broken_frames_end_the_connection():
    with Server(PROGRAM) as server:
        for name, code, data in BROKEN:
            for before in (b"", frame(ECHO, b"good", 5)):
                with client(server) as peer:
                    peer.send(before)
                    if before:
                        assert peer.frame().corr == 5
                    peer.send(data + b"\0" * 100)
                    reply = peer.frame()
                    assert reply.error() == code, (name, reply.body)
                    assert reply.flags == RESP | END and reply.corr == 1 and reply.proto == 7, name
                    assert peer.frame() is None, name
        server.wait_empty()


def garbage_never_harms():
    chance = random.Random(7)
    with Server(PROGRAM) as server:
        for number in range(300):
            data = bytearray(frame(chance.randrange(10), chance.randbytes(chance.randrange(300)),
                                   number, flags=chance.choice((1, 9, 17, 33, 65, 129))))
            for _ in range(chance.randrange(4)):
                data[chance.randrange(1, len(data))] = chance.randrange(256)
            with client(server) as peer:
                peer.send(bytes(data), chance.randbytes(chance.randrange(100)))
                peer.connection.shutdown(socket.SHUT_WR)
                if data[8:10] not in (b"\0\x03", b"\0\x08"):  # those wait
                    while peer.frame() is not None:
                        pass
        with client(server) as peer:
            peer.ask(RELEASE)
        server.wait_empty()


def calls_reach_routes_in_any_pieces():
    texts = [b"", b"x", b"y" * 1000, b"z" * 60000]
    frames = b"".join(frame(CALL, call(POST, "/later", text), i) + frame(ECHO, text, i + 50)
                      for i, text in enumerate(texts))
    frames += frame(CALL, call(GET, "/healthz?" + "q" * 4087), 99)  # the longest target
    with Server(PROGRAM) as server:
        for piece in (1, 3, 40, 4096, 16384, len(frames)):
            with client(server) as peer:
                sender = sending(peer, frames, piece)
                seen = {}
                for _ in range(2 * len(texts) + 1):
                    reply = peer.frame()
                    assert reply.code == 200 and reply.corr not in seen, (piece, reply.body)
                    seen[reply.corr] = reply.body
                sender.join()
                for i, text in enumerate(texts):
                    assert seen[i] == seen[i + 50] == text, (piece, i)
                assert seen[99] == b'{"ok":true}'
        server.wait_empty()


def calls_are_admitted_before_their_body():
    with Server(PROGRAM) as server, client(server) as peer:
        # What is refused is answered while its body is still to come, and that is thrown away.
        for method, target, why in ((GET, "/nothing", "NotFound"), (9, "/echo", "Malformed"),
                                    (GET, "/echo", "MethodNotAllowed"), (GET, "", "Malformed"),
                                    (GET, "/secret", "Unauthorized"), (POST, "/echo", "TooLarge"),
                                    (GET, "/" + "x" * 4096, "HeadersTooLarge"),
                                    (GET, "/x y", "Malformed")):
            whole = frame(CALL, call(method, target, b"b" * 20000), 7)
            peer.send(whole[:HEAD.size + 3 + len(target)])
            assert peer.frame().error() == why, (method, target)
            peer.send(whole[HEAD.size + 3 + len(target):], frame(ECHO, b"on", 8))
            assert peer.frame().body == b"on"
        for body in (b"", b"\1", b"\1\1", b"\1\1\0", b"\1\5\0/abc"):
            assert peer.ask(CALL, body).error() == "Malformed", body
        for flag in (COMP, E2E):
            assert peer.ask(CALL, zstd((call(GET, "/healthz"), 1)),
                            flags=REQ | flag).error() == "UnsupportedMedia"
        for target in ("/events", "/hold", "/feed", "/pieces"):
            assert peer.ask(CALL, call(GET, target)).error() == "UnsupportedMedia", target
        assert peer.ask(CALL, call(GET, "/secret"), flags=REQ | START,
                        capability=b"good").body == b'{"ok":true}'
        assert peer.ask(CALL, call(GET, "/big"), flags=REQ | ACK_REQ).code == 202
        assert len(peer.frame().body) == 256 << 10
        # Only what is behind the target is received where it stays.
        whole = frame(CALL, call(POST, "/later", b"b" * 60000))
        for size in (HEAD.size, HEAD.size + 2, HEAD.size + 5, HEAD.size + 9):
            before = server.stats()["requests"]
            peer.send(whole[:size])
            wait_until(lambda before=before: server.stats()["requests"] > before)
            peer.send(whole[size:])
            assert peer.frame().body == b"b" * 60000
        # And a connection may end anywhere in one.
        for size in (HEAD.size, HEAD.size + 2, HEAD.size + 5, HEAD.size + 9000):
            with client(server) as gone:
                gone.send(frame(CALL, call(POST, "/later", b"b" * 20000))[:size])
        peer.connection.close()
        server.wait_empty()
        with client(server) as other:  # its handler keeps it
            assert other.ask(CALL, call(GET, "/never"), 5).error() == "Timeout"


def slow_frames_are_ended_by_one_deadline():
    data = frame(ECHO, b"x" * 1000, 3)
    with Server(PROGRAM, "--head-ms", "400", "--body-ms", "400") as server:
        for first, corr in ((1, 0), (37, 0), (38, 3), (1037, 3)):
            with client(server) as peer:
                start, began = time.monotonic(), first
                peer.send(data[:first])
                while not peer.ended and time.monotonic() < start + WAIT_S:
                    peer.connection.settimeout(0.1)
                    try:
                        peer.more()
                    except TimeoutError:
                        if first not in (37, 1037):
                            peer.connection.sendall(data[first:first + 1])  # now and then a byte
                            first += 1
                # A byte each 100 ms buys no time beyond 400 ms, with room for a slow machine.
                assert first - began < 20, first
                reply = peer.frame()
                assert reply.code == 408 and reply.error() == "Timeout" and reply.corr == corr
        assert server.stats()["slow"] == 4


def idle_connections_are_closed_quietly():
    with Server(PROGRAM, "--idle-ms", "2000") as server, client(server) as peer:
        assert peer.ask(ECHO, b"x").code == 200
        held = client(server)
        held.send(frame(HOLD, b"kept"))
        assert peer.frame() is None
        with client(server) as other:
            other.ask(RELEASE)
        assert held.frame().body == b"kept"  # it waited for an answer: that is not idle
        assert held.frame() is None


def no_answer_becomes_a_timeout_and_a_late_one_is_dropped():
    with Server(PROGRAM) as server, client(server) as peer:
        peer.send(*(frame(NEVER, corr=i) for i in range(5)), frame(HOLD, b"held", 5),
                  frame(ECHO, b"meanwhile", 6))
        assert peer.frame().corr == 6
        for i in range(5):
            reply = peer.frame()
            assert reply.corr == i and reply.code == 504 and reply.error() == "Timeout"
        with client(server) as other:
            other.ask(RELEASE)
        assert peer.frame().corr == 5
        assert peer.ask(ECHO, corr=0).code == 200  # the corr_id is free again


def end_closes_after_the_answers():
    with Server(PROGRAM) as server, client(server) as other:
        with client(server) as peer:
            peer.send(frame(HOLD, b"a", 1), frame(ECHO, b"b", 2, flags=REQ | END),
                      frame(ECHO, b"never read", 3))
            reply = peer.frame()
            assert reply.corr == 2 and reply.flags == RESP
            other.ask(RELEASE)
            reply = peer.frame()
            assert reply.corr == 1 and reply.flags == RESP | END
            assert peer.frame() is None
        for code, proto in ((ECHO, 7), (77, 7), (0, 0)):
            with client(server) as peer:
                reply = peer.ask(code, proto=proto, flags=REQ | END)
                assert reply.flags == RESP | END and peer.frame() is None
        with client(server) as peer:  # a half-closed peer gets its answers, too
            peer.send(*(frame(LATER, b"x", i) for i in range(40)))
            peer.connection.shutdown(socket.SHUT_WR)
            assert sorted(peer.frame().corr for _ in range(40)) == list(range(40))
            assert peer.frame() is None


def one_corr_id_is_in_flight_once():
    with Server(PROGRAM) as server, client(server) as peer:
        peer.send(frame(HOLD, corr=9), frame(ECHO, corr=9))
        reply = peer.frame()
        assert reply.error() == "Malformed" and reply.flags == RESP | END and peer.frame() is None


def a_peer_that_leaves_takes_nothing_with_it():
    with Server(PROGRAM, "--loops", "2") as server:
        for how in range(3):
            peers = [client(server) for _ in range(20)]
            for peer in peers:
                peer.send(*(frame(HOLD, b"x" * 3000, i) for i in range(64)),
                          frame(ECHO, b"half", 64)[:-1])
            wanted = (how + 1) * 20 * 65 + how
            wait_until(lambda wanted=wanted: server.stats()["requests"] == wanted)
            for peer in peers:
                if how == 0:
                    peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                               struct.pack("ii", 1, 0))
                elif how == 1:
                    peer.connection.shutdown(socket.SHUT_WR)
                peer.connection.close()
            with client(server) as other:
                assert other.ask(RELEASE).code == 200
            server.wait_empty()  # the answers are dropped by then


def a_peer_that_does_not_read_is_not_read():
    data = b"".join(frame(ECHO, b"x" * 50000, i) for i in range(1000))  # takes longer than idle-ms
    with Server(PROGRAM, "--idle-ms", "700", "--bytes", str(32 << 20)) as server:
        with client(server) as peer:
            peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.connection.settimeout(0.3)
            sent = 0
            try:
                while sent < len(data):
                    sent += peer.connection.send(data[sent:sent + 65536])
            except (TimeoutError, OSError):
                pass
            assert sent < len(data)
            stats = server.stats()
            assert stats["held"] < 8 << 20, stats
            with client(server) as other:
                assert other.ask(ECHO, b"others go on").code == 200
            stats = server.wait_empty()
            assert stats["slow"] == 1, stats


def memory_has_a_budget():
    with Server(PROGRAM, "--bytes", str(512 * 1024)) as server:
        with client(server) as first, client(server) as second:
            data = frame(UPLOAD, b"x" * 400000, 4)
            first.send(data[:-1])
            wait_until(lambda: server.stats()["held"] >= 400000)
            reply = second.ask(UPLOAD, b"x" * 400000, 6)
            assert reply.error() == "Busy" and reply.corr == 6 and reply.flags == RESP
            assert second.ask(ECHO, b"small").body == b"small"  # the rest of it was thrown away
            assert second.ask(UPLOAD, zstd((b"x", 5)), flags=REQ | COMP).error() == "Busy"
            first.send(data[-1:])
            assert first.frame().body == b"400000"
            # Its body fits and its reply does not.
            reply = first.ask(ECHO, b"x" * 300000, 5)
            assert reply.error() == "Busy" and reply.corr == 5
        server.wait_empty()


def budgets_of_roles_are_shared_with_http():
    with Server(PROGRAM, "--inflight", "2") as server, client(server) as peer:
        peer.send(frame(HOLD, corr=1), frame(HOLD, corr=2))
        wait_until(lambda: server.stats()["requests"] == 2)
        assert peer.ask(ECHO, corr=3).error() == "Busy"
        with server.connect() as other:
            other.sendall(b"GET /peer HTTP/1.1\r\nHost: a\r\n\r\n")
            assert Reader(other).reply().status == 429
    with Server(PROGRAM, "--rate", "20") as server, client(server) as peer:
        peer.send(*(frame(LATER, corr=i) for i in range(60)))  # at once: three seconds' worth
        codes = {reply.corr: reply.code for reply in (peer.frame() for _ in range(60))}
        assert codes[0] == 200 and 429 in codes.values(), codes


def http_and_oap_share_a_port():
    with Server(PROGRAM) as server:
        with client(server) as peer, server.connect() as web:
            for i in range(10):
                web.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
                peer.send(frame(LATER, b"x", i))
                assert Reader(web).reply().status == 200 and peer.frame().corr == i
            web.sendall(frame(ECHO))  # HTTP it was, HTTP it stays
            assert Reader(web).closed()
            peer.connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: any\r\nAccept: */*\r\n\r\n")
            assert peer.frame().error() == "VersionSkew"
        port = int(server.admin.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as admin:
            admin.sendall(frame(ECHO))
            assert Reader(admin).closed()
        assert server.stats()["not_http"] == 2


def unix_sockets_and_tls_carry_frames():
    with tempfile.TemporaryDirectory() as folder:
        local, key, pem = (os.path.join(folder, name) for name in ("s", "key", "pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", pem, "-days",
                        "2", "-subj", "/CN=a"], check=True, capture_output=True)
        with Server(PROGRAM, "--tls", pem, key, "--unix", local) as server:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(local)
                assert Client(connection).ask(ECHO, b"local").body == b"local"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(server.connect()) as connection:
                peer = Client(connection)
                peer.send(*(frame(LATER, b"x" * (i * 500), i) for i in range(64)))
                for _ in range(64):
                    reply = peer.frame()
                    assert reply.body == b"x" * (reply.corr * 500)
                assert len(peer.ask(ECHO, b"y" * 900000).body) == 900000


def draining_refuses_writes_and_closes_after_the_answers():
    with Server(PROGRAM) as server:
        with client(server) as peer, client(server) as other:
            peer.send(frame(HOLD, b"kept", 1))
            wait_until(lambda: server.stats()["requests"] == 1)
            assert other.ask(ECHO).code == 200
            assert server.tell("d") == "draining"
            assert peer.ask(LATER, corr=2).error() == "Draining"
            reply = other.ask(RELEASE)
            assert reply.code == 200 and reply.flags == RESP | END and other.frame() is None
            reply = peer.frame()
            assert reply.body == b"kept" and reply.flags == RESP | END and peer.frame() is None


CASES = [hello_tells_the_bounds, a_request_sees_its_frame, frames_come_in_any_pieces,
         large_frames_go_both_ways, answers_from_another_thread_find_their_request,
         replies_come_in_the_order_they_are_given, some_requests_do_not_wait_for_more,
         many_replies_of_a_turn_all_go, acknowledgements_tell_the_window,
         capabilities_come_with_start_and_stay, refusals_leave_the_connection,
         compressed_bodies_are_opened_under_caps, broken_frames_end_the_connection,
         garbage_never_harms, calls_reach_routes_in_any_pieces,
         calls_are_admitted_before_their_body, slow_frames_are_ended_by_one_deadline,
         idle_connections_are_closed_quietly,
         no_answer_becomes_a_timeout_and_a_late_one_is_dropped, end_closes_after_the_answers,
         one_corr_id_is_in_flight_once, a_peer_that_leaves_takes_nothing_with_it,
         a_peer_that_does_not_read_is_not_read, memory_has_a_budget,
         budgets_of_roles_are_shared_with_http, http_and_oap_share_a_port,
         unix_sockets_and_tls_carry_frames, draining_refuses_writes_and_closes_after_the_answers]

if __name__ == "__main__":
    sys.exit(tap([(case.__name__.replace("_", " "), case) for case in CASES]))
