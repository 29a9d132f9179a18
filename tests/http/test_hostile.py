#!/usr/bin/env python3
"""test_hostile.py [SERVER] [--count N] [--seed N] - hostile requests in number; TAP.

Method: the lines of cases.txt and some of each other kind, bent, cut, joined and sent in pieces;
the peer reads its replies, leaves or resets. Every reply must be one; at the end nothing may be
left: no connection, no byte of the budget, no descriptor, no memory.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import socket
import struct
import sys
import tempfile

from serverlib import WAIT_S, Reader, Server, tap

sys.argv, ARGUMENTS = sys.argv[:1], sys.argv[1:]  # test_cases reads them, too
from test_cases import GOOD, read_cases  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).parent
STATUSES = {100, 200, 400, 401, 404, 405, 408, 411, 413, 415, 429, 431, 504}
LINE = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Za-z ]+\r\n")
MARKS = [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\r\n\r\n", b"0\r\n\r\n", b"\x80", b"%",
         b"chunked", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"HTTP/1.1",
         b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Content-Encoding: gzip\r\n",
         b"ffffffff\r\n", b"99999999999999999999", b"X-Deadline-Ms: 1\r\n"]
RESET = b"\1\0\0\0\0\0\0\0"


def post(path, body, fields=b""):
    return (b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%s"
            b"Content-Length: %d\r\n\r\n%s" % (path, fields, len(body), body))


def seeds():
    yield from (request for _, _, request in read_cases())
    packed = gzip.compress(b"[1,2,3]" * 40, mtime=0)
    for _ in range(10):  # as often as the refused
        yield from (GOOD, post(b"/later", b"[1]" * 500), post(b"/upload", b"x" * 9000),
                    post(b"/upload", packed, b"Content-Encoding: gzip\r\n"),
                    b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n",
                    b"GET /feed HTTP/1.1\r\nHost: a\r\n\r\n",
                    b"GET /secret HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\n\r\n")
    yield b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n"


def bend(rng, request, others):
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        if not request:
            return request
        at = rng.randrange(len(request))
        way = rng.randrange(6)
        if way == 0:
            request = request[:at] + bytes([request[at] ^ 1 << rng.randrange(8)]) + request[at + 1:]
        elif way == 1:
            request = request[:at] + request[at + rng.choice((1, 1, 2, 9)):]
        elif way == 2:
            request = request[:at] + rng.choice(MARKS) + request[at:]
        elif way == 3:
            request = request[:at]
        elif way == 4:
            end = at + rng.choice((1, 4, 30))
            request = request[:end] + request[at:end] * rng.choice((1, 1, 40)) + request[end:]
        else:
            request = request[:at] + rng.choice(others)[at:]
    return request


def check_replies(data):
    """Nothing but whole replies; none behind a refusal."""
    at = 0
    while at < len(data):
        line = LINE.match(data, at)
        assert line, data[at:at + 80]
        status = int(line.group(1))
        assert status in STATUSES, status
        end = data.find(b"\r\n\r\n", at)
        assert end >= 0, "a head is cut"
        head, at = data[at:end], end + 4
        if b"text/event-stream" in head:
            assert all(part.startswith((b"id: ", b"data: ", b"event: ", b":"))
                       for part in data[at:].split(b"\n") if part), data[at:]
            return
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        size = 0 if length is None else int(length.group(1))
        if at + size <= len(data) and data[at + size:at + size + 9] in (b"", b"HTTP/1.1 "):
            at += size
        else:  # the reply to a HEAD
            assert data[at:at + 9] in (b"", b"HTTP/1.1 "), "a body is cut"
        assert status < 400 or at == len(data), data[at:at + 80]


def check_frame(data):
    """A first byte of zero is OAP/1's: it was no frame, and the one answer says so and ends."""
    if not data:
        return  # less than a head
    size, version, flags, code = struct.unpack_from(">IHHH", data)
    assert size == len(data) and version == 1 and flags == 2 | 16, data[:80]
    assert code in (400, 408, 409, 413), code
    assert json.loads(data[38:])["error"]["code"], data[:80]


def attack(server, rng, pieces, number):
    local = number % 2
    with (socket.socket(socket.AF_UNIX) if local else server.connect()) as connection:
        if local:
            connection.settimeout(WAIT_S)
            connection.connect(server.local[5:])
        try:
            for piece in pieces:
                connection.sendall(piece)
            end = rng.randrange(5)
            if end == 0:
                return
            if end == 1:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                return
            connection.shutdown(socket.SHUT_WR)
            reader = Reader(connection)
            while not reader.ended:
                reader.more()
        except TimeoutError:
            raise AssertionError("no answer and no end") from None
        except OSError:
            return  # refused while it was still sending
        first = b"".join(pieces)[:1]
        (check_frame if first == b"\0" else check_replies)(reader.bytes)


def memory_kb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s*(\d+)", status).group(1))


def run(program, count, seed):
    rng, others = random.Random(seed), list(seeds())
    sanitized = b"__asan_" in (code := pathlib.Path(program).read_bytes()) or b"__tsan_" in code
    with tempfile.TemporaryDirectory() as folder:
        with Server(program, "--unix", os.path.join(folder, "s"), "--head-ms", "2000", "--body-ms",
                    "2000", "--loops", "2") as server:
            fds = f"/proc/{server.process.pid}/fd"
            fds_count, sent, number, early_kb = len(os.listdir(fds)), 0, 0, None
            first_kb = memory_kb(server.process.pid)
            while sent < count:
                requests = [bend(rng, rng.choice(others), others)
                            for _ in range(rng.choice((1, 1, 2, 4)))]
                data = b"".join(requests)
                cut = rng.randrange(len(data) + 1) if rng.randrange(3) == 0 else len(data)
                try:
                    attack(server, rng, (data[:cut], data[cut:]), number)
                except AssertionError as failure:
                    raise AssertionError(f"seed {seed}, {number}: {failure}: {data[:3000]!r}"
                                         ) from failure
                sent += len(requests)
                number += 1
                if early_kb is None and sent >= count // 4:
                    early_kb = memory_kb(server.process.pid)
            stats = server.wait_empty()
            assert stats["replies"] > count // 10, stats
            assert len(os.listdir(fds)) == fds_count, "descriptors are left"
            grown_kb = memory_kb(server.process.pid) - early_kb
            assert grown_kb < (400 if sanitized else 8) << 10, f"{grown_kb} KiB more"
            print(f"# {sent} requests, {stats['replies']} replies; {fds_count} descriptors before "
                  f"and after; {first_kb} KiB at the start, {grown_kb} more since a quarter")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", nargs="?", default="build/tests/http/http_server")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(ARGUMENTS)
    return tap([(f"{options.count} hostile requests leave nothing behind",
                 lambda: run(options.program, options.count, options.seed))])


if __name__ == "__main__":
    sys.exit(main())
