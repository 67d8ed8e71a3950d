"""Hostile models of values other than tensors of numbers, for make.py: sequences, maps, optionals, strings, loops."""
import numpy
from onnx import TensorProto, TypeProto, helper

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
HUGE = 1 << 62


def add(m):
    node, value, model, constant, floats = m.node, m.value, m.model, m.constant, m.floats

    def model_file(make):
        m.makers[make.__name__] = make
        return make

    def text(name, *items):
        return TensorProto(name=name, data_type=STRING, dims=[len(items)], string_data=items)

    def nested(levels, kind):
        """tensor, sequence(tensor), sequence(sequence(tensor)) ..."""
        result = TypeProto()
        at = result
        for _ in range(levels):
            at = getattr(at, kind).elem_type
        at.tensor_type.elem_type = FLOAT
        at.tensor_type.shape.dim.add().dim_value = 2
        return result

    def of_type(name, proto):
        return helper.make_value_info(name, proto)

    @model_file
    def string_count_short():
        return model([node("Identity", "w", "y")], [TensorProto(name="w", data_type=STRING, dims=[5], string_data=[b"a"])],
                     outputs=[value("y", [5], STRING)])

    @model_file
    def string_count_huge():
        return model([node("Identity", "w", "y")], [TensorProto(name="w", data_type=STRING, dims=[HUGE], string_data=[b"a"])],
                     outputs=[value("y", None, STRING)])

    @model_file
    def string_as_raw_bytes():
        return model([node("Identity", "w", "y")], [TensorProto(name="w", data_type=STRING, dims=[2], raw_data=b"ab")],
                     outputs=[value("y", [2], STRING)])

    @model_file
    def string_not_utf8():
        """A name without an encoding may be any bytes; what lowers it must not read beyond them."""
        broken = [b"\xff\xfe", b"\xe6\x97", b"\xf0\x9f\x98", b"\xc0\x80", b"\xed\xa0\x80", b"a\x00b", b"\x80" * 40]
        return model([node("StringNormalizer", "w", "y", case_change_action="UPPER")], [text("w", *broken)],
                     outputs=[value("y", None, STRING)])

    @model_file
    def regex_bomb():
        return model([node("RegexFullMatch", "w", "y", pattern="(a*)*(a*)*(a*)*b")], [text("w", b"a" * 4000)], opset=20,
                     outputs=[value("y", [1], BOOL)])

    @model_file
    def regex_of_many_copies():
        return model([node("RegexFullMatch", "w", "y", pattern="((a{1,999}){1,999}){1,999}")], [text("w", b"a")], opset=20,
                     outputs=[value("y", [1], BOOL)])

    @model_file
    def regex_deep():
        return model([node("RegexFullMatch", "w", "y", pattern="(" * 100000 + ")" * 100000)], [text("w", b"a")], opset=20,
                     outputs=[value("y", [1], BOOL)])

    @model_file
    def split_into_huge_count():
        return model([node("StringSplit", "w", "y n", maxsplit=HUGE)], [text("w", b"a b c")], opset=20,
                     outputs=[value("y", None, STRING)])

    @model_file
    def sequence_deep():
        return model([node("Identity", "s", "t")], inputs=[of_type("s", nested(40, "sequence_type"))],
                     outputs=[of_type("t", nested(40, "sequence_type"))])

    @model_file
    def optional_deep():
        return model([node("Identity", "s", "t")], inputs=[of_type("s", nested(40, "optional_type"))],
                     outputs=[of_type("t", nested(40, "optional_type"))], opset=16)

    @model_file
    def sequence_of_nothing():
        empty = TypeProto()
        empty.sequence_type.SetInParent()
        return model([node("SequenceLength", "s", "y")], inputs=[of_type("s", empty)], outputs=[value("y", [], INT64)])

    @model_file
    def map_without_types():
        empty = TypeProto()
        empty.map_type.SetInParent()
        return model([node("Identity", "s", "t")], inputs=[of_type("s", empty)], outputs=[of_type("t", empty)])

    @model_file
    def map_of_float_keys():
        proto = TypeProto()
        proto.map_type.key_type = FLOAT
        proto.map_type.value_type.tensor_type.elem_type = FLOAT
        return model([node("Identity", "s", "t")], inputs=[of_type("s", proto)], outputs=[of_type("t", proto)])

    @model_file
    def sequence_of_sequences():
        return model([node("SequenceConstruct", "x x", "s"), node("SequenceConstruct", "s s", "y")])

    @model_file
    def sequence_of_two_dtypes():
        return model([node("SequenceConstruct", "x n", "s"), node("SequenceAt", "s i", "y")],
                     [constant("n", numpy.int64(1)), constant("i", numpy.int64(0))])

    @model_file
    def sequence_at_outside():
        return model([node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "y")], [constant("i", numpy.int64(7))])

    @model_file
    def sequence_at_least_number():
        return model([node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "y")],
                     [constant("i", numpy.int64(-(1 << 63)))])

    @model_file
    def sequence_insert_outside():
        return model([node("SequenceConstruct", "x x", "s"), node("SequenceInsert", "s x i", "t"), node("SequenceAt", "t z", "y")],
                     [constant("i", numpy.int64(99)), constant("z", numpy.int64(0))])

    @model_file
    def sequence_into_tensor():
        return model([node("SequenceConstruct", "x x", "s"), node("Relu", "s", "y")])

    @model_file
    def tensor_as_sequence():
        return model([node("SequenceLength", "x", "y")], outputs=[value("y", [], INT64)])

    @model_file
    def split_to_huge_sequence():
        return model([node("SplitToSequence", "x n", "s"), node("SequenceAt", "s z", "y")],
                     [constant("n", numpy.int64(-(1 << 62))), constant("z", numpy.int64(0))])

    def branch(nodes, output):
        return helper.make_graph(nodes, "branch", [], [output])

    @model_file
    def branches_of_other_kinds():
        """A tensor in one branch and a sequence in the other."""
        return model([node("If", "c", "y", then_branch=branch([node("Relu", "x", "a")], value("a")),
                           else_branch=branch([node("SequenceConstruct", "x x", "b")], of_type("b", nested(1, "sequence_type"))))],
                     inputs=[value("x"), value("c", [], BOOL)])

    @model_file
    def branches_of_other_dtypes():
        return model([node("If", "c", "y", then_branch=branch([node("Relu", "x", "a")], value("a")),
                           else_branch=branch([node("Cast", "x", "b", to=STRING)], value("b", [2, 3], STRING)))],
                     inputs=[value("x"), value("c", [], BOOL)])

    @model_file
    def branches_of_other_counts():
        two = helper.make_graph([node("Relu", "x", "b"), node("Neg", "x", "d")], "two", [], [value("b"), value("d")])
        return model([node("If", "c", "y", then_branch=branch([node("Relu", "x", "a")], value("a")), else_branch=two)],
                     inputs=[value("x"), value("c", [], BOOL)])

    def loop_body(nodes, outputs):
        return helper.make_graph(nodes, "body", [value("i", [], INT64), value("going", [], BOOL), value("state")], outputs)

    @model_file
    def loop_of_huge_count():
        """Its scan output would not fit into any memory."""
        body = loop_body([node("Identity", "going", "again"), node("Relu", "state", "next"), node("Tile", "next r", "part")],
                         [value("again", [], BOOL), value("next"), value("part", None)])
        return model([node("Loop", "n c x", "y parts", body=body)],
                     [constant("n", numpy.int64(HUGE)), constant("c", numpy.bool_(True)), constant("r", numpy.int64([64, 4096]))],
                     outputs=[value("parts", None)])

    @model_file
    def loop_body_without_outputs():
        return model([node("Loop", "n c x", "y", body=loop_body([node("Relu", "state", "next")], []))],
                     [constant("n", numpy.int64(3)), constant("c", numpy.bool_(True))])

    @model_file
    def loop_state_of_other_dtype():
        body = loop_body([node("Identity", "going", "again"), node("Cast", "state", "next", to=INT64)],
                         [value("again", [], BOOL), value("next", [2, 3], INT64)])
        return model([node("Loop", "n c x", "y", body=body)], [constant("n", numpy.int64(3)), constant("c", numpy.bool_(True))])

    @model_file
    def loop_condition_is_float():
        body = loop_body([node("Relu", "state", "next")], [value("next"), value("next")])
        return model([node("Loop", "n x x", "y", body=body)], [constant("n", numpy.int64(3))])

    @model_file
    def scan_of_other_lengths():
        body = helper.make_graph([node("Add", "a b", "r")], "body", [value("a", [3]), value("b", [3])], [value("r", [3])])
        return model([node("Scan", "x w", "y", body=body, num_scan_inputs=2)], [floats("w", 5, 3)])

    @model_file
    def scan_of_negative_count():
        body = helper.make_graph([node("Relu", "a", "r")], "body", [value("a", [3])], [value("r", [3])])
        return model([node("Scan", "x", "y", body=body, num_scan_inputs=-4)])

    @model_file
    def scan_of_overflowing_count():
        """Opset 8 has an input before those of the loop: counted without a sign, 1 and -1 make 0."""
        body = helper.make_graph([node("Relu", "a", "r")], "body", [value("a", [3])], [value("r", [3])])
        return model([node("Scan", "x", "y", body=body, num_scan_inputs=-1)], opset=8)

    @model_file
    def optional_without_element():
        return model([node("Optional", "", "o", type=nested(0, "sequence_type")), node("OptionalGetElement", "o", "y")], opset=16)
