"""Calls of models: arrays lent, results, names, profiles, files."""
import array
import copy
import pickle
import tempfile
import unittest
from unittest import mock

import numpy as np
import relaxc
from relaxc._tensors import Slot
from support import ADD, DIGITS, module, needs


class Lent:
    """Memory by the array interface only."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self._array = array


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.add = relaxc.Module.from_text(ADD).compile(threads=1)
        cls.x = np.arange(6, dtype=np.float32)

    def check(self, result, expected):
        self.assertIsInstance(result, np.ndarray)
        np.testing.assert_array_equal(result, expected)
        self.assertEqual(result.dtype, np.asarray(expected).dtype)

    def test_by_place_name_and_both(self):
        self.check(self.add(self.x, self.x), 2 * self.x)
        self.check(self.add(x=self.x, y=self.x), 2 * self.x)
        self.check(self.add(self.x, y=self.x), 2 * self.x)
        self.check(self.add.run({"x": self.x}, y=self.x)[self.add.outputs[0].name], 2 * self.x)

    def test_lists_and_numbers_become_the_declared_dtype(self):
        self.check(self.add([1, 2], (3.5, 4)), np.array([4.5, 6], np.float32))
        whole = relaxc.Module.from_text(module('x: R.Tensor((2,), "int8")', 'R.Tensor((2,), "int8")', "R.add(x, x)"))
        self.check(whole.compile()([1, -2]), np.array([2, -4], np.int8))
        for wrong in ([1.5, 2], [1, 300]):
            with self.assertRaises(TypeError):
                whole.compile()(wrong)

    def test_complex_numbers_are_moved(self):
        for name in ("complex64", "complex128"):
            turns = relaxc.Module.from_text(module(f'x: R.Tensor(("n", 2), "{name}")', f'R.Tensor((2, "n"), "{name}")',
                                                   "R.permute_dims(x)")).compile()
            x = np.array([[1 + 2j, -3j], [0.5, 1e-3 + 4j], [0, np.inf]], name)
            self.check(turns(x), x.T)
            self.check(turns(np.repeat(x, 2, axis=0)[::2]), x.T)
            self.check(turns(x.astype(x.dtype.newbyteorder())), x.T)
            self.check(turns([[1, 2j], [3.5, 1 - 1j]]), np.array([[1, 2j], [3.5, 1 - 1j]], name).T)
            out = np.zeros((2, 3), name)
            turns(x, out=out)
            np.testing.assert_array_equal(out, x.T)
            with self.assertRaisesRegex(relaxc.RunError, f"dtype is float64, expected {name}"):
                turns(x.real.astype(np.float64))
            if name == "complex64":
                for beyond in (1e300, -1e300j, complex(np.inf, 1e300)):
                    with self.assertRaisesRegex(relaxc.UsageError, "out of the range of complex64"):
                        turns([[beyond, 0]])

    def test_values_that_are_not_numbers_of_the_dtype_are_refused(self):
        masked = np.ma.masked_array(self.x, mask=[1, 0, 0, 0, 0, 0])
        others = ((None, "got None"), ([1, None] * 3, "None among them"), (["1", "2"], "got <U1"), (masked, "masked"),
                  ([1j, 2], "complex"), (np.array([1.0, 2.0], object), "arrays of object"), ([1e300, 0], "out of the range"))
        for other, words in others:
            with self.assertRaisesRegex(relaxc.UsageError, f"input 'y'.*{words}"):
                self.add(self.x, other)
        # Memory with a dtype of its own is not converted.
        for other in (array.array("d", [1, 2]), memoryview(np.zeros(2)), array.array("i", [1, 2])):
            with self.assertRaisesRegex(relaxc.RunError, "'y'.*float32"):
                self.add(self.x[:2], other)
        self.check(self.add(self.x[:2], array.array("f", [1, 2])), np.float32([1, 3]))
        self.check(self.add(self.x, np.ma.masked_array(self.x)), 2 * self.x)

    def test_strides_orders_and_offsets(self):
        long = np.arange(12, dtype=np.float32)
        for view in (long[::2], long[::-2], long[3:9], np.broadcast_to(np.float32(3), (6,))):
            self.check(self.add(view, self.x), view + self.x)
        raw = np.zeros(25, np.uint8)[1:].view(np.float32)  # not aligned
        self.check(self.add(raw, self.x), raw + self.x)
        self.check(self.add(self.x.astype(">f4"), self.x), 2 * self.x)
        parts = np.zeros(6, dtype=[("a", np.float32), ("b", np.int8)])  # strides of 5 bytes
        parts["a"] = self.x
        self.check(self.add(parts["a"], self.x), 2 * self.x)

    def test_read_only_and_empty(self):
        fixed = self.x.copy()
        fixed.setflags(write=False)
        self.check(self.add(fixed, fixed), 2 * self.x)
        self.check(self.add(self.x[:0], self.x[:0]), self.x[:0])
        self.check(self.add(self.x, self.x), 2 * self.x)

    def test_the_array_interface_and_subclasses(self):
        self.check(self.add(Lent(self.x), self.x.view(np.memmap)), 2 * self.x)

    def test_changing_shapes_and_dtypes(self):
        for size in (1, 5, 70000, 3, 20000, 3):
            x = np.random.rand(size).astype(np.float32)
            self.check(self.add(x, x), x + x)
            with self.assertRaisesRegex(relaxc.RunError, "'x'.*float64.*float32"):
                self.add(x.astype(np.float64), x)

    def test_results_outlive_the_model_and_stay(self):
        for size in (4, 100000):
            model = relaxc.Module.from_text(ADD).compile()
            x = np.ones(size, np.float32)
            first = model(x, x)
            second = model(x, first)
            first[0] = 7
            del model
            self.check(second, np.full(size, 3, np.float32))
            self.assertTrue(first.flags.writeable)
            self.check(pickle.loads(pickle.dumps(second)), second)

    def test_a_kept_result_keeps_no_other_memory(self):
        squares = module('x: R.Tensor(("n", 64), "float32")', 'R.Tensor(("n", 64), "float32")',
                         "R.matmul(R.matmul(x, R.permute_dims(x)), x)")
        model = relaxc.Module.from_text(squares).compile(threads=1)
        x = np.ones((500, 64), np.float32)
        kept = model(x)
        self.assertGreater(kept.nbytes, 1 << 16)
        before = model.memory
        model.trim()
        after = model.memory
        self.assertGreater(before["idle"], 0)
        self.assertEqual(after["idle"], 0)
        self.assertEqual(after["live"], kept.nbytes)
        self.check(model(x), kept)
        del kept
        model.trim()
        self.assertEqual(model.memory["live"], 0)

    def test_copies_share_the_program_and_nothing_is_pickled(self):
        model = relaxc.compile(DIGITS)
        x = np.load(DIGITS.parent / "samples.npy")[:2]
        for used in (False, True):
            if used:
                model(x)
            with self.assertRaisesRegex(TypeError, "cannot be pickled: save"):
                pickle.dumps(model)
            for copied in (copy.copy(model), copy.deepcopy(model), copy.deepcopy({"model": [model]})["model"][0]):
                np.testing.assert_array_equal(copied(x), model(x))
                del copied
        np.testing.assert_array_equal(model(x).shape, (2, 10))

    def test_errors_name_the_input(self):
        model = relaxc.compile(DIGITS)
        for wrong in ("abc", [[1, 2], [3]], {"image": 1}, object()):
            with self.assertRaisesRegex(relaxc.UsageError, "input 'image'"):
                model(wrong)

    def test_notes(self):
        notes = relaxc.compile(DIGITS, precision="bf16").notes
        self.assertEqual((notes["made.from"], notes["made.precision"]), ("digits.onnx", "bf16"))
        self.assertEqual(relaxc.compile(DIGITS).note("made.opt_level"), "2")

    def test_run_says_how_arrays_are_given(self):
        for wrong in (self.x, [self.x], 3):
            with self.assertRaisesRegex(relaxc.UsageError, r"call model.run\(x=..., y=...\), or model\(x, y\)"):
                self.add.run(wrong)
        with self.assertRaisesRegex(relaxc.UsageError, "runs is 'a', expected a whole number from 1"):
            self.add.profile(self.x, self.x, runs="a")

    def test_no_copies(self):
        x = np.ones(1 << 20, np.float32)
        self.add(x, x)
        before = self.add.memory["live"]
        result = self.add(x, x)
        self.assertEqual(self.add.memory["live"] - before, result.nbytes)
        del result
        self.assertEqual(self.add.memory["live"], before)

    def test_out(self):
        out = np.zeros(6, np.float32)
        self.assertIs(self.add(self.x, self.x, out=out), out)
        self.check(out, 2 * self.x)
        wide = np.zeros(12, np.float32)
        self.add(self.x, self.x, out={self.add.outputs[0].name: wide[::2]})
        self.check(wide[::2], 2 * self.x)
        self.check(self.add(self.x, self.x), 2 * self.x)
        wide.setflags(write=False)
        for wrong in (wide[:6], 3, [out, out], {"other": out}):
            with self.assertRaises(relaxc.UsageError):
                self.add(self.x, self.x, out=wrong)
        for wrong in (out[:5], out.astype(np.float64)):
            with self.assertRaises(relaxc.Error):
                self.add(self.x, self.x, out=wrong)

    def test_out_that_the_run_cannot_write_to(self):
        window = np.ndarray((6,), np.float32, bytearray(4), strides=(0,))
        wrong = ((np.zeros(6, ">f4"), "byte order"), (window, "share memory"),
                 (np.ma.masked_array(np.zeros(6, np.float32)), "masked"), ([0.0] * 6, "6 arrays.*1 output$"))
        for out, words in wrong:
            with self.assertRaisesRegex(relaxc.UsageError, words):
                self.add(self.x, self.x, out=out)
        with self.assertRaisesRegex(relaxc.UsageError, "out= names no output, expected"):
            self.add(self.x, self.x, out={})
        out = np.zeros((4, 12), np.float32)
        for view in (out.T[::2, 1], out[2, ::-2], out.reshape(-1)[5:11]):  # in which no elements overlap
            self.check(self.add(self.x, self.x, out=view), 2 * self.x)

    def test_out_for_two_outputs(self):
        model = relaxc.Module.from_text(module('x: R.Tensor(("n",), "float32")', "", "(R.add(x, x), R.negative(x))")).compile()
        results = model(self.x)
        self.assertEqual(results.keys(), results.names)
        for by_name in (dict(results), results._asdict()):
            self.assertEqual(list(by_name), list(results.names))
            self.check(by_name[results.names[1]], -self.x)
        twice, negated = np.zeros(6, np.float32), np.zeros(6, np.float32)
        model(self.x, out=(twice, negated))
        self.check(twice, 2 * self.x)
        self.check(negated, -self.x)
        with self.assertRaisesRegex(relaxc.UsageError, "the same array for two outputs"):
            model(self.x, out=(twice, twice))

    def test_inputs_with_the_names_of_parameters(self):
        tensor = 'R.Tensor(("n",), "float32")'
        for name in ("out", "self", "runs"):
            model = relaxc.Module.from_text(module(f"{name}: {tensor}", "", f"R.add({name}, {name})")).compile()
            (result,) = model.run({name: self.x}).values()
            self.check(result, 2 * self.x)
            self.check(*model.run(**{name: self.x}).values(), 2 * self.x)
            self.check(model(self.x), 2 * self.x)
            self.assertEqual(len(model.profile(self.x)), 1)
            if name != "out":
                self.check(model(**{name: self.x}), 2 * self.x)

    def test_out_of_changing_forms(self):
        # What a session keeps of the last arrays must fit neither another out= nor the results of another shape.
        for size in (3, 6, 3):
            x, out = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
            for inputs in ((x, x), (x.tolist(), x), (x, x[::-1]), (x, x)):
                expected = np.asarray(inputs[0], np.float32) + inputs[1]
                out[:] = -1
                self.add(*inputs, out=out)
                self.check(out, expected)
                self.check(self.add(*inputs), expected)
            wide = np.full(2 * size, -1, np.float32)
            self.add(x, x, out=wide[::2])
            self.check(wide, np.stack([2 * x, np.full(size, -1, np.float32)], 1).reshape(-1))
            fixed = out.copy()
            fixed.setflags(write=False)
            self.add(x, x, out=out)
            with self.assertRaisesRegex(relaxc.UsageError, "read-only"):
                self.add(x, x, out=fixed)
            with self.assertRaisesRegex(relaxc.RunError, "'y'"):
                self.add(x, x[1:], out=out)
            self.check(self.add(fixed, x), expected + x)
        self.add(self.x[:0], self.x[:0], out=self.x[:0].copy())

    def test_arrays_of_the_last_form_cost_their_address_only(self):
        out, fixed = np.zeros(6, np.float32), self.x.copy()
        fixed.setflags(write=False)
        calls = (lambda: self.add(self.x, self.x), lambda: self.add(x=self.x, y=self.x, out=out),
                 lambda: self.add(fixed, fixed, out=out))
        for call in calls:
            call()
            with mock.patch.object(Slot, "lend", side_effect=AssertionError("looks at the whole array")):
                call()

    def test_a_module_without_main(self):
        text = """
