"""Recurrent layers, attention, detection, sampling of images, random numbers and signals."""
from form import Form, const, each_output, elements, weight, x

# operator, steps, batch, inputs, hidden, directions
RECURRENT = [('LSTM', 10, 1, 256, 256, 1), ('LSTM', 100, 1, 128, 128, 1), ('LSTM', 50, 4, 64, 128, 2),
             ('LSTM', 1, 1, 512, 512, 1), ('GRU', 10, 1, 256, 256, 1), ('GRU', 100, 1, 128, 128, 1),
             ('GRU', 50, 4, 64, 128, 2), ('RNN', 50, 1, 128, 128, 1), ('LSTM', 20, 16, 64, 64, 1),
             ('GRU', 1, 1, 384, 384, 1), ('LSTM', 30, 1, 37, 61, 1)]
GATES = {'LSTM': 4, 'GRU': 3, 'RNN': 1}
# name, heads, queries, keys, width of a head
ATTENTION = [('bert', 12, 128, 128, 64), ('vit', 12, 197, 197, 64), ('long', 4, 512, 512, 64), ('step', 12, 1, 512, 64),
             ('window', 192, 49, 49, 32), ('wide_head', 4, 128, 128, 256), ('cross', 8, 64, 77, 40),
             ('odd', 3, 65, 67, 48),
             ('small', 4, 16, 16, 32)]


def recurrent(op, steps, batch, width, hidden, directions):
    gates = GATES[op]
    attributes = {'hidden_size': hidden, 'direction': 'bidirectional' if directions == 2 else 'forward'}
    if op == 'GRU':
        attributes['linear_before_reset'] = 1
    tensors = [x(f's={steps} b={batch} {width}'), weight(directions, gates * hidden, width),
               weight(directions, gates * hidden, hidden), weight(directions, 2 * gates * hidden)]
    work = 2 * directions * steps * batch * gates * hidden * (width + hidden)
    outputs = 3 if op == 'LSTM' else 2
    state = [directions, batch, hidden]
    return Form(f"{op.lower()}_{steps}x{batch}x{width}_{hidden}{'_both_ways' if directions == 2 else ''}", op, tensors,
                attributes, lambda ins, outs: work, outputs=outputs,
                results=[[steps, directions, batch, hidden]] + [state] * (outputs - 1))


def attention(name, heads, queries, keys, width, mask=None):
    """The nodes of exporters: scores, scale, mask, softmax, context."""
    keys_dim = f't={keys}' if keys != queries or mask else f's={queries}'
    query = f'b=1 {heads} {queries} {width}' if queries == 1 else f'b=1 {heads} s={queries} {width}'
    tensors = [x(query), x(f'b=1 {heads} {keys_dim} {width}'), x(f'b=1 {heads} {keys_dim} {width}'),
               const(width ** -0.5, 'float32')]
    nodes = [('Transpose', 'i1', 'kt', {'perm': [0, 1, 3, 2]}), ('MatMul', 'i0 kt', 'scores', {}),
             ('Mul', 'scores i3', 'scaled', {}), ('Softmax', 'masked' if mask else 'scaled', 'p', {'axis': -1}),
             ('MatMul', 'p i2', 'o0', {})]
    if mask:
        tensors.append(x(mask))
        nodes.insert(3, ('Add', 'scaled i4', 'masked', {}))
    work = heads * queries * keys * (4 * width + 26)
    return Form(f'attention_of_nodes_{name}', nodes, tensors, {}, lambda ins, outs: work,
                results=[[1, heads, queries, width]])


def attention_operator(name, heads, queries, keys, width, **attributes):
    work = heads * queries * keys * (4 * width + 26) // (2 if attributes.get('is_causal') else 1)
    tensors = [x(f'b=1 {heads} s={queries} {width}')] + [x(f'b=1 {heads} t={keys} {width}')] * 2
    return Form(f'attention_operator_{name}', 'Attention', tensors, attributes, lambda ins, outs: work,
                results=[[1, heads, queries, width]], opset=23)


def grid_sample(mode, padding, dims, size):
    channels, (height, width) = x(dims).shape[1], size
    taps = {'nearest': 1, 'bilinear': 4, 'bicubic': 16}[mode]
    return Form(f'gridsample_{mode}_{padding}', 'GridSample', [x(dims), x(f'n=1 oh={height} ow={width} 2')],
                {'mode': mode, 'padding_mode': padding}, each_output(2 * taps), results=[[1, channels, height, width]])


