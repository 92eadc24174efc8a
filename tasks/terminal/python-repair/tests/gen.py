"""The packages as they should be, and how faults get into them. The same file stands in environment/ and in tests/."""

import json
import sys
from pathlib import Path

PACKAGE = "~{ package }~"
BUGS = json.loads(r"""~{ bugs | tojson }~""")

SPANS = {
    "__init__.py": '''"""Sets of whole numbers as lists of spans."""

from spans.core import merge, overlap, subtract, total
from spans.text import parse, show
''',
    "core.py": '''"""A span is a pair (first, last), both ends included; a set is a list of spans."""


def merge(spans):
    """The same numbers as a sorted list of as few spans as possible: overlapping and adjacent ones become one."""
    merged = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def total(spans):
    """How many different numbers the spans hold."""
    return sum(last - first + 1 for first, last in merge(spans))


def overlap(left, right):
    """The merged spans of the numbers that are in both sets."""
    shared = []
    for a, b in left:
        for c, d in right:
            if max(a, c) <= min(b, d):
                shared.append((max(a, c), min(b, d)))
    return merge(shared)


def subtract(left, right):
    """The merged spans of the numbers that are in `left` but not in `right`."""
    rest = merge(left)
    for c, d in right:
        kept = []
        for a, b in rest:
            if a < c:
                kept.append((a, min(b, c - 1)))
            if b > d:
                kept.append((max(a, d + 1), b))
        rest = kept
    return merge(rest)
''',
    "text.py": '''"""Spans as text, such as `1-3,7,-5--2`."""

import re

from spans.core import merge


def parse(text):
    """The merged spans of a comma-separated list of numbers and `first-last` ranges.

    Blanks around an element do not matter, and empty elements are skipped. Numbers may be negative. ValueError for
    anything else, and for a range that ends before it begins.
    """
    spans = []
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
        found = re.fullmatch(r"(-?\\d+)(?:-(-?\\d+))?", part)
        if found is None:
            raise ValueError(part)
        first = int(found[1])
        last = first if found[2] is None else int(found[2])
        if last < first:
            raise ValueError(part)
        spans.append((first, last))
    return merge(spans)


def show(spans):
    """The text of the merged spans, without blanks; a span of one number is that number alone."""
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in merge(spans))
''',
}

CALC = {
    "__init__.py": '''"""Sums on whole numbers."""

from calc.evaluate import evaluate
from calc.tokens import tokens
''',
    "tokens.py": '''"""From text to tokens."""

import re

PATTERN = re.compile(r"\\s*(\\d[\\d_]*|[A-Za-z]\\w*|\\*\\*|//|[-+*%(),])")


def tokens(text):
    """The list of tokens: integers (digits that may be grouped by `_`, as int), names, and the operators
    `+ - * // % ** ( ) ,`. ValueError, with the position as its only argument, where nothing of that can be read."""
    found, place = [], 0
    text = text.rstrip()
    while place < len(text):
        match = PATTERN.match(text, place)
        if match is None:
            raise ValueError(place)
        word = match[1]
        found.append(int(word.replace("_", "")) if word[0].isdigit() else word)
        place = match.end()
    return found
''',
    "evaluate.py": '''"""From tokens to a value."""

from calc.tokens import tokens

FUNCTIONS = {"max": max, "min": min, "abs": abs}


def evaluate(text, names=None):
    """The integer value of an expression, by Python's own rules for its operators: `**` binds to the right and
    tighter than a sign on its left; then signs; then `* // %`, then `+ -`, both to the left. Names are looked up in
    `names`; `max` and `min` take one or more arguments, `abs` one. KeyError for an unknown name, ZeroDivisionError
    as in Python, ValueError for anything malformed and for a negative exponent."""
    rest = tokens(text)
    value = _sum(rest, names or {})
    if rest:
        raise ValueError(rest[0])
    return value


def _take(rest, *wanted):
    return rest.pop(0) if rest and rest[0] in wanted else None


def _sum(rest, names):
    value = _product(rest, names)
    while sign := _take(rest, "+", "-"):
        right = _product(rest, names)
        value = value + right if sign == "+" else value - right
    return value


def _product(rest, names):
    value = _signed(rest, names)
    while sign := _take(rest, "*", "//", "%"):
        right = _signed(rest, names)
        value = value * right if sign == "*" else value // right if sign == "//" else value % right
    return value


def _signed(rest, names):
    if sign := _take(rest, "+", "-"):
        value = _signed(rest, names)
        return -value if sign == "-" else value
    return _power(rest, names)


def _power(rest, names):
    value = _atom(rest, names)
    if _take(rest, "**"):
        exponent = _signed(rest, names)
        if exponent < 0:
            raise ValueError(exponent)
        return value**exponent
    return value


def _atom(rest, names):
    if not rest:
        raise ValueError("end")
    token = rest.pop(0)
    if isinstance(token, int):
        return token
    if token == "(":
        value = _sum(rest, names)
        if not _take(rest, ")"):
            raise ValueError("(")
        return value
    if not token[0].isalpha():
        raise ValueError(token)
    if not _take(rest, "("):
        return names[token]
    arguments = [_sum(rest, names)]
    while _take(rest, ","):
        arguments.append(_sum(rest, names))
    if not _take(rest, ")") or (token == "abs" and len(arguments) != 1):
        raise ValueError(token)
    return FUNCTIONS[token](arguments[0]) if token == "abs" else FUNCTIONS[token](arguments)
''',
}

