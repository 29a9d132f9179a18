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
        ["strace", "-f", "-s", "16384", "-e", "trace=write,pwrite64,pwritev,fdatasync,openat",
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
def a_file_system_that_refuses_after_all_is_written_through_the_cache(folder):
    """It says that it can go past the cache, and then the first write of that kind is refused."""
    if shutil.which("strace") is None:
        raise Skip("strace is not installed")
    trace = os.path.join(folder, "trace")
    data = os.path.join(folder, "data")
    segment = os.path.join(os.path.realpath(data), "log", "seg-0000000000000001")
    probe = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True,
                           check=False)
    if probe.returncode != 0:
        raise Skip("strace may not trace here")
    done = subprocess.run(
        ["strace", "-f", "-P", segment, "-e", "trace=fcntl,pwritev",
         "-e", "inject=pwritev:error=EINVAL:when=1", "-o", trace, OPTIONS.driver, data, "100", "1"],
        capture_output=True, text=True, timeout=300, check=False)
    with open(trace, encoding="utf-8", errors="replace") as file:
        lines = file.readlines()
    if not any("F_SETFL" in line and "O_DIRECT" in line for line in lines):
        raise Skip("this file system has no way past its cache")
    assert done.returncode == 0, done.stderr
    assert acks(done.stdout) == list(range(1, 101))
    assert any("INJECTED" in line for line in lines)
    left = [line for line in lines if "F_SETFL" in line and "O_DIRECT" not in line]
    assert len(left) == sum("INJECTED" in line for line in lines), left


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


def crc32c(data):
    total = 0xffffffff
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = total >> 1 ^ (0x82f63b78 if total & 1 else 0)
    return total ^ 0xffffffff


def bytes_of(log):
    return {name: open(os.path.join(log, name), "rb").read() for name in os.listdir(log)}


def assert_refused(folder, opened, checked, *texts):
    """The driver and `ron log check` answer so, name what is wrong, and change no byte."""
    log = os.path.join(folder, "log")
    before = bytes_of(log)
    done = driver(folder, 1)
    assert done.returncode == opened and all(text in done.stderr for text in texts), done
    done = ron("check", log)
    assert done.returncode == checked and all(text in done.stderr for text in texts), done
    assert bytes_of(log) == before


@case
def damaged_segment_is_refused(folder):
    assert driver(folder, 500, 10).returncode == 0
    segment = os.path.join(folder, "log", "seg-0000000000000001")
    with open(segment, "r+b") as file:
        file.seek(9000)
        file.write(b"damage")
    assert_refused(folder, 5, 3, "seg-0000000000000001 at byte ", "restore the file from a copy")


@case
def lost_end_is_refused(folder):
    """Whole groups are gone from the end: only the owner's note tells."""
    assert driver(folder, 20, 1).returncode == 0
    log = os.path.join(folder, "log")
    with open(os.path.join(log, "seg-0000000000000001"), "r+b") as file:
        end = len(file.read().rstrip(b"\0"))
        file.seek(end - 900)
        file.write(bytes(900))
    assert_refused(folder, 5, 3, "is the last, but 20 was durable")
    assert ron("dump", log).returncode == 3
    with open(os.path.join(log, "owner"), "r+b") as file:
        file.write(bytes(1024))
    assert_refused(folder, 5, 3, "empty, but there are segments: restore it")
    os.unlink(os.path.join(log, "owner"))
    done = ron("check", log)
    last, count = re.search(r"records 1 to (\d+) \((\d+)\)", done.stdout).groups()
    assert done.returncode == 0 and "no owner file" in done.stderr, done
    assert last == count and int(last) < 20, done
    done = ron("dump", log)
    assert done.returncode == 0 and f"records above {last}" in done.stderr, done


@case
def foreign_file_is_refused(folder):
    assert driver(folder, 50).returncode == 0
    log = os.path.join(folder, "log")
    note = os.path.join(log, "notes.txt")
    with open(note, "w", encoding="ascii") as file:
        file.write("hello")
    assert_refused(folder, 6, 4, "notes.txt is not part of a log: move it away")
    os.unlink(note)
    segment = os.path.join(log, "seg-0000000000000001")
    os.rename(segment, os.path.join(folder, "kept"))
    with open(segment, "wb") as file:
        file.write(b"PK" * 5000)
    assert_refused(folder, 6, 4, "seg-0000000000000001", "not a log segment")
    os.rename(os.path.join(folder, "kept"), segment)
    assert driver(folder, 1).returncode == 0


@case
def other_format_is_refused(folder):
    assert driver(folder, 50).returncode == 0
    segment = os.path.join(folder, "log", "seg-0000000000000001")
    with open(segment, "r+b") as file:
        head = bytearray(file.read(4096))
        head[8] += 1
        file.seek(0)
        file.write(head)
    assert_refused(folder, 7, 5, "seg-0000000000000001", "version 3", "use a newer one")
    head[8] -= 2
    head[4088:4092] = crc32c(head[:4088]).to_bytes(4, "little")
    with open(segment, "r+b") as file:
        file.write(head)
    assert_refused(folder, 7, 5, "seg-0000000000000001", "version 1, this program reads 2",
                   "use the one that wrote it")


@case
def clock_in_the_past_changes_nothing(folder):
    """Nothing in a log is ordered by a clock, nor by what the files say of theirs."""
    assert driver(folder, 50).returncode == 0
    for year in (0, 4102444800):  # 1970 and 2100
        for name in os.listdir(os.path.join(folder, "log")):
            os.utime(os.path.join(folder, "log", name), (year, year))
        done = driver(folder, 50)
        assert done.returncode == 0, done
    assert "records 1 to 150 " in ron("check", os.path.join(folder, "log")).stdout


@case
def read_only_folder_is_refused(folder):
    mount = os.path.join(folder, "disk")
    os.mkdir(mount)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", mount],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip("no tmpfs may be mounted here: " + done.stderr.strip())
    try:
        assert driver(mount, 10).returncode == 0
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        before = bytes_of(os.path.join(mount, "log"))
        done = driver(mount, 10)
        assert done.returncode == 1 and "owner" in done.stderr, done
        done = ron("check", os.path.join(mount, "log"))  # reading needs no more
        assert done.returncode == 0 and "records 1 to 10 " in done.stdout, done
        assert bytes_of(os.path.join(mount, "log")) == before
    finally:
        subprocess.run(["umount", mount], check=True)


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
