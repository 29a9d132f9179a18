#!/usr/bin/env python3
"""test_cases.py [SERVER] - every line of cases.txt against the server, in three ways; TAP.

Method: in one piece; byte by byte; behind a good request on the same connection. A refusal must
carry the error envelope and close; the connection after a good request must still serve another.
"""
import json
import pathlib
import re
import sys

from serverlib import Reader, Server, tap

HERE = pathlib.Path(__file__).parent
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/tests/http/http_server"
GOOD = b"GET /healthz HTTP/1.1\r\nHost: good\r\n\r\n"
PLAIN = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\"}


def unescape(text):
    def one(match):
        escape = match.group(0)
        if escape.startswith("\\{"):
            inner, times = escape[2:-1].rsplit("*", 1)
            return unescape_text(inner) * int(times)
        if escape[1] == "x":
            return chr(int(escape[2:], 16))
        return PLAIN[escape[1]]

    def unescape_text(part):
        return re.sub(r"\\\{(?:\\x[0-9a-f]{2}|.)\*\d+\}|\\x[0-9a-f]{2}|\\.", one, part)

    return unescape_text(text).encode("latin-1")


def read_cases():
    for line in (HERE / "cases.txt").read_text(encoding="ascii").splitlines():
        if line and not line.startswith("#"):
            status, name, request = line.split("|", 2)
            yield int(status), name.strip(), unescape(request[1:])


def send(connection, request, by_byte):
    try:
        if not by_byte:
            connection.sendall(request)
            return
        for byte in request[:3000]:
            connection.sendall(bytes([byte]))
        connection.sendall(request[3000:])
    except (BrokenPipeError, ConnectionResetError):
        pass  # it has heard enough


def check(reader, status, request):
    reply = reader.reply(head_only=request.startswith(b"HEAD"))
    if status == 0:
        assert reply is None, reply.status
        return
    assert reply is not None, "closed without a word"
    assert reply.status == status, (reply.status, reply.body)
    if status == 200:
        return
    error = json.loads(reply.body)["error"]
    assert set(error) == {"code", "message", "retryable", "corr_id", "details"}, error
    assert reply.fields["content-type"] == "application/json"
    assert reply.fields["connection"] == "close"
    assert reader.closed()


def run(server, status, request, by_byte=False, behind=False):
    with server.connect() as connection:
        reader = Reader(connection)
        send(connection, (GOOD if behind else b"") + request, by_byte)
        if behind:
            assert reader.reply().status == 200
        check(reader, status, request)
        if status == 200 and b"HTTP/1.0" not in request and b"close" not in request:
            connection.sendall(GOOD)
            assert reader.reply().status == 200, "the connection does not go on"


def main():
    with Server(PROGRAM) as server:
        cases = []
        for status, name, request in read_cases():
            for way in ({}, {"by_byte": True}, {"behind": True}):
                cases.append((f"{name}, {next(iter(way), 'in one piece')}",
                              lambda s=status, r=request, w=way: run(server, s, r, **w)))
        assert len(cases) >= 3 * 80
        return tap(cases)


if __name__ == "__main__":
    sys.exit(main())