def detection():
    boxes, scores = x('1 k=1000 4', limits=(0.0, 100.0)), x('1 1 k=1000', limits=(0.0, 1.0))
    none = {'results': [[100, 3]], 'result_dtype': 'int64'}
    return [
        Form('nms_1000', 'NonMaxSuppression',
             [boxes, scores, const([100]), const([0.5], 'float32'), const([0.1], 'float32')], {'center_point_box': 1},
             lambda ins, outs: 100 * 1000 * 8, **none),
        Form('nms_classes', 'NonMaxSuppression',
             [x('1 k=300 4', limits=(0.0, 100.0)), x('1 20 k=300', limits=(0.0, 1.0)), const([10]),
              const([0.5], 'float32'), const([0.1], 'float32')], {}, lambda ins, outs: 20 * 10 * 300 * 8, **none),
        Form('roialign', 'RoiAlign',
             [x('n=1 64 h=50 w=50'), x('k=50 4', limits=(0.0, 40.0)), x('k=50', 'int64', (0, 1))],
             {'output_height': 7, 'output_width': 7, 'sampling_ratio': 2, 'spatial_scale': 1.0}, each_output(32),
             results=[[50, 64, 7, 7]]),
        Form('nonzero_mask', 'NonZero', [x('m=256 n=256', 'bool')], {}, each_output(0), results=[[2, 32768]],
             result_dtype='int64'),
        Form('nonzero_line', 'NonZero', [x('k=65536', 'int64')], {}, each_output(0), results=[[1, 32768]],
             result_dtype='int64'),
        Form('compress', 'Compress', [x('m=512 n=256'), x('m=512', 'bool')], {'axis': 0}, each_output(0),
             results=[[256, 256]]),
        Form('unique', 'Unique', [x('k=10000', 'int64', (0, 1000))], {}, each_output(0), results=[[1000]],
             result_dtype='int64'),
    ]


def random_forms():
    shape = {'shape': [256, 256]}
    row = {'operations': each_output(20), 'results': [[256, 256]]}
    like = [x('m=256 n=256')]
    return [Form('randomnormal', 'RandomNormal', [], shape, **row),
            Form('randomuniform', 'RandomUniform', [], shape, **row),
            Form('randomnormallike', 'RandomNormalLike', like, {}, **row),
            Form('randomuniformlike', 'RandomUniformLike', like, {}, **row),
            Form('bernoulli', 'Bernoulli', [x('m=256 n=256', limits=(0.0, 1.0))], {}, **row),
            Form('multinomial', 'Multinomial', [x('m=16 n=1000')], {'sample_size': 16},
                 lambda ins, outs: 20 * 16 * 1000, results=[[16, 16]], result_dtype='int32')]


def signal_forms():
    return [
        Form('dft_512', 'DFT', [x('n=16 512 1')], {'axis': 1, 'onesided': 1}, lambda ins, outs: 16 * 5 * 512 * 9,
             results=[[16, 257, 2]]),
        Form('dft_400', 'DFT', [x('n=16 400 1')], {'axis': 1, 'onesided': 1}, lambda ins, outs: 16 * 5 * 400 * 9,
             results=[[16, 201, 2]]),
        Form('stft_16000', 'STFT', [x('n=1 16000 1'), const(160), const([1.0] * 400, 'float32'), const(400)],
             {'onesided': 1}, lambda ins, outs: 98 * 5 * 400 * 9, results=[[1, 98, 201, 2]]),
        Form('hann_window', 'HannWindow', [x('', 'int64', (4096, 4097))], {}, each_output(20), results=[[4096]]),
        Form('det_4x4', 'Det', [x('b=1000 4 4')], {}, lambda ins, outs: 1000 * 60, results=[[1000]]),
    ]


def rope():
    """Rotary positions as Hugging Face's exports have them: the halves change places, one of them negated."""
    nodes = [('Slice', 'i0 i3 i4 i5', 'low', {}), ('Slice', 'i0 i4 i6 i5', 'high', {}), ('Neg', 'high', 'minus', {}),
             ('Concat', 'minus low', 'turned', {'axis': -1}), ('Mul', 'i0 i1', 'a', {}), ('Mul', 'turned i2', 'b', {}),
             ('Add', 'a b', 'o0', {})]
    constants = [const([0]), const([32]), const([3]), const([64])]
    return [Form('rope_of_nodes', nodes, [x('b=1 12 s=128 64'), x('b=1 1 s=128 64'), x('b=1 1 s=128 64'), *constants],
                 {}, each_output(3), results=[[1, 12, 128, 64]])]


FORMS = [recurrent(*row) for row in RECURRENT] + [attention(*row) for row in ATTENTION]
FORMS += [attention('mask_row', 12, 128, 128, 64, 'b=1 1 1 t=128'),
          attention('mask_square', 12, 128, 128, 64, '1 1 s=128 t=128'),
          attention('mask_bias', 12, 128, 128, 64, '1 12 s=128 t=128')]
FORMS += [attention_operator('plain', 12, 128, 128, 64), attention_operator('causal', 12, 128, 128, 64, is_causal=1),
          attention_operator('long', 4, 512, 512, 64)]
FORMS += [grid_sample(mode, padding, 'n=1 32 h=32 w=32', (48, 48))
          for mode, padding in [('bilinear', 'zeros'), ('bilinear', 'border'), ('nearest', 'zeros'),
                                ('bicubic', 'zeros'), ('bilinear', 'reflection')]]
FORMS += [Form('gridsample_few_channels', 'GridSample', [x('n=1 3 h=128 w=128'), x('n=1 oh=128 ow=128 2')],
               {'mode': 'bilinear'}, each_output(8), results=[[1, 3, 128, 128]]),
          Form('gridsample_deformable', 'GridSample', [x('n=8 32 h=64 w=64'), x('n=8 oh=300 4 2')],
               {'mode': 'bilinear'}, each_output(8), results=[[8, 32, 300, 4]])]
FORMS += detection() + random_forms() + signal_forms() + rope()
