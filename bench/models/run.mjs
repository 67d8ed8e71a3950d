// ./dev bench models: relaxc beside ONNX Runtime on exported networks, both measured in this one run, and relaxc with a
// backend beside the two where one is given.
//
// usage: node run.mjs --relaxc BINARY --ort BINARY --models DIR [--networks all|NAME,...] [--twins static,dynamic]
//                     [--batch 1,4] [--threads 1,2] [--rounds N] [--backend LIBRARY] [--json FILE] [--check]
//        node run.mjs --relaxc BINARY --ort BINARY --models DIR --trees [--threads 1,2] [--rounds N] [--json FILE]
//        node run.mjs --from FILE.json --plot FILE.svg [--twins static,dynamic] [--threads 1,2]
//
// --plot: draws the ratios of the networks (plot.mjs), those of this run or, with --from, of an earlier run's --json.
// --trees: the forests of bench/trees/export.py, at three batch sizes each. --check: measures nothing; compares results
// with torch's at the sizes that were exported (those of quantized networks in comparison with ONNX Runtime's), and
// those on one thread with those on two.
//
// Machines drift, so they take turns, several rounds of them, and the table shows medians over the rounds, the worst
// last. Every round is a fresh process, of the artifact; compile seconds and memory are of one `relaxc compile`, the
// limit is that of one `relaxc bench --profile`.
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { geometricMean, inTurn, lastLine, line, onnxRuntime, ours, run } from '../ort/measure.mjs';
import { svgOf } from './plot.mjs';

const kForests = ['boosted', 'boosted_classes', 'xgboost', 'leafwise', 'forest', 'forest_classes'];
const kForestBatches = [1, 100, 10000];
// The errors of quantized networks, relative to the norm of the float model's result: at most so many times that of
// ONNX Runtime, and so much.
const kMoreError = 1.25;
const kMostError = 0.5;
const kAnyDifference = ['--rtol', '0', '--atol', '1e30'];
const kTolerance = ['--rtol', '1e-3', '--atol', '1e-3'];
const kHere = dirname(fileURLToPath(import.meta.url));

const { values: options } = parseArgs({
  options: {
    relaxc: { type: 'string' },
    ort: { type: 'string' },
    models: { type: 'string' },
    networks: { type: 'string', default: 'all' },
    twins: { type: 'string', default: 'static,dynamic' },
    batch: { type: 'string', default: '1' },
    threads: { type: 'string', default: '1,2' },
    trees: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    backend: { type: 'string' },
    json: { type: 'string' },
    plot: { type: 'string' },
    from: { type: 'string' },
    rounds: { type: 'string', default: '3' },
  },
});
const numbers = (text) => text.split(',').map(Number);
const rounds = Number(options.rounds);
const threadCounts = numbers(options.threads);
const batches = numbers(options.batch);
const isCount = (number) => Number.isInteger(number) && number > 0;

// Writes the picture of what was measured.
function plot(measured) {
  writeFileSync(options.plot, svgOf(measured, { threads: threadCounts, twins: options.twins.split(',') }));
}

function fail(message, code) {
  console.error(`run.mjs: error: ${message}`);
  process.exit(code);
}

if (options.from) {
  if (!options.plot) fail('--from draws an earlier run: expected --plot FILE.svg, too', 2);
  try {
    const date = statSync(options.from).mtime.toISOString().slice(0, 10); // of files that do not have one
    plot({ date, ...JSON.parse(readFileSync(options.from, 'utf8')) });
  } catch (error) {
    fail(`${options.from}: ${error.message}`, 1);
  }
  process.exit(0);
}
if (!options.relaxc || !options.ort || !options.models || ![rounds, ...threadCounts, ...batches].every(isCount)) {
  fail('expected --relaxc, --ort, --models, and numbers above 0 for --rounds, --threads and --batch', 2);
}

// Returns what is measured: { label, file, sizes, dims: those that are symbolic, sets }.
function* forests() {
  for (const name of kForests) {
    // XGBoost need not be installed.
    if (name === 'xgboost' && !existsSync(join(options.models, name))) continue;
    for (const batch of kForestBatches) {
      const file = join(options.models, name, 'model.onnx');
      yield { label: `${name}/${batch}`, file, sizes: { batch }, dims: { batch }, sets: [] };
    }
  }
}

async function made(script, args) {
  return lastLine((await run('/usr/bin/python3', [join(kHere, script), options.models, ...args])).stdout);
}

// Returns the twins of a network, which are made now if they are not there.
async function twins(name, floats) {
  const isQuantized = !floats.includes(name);
  const common = ['--twins', options.twins, '--new', '--json'];
  const base = floats.filter((float) => name.startsWith(float)).sort((a, b) => b.length - a.length)[0];
  const rows = await made('export.py', [base ?? name, ...common, '--batch', isQuantized ? '1' : options.batch]);
  if (!isQuantized) return rows;
  return (await made('quantize.py', [name, ...common])).map((row) => ({ ...row, isQuantized }));
}

