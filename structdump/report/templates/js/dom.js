// Elements from names and strings. Data only ever becomes text nodes and attribute values.

// Control, zero-width and direction-changing characters: shown by number, so that a text is what it looks like.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function visible(text) {
  return String(text).replace(UNSEEN, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

function cut(text, length) {
  const all = visible(text);
  return all.length > length ? `${all.slice(0, length)}…` : all;
}

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

function unseen(text) {
  return h("span", { class: "unseen" }, text);
}

function say(text) {
  document.getElementById("live").textContent = visible(text);
}

function plural(count, one, many) {
  return `${number(count)} ${count === 1 ? one : many || `${one}s`}`;
}

function button(label, onclick, attributes) {
  return h("button", { type: "button", ...attributes, onclick }, label);
}

// Waits until the browser has painted and taken input, for long work in steps.
function breathe() {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
