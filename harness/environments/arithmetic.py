"""The sums that the airline's calculator does: Python's own arithmetic and messages, without running Python code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

ALLOWED = frozenset("0123456789+-*/(). ")
_POWER_BITS = 1_000_000  # a larger power would hold a processor for minutes: the one thing that differs from eval

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def calculate(expression: str) -> str:
    """The value as a float rounded to two places, as text. The characters must be of `ALLOWED`.

    Raises what Python raises for it (SyntaxError, ZeroDivisionError, TypeError, …), and OverflowError for a
    power beyond a million bits.
    """
    tree = ast.parse(expression.lstrip(" "), filename="<string>", mode="eval")
    return str(round(float(_value(tree.body)), 2))


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return +_value(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right):
            return _BINARY[type(sign)](_value(left), _value(right))
        case ast.Tuple():  # "()" is all that the characters can make
            return ()
        case ast.Call(func=func):
            raise TypeError(f"{type(_value(func)).__name__!r} object is not callable")
        case _:
            raise SyntaxError("invalid syntax")


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > _POWER_BITS:
        raise OverflowError("the power is too large to calculate")
    return base**exponent
