"""results.py - what a test program reported: TAP lines, or cmocka's own text.

cmocka writes a skipped test as `not ok 3 # SKIP name`, and one plan line per group.
"""
import re
from dataclasses import dataclass, field

RESULT = re.compile(r"^(not )?ok\b[ \t]*\d*[ \t]*(?:-[ \t]*)?(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)\s*(#.*)?$")
SKIP = re.compile(r"#\s*skip\b", re.IGNORECASE)
CMOCKA = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (?!\d+ test\(s\))(\S+)$")
CRASH = re.compile(r"assertion failed: .*|.*ERROR: \w+Sanitizer: .*|.*WARNING: ThreadSanitizer: .*"
                   r"|.*: runtime error: .*", re.ASCII)


@dataclass
class Results:
    passed: int = 0
    skipped: int = 0
    planned: int | None = None
    failures: list = field(default_factory=list)  # names, in order

    def count(self):
        return self.passed + self.skipped + len(self.failures)

    def short(self):
        """True when fewer tests were reported than announced: the program ended early."""
        return self.planned is not None and self.count() < self.planned


def parse(text):
    results = Results()
    lines = text.splitlines()
    seen = set()
    tap = any(PLAN.match(line) for line in lines)
    for line in lines:
        if match := PLAN.match(line):
            results.planned = (results.planned or 0) + int(match[1])
        elif match := RESULT.match(line):
            if SKIP.search(line):
                results.skipped += 1
            elif match[1]:
                results.failures.append(match[2] or "?")
            else:
                results.passed += 1
        elif not tap and (match := CMOCKA.match(line)) and match[2] not in seen:
            seen.add(match[2])  # failed and skipped ones are listed again at the end
            if match[1] == "FAILED":
                results.failures.append(match[2])
            else:
                results.passed += match[1] == "OK"
                results.skipped += match[1] == "SKIPPED"
    return results


def crash_line(text):
    """The first line of an assertion or sanitizer report, or None."""
    match = CRASH.search(text)
    return match[0].strip() if match else None