GRID = {
    "__init__.py": '''"""Tables of text."""

from grid.reading import read
from grid.shaping import group, order
from grid.writing import align, write
''',
    "reading.py": '''"""From text to rows."""


def read(text):
    """The rows (lists of cells) of comma-separated text. A cell that begins with `"` runs to the next single `"`; in it
    `""` stands for one `"`, and commas and line ends are ordinary. Lines end in `\\\\n` or `\\\\r\\\\n`; the last one
    needs no end. An empty line is a row of one empty cell. ValueError if a quoted cell does not end."""
    rows, row, place = [], [], 0
    text = text.replace("\\r\\n", "\\n")
    if text and not text.endswith("\\n"):
        text += "\\n"
    while place < len(text):
        if text[place] == '"':
            cell, place = _quoted(text, place + 1)
        else:
            end = min(e for e in (text.find(",", place), text.find("\\n", place)) if e >= 0)
            cell, place = text[place:end], end
        row.append(cell)
        if text[place] == "\\n":
            rows.append(row)
            row = []
        elif place + 1 == len(text):
            raise ValueError("end")
        place += 1
    return rows


def _quoted(text, place):
    cell = ""
    while True:
        end = text.find('"', place)
        if end < 0:
            raise ValueError("quote")
        cell += text[place:end]
        place = end + 1
        if text[place : place + 1] != '"':
            return cell, place
        cell += '"'
        place += 1
''',
    "writing.py": '''"""From rows to text."""


def write(rows):
    """Comma-separated text that `read` turns into the same rows; lines end in `\\\\n`. Only cells that hold a comma, a
    quote, or a line end are quoted."""
    return "".join(",".join(_cell(cell) for cell in row) + "\\n" for row in rows)


def _cell(cell):
    if any(sign in cell for sign in ',"\\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def align(rows):
    """Lines in which each column is as wide as its widest cell, with two blanks between columns. Columns whose cells
    (the first row aside) are all whole numbers, with or without a sign, stand to the right, others to the left. Short
    rows are filled up with empty cells; no line ends in a blank."""
    width = max((len(row) for row in rows), default=0)
    rows = [list(row) + [""] * (width - len(row)) for row in rows]
    columns = []
    for column in zip(*rows):
        size = max(len(cell) for cell in column)
        right = len(column) > 1 and all(cell.lstrip("+-").isdigit() for cell in column[1:])
        columns.append([cell.rjust(size) if right else cell.ljust(size) for cell in column])
    return ["  ".join(cells).rstrip() for cells in zip(*columns)]
''',
    "shaping.py": '''"""Sorting and grouping of rows (the first row is a header and stays where it is)."""


def order(rows, column, descending=False):
    """The rows sorted by a column given by its name, as numbers if all its cells are whole numbers, else as text.
    Equal rows keep their order, descending as well. ValueError for an unknown name."""
    index = rows[0].index(column)
    cells = [row[index] for row in rows[1:]]
    number = all(cell.lstrip("-").isdigit() for cell in cells)
    return rows[:1] + sorted(rows[1:], key=lambda row: int(row[index]) if number else row[index], reverse=descending)


def group(rows, by, value):
    """Pairs (cell of `by`, sum of `value` as int), in the order in which the cells of `by` first appear. An empty
    `value` counts as 0."""
    key, index = rows[0].index(by), rows[0].index(value)
    sums = {}
    for row in rows[1:]:
        sums[row[key]] = sums.get(row[key], 0) + int(row[index] or 0)
    return list(sums.items())
''',
}