@I.ir_module
class Module:
    @R.function
    def prefill(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        return R.negative(x)
    @R.function
    def decode(x: R.Tensor((1, 4), "float32")) -> R.Tensor((1, 4), "float32"):
        return R.add(x, x)
"""
        model = relaxc.Module.from_text(text).compile()
        x = np.ones((1, 4), np.float32)
        self.assertEqual(sorted(model.functions), ["decode", "prefill"])
        self.check(model.function("decode")(x), 2 * x)
        self.check(model.function("prefill")(x), -x)
        self.assertIn("of the functions", repr(model))
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder + "/both.so")
            loaded = relaxc.load(folder + "/both.so")
            self.check(relaxc.load(folder + "/both.so", function="decode")(x), 2 * x)
        for call in (loaded, model, model.run, model.profile, lambda: model.run(x=x), lambda: model(x)):
            with self.assertRaisesRegex(relaxc.UsageError, r"none is 'main': call model.function\('.*or say function="):
                call()
        with self.assertRaisesRegex(relaxc.UsageError, "function 'other' does not exist, there are"):
            model.function("other")

    @needs("onnx")
    def test_results_of_other_sizes_than_the_declared_ones(self):
        from onnx import TensorProto, helper
        value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        ones = lambda *shape: np.ones(shape, np.float32)
        for declared in (None, ["n", "k"], ["b", "k"]):
            graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"]), helper.make_node("Relu", ["x"], ["w"])],
                                      "g", [value("x", ["n", "k"]), value("y", ["m", "k"])],
                                      [value("z", declared), value("w", None)])
            bytes_ = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
            model = relaxc.compile(bytes_)
            self.assertEqual(model.outputs[0].shape[0], "?")
            self.assertEqual(model.outputs[1].shape, ("n", "k"))
            for n, m in ((1, 4), (3, 1), (4, 4), (1, 4), (1, 1)):
                z, w = model(ones(n, 2), ones(m, 2))
                self.check(z, 2 * ones(max(n, m), 2))
                self.check(w, ones(n, 2))
                self.assertEqual(model.run(x=ones(n, 2), y=ones(m, 2))["z"].shape, z.shape)
                model.profile(ones(n, 2), ones(m, 2))
            with self.assertRaises(relaxc.RunError):
                model(ones(3, 2), ones(2, 2))
        graph = helper.make_graph([helper.make_node("Concat", ["x", "x"], ["c"], axis=0),
                                   helper.make_node("Max", ["c", "x"], ["z"])],
                                  "g", [value("x", ["n"])], [value("z", None)])
        model = relaxc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
        self.check(model(ones(1)), ones(2))

    def test_wrong_options(self):
        x = 'x: R.Tensor((2,), "float32")'
        text = relaxc.Module.from_text(module(x, "", "R.add(x, x)"))
        for option, value in (("kernels", 3), ("kernels", [3]), ("kernels", {"a": 1}), ("passes", ["simplify"]),
                              ("precision", 16), ("cache", 3), ("target", 3), ("function", 3), ("gather", "wrap"),
                              ("strict", 2), ("check_bounds", "yes"), ("in_place", 3), ("bind", 3), ("link", 3),
                              ("host_symbols", 3)):
            with self.assertRaisesRegex(relaxc.UsageError, f"^{option} is "):
                text.compile(**{option: value})
        for option, value in (("precision", "half"), ("target", "nosuch"), ("passes", "nosuch"), ("dims", {"nosuch": 1})):
            with self.assertRaises(relaxc.UsageError):
                text.compile(**{option: value})
        for wrong in (lambda: self.add.save(None), lambda: relaxc.load(3), lambda: relaxc.load(None),
                      lambda: relaxc.compile_to_file(text, None), lambda: text.text(constants=3)):
            with self.assertRaisesRegex(relaxc.UsageError, " is .*, expected a path"):
                wrong()
        for wrong, words in ((lambda: self.add.note(3), "key is 3"), (lambda: self.add.function(3), "function is 3"),
                             (lambda: relaxc.load(DIGITS, trust_contents="no"), "trust_contents is 'no'"),
                             (lambda: relaxc.Module.from_text(ADD, name=3), "name is 3")):
            with self.assertRaisesRegex(relaxc.UsageError, words):
                wrong()
        with self.assertRaisesRegex(relaxc.UsageError, "expected a path: give a text as relaxc.Module.from_text"):
            relaxc.compile(text.text())
        shape = relaxc.Module.from_text(module("s: R.Shape([\"n\"])", "", "R.full(s, R.const(1.0, \"float32\"))")).compile()
        for wrong in (3, "ab", 2.5):
            with self.assertRaisesRegex(relaxc.UsageError, "'s': expected a tuple of whole numbers, got"):
                shape(wrong)

    def test_files_that_do_not_exist(self):
        for read in (relaxc.load, relaxc.compile, relaxc.Module.from_onnx, lambda path: relaxc.compile_to_file(path, "/tmp/x")):
            with self.assertRaisesRegex(relaxc.CompileError, "none/model.onnx") as caught:
                read("/none/model.onnx")
            self.assertIsInstance(caught.exception, FileNotFoundError)
        for files in ({"kernels": "/none/kernels.so"}, {"kernels": "/none/kernels.py"}, {"link": "/none/kernels.o"}):
            with self.assertRaisesRegex(relaxc.MissingFileError, "/none/kernels"):
                relaxc.compile(str(DIGITS), **files)
        with self.assertRaises(relaxc.CompileError) as caught:
            relaxc.load(str(DIGITS))
        self.assertNotIsInstance(caught.exception, OSError)

    def test_bound_values_and_tests(self):
        two = relaxc.Module.from_text(ADD.replace('"n"', "3"))
        with tempfile.TemporaryDirectory() as folder:
            np.save(folder + "/y.npy", np.float32([4, 5, 6]))
            for value in (np.float32([4, 5, 6]), np.float32([4, 0, 5, 0, 6])[::2], folder + "/y.npy"):
                bound = two.compile(bind={"y": value}, strict=True, check_bounds=True, gather="clamp")
                self.assertEqual(len(bound.inputs), 1)
                self.check(bound(np.float32([1, 1, 1])), np.float32([5, 6, 7]))
            with self.assertRaises(FileNotFoundError):
                two.compile(bind={"y": folder + "/none.npy"})
        self.assertEqual((bound.note("made.gather"), bound.note("made.check_bounds")), ("clamp", "yes"))
        with self.assertRaisesRegex(relaxc.Error, "'z'"):
            two.compile(bind={"z": np.float32([4, 5, 6])})

    def test_wrong_calls(self):
        for path in (None, "a\0b"):
            with self.assertRaises(TypeError):
                self.add.save(path)
        with self.assertRaisesRegex(relaxc.UsageError, "1 input, got 2"):
            relaxc.compile(DIGITS)(self.x, self.x)
        with tempfile.TemporaryDirectory() as folder:
            artifact = folder + "/add.so"
            self.add.save(artifact)
            with self.assertRaisesRegex(relaxc.Error, "compiled already.*relaxc.load"):
                relaxc.compile(artifact)
        with self.assertRaisesRegex(relaxc.UsageError, "no input 'img'; expected image$"):
            relaxc.compile(DIGITS)(img=self.x)
        for arguments, named, words in (((self.x,), {}, "no value.*'y'"), ((), {"z": self.x}, "no input 'z'.*x, y"),
                                        ((self.x, self.x, self.x), {}, "2 inputs, got 3"),
                                        ((self.x,), {"x": self.x}, "'x' is given twice")):
            with self.assertRaisesRegex(relaxc.UsageError, words):
                self.add(*arguments, **named)
        with self.assertRaisesRegex(relaxc.RunError, "'y'.*is 5"):
            self.add(self.x, self.x[:5])
        with self.assertRaises(TypeError):
            self.add(self.x, np.zeros(6, "datetime64[s]"))
        self.check(self.add(self.x, self.x), 2 * self.x)

    def test_a_call_after_one_that_failed_half_way(self):
        model = relaxc.Module.from_text(ADD).compile()
        self.check(model(self.x, self.x), 2 * self.x)
        with self.assertRaises(TypeError):
            model(self.x[:3], np.zeros(3, "datetime64[s]"))
        with self.assertRaises(relaxc.RunError):
            model(self.x[:3], self.x)
        self.check(model(self.x[:3], self.x[:3]), 2 * self.x[:3])

    def test_several_results(self):
        text = module('x: R.Tensor(("n",), "float32")', "", "(R.add(x, x), R.negative(x))")
        model = relaxc.Module.from_text(text).compile()
        both = model(self.x)
        self.assertIsInstance(both, relaxc.Results)
        twice, negated = both
        self.check(twice, 2 * self.x)
        self.check(both[model.outputs[1].name], -self.x)
        self.check(negated, -self.x)
        with self.assertRaises(KeyError):
            both["none"]

    def test_declarations(self):
        (x, y), (z,) = self.add.inputs, self.add.outputs
        self.assertEqual((x.name, y.name, x.kind, x.dtype, x.shape), ("x", "y", "tensor", np.float32, ("n",)))
        self.assertEqual((z.dtype_name, z.type), ("float32", "float32[n]"))
        self.assertIn("float32[n]", repr(self.add))
        digits = relaxc.compile(DIGITS, dims={"batch": 2})
        self.assertEqual(digits.inputs[0].shape, (2, 1, 8, 8))

    def test_a_profile_does_not_time_itself(self):
        with mock.patch("relaxc._library.Profiler", side_effect=AssertionError("calls Python during the run")):
            self.assertEqual(len(self.add.profile(self.x, self.x)), 1)
        many = "x"
        for _ in range(40):
            many = f"R.nn.softmax({many})"
        model = relaxc.Module.from_text(module('x: R.Tensor(("n", 64), "float32")', "", many)).compile(threads=1)
        x = np.ones((3, 64), np.float32)
        profile = model.profile(x)
        self.assertGreaterEqual(len(profile), 40)
        self.assertEqual([call.start_ns for call in profile], sorted(call.start_ns for call in profile))
        self.check(model(x), np.full((3, 64), 1 / 64, np.float32))

    def test_profile(self):
        profile = self.add.profile(self.x, y=self.x, runs=3)
        self.assertEqual([call.kernel for call in profile], ["add"])
        self.assertEqual(profile[0].operations, 6)
        self.assertEqual(profile[0].bytes, 3 * self.x.nbytes)
        self.assertLessEqual(profile.kernel_ns, profile.total_ns)
        self.assertRegex(str(profile), r"(?m)^ +time +share +calls.*\n.* us .* 1 .* add$")
        self.assertIn("<td>add</td>", profile._repr_html_())

    def test_files_and_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/add.so"
            self.add.save(path)
            with open(path, "rb") as file:
                data = file.read()
            for source in (path, data):
                self.check(relaxc.load(source, threads=1)(self.x, self.x), 2 * self.x)
            with self.assertRaises(relaxc.Error):
                relaxc.load(data[:1000])
            with self.assertRaises(relaxc.Error):
                relaxc.load(folder + "/none.so")
            relaxc.compile_to_file(relaxc.Module.from_text(ADD), path, target="x86-64-v3")
            self.assertEqual(relaxc.load(path).functions, ("main",))

    @needs("torch")
    def test_torch(self):
        import torch
        x = torch.arange(6, dtype=torch.float32)
        self.check(self.add(x, x), 2 * self.x)
        self.check(self.add(x.reshape(2, 3).t().reshape(-1)[:], x), (x.reshape(2, 3).t().reshape(-1) + x).numpy())
        self.check(self.add(torch.arange(12.0)[::2], x), 3 * self.x)
        out = torch.zeros(6)
        self.add(x, x, out=out)
        self.assertTrue(torch.equal(out, 2 * x))
        self.assertTrue(torch.equal(torch.from_numpy(self.add(x, x)), 2 * x))
        with self.assertRaises(Exception):
            self.add(x.requires_grad_(), x)
        x.requires_grad_(False)
        flags = relaxc.Module.from_text(module('x: R.Tensor((2,), "bool")', 'R.Tensor((2,), "bool")',
                                               "R.logical_not(x)")).compile()
        self.check(flags(torch.tensor([True, False])), np.array([False, True]))
        half = relaxc.Module.from_text(module('x: R.Tensor((2,), "bfloat16")', 'R.Tensor((2,), "bfloat16")',
                                              "R.add(x, x)")).compile()
        bits = half(torch.tensor([1, 2], dtype=torch.bfloat16))
        self.assertEqual(bits.view(np.uint16).tolist(), [0x4000, 0x4080])

    @needs("torch")
    def test_torch_again(self):
        """Tensors of the shape and dtype of the last one are lent without a capsule, and only where torch exports them."""
        import torch
        x = torch.arange(6, dtype=torch.float32)
        out = torch.zeros(6)
        self.add(x, x)
        self.add(x, x, out=out)
        with mock.patch.object(torch.Tensor, "__dlpack__", side_effect=AssertionError):
            self.check(self.add(x + 1, x), 2 * self.x + 1)
            self.add(x + 2, x, out=out)
        self.check(out.numpy(), 2 * self.x + 2)
        self.check(self.add(torch.arange(12.0)[::2], x), 3 * self.x)
        self.add(x, x)
        self.check(self.add(torch._neg_view(x), x), 0 * self.x)
        self.add(x, x)
        self.check(self.add(x.double().numpy().astype(np.float32), x), 2 * self.x)
        self.check(self.add(torch.arange(3.0), torch.arange(3.0)), 2 * self.x[:3])
        refused = [(x.clone().requires_grad_(), "requires grad"), (x.double(), "dtype is float64"),
                   (x.to("meta"), "meta"), (x.to_sparse(), "Sparse"), (x.view(1, 6), "rank")]
        for tensor, reason in refused:
            self.add(x, x)
            with self.assertRaisesRegex(relaxc.Error, reason):
                self.add(tensor, x)


if __name__ == "__main__":
    unittest.main()
