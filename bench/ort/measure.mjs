// What benchmarks beside ONNX Runtime share: processes in turn, their peak memory, medians.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const kPollMs = 5;
const kMostRuns = 100000; // the time ends them
const kSeconds = 2; // of each side in each round
const kHere = dirname(fileURLToPath(import.meta.url));

// Returns the library that is in the package onnxruntime-node.
function ortLibrary() {
  const folder = join(kHere, 'node_modules', 'onnxruntime-node', 'bin');
  const [version] = readdirSync(folder);
  return join(folder, version, process.platform, process.arch, 'libonnxruntime.so.1');
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
export function run(command, args, env = {}) {
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

export const lastLine = (text) => JSON.parse(text.trim().split('\n').at(-1));

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function geometricMean(values) {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

// The two sides of every comparison, as commands for inTurn(): relaxc with a model or an artifact, and ort_bench.cc,
// which takes the flags of `relaxc bench`. `more`: flags that say how long.
const common = (dims, threads) => [...dims.flatMap((dim) => ['--dim', dim]), '--threads', String(threads)];
const lasting = ['--seconds', String(kSeconds), '--runs', String(kMostRuns)];
export function ours(relaxc, file, dims, threads, env = {}, more = lasting) {
  return { command: relaxc, args: ['bench', file, ...common(dims, threads), ...more, '--json', '-'], env };
}
export function onnxRuntime(ortBench, model, dims, threads, more = lasting) {
  return { command: ortBench, args: [model, '--library', ortLibrary(), ...common(dims, threads), ...more] };
}

// Runs commands that print their figures as JSON, { NAME: { command, args, env } }, in turn, each in a fresh process,
// because machines drift. Returns for each { median_ms, rounds_ms, peak_bytes, figures }: the median over the rounds,
// and the figures of the last round.
export async function inTurn(sides, rounds) {
  const results = Object.fromEntries(Object.keys(sides).map((name) => [name, { rounds_ms: [], peak_bytes: 0 }]));
  for (let round = 0; round < rounds; ++round) {
    for (const [name, { command, args, env }] of Object.entries(sides)) {
      const { stdout, peak_bytes } = await run(command, args, env);
      const result = results[name];
      result.figures = lastLine(stdout);
      result.rounds_ms.push(result.figures.median_ms);
      result.peak_bytes = Math.max(result.peak_bytes, peak_bytes);
    }
  }
  for (const result of Object.values(results)) result.median_ms = median(result.rounds_ms);
  return results;
}

// Prints a table of columns [title, width, row => text]: the first to the left, the others to the right.
export function line(columns, cell) {
  const cells = columns.map((column) => String(cell(column)));
  return cells.map((text, i) => (i ? text.padStart(columns[i][1]) : text.padEnd(columns[i][1]))).join(' ');
}
