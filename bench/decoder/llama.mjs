// Times a decoder in llama.cpp, through node-llama-cpp: a prompt, and steps behind it. Prints a line of JSON:
// milliseconds of the prompt, and the median of the steps. Usage: node llama.mjs MODEL.gguf THREADS PAST STEPS
// node-llama-cpp is looked for in the folder of MODULES (npm install --ignore-scripts node-llama-cpp).
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const [model_path, threads, past, steps] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const require = createRequire(path.join(process.env.MODULES ?? process.cwd(), "index.js"));
const { getLlama } = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);
const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: "error" });
const model = await llama.loadModel({ modelPath: path.resolve(model_path) });
const context = await model.createContext({ contextSize: 2048, batchSize: 512, threads });
const sequence = context.getSequence();
const tokens = Array.from({ length: past }, (_, i) => 300 + ((i * 37) % 200));
const times = [];
let start = performance.now();
for await (const _ of sequence.evaluate(tokens, { temperature: 0, yieldEogToken: true })) {
  const now = performance.now();
  times.push(now - start);
  if (times.length > steps) break;
  start = now;
}
const sorted = times.slice(1).sort((a, b) => a - b);
console.log(JSON.stringify({ prompt_ms: times[0], step_ms: sorted[sorted.length >> 1], least_step_ms: sorted[0] }));
await llama.dispose();
