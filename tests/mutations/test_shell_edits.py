"""Operators on scripts: what they propose, what they leave alone, and that they survive any text."""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.mutations.edits import Edit, Operator, apply_edit
from harness.mutations.shell import shell_edits
from harness.mutations.shell_tokens import Kind, tokenise

SCRIPT = r"""#!/bin/bash
# drop 10 comments -x "never"
set -euo pipefail
cd /app
if [ "$count" -gt 10 ]; then
  sort -rn names.txt | uniq -c > out.txt
else
  grep 'error 500' log.txt >> out.txt && touch done
fi
while ! test -f ready; do sleep 1; done
cat > conf.ini <<'EOF'
# 7 is a number in a body
limit = 20
EOF
awk '$3 >= 5 { print $1 }' data.tsv > picked.txt
echo "finished 42"
"""


def results(script: str, operator: Operator) -> set[str]:
    """The lines that stand after an edit and not before."""
    before = set(script.splitlines())
    found: set[str] = set()
    for edit in shell_edits(script):
        if edit.operator is operator:
            found |= set(apply_edit(script, edit).splitlines()) - before
    return found


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        (Operator.DROP_COMMAND, "  :"),
        (Operator.DROP_COMMAND, ":"),
        (Operator.NEGATE, 'if ! [ "$count" -gt 10 ]; then'),
        (Operator.NEGATE, "while test -f ready; do sleep 1; done"),
        (Operator.NEGATE, "  grep 'error 500' log.txt >> out.txt || touch done"),
        (Operator.COMPARISON, 'if [ "$count" -le 10 ]; then'),
        (Operator.COMPARISON, "awk '$3 < 5 { print $1 }' data.tsv > picked.txt"),
        (Operator.NUMBER, 'if [ "$count" -gt 11 ]; then'),
        (Operator.NUMBER, "  grep 'error 501' log.txt >> out.txt && touch done"),
        (Operator.NUMBER, "limit = 21"),
        (Operator.NUMBER, "awk '$4 >= 5 { print $1 }' data.tsv > picked.txt"),
        (Operator.NUMBER, "awk '$3 >= 6 { print $1 }' data.tsv > picked.txt"),
        (Operator.DROP_FLAG, "  sort names.txt | uniq -c > out.txt"),
        (Operator.DROP_FLAG, "  sort -n names.txt | uniq -c > out.txt"),
        (Operator.DROP_FLAG, "  sort -r names.txt | uniq -c > out.txt"),
        (Operator.DROP_ARGUMENT, "  grep log.txt >> out.txt && touch done"),
        (Operator.STRING, "  sort -rn names.txtt | uniq -c > out.txt"),
        (Operator.REDIRECTION, "  grep 'error 500' log.txt > out.txt && touch done"),
    ],
)
def test_each_operator_makes_its_edit(operator: Operator, line: str) -> None:
    assert line in results(SCRIPT, operator)


def test_a_stage_of_a_pipeline_goes_with_its_bar() -> None:
    script = "sort a | uniq | head -3 > b\n"
    assert results(script, Operator.DROP_STAGE) == {"sort a | head -3 > b", "sort a | uniq > b"}


@pytest.mark.parametrize(
    "script", ["a | while read -r x; do b $x; done > c\n", "a | { b; c; } > d\n", "a | if b; then c; fi > d\n"]
)
def test_a_stage_that_begins_a_structure_stays(script: str) -> None:
    assert results(script, Operator.DROP_STAGE) == set()


def test_what_only_shows_something_is_no_place_for_a_mutation_but_a_condition_is() -> None:
    assert shell_edits("ls -l out\ncat out.txt | head -3\nprintf '%d' 3 2>&1\n") == ()
    assert results("if ls out; then make; fi\n", Operator.NEGATE) == {"if ! ls out; then make; fi"}
    assert results("cat a.txt > b.txt\n", Operator.DROP_COMMAND) == {":"}


def test_shebang_comments_settings_and_talk_are_left_alone() -> None:
    kept = [line for line in SCRIPT.splitlines() if line.startswith(("#!", "# drop", "set ", "cd ", "echo "))]
    assert len(kept) == 5
    for edit in shell_edits(SCRIPT):
        after = apply_edit(SCRIPT, edit).splitlines()
        assert all(line in after for line in kept), edit


def test_a_dropped_command_takes_its_here_document_along() -> None:
    edits = [edit for edit in shell_edits(SCRIPT) if edit.operator is Operator.DROP_COMMAND and edit.line == 11]
    assert [apply_edit(SCRIPT, edit).count("EOF") for edit in edits] == [0]


def test_a_here_document_that_is_a_diff_is_edited_as_one() -> None:
    script = "git apply <<'EOF'\n--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n one\n+two\n+three\n last\nEOF\n".replace(
        "@@ -1,2 +1,3 @@", "@@ -1,2 +1,4 @@"
    )
    after = [apply_edit(script, edit) for edit in shell_edits(script) if edit.operator is Operator.DROP_ADDED]
    assert len(after) == 2
    assert all("@@ -1,2 +1,3 @@" in text and text.endswith(" last\nEOF\n") for text in after)


def test_what_a_shell_keeps_whole_is_one_word() -> None:
    script = (
        "a=(1 2\n 3) b \"$(x 'y)' \"z;\")\" `p|q` ${v:-(} $'it\\'s' <(sort c) 2>&1 >|o\n"
        "[[ a < b && c ]] && d\n"
        "((i > 3))\n"
    )
    words = [token.text for token in tokenise(script) if token.kind is Kind.WORD]
    assert words == [
        "a=(1 2\n 3)", "b", "\"$(x 'y)' \"z;\")\"", "`p|q`", "${v:-(}", "$'it\\'s'", "<(sort c)",
        "[[", "a", "<", "b", "&&", "c", "]]", "d", "((i > 3))",
    ]  # fmt: skip
    assert [token.text for token in tokenise(script) if token.kind is Kind.REDIRECTION] == ["2>&1", ">|o"]


def test_every_mutant_of_a_script_is_well_formed() -> None:
    for edit in shell_edits(SCRIPT):
        check = subprocess.run(
            ["bash", "-n"], input=apply_edit(SCRIPT, edit).encode(), capture_output=True, check=False
        )
        assert check.returncode == 0, (edit, check.stderr)


SHELLISH = st.text(st.sampled_from(list("ab1 \n\t;&|<>(){}[]$'\"`\\#!=-./*EOF")) | st.characters(), max_size=80)


@given(SHELLISH)
def test_any_text_can_be_scanned_and_edited(text: str) -> None:
    tokens = tokenise(text)
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert all(before.end <= after.start for before, after in pairwise(tokens))
    edits = shell_edits(text)
    assert edits == shell_edits(text)
    for edit in edits:
        assert apply_edit(text, edit) != text
        assert 1 <= edit.line <= text.count("\n") + 1
        _only_its_places_change(text, edit)


def _only_its_places_change(text: str, edit: Edit) -> None:
    after = apply_edit(text, edit)
    first, last = edit.replacements[0], edit.replacements[-1]
    assert after.startswith(text[: first.start])
    assert after.endswith(text[last.end :])
