// Evaluates contracts as the page does. stdin: {scripts, contracts: [{data, points}]}; stdout: one answer for each point.
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const page = new Function(`"use strict"; ${given.scripts}; return { brokenRules, regionAt, shapeAt, estimateCall };`)();
const answers = given.contracts.map(({ data, points }) =>
  points.map((point) => {
    const sizes = new Map(point.map(([name, size]) => [name, BigInt(size)]));
    const shapes = [...data.inputs, ...data.outputs].map((tensor) => page.shapeAt(tensor.axes, sizes).map((size) => size === null ? null : String(size)));
    const region = data.regions.length ? page.regionAt(data.regions, sizes) : null;
    const cost = data.costs ? page.estimateCall(data.costs, sizes, given.elements) : null;
    return { broken: page.brokenRules(data.rules, sizes).map((rule) => rule.text), region, shapes, cost };
  }),
);
process.stdout.write(JSON.stringify(answers));
