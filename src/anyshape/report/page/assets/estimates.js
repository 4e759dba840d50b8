// What a call costs, from counts at some sizes of each dim: the same estimate as in anyshape.explore.

function place(size) {
  return Math.log(Math.max(size, 0.5));
}

// How many times the count of the base the count at this size of one dim is: a power of the size between two counts.
function growth(counted, size, base, count, steepest) {
  const of = (counts) => Math.max(counts[count], 1);
  if (counted.length === 1 || size <= counted[0][0]) return of(counted[0][1]) / of(base);
  let after = counted.findIndex(([at], index) => index > 0 && at >= size);
  if (after < 0) after = counted.length - 1;
  const [x0, y0] = [place(counted[after - 1][0]), Math.log(of(counted[after - 1][1]))];
  const [x1, y1] = [place(counted[after][0]), Math.log(of(counted[after][1]))];
  let slope = (y1 - y0) / (x1 - x0);
  if (size > counted[after][0]) slope = Math.min(Math.max(slope, 0), steepest);
  return Math.exp(y1 + slope * (place(size) - x1) - Math.log(of(base)));
}

function estimateCount(costs, sizes, count) {
  let found = costs.base[count];
  for (const [name, counted] of Object.entries(costs.along)) {
    found *= growth(counted, Number(sizes.get(name)), costs.base, count, costs.rates.steepest);
  }
  return Math.floor(found);
}

// Seconds of one call on one core, and the elements of all tensors that it makes; `given` are the elements of the inputs.
function estimateCall(costs, sizes, given) {
  const rates = costs.rates;
  const multiplied = costs.base.multiplied > 0 ? estimateCount(costs, sizes, "multiplied") : 0;
  const exchanged = given + estimateCount(costs, sizes, "answered");
  const operations =
    multiplied +
    rates.element * estimateCount(costs, sizes, "computed") +
    rates.exchanged * exchanged +
    rates.operator * estimateCount(costs, sizes, "operators") +
    rates.byte * costs.weights;
  return { seconds: operations / rates.per_second, elements: given + estimateCount(costs, sizes, "elements") };
}
