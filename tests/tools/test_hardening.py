#!/usr/bin/env python3
"""test_hardening.py [BUILD] - the program as it was built, and the service as it is installed: what
an attacker who got in would miss; TAP.

Method: the ELF headers and imports of build/ron, the flags of every source that goes into it, the
settings of packaging/ron.service (its score is tools/unit-check's work). A unit file cannot deny
execve: the service manager needs it to start the program.

covers: LED-S11 LED-S21
"""
import configparser
import json
import os
import re
import sys

import support

BUILD = sys.argv[1] if len(sys.argv) > 1 else os.path.join(support.PROJECT, "build")
PROGRAM = os.path.join(BUILD, "ron")
FLAGS = ("-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=3", "-Wvla",
         "-Werror=format")
SERVICE = {
    "DynamicUser": "yes", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "",
    "AmbientCapabilities": "", "ProtectSystem": "strict", "PrivateDevices": "yes",
    "ProtectKernelModules": "yes", "MemoryDenyWriteExecute": "yes", "RestrictNamespaces": "yes",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "SystemCallArchitectures": "native",
    "LimitCORE": "0", "UMask": "0077", "StateDirectoryMode": "0700",
}


def readelf(*arguments):
    done = support.run(["readelf", "--wide", *arguments, PROGRAM])
    support.check(done.returncode == 0, done.stderr)
    return done.stdout


def the_program_can_be_moved_and_its_tables_are_read_only():
    support.check("DYN (Position-Independent Executable" in readelf("--file-header"))
    segments = readelf("--program-headers")
    support.check("GNU_RELRO" in segments, segments)
    support.check(re.search(r"GNU_STACK.* RW +0x", segments), segments)
    support.check(not re.search(r"LOAD.* RWE ", segments), "written and executed", segments)
    dynamic = readelf("--dynamic")
    support.check("BIND_NOW" in dynamic, dynamic)
    support.check("RPATH" not in dynamic and "RUNPATH" not in dynamic, dynamic)


def stacks_and_copies_are_checked():
    names = set(re.findall(r" (\w+)(?:@|$)", readelf("--dyn-syms"), re.M))
    support.check("__stack_chk_fail" in names, names)
    support.check(any(name.endswith("_chk") for name in names - {"__stack_chk_fail"}), names)
    for banned in ("gets", "system", "popen", "execve", "execv", "execvp", "execl", "fork", "vfork",
                   "posix_spawn", "ptrace"):
        support.check(banned not in names, f"it calls {banned}")


def every_source_is_compiled_so():
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        commands = [row for row in json.load(file) if re.search(r"(^|/)src/", row["file"])]
    support.check(len(commands) > 150, len(commands))
    for row in commands:
        if "optimization=0" in row["command"] or " -O0 " in row["command"]:
            continue  # one program of the tests, at another level
        missing = [flag for flag in FLAGS if flag not in row["command"].split()]
        support.check(not missing, row["file"], missing)


def the_service_has_no_more_than_it_needs():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    path = os.path.join(support.PROJECT, "packaging", "ron.service")
    support.check(unit.read(path) == [path])
    for name, value in SERVICE.items():
        support.check(unit["Service"].get(name) == value, name, unit["Service"].get(name))
    support.check("User" not in unit["Service"], "a dynamic user has no name")
    with open(path, encoding="utf-8") as file:
        filters = re.findall(r"^SystemCallFilter=(.*)$", file.read(), re.M)
    # An allow list without @debug (ptrace), @module and @raw-io, less what is taken away again.
    support.check(filters == ["@system-service", "~@privileged @resources", "setpriority"], filters)


CASES = [(case.__name__, case) for case in (
    the_program_can_be_moved_and_its_tables_are_read_only, stacks_and_copies_are_checked,
    every_source_is_compiled_so, the_service_has_no_more_than_it_needs)]
if __name__ == "__main__":
    sys.exit(support.main(CASES))
