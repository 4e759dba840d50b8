// The arithmetic of anyshape's contracts, exact: integers of any size, division rounded down as in Python.
// A tree is a number ("64") or a list: ["dim", name], [operation, ...trees], [comparison, left, right], ["all" | "any" | "not", ...].

class Undefined extends Error {}

function floorDivide(left, right) {
  if (right === 0n) throw new Undefined("division by zero");
  const quotient = left / right;
  return left % right !== 0n && (left < 0n) !== (right < 0n) ? quotient - 1n : quotient;
}

function modulo(left, right) {
  return left - floorDivide(left, right) * right;
}

function squareRoot(value) {
  if (value <= 0n) return 0n;
  let root = 1n << (BigInt(value.toString(2).length) / 2n + 1n);
  for (;;) {
    const better = (root + value / root) / 2n;
    if (better >= root) return root;
    root = better;
  }
}

const OPERATIONS = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "//": floorDivide,
  "%": modulo,
  min: (...values) => values.reduce((least, value) => (value < least ? value : least)),
  max: (...values) => values.reduce((most, value) => (value > most ? value : most)),
  isqrt: squareRoot,
};

const COMPARISONS = {
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  ">=": (left, right) => left >= right,
  ">": (left, right) => left > right,
};

// The value at these sizes (a Map of names to BigInt). Throws Undefined on a division by zero.
function evaluate(tree, sizes) {
  if (typeof tree === "string") return BigInt(tree);
  const [symbol, ...parts] = tree;
  if (symbol === "dim") {
    if (!sizes.has(parts[0])) throw new Error(`no size for ${parts[0]}`);
    return sizes.get(parts[0]);
  }
  return OPERATIONS[symbol](...parts.map((part) => evaluate(part, sizes)));
}

// Whether a condition holds; a comparison without a value does not.
function holds(tree, sizes) {
  const [symbol, ...parts] = tree;
  if (symbol === "all") return parts.every((part) => holds(part, sizes));
  if (symbol === "any") return parts.some((part) => holds(part, sizes));
  if (symbol === "not") return !holds(parts[0], sizes);
  try {
    return COMPARISONS[symbol](evaluate(parts[0], sizes), evaluate(parts[1], sizes));
  } catch (error) {
    if (error instanceof Undefined) return false;
    throw error;
  }
}

// The sizes of a shape; null for an axis that follows no expression, or has no value here.
function shapeAt(axes, sizes) {
  return axes.map((axis) => {
    try {
      return axis === null ? null : evaluate(axis, sizes);
    } catch (error) {
      if (error instanceof Undefined) return null;
      throw error;
    }
  });
}

// The rules that these sizes break.
function brokenRules(rules, sizes) {
  return rules.filter((rule) => !holds(rule.tree, sizes));
}

// The number of the program that answers: the first whose condition holds, else the last one.
function regionAt(regions, sizes) {
  const found = regions.findIndex((region) => holds(region.tree, sizes));
  return found < 0 ? regions.length - 1 : found;
}
