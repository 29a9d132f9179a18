"""changes.py - every small mechanical change to a C source in the house style.

Works on lines and tokens, not on a syntax tree: one statement per line and functions that open
with `{` in the first column are what clang-format leaves. Assertions and functions named check are
left alone: weakening a check breaks nothing by itself. So are lock and unlock: clang proves those
(rt/lock_classes.h). Left out as well is what changes nothing: a buffer one byte larger, `>=` for
`>` where the branch makes both sides equal.
"""
import re
from dataclasses import dataclass

from tidylib.checks import blank

ASSERTION = re.compile(
    r"\b(?:RON_ASSERT\w*|_Static_assert|rt_assert_\w+|\w+_check(?:_\w+)?)\s*\(")
COMPARISON = re.compile(r"(?<![-<>=!+*/&|^])(==|!=|<=|>=|<|>)(?![<>=])")
OPPOSITE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
            "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "++": "--", "--": "++",
            "true": "false", "false": "true"}
TOKENS = {
    "compare": COMPARISON,
    "logic": re.compile(r"(&&|\|\|)"),
    "step": re.compile(r"(\+=|-=|\+\+|--)"),
    "truth": re.compile(r"\b(true|false)\b"),
}
MAXIMUM = re.compile(r"^\s*if \((\S+) ([<>]) (\S+)\)$")  # before `second = first;`
BUFFER = re.compile(r"^\s*(?:unsigned )?char \w+\[\d+\]")
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
CONDITION = re.compile(r"^\s*(?:\} else )?(if|while) \((.*)\)( \{)?$")
GUARD_BODY = re.compile(r"^\s*(?:return\b.*|continue|break|goto \w+);$")
NOT_SIMPLE = re.compile(r"(?:return|break|continue|goto|if|for|while|do|else|case|default|switch|"
                        r"const|static|struct|enum|union|unsigned|signed|bool|size_t|u?int\w*|void|"
                        r"char|long|short)\b|\(void\)[a-z]\w*;")
CALL = re.compile(r"(?:\(void\)!?)?([a-z_]\w*)\(.*\);")
ASSIGNMENT = re.compile(r"([\w.\->\[\]*+ ]+?)\s*(?:[-+|&]?=[^=].*|\+\+|--);")
WAKES = re.compile(r"signal|broadcast|wake|notify")
LOCKS = re.compile(r"(?:^|_)(?:un)?lock$|_lock_(?:take|drop)$")
ORDERLESS = re.compile(r"_(?:init|fini|free)$")  # of two of a kind either may come first
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Change:
    path: str
    line: int  # of the first line it replaces, from 1
    column: int
    operator: str
    says: str
    old: list  # lines
    new: list

    @property
    def name(self):
        return f"{self.path}:{self.line}:{self.column} {self.operator}"

    def diff(self):
        return [f"-{line}" for line in self.old] + [f"+{line}" for line in self.new]

    def apply(self, text):
        lines = text.split("\n")
        first = self.line - 1
        if lines[first:first + len(self.old)] != self.old:
            raise ValueError(f"{self.name}: not the text it was made from")
        return "\n".join(lines[:first] + self.new + lines[first + len(self.old):])


class Source:
    """A file, and which of its lines may be changed."""

    def __init__(self, path, text):
        self.path = path
        self.lines = text.split("\n")
        code = blank(text, keep_strings=False)
        for match in reversed(list(ASSERTION.finditer(code))):  # their arguments are not code here
            end = closing(code, match.end() - 1)
            code = code[:match.start()] + re.sub(r"[^\n]", " ", code[match.start():end + 1]) \
                + code[end + 1:]
        self.code = code.split("\n")
        self.inside = []  # in a function's body?
        body = False
        for line in self.code:
            if line == "}":
                body = False
            self.inside.append(body and not line.lstrip().startswith("#"))
            if line == "{":
                body = True

    def replaced(self, index, start, end, new, operator, says):
        old = self.lines[index]
        return Change(self.path, index + 1, start + 1, operator, says, [old],
                      [old[:start] + new + old[end:]])

    def simple(self, index):
        """"call", "assignment" or None: what kind of whole statement this line is."""
        code = self.code[index].strip()
        if not self.inside[index] or NOT_SIMPLE.match(code) or not code.endswith(";"):
            return None
        if code.count("(") != code.count(")") or not self.begins(index):
            return None
        if CALL.fullmatch(code):
            return "call"
        return "assignment" if ASSIGNMENT.fullmatch(code) else None

    def begins(self, index):
        """Does a statement begin on this line, not go on from the one before?"""
        before = self.code[index - 1].strip()
        return before == "" or before.endswith((";", "{", "}", ":", ")", "else"))

    def bare(self, index):
        """Is this line the body of a control statement without braces?"""
        before = self.code[index - 1].strip()
        return before.endswith((")", "else"))


