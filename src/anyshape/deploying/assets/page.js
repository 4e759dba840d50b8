// Runs model.onnx at the sizes that the sliders show. What model.json says is shown as text, never as markup.
import * as ort from "./ort/ort.wasm.min.mjs";

ort.env.wasm.wasmPaths = new URL("./ort/", import.meta.url).href;
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array,
};
const MOST_ELEMENTS = 2 ** 27;
const SHOWN = 6;

const find = (id) => document.getElementById(id);

function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// An expression is a number, the name of a dim, or [operator, ...arguments]. Division is rounded down, as in Python.
function evaluate(expression, sizes) {
  if (typeof expression === "number") return expression;
  if (typeof expression === "string") return sizes.get(expression);
  const [operator, ...args] = expression;
  const values = args.map((each) => evaluate(each, sizes));
  const [a, b] = values;
  switch (operator) {
    case "+": return a + b;
    case "-": return a - b;
    case "*": return a * b;
    case "//": return Math.floor(a / b);
    case "%": return a - b * Math.floor(a / b);
    case "min": return Math.min(...values);
    case "max": return Math.max(...values);
    case "isqrt": return Math.floor(Math.sqrt(Math.max(a, 0)));
    default: throw new Error(`unknown operator ${operator}`);
  }
}

function holds(condition, sizes) {
  const [operator, ...parts] = condition;
  if (operator === "all") return parts.every((part) => holds(part, sizes));
  if (operator === "any") return parts.some((part) => holds(part, sizes));
  if (operator === "not") return !holds(parts[0], sizes);
  const [a, b] = parts.map((part) => evaluate(part, sizes));
  if (!Number.isFinite(a) || !Number.isFinite(b)) return false;
  return { "<": a < b, "<=": a <= b, "==": a === b, "!=": a !== b, ">=": a >= b, ">": a > b }[operator];
}

// A small generator with a seed: the same sizes give the same inputs.
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function valueRange(input, sizes) {
  const whole = !input.dtype.startsWith("float");
  let [low, high] = [-Infinity, Infinity];
  for (const { symbol, limit } of input.bounds) {
    const value = evaluate(limit, sizes);
    const near = whole ? 1 : Math.max(Math.abs(value), 1) * 1e-3;
    if ([">", ">=", "=="].includes(symbol)) low = Math.max(low, symbol === ">" ? value + near : value);
    if (["<", "<=", "=="].includes(symbol)) high = Math.min(high, symbol === "<" ? value - near : value);
  }
  if (whole && low === -Infinity) low = Math.min(0, high);
  if (whole && high === Infinity) high = low + input.rows - 1;
  return [low, Math.max(low, high)];
}

