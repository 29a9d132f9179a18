#!/usr/bin/env python3
"""test_serve.py - `ron serve` from outside: files, routes, capabilities, signals, secrets; TAP.

    test_serve.py PROGRAM [NAME...]
"""
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from servelib import Collector, Serve, ask, certificate, refused, token_command, until

RON = sys.argv[1] if len(sys.argv) > 1 else "build/ron"
RON = os.path.abspath(RON)
# Little memory, where all of it is written to a file and read.
SMALL = {"RON_LEDGER__LOG__SEGMENT": "1MiB", "RON_LEDGER__LIMITS__MAX_ACCOUNTS": "1000"}
FAR = "2099-01-01T00:00:00Z"


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def write(path, text, permissions=0o600):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, permissions), "w",
              encoding="utf-8") as file:
        file.write(text)


# --- Start ----------------------------------------------------------------------------------------

def starts_and_says_where(home):
    """Three lines, nothing else on stdout; private files; the token is never printed.

    covers: LED-S10
    """
    data = os.path.join(home, "data")
    with Serve(RON, data) as server:
        for line, form in zip(server.announced, (r"api http://127\.0\.0\.1:\d+",
                                                 r"admin http://127\.0\.0\.1:\d+")):
            assert re.fullmatch(form, line), line
        assert server.announced[2] == f"token {data}/operator.token"
        assert mode(data) == 0o700
        for name in ("keyring", "operator.token", "lock", "ledger/log/owner"):
            assert mode(os.path.join(data, name)) == 0o600, name
        for folder, folders, files in os.walk(data):
            for name in folders:
                assert mode(os.path.join(folder, name)) == 0o700, name
            for name in files:
                assert mode(os.path.join(folder, name)) == 0o600, name
        token = server.token()
        assert ask(server.api + "/healthz").json() == {"alive": True}
        assert server.stop() == 0
        assert server.output.count(b"\n") == 3, server.output
        assert token not in server.log() and len(token) > 100


def keeps_what_it_made(home):
    data = os.path.join(home, "data")
    files = ("keyring", "operator.token")
    with Serve(RON, data):
        pass
    before = [open(os.path.join(data, name), "rb").read() for name in files]
    with Serve(RON, data) as server:
        assert ask(server.admin + "/admin/server/config", server.token()).status == 200
    assert before == [open(os.path.join(data, name), "rb").read() for name in files]
    os.unlink(os.path.join(data, "operator.token"))  # an operator who took it away is not given one
    with Serve(RON, data):
        pass
    assert not os.path.exists(os.path.join(data, "operator.token"))


def crash_between_token_and_keyring(home):
    """A token without a keyring is of a start that did not end: both are made anew."""
    data = os.path.join(home, "data")
    os.mkdir(data, 0o700)
    write(os.path.join(data, "operator.token"), "stale\n")
    with Serve(RON, data) as server:
        assert server.token() != "stale"
        assert ask(server.admin + "/admin/server/config", server.token()).status == 200


def one_process_per_directory(home):
    """covers: LED-F42"""
    data = os.path.join(home, "data")
    with Serve(RON, data):
        code, text = refused(RON, "--data", data, "--listen", "127.0.0.1:0", "--admin",
                             "127.0.0.1:0")
        assert code == 5 and "another process serves this data directory" in text, (code, text)


def refusals(home):
    """Each kind of failure has its exit code and says what is wrong.

    covers: LED-F37 LED-V11
    """
    ports = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    data = os.path.join(home, "data")
    config = os.path.join(home, "bad.toml")
    write(config, "[server]\nlisen = \"127.0.0.1:1\"\n")
    where = {"cwd": home}
    for arguments, code, text in (
            (["--colour"], 2, "unexpected argument"),
            (["--data"], 2, "--data"),
            (["--data", "a", "--data", "b"], 2, "--data"),
            (["--keyring-fd", "x"], 2, "--keyring-fd"),
            (["--config", config, *ports], 3, "did you mean server.listen?"),
            (["--config", "/nowhere/ron.toml", *ports], 3, "/nowhere/ron.toml"),
            (["--roles", "ledger,wallet", *ports], 3, "role wallet is not part of this build yet"),
            (["--roles", "bank", *ports], 3, "there is no role 'bank'"),
            (["--roles", "server", *ports], 3, "there is no role 'server'"),
            (["--listen", "0.0.0.0:0", "--admin", "127.0.0.1:0"], 3, "not loopback"),
            (["--listen", "127.0.0.1:0", "--admin", "[::]:0"], 3, "not loopback"),
            (["--listen", "localhost:0", "--admin", "127.0.0.1:0"], 3, "localhost"),
            (["--data", "/proc/ron", *ports], 5, "/proc/ron")):
        if "--data" not in arguments and "localhost:0" in arguments:
            arguments = [*arguments, "--data", data]
        got, said = refused(RON, *arguments, **where)
        assert got == code and text in said, (arguments, got, said)
    assert not os.path.exists(os.path.join(home, "ron-data")), "a refused start made files"
    write(os.path.join(home, "file"), "")
    assert refused(RON, "--data", os.path.join(home, "file"), *ports)[0] == 5
    os.makedirs(os.path.join(home, "open"), 0o777)
    os.chmod(os.path.join(home, "open"), 0o777)
    code, text = refused(RON, "--data", os.path.join(home, "open"), *ports)
    assert code == 5 and "others may write" in text, (code, text)


