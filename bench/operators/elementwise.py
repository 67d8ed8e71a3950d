"""Elementwise operators: functions of one value, every way of broadcasting, comparisons, selects and casts."""
from form import Form, const, each_output, weight, x
from reductions import short

PLAIN = 'n=1 64 h=32 w=32'
# operator, operations of one value (those of a polynomial for functions), attributes, range of the inputs
UNARY = [
    ('Relu', 1), ('LeakyRelu', 2), ('Elu', 16), ('Selu', 17), ('Celu', 17), ('Sigmoid', 18), ('HardSigmoid', 3),
    ('HardSwish', 4),
    ('Softplus', 30), ('Softsign', 3), ('ThresholdedRelu', 1), ('Tanh', 24), ('Erf', 24), ('Exp', 14), ('Log', 16),
    ('Sqrt', 1), ('Reciprocal', 1),
    ('Neg', 1), ('Abs', 1), ('Sign', 1), ('Floor', 1), ('Ceil', 1), ('Round', 1), ('Sin', 20), ('Cos', 20), ('Tan', 24),
    ('Asin', 20),
    ('Acos', 20), ('Atan', 20), ('Sinh', 20), ('Cosh', 20), ('Asinh', 24), ('Acosh', 24), ('Atanh', 20), ('IsNaN', 1),
    ('IsInf', 1),
]
POSITIVE = {'Log': (0.1, 2.0), 'Sqrt': (0.1, 2.0), 'Reciprocal': (0.1, 2.0), 'Acosh': (1.1, 3.0)}
# How the second operand stretches, as networks have it.
BROADCASTS = [
    ('same', PLAIN, PLAIN), ('scalar', PLAIN, const(0.5, 'float32')), ('channel', PLAIN, weight(64, 1, 1)),
    ('row', 's=128 512', weight(512)),
    ('channel_run', PLAIN, 'n=1 64 1 1'), ('pixel_run', PLAIN, 'n=1 1 h=32 w=32'),
    ('column_run', 'm=256 n=256', 'm=256 1'), ('row_run', 'm=256 n=256', 'n=256'),
    ('outer_run', 'm=256 1', '1 n=256'), ('mask_run', 'b=1 12 s=64 t=64', 'b=1 1 1 t=64'),
    ('causal_run', 'b=1 12 s=64 t=64', 's=64 t=64'), ('batch_run', 'b=8 s=64 128', '1 s=64 128'),
    ('middle_run', 'a=32 b=64 c=32', 'a=32 1 c=32'), ('scalar_run', PLAIN, '1'),
    ('both_run', 'a=32 1 c=32', '1 b=64 c=32'), ('last_one', 'm=16384 4', 'm=16384 1'),
    ('checkered', 'a=16 1 c=16 1', '1 b=16 1 d=16'), ('large', 'k=4194304', 'k=4194304'),
]
CASTS = [('float32', 'int64'), ('int64', 'float32'), ('float32', 'int32'), ('int32', 'float32'), ('bool', 'float32'),
         ('float32', 'bool'), ('uint8', 'float32'),
         ('float32', 'uint8'), ('int64', 'int32'), ('float32', 'float64'), ('float32', 'float16'), ('int64', 'bool')]
SELECTS = [  # name, condition, the two values
    ('same', PLAIN, PLAIN, PLAIN), ('mask_scalar', 'b=1 1 s=64 t=64', 'b=1 12 s=64 t=64', const(-1e9, 'float32')),
    ('row_mask', 'b=1 1 1 t=64', 'b=1 12 s=64 t=64', const(-1e9, 'float32')),
    ('two_scalars', PLAIN, const(0.0, 'float32'), const(-1e9, 'float32')),
    ('column', 'm=256 1', 'm=256 n=256', 'm=256 n=256'),
]
TYPE_NUMBERS = {'float32': 1, 'uint8': 2, 'int32': 6, 'int64': 7, 'bool': 9, 'float16': 10, 'float64': 11}


def operand(spec):
    return x(spec) if isinstance(spec, str) else spec


def nodes_of(name, nodes, operations, *constants):
    return Form(name, nodes, [x('s=128 512'), *constants], {}, each_output(operations))


def activations():
    """Functions that exporters write as several nodes."""
    half, root, one = (const(value, 'float32') for value in (0.5, 1.4142135, 1.0))
    gelu = [('Div', 'i0 i1', 'a', {}), ('Erf', 'a', 'b', {}), ('Add', 'b i2', 'c', {}), ('Mul', 'i0 c', 'd', {}),
            ('Mul', 'd i3', 'o0', {})]
    tanh_gelu = [('Mul', 'i0 i0', 'a', {}), ('Mul', 'a i0', 'b', {}), ('Mul', 'b i1', 'c', {}),
                 ('Add', 'i0 c', 'd', {}),
                 ('Mul', 'd i2', 'e', {}), ('Tanh', 'e', 'f', {}), ('Add', 'f i3', 'g', {}), ('Mul', 'i0 g', 'h', {}),
                 ('Mul', 'h i4', 'o0', {})]
    silu = [('Sigmoid', 'i0', 'a', {}), ('Mul', 'i0 a', 'o0', {})]
    return [nodes_of('gelu_of_nodes', gelu, 28, root, one, half), nodes_of('silu_of_nodes', silu, 19),
            nodes_of('tanh_gelu_of_nodes', tanh_gelu, 32, const(0.044715, 'float32'), const(0.79788, 'float32'), one,
                     half)]