async function* networks() {
  const floats = await made('export.py', ['--list']);
  const isAll = options.networks === 'all';
  const names = isAll ? [...floats, ...await made('quantize.py', ['--list'])] : options.networks.split(',');
  for (const name of names) {
    const rows = await twins(name, floats).catch((error) => [{ error }]);
    for (const { twin, sizes, file, sets, isQuantized, error } of rows) {
      const isSized = twin === 'dynamic' && sizes.batch && !options.check;
      for (const size of isSized ? batches.map((batch) => ({ ...sizes, batch })) : [sizes]) {
        const label = [name, twin === 'dynamic' ? '_dyn' : '', size?.batch > 1 ? `/${size.batch}` : ''].join('');
        yield { label, file, sizes: size, dims: twin === 'dynamic' ? size : {}, sets, isQuantized, error };
      }
    }
  }
}

const scratch = mkdtempSync(join(tmpdir(), 'relaxc-bench-'));
const artifact = join(scratch, 'model.so');
const withBackend = join(scratch, 'backend.so');

async function compile(model) {
  if (options.backend) await run(options.relaxc, ['compile', model, '--backend', options.backend, '-o', withBackend]);
  const { seconds, peak_bytes } = await run(options.relaxc, ['compile', model, '-o', artifact]);
  const [model_bytes, artifact_bytes] = [model, artifact].map((file) => statSync(file).size);
  return {
    compile_s: seconds, compile_peak_mb: peak_bytes / 1e6, model_mb: model_bytes / 1e6,
    artifact_mb: artifact_bytes / 1e6,
  };
}

async function measure(model, symbolic, threads) {
  const dims = Object.entries(symbolic).map(([name, size]) => `${name}=${size}`);
  const openmp = { OMP_NUM_THREADS: String(threads) };
  const sides = {
    ours: ours(options.relaxc, artifact, dims, threads),
    ...(options.backend ? { backend: ours(options.relaxc, withBackend, dims, threads, openmp) } : {}),
    ort: onnxRuntime(options.ort, model, dims, threads),
  };
  const results = await inTurn(sides, rounds);
  const times = Object.entries(results).flatMap(([side, { median_ms, rounds_ms }]) => [
    [`${side}_ms`, median_ms], [`${side}_rounds_ms`, rounds_ms]]);
  const { figures } = results.ort;
  const profiling = ours(options.relaxc, model, dims, threads, {}, ['--profile', '--runs', '3']);
  const { profile } = lastLine((await run(profiling.command, profiling.args)).stdout);
  return {
    threads, ...Object.fromEntries(times), limit_ms: profile.limit_ms, profile, ratio: results.ours.median_ms / results.ort.median_ms,
    load_ms: results.ours.figures.compile_s * 1000, ort_load_ms: figures.load_s * 1000,
    peak_mb: results.ours.peak_bytes / 1e6, ort_peak_mb: results.ort.peak_bytes / 1e6,
    ort_outputs_bound: figures.bound, onnxruntime: figures.onnxruntime,
  };
}

const kColumns = [
  ['network', 28, (row) => row.network],
  ['threads', 7, (row) => row.threads],
  ['ours_ms', 9, (row) => row.ours_ms.toFixed(3)],
  ...(options.backend ? [['backend_ms', 10, (row) => row.backend_ms.toFixed(3)]] : []),
  ['ort_ms', 9, (row) => row.ort_ms.toFixed(3)],
  ['ratio', 6, (row) => row.ratio.toFixed(2)],
  ['limit_ms', 8, (row) => row.limit_ms.toFixed(3)],
  ['share', 6, (row) => `${(100 * row.limit_ms / row.ours_ms).toFixed(0)}%`],
  ['load_ms', 7, (row) => row.load_ms.toFixed(0)],
  ['ort_load_ms', 11, (row) => row.ort_load_ms.toFixed(0)],
  ['compile_s', 9, (row) => row.compile_s.toFixed(2)],
  ['compile_mb', 10, (row) => row.compile_peak_mb.toFixed(0)],
  ['peak_mb', 7, (row) => row.peak_mb.toFixed(0)],
  ['ort_peak_mb', 11, (row) => row.ort_peak_mb.toFixed(0)],
  ['model_mb', 8, (row) => row.model_mb.toFixed(1)],
  ['size', 6, (row) => (row.artifact_mb / row.model_mb).toFixed(2)],
];

const results = [];

// Return the float32 numbers in a file of NumPy, and the last ones of a TensorProto without a name, which ends with
// them.
const floatsIn = (bytes) => new Float32Array(new Uint8Array(bytes).buffer);
function floatsOfNumpy(path) {
  const bytes = readFileSync(path);
  const begin = 10 + bytes.readUInt16LE(8);
  if (!bytes.toString('latin1', 0, begin).includes("'<f4'")) throw new Error(`${path} does not hold float32`);
  return floatsIn(bytes.subarray(begin));
}
const floatsOfTensor = (path, count) => floatsIn(readFileSync(path).subarray(-4 * count));

