"""Values of every kind and dtype."""
import unittest

import numpy as np
import relaxc
from support import module, needs


def identity(dtype, shape="(3,)"):
    declared = f'R.Tensor({shape}, "{dtype}")'
    return relaxc.Module.from_text(module(f"x: {declared}", declared, "R.reshape(x, R.shape([3]))")).compile(threads=1)


class Dtypes(unittest.TestCase):
    def test_those_of_numpy(self):
        for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                      "float32", "float64"):
            with self.subTest(dtype):
                x = np.array([0, 1, 1], dtype)
                y = identity(dtype)(x)
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(x, y)

    def test_those_that_numpy_lacks_are_their_bits_or_of_ml_dtypes(self):
        for dtype, bits in (("bfloat16", np.uint16), ("float8_e4m3fn", np.uint8), ("float8_e5m2", np.uint8),
                            ("float8_e4m3fnuz", np.uint8), ("float8_e5m2fnuz", np.uint8)):
            with self.subTest(dtype):
                model = identity(dtype)
                x = np.array([0, 0x38, 0x40], bits)
                y = model(x)
                self.assertEqual(y.dtype, model.inputs[0].dtype)
                self.assertEqual(model.inputs[0].dtype_name, dtype)
                np.testing.assert_array_equal(x, y.view(bits))
                np.testing.assert_array_equal(model(y).view(bits), x)

    def test_elements_that_share_bytes_have_one_each_in_numpy(self):
        for dtype, values in (("int4", [-8, 7, -1]), ("uint4", [0, 15, 9]), ("int2", [-2, 1, -1]), ("uint2", [0, 3, 1])):
            with self.subTest(dtype):
                model = identity(dtype)
                x = np.array(values, dtype.rstrip("24") + "8")
                for given in (x, values):
                    y = model(given)
                    self.assertEqual(y.dtype, x.dtype)
                    self.assertEqual(y.tolist(), values)
                for place, number in ((0, values[0] - 1), (2, values[1] + 1), (1, 100)):
                    wrong = np.zeros(3, np.int64)
                    wrong[place] = number
                    words = f"'x': element {place} is {number}, which is not a value of {dtype}"
                    with self.assertRaisesRegex(TypeError, words):
                        model(wrong.tolist())
                    if number >= np.iinfo(x.dtype).min:
                        with self.assertRaisesRegex(TypeError, words):
                            model(wrong.astype(x.dtype))

    def test_lists_do_not_become_bits(self):
        model = identity("bfloat16")
        if model.inputs[0].dtype == np.uint16:  # without ml_dtypes
            with self.assertRaisesRegex(TypeError, "ml_dtypes"):
                model([1, 2, 3])

    def test_bfloat16_is_computed(self):
        declared = 'R.Tensor((2,), "bfloat16")'
        model = relaxc.Module.from_text(module(f"x: {declared}", declared, "R.add(x, x)")).compile()
        y = model(np.array([0x3F80, 0xC000], np.uint16))  # 1, -2
        self.assertEqual(y.view(np.uint16).tolist(), [0x4000, 0xC080])


