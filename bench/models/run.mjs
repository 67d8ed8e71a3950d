// ./dev bench models: relaxc beside ONNX Runtime on the exported models, both measured in this one run, and relaxc with a
// backend beside the two where one is given.
//
// usage: node run.mjs --relaxc BINARY --models DIR [--trees] [--backend LIBRARY] [--json FILE] [--rounds N]
//
// --trees: the forests of bench/trees/export.py, at three batch sizes each.
//
// Machines drift, so they take turns, several rounds of them, and the table shows medians over the rounds. Every
// round is a fresh process. Compile seconds and peak memory are of `relaxc compile`, once per model.
import { mkdtempSync, rmSync, writeFileSync, existsSync, statSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inTurn, line, onnxRuntime, ours, run } from '../ort/measure.mjs';

const kModels = [
  { name: 'resnet18', dims: ['batch=1'] },
  { name: 'mobilenet_v2', dims: ['batch=1'] },
  { name: 'bert', dims: ['batch=1', 'sequence=128'] },
  { name: 'resnet18_int8', dims: ['batch=1'] },
];
const kForests = ['boosted', 'boosted_classes', 'xgboost', 'leafwise', 'forest', 'forest_classes'];
const kBatches = [1, 100, 10000];
const kThreads = [1, 2];

const { values: options } = parseArgs({
  options: {
    relaxc: { type: 'string' },
    models: { type: 'string' },
    trees: { type: 'boolean', default: false },
    backend: { type: 'string' },
    json: { type: 'string' },
    rounds: { type: 'string', default: '3' },
  },
});
const rounds = Number(options.rounds);
if (!options.relaxc || !options.models || !Number.isInteger(rounds) || rounds < 1) {
  console.error('usage: node run.mjs --relaxc BINARY --models DIR [--trees] [--backend LIBRARY] [--json FILE] [--rounds N]');
  process.exit(2);
}

// What relaxc makes of a model with the backend.
const artifact = () => join(scratch, 'backend.so');

async function measureCompile(model, scratch) {
  if (options.backend) await run(options.relaxc, ['compile', model, '--backend', options.backend, '-o', artifact()]);
  const { seconds, peak_bytes } = await run(options.relaxc, ['compile', model, '-o', join(scratch, 'model.so')]);
  return { compile_s: seconds, compile_peak_mb: peak_bytes / 1e6, model_mb: statSync(model).size / 1e6 };
}

async function measureAll(model, dims, threads) {
  const openmp = { OMP_NUM_THREADS: String(threads) };
  const sides = {
    ours: ours(options.relaxc, model, dims, threads),
    ...(options.backend ? { backend: ours(options.relaxc, artifact(), dims, threads, openmp) } : {}),
    ort: onnxRuntime(model, dims, threads),
  };
  const results = await inTurn(sides, rounds);
  const times = Object.entries(results).flatMap(([side, { median_ms, rounds_ms }]) => [
    [`${side}_ms`, median_ms], [`${side}_rounds_ms`, rounds_ms]]);
  return {
    threads, ...Object.fromEntries(times), ratio: results.ours.median_ms / results.ort.median_ms,
    onnxruntime: results.ort.figures.onnxruntime,
  };
}

// Returns the rows of the table: a model, and the dims of one measurement of it.
function measurements() {
  if (!options.trees) return kModels.map((model) => ({ ...model, label: model.name }));
  // XGBoost need not be installed.
  const names = kForests.filter((name) => name !== 'xgboost' || existsSync(join(options.models, name)));
  return names.flatMap((name) => kBatches.map((batch) => (
    { name, dims: [`batch=${batch}`], label: `${name}/${batch}` })));
}

const kColumns = [
  ['model', options.trees ? 21 : 14, (row) => row.model],
  ['threads', 8, (row) => row.threads],
  ['ours_ms', 9, (row) => row.ours_ms.toFixed(3)],
  ...(options.backend ? [['backend_ms', 11, (row) => row.backend_ms.toFixed(3)]] : []),
  ['ort_ms', 9, (row) => row.ort_ms.toFixed(3)],
  ['ratio', 7, (row) => row.ratio.toFixed(2)],
  ['compile_s', 10, (row) => row.compile_s.toFixed(2)],
  ['compile_peak_mb', 16, (row) => row.compile_peak_mb.toFixed(0)],
  ['model_mb', 9, (row) => row.model_mb.toFixed(1)],
];

const scratch = mkdtempSync(join(tmpdir(), 'relaxc-bench-'));
const results = [];
let failures = 0;
try {
  console.log(line(kColumns, (column) => column[0]));
  for (const { name, dims, label } of measurements()) {
    const model = join(options.models, name, 'model.onnx');
    try {
      if (!existsSync(model)) throw new Error(`${model}: not there; ./dev ${options.trees ? 'bench trees' : 'models'} makes it`);
      const compile = await measureCompile(model, scratch);
      for (const threads of kThreads) {
        const row = { model: label, dims, ...await measureAll(model, dims, threads), ...compile };
        results.push(row);
        console.log(line(kColumns, (column) => column[2](row)));
      }
    } catch (error) {
      // One model that fails must not hide the numbers of the others.
      console.error(`${label}: ${error.message}`);
      ++failures;
    }
  }
} finally {
  rmSync(scratch, { recursive: true });
}
if (options.json) {
  const machine = { cpu: cpus()[0].model, cores: cpus().length };
  writeFileSync(options.json, JSON.stringify({ machine, rounds, failures, results }, null, 2) + '\n');
}
process.exit(failures ? 1 : 0);