FORMS = [Form(f'{op.lower()}', op, [x(PLAIN, limits=POSITIVE.get(op))], {}, each_output(operations))
         for op, operations in UNARY]
FORMS += [Form('mish', 'Mish', [x(PLAIN)], {}, each_output(40), results=[x(PLAIN).shape], opset=18)]
FORMS += [Form(f'{op.lower()}_{short(dims)}', op, [x(dims)], {}, each_output(operations))
          for op, operations, dims in [('Relu', 1, 'k=4194304'), ('Sigmoid', 18, 'k=1048576'),
                                       ('Relu', 1, 'a=37 b=61 c=31'), ('Tanh', 24, 'k=1001')]]
FORMS += [Form(f'add_{name}', 'Add', [operand(left), operand(right)]) for name, left, right in BROADCASTS]
FORMS += [Form(f'{op.lower()}_{name}', op, [operand(left), operand(right)], {}, each_output(operations))
          for op, operations in [('Mul', 1), ('Div', 1), ('Sub', 1)]
          for name, left, right in BROADCASTS if name in ('same', 'channel_run', 'column_run')]
FORMS += [
    Form('pow_two', 'Pow', [x(PLAIN), const(2.0, 'float32')]),
    Form('pow_half', 'Pow', [x(PLAIN, limits=(0.1, 2)), const(0.5, 'float32')]),
    Form('pow_constant', 'Pow', [x(PLAIN, limits=(0.1, 2)), const(1.7, 'float32')], {}, each_output(40)),
    Form('pow_run', 'Pow', [x(PLAIN, limits=(0.1, 2)), x(PLAIN)], {}, each_output(40)),
    Form('prelu', 'PRelu', [x(PLAIN), weight(64, 1, 1)]),
    Form('clip', 'Clip', [x(PLAIN), const(0.0, 'float32'), const(6.0, 'float32')]),
    Form('max_two', 'Max', [x(PLAIN), x(PLAIN)]), Form('min_scalar', 'Min', [x(PLAIN), const(0.5, 'float32')]),
    Form('sum_three', 'Sum', [x(PLAIN)] * 3),
    Form('mean_three', 'Mean', [x(PLAIN)] * 3),
    Form('mod_float', 'Mod', [x(PLAIN), x(PLAIN, limits=(0.5, 2))], {'fmod': 1}),
    Form('mod_int64', 'Mod', [x('k=65536', 'int64', (0, 1000)), const(7)]),
    Form('div_int64', 'Div', [x('k=65536', 'int64', (0, 1000)), const(7)]),
    Form('add_int64', 'Add', [x('k=65536', 'int64'), x('k=65536', 'int64')]),
    Form('mul_int32', 'Mul', [x('k=65536', 'int32'), x('k=65536', 'int32')]),
]
FORMS += [Form(f'{op.lower()}_{name}', op, [operand(left), operand(right)])
          for op in ('Equal', 'Less', 'GreaterOrEqual')
          for name, left, right in BROADCASTS if name in ('same', 'scalar', 'outer_run')]
FORMS += [Form('equal_int64', 'Equal', [x('k=65536', 'int64'), const(0)]),
          Form('equal_outer_int64', 'Equal', [x('m=256 1', 'int64'), x('1 n=256', 'int64')]),
          Form('and_same', 'And', [x('k=262144', 'bool'), x('k=262144', 'bool')]),
          Form('not', 'Not', [x('k=262144', 'bool')]),
          Form('xor_mask', 'Xor', [x('b=1 12 s=64 t=64', 'bool'), x('s=64 t=64', 'bool')]),
          Form('or_outer', 'Or', [x('m=512 1', 'bool'), x('1 n=512', 'bool')])]
FORMS += [Form(f'where_{name}', 'Where', [x(condition, 'bool'), operand(left), operand(right)])
          for name, condition, left, right in SELECTS]
FORMS += [Form(f'cast_{source}_{target}', 'Cast',
               [x('k=131072', source, (0, 200) if source == 'float32' and target == 'uint8' else None)],
               {'to': TYPE_NUMBERS[target]}) for source, target in CASTS]
FORMS += activations()
FORMS += [Form('one_number', 'Add', [x('1'), const(1.0, 'float32')])]  # what a call costs
