// The size explorer: fields and sliders -> is the size inside the contract, which program answers, what shapes come out.

const STEPS = 1000; // of a slider whose range is too wide for one step a size
const LINEAR = 512n;
const NEAREST = 3;

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function formatBytes(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  let value = Number(bytes);
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
}

function formatSeconds(seconds) {
  const [value, unit] = seconds < 1e-3 ? [seconds * 1e6, "µs"] : seconds < 1 ? [seconds * 1e3, "ms"] : [seconds, "s"];
  return `${Number(value.toPrecision(2))} ${unit}`;
}

function formatSizes(sizes) {
  return sizes.map(([name, size]) => `${name}=${size}`).join(", ");
}

// A slider has one step for each multiple where there are few, else steps of equal ratio.
class Scale {
  constructor(dim) {
    this.low = BigInt(dim.low);
    this.multiple = BigInt(dim.multiple);
    const last = (BigInt(dim.high) - this.low) / this.multiple;
    this.last = last > 0n ? last : 0n;
    this.isLinear = this.last <= LINEAR;
  }

  get steps() {
    return this.isLinear ? Number(this.last) : STEPS;
  }

  sizeAt(step) {
    const number = this.isLinear
      ? BigInt(step)
      : step >= STEPS
        ? this.last
        : BigInt(Math.round(Math.pow(Number(this.last) + 1, step / STEPS))) - 1n;
    return this.low + number * this.multiple;
  }

  stepOf(size) {
    const number = floorDivide(size - this.low, this.multiple);
    const inside = number < 0n ? 0n : number > this.last ? this.last : number;
    if (this.isLinear) return Number(inside);
    return Math.round((STEPS * Math.log(Number(inside) + 1)) / Math.log(Number(this.last) + 1));
  }
}

// How far sizes are from each other, as a sum of ratios.
function distance(known, sizes) {
  return known.reduce((sum, [name, size]) => {
    const here = Number(sizes.get(name) ?? 0n);
    return sum + Math.abs(Math.log((Number(size) + 1) / (here + 1)));
  }, 0);
}

function isAt(known, sizes) {
  return known.every(([name, size]) => sizes.get(name) === BigInt(size));
}

