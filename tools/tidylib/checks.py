"""checks.py - the machinery behind policy.py: reads each file once and yields findings."""
import os
import re
from dataclasses import dataclass, field

from . import policy

COMMENT_OR_STRING = re.compile(
    r"""//(?:\\.|[^\\\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>)', re.MULTILINE)
BANS = [(rule, re.compile(pattern, re.MULTILINE), where, exempt, message)
        for rule, pattern, where, exempt, message in policy.BANS]


def blank(text, keep_strings):
    """The same text, comments (and string contents) turned to spaces: positions stay."""
    def replace(match):
        token = match[0]
        if token[0] in "\"'":
            return token if keep_strings else token[0] + " " * (len(token) - 2) + token[-1]
        return re.sub(r"[^\n]", " ", token)
    return COMMENT_OR_STRING.sub(replace, text)


@dataclass
class File:
    path: str
    text: str
    lines: list = field(init=False)

    def __post_init__(self):
        self.lines = self.text.splitlines()
        self.is_c = self.path.endswith((".c", ".h"))
        self.is_script = self.path.endswith((".py", ".sh")) or self.text.startswith("#!")
        self.is_data = self.path.startswith(policy.DATA_FOLDERS) or self.path.endswith(".patch")
        self.code = blank(self.text, keep_strings=False) if self.is_c else ""

    def line_at(self, offset):
        return self.text.count("\n", 0, offset) + 1


def check_include(file):
    """which folder may include which (docs/architecture.md)"""
    allowed = None
    for prefix, targets in policy.INCLUDES:
        if match := re.match(prefix, file.path):
            allowed = tuple(target.format(**match.groupdict()) for target in targets)
            break
    if not file.is_c or allowed is None:
        return
    for match in INCLUDE.finditer(blank(file.text, keep_strings=True)):
        name = match[1]
        if name is None:
            continue
        line = file.line_at(match.start(1))
        if not name.startswith(allowed) or ".." in name.split("/"):
            yield line, f'"{name}" may not be included here'
        if name.startswith(policy.BACK_ENDS) and not file.path.startswith(policy.BACK_END_USERS):
            yield line, f'"{name}" belongs to one back end'


def check_header(file):
    """libraries are wrapped once: their headers only in the files that wrap them"""
    if not file.is_c or not file.path.startswith(policy.SHIPPED):
        return
    for match in INCLUDE.finditer(blank(file.text, keep_strings=True)):
        name = match[2]
        if name is None:
            continue
        for pattern, users, reason in policy.HEADERS:
            if re.fullmatch(pattern, name):
                if not file.path.startswith(tuple(users)):
                    yield file.line_at(match.start(2)), f"<{name}> not here: {reason}"
                break
        else:
            if not policy.LIBC.fullmatch(name):
                yield file.line_at(match.start(2)), f"<{name}> is not in tools/tidylib/policy.py"


def check_length(file):
    """a file is read in one sitting"""
    if not file.is_c:
        return
    header = file.path.endswith(".h")
    limit = policy.HEADER_LINES_MAX if header else policy.SOURCE_LINES_MAX
    count = len(file.lines)
    if count > policy.LINES_LIMIT:
        yield count, f"{count} lines, never more than {policy.LINES_LIMIT}"
    elif count > limit and not policy.LONG_FILE.search(file.text):
        yield count, f"{count} lines, at most {limit} without 'tidy: long file because ...'"


def check_function(file):
    """a function fits a screen"""
    start = None
    for number, line in enumerate(file.code.splitlines(), 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start is not None:
            if number - start + 1 > policy.FUNCTION_LINES_MAX:
                yield start, (f"function of {number - start + 1} lines, at most "
                              f"{policy.FUNCTION_LINES_MAX}")
            start = None


def check_columns(file):
    """lines are read side by side"""
    if not (file.is_c or file.is_script or file.path.endswith("meson.build")) or file.is_data:
        return
    formatted = True
    for number, line in enumerate(file.lines, 1):
        if "clang-format off" in line or "clang-format on" in line:
            formatted = "clang-format on" in line
        if formatted and len(line) > policy.COLUMNS_MAX:
            yield number, f"{len(line)} columns, at most {policy.COLUMNS_MAX}"


def guard_of(path):
    """include/ron/error.h: RON_ERROR_H. src/rt/sim/fiber.h: RON_RT_SIM_FIBER_H. tests/unit/x.h:
    RON_TESTS_X_H. tests/diff/json/x.h: RON_TESTS_DIFF_JSON_X_H."""
    name = path.removeprefix("include/ron/").removeprefix("src/").replace("tests/unit/", "tests/")
    return "RON_" + re.sub(r"\W", "_", name).upper()


def check_guard(file):
    """a header says RON_<FOLDER>_<NAME>_H, so that no two clash"""
    if not file.path.endswith(".h") or file.is_data:
        return
    guard = guard_of(file.path)
    if not re.match(rf"\s*#ifndef {guard}\n#define {guard}\n", file.code):
        yield 1, f"does not open with the guard {guard}"


def check_purpose(file):
    """a file opens by saying what it is: `name - purpose`"""
    if not (file.is_c or file.is_script) or file.is_data:
        return
    pattern = r"\s*/\*.*?\*/" if file.is_c else r"(?:#![^\n]*\n)?(?:\"\"\".*?\"\"\"|(?:#[^\n]*\n)+)"
    opening = re.match(pattern, file.text, re.DOTALL)
    names = {os.path.basename(file.path), os.path.basename(file.path).rsplit(".", 1)[0]}
    if file.path.endswith("__init__.py"):
        names = {os.path.basename(os.path.dirname(file.path))}
    for line in opening[0].splitlines() if opening else ():
        before, dash, after = line.partition(" - ")
        said = re.findall(r"(?:[\w.-]+/)*(?:ron_)?([\w.-]+)", before)
        if dash and after.strip() and names.intersection(said):
            return
    yield 1, "the opening comment has no line `name - purpose`"


def check_mark(file):
    """what is not done is an issue, not a comment"""
    if file.path not in policy.TEXT_EXCEPTIONS and not file.is_data:
        yield from ((number, f"{match[0]} left in the tree") for number, line
                    in enumerate(file.lines, 1) if (match := policy.WORK_MARKS.search(line)))


def check_space(file):
    """white space is the formatter's: no tab in C, none trailing, a final newline"""
    if file.is_data:
        return
    for number, line in enumerate(file.lines, 1):
        if file.is_c and "\t" in line:
            yield number, "tab"
        if line != line.rstrip() and not file.path.endswith(".md"):
            yield number, "trailing white space"
    if file.text and not file.text.endswith("\n"):
        yield len(file.lines), "no newline at the end"


def check_path(file):
    """nothing depends on one machine's folders"""
    if file.path not in policy.TEXT_EXCEPTIONS and not file.path.startswith(policy.DATA_FOLDERS):
        yield from ((number, f"machine path {match[0]}") for number, line
                    in enumerate(file.lines, 1) if (match := policy.MACHINE_PATHS.search(line)))


def check_readme(paths, _):
    """every folder explains itself on one screen"""
    folders = {match[1] for path in paths if (match := policy.README_FOLDERS.match(path))
               and os.path.basename(path) != "meson.build"}
    for folder in sorted(folders):
        if f"{folder}/README.md" not in paths:
            yield f"{folder}/README.md", 1, "missing"


def check_test(paths, files):
    """a test that is not listed never runs"""
    listed = set()
    if build := files.get(policy.UNIT_TESTS + "meson.build"):
        listed = set(re.findall(r"^\s*'(\w+)',\s*(?:#.*)?$", build.text, re.MULTILINE))
    for path in paths:
        name = path.removeprefix(policy.UNIT_TESTS)
        if name == path:
            continue
        if not policy.UNIT_FILES.fullmatch(name):
            yield path, 1, "is neither test_NAME.c, support.c nor a header"
        elif name.startswith("test_") and name[len("test_"):-len(".c")] not in listed:
            yield path, 1, f"is not in the list of {policy.UNIT_TESTS}meson.build"


FILE_CHECKS = [check_include, check_header, check_length, check_function, check_columns,
               check_guard, check_purpose, check_mark, check_space, check_path]
TREE_CHECKS = [check_readme, check_test]


def rule_of(check):
    return check.__name__.removeprefix("check_")


def rules():
    """Every rule with its reason, in the order of reports."""
    listed = [(rule, f"banned in C: it {message}") for rule, _, _, _, message in BANS]
    return listed + [(rule_of(check), check.__doc__) for check in FILE_CHECKS + TREE_CHECKS]


def check_bans(file):
    for rule, pattern, where, exempt, message in BANS:
        if file.path.startswith(where) and not (exempt and file.path.startswith(exempt)):
            for match in pattern.finditer(file.code):
                shown = " ".join(match[0].split()).rstrip("( ")
                yield rule, file.line_at(match.start()), f"{shown} {message}"


def load(root, paths):
    """The text files among paths, by path."""
    files = {}
    for path in paths:
        with open(os.path.join(root, path), "rb") as stream:
            data = stream.read()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            files[path] = File(path, text)
    return files


def check_files(paths, files):
    """Yields (path, line, rule, message)."""
    for path, file in files.items():
        for rule, line, message in check_bans(file) if file.is_c else ():
            yield path, line, rule, message
        for check in FILE_CHECKS:
            for line, message in check(file):
                yield path, line, rule_of(check), message
    for check in TREE_CHECKS:
        for path, line, message in check(paths, files):
            yield path, line, rule_of(check), message