async function measureNetwork({ label, file, sizes, dims }) {
  const compiled = await compile(file);
  for (const threads of threadCounts) {
    const row = { network: label, sizes, ...await measure(file, dims, threads), ...compiled };
    results.push(row);
    console.error(line(kColumns, (column) => column[2](row)));
  }
}

// Throws when results of the quantized model are farther from those of the float model than ONNX Runtime's. The two
// cannot be compared with each other: a value at the border of two steps may be rounded to either, which moves others
// over theirs, so that after some layers the difference is about as large as the error of quantization.
async function checkQuantized(file, set, ours) {
  const theirs = join(scratch, 'outputs_ort');
  const { command, args } = onnxRuntime(options.ort, file, [], 1, ['--test-data', set, '--results', theirs]);
  await run(command, args);
  for (const name of readdirSync(theirs)) {
    const [actual, others] = [ours, theirs].map((folder) => floatsOfNumpy(join(folder, name)));
    const float = floatsOfTensor(join(set, name.replace('.npy', '.pb')), actual.length);
    const norm = (value) => Math.sqrt(float.reduce((sum, x, i) => sum + value(x, i) ** 2, 0));
    const [error, allowed] = [actual, others].map((values) => norm((x, i) => values[i] - x) / norm((x) => x));
    const text = `${set}: ${name}: error ${error.toFixed(4)} relative to float32, ONNX Runtime's ${allowed.toFixed(4)}`;
    if (!(error <= Math.min(kMoreError * allowed, kMostError))) throw new Error(text);
    if (allowed > kMostError) console.error(`${text}, which is wrong`);
  }
  rmSync(theirs, { recursive: true });
}

// Throws when a result is not torch's (of quantized networks ONNX Runtime's), or differs in one bit between one thread
// and two.
async function checkNetwork({ label, file, sets, isQuantized }) {
  if (!sets.length) return;
  await compile(file);
  for (const set of sets) {
    const outputs = [1, 2].map((threads) => join(scratch, `outputs_${threads}`));
    for (const [i, folder] of outputs.entries()) {
      mkdirSync(folder, { recursive: true });
      const tolerance = isQuantized ? kAnyDifference : kTolerance;
      const args = ['run', artifact, '--test-data', set, ...tolerance, '--threads', String(i + 1)];
      await run(options.relaxc, [...args, '--output-dir', folder]);
    }
    for (const name of readdirSync(outputs[0])) {
      const [one, two] = outputs.map((folder) => readFileSync(join(folder, name)));
      if (!one.equals(two)) throw new Error(`${set}: ${name} differs between 1 thread and 2`);
    }
    if (isQuantized) await checkQuantized(file, set, outputs[0]);
    for (const folder of outputs) rmSync(folder, { recursive: true });
  }
  results.push({ network: label, sets: sets.length });
  const sizes = `${sets.length} ${sets.length > 1 ? 'sizes' : 'size'}`;
  console.log(`${label}: right at ${sizes}, the same bits on 1 thread and 2`);
}

function printTable() {
  console.log(line(kColumns, (column) => column[0]));
  const sorted = [...results].sort((a, b) => a.ratio - b.ratio);
  for (const row of sorted) console.log(line(kColumns, (column) => column[2](row)));
  for (const threads of threadCounts) {
    const ratios = results.filter((row) => row.threads === threads).map((row) => 1 / row.ratio);
    const mean = geometricMean(ratios).toFixed(2);
    console.log(`geometric mean of ONNX Runtime's time / ours over ${ratios.length}, threads ${threads}: ${mean}`);
  }
}

// Where the kernel tells: the processors that share the first one's last cache, and those of its core.
function placement() {
  const read = (file) => {
    try {
      return readFileSync(`/sys/devices/system/cpu/cpu0/${file}`, 'utf8').trim();
    } catch {
      return null;
    }
  };
  return {
    last_cache_shared_by: read('cache/index3/shared_cpu_list'), core_shared_by: read('topology/thread_siblings_list'),
  };
}

let failures = 0;
try {
  for await (const row of options.trees ? forests() : networks()) {
    try {
      if (row.error) throw row.error;
      const maker = options.trees ? 'bench trees' : 'models';
      if (!existsSync(row.file)) throw new Error(`${row.file} is not there; ./dev ${maker} makes it`);
      await (options.check ? checkNetwork(row) : measureNetwork(row));
    } catch (error) {
      // One model that fails must not hide the numbers of the others.
      console.error(`${row.label}: ${error.message}`);
      ++failures;
    }
  }
  if (!options.check && results.length) printTable();
} finally {
  rmSync(scratch, { recursive: true });
}
const machine = { cpu: cpus()[0].model, cores: cpus().length, ...placement() };
const measured = { machine, date: new Date().toISOString().slice(0, 10), rounds, failures, results };
if (options.json) writeFileSync(options.json, JSON.stringify(measured, null, 2) + '\n');
if (options.plot && !options.check && results.length) plot(measured);
process.exit(failures ? 1 : 0);