function halfBits(value) {
  const [sign, size] = [value < 0 || Object.is(value, -0) ? 0x8000 : 0, Math.abs(value)];
  if (size >= 65520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | Math.round(size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  return sign | (((exponent + 15) << 10) + Math.round((size / 2 ** exponent - 1) * 1024));
}

function fill(input, count, sizes) {
  const random = randomNumbers(count + input.name.length);
  const [low, high] = valueRange(input, sizes);
  const isBounded = Number.isFinite(low) && Number.isFinite(high);
  const draw = () => {
    if (input.dtype === "bool") return random() < 0.5 ? 1 : 0;
    if (!input.dtype.startsWith("float")) return low + Math.floor(random() * (high - low + 1));
    if (isBounded) return low + random() * (high - low);
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    if (Number.isFinite(low)) return low + Math.abs(normal);
    return Number.isFinite(high) ? high - Math.abs(normal) : normal;
  };
  if (input.dtype === "float16") {
    return globalThis.Float16Array
      ? globalThis.Float16Array.from({ length: count }, draw)
      : Uint16Array.from({ length: count }, () => halfBits(draw()));
  }
  const isBig = input.dtype.endsWith("int64");
  return ARRAYS[input.dtype].from({ length: count }, () => (isBig ? BigInt(Math.trunc(draw())) : draw()));
}

function makeFeeds(model, shapes, sizes) {
  const feeds = Object.create(null);
  for (const input of model.inputs) {
    const shape = shapes.get(input.name);
    const count = shape.reduce((product, size) => product * size, 1);
    if (!shape.every((size) => Number.isInteger(size) && size >= 0)) throw new Error(`${input.name} cannot have the shape [${shape}]`);
    if (count > MOST_ELEMENTS) throw new Error(`${input.name} would have ${count} elements: too many for a page`);
    feeds[input.name] = new ort.Tensor(input.dtype, fill(input, count, sizes), shape);
  }
  return feeds;
}

const shapesAt = (model, sizes) =>
  new Map(model.inputs.map((input) => [input.name, input.axes.map((axis) => evaluate(axis, sizes))]));

async function timedRun(session, model, shapes, sizes) {
  let feeds;
  try {
    feeds = makeFeeds(model, shapes, sizes);
  } catch (error) {
    return { impossible: error.message };
  }
  const began = performance.now();
  try {
    const outputs = await session.run(feeds);
    return { outputs, milliseconds: performance.now() - began };
  } catch (error) {
    return { refusal: error.message ?? String(error), milliseconds: performance.now() - began };
  }
}

// The name of the node that refuses is the rule: Name:'anyshape AS402: batch of 'x' must be 1 to 8' Status Message: ...
const ruleIn = (message) => /Name:'anyshape (.*)' Status Message/s.exec(message)?.[1] ?? message;

const shownSizes = (sizes) => [...sizes].map(([name, size]) => `${name}=${size}`).join(", ") || "no dims";

function showOutputs(model, outputs) {
  find("outputs").replaceChildren(
    ...model.outputs.map(({ name, dtype }) => {
      const tensor = outputs[name];
      const row = element("tr");
      const values = Array.from(tensor.data.slice(0, SHOWN), (value) => (typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(4) : String(value)));
      row.append(element("td", name), element("td", dtype), element("td", `[${tensor.dims.join(", ")}]`), element("td", values.join(", ")));
      return row;
    }),
  );
}

function addToHistory(sizes, outcome, milliseconds) {
  const row = element("tr");
  row.append(element("td", shownSizes(sizes)), element("td", outcome), element("td", milliseconds === undefined ? "" : `${milliseconds.toFixed(1)} ms`));
  find("history").prepend(row);
}

function makeSizes(model) {
  const fields = new Map();
  for (const [place, dim] of model.dims.entries()) {
    const row = element("div", "", "dim");
    const label = element("label", dim.name);
    const [slider, field] = ["range", "number"].map((type) => {
      const input = element("input");
      Object.assign(input, { type, min: 0, step: 1, value: dim.start, name: `${type}-${place}` });
      return input;
    });
    slider.max = dim.slider;
    slider.value = dim.start;
    label.htmlFor = field.id = `dim-${place}`;
    slider.setAttribute("aria-label", `${dim.name}, slider`);
    slider.addEventListener("input", () => { field.value = slider.value; showContract(model, fields); });
    field.addEventListener("input", () => { slider.value = field.value; showContract(model, fields); });
    row.append(label, slider, field);
    find("sizes").append(row);
    fields.set(dim.name, field);
  }
  return fields;
}

const readSizes = (fields) => new Map([...fields].map(([name, field]) => [name, Math.trunc(Number(field.value))]));

function brokenRules(model, sizes) {
  return model.rules.filter(({ holds: condition }) => !holds(condition, sizes)).map(({ text }) => text);
}

function showContract(model, fields) {
  const broken = brokenRules(model, readSizes(fields));
  const line = find("contract");
  line.className = broken.length ? "bad" : "good";
  line.textContent = broken.length ? `outside the contract: ${broken.join(", ")}` : "inside the contract";
}

async function runOnce(session, model, fields) {
  const sizes = readSizes(fields);
  const broken = brokenRules(model, sizes);
  find("run").disabled = true;
  find("outcome").textContent = "Running…";
  const result = await timedRun(session, model, shapesAt(model, sizes), sizes);
  const line = find("outcome");
  find("outputs").replaceChildren();
  if (result.impossible) line.textContent = result.impossible;
  else if (result.refusal) line.textContent = `The file refuses ${shownSizes(sizes)}: ${ruleIn(result.refusal)}`;
  else {
    line.textContent = broken.length
      ? `The file answers ${shownSizes(sizes)}, which lies outside its contract: that answer means nothing.`
      : `Answered ${shownSizes(sizes)} in ${result.milliseconds.toFixed(1)} ms.`;
    showOutputs(model, result.outputs);
  }
  line.className = result.outputs && !broken.length ? "good" : "bad";
  addToHistory(sizes, result.impossible ?? (result.refusal ? "refused" : broken.length ? "answered outside the contract" : "answered"), result.milliseconds);
  find("run").disabled = false;
}

async function tryOutside(session, model, fields) {
  find("try-outside").disabled = true;
  find("outside").replaceChildren();
  let answered = 0;
  for (const { rule, shapes } of model.outside) {
    const result = await timedRun(session, model, new Map(Object.entries(shapes)), new Map(model.dims.map((dim) => [dim.name, dim.start])));
    answered += result.outputs ? 1 : 0;
    const shown = Object.entries(shapes).map(([name, shape]) => `${name}[${shape.join(", ")}]`).join(", ");
    find("outside").append(element("li", `${rule}: ${shown} is ${result.outputs ? "answered" : "refused"}`, result.outputs ? "bad" : "good"));
  }
  const count = model.outside.length;
  find("defence").textContent = answered
    ? `The checks of the file do not hold in this browser: ${answered} of ${count} calls outside the contract are answered.`
    : `All ${count} calls outside the contract are refused.`;
  find("try-outside").disabled = false;
}

async function main() {
  const model = await (await fetch("./model.json")).json();
  document.title = find("title").textContent = `${model.name} in this browser`;
  find("inputs").append(...model.inputs.map(({ text }) => element("li", text)));
  const fields = makeSizes(model);
  showContract(model, fields);
  const externalData = model.weights.map((path) => ({ path, data: new URL(`./${path.split("/").map(encodeURIComponent).join("/")}`, import.meta.url).href }));
  const began = performance.now();
  const session = await ort.InferenceSession.create(`./${model.file}`, { executionProviders: ["wasm"], externalData, logSeverityLevel: 4 });
  find("state").textContent = `The model is loaded, in ${Math.round(performance.now() - began)} ms.`;
  find("run").addEventListener("click", () => runOnce(session, model, fields));
  find("sizes").addEventListener("submit", (event) => { event.preventDefault(); runOnce(session, model, fields); });
  find("try-outside").addEventListener("click", () => tryOutside(session, model, fields));
  find("run").disabled = find("try-outside").disabled = false;
}

main().catch((error) => {
  find("state").className = "bad";
  find("state").textContent = `The model cannot be loaded: ${error.message ?? error}`;
});
