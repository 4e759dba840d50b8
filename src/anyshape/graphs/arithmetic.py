"""Integer expressions and conditions as ONNX nodes over vectors of one int64.

A condition becomes its *excess*: 0 or less where it holds, and by how much it is broken where it does not. So `and` is
the largest excess, `or` the smallest, and no booleans are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import onnx_ir as ir

from anyshape.domain import ROOT, All, AnyOf, Compare, Condition, Expr, Not, Number, Op, Ref

_SIMPLE = {"+": "Add", "-": "Sub", "*": "Mul", "min": "Min", "max": "Max"}


class Arithmetic:
    """Writes nodes in the order in which they can run; what was written once is used again.

    `leaf` gives the value of a Ref, and is asked once for each.
    """

    def __init__(self, leaf: Callable[[str], ir.Value], taken: Iterable[str]) -> None:
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = []
        self._leaf = leaf
        self._taken = set(taken)
        self._written: dict[Expr | Condition, ir.Value] = {}
        self._constants: dict[tuple[tuple[int, ...], bytes], ir.Value] = {}

    def constant(self, value: object) -> ir.Value:
        """An int64 tensor that is part of the file."""
        array = np.asarray(value, dtype=np.int64)
        key = (array.shape, array.tobytes())
        if key not in self._constants:
            made = ir.Value(
                name=self.free_name("constant"),
                type=ir.TensorType(ir.DataType.INT64),
                shape=ir.Shape(array.shape),
                const_value=ir.Tensor(array),
            )
            self._constants[key] = made
            self.initializers.append(made)
        return self._constants[key]

    def typed_constant(self, value: object, kind: ir.DataType) -> ir.Value:
        """A tensor of another type that is part of the file."""
        array = np.asarray(value, dtype=kind.numpy())
        made = ir.Value(
            name=self.free_name("constant"),
            type=ir.TensorType(kind),
            shape=ir.Shape(array.shape),
            const_value=ir.Tensor(array),
        )
        self.initializers.append(made)
        return made

    def free_name(self, kind: str) -> str:
        """A name that no value of the file has."""
        number = 0
        while (name := f"anyshape/{kind}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name

    def add(self, op_type: str, *inputs: ir.Value, name: str = "", size: int = 1, **attributes: int) -> ir.Value:
        """A node with one output, an int64 vector of this size."""
        output = ir.Value(
            name=self.free_name(op_type.lower()), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([size])
        )
        self.nodes.append(
            ir.node(op_type, inputs, attributes, outputs=[output], name=self._node_name(name or output.name))
        )
        return output

    def _node_name(self, wanted: str | None) -> str | None:
        """Two rules may have one message, and onnxruntime requires every node to have a name of its own."""
        alike = sum(1 for node in self.nodes if node.name is not None and node.name.split(" #")[0] == wanted)
        return f"{wanted} #{alike + 1}" if alike else wanted

    def number(self, value: ir.Value) -> ir.Value:
        """An input that is a whole number, as a vector of one int64."""
        wide = value if value.dtype is ir.DataType.INT64 else self.add("Cast", value, to=ir.DataType.INT64)
        return self.add("Reshape", wide, self.constant([1]))

    def expr(self, expr: Expr) -> ir.Value:
        """The value of an expression; a divisor of 0 counts as 1, `excess` takes care of it."""
        if expr not in self._written:
            self._written[expr] = self._write_expr(expr)
        return self._written[expr]

    def _write_expr(self, expr: Expr) -> ir.Value:
        if isinstance(expr, Number):
            return self.constant([expr.value])
        if isinstance(expr, Ref):
            return self._leaf(expr.name)
        if not isinstance(expr, Op):
            raise TypeError(f"not an expression: {expr!r}")
        if expr.symbol in _SIMPLE:
            return self.add(_SIMPLE[expr.symbol], *(self.expr(arg) for arg in expr.args))
        if expr.symbol == ROOT:
            return self._root(self.expr(expr.args[0]))
        left, right = self.expr(expr.args[0]), self._divisor(expr.args[1])
        rest = self.add("Mod", left, right)  # of the divisor's sign, as in Python
        if expr.symbol == "%":
            return rest
        return self.add("Div", self.add("Sub", left, rest), right)  # ONNX rounds towards 0, so nothing may be left over

    def _root(self, of: ir.Value) -> ir.Value:
        """Exact up to 2**52, as far as double precision holds each whole number and its root's neighbours apart."""
        wide = self.add("Cast", self.add("Max", of, self.constant([0])), to=ir.DataType.DOUBLE)
        root = self.add("Sqrt", wide)
        for value in (wide, root):
            value.type = ir.TensorType(ir.DataType.DOUBLE)
        return self.add("Cast", root, to=ir.DataType.INT64)  # rounds towards 0

    def _divisor(self, expr: Expr) -> ir.Value:
        value = self.expr(expr)
        if isinstance(expr, Number) and expr.value != 0:
            return value
        # An integer division by 0 ends the whole process.
        is_zero = self.add("Equal", value, self.constant([0]))
        is_zero.type = ir.TensorType(ir.DataType.BOOL)
        return self.add("Where", is_zero, self.constant([1]), value)

    def excess(self, condition: Condition) -> ir.Value:
        """0 or less where the condition holds, 1 or more where it does not."""
        if condition not in self._written:
            self._written[condition] = self._write_excess(condition)
        return self._written[condition]

    def _write_excess(self, condition: Condition) -> ir.Value:
        if isinstance(condition, Compare):
            without_value = [self._is_zero_excess(divisor) for divisor in divisors(condition)]
            return self._joined("Max", [self._compare(condition), *without_value])
        if isinstance(condition, Not):
            return self.add("Sub", self.constant([1]), self.excess(condition.part))
        if not isinstance(condition, (All, AnyOf)):
            raise TypeError(f"not a condition: {condition!r}")
        if not condition.parts:
            return self.constant([0 if isinstance(condition, All) else 1])
        return self._joined("Max" if isinstance(condition, All) else "Min", [self.excess(p) for p in condition.parts])

    def _joined(self, op_type: str, values: list[ir.Value]) -> ir.Value:
        return values[0] if len(values) == 1 else self.add(op_type, *values)

    def _compare(self, compare: Compare) -> ir.Value:
        left, right = self.expr(compare.left), self.expr(compare.right)
        if compare.op in (">", ">="):
            left, right = right, left
        over = self.add("Sub", left, right)
        if compare.op in ("<=", ">="):
            return over
        if compare.op in ("<", ">"):
            return self.add("Add", over, self.constant([1]))
        distance = self.add("Abs", over)
        return distance if compare.op == "==" else self.add("Sub", self.constant([1]), distance)

    def _is_zero_excess(self, divisor: Expr) -> ir.Value:
        """1 where the divisor is 0: a comparison without a value does not hold."""
        return self.add("Sub", self.constant([1]), self.add("Abs", self.expr(divisor)))


def divisors(compare: Compare) -> list[Expr]:
    """What the comparison divides by, except for numbers."""
    found: list[Expr] = []

    def visit(expr: Expr) -> None:
        if isinstance(expr, Op):
            if expr.symbol in ("//", "%") and not (isinstance(expr.args[1], Number) and expr.args[1].value != 0):
                found.append(expr.args[1])
            for arg in expr.args:
                visit(arg)

    visit(compare.left)
    visit(compare.right)
    return list(dict.fromkeys(found))
