#!/usr/bin/env python3
"""test_log_process.py DRIVER RON [--kills N] - a process with a log, from outside; TAP.

Method: the driver (log_driver.c) says what is acknowledged by one write per line; it is killed at
random moments, traced by strace, given a disk of 8 MiB, and `ron log` reads what it left.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

CASES = []
OPTIONS = None


class Skip(Exception):
    pass


def case(function):
    CASES.append(function)
    return function


def driver(folder, count, group=1, **more):
    return subprocess.run([OPTIONS.driver, folder, str(count), str(group)], capture_output=True,
                          text=True, timeout=120, check=False, **more)


def ron(*arguments):
    return subprocess.run([OPTIONS.ron, "log", *arguments], capture_output=True, text=True,
                          timeout=60, check=False)


def acks(text):
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("ack ")]


@case
def killed_processes_lose_nothing_acknowledged(folder):
    generator = random.Random(OPTIONS.seed)
    acknowledged = 0
    for cycle in range(OPTIONS.kills):
        process = subprocess.Popen([OPTIONS.driver, folder, "1000000", str(1 + cycle % 9)],
                                   stdout=subprocess.PIPE, text=True)
        first = process.stdout.readline()
        assert first.startswith("open "), (cycle, first)
        assert int(first.split()[1]) >= acknowledged, (cycle, first, acknowledged)
        for _ in range(generator.randrange(1, 60)):
            acknowledged = int(process.stdout.readline().split()[1])
        process.kill()
        rest = acks(process.stdout.read())
        process.wait()
        acknowledged = max([acknowledged] + rest)
    done = driver(folder, 1)
    assert done.returncode == 0, done.stderr
    assert acks(done.stdout)[0] > acknowledged
    print(f"# {OPTIONS.kills} kills, {acknowledged} records acknowledged, seed {OPTIONS.seed}")


@case
def every_reply_comes_after_the_sync_that_covers_it(folder):
    if shutil.which("strace") is None:
        raise Skip("strace is not installed")
    trace = os.path.join(folder, "trace")
    probe = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True,
                           check=False)
    if probe.returncode != 0:
        raise Skip("strace may not trace here")
    done = subprocess.run(
        ["strace", "-f", "-s", "64", "-e", "trace=write,pwrite64,pwritev,fdatasync,openat",
         "-o", trace, OPTIONS.driver, os.path.join(folder, "data"), "1000", "1"],
        capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert acks(done.stdout) == list(range(1, 1001))
    with open(trace, encoding="utf-8", errors="replace") as lines:
        check_trace(lines)


def check_trace(lines):
    """A line is a call, or its end where another thread came between."""
    written = 0    # groups written to a segment
    synced = 0     # of these, covered by an fdatasync that returned
    pending = {}   # thread -> groups written before its fdatasync began
    replies = 0
    for line in lines:
        thread, call = line.split(None, 1)
        if re.match(r"(pwrite64|pwritev)\(", call) and "RONF" in call:
            written += 1
        elif call.startswith("fdatasync("):
            pending[thread] = written
        if ("fdatasync(" in call and call.rstrip().endswith("= 0")) or \
                "<... fdatasync resumed>" in call and call.rstrip().endswith("= 0"):
            synced = max(synced, pending.pop(thread))
        match = re.match(r'write\(1, "ack (\d+)', call)
        if match:
            replies += 1
            # One record a group: reply N needs N groups synced; a seal only adds to them.
            assert int(match.group(1)) <= synced, (line, written, synced)
    assert replies == 1000, replies
    print(f"# {written} groups and seals written, {replies} replies")


@case
def full_disk_is_refused_and_recovers(folder):
    mount = os.path.join(folder, "disk")
    os.mkdir(mount)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", mount],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip("no tmpfs may be mounted here: " + done.stderr.strip())
    try:
        fill_disk(mount)
    finally:
        subprocess.run(["umount", mount], check=True)


def fill_disk(mount):
    ballast = os.path.join(mount, "ballast")
    with open(ballast, "wb") as file:
        file.write(bytes(2 << 20))
    data = os.path.join(mount, "data")
    done = driver(data, 1000000, 50)
    assert done.returncode == 3 and "refused PersistenceFull" in done.stdout, done
    acknowledged = acks(done.stdout)[-1]
    assert acknowledged > 10000
    again = driver(data, 1000, 50)  # still full: opens, finds all, refuses
    assert again.stdout.startswith("open "), again
    assert int(again.stdout.split()[1]) >= acknowledged
    os.unlink(ballast)
    after = driver(data, 2000, 50)
    assert after.returncode == 0, after
    assert int(after.stdout.split()[1]) >= acknowledged
    print(f"# {acknowledged} records, then refused; 2000 more once there was room")


@case
def second_process_is_refused(folder):
    process = subprocess.Popen([OPTIONS.driver, folder, "1000000"], stdout=subprocess.PIPE,
                               text=True)
    process.stdout.readline()
    done = driver(folder, 1)
    process.kill()
    process.stdout.read()
    process.wait()
    assert done.returncode == 4 and "another process owns" in done.stderr, done


@case
def ron_log_reads_and_tells_damage(folder):
    assert driver(folder, 9000, 30).returncode == 0
    log = os.path.join(folder, "log")
    done = ron("check", log)
    assert done.returncode == 0 and "records 1 to 9000" in done.stdout, done
    done = ron("dump", "--from", "4000", "--limit", "3", "--json", log)
    assert done.returncode == 0
    assert re.findall(r'^\{"index":(\d+),', done.stdout, re.M) == ["4000", "4001", "4002"]
    segment = os.path.join(log, "seg-0000000000000001")
    with open(segment, "r+b") as file:
        file.seek(100000)
        byte = file.read(1)
        file.seek(100000)
        file.write(bytes([byte[0] ^ 1]))
    before = {name: open(os.path.join(log, name), "rb").read() for name in os.listdir(log)}
    done = ron("check", log)
    assert done.returncode == 3 and re.search(r"seg-0000000000000001:\d+$", done.stderr), done
    assert before == {name: open(os.path.join(log, name), "rb").read()
                      for name in os.listdir(log)}
    assert ron("check", folder).returncode == 4
    assert ron("check", os.path.join(folder, "nothing")).returncode != 0
    assert ron("dump").returncode == 2 and ron("frobnicate", log).returncode == 2


@case
def read_only_folder_is_refused(folder):
    if os.geteuid() == 0:
        raise Skip("root may write anywhere")
    assert driver(folder, 10).returncode == 0
    os.chmod(os.path.join(folder, "log", "owner"), 0o400)
    done = driver(folder, 10)
    assert done.returncode == 1 and "owner" in done.stderr, done


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("ron")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    OPTIONS = parser.parse_args()
    failed = 0
    for number, function in enumerate(CASES, 1):
        name = function.__name__
        with tempfile.TemporaryDirectory(prefix="ron-log-") as folder:
            try:
                function(folder)
                print(f"ok {number} - {name}")
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}")
            except Exception as error:  # noqa: BLE001 - a crash of the check is a failed check
                failed += 1
                print(f"not ok {number} - {name}\n# {error!r}")
        sys.stdout.flush()
    print(f"1..{len(CASES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
