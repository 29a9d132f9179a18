#!/usr/bin/env python3
"""test_promtool.py - Prometheus's own tool reads our metrics; TAP.

Method: print the runtime's metrics, with a value in every series and texts that need escaping, and
give them to `promtool check metrics`. Its parser must accept all; its lint may complain only of
names that the source designs fix. promtool is of Debian's prometheus; `./dev setup` provides it.
"""
import re
import shutil
import subprocess
import sys

PRINT_METRICS = sys.argv[1] if len(sys.argv) > 1 else "build/tests/tools/print_metrics"

# What promtool may say, each a name from the source designs.
ALLOWED = set()


def run(arguments, text=None):
    return subprocess.run(arguments, input=text, capture_output=True, text=True, timeout=30,
                          check=False)


def main():
    print("1..2")
    printed = run([PRINT_METRICS])
    sample = re.compile(r'[a-z_]+(\{[a-z]+="(\\.|[^"\\])*"(,[a-z]+="(\\.|[^"\\])*")*\})? -?[0-9.]+')
    lines = [line for line in printed.stdout.splitlines() if not line.startswith("#")]
    bad = [line for line in lines if not sample.fullmatch(line)]
    well = printed.returncode == 0 and len(lines) > 20 and not bad
    print(f"{'ok' if well else 'not ok'} 1 - {len(lines)} samples follow the grammar")
    for line in bad:
        print(f"# {line}")
    promtool = shutil.which("promtool") or ".deps/prometheus/usr/bin/promtool"
    checked = run([promtool, "check", "metrics"], printed.stdout)
    complaints = {line for line in (checked.stdout + checked.stderr).splitlines() if line.strip()}
    # Exit code 3 is lint; anything else beyond 0 means that the text was not understood.
    clean = checked.returncode in (0, 3) and complaints == ALLOWED
    print(f"{'ok' if clean else 'not ok'} 2 - promtool accepts it")
    for line in sorted(complaints ^ ALLOWED):
        print(f"# {line}")
    return 0 if well and clean else 1


if __name__ == "__main__":
    sys.exit(main())
