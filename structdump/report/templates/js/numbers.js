// Numbers, sizes and times as people read them.

const FORMAT = new Intl.NumberFormat("en-US");

function number(value) {
  return typeof value === "number" ? FORMAT.format(value) : String(value);
}

function bytes(value) {
  if (typeof value !== "number") return "";
  if (value < 1000) return `${value} B`;
  if (value < 1e6) return `${(value / 1e3).toPrecision(3)} kB`;
  return `${(value / 1e6).toPrecision(3)} MB`;
}

function seconds(value) {
  if (typeof value !== "number") return "";
  if (value >= 100) return `${value.toFixed(0)} s`;
  if (value >= 1) return `${value.toPrecision(3)} s`;
  if (value >= 1e-3) return `${(value * 1e3).toPrecision(3)} ms`;
  return value === 0 ? "0" : `${(value * 1e6).toPrecision(3)} µs`;
}

function signed(value) {
  return value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : "±0";
}