def data_that_is_not_ours(home):
    """A role's files are the data's: no exit code of the configuration, and no byte changes."""
    ports = ("--roles", "all", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    data = os.path.join(home, "data")
    with Serve(RON, data, "--roles", "all"):
        pass
    log = os.path.join(data, "ledger", "log")
    write(os.path.join(log, "notes"), "x")
    kept = {name: open(os.path.join(log, name), "rb").read() for name in os.listdir(log)}
    code, text = refused(RON, "--data", data, *ports)
    assert code == 5 and "ledger/log/notes is not part of a log: move it away" in text, (code, text)
    os.unlink(os.path.join(log, "notes"))
    del kept["notes"]
    segment = os.path.join(log, next(name for name in kept if name.startswith("seg-")))
    with open(segment, "r+b") as file:
        file.write(b"PKZIP")
    with Serve(RON, data, "--roles", "all") as server:  # its name says what it was: damage
        ready = until(lambda: (lambda r: r if "SafeMode" in r.body.decode() else None)(
            ask(server.api + "/readyz")), "the ledger is in SafeMode")
        assert ready.status == 503, ready.body
        said = until(lambda: ask(server.api + "/recovery", server.token()).json()["damage"],
                     "it says why: a start that recovers is in SafeMode before it has found it")
        assert said["file"].endswith(os.path.basename(segment)), said
    with open(segment, "r+b") as file:
        file.write(kept[os.path.basename(segment)][:5])
    assert kept == {name: open(os.path.join(log, name), "rb").read() for name in os.listdir(log)}
    config = os.path.join(home, "origin.toml")
    write(config, "[ledger]\norigin = \"two words\"\n")
    code, text = refused(RON, "--config", config, "--data", os.path.join(home, "none"), *ports)
    assert code == 3 and "ledger.origin" in text, (code, text)
    assert not os.path.exists(os.path.join(home, "none")), "a refused start made files"


def address_in_use(home):
    taken = socket.create_server(("127.0.0.1", 0))
    address = "127.0.0.1:%d" % taken.getsockname()[1]
    for flags in (("--listen", address, "--admin", "127.0.0.1:0"),
                  ("--listen", "127.0.0.1:0", "--admin", address)):
        code, text = refused(RON, "--data", os.path.join(home, "data"), *flags)
        assert code == 4 and address in text, (code, text)
    taken.close()


def read_only_directory(home):
    """Root writes anywhere, so it is tried as another user where that is possible."""
    data = os.path.join(home, "data")
    with Serve(RON, data):
        pass
    os.unlink(os.path.join(data, "keyring"))
    ports = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", data)
    if os.getuid() != 0:
        os.chmod(data, 0o500)
        code, text = refused(RON, *ports)
        os.chmod(data, 0o700)
    else:
        program = os.path.join(home, "ron")
        shutil.copy(RON, program)
        os.chmod(home, 0o755)
        for name in (data, *(os.path.join(data, file) for file in os.listdir(data))):
            os.chown(name, 65534, 65534)
        os.chmod(data, 0o500)
        code, text = refused(program, *ports, user=65534, group=65534, cwd=home)
    assert code == 5 and "Permission denied" in text, (code, text)


def keyring_must_be_private(home):
    """covers: LED-S10"""
    data = os.path.join(home, "data")
    ports = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", data)
    with Serve(RON, data):
        pass
    for name in ("keyring", "operator.token"):
        os.chmod(os.path.join(data, name), 0o640)
        code, text = refused(RON, *ports)
        assert code == 6 and "others may use it (mode 0640)" in text, (code, text)
        os.chmod(os.path.join(data, name), 0o600)
    keyring = os.path.join(data, "keyring")
    with open(keyring, "r+b") as file:
        file.truncate(os.path.getsize(keyring) - 80)
    code, text = refused(RON, *ports)
    assert code == 6 and "keyring" in text, (code, text)


def amnesia(home):
    """Nothing durable; the token on the third line; a keyring may come by descriptor."""
    with Serve(RON, None, "--amnesia") as server:
        token = server.announced[2].removeprefix("token ")
        assert ask(server.admin + "/admin/server/config", token).status == 200
        assert ask(server.admin + "/admin/server/reload", token, "POST").status == 200
        assert ask(server.admin + "/admin/server/config", token).status == 200
        assert token not in server.log()
    keyring = token_command(RON, "init")
    other = token_command(RON, "mint", "--caveat", "scope = server.admin", text=keyring + "\n")
    read, put = os.pipe()
    os.write(put, keyring.encode() + b"\n")
    os.close(put)
    with Serve(RON, None, "--keyring-fd", str(read), pass_fds=(read,)) as server:
        assert ask(server.admin + "/admin/server/config", other).status == 200
        assert ask(server.admin + "/admin/server/config", token).status == 401
    os.close(read)
    code, text = refused(RON, "--keyring-fd", "977")
    assert code == 6 and "/dev/fd/977" in text, (code, text)
    assert os.listdir(home) == []


def amnesia_makes_no_file(home):
    """From start to stop no call makes or changes a file, seen by strace.

    covers: LED-F23 LED-V14
    """
    trace, wrapper = os.path.join(home, "trace"), os.path.join(home, "run.sh")
    if shutil.which("strace") is None or "asan" in RON or "tsan" in RON or \
            subprocess.run(["strace", "-f", "-o", trace, "true"], capture_output=True,
                           check=False).returncode != 0:
        print("# skipped: no strace, it may not trace here, or a sanitizer build")
        return
    write(wrapper, f"#!/bin/sh\ncd {home} && exec strace -D -f -qq -o {trace} -e trace=file,desc "
                   f"{RON} \"$@\"\n", 0o700)
    with Serve(wrapper, None, "--amnesia") as server:
        token = server.announced[2].removeprefix("token ")
        assert ask(server.admin + "/admin/server/reload", token, "POST").status == 200
        assert ask(server.api + "/healthz").status == 200
    with open(trace, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    opened = [line for line in lines if re.search(r"\bopen(at)?2?\(", line)]
    assert len(opened) > 5, "that is no trace of the program"
    for line in opened:
        assert not re.search(r"O_CREAT|O_TMPFILE|O_WRONLY|O_RDWR", line) or '"/dev/' in line, line
    changing = re.compile(r"\b(creat|mkdir|mkdirat|rename\w*|link|linkat|symlink\w*|unlink\w*|"
                          r"mknod\w*|truncate|ftruncate|fallocate|fdatasync|fsync)\(")
    assert not [line for line in lines if changing.search(line)]
    assert sorted(os.listdir(home)) == ["run.sh", "trace"]


# --- Routes ---------------------------------------------------------------------------------------

def base_routes(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        server.wait_ready()
        for base in (server.api, server.admin):
            for path in ("/", "/healthz", "/readyz", "/version", "/openapi.json"):
                assert ask(base + path).status == 200, path
            curl = subprocess.run(["curl", "-sS", "-f", base + "/healthz"], capture_output=True,
                                  text=True, timeout=60, check=True)
            assert curl.stdout == '{"alive":true}'
        for path in ("/metrics", "/debug/topology", "/admin/server/config"):
            assert ask(server.api + path).status == 404, path
        version = ask(server.api + "/version").json()
        said = subprocess.run([RON, "version"], capture_output=True, text=True, check=True).stdout
        assert f"{version['name']} {version['version']}\n" == said
        api = ask(server.api + "/openapi.json").json()
        assert api["openapi"].startswith("3.1") and "/readyz" in api["paths"]
        assert "/admin/server/drain" in api["paths"]


def readiness(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        ready = until(lambda: (lambda r: r.json() if r.status == 200 else None)(
            ask(server.api + "/readyz")), "every role is ready")
        assert ready == {"ready": True, "roles": [
            {"role": "server", "state": "Running", "write": True, "read": True, "reasons": []},
            {"role": "ledger", "state": "Running", "write": True, "read": True, "reasons": []}]}
        assert ask(server.api + "/readyz?role=server&plane=write").json()["ready"] is True
        for query, status, code in (("role=wallet", 404, "NotFound"),
                                    ("plane=both", 400, "Malformed"),
                                    ("rolle=server", 400, "Malformed"),
                                    ("role=server&role=server", 400, "Malformed")):
            reply = ask(server.api + "/readyz?" + query)
            assert (reply.status, reply.code()) == (status, code), (query, reply.body)


def index_page(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        server.wait_ready()
        reply = ask(server.api + "/")
        page = reply.body.decode()
        assert reply.fields["Content-Type"].startswith("text/html")
        assert "default-src 'none'" in reply.fields["Content-Security-Policy"]
        assert 'href="/openapi.json"' in page and "operator.token" in page
        assert not re.search(r"(src|href)=\"(?!/)", page) and "<script" not in page
        for path in re.findall(r'href="([^"]+)"', page):
            assert ask(server.api + path).status == 200, path


def metrics(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        token = server.token()
        assert ask(server.admin + "/admin/server/config").status == 401
        for _ in range(3):
            assert ask(server.admin + "/admin/server/config", token).status == 200
        ask(server.api + "/healthz")
        reply = ask(server.admin + "/metrics")
        text = reply.body.decode()
        assert reply.fields["Content-Type"].startswith("text/plain; version=0.0.4")
        value = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        assert value['http_requests_total{role="server",listener="api"}'] == "1"
        assert value['rejected_total{role="server",reason="unauthorized"}'] == "1"
        assert value['auth_cache_misses_total{role="server"}'] == "1"
        assert value['auth_cache_hits_total{role="server"}'] == "2"
        assert value['queue_capacity{role="server",queue="reloads",q=""}'] == "8"
        loops = max(1, (os.cpu_count() or 1) // 4)
        assert value['tasks_spawned_total{role="server",kind="io_loop"}'] == str(loops + 1)
        assert value['readyz_degraded{role="server",cause="draining"}'] == "0"
        again = ask(server.admin + "/metrics").body.decode()
        assert 'rejected_total{role="server",reason="unauthorized"} 1\n' in again, "counted twice"
        promtool = shutil.which("promtool") or ".deps/prometheus/usr/bin/promtool"
        checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True,
                                 text=True, timeout=60, check=False)
        said = {line for line in (checked.stdout + checked.stderr).splitlines() if line}
        said -= {"ledger_backlog_gauge metric name should not include type 'gauge'"}  # the design's
        assert not said, said


def topology(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        document = ask(server.admin + "/debug/topology").json()
        objects = {(item["kind"], item["name"]) for item in document["objects"]}
        assert ("queue", "reloads") in objects and ("task", "io loop") in objects
        assert {"name": "cfg_snapshot", "rank": 10} in document["locks"]
        routes = {route["path"]: route for route in document["routes"]}
        assert routes["/admin/server/drain"] == {
            "name": "server_drain", "method": "POST", "path": "/admin/server/drain",
            "role": "server", "scope": "server.admin", "listener": "admin", "write": True}
        assert routes["/healthz"]["listener"] == "both" and routes["/healthz"]["scope"] is None


# --- Capabilities ---------------------------------------------------------------------------------

def capabilities(home):
    data = os.path.join(home, "data")
    with Serve(RON, data) as server:
        def config_with(token):
            reply = ask(server.admin + "/admin/server/config", token)
            return reply.status if reply.status == 200 else (reply.status, reply.code())

        def narrowed(*caveats):
            return token_command(RON, "attenuate", *(word for caveat in caveats
                                                     for word in ("--caveat", caveat)),
                                 text=operator + "\n")

        operator = server.token()
        assert config_with(operator) == 200
        assert config_with(None) == (401, "Unauthorized")
        assert config_with("nonsense") == (401, "Unauthorized")
        assert config_with(operator[:-8] + "AAAAAAAA") == (401, "Unauthorized")
        other = token_command(RON, "mint", "--caveat", "scope = server.admin",
                              text=token_command(RON, "init") + "\n")
        assert config_with(other) == (401, "Unauthorized"), "the key of another keyring"
        assert config_with(narrowed("before = 2020-01-01T00:00:00Z")) == (401, "Unauthorized")
        assert config_with(narrowed("after = " + FAR)) == (401, "Unauthorized")
        for caveat in ("scope = ledger.read,wallet.admin", "aud = wallet", "method = POST",
                       "path = /admin/server/drain", "ip = 10.0.0.0/8"):
            assert config_with(narrowed(caveat)) == (403, "Forbidden"), caveat
        assert config_with(narrowed("scope = server.admin", "aud = server", "method = GET",
                                    "path = /admin/server/*", "ip = 127.0.0.0/8",
                                    "before = " + FAR)) == 200
        assert config_with(token_command(RON, "mint", "--keyring", data, "--caveat",
                                         "scope = server.admin")) == 200
        reply = ask(server.admin + "/admin/server/config", operator)
        assert f'data = "{data}"  # --data' in reply.body.decode()


def revocation(home):
    """Revoked by `ron token revoke --keyring`, in force after SIGHUP; the others go on."""
    data = os.path.join(home, "data")
    with Serve(RON, data) as server:
        config = server.admin + "/admin/server/config"
        kept = server.token()
        ended = token_command(RON, "mint", "--keyring", os.path.join(data, "keyring"), "--caveat",
                              "scope = server.admin")
        identifier = re.search(r"identifier +(\S+)", token_command(RON, "inspect",
                                                                   text=ended + "\n")).group(1)
        assert ask(config, ended).status == 200
        token_command(RON, "revoke", "--keyring", data, "--token", identifier)
        assert ask(config, ended).status == 200, "not read yet"
        assert mode(os.path.join(data, "keyring")) == 0o600
        server.send(signal.SIGHUP)
        server.wait_log('"reloaded"')
        assert ask(config, ended).code() == "Unauthorized"
        assert ask(config, kept).status == 200
        metrics_text = ask(server.admin + "/metrics").body.decode()
        assert 'auth_keyring_epoch{role="server"} 2\n' in metrics_text
        # Rotation: the old key goes on until it is revoked.
        token_command(RON, "rotate", "--keyring", data)
        token_command(RON, "revoke", "--keyring", data, "--key", "k1")
        assert ask(server.admin + "/admin/server/reload", kept, "POST").status == 200
        assert ask(config, kept).code() == "Unauthorized"
        fresh = token_command(RON, "mint", "--keyring", data, "--caveat", "scope = server.admin")
        assert ask(config, fresh).status == 200


def another_keyring_with_the_same_epoch(home):
    """What a cache remembers of one keyring is worth nothing under another."""
    data = os.path.join(home, "data")
    with Serve(RON, data) as server:
        token = server.token()
        assert ask(server.admin + "/admin/server/config", token).status == 200
        write(os.path.join(data, "keyring"), token_command(RON, "init") + "\n")
        server.send(signal.SIGHUP)
        server.wait_log('"reloaded"')
        assert ask(server.admin + "/admin/server/config", token).status == 401


# --- Signals --------------------------------------------------------------------------------------

def a_reload_answers_for_itself(home):
    """Asked for right after the one before was answered: never with that one's answer."""
    data, config = os.path.join(home, "data"), os.path.join(home, "ron.toml")
    write(config, "[log]\nlevel = \"info\"\n")
    with Serve(RON, data, "--config", config) as server:
        token = server.token()
        for i in range(100):
            write(config, f"[log]\nlevel = \"{'loud' if i % 2 else 'info'}\"\n")
            reply = ask(server.admin + "/admin/server/reload", token, "POST")
            assert reply.status == (400 if i % 2 else 200), (i, reply.body)


def reload_is_all_or_nothing(home):
    """covers: LED-F38 LED-V11"""
    data, config = os.path.join(home, "data"), os.path.join(home, "ron.toml")
    write(config, "[log]\nlevel = \"info\"\n")
    with Serve(RON, data, "--config", config) as server:
        def level():
            text = ask(server.admin + "/admin/server/config", server.token()).body.decode()
            return re.search(r"^level = (\S+)", text, re.M).group(1)

        def reload():
            return ask(server.admin + "/admin/server/reload", server.token(), "POST")

        write(config, "[log]\nlevel = \"debug\"\n")
        assert reload().status == 200 and level() == '"debug"'
        for text, said in (("[log]\nlevel = \"loud\"\n", "log.level"),
                           ("[log]\nlevl = \"info\"\n", "did you mean log.level"),
                           ("[log]\nlevel = \"info\"\n[server]\nmax_conns = 9\n",
                            "server.max_conns changes only with a restart")):
            write(config, text)
            reply = reload()
            assert reply.status in (400, 409) and said in reply.json()["error"]["message"], \
                (text, reply.body)
            assert level() == '"debug"', "half of it was taken"
        server.wait_log("reload refused: nothing has changed")  # written by another thread
        whole = server.log().rpartition("\n")[0]
        assert all(json.loads(line)["ts"] for line in whole.splitlines())
        # A keyring that cannot be read holds back the configuration, too.
        write(config, "[log]\nlevel = \"warn\"\n")
        os.chmod(os.path.join(data, "keyring"), 0o644)
        reply = reload()
        assert reply.status == 403 and "chmod 600" in reply.json()["error"]["message"], reply.body
        assert level() == '"debug"'
        os.chmod(os.path.join(data, "keyring"), 0o600)
        server.send(signal.SIGHUP)
        until(lambda: level() == '"warn"', "the reload by SIGHUP")


def rates_are_hot(home):
    """A reload changes the rates of listeners that run: too few, then as many as one likes.

    covers: LED-F38
    """
    config = os.path.join(home, "ron.toml")
    write(config, "[server]\nreads_per_s = 0\n")
    of_the_file = {"RON_SERVER__READS_PER_S": None}
    with Serve(RON, os.path.join(home, "data"), "--config", config, env=of_the_file) as server:
        def reload(text):
            write(config, f"[server]\n{text}\n")
            assert ask(server.admin + "/admin/server/reload", server.token(), "POST").status == 200

        for _ in range(20):
            assert ask(server.api + "/version").status == 200
        reload("reads_per_s = 1")
        for base in (server.api, server.admin):
            reply = until(lambda url=base + "/version": (lambda r: r if r.status != 200 else None)(
                ask(url)), "a read too many")
            assert (reply.status, reply.code()) == (429, "RateLimited"), reply.body
            assert reply.fields["Retry-After"] == "1"
        reload("reads_per_s = 0")
        for base in (server.api, server.admin) * 20:
            assert ask(base + "/version").status == 200


def reload_under_load(home):
    """Keyrings change while requests are admitted: a token that both know is never refused."""
    data = os.path.join(home, "data")
    with Serve(RON, data) as server:
        token, wrong = server.token(), []

        def ask_often():
            for _ in range(100):
                status = ask(server.admin + "/admin/server/config", token).status
                if status != 200:
                    wrong.append(status)

        threads = [threading.Thread(target=ask_often) for _ in range(3)]
        for thread in threads:
            thread.start()
        reloads_count = 0
        while any(thread.is_alive() for thread in threads):
            assert ask(server.admin + "/admin/server/reload", token, "POST").status == 200
            reloads_count += 1
        for thread in threads:
            thread.join()
        assert wrong == [] and reloads_count > 0, (wrong, reloads_count)


def log_level_by_hand(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        def put(body):
            return ask(server.admin + "/admin/server/log", server.token(), "PUT", body)

        assert put(b'{"level":"error"}').status == 200
        assert put(b'{"level":"loud"}').code() == "Malformed"
        assert put(b'{"level":"info","x":1}').code() == "Malformed"
        assert put(b'{"level":"' + b"i" * 300 + b'"}').code() == "TooLarge"
        server.send(signal.SIGTERM)
        assert server.end() == 0
        assert "stopping" not in server.log()


def head_of_put(server, body_size):
    return (f"PUT /admin/server/log HTTP/1.1\r\nHost: ron\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {server.token()}\r\nContent-Length: {body_size}\r\n\r\n")


def begin_put(server, body):
    """A request whose body is half sent: in flight for as long as the client likes."""
    address = server.admin.removeprefix("http://").split(":")
    connection = socket.create_connection((address[0], int(address[1])), timeout=60)
    connection.sendall(head_of_put(server, len(body)).encode() + body[:5])
    scrapes = 0
    while True:  # until one request more than those of this loop was counted
        scrapes += 1
        text = ask(server.admin + "/metrics").body.decode()
        count = re.search(r'^http_requests_total.*listener="admin". (\d+)$', text, re.M)
        if int(count.group(1)) == scrapes + 1:
            return connection


def refuses_connections(url):
    address = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((address[0], int(address[1])), timeout=60).close()
    except ConnectionRefusedError:
        return True
    return False


def drain(home):
    """TERM: readiness off, API closed, what is in flight answered, admin last, exit code 0."""
    body = b'{"level":"debug"}'
    with Serve(RON, os.path.join(home, "data")) as server:
        connection = begin_put(server, body)
        server.send(signal.SIGTERM)
        until(lambda: refuses_connections(server.api), "the API listener closes")
        # The admin listener is busy with its last request; it takes no new ones, but answers.
        assert server.process.poll() is None, "it did not wait for the request in flight"
        connection.sendall(body[5:])
        reply = b""
        while b"\r\n\r\n" not in reply:
            piece = connection.recv(65536)
            assert piece, reply
            reply += piece
        assert reply.startswith(b"HTTP/1.1 200 "), reply
        assert server.end() == 0
        log = server.log()
        assert log.index('"stopping"') < log.index('"stopped"')


def drain_waits_for_a_slow_reader(home):
    """While replies are on their way out: not ready, with the reason; writes refused; exit 0."""
    with Serve(RON, os.path.join(home, "data")) as server:
        host, port = server.api.removeprefix("http://").split(":")
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect((host, int(port)))
        reader.setblocking(False)
        wanted = b"GET /openapi.json HTTP/1.1\r\nHost: ron\r\n\r\n"
        try:
            for _ in range(20000):  # far more than the kernel's buffers hold of replies
                reader.send(wanted)
        except BlockingIOError:
            pass
        counts = [0]

        def stalled():
            text = ask(server.admin + "/metrics").body.decode()
            found = re.search(r'^http_replies_total.*"api". (\d+)$', text, re.M)
            held = re.search(r'^http_held_bytes.*"api". (\d+)$', text, re.M)
            counts.append(int(found.group(1)))
            # A loop that merely waits for its turn on a busy machine looks the same for a moment.
            return counts[-1] > 20 and int(held.group(1)) > 0 and set(counts[-20:]) == {counts[-1]}

        until(stalled, "the server can send no more")
        assert counts[-1] < 20000
        server.wait_ready()
        server.send(signal.SIGTERM)
        server.wait_log('"stopping"')
        reply = until(lambda: (lambda r: r if r.status != 200 else None)(
            ask(server.admin + "/readyz")), "readiness goes off")
        assert (reply.status, reply.code()) == (503, "NotReady") and reply.fields["Retry-After"]
        details = reply.json()["error"]["details"]
        assert details["ready"] is False and details["roles"][0] == {
            "role": "server", "state": "Draining", "write": False, "read": False,
            "reasons": ["draining"]}
        text = ask(server.admin + "/metrics").body.decode()
        assert 'readyz_degraded{role="server",cause="draining"} 1\n' in text
        reply = ask(server.admin + "/admin/server/reload", server.token(), "POST")
        assert (reply.status, reply.code()) == (503, "Draining"), reply.body
        for _ in range(2):  # asking again is no second signal
            assert ask(server.admin + "/admin/server/drain", server.token(), "POST").status == 202
        # What is left must come through before the drain's deadline: no longer by drops.
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        reader.setblocking(True)
        reader.settimeout(60)
        try:
            while reader.recv(1 << 20):
                pass
        except ConnectionResetError:
            pass  # requests behind the last answer were never read
        reader.close()
        assert server.end() == 0


def drain_by_request(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        reply = ask(server.admin + "/admin/server/drain", server.token(), "POST")
        assert (reply.status, reply.json()) == (202, {"draining": True})
        assert server.end() == 0


def second_signal(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        connection = begin_put(server, b'{"level":"debug"}')
        server.send(signal.SIGTERM)
        until(lambda: refuses_connections(server.api), "the API listener closes")
        assert server.process.poll() is None
        assert server.stop(signal.SIGINT) == 8
        connection.close()


def interrupt_is_terminate(home):
    with Serve(RON, os.path.join(home, "data")) as server:
        assert server.stop(signal.SIGINT) == 0


def raises_its_limit_of_descriptors(home):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        server = Serve(RON, os.path.join(home, "data"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with server, open(f"/proc/{server.process.pid}/limits", encoding="ascii") as limits:
        raised = next(line.split()[3] for line in limits if line.startswith("Max open files"))
        wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
        assert int(raised) == wanted, raised


def tells_the_service_manager(home):
    address = os.path.join(home, "notify")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(address)
    manager.settimeout(60)
    with Serve(RON, os.path.join(home, "data"), env={"NOTIFY_SOCKET": address}) as server:
        assert manager.recv(4096) == b"READY=1\n"
        server.send(signal.SIGHUP)
        assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+\n", manager.recv(4096))
        assert manager.recv(4096) == b"READY=1\n"
        server.send(signal.SIGTERM)
        assert manager.recv(4096) == b"STOPPING=1\n"
        assert server.end() == 0
    manager.close()


def tls_and_rotation(home):
    """https on the API; certificates are read again on SIGHUP, and a bad one changes nothing.

    covers: LED-S10
    """
    config, data = os.path.join(home, "ron.toml"), os.path.join(home, "data")
    now, key = certificate(home, "now")
    write(config, f"[server.tls]\ncertificate = \"{now}\"\nkey = \"{key}\"\n")

    def name_of(server):
        host, port = server.api.removeprefix("https://").split(":")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(socket.create_connection((host, int(port)), timeout=60)) as end:
            return end.getpeercert(binary_form=True)

    with Serve(RON, data, "--config", config) as server:
        assert re.fullmatch(r"api https://127\.0\.0\.1:\d+", server.announced[0])
        said = subprocess.run(["curl", "-sS", "--cacert", now, server.api + "/healthz"],
                              capture_output=True, text=True, timeout=60, check=True).stdout
        assert said == '{"alive":true}'
        first = name_of(server)
        other, other_key = certificate(home, "other")
        shutil.copy(other, now)  # the key of another certificate
        reply = ask(server.admin + "/admin/server/reload", server.token(), "POST")
        assert reply.status == 400, reply.body
        assert name_of(server) == first
        shutil.copy(other_key, key)
        assert ask(server.admin + "/admin/server/reload", server.token(), "POST").status == 200
        assert name_of(server) != first
    os.chmod(key, 0o644)
    code, text = refused(RON, "--config", config, "--data", data)
    assert code == 3 and key in text, (code, text)
    write(config, f"[server.tls]\ncertificate = \"{now}\"\n")
    code, text = refused(RON, "--config", config, "--data", data)
    assert code == 3 and "needed together" in text, (code, text)


def client_certificates(home):
    """With an authority of clients a peer needs its certificate, on the admin listener beyond
    loopback always; half of the files is no start.

    covers: LED-S03
    """
    config, data = os.path.join(home, "ron.toml"), os.path.join(home, "data")
    now, key = certificate(home, "now")
    client, client_key = certificate(home, "client")  # signs itself: its own authority
    stranger, stranger_key = certificate(home, "stranger")
    files = f"[server.tls]\ncertificate = \"{now}\"\nkey = \"{key}\"\n"
    write(config, files + f"client_ca = \"{client}\"\n")

    def curl(url, *more):
        return subprocess.run(["curl", "-sS", "--cacert", now, *more, url + "/healthz"],
                              capture_output=True, text=True, timeout=60, check=False)

    with Serve(RON, data, "--config", config, admin="0.0.0.0:0") as server:
        for url in (server.api, server.admin.replace("0.0.0.0", "127.0.0.1")):
            assert url.startswith("https://"), url
            assert curl(url, "--cert", client, "--key", client_key).stdout == '{"alive":true}'
            assert curl(url).returncode != 0
            assert curl(url, "--cert", stranger, "--key", stranger_key).returncode != 0
    write(config, files)
    code, text = refused(RON, "--config", config, "--data", data, "--listen", "127.0.0.1:0",
                         "--admin", "0.0.0.0:0")
    assert code == 3 and "admin routes need server.tls.client_ca" in text, (code, text)
    for text, said in ((f"[server.tls]\nclient_ca = \"{client}\"\n", "needed together"),
                       (files + f"client_ca = \"{home}/nothing.pem\"\n", "nothing.pem")):
        write(config, text)
        code, text = refused(RON, "--config", config, "--data", data)
        assert code == 3 and said in text, (code, text)


def unix_socket(home):
    address, config = os.path.join(home, "api.sock"), os.path.join(home, "ron.toml")
    write(config, f"[server]\nunix = \"{address}\"\n")
    with Serve(RON, os.path.join(home, "data"), "--config", config):
        assert mode(address) == 0o600
        said = subprocess.run(["curl", "-sS", "--unix-socket", address, "http://ron/healthz"],
                              capture_output=True, text=True, timeout=60, check=True).stdout
        assert said == '{"alive":true}'
    assert not os.path.exists(address)


def unix_socket_knows_its_users(home):
    """Who is not on the list is closed at once and counted, whatever else it could show.

    covers: LED-S04 LED-V12
    """
    address, config = os.path.join(home, "api.sock"), os.path.join(home, "ron.toml")
    data, me = os.path.join(home, "data"), os.getuid()

    def curl(*more):
        return subprocess.run(["curl", "-sS", "--unix-socket", address, *more,
                               "http://ron/healthz"], capture_output=True, text=True, timeout=60,
                              check=False)

    for uids, allowed in (("", True), (f"4242,{me}", True), ("4242", False)):
        write(config, f"[server]\nunix = \"{address}\"\nunix_uids = \"{uids}\"\n")
        with Serve(RON, data, "--config", config) as server:
            done = curl("-H", f"Authorization: Bearer {server.token()}")
            assert (done.stdout == '{"alive":true}') == allowed, (uids, done)
            assert (done.returncode == 0) == allowed, (uids, done)
            text = ask(server.admin + "/metrics").body.decode()
            denied = 'uds_denied_total{role="server",listener="api"} '
            assert denied + ("0" if allowed else "1") + "\n" in text
            assert ask(server.api + "/healthz").status == 200  # TCP has no users
    for uids in ("root", "1,", "-1", "4294967295", ",".join(map(str, range(17)))):
        write(config, f"[server]\nunix = \"{address}\"\nunix_uids = \"{uids}\"\n")
        code, text = refused(RON, "--config", config, "--data", data, "--listen", "127.0.0.1:0",
                             "--admin", "127.0.0.1:0")
        assert code == 3 and "server.unix_uids" in text, (uids, code, text)


# --- Spans ----------------------------------------------------------------------------------------

def spans_total(server, result):
    text = ask(server.admin + "/metrics").body.decode()
    found = re.search(rf'^otlp_spans_total{{role="server",result="{result}"}} (\d+)$', text, re.M)
    return int(found.group(1))


def pipelined(server, count):
    """So many reads on one connection, all answered 200."""
    host, port = server.api.removeprefix("http://").split(":")
    wanted = b"GET /healthz HTTP/1.1\r\nHost: ron\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        for _ in range(count // 50):
            connection.sendall(wanted * 50)
            seen = b""
            while seen.count(b"HTTP/1.1 200") < 50:
                piece = connection.recv(1 << 16)
                assert piece, seen[-200:]
                seen += piece


def spans(home):
    """What a collector gets: valid OTLP, the caller's trace, our corr id, no token.

    covers: LED-C20
    """
    config = os.path.join(home, "ron.toml")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with Collector() as collector:
        def setting(permille):
            return f"[otlp]\nendpoint = \"{collector.url}\"\nsample_permille = {permille}\n"

        write(config, setting(1000))
        began_ns = time.time_ns()
        with Serve(RON, os.path.join(home, "data"), "--config", config) as server:
            token = server.token()

            def reload(permille):
                write(config, setting(permille))
                assert ask(server.admin + "/admin/server/reload", token, "POST").status == 200

            def named(corr_id):
                return lambda: [span for span in collector.spans()
                                if span["attributes"].get("corr_id") == corr_id]

            for number, (url, status) in enumerate((
                    (server.admin + "/admin/server/config", 200), (server.api + "/nothing", 404),
                    (server.api + "/healthz", 200))):
                assert ask(url, token, fields={"traceparent": parent, "X-Corr-ID": f"t-{number}"}
                           ).status == status
            span, = until(named("t-0"), "the span of a request")
            assert span["traceId"] == parent[3:35] and span["parentSpanId"] == parent[36:52]
            assert span["name"] == "server_config" and "status" not in span
            assert span["attributes"]["http.response.status_code"] == 200
            assert span["attributes"]["role"] == "server"
            assert began_ns // 10**9 <= span["start"] // 10**9 <= span["end"] // 10**9
            assert span["end"] <= time.time_ns() + 10**9
            span, = until(named("t-1"), "the span of a refusal")
            assert span["name"] == "refused"
            assert span["attributes"]["http.response.status_code"] == 404
            reload(0)
            ask(server.api + "/healthz", fields={"X-Corr-ID": "off"})
            reload(1000)
            ask(server.api + "/healthz", fields={"X-Corr-ID": "on"})
            span, = until(named("on"), "spans after they were switched on again")
            assert "parentSpanId" not in span and span["traceId"] != parent[3:35]
            assert not named("off")(), "not sampled, and yet sent"
            until(lambda: spans_total(server, "sent") >= 4, "they are counted")
            assert spans_total(server, "failed") == 0
            secrets = secrets_of(server.data, token)
        assert not [secret for secret in secrets if secret in b"".join(collector.bodies)]
    for endpoint in ("https://127.0.0.1:1", "127.0.0.1:1", "http://nowhere:1/x"):
        code, text = refused(RON, "--data", os.path.join(home, "data"),
                             env=dict(os.environ, RON_OTLP__ENDPOINT=endpoint))
        assert code == 3 and "otlp.endpoint" in text, (endpoint, code, text)


def collectors_that_fail(home):
    """Down, refusing or silent: requests are answered, losses counted, the stop is not held up."""
    for mode in ("down", "refuse", "stall"):
        with Collector(mode) as collector:
            env = {"RON_OTLP__ENDPOINT": collector.url, "RON_OTLP__SAMPLE_PERMILLE": "1000"}
            with Serve(RON, os.path.join(home, mode), env=env) as server:
                pipelined(server, 100)
                until(lambda: spans_total(server, "failed") > 0, f"{mode}: losses are counted")
                if mode == "stall":
                    until(lambda: pipelined(server, 3000) or spans_total(server, "dropped") > 0,
                          "a full queue drops")
                assert spans_total(server, "sent") == 0
                server.wait_ready()
                assert server.stop() == 0


# --- Secrets --------------------------------------------------------------------------------------

def secrets_of(data, *tokens):
    """What must not be seen: ends of tokens (their MACs: the rest is no secret, and may be
    overwritten while they stay), keys as hex and as bytes."""
    texts = [token.encode()[-40:] for token in tokens]
    with open(os.path.join(data, "keyring"), encoding="ascii") as file:
        keyring = file.read()
    for key in re.findall(r"^key \S+ \S+ (?:sign|verify) (\S+)$", keyring, re.M):
        texts += [key.encode(), bytes.fromhex(key)]
    texts += [token.encode()[-40:] for token in re.findall(r"^service \S+ (\S+)$", keyring, re.M)]
    assert len(texts) >= 7 + len(tokens)
    return texts


def marker_token(home):
    """No token and no key in logs, metrics, errors, diagnostics or memory dumps.

    covers: LED-S06
    """
    data = os.path.join(home, "data")
    with Serve(RON, data, env=SMALL) as server:
        marked = token_command(RON, "mint", "--keyring", data, "--caveat", "scope = server.admin",
                               "--caveat", "path = /admin/server/config",
                               "--caveat", "account = MARKERMARKERMARKER")
        wrong = marked[:-6] + "AAAAAA"
        secrets = secrets_of(data, server.token(), marked, wrong)
        seen = [b"".join(line.encode() for line in server.announced)]
        for base in (server.admin, server.api):
            for path in ("/admin/server/config", "/admin/server/reload", "/nothing", "/readyz",
                         "/metrics", "/debug/topology", "/openapi.json", "/version?token=x"):
                for token in (marked, wrong, server.token()):
                    for method in ("GET", "POST"):
                        if "reload" in path and token != marked:
                            continue
                        reply = ask(base + path, token, method)
                        seen.append(reply.body + str(reply.fields).encode())
        awkward_heads(server, marked)
        server.send(signal.SIGHUP)
        server.wait_log('"reloaded"')
        seen += [ask(server.admin + path).body for path in ("/metrics", "/debug/topology")]
        core = core_of(server.process.pid, home)
        if core is not None:
            assert b"/admin/server/config" in core, "that is no dump of the process"
            seen.append(core)
        server.stop()
        seen += [server.log().encode(), server.output]
        for text in seen:
            for i, secret in enumerate(secrets):
                assert secret not in text, (f"secret {i} of {len(secrets)} in "
                                            f"{len(text)} bytes: {text[:80]!r}")


def awkward_heads(server, token):
    """Heads that move about in memory: in pieces, behind another, too long, never finished."""
    host, port = server.admin.removeprefix("http://").split(":")
    begin = b"GET /admin/server/config HTTP/1.1\r\nHost: ron\r\nAuthorization: Bearer "
    whole = begin + token.encode() + b"\r\n\r\n"
    filler = b"".join(b"X-%d: %s\r\n" % (i, b"f" * 900) for i in range(10))
    for pieces, replies_count in (
            ([whole[:-20], whole[-20:]], 1),
            ([whole * 7 + whole[:-20], whole[-20:]], 8),  # the last one moves to the front
            ([whole[:-2], filler[:3000], filler[3000:] + b"\r\n"], 1),  # to a larger block
            ([whole[:-2]], 0)):  # and then nothing
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            for piece in pieces:
                connection.sendall(piece)
                until(lambda: ask(server.admin + "/healthz").status == 200, "the loop has run")
            seen = b""
            while seen.count(b"HTTP/1.1 200") < replies_count:
                piece = connection.recv(65536)
                assert piece, seen
                seen += piece


def core_of(pid, home):
    """The process's memory as gcore writes it; None where that cannot be had."""
    gcore = shutil.which("gcore")
    if gcore is None or "asan" in RON or "tsan" in RON:
        print("# core file: skipped, " + ("no gcore" if gcore is None else "sanitizer build"))
        return None
    done = subprocess.run([gcore, "-o", os.path.join(home, "core"), str(pid)], timeout=120,
                          capture_output=True, text=True, check=False)
    path = os.path.join(home, f"core.{pid}")
    if not os.path.exists(path):
        print("# core file: skipped, gcore: " + done.stderr.strip().splitlines()[-1])
        return None
    with open(path, "rb") as file:
        core = file.read()
    print(f"# core file: {len(core)} bytes searched")
    return core


def no_core_file(home):
    """A process that dies leaves no memory behind on disk."""
    if "asan" in RON or "tsan" in RON:
        print("# skipped: a sanitizer takes the signal")
        return
    wrapper = os.path.join(home, "run.sh")
    write(wrapper, f"#!/bin/sh\ncd {home} && ulimit -c unlimited && exec {RON} \"$@\"\n", 0o700)
    with Serve(wrapper, os.path.join(home, "data")) as server:
        server.send(signal.SIGSEGV)
        assert server.end() == -signal.SIGSEGV
    assert not [name for name in os.listdir(home) if name.startswith("core")]


TESTS = [starts_and_says_where, keeps_what_it_made, crash_between_token_and_keyring,
         one_process_per_directory, refusals, data_that_is_not_ours, address_in_use,
         read_only_directory, keyring_must_be_private, amnesia, amnesia_makes_no_file,
         base_routes, readiness, index_page, metrics, topology,
         capabilities, revocation, another_keyring_with_the_same_epoch, reload_is_all_or_nothing,
         a_reload_answers_for_itself,
         rates_are_hot, reload_under_load,
         log_level_by_hand, drain,
         drain_waits_for_a_slow_reader, drain_by_request, second_signal, interrupt_is_terminate,
         raises_its_limit_of_descriptors, tells_the_service_manager, tls_and_rotation,
         client_certificates, unix_socket, unix_socket_knows_its_users, spans,
         collectors_that_fail, marker_token, no_core_file]


def main():
    tests = [test for test in TESTS if len(sys.argv) < 3 or test.__name__ in sys.argv[2:]]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as home:
            try:
                test(home)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print("# " + traceback.format_exc().strip().replace("\n", "\n# "))
                print(f"not ok {number} - {test.__name__}")
            else:
                print(f"ok {number} - {test.__name__}")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
