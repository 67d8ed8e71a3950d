// Draws the figures of ./dev bench models as an SVG: a bar for each network, ONNX Runtime's time / relaxc's.
//
// The picture has a background of its own, whose colours follow the reader's scheme: it can be read on light pages and
// on dark ones. It needs no font that is not there and no script.
import { geometricMean } from '../ort/measure.mjs';

const kWidth = 760;
const kLabels = 190; // the width of the names
const kValues = 60; // of the numbers behind the bars
const kRow = 20;
const kBar = 13;
const kTop = 92;
const kBottom = 58;

const kStyle = `
  .page { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; }
  .title { font-size: 16px; font-weight: 600; }
  .note { fill: #59636e; }
  .value { stroke: #ffffff; stroke-width: 4px; paint-order: stroke; }
  .grid { stroke: #d0d7de; }
  .equal { stroke: #1f2328; stroke-dasharray: 4 3; }
  .faster { fill: #2f6fd0; }
  .slower { fill: #c4622d; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .note { fill: #9198a1; }
    .value { stroke: #0d1117; }
    .grid { stroke: #3d444d; }
    .equal { stroke: #f0f6fc; }
    .faster { fill: #5b9bff; }
    .slower { fill: #e8894f; }
  }`;

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const plural = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;

// "swin_t_dyn/4" is the dynamic twin of swin_t with batch 4.
function partsOf(label) {
  const [, name, dynamic, batch] = /^(.*?)(_dyn)?(?:\/(\d+))?$/.exec(label);
  return { name, twin: dynamic ? 'dynamic' : 'static', batch: Number(batch ?? 1) };
}

// Returns what is drawn: { bars: [{ name, ratio }], the largest first, rows }, of the rows with these threads and twins.
// A bar is the geometric mean of the rows of its network.
function barsOf(results, { threads, twins }) {
  const rows = results.map((row) => ({ ...row, ...partsOf(row.network) }))
    .filter((row) => threads.includes(row.threads) && twins.includes(row.twin));
  const ratios = new Map();
  for (const { name, ratio } of rows) ratios.set(name, [...(ratios.get(name) ?? []), 1 / ratio]);
  const bars = [...ratios].map(([name, values]) => ({ name, ratio: geometricMean(values) }));
  return { rows, bars: bars.sort((a, b) => b.ratio - a.ratio || (a.name < b.name ? -1 : 1)) };
}

// Returns a distance between lines of the grid that gives at most eight of them.
function stepOf(most) {
  return [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100].find((step) => most / step <= 8) ?? most;
}

const listed = (values) => [...new Set(values)].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)).join(' and ');

// Says which rows a bar stands for, and where they were measured.
function notesOf({ machine, date }, rows, bars) {
  const threads = listed(rows.map((row) => row.threads));
  const versions = listed(rows.map((row) => row.onnxruntime).filter(Boolean));
  const forms = [`${listed(rows.map((row) => row.twin))} shapes`, `batch ${listed(rows.map((row) => row.batch))}`,
    `${threads} thread${threads === '1' ? '' : 's'}`];
  return [
    `${machine.cpu}, ${plural(machine.cores, 'core')}. ${date}${versions ? `, ONNX Runtime ${versions}` : ''}.`,
    `Bars: ${forms.join(', ')}${rows.length > bars.length ? '; the geometric mean of these rows of a network' : ''}.`,
  ];
}

// Returns the picture. `measured` is what --json writes; `selected` the threads and twins that are drawn.
export function svgOf(measured, selected) {
  const { rows, bars } = barsOf(measured.results, selected);
  if (!bars.length) throw new Error('no row has these threads and twins');
  const height = kTop + bars.length * kRow + kBottom;
  const step = stepOf(Math.max(...bars.map((bar) => bar.ratio), 1));
  const ticks = Math.ceil(Math.max(...bars.map((bar) => bar.ratio), 1) / step);
  const x = (ratio) => kLabels + ratio / (ticks * step) * (kWidth - kLabels - kValues);
  const below = kTop + bars.length * kRow + 4;
  const mean = geometricMean(bars.map((bar) => bar.ratio)).toFixed(2);
  const title = "ONNX Runtime's time / relaxc's time";
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${kWidth}" height="${height}" viewBox="0 0 ${kWidth} ${height}" role="img">`,
    `<title>${title}</title>`,
    `<desc>${escaped(bars.map(({ name, ratio }) => `${name} ${ratio.toFixed(2)}`).join(', '))}</desc>`,
    `<style>${kStyle}\n</style>`,
    `<rect class="page" x="0.5" y="0.5" width="${kWidth - 1}" height="${height - 1}" rx="6"/>`,
    `<text class="title" x="16" y="30">${title}</text>`,
    `<text class="note" x="16" y="50">Above 1 relaxc is faster. Geometric mean of ${plural(bars.length, 'network')}: ${mean}.</text>`,
  ];
  for (let i = 0; i <= ticks; ++i) {
    const at = x(i * step).toFixed(1);
    lines.push(`<line class="grid" x1="${at}" y1="${kTop - 6}" x2="${at}" y2="${below}"/>`,
      `<text class="note" x="${at}" y="${kTop - 12}" text-anchor="middle">${i * step}</text>`);
  }
  const rects = [];
  const texts = [];
  for (const [i, { name, ratio }] of bars.entries()) {
    const y = kTop + i * kRow;
    const width = (x(ratio) - kLabels).toFixed(1);
    rects.push(`<rect class="${ratio < 1 ? 'slower' : 'faster'}" x="${kLabels}" y="${y}" width="${width}" height="${kBar}"/>`);
    texts.push(
      `<text x="${kLabels - 8}" y="${y + kBar - 2}" text-anchor="end">${escaped(name)}</text>`,
      `<text class="value" x="${(x(ratio) + 6).toFixed(1)}" y="${y + kBar - 2}">${ratio.toFixed(2)}</text>`);
  }
  const equal = `<line class="equal" x1="${x(1).toFixed(1)}" y1="${kTop - 6}" x2="${x(1).toFixed(1)}" y2="${below}"/>`;
  lines.push(...rects, equal, ...texts); // the numbers lie over the line
  for (const [i, note] of notesOf(measured, rows, bars).entries())
    lines.push(`<text class="note" x="16" y="${below + 22 + i * 18}">${escaped(note)}</text>`);
  return lines.join('\n') + '\n</svg>\n';
}
