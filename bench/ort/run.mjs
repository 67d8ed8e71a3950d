// Times one model in ONNX Runtime and prints one line of JSON.
//
// usage: node run.mjs model.onnx [--threads N] [--dim NAME=VALUE]... [--shape INPUT=1x3x224x224]... [--runs R]
//                    [--seconds S]
//
// Inputs are random: floats in -1..1, integers 0 or 1 (valid as token ids and as masks). Without --runs it runs for S
// (2) seconds, and at least ten times. Times are those of session.run as a Node program sees it. Outputs are bound to the
// tensors of the first run, unless one of them has another shape in the second: else fresh pages would be measured.
import { parseArgs } from 'node:util';
import ort from 'onnxruntime-node';

const kWarmups = 3;
const kLeastRuns = 10;

const arrays = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array, int32: Int32Array,
  uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
};

function usageError(message) {
  console.error(`run.mjs: error: ${message}`);
  process.exit(2);
}

function pairs(texts, option) {
  return new Map((texts ?? []).map((text) => {
    const at = text.lastIndexOf('=');
    if (at < 1) usageError(`--${option} ${text}: expected NAME=VALUE`);
    return [text.slice(0, at), text.slice(at + 1)];
  }));
}

function wholeNumber(text, what) {
  if (!/^[0-9]+$/.test(text)) usageError(`${what} is ${text}, expected a whole number`);
  return Number(text);
}

function makeInput(metadata, dims, shapes) {
  const given = shapes.get(metadata.name)?.split('x');
  const shape = (given ?? metadata.shape).map((dim) => {
    if (typeof dim === 'number') return dim;
    if (given) return wholeNumber(dim, `a dim of ${metadata.name}`);
    if (!dims.has(dim)) usageError(`input ${metadata.name} has the symbolic dim ${dim}: give --dim ${dim}=VALUE`);
    return wholeNumber(dims.get(dim), `--dim ${dim}`);
  });
  const Array = arrays[metadata.type];
  if (!Array) usageError(`input ${metadata.name} has type ${metadata.type}, which this script does not make`);
  const data = new Array(shape.reduce((product, dim) => product * dim, 1));
  // A linear congruential generator: the same inputs in every run and round.
  let state = 1;
  for (let i = 0; i < data.length; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    if (metadata.type.startsWith('float')) data[i] = state / 2 ** 31 - 1;
    else if (metadata.type.endsWith('int64')) data[i] = BigInt(state >>> 31);
    else data[i] = state >>> 31;
  }
  return new ort.Tensor(metadata.type, data, shape);
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    threads: { type: 'string', default: '1' },
    runs: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    dim: { type: 'string', multiple: true },
    shape: { type: 'string', multiple: true },
  },
});
if (positionals.length !== 1) usageError('expected one model');
const threads = wholeNumber(options.threads, '--threads');

const start_bytes = process.memoryUsage.rss(); // of Node, with the library loaded
const beforeLoad = performance.now();
const session = await ort.InferenceSession.create(positionals[0], {
  executionProviders: ['cpu'],
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
  intraOpNumThreads: threads,
  interOpNumThreads: 1,
});
const load_s = (performance.now() - beforeLoad) / 1000;

const dims = pairs(options.dim, 'dim');
const shapes = pairs(options.shape, 'shape');
const feeds = Object.fromEntries(session.inputMetadata.map((input) => [input.name, makeInput(input, dims, shapes)]));

// Returns the tensors to bind, by output; none where sizes depend on values or an output is not a tensor of numbers.
function boundOutputs(first, second) {
  const bindable = (name) => first[name] instanceof ort.Tensor && first[name].type !== 'string' &&
    first[name].dims.join() === second[name].dims.join();
  return Object.keys(first).every(bindable) ? first : null;
}

const bound = boundOutputs(await session.run(feeds), await session.run(feeds));
const runOnce = () => (bound ? session.run(feeds, bound) : session.run(feeds));
for (let i = 0; i < kWarmups; ++i) await runOnce();
const leastRuns = options.runs ? wholeNumber(options.runs, '--runs') : kLeastRuns;
const leastMs = options.runs ? 0 : 1000 * Number(options.seconds);
if (leastRuns < 1) usageError('--runs is 0, expected at least 1');
const times = [];
for (let total = 0; times.length < leastRuns || total < leastMs;) {
  const before = performance.now();
  await runOnce();
  times.push(performance.now() - before);
  total += times.at(-1);
}
times.sort((a, b) => a - b);
const middle = times.length >> 1;
const median_ms = times.length % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
console.log(JSON.stringify({
  median_ms, min_ms: times[0], max_ms: times.at(-1), runs: times.length, load_s, threads, bound: bound !== null,
  start_bytes,
  onnxruntime: ort.env.versions.node,
}));
process.exit(0); // thread pools need no farewell
