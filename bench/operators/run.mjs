// ./dev bench operators: one form of one operator after the other, relaxc beside ONNX Runtime and the roofline.
//
// usage: node run.mjs --relaxc BINARY --ort BINARY --models DIR [--filter TEXT] [--quick] [--json FILE]
//
// Everything runs on one thread. Each model is compiled to an artifact; then both sides are measured in turn, some
// milliseconds each in a fresh process, several rounds, and medians count. The roofline is the larger one of
// operations / peak and bytes / bandwidth, that of the cache that a form fits in. The worst forms come first.
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { geometricMean, inTurn, line, onnxRuntime, ours, run } from '../ort/measure.mjs';

const kExport = join(dirname(fileURLToPath(import.meta.url)), 'export.py');
const kMostJobs = 2; // that compile at once
const kManyRuns = 1000000; // time is the limit
const kSlow = 1.2; // times ONNX Runtime's time
const kLow = 0.4; // share of the roofline
const kCallUs = 1; // what a call costs: below that the roofline says nothing

const { values: options } = parseArgs({
  options: {
    relaxc: { type: 'string' },
    ort: { type: 'string' },
    models: { type: 'string' },
    filter: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
if (!options.relaxc || !options.ort || !options.models) {
  console.error('run.mjs: error: expected --relaxc, --ort and --models');
  process.exit(2);
}
const rounds = options.quick ? 1 : 3;
const slice_s = options.quick ? 0.02 : 0.03;

function exportForms(filter) {
  const args = [kExport, options.models, ...(filter ? ['--filter', filter] : [])];
  const result = spawnSync('/usr/bin/python3', args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (result.status !== 0) throw new Error(`${kExport}: ${result.stderr}`);
  return result.stdout.trim().split('\n').filter(Boolean).map((text) => JSON.parse(text));
}

const artifactOf = (form) => form.model.replace(/\.onnx$/, '.so');
const dimArguments = (form) => Object.entries(form.dims).map(([name, value]) => `${name}=${value}`);
const firstLine = (text) => text.split('\n').slice(1).find((part) => part.trim()) ?? text;

// Compiles all forms, some at once, before anything is measured.
async function compileAll(forms) {
  const queue = [...forms];
  const work = async () => {
    for (let form = queue.shift(); form; form = queue.shift()) {
      try {
        const { seconds } = await run(options.relaxc, ['compile', form.model, '--jobs', '1', '-o', artifactOf(form)]);
        form.compile_s = seconds;
      } catch (error) {
        form.error = `relaxc: ${firstLine(error.message)}`;
      }
    }
  };
  await Promise.all(Array.from({ length: kMostJobs }, work));
}

// Returns { ours_us, ort_us, onnxruntime }.
async function measure(form) {
  const files = Object.entries(form.inputs).map(([name, file]) => `${name}=${file}`);
  const given = files.length ? ['--input', ...files] : [];
  const more = ['--runs', String(kManyRuns), '--seconds', String(slice_s), ...given];
  const { ours: mine, ort } = await inTurn({
    ours: ours(options.relaxc, artifactOf(form), dimArguments(form), 1, {}, more),
    ort: onnxRuntime(options.ort, form.model, dimArguments(form), 1, more),
  }, rounds);
  return { ours_us: mine.median_ms * 1000, ort_us: ort.median_ms * 1000, onnxruntime: ort.figures.onnxruntime };
}

// Returns the machine's limits as a profile of ours knows them; null where it does not.
async function machineLimits(form) {
  const side = ours(options.relaxc, artifactOf(form), dimArguments(form), 1, {}, ['--profile']);
  const { profile } = JSON.parse((await run(side.command, side.args)).stdout.split('\n')[0]);
  if (!profile?.peak_gflops) return null;
  return { gflops: profile.peak_gflops, memory: profile.memory };
}

function rooflineUs(form, limits) {
  if (!limits) return null;
  const level = limits.memory.find(({ most_bytes }) => most_bytes === null || form.bytes <= most_bytes);
  return Math.max(form.operations / limits.gflops, form.bytes / level.gb_per_s) / 1000;
}

const isLow = (row) => row.roofline_us >= kCallUs && row.share < kLow;

const kColumns = [
  ['form', 54, (row) => row.name],
  ['ours_us', 10, (row) => row.ours_us.toFixed(1)],
  ['ort_us', 10, (row) => row.ort_us.toFixed(1)],
  ['ratio', 7, (row) => row.ratio.toFixed(2)],
  ['roof_us', 9, (row) => row.roofline_us?.toFixed(1) ?? ''],
  ['share', 6, (row) => (row.share === null ? '' : `${(100 * row.share).toFixed(0)}%`)],
];

function report(rows, refused, limits) {
  rows.sort((a, b) => b.ratio - a.ratio);
  console.log(line(kColumns, (column) => column[0]));
  for (const row of rows) console.log(line(kColumns, (column) => column[2](row)));
  for (const form of refused) console.log(`${form.name}: ${form.error}`);
  console.log(`\nONNX Runtime ${rows[0]?.onnxruntime}, ${cpus()[0].model}, one thread`);
  if (limits) {
    const bandwidths = limits.memory.map((level) => `${level.name} ${level.gb_per_s} GB/s`);
    console.log(`limits: ${limits.gflops} GFLOP/s, ${bandwidths.join(', ')}`);
  }
  const ending = (text) => rows.filter((row) => row.name.endsWith(text));
  const groups = { all: rows, static: ending('/static'), dims: ending('/dims') };
  for (const [name, group] of Object.entries(groups)) {
    if (!group.length) continue;
    const slow = group.filter((row) => row.ratio > kSlow).length;
    const low = group.filter(isLow);
    const open = low.filter((row) => !row.reason).length;
    const mean = geometricMean(group.map((row) => row.ratio));
    console.log(`${name}: ${group.length} forms, geometric mean ${mean.toFixed(3)} (${(1 / mean).toFixed(2)} times as `
      + `fast), ${slow} above ${kSlow}, ${low.length} below ${100 * kLow}% of the roofline, ${open} without a reason`);
  }
  for (const reason of new Set(rows.filter(isLow).map((row) => row.reason).filter(Boolean))) {
    const names = rows.filter((row) => isLow(row) && row.reason === reason).map((row) => row.name);
    console.log(`${names.join(', ')}: ${reason}`);
  }
  if (refused.length) console.log(`${refused.length} forms could not be measured`);
}

async function main() {
  mkdirSync(options.models, { recursive: true });
  const forms = exportForms(options.filter);
  if (!forms.length) throw new Error(`no form has '${options.filter}' in its name`);
  await compileAll(forms);
  const compiled = forms.filter((form) => !form.error);
  const limits = compiled.length ? await machineLimits(compiled[0]) : null;
  if (options.json) writeFileSync(options.json, '');
  const rows = [];
  for (const form of compiled) {
    try {
      const times = await measure(form);
      const roofline_us = rooflineUs(form, limits);
      const share = roofline_us ? roofline_us / times.ours_us : null; // a view has no limit
      rows.push({ ...form, ...times, ratio: times.ours_us / times.ort_us, roofline_us, share });
    } catch (error) {
      form.error = firstLine(error.message);
    }
    if (options.json) appendFileSync(options.json, `${JSON.stringify(form.error ? form : rows.at(-1))}\n`);
  }
  const refused = forms.filter((form) => form.error);
  report(rows, refused, limits);
  return refused.length ? 1 : 0;
}

try {
  process.exit(await main());
} catch (error) {
  console.error(`run.mjs: error: ${error.message}`);
  process.exit(2);
}
