"""Products of matrices and vectors."""
import math

from form import Form, elements, weight, x

WEIGHTED = [  # rows, inner dim, columns of MatMul with a constant
    (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 768, 2304), (512, 512, 512), (64, 64, 64), (8, 8, 8),
    (16, 1024, 16), (1000, 3, 64), (1000, 64, 3), (49, 96, 288), (3136, 96, 384), (77, 512, 512), (17, 37, 61),
    (129, 257, 513), (2, 768, 768), (4, 1024, 4096), (7, 512, 2048), (300, 40, 1000), (2048, 16, 16), (10000, 2, 1),
    (10000, 1, 8), (1000, 1000, 1), (33, 1, 1000), (500, 100, 2), (300, 33, 5),
    (1, 768, 768), (1, 768, 3072), (1, 3072, 768), (1, 2048, 1000), (1, 1280, 1000), (1, 4096, 4096), (1, 768, 50257),
    (1, 384, 51865), (1, 37, 61), (1, 64, 10), (16, 384, 1001),
]
BOTH = [  # name, left, right of MatMul at run time
    ('square', 'm=256 k=256', 'k=256 n=256'), ('scores', 'b=12 s=128 64', 'b=12 64 t=128'),
    ('context', 'b=12 s=128 t=128', 'b=12 t=128 64'), ('windows', 'b=64 3 49 32', 'b=64 3 32 49'),
    ('one_row', 'b=12 1 64', 'b=12 64 t=512'), ('one_row_context', 'b=12 1 t=512', 'b=12 t=512 64'),
    ('tiny', 'b=1000 4 4', 'b=1000 4 4'), ('tiny_vector', 'b=1000 3 3', 'b=1000 3 1'),
    ('odd', 'b=5 m=37 k=61', 'b=5 k=61 n=53'),
    ('vector_matrix', 'k=768', 'k=768 n=768'), ('matrix_vector', 'm=768 k=768', 'k=768'),
    ('vector_vector', 'k=65536', 'k=65536'),
    ('outer', 'm=512 1', '1 n=512'), ('shared_right', 'b=16 m=49 k=96', 'k=96 n=96'),
    ('shared_left', 'm=64 k=64', 'b=16 k=64 n=64'),
    ('broadcast', 'b=4 1 m=32 k=64', 'c=8 k=64 n=32'), ('one_in_the_middle', 's=197 1 768', '768 n=768'),
    ('ones_before', '1 1 m=128 k=256', 'k=256 n=256'), ('tall', 'm=20000 8', '8 n=8'), ('wide', '8 8', '8 n=20000'),
    ('long_inner', '8 k=20000', 'k=20000 8'), ('long_scores', 'b=4 s=512 64', 'b=4 64 t=512'),
]
GEMM = [  # name, left, right, bias, attributes
    ('plain', x('m=128 768'), weight(768, 768), weight(768), {}),
    ('right', x('m=128 768'), weight(3072, 768), weight(3072), {'transB': 1}),
    ('right_row', x('m=1 768'), weight(768, 768), weight(768), {'transB': 1}),
    ('right_classes', x('m=1 2048'), weight(1000, 2048), weight(1000), {'transB': 1}),
    ('right_odd', x('m=33 77'), weight(51, 77), weight(51), {'transB': 1}),
    ('right_batch', x('m=32 512'), weight(1000, 512), weight(1000), {'transB': 1}),
    ('left', x('768 m=128'), weight(768, 768), weight(768), {'transA': 1}),
    ('both', x('256 m=256'), weight(256, 256), weight(256), {'transA': 1, 'transB': 1}),
    ('right_run', x('m=128 k=256'), x('n=256 k=256'), None, {'transB': 1}),
    ('right_run_row', x('1 k=768'), x('n=768 k=768'), None, {'transB': 1}),
    ('right_run_few', x('3 k=515'), x('n=301 k=515'), None, {'transB': 1}),
    ('left_run', x('k=256 m=128'), x('k=256 n=256'), None, {'transA': 1}),
    ('both_run', x('k=256 m=128'), x('n=256 k=256'), None, {'transA': 1, 'transB': 1}),
    ('scaled', x('m=128 k=256'), x('k=256 n=256'), x('m=128 n=256'), {'alpha': 0.5, 'beta': 2.0}),
    ('column_bias', x('m=128 256'), weight(256, 256), weight(128, 1), {}),
]
EINSUM = [  # equation, operands, multiply-adds where they are not one for each combination of indices
    ('bij,bjk->bik', ['b=12 i=64 j=64', 'b=12 j=64 k=64']),
    ('bhid,bhjd->bhij', ['b=1 h=12 i=128 64', 'b=1 h=12 j=128 64']),
    ('bhij,bhjd->bhid', ['b=1 h=12 i=128 j=128', 'b=1 h=12 j=128 64']),
    ('bid,bjd->bij', ['b=8 i=64 64', 'b=8 j=64 64']),
    ('ij,ij->i', ['i=512 j=256', 'i=512 j=256']), ('i,j->ij', ['i=512', 'j=512']), ('ij->ji', ['i=512 j=512']),
    ('ij->j', ['i=512 j=256']),
    ('ii->i', ['i=512 i=512'], 0), ('bqhd,bkhd->bhqk', ['b=1 q=128 h=12 64', 'b=1 k=128 h=12 64']),
    ('bhqk,bkhd->bqhd', ['b=1 h=12 q=128 k=128', 'b=1 k=128 h=12 64']),
    ('bhwc,hkc->bhwk', ['b=4 h=14 w=14 64', 'h=14 k=14 64']),
    ('nchw,cd->ndhw', ['n=1 64 h=28 w=28', '64 64']), ('bnd,bmd->bnm', ['b=1 n=300 d=128', 'b=1 m=300 d=128']),
    ('ncl,cd->nld', ['n=2 96 l=301', '96 40']), ('bih,jbh->bij', ['b=3 i=45 h=33', 'j=57 b=3 h=33']),
    ('abc,cd,de->abe', ['a=4 b=32 64', '64 64', '64 e=64'], 2 * 4 * 32 * 64 * 64), ('i,i->', ['i=65536', 'i=65536']),
]


