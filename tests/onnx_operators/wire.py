"""ONNX's messages in protobuf's wire format, as far as models of one operator need them."""
import struct

ELEMENT_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16, "float8e4m3fn": 17,
    "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4e2m1": 23}
FORMATS = {"float32": "f", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "int32": "i", "int64": "q",
           "bool": "?", "float16": "e", "float64": "d", "uint32": "I", "uint64": "Q"}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    if isinstance(content, str):
        content = content.encode()
    return varint(field << 3 | 2) + varint(len(content)) + content


def pack(dtype, data):
    return struct.pack(f"<{len(data)}{FORMATS[dtype]}", *data)


def tensor(name, dtype, shape, data):
    out = b"".join(number(1, dim) for dim in shape) + number(2, ELEMENT_TYPES[dtype]) + message(8, name)
    if dtype == "string":
        return out + b"".join(message(6, text) for text in data)
    return out + message(9, pack(dtype, data))


def attribute(name, value):
    """An int, float, text, list of them (an empty one is of ints), tensor or graph as bytes behind their kind."""
    def one(kind, content):
        return message(1, name) + content + number(20, kind)

    if isinstance(value, Graph):
        return one(5, message(6, value.bytes))
    if isinstance(value, TensorBytes):
        return one(4, message(5, value.bytes))
    if isinstance(value, (bool, int)):
        return one(2, number(3, int(value)))
    if isinstance(value, float):
        return one(1, varint(2 << 3 | 5) + struct.pack("<f", value))
    if isinstance(value, str):
        return one(3, message(4, value))
    if value and isinstance(value[0], float):
        return one(6, b"".join(varint(7 << 3 | 5) + struct.pack("<f", item) for item in value))
    if value and isinstance(value[0], str):
        return one(8, b"".join(message(9, item) for item in value))
    return one(7, b"".join(number(8, item) for item in value))


class Graph:
    def __init__(self, content):
        self.bytes = content


class TensorBytes:
    def __init__(self, content):
        self.bytes = content


def node(op, inputs, outputs, domain, attributes):
    return (b"".join(message(1, name) for name in inputs) + b"".join(message(2, name) for name in outputs)
            + message(4, op) + b"".join(message(5, attribute(key, value)) for key, value in attributes.items())
            + message(7, domain))


def value_info(name, dtype=None, dims=None):
    """A dim is a size or a symbol; without dims the rank is open, and without a dtype the type."""
    if dtype is None:
        return message(1, name)
    shape = b""
    if dims is not None:
        shape = message(2, b"".join(message(1, message(2, dim) if isinstance(dim, str) else number(1, dim))
                                    for dim in dims))
    return message(1, name) + message(2, message(1, number(1, ELEMENT_TYPES[dtype]) + shape))


def map_info(name, key, value):
    """A map to scalars."""
    scalar = message(1, number(1, ELEMENT_TYPES[value]) + message(2, b""))
    return message(1, name) + message(2, message(5, number(1, ELEMENT_TYPES[key]) + message(2, scalar)))


def map_value(key, keys, value, values):
    """A map to scalars: its keys and a sequence of values."""
    listed = b"".join(message(4, item) for item in keys) if key == "string" else message(3, b"".join(varint(item) for item in keys))
    items = number(2, 1) + b"".join(message(3, tensor("", value, [], [item])) for item in values)
    return message(1, "entries") + number(2, ELEMENT_TYPES[key]) + listed + message(5, items)


def sequence_of_maps(maps):
    return number(2, 4) + b"".join(message(6, item) for item in maps)


def graph(nodes, initializers, inputs, outputs):
    return (b"".join(message(1, item) for item in nodes) + message(2, "graph")
            + b"".join(message(5, item) for item in initializers) + b"".join(message(11, item) for item in inputs)
            + b"".join(message(12, item) for item in outputs))


def model(graph_bytes, opsets, ir_version):
    return (number(1, ir_version) + message(7, graph_bytes)
            + b"".join(message(8, message(1, domain) + number(2, version)) for domain, version in opsets.items()))