ROUTE = {
    "__init__.py": '''"""Small graphs: {node: {neighbour: length}}, directed."""

from route.order import layers, levels, sort
from route.ways import reachable, shortest
''',
    "order.py": '''"""Orders of a graph without cycles."""


def sort(graph):
    """All nodes (also those that only appear as neighbours) so that each stands before its neighbours; whenever several
    could be next, the smallest is. ValueError if there is a cycle."""
    waiting = {}
    for node, neighbours in graph.items():
        waiting.setdefault(node, 0)
        for neighbour in neighbours:
            waiting[neighbour] = waiting.get(neighbour, 0) + 1
    order = []
    ready = sorted(node for node, count in waiting.items() if count == 0)
    while ready:
        node = ready.pop(0)
        order.append(node)
        for neighbour in graph.get(node, {}):
            waiting[neighbour] -= 1
            if waiting[neighbour] == 0:
                ready.append(neighbour)
        ready.sort()
    if len(order) < len(waiting):
        raise ValueError("cycle")
    return order


def levels(graph):
    """{node: level}: 0 for a node that is nobody's neighbour, else one more than the highest level of the nodes it is
    a neighbour of. ValueError if there is a cycle."""
    level = {}
    for node in sort(graph):
        level.setdefault(node, 0)
        for neighbour in graph.get(node, {}):
            level[neighbour] = max(level.get(neighbour, 0), level[node] + 1)
    return level


def layers(graph):
    """The nodes as a list of sorted lists, by level."""
    level = levels(graph)
    found = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for node in sorted(level):
        found[level[node]].append(node)
    return found
''',
    "ways.py": '''"""Ways through a graph; it may have cycles."""

import heapq


def reachable(graph, start, steps=None):
    """The sorted nodes, `start` included, that can be reached from `start` in at most `steps` steps (any number if
    None)."""
    seen, edge = {start}, [start]
    while edge and (steps is None or steps > 0):
        edge = sorted({n for node in edge for n in graph.get(node, {})} - seen)
        seen |= set(edge)
        steps = None if steps is None else steps - 1
    return sorted(seen)


def shortest(graph, start, goal):
    """(length, [start, …, goal]) of the shortest way; of equally short ones the one with the fewest nodes, then the
    smallest as a list. (0, [start]) if the two are the same, None if there is no way. Lengths are 0 or more;
    ValueError for a negative one met on the search."""
    queue, done = [(0, 1, [start])], set()
    while queue:
        length, count, way = heapq.heappop(queue)
        node = way[-1]
        if node == goal:
            return length, way
        if node in done:
            continue
        done.add(node)
        for neighbour, more in graph.get(node, {}).items():
            if more < 0:
                raise ValueError("negative")
            heapq.heappush(queue, (length + more, count + 1, [*way, neighbour]))
    return None
''',
}

SOURCES = {"spans": SPANS, "calc": CALC, "grid": GRID, "route": ROUTE}


def broken() -> dict:
    """The package's files with the variant's faults in them."""
    files = dict(SOURCES[PACKAGE])
    for bug in BUGS:
        assert files[bug["module"]].count(bug["good"]) == 1, bug["name"]
        files[bug["module"]] = files[bug["module"]].replace(bug["good"], bug["bad"])
    return files


if __name__ == "__main__":
    folder = Path(sys.argv[1]) / PACKAGE
    folder.mkdir(parents=True)
    for name, text in broken().items():
        (folder / name).write_text(text)
