// What all pages share: their data, elements, numbers with units. A page never writes text as HTML: names come from
// models, which may be hostile.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// An error is shown, since nobody looks into a browser's console.
function showFailure(message) {
  const box = document.getElementById("failure") || document.body.appendChild(element("div", {id: "failure"}));
  box.textContent = `This page failed: ${message}`;
}
window.addEventListener("error", event => showFailure(event.message));
window.addEventListener("unhandledrejection", event => showFailure(event.reason));

// Returns an element with these properties ("onclick", "className", "aria-label") and children, texts among them.
function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

const format = {
  time(microseconds) {
    if (microseconds >= 1e6) return `${(microseconds / 1e6).toPrecision(4)} s`;
    if (microseconds >= 1000) return `${(microseconds / 1000).toPrecision(4)} ms`;
    return `${Number(microseconds.toPrecision(3))} µs`;
  },
  bytes(bytes) {
    const units = ["bytes", "KiB", "MiB", "GiB"];
    let unit = 0;
    for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
    return `${unit === 0 ? bytes : bytes.toPrecision(3)} ${units[unit]}`;
  },
  share(part) {
    return Number.isFinite(part) ? `${(100 * part).toFixed(1)} %` : "–";
  },
  count(number, word) {
    return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
  },
};

// Returns the text in so many letters. Names are paths, whose end tells them apart.
function shortened(text, letters) {
  if (text.length <= letters) return text;
  const kept = Math.max(1, letters - 1);
  return text.includes("/") ? `…${text.slice(-kept)}` : `${text.slice(0, kept)}…`;
}

// Returns the value of a variable of style.css, which depends on light and dark.
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
function onSchemeChange(call) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", call);
}

// Reads the long texts of the page, which are gzip in base64.
let textsOnce = null;
function readTexts() {
  textsOnce =
    textsOnce ||
    (async () => {
      const packed = atob(document.getElementById("texts").textContent);
      const bytes = Uint8Array.from(packed, character => character.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      return JSON.parse(await new Response(stream).text());
    })();
  return textsOnce;
}

// Returns the settings behind the "#" of the address: "#kernel=fused_add&tab=loops". They are a state to link to.
function addressSettings() {
  return new URLSearchParams(location.hash.slice(1));
}

// Returns what kind of work a kernel does, from the names of its operators or its own: a colour of style.css.
function workOf(text) {
  if (/conv|matmul|dense|attention|linear|gemm|einsum|lstm|gru|rnn|winograd|product/i.test(text)) return "product";
  const words = text.split(/[\s,]+/).filter(word => word);
  const moves =
    /layout|transpose|permute|reshape|concat|slice|split|gather|take|pad|expand|squeeze|flatten|copy|tile|broadcast|resize|scatter|stack/i;
  return words.length > 0 && words.every(word => moves.test(word)) ? "movement" : "elementwise";
}

// Returns a legend of colours of style.css, with the meaning of each.
function legendOf(meanings) {
  return element(
    "div",
    {className: "legend"},
    ...Object.entries(meanings).map(([name, text]) => {
      const sample = element("i");
      sample.style.background = `var(--${name})`;
      return element("span", {}, sample, text);
    }),
  );
}
