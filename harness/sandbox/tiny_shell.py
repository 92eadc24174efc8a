"""A shell of a few words for the in-memory sandbox: its scripts mean the same to bash.

Runs `bash -c LINES`, `sh FILE`, `/path/to/script` or one bare command. Knows `echo [-n]`, `printf` (plain text), `cat`,
`cp`, `mv`, `rm [-rf]`, `mkdir -p`, `ln -s`, `chmod` (ignored), `cd`, `export A=b`, `sleep`, `exit`, `true`, `false`,
`test`/`[` with -f -e -d = !=, `grep -q`, `set` (ignored), `;`, newlines, `&&`, `||`, `>`, `>>`, `$NAME`, `${NAME}`,
`$?` and quotes. Anything else is "not found", with 127. No loops, no pipes: write a program for more.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable

import anyio

from harness.sandbox.memory_process import Process

_SHELLS = ("bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash")
_OPERATORS = (";", "&&", "||")


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def tiny_shell(process: Process) -> int:
    """Run a process of the in-memory sandbox; the default program."""
    return await _Shell(process).run(process.argv)


class _Shell:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._files = process.files
        self._env = dict(process.env)
        self._folder = process.workdir
        self._last = 0

    async def run(self, argv: Iterable[str]) -> int:
        words = list(argv)
        if words[0] in _SHELLS and len(words) > 1:
            words.pop(0)
            while words and words[0].startswith("-") and not words[0].endswith("c"):
                words.pop(0)
            if words and words[0].startswith("-"):
                return await self._script(words[1])
            return await self._file(words[0])
        if "/" in words[0] and self._path(words[0]) in self._files:
            return await self._file(words[0])
        return await self._script(shlex.join(words))

    async def _file(self, name: str) -> int:
        path = self._path(name)
        if path not in self._files:
            return self._fail(f"{name}: No such file or directory", 127)
        return await self._script(self._files[path].decode("utf-8", "surrogateescape"))

    async def _script(self, text: str) -> int:
        try:
            for line in text.splitlines():
                await self._line(_tokens(line))
        except _Exit as end:
            return end.code
        return self._last

    async def _line(self, tokens: list[str]) -> None:
        command: list[str] = []
        joint = ";"
        for token in [*tokens, ";"]:
            if token not in _OPERATORS:
                command.append(token)
                continue
            if command and (joint == ";" or (joint == "&&") == (self._last == 0)):
                self._last = await self._command(command)
            if command:
                joint = token
            command = []

    async def _command(self, tokens: list[str]) -> int:
        target: str | None = None
        append = False
        words: list[str] = []
        rest = iter(tokens)
        for token in rest:
            if token in (">", ">>"):
                append, target = token == ">>", self._path(self._expand(next(rest, "")))
            else:
                words.append(self._expand(token))
        code, output = await self._builtin(words)
        if target is None:
            self._process.write(output)
        else:
            old = self._files.get(target, b"") if append else b""
            self._files[target] = old + output
        return code

    async def _builtin(self, words: list[str]) -> tuple[int, bytes]:
        name, args = words[0], words[1:]
        if name == "sleep":
            await anyio.sleep(float(args[0]))
            return 0, b""
        if name == "exit":
            raise _Exit(int(args[0]) if args else self._last)
        if name in ("true", "set", "chmod"):
            return 0, b""
        if name == "false":
            return 1, b""
        if name in ("echo", "printf"):
            bare = name == "printf" or args[:1] == ["-n"]
            text = " ".join(args[1:] if args[:1] == ["-n"] else args)
            return 0, _encode(text.replace("\\n", "\n") if name == "printf" else text) + (b"" if bare else b"\n")
        if name == "export":
            self._env.update(dict([arg.split("=", 1) for arg in args]))
            return 0, b""
        if name == "cd":
            self._folder = self._path(args[0])
            return 0, b""
        if name in ("test", "["):
            return int(not self._test([arg for arg in args if arg != "]"])), b""
        return self._file_command(name, [arg for arg in args if not arg.startswith("-")], args)

    def _file_command(self, name: str, plain: list[str], args: list[str]) -> tuple[int, bytes]:
        try:
            if name == "cat":
                return 0, b"".join(self._files[self._path(arg)] for arg in plain) if plain else self._process.stdin
            if name == "grep":
                found = plain[0].encode() in self._files[self._path(plain[1])]
                return int(not found), b""
            if name in ("cp", "mv"):
                self._files[self._path(plain[1])] = self._files[self._path(plain[0])]
            if name in ("rm", "mv"):
                for arg in plain if name == "rm" else plain[:1]:
                    self._files.remove(self._path(arg))
            elif name == "mkdir":
                for arg in plain:
                    self._files.make_folder(self._path(arg))
            elif name == "ln":
                self._files.link(self._path(plain[1]), plain[0])
            elif name != "cp":
                return self._fail(f"{name}: command not found", 127), b""
        except (KeyError, OSError):
            return self._fail(f"{name}: {' '.join(args)}: No such file or directory", 1), b""
        return 0, b""

    def _test(self, args: list[str]) -> bool:
        if args[:1] == ["!"]:
            return not self._test(args[1:])
        if len(args) == 3:
            return (args[0] == args[2]) == (args[1] in ("=", "=="))
        node = self._files.node(self._files.resolve(self._path(args[1])))
        return node is not None and {"-f": node.kind == "file", "-d": node.kind == "folder"}.get(args[0], True)

    def _expand(self, token: str) -> str:
        if token.startswith("\0"):  # was in single quotes
            return token[1:]
        values = {**self._env, "?": str(self._last)}
        return re.sub(r"\$(\?|\w+|\{\w+\})", lambda name: values.get(name[1].strip("{}"), ""), token)

    def _path(self, name: str) -> str:
        return posixpath.join(self._folder, name)

    def _fail(self, message: str, code: int) -> int:
        self._process.write_error(_encode(message + "\n"))
        return code


def _tokens(line: str) -> list[str]:
    """Words and operators; a word that was in single quotes is marked with NUL, so that `$` in it stays."""
    found = []
    for word in re.findall(r"""'[^']*'|(?:"[^"]*"|[^\s;&|>"'#])+|&&|\|\||>>|>|;|#.*""", line):
        if word.startswith("#"):
            break
        found.append("\0" + word[1:-1] if word.startswith("'") else word.replace('"', ""))
    return found


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