def product(ins, outs):
    """The inner dim of the left operand is its last one."""
    return 2 * elements(outs[0]) * ins[0][-1]


def gemm(name, left, right, bias, attributes):
    inner = 0 if attributes.get('transA') else 1
    return Form(f'gemm_{name}', 'Gemm', [left, right, bias], attributes,
                lambda ins, outs: 2 * elements(outs[0]) * ins[0][inner])


def einsum(equation, operands, products=None):
    left, _, result = equation.partition('->')
    sizes = {}
    for letters, dims in zip(left.split(','), operands):
        sizes.update({letter: int(dim.rpartition('=')[2]) for letter, dim in zip(letters, dims.split())})
    work = 2 * (math.prod(sizes.values()) if products is None else products)
    shape = [sizes[letter] for letter in result]
    diagonal = {'touched': lambda ins, outs: 2 * elements(shape)} if equation == 'ii->i' else {}
    return Form(f"einsum_{equation.replace(',', '_').replace('->', '-')}", 'Einsum', [x(dims) for dims in operands],
                {'equation': equation}, lambda ins, outs: work, results=[shape], **diagonal)


FORMS = [Form(f'matmul_{m}x{k}x{n}', 'MatMul', [x(f'm={m} {k}'), weight(k, n)], {}, product) for m, k, n in WEIGHTED]
FORMS += [Form(f'matmul_rank3_{m}x{k}x{n}', 'MatMul', [x(f'b={b} s={m} {k}'), weight(k, n)], {}, product)
          for b, m, k, n in [(1, 128, 768, 768), (4, 32, 256, 256), (64, 49, 96, 288), (32, 1, 256, 256)]]
FORMS += [Form(f'matmul_run_{name}', 'MatMul', [x(left), x(right)], {}, product) for name, left, right in BOTH]
FORMS += [gemm(*row) for row in GEMM] + [einsum(*row) for row in EINSUM]
