"""Many callers, cancellation, Ctrl-C."""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import relaxc
from relaxc import _interrupt
from support import ADD, DIGITS

# Products that take seconds one after the other; a function may be called 512 deep.
LONG = """
@I.ir_module
class Module:
    @R.function
    def step(x: R.Tensor((512, 512), "float32"), n: R.Tensor((), "int64")) -> R.Tensor((512, 512), "float32"):
        done = R.equal(n, R.const(0, "int64"))
        if done:
            y = x
        else:
            z = R.tanh(R.matmul(x, x))
            y = Module.step(z, R.subtract(n, R.const(1, "int64")))
        return y
    @R.function
    def main(x: R.Tensor((512, 512), "float32"), n: R.Tensor((), "int64")) -> R.Tensor((512, 512), "float32"):
        y = Module.step(x, n)
        return y
"""


class Threads(unittest.TestCase):
    def test_eight_threads_of_a_thousand_calls_with_mixed_shapes(self):
        model = relaxc.Module.from_text(ADD).compile(threads=1)
        problems = []

        def work(seed):
            random = np.random.default_rng(seed)
            arrays = [random.random(size).astype(np.float32) for size in (1, 7, 64, 1000, 30000)]
            for call in range(1000):
                x = arrays[random.integers(len(arrays))] if call % 4 else arrays[call % 3]
                if not np.array_equal(model(x, x), x + x):
                    problems.append((seed, call))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        self.assertEqual(model.memory["live"], 0)
        self.assertLess(model.memory["allocations"], 400)
        idle = model.memory["idle"]
        work(1)
        self.assertLessEqual(model.memory["idle"], idle + 2 * 120000)
        model.trim()
        self.assertEqual(model.memory["idle"], 0)
        work(2)
        self.assertEqual(problems, [])

    def test_cancel(self):
        model = relaxc.Module.from_text(LONG).compile(threads=1)
        x, caught = np.ones((512, 512), np.float32), []
        model(x, np.int64(2))

        def work():
            try:
                model(x, np.int64(500))
            except relaxc.Error as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.1)
        model.cancel()
        thread.join()
        self.assertIsInstance(caught[0], relaxc.Cancelled)
        self.assertEqual(model(x, np.int64(2)).shape, (512, 512))

    def test_a_forked_child_compiles_and_ends(self):
        script = f"""
import os, relaxc, sys
relaxc.compile({str(DIGITS)!r}, cache="")
child = os.fork()
if child == 0:
    relaxc.compile({str(DIGITS)!r}, cache="")
    sys.exit(7)  # which runs what is to be done at the end of a process
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("7\n", ""))

    def interrupted(self, script):
        """Returns the output of a script that gets SIGINT a moment after it says that it begins."""
        here = os.path.dirname(os.path.abspath(__file__))
        process = subprocess.Popen([sys.executable, "-B", "-c", script], cwd=here, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "begins\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return out + err

    def test_an_interrupt_ends_a_run(self):
        self.assertEqual(self.interrupted("""
import numpy as np, relaxc, test_threads
model = relaxc.Module.from_text(test_threads.LONG).compile(threads=1)
x = np.full((512, 512), 1e-3, np.float32)
print("begins", flush=True)
try:
    model(x, np.int64(500))
except KeyboardInterrupt:
    print("interrupted", model(x, np.int64(1)).shape)
"""), "interrupted (512, 512)\n")

    def test_an_interrupt_ends_a_compilation(self):
        seen = []

        def interrupt(now):
            if not seen:
                os.kill(os.getpid(), signal.SIGINT)
            seen.append(now)

        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with self.assertRaises(KeyboardInterrupt):
                relaxc.compile(DIGITS, cache="", progress=interrupt)
        finally:
            signal.signal(signal.SIGINT, previous)
        self.assertNotIn("kernels", {now.stage for now in seen})
        relaxc.compile(DIGITS, cache="")

    def test_calls_after_an_interrupt_are_not_cancelled(self):
        model = relaxc.Module.from_text(ADD).compile(threads=1)
        x = np.ones(4, np.float32)
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupts = 0
        try:
            for _ in range(200):
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    model(x, x)
                except KeyboardInterrupt:
                    interrupts += 1
                for _ in range(20):
                    self.assertEqual(model(x, x)[0], 2)
        finally:
            signal.signal(signal.SIGINT, previous)
        self.assertEqual(interrupts, 200)

    def test_calls_that_a_late_interrupt_cancels_are_made_again(self):
        late = []

        def act_late(_now=None):  # as the thread does when the handler has run already
            if not late:
                late.append(_interrupt._working[-1])
                _interrupt._cancelled[0] = late[0]
                late[0].cancel()

        relaxc.compile(DIGITS, cache="", progress=act_late)
        self.assertEqual(len(late), 1)
        late.clear()
        model, x = relaxc.Module.from_text(LONG).compile(threads=1), np.full((512, 512), 1e-3, np.float32)
        timer = threading.Timer(0.1, act_late)
        timer.start()
        self.assertEqual(model(x, np.int64(100)).shape, (512, 512))
        timer.join()
        self.assertEqual(len(late), 1)

    def test_interrupts_of_a_program_with_its_own_handler_do_not_cancel(self):
        model, heard = relaxc.Module.from_text(ADD).compile(threads=1), []
        x = np.ones(4, np.float32)
        previous = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100):
                model(x, x)
        finally:
            signal.signal(signal.SIGINT, previous)
        self.assertEqual(heard, [signal.SIGINT])


if __name__ == "__main__":
    unittest.main()
