"""Modules, compilation, its errors and its progress."""
import inspect
import io
import pathlib
import subprocess
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np
import relaxc
from relaxc._compile import Options
from relaxc.progress import Line, Progress
from support import ADD, DIGITS, ROOT, module, needs


class Modules(unittest.TestCase):
    def test_text_after_passes(self):
        added = relaxc.Module.from_text(module('x: R.Tensor((2,), "float32")', 'R.Tensor((2,), "float32")',
                                               'R.multiply(x, R.const(1.0, "float32"))'))
        self.assertIn("R.multiply", added.text())
        self.assertNotIn("R.multiply", added.text(passes="simplify"))
        with self.assertRaises(TypeError):
            added.text(pases="simplify")
        self.assertEqual(str(added), added.text())
        self.assertEqual(relaxc.Module.from_text(added.text()).text(), added.text())

    def test_sources(self):
        data = DIGITS.read_bytes()
        x = np.load(DIGITS.parent / "samples.npy")
        expected = relaxc.compile(str(DIGITS))(x)
        for source in (DIGITS, data, relaxc.Module.from_onnx(DIGITS), relaxc.Module.from_onnx(data)):
            np.testing.assert_array_equal(relaxc.compile(source, cache="")(x), expected)
        self.assertIn("R.nn.conv2d", relaxc.Module.from_onnx(DIGITS).text())

    @needs("onnx")
    def test_a_model_of_the_package_onnx(self):
        import onnx
        model = relaxc.compile(onnx.load(str(DIGITS)), dims={"batch": 1})
        self.assertEqual(model(np.zeros((1, 1, 8, 8), np.float32)).shape, (1, 10))

    def test_errors_have_places(self):
        with self.assertRaises(relaxc.CompileError) as caught:
            relaxc.Module.from_text(ADD.replace("R.add(x, y)", "R.add(x, zz)"), name="mine.py")
        (place,) = caught.exception.errors
        self.assertEqual((place.file, place.line), ("mine.py", 7))
        self.assertIn("zz", place.message)
        self.assertIn("mine.py:7", str(caught.exception))
        with self.assertRaises(relaxc.CompileError) as caught:
            relaxc.compile(ROOT / "tests/hostile/models/matmul_mismatch.onnx")
        place = caught.exception.errors[0]
        self.assertTrue(place.node or place.op_type)
        self.assertEqual(place.op_type, "MatMul")
        with self.assertRaises(relaxc.CompileError):
            relaxc.compile("none.onnx")
        for wrong in ({"target": "nosuch"}, {"passes": "nosuch"}, {"function": "nosuch"}, {"precision": "nosuch"},
                      {"dims": {"nosuch": 1}}, {"dim_ranges": {"nosuch": (1, 2)}}, {"types": {"nosuch": "float32[2]"}}):
            with self.assertRaisesRegex(relaxc.UsageError, "nosuch"):
                relaxc.compile(DIGITS, **wrong)
        for wrong in ({"opt_level": 7}, {"threads": 5000}, {"threads": "two"}, {"memory_limit": 0.5}, {"jobs": "a"},
                      {"opt_level": "1"}, {"winograd_error": "1"}, {"winograd_error": float("nan")}, {"winograd_error": float("inf")},
                      {"winograd_error": -1}, {"log": 3}, {"progress": 3}, {"types": ["float32[2]"]}, {"types": {"x": 2}}):
            with self.assertRaisesRegex(relaxc.UsageError, next(iter(wrong))):
                relaxc.compile(DIGITS, **wrong)
        with self.assertRaisesRegex(relaxc.UsageError, "dim 'batch' is '4', expected a whole number"):
            relaxc.compile(DIGITS, dims={"batch": "4"})
        with self.assertRaisesRegex(relaxc.UsageError, "the model is Network, expected a path, .*torch.onnx.export"):
            relaxc.compile(type("Network", (), {"state_dict": dict})())
        with self.assertRaisesRegex(relaxc.CompileError, "^the model"):
            relaxc.compile(b"no model")
        with self.assertRaisesRegex(relaxc.UsageError, "zero character"):
            relaxc.compile(f"{DIGITS}\0b")
        for text in ("a(", "def main(x:\n  return", "x = (1,"):
            with self.assertRaisesRegex(relaxc.CompileError, "has no module|never closed"):
                relaxc.Module.from_text(text)

    def test_each_option_is_taken_and_passed_on(self):
        options = inspect.signature(Options).parameters
        of_text, of_link = {"inline", "constants"}, {"link", "host_symbols"}
        some = relaxc.Module.from_text(ADD)
        for function, arguments, others in ((relaxc.compile, (ADD,), of_text), (some.compile, (), of_text),
                                            (relaxc.compile_to_file, (ADD, "model.so"), of_text), (some.text, (), of_link)):
            taken = inspect.signature(function).parameters
            given = {name: object() for name in options if name not in others}
            self.assertFalse(given.keys() - taken.keys(), function)
            stated = {name: (taken[name].default, taken[name].annotation) for name in given if name != "passes"}
            self.assertEqual(stated, {name: (options[name].default, options[name].annotation) for name in stated}, function)
            with mock.patch("relaxc.module.Options", side_effect=InterruptedError) as heard:
                with self.assertRaises(InterruptedError):
                    function(*arguments, **given)
            self.assertEqual(heard.call_args.kwargs, given, function)

    def test_constants_of_a_text(self):
        digits = relaxc.Module.from_onnx(DIGITS)
        self.assertIn("this text cannot be read back", digits.text())
        self.assertIn('metadata["relax.expr.Constant"][0]', digits.text())
        whole = digits.text(inline=10**6)
        self.assertNotIn("metadata", whole)
        x = np.load(DIGITS.parent / "samples.npy")[:3]
        with tempfile.TemporaryDirectory() as folder:
            file, constants = pathlib.Path(folder, "digits.py"), pathlib.Path(folder, "digits.safetensors")
            file.write_text(digits.text("simplify", constants=constants))
            np.testing.assert_array_equal(relaxc.compile(file)(x), relaxc.compile(DIGITS)(x))
            with self.assertRaises(relaxc.WriteError):
                digits.text(constants=pathlib.Path(folder, "none", "digits.safetensors"))
        small = relaxc.Module.from_text(module('x: R.Tensor((2,), "float32")', 'R.Tensor((2,), "float32")',
                                               'R.multiply(x, R.const(2.5, "float32"))'))
        self.assertIn("R.const(2.5", small.text())
        self.assertNotIn("R.const(2.5", small.text(inline=0))
        with self.assertRaisesRegex(relaxc.UsageError, "inline is -1"):
            small.text(inline=-1)

    def test_types_and_links(self):
        text = ("@R.function\ndef main(x: R.Tensor(ndim=1)):\n"
                "    return R.call_dps_packed(\"of_c\", (x,), out_sinfo=R.Tensor((2,), \"float64\"))\n")
        with tempfile.TemporaryDirectory() as folder:
            source, linked, artifact = (str(pathlib.Path(folder, name)) for name in ("k.c", "k.o", "k.so"))
            pathlib.Path(source).write_text(
                "int nowhere(void); int of_c(double*** args) { args[0][1][1] = args[0][0][0] * 3;\n"
                "#ifdef MORE\n  nowhere();\n#endif\n  return 0; }\n")
            subprocess.run(["cc", "-c", "-fPIC", source, "-o", linked], check=True)
            stated = relaxc.Module.from_text(text)
            options = {"types": {"x": "float64[2]"}, "link": linked}
            self.assertEqual(stated.compile(**options)(np.array([2.0, 1.0]))[1], 6.0)
            subprocess.run(["cc", "-c", "-fPIC", "-DMORE", source, "-o", linked], check=True)
            with self.assertRaisesRegex(relaxc.CompileError, r"needs 'nowhere'.*\(link=\[FILE\]\).*host_symbols=nowhere"):
                stated.compile(**options)
            relaxc.compile_to_file(stated, artifact, host_symbols=["nowhere"], **options)
            with self.assertRaisesRegex(relaxc.CompileError, "needs 'nowhere', which neither the artifact"):
                relaxc.load(artifact)
        with self.assertWarnsRegex(relaxc.RelaxcWarning, r'types=\{"x": "float32\[n, 4\]"\}'):
            relaxc.Module.from_text("@R.function\ndef main(x: R.Tensor(dtype=\"float32\")):\n    return R.add(x, x)\n").compile()

    def test_kernels_and_options(self):
        model = relaxc.compile(DIGITS, kernels=ROOT / "examples/kernels/softmax.py", opt_level=1, winograd_error=0, jobs=1,
                               passes="default", cache="", threads=1)
        x = np.load(DIGITS.parent / "samples.npy")
        np.testing.assert_allclose(model(x), relaxc.compile(DIGITS)(x), rtol=1e-4, atol=1e-6)
        with self.assertRaises(relaxc.Error):
            relaxc.compile(DIGITS, kernels=["none.py"])

    def test_the_level_of_machine_code(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/{level}.so" for level in (0, 2, None)]
            for level, file in zip((0, 2, None), files):
                relaxc.compile_to_file(DIGITS, file, opt_level=level)
            unoptimized, stated, default = (pathlib.Path(file).read_bytes() for file in files)
        self.assertEqual(stated, default)
        self.assertNotEqual(unoptimized, default)

    def test_files_that_cannot_be_written(self):
        model = relaxc.compile(DIGITS)
        for write in (model.save, lambda path: relaxc.compile_to_file(DIGITS, path)):
            for path in ("/proc/none/model.so", "/"):
                with self.assertRaisesRegex(OSError, "cannot write '/"):
                    write(path)

    def test_messages_name_options_of_python(self):
        text = module('x: R.Tensor((2,), "float32")', "", 'R.call_dps_packed("nowhere", (x,), R.Tensor((2,), "float32"))')
        with self.assertRaisesRegex(relaxc.Error, r"kernels=\[LIBRARY.so\]") as caught:
            relaxc.Module.from_text(text).compile()(np.zeros(2, np.float32))
        self.assertNotIn("--kernels", str(caught.exception))

    def test_precision(self):
        x = np.load(DIGITS.parent / "samples.npy")
        for precision in "bf16", "fp16", "mixed":
            np.testing.assert_allclose(relaxc.compile(DIGITS, precision=precision)(x), relaxc.compile(DIGITS)(x), atol=0.1)
        with self.assertRaisesRegex(relaxc.Error, "there is no precision 'half'"):
            relaxc.compile(DIGITS, precision="half")

    def test_ranges_of_dims(self):
        model = relaxc.compile(DIGITS, dim_ranges={"batch": (1, 8)})
        self.assertEqual(model.inputs[0].ranges[0], (1, 8))
        self.assertEqual(model.inputs[0].ranges[1], (model.inputs[0].shape[1],) * 2)
        x = np.load(DIGITS.parent / "samples.npy")
        self.assertEqual(len(model(x[:8])), 8)
        with self.assertRaisesRegex(relaxc.Error, "dim 'batch' is 9, and the program takes 1 to 8"):
            model(np.resize(x, (9, *x.shape[1:])))
        self.assertEqual(relaxc.compile(DIGITS, dim_ranges={"batch": (2, None)}).inputs[0].ranges[0], (2, None))
        for wrong in [(3, 2), (-1, 2), 5, (1, 2, 3), ("a", 2)]:
            with self.assertRaises(relaxc.UsageError):
                relaxc.compile(DIGITS, dim_ranges={"batch": wrong})

    def test_caches_in_place(self):
        text = """
@R.function
def main(x: R.Tensor(("length", 2), "float32"), past: R.Tensor(("tokens", 2), "float32")):
    R.func_attr({"input_names": ["x", "past_0"], "output_names": ["total", "present_0"]})
    with R.dataflow():
        present = R.concat((past, x), axis=0)
        total = R.sum(present, axis=[0])
        R.output(total, present)
    return (total, present)
"""
        self.assertEqual(relaxc.compile(relaxc.Module.from_text(text)).caches, ())
        model = relaxc.compile(relaxc.Module.from_text(text), in_place=True)
        (cache,) = model.caches
        self.assertEqual((cache.input, cache.output, cache.length, cache.axis), ("past_0", "present_0", "tokens", 0))
        memory = np.zeros((3, 2), np.float32)
        for past in range(3):
            results = model.run({"x": np.float32([[3, 4]]), "past_0": memory, "tokens": past})
            self.assertEqual(results["total"].tolist(), [3 * (past + 1), 4 * (past + 1)])
            self.assertEqual(results["present_0"].ctypes.data, memory.ctypes.data)
        self.assertEqual(memory.tolist(), [[3, 4]] * 3)
        with self.assertRaises(relaxc.RunError):
            model.run({"x": np.float32([[3, 4]]), "past_0": memory, "tokens": 3})
        fixed = memory.copy()
        fixed.setflags(write=False)
        wide = np.zeros((3, 4), np.float32)
        wrong = ((fixed, "read-only"), (wide[:, ::2], "not dense"), (np.asfortranarray(memory), "not dense"),
                 (memory.astype(">f4"), "byte order"), (memory.tolist(), "got list"),
                 (np.frombuffer(bytes(24), np.float32).reshape(3, 2), "read-only"))
        for past, words in wrong:
            with self.assertRaisesRegex(relaxc.UsageError, f"'past_0'.*{words}"):
                model.run({"x": np.float32([[3, 4]]), "past_0": past, "tokens": 0})
        self.assertEqual(wide.tolist(), np.zeros((3, 4)).tolist())
        with self.assertRaisesRegex(relaxc.CompileError, "no cache to extend in place"):
            relaxc.compile(DIGITS, in_place=True)

    def test_the_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            heard = []
            for _ in range(2):
                relaxc.compile(DIGITS, cache=folder, log=heard.append)
            self.assertEqual(len(list(pathlib.Path(folder).rglob("*.so"))), 1)

    def test_a_cache_that_cannot_be_used_gets_one_warning_at_the_call(self):
        with warnings.catch_warnings(record=True) as caught, tempfile.NamedTemporaryFile() as file:
            warnings.simplefilter("always")
            relaxc.compile(DIGITS, cache=f"{file.name}/below")
        (warning,) = caught
        self.assertIs(warning.category, relaxc.RelaxcWarning)
        self.assertEqual(warning.filename, __file__)
        self.assertRegex(str(warning.message), "^nothing more is kept in the cache")

    def test_progress(self):
        seen = []
        relaxc.compile(DIGITS, cache="", progress=seen.append)
        self.assertEqual([stage for stage in ("import", "passes", "programs", "kernels")
                          if stage in {now.stage for now in seen}], ["import", "passes", "programs", "kernels"])
        self.assertEqual(seen[-1].done, seen[-1].total)

        def fail(now):
            raise KeyError(now.stage)

        with self.assertRaises(KeyError):
            relaxc.compile(DIGITS, cache="", progress=fail)

    def test_the_line_of_progress(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        terminal = Terminal()
        line = Line(terminal)
        line(Progress("kernels", "conv" * 100, 3, 3, 2.5))
        line(Progress("kernels", "", 1, 3, 0))  # too soon
        line.close()
        shown = terminal.getvalue()
        self.assertTrue(shown.startswith("\rkernels 3/3: conv"))
        self.assertIn("... (2 s)", shown)
        self.assertNotIn("1/3", shown)
        self.assertNotIn("\n", shown)
        self.assertTrue(shown.endswith(" \r"))
        notebook = type("Stream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
        kept = Line(notebook)
        kept(Progress("kernels", "", 3, 3, 0))
        kept.close()
        self.assertRegex(notebook.getvalue(), r"\rthe compiler worked for [\d.]+ s\n$")
        pipe = io.StringIO()
        quiet = Line(pipe)
        quiet(Progress("kernels", "", 3, 3, 0))
        quiet.close()
        self.assertEqual(pipe.getvalue(), "")

    def test_version(self):
        self.assertRegex(relaxc.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