@needs("onnx")
class Kinds(unittest.TestCase):
    def model(self, nodes, inputs, outputs):
        from onnx import helper
        graph = helper.make_graph(nodes, "test", inputs, outputs)
        return relaxc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16),
                                                                      helper.make_opsetid("ai.onnx.ml", 2)]))

    def setUp(self):
        from onnx import TensorProto, helper
        self.node, self.value = helper.make_node, helper.make_tensor_value_info
        self.float, self.string, self.int = TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT64
        self.sequence_of = lambda name: helper.make_tensor_sequence_value_info(name, self.float, None)

    def test_strings(self):
        model = self.model([self.node("Identity", ["x"], ["y"])], [self.value("x", self.string, ["n"])],
                           [self.value("y", self.string, ["n"])])
        for given in (["a", "größer", ""], np.array(["a", "größer", ""]), np.array(["a", "größer", ""], object)):
            y = model(given)
            self.assertEqual(y.dtype, object)
            self.assertEqual(y.tolist(), ["a", "größer", ""])
        self.assertEqual(model(np.array([], object)).shape, (0,))
        self.assertEqual(model([]).shape, (0,))
        with self.assertRaisesRegex(relaxc.UsageError, "'x': .*surrogates not allowed"):
            model(["\ud800"])
        with self.assertRaisesRegex(relaxc.RunError, "'x'.*int64.*string"):
            model([1, 2])

    def test_sequences(self):
        model = self.model([self.node("SequenceInsert", ["s", "x"], ["t"]), self.node("SequenceLength", ["t"], ["n"])],
                           [self.sequence_of("s"), self.value("x", self.float, ["k"])],
                           [self.sequence_of("t"), self.value("n", self.int, [])])
        self.assertEqual(model.inputs[0].kind, "sequence")
        self.assertEqual(model.inputs[0].fields[0].kind, "tensor")
        longer, count = model([np.ones(2, np.float32), [5.0]], np.zeros(3, np.float32))
        self.assertEqual([item.tolist() for item in longer], [[1, 1], [5], [0, 0, 0]])
        self.assertEqual(int(count), 3)
        longer, count = model([], np.zeros(1, np.float32))
        self.assertEqual(len(longer), 1)
        with self.assertRaises(relaxc.UsageError):
            model("text", np.zeros(1, np.float32))

    def test_optionals(self):
        from onnx import helper
        optional = helper.make_value_info("x", helper.make_optional_type_proto(
            helper.make_tensor_type_proto(self.float, [2])))
        from onnx import TensorProto
        model = self.model([self.node("OptionalHasElement", ["x"], ["y"])], [optional],
                           [self.value("y", TensorProto.BOOL, [])])
        self.assertTrue(model.inputs[0].optional)
        self.assertTrue(model(np.zeros(2, np.float32)))
        self.assertFalse(model(None))
        self.assertFalse(model())

    def test_maps(self):
        from onnx import TypeProto, helper

        def map_of(key):
            return TypeProto(map_type=TypeProto.Map(key_type=key,
                                                    value_type=helper.make_tensor_type_proto(self.float, [])))

        result = helper.make_value_info("y", helper.make_sequence_type_proto(map_of(self.int)))
        model = self.model([helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[7, 9])],
                           [self.value("x", self.float, ["n", 2])], [result])
        self.assertEqual(model([[1, 2], [3, 4]]), [{7: 1.0, 9: 2.0}, {7: 3.0, 9: 4.0}])
        given = helper.make_value_info("x", map_of(self.string))
        model = self.model([helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml",
                                             string_vocabulary=["a", "b", "c"])],
                           [given], [self.value("y", self.float, [1, 3])])
        self.assertEqual(model({"c": 2, "a": 1}).reshape(-1).tolist(), [1, 0, 2])
        self.assertEqual(model({}).reshape(-1).tolist(), [0, 0, 0])
        for wrong, problem in (({"a": None}, "the values of input 'x': .*None"),
                               ({"a": 1e300}, "the values of input 'x': a number is out of the range of float32")):
            with self.assertRaisesRegex(relaxc.UsageError, problem):
                model(wrong)
        with self.assertRaisesRegex(relaxc.RunError, r"the keys of input 'x' are int64\[1\], expected string"):
            model({1: 2.0})
        with self.assertRaises(relaxc.UsageError):
            model([1, 2])

    def test_tuples_count_as_their_items(self):
        text = module('x: R.Tensor((2,), "float32")', "", "(x, R.add(x, x))")
        x, y = relaxc.Module.from_text(text).compile()([1, 2])
        self.assertEqual((x.tolist(), y.tolist()), ([1, 2], [2, 4]))


if __name__ == "__main__":
    unittest.main()