def closing(code, opening):
    """The offset of the parenthesis that closes the one at `opening`."""
    depth = 0
    for offset in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[offset], 0)
        if depth == 0:
            return offset
    return len(code) - 1


def tokens(source, index):
    code = source.code[index]
    for operator, pattern in TOKENS.items():
        for match in pattern.finditer(code):
            if operator == "compare" and sets_maximum(source, index):
                continue
            old, new = match[1], OPPOSITE[match[1]]
            yield source.replaced(index, match.start(1), match.end(1), new, operator,
                                  f"{old} becomes {new}")
    if code.lstrip().startswith(("case ", "default")) or BUFFER.match(code):
        return
    for match in NUMBER.finditer(code):
        new = str(int(match[1]) + 1)
        yield source.replaced(index, match.start(1), match.end(1), new, "constant",
                              f"{match[1]} becomes {new}")


def sets_maximum(source, index):
    """if (a > b) b = a; - the same with >=."""
    match = MAXIMUM.match(source.code[index])
    return match is not None and source.code[index + 1].strip() == f"{match[3]} = {match[1]};"


def conditions(source, index):
    match = CONDITION.match(source.code[index])
    if match is None or match[2].count("(") != match[2].count(")"):
        return
    start, end = match.span(2)
    text = source.lines[index][start:end]
    single = COMPARISON.findall(match[2]) in (["=="], ["!="]) and not re.search(
        r"&&|\|\|", match[2])
    if not single:  # else flipping the comparison says the same
        yield source.replaced(index, start, end, f"!({text})", "negate", "the condition is negated")
    if match[1] == "if" and index + 1 < len(source.code) and GUARD_BODY.match(
            source.code[index + 1]):
        yield source.replaced(index, start, end, f"0 && ({text})", "guard",
                              "the way out is never taken")


def drops(source, index):
    kind = source.simple(index)
    code = source.code[index].strip()
    if kind is None:
        return
    operator = "drop"
    if kind == "call":
        called = CALL.fullmatch(code)[1]
        if LOCKS.search(called):
            return
        operator = "drop-wake" if WAKES.search(called) else "drop"
    start = len(source.lines[index]) - len(source.lines[index].lstrip())
    yield source.replaced(index, start, len(source.lines[index]), ";", operator,
                          "the statement is gone")


def related(first, second):
    """May the order of these two statements matter? Guessed from the names they share."""
    calls = [CALL.fullmatch(code) for code in (first, second)]
    targets = [None if call else ASSIGNMENT.fullmatch(code)[1].strip()
               for call, code in zip(calls, (first, second))]
    if None not in targets:  # two assignments
        return targets[0] in second or targets[1] in first
    if targets == [None, None]:
        ends = [ORDERLESS.search(call[1]) for call in calls]
        if ends[0] and ends[1] and ends[0][0] == ends[1][0]:
            return False
        return bool(set(WORD.findall(first)) & set(WORD.findall(second)) - {"void", "sizeof"})
    call, other, target = (first, second, targets[1]) if calls[0] else (second, first, targets[0])
    if target.startswith("*ret_"):
        return False
    bare = {word.strip() for word in call[call.index("("):].strip("();").split(",")}
    return target in call or bool(bare & set(WORD.findall(other)))


def swaps(source, index):
    if index + 1 >= len(source.code) or source.bare(index):
        return
    if source.simple(index) is None or source.simple(index + 1) is None:
        return
    first, second = source.lines[index], source.lines[index + 1]
    indent = len(first) - len(first.lstrip())
    if indent != len(second) - len(second.lstrip()) or first == second:
        return
    if related(source.code[index].strip(), source.code[index + 1].strip()):
        yield Change(source.path, index + 1, indent + 1, "swap", "two statements change places",
                     [first, second], [second, first])


def all_changes(path, text):
    """Every change to the file, in the order of its lines."""
    source = Source(path, text)
    return [change for index, inside in enumerate(source.inside) if inside
            for kind in (tokens, conditions, drops, swaps) for change in kind(source, index)]
