"""Jinja's sandbox with bounds: a template that goes on for ever, or asks for all the memory there is, is an error.

Jinja keeps templates from the machine's files and from Python's inside. It does not keep them from nested loops, and
`"x" * 10000000000` is one operation. What is bounded: the time of a rendering, its output, products and powers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sized
from contextvars import ContextVar
from typing import Any

import jinja2
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

RENDER_S = 5.0  # of this thread's own time, so that a busy machine does not matter
LARGEST_CHARS = 64 * 1024 * 1024
LARGEST_LENGTH = 10_000_000  # of a product: items of a sequence, or bits of a number

_until: ContextVar[float] = ContextVar("_until")


class TooMuch(jinja2.TemplateRuntimeError):
    """A template asks for more than a task's file can need."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Where templates are compiled and rendered; use :func:`render`."""

    intercepted_binops = frozenset(("*", "**"))

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        # Every turn of an outer loop over a range comes by here.
        _check_time()
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        size = _size(left) * right if operator == "**" and isinstance(right, int) else _product_size(left, right)
        if size > LARGEST_LENGTH:
            raise TooMuch(f"the result of {operator!r} would be too large")
        return super().call_binop(context, operator, left, right)


def render(environment: jinja2.Environment, template: jinja2.Template, names: Mapping[str, Any]) -> str:
    """The text of a template. Raises TooMuch, and whatever an expression in it raises."""
    token = _until.set(time.thread_time() + RENDER_S)
    try:
        parts: list[str] = []
        size = 0
        for part in template.root_render_func(template.new_context(dict(names))):
            size += len(part)
            if size > LARGEST_CHARS:
                raise TooMuch(f"more than {LARGEST_CHARS} characters")
            _check_time()
            parts.append(part)
        return environment.concat(parts)
    except Exception:  # noqa: BLE001  # raised again, its traceback told in lines of the template
        environment.handle_exception()
    finally:
        _until.reset(token)


def _check_time() -> None:
    if time.thread_time() > _until.get():
        raise TooMuch(f"not done after {RENDER_S:g} s")


def _size(value: Any) -> int:
    """How much of a value there is: bits of a whole number, items of what has a length, 1 of all else."""
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if isinstance(value, Sized) else 1


def _product_size(left: Any, right: Any) -> int:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, int) and not isinstance(other, int):
            return _size(other) * one
    return _size(left) + _size(right)
