#!/usr/bin/env python3
"""test_clients.py [SERVER] - clients written by others see why an upload is refused; TAP.

Method: Go's net/http and openssl s_client each send 10 MiB without Expect and must show the 413 and
its envelope (curl and Python do so in test_server.py); each several times, for it is a race.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from serverlib import Server, tap

HERE = pathlib.Path(__file__).parent
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/tests/http/http_server"
sys.argv[1:] = []
from test_server import make_certificates  # pylint: disable=wrong-import-position


def go_shows_the_refusal():
    with tempfile.TemporaryDirectory() as folder, Server(PROGRAM) as server:
        program = os.path.join(folder, "upload")
        environment = {"HOME": folder, **os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0"}
        subprocess.run(["go", "build", "-o", program, str(HERE / "go_upload.go")], check=True,
                       env=environment, timeout=240)
        for _ in range(5):
            done = subprocess.run([program, f"{server.url}/upload"], capture_output=True, text=True,
                                  timeout=30, check=False)
            assert done.returncode == 0, done.stderr
            status, body = done.stdout.split(" ", 1)
            assert status == "413" and json.loads(body)["error"]["code"] == "TooLarge", done.stdout


def openssl_shows_the_refusal():
    with tempfile.TemporaryDirectory() as folder:
        path = make_certificates(folder)
        with Server(PROGRAM, "--tls", path("server.pem"), path("server.key")) as server:
            request = (b"POST /upload HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (10 << 20))
            for _ in range(3):
                done = subprocess.run(
                    ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-servername",
                     "localhost", "-CAfile", path("ca.pem"), "-quiet", "-no_ign_eof",
                     "-verify_return_error"],
                    input=request + b"x" * (10 << 20), capture_output=True, timeout=30, check=False)
                assert b"HTTP/1.1 413 " in done.stdout and b'"TooLarge"' in done.stdout, done


CASES = [go_shows_the_refusal, openssl_shows_the_refusal]

if __name__ == "__main__":
    sys.exit(tap([(case.__name__.replace("_", " "), case) for case in CASES]))
