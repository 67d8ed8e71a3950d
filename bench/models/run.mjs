// ./dev bench models: relaxc beside ONNX Runtime on the exported models, both measured in this one run, and relaxc with a
// backend beside the two where one is given.
//
// usage: node run.mjs --relaxc BINARY --models DIR [--trees] [--backend LIBRARY] [--json FILE] [--rounds N]
//
// --trees: the forests of bench/trees/export.py, at three batch sizes each.
//
// Machines drift, so they take turns, several rounds of them, and the table shows medians over the rounds. Every
// round is a fresh process. Compile seconds and peak memory are of `relaxc compile`, once per model.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync, statSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const kModels = [
  { name: 'resnet18', dims: ['batch=1'] },
  { name: 'mobilenet_v2', dims: ['batch=1'] },
  { name: 'bert', dims: ['batch=1', 'sequence=128'] },
  { name: 'resnet18_int8', dims: ['batch=1'] },
];
const kForests = ['boosted', 'boosted_classes', 'xgboost', 'leafwise', 'forest', 'forest_classes'];
const kBatches = [1, 100, 10000];
const kThreads = [1, 2];
const kPollMs = 5;

const kOrtScript = join(dirname(fileURLToPath(import.meta.url)), '..', 'ort', 'run.mjs');

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

// The high-water mark of a process's memory as Linux keeps it; 0 once the process is gone.
function peakBytes(pid) {
  try {
    return 1024 * Number(/VmHWM:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

// Runs a command to its end: { stdout, seconds, peak_bytes }. The mark only grows, so the last look before the end
// misses at most what was allocated in the last few milliseconds.
function run(command, args, env = {}) {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    let stdout = '';
    let stderr = '';
    let peak_bytes = 0;
    const poll = setInterval(() => { peak_bytes = Math.max(peak_bytes, peakBytes(child.pid)); }, kPollMs);
    child.stdout.on('data', (chunk) => { stdout += chunk; });
    child.stderr.on('data', (chunk) => { stderr += chunk; });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearInterval(poll);
      const seconds = (performance.now() - begin) / 1000;
      if (code === 0) resolve({ stdout, seconds, peak_bytes });
      else reject(new Error(`${[command, ...args].join(' ')}: ended with ${signal ?? code}\n${stderr.trim()}`));
    });
  });
}

const lastLine = (text) => JSON.parse(text.trim().split('\n').at(-1));

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// What relaxc makes of a model with the backend.
const artifact = () => join(scratch, 'backend.so');

const dimArguments = (dims) => dims.flatMap((dim) => ['--dim', dim]);

async function measureCompile(model, scratch) {
  if (options.backend) await run(options.relaxc, ['compile', model, '--backend', options.backend, '-o', artifact()]);
  const { seconds, peak_bytes } = await run(options.relaxc, ['compile', model, '-o', join(scratch, 'model.so')]);
  return { compile_s: seconds, compile_peak_mb: peak_bytes / 1e6, model_mb: statSync(model).size / 1e6 };
}

async function measureAll(model, dims, threads) {
  const ours = [];
  const theirs = [];
  const backend = [];
  let onnxruntime = '';
  for (let round = 0; round < rounds; ++round) {
    const common = [model, ...dimArguments(dims), '--threads', String(threads)];
    ours.push(lastLine((await run(options.relaxc, ['bench', ...common, '--json', '-'])).stdout).median_ms);
    if (options.backend) {
      const bench = ['bench', artifact(), ...common.slice(1), '--json', '-'];
      backend.push(lastLine((await run(options.relaxc, bench, { OMP_NUM_THREADS: String(threads) })).stdout).median_ms);
    }
    const peer = lastLine((await run(process.execPath, [kOrtScript, ...common])).stdout);
    theirs.push(peer.median_ms);
    onnxruntime = peer.onnxruntime;
  }
  const ours_ms = median(ours);
  const ort_ms = median(theirs);
  const ratio = ours_ms / ort_ms;
  const backend_ms = options.backend ? median(backend) : null;
  return {
    threads, ours_ms, backend_ms, ort_ms, ratio, ours_rounds_ms: ours, backend_rounds_ms: backend,
    ort_rounds_ms: theirs, onnxruntime,
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

// One line of the table: names to the left, numbers to the right.
function line(cell) {
  const cells = kColumns.map((column) => String(cell(column)));
  return cells.map((text, i) => (i ? text.padStart(kColumns[i][1]) : text.padEnd(kColumns[i][1]))).join(' ');
}

const scratch = mkdtempSync(join(tmpdir(), 'relaxc-bench-'));
const results = [];
let failures = 0;
try {
  console.log(line((column) => column[0]));
  for (const { name, dims, label } of measurements()) {
    const model = join(options.models, name, 'model.onnx');
    try {
      if (!existsSync(model)) throw new Error(`${model}: not there; ./dev ${options.trees ? 'bench trees' : 'models'} makes it`);
      const compile = await measureCompile(model, scratch);
      for (const threads of kThreads) {
        const row = { model: label, dims, ...await measureAll(model, dims, threads), ...compile };
        results.push(row);
        console.log(line((column) => column[2](row)));
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