class Explorer {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.controls = data.dims.map((dim, index) => this.control(dim, index));
    for (const button of root.querySelectorAll("button[data-go]")) {
      button.addEventListener("click", () => this.go(button.dataset.go));
    }
    this.show();
  }

  find(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  control(dim, index) {
    const number = this.root.querySelector(`#size-${index}`);
    const slider = this.root.querySelector(`#slider-${index}`);
    const scale = new Scale(dim);
    const control = { dim, number, slider, scale, size: BigInt(dim.start) };
    slider.min = 0;
    slider.max = scale.steps;
    slider.disabled = scale.steps === 0;
    slider.addEventListener("input", () => this.take(control, scale.sizeAt(Number(slider.value))));
    number.addEventListener("input", () => {
      if (/^\d+$/.test(number.value)) this.take(control, BigInt(number.value), number);
    });
    number.addEventListener("change", () => this.take(control, control.size));
    this.put(control);
    return control;
  }

  put(control, typed) {
    if (!typed) control.number.value = String(control.size);
    control.slider.value = control.scale.stepOf(control.size);
    control.slider.setAttribute("aria-valuetext", String(control.size));
  }

  take(control, size, typed) {
    control.size = size;
    this.put(control, typed);
    this.show();
  }

  go(where) {
    for (const control of this.controls) {
      control.size = BigInt(control.dim[where]);
      this.put(control);
    }
    this.show();
  }

  get sizes() {
    return new Map(this.controls.map((control) => [control.dim.name, control.size]));
  }

  show() {
    const sizes = this.sizes;
    const broken = brokenRules(this.data.rules, sizes);
    this.showAnswer(sizes, broken);
    this.showFields(broken);
    const given = this.showTensors("inputs", sizes);
    this.showTensors("outputs", sizes);
    this.showNearest(sizes);
    this.showCosts(sizes, given);
  }

  showAnswer(sizes, broken) {
    const [state, head, why] = this.answerAt(sizes, broken);
    const answer = this.find("answer");
    answer.dataset.state = state;
    this.find("head").textContent = head;
    this.find("why").replaceChildren(...why.map((text) => element("li", text)));
    const regions = this.data.regions;
    const region = this.find("region");
    region.hidden = regions.length < 2 || broken.length > 0;
    if (!region.hidden) {
      const number = regionAt(regions, sizes);
      region.textContent = `Region ${number + 1} of ${regions.length} answers: ${regions[number].text}`;
    }
  }

  answerAt(sizes, broken) {
    const standing = this.data.standing;
    const failed = this.data.failed.find((each) => isAt(each.sizes, sizes));
    if (broken.length) {
      const why = broken.map((rule) => `${rule.text} does not hold` + (rule.origin ? ` (${rule.origin})` : ""));
      return ["outside", standing === "promise" ? "Outside the contract" : "Outside the declared sizes", why];
    }
    if (failed) return ["outside", failed.head, [failed.what]];
    if (this.data.refused.some((each) => isAt(each, sizes))) {
      return ["outside", "The model itself raises here", []];
    }
    if (standing === "nothing") return ["unknown", "Declared, and not promised", ["no file was compared and found right at all sizes"]];
    const compared = this.data.compared.some((each) => isAt(each.sizes, sizes));
    const why = [compared ? "compared at exactly these sizes" : "not compared at these very sizes"];
    if (standing === "promise") return ["inside", "Inside the contract", why];
    return [compared ? "inside" : "unknown", "Declared; the file has no contract", why];
  }

  showFields(broken) {
    for (const { dim, number } of this.controls) {
      const isBroken = broken.some((rule) => JSON.stringify(rule.tree).includes(JSON.stringify(["dim", dim.name])));
      number.setAttribute("aria-invalid", String(isBroken));
    }
  }

  showTensors(side, sizes) {
    let given = 0;
    this.data[side].forEach((tensor, index) => {
      const row = this.root.querySelector(`#${side}-${index}`);
      if (!row) return;
      const shape = tensor.axes === null ? null : shapeAt(tensor.axes, sizes);
      const isKnown = shape !== null && shape.every((size) => size !== null && size >= 0n);
      const elements = isKnown ? shape.reduce((product, size) => product * size, 1n) : null;
      const text = shape === null ? "…" : shape.map((size) => (size === null ? "?" : String(size))).join(", ");
      row.querySelector('[data-cell="shape"]').textContent = `[${text}]`;
      const bytes = elements !== null && tensor.bits ? formatBytes((elements * BigInt(tensor.bits)) / 8n) : "–";
      row.querySelector('[data-cell="bytes"]').textContent = bytes;
      given += elements === null ? 0 : Number(elements);
    });
    return given;
  }

  showNearest(sizes) {
    const list = this.find("nearest");
    if (!list) return;
    const near = [...this.data.compared].sort((one, two) => distance(one.sizes, sizes) - distance(two.sizes, sizes));
    list.replaceChildren(
      ...near.slice(0, NEAREST).map((each) => {
        const item = element("li");
        item.append(element("code", formatSizes(each.sizes)));
        const worst = Math.max(...each.errors, 0);
        item.append(` ${worst.toPrecision(2)} × the ${this.data.unit}`);
        return item;
      }),
    );
  }

  showCosts(sizes, given) {
    const memory = this.find("memory");
    const time = this.find("time");
    const measured = this.find("measured");
    if (memory && this.data.costs) {
      const call = estimateCall(this.data.costs, sizes, given);
      memory.textContent = formatBytes(4 * call.elements + this.data.costs.weights);
      time.textContent = formatSeconds(call.seconds);
    }
    if (measured && this.data.bench.length) {
      const near = this.data.bench.reduce((best, row) => (distance(row.sizes, sizes) < distance(best.sizes, sizes) ? row : best));
      measured.textContent = `${near.ms.toPrecision(3)} ms, ${near.mb.toPrecision(3)} MB at ${near.text}`;
    }
  }
}
