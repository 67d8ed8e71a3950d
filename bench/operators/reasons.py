"""Why forms stay below 40% of the roofline, which knows float operations and bytes and nothing else.

A pattern of names (fnmatch) stands for the rows that it finds. A row's own `reason` comes first.
"""
import fnmatch

REASONS = [
    ('sin cos tan asin atan sinh cosh asinh acosh atanh softplus mish pow_*',
     'all but the most used functions compute in double, with half the lanes, so that every argument is within 2 ulp '
     '(docs/math.md)'),
    ('mod_float', "an exact remainder is the C library's fmod, lane by lane"),
    ('log sqrt gelu_of_nodes',
     'special values (subnormal numbers, zeros, infinities, signs), quotients and roots take about as many '
     'instructions as the operations that are counted'),
    ('lrn_*', 'a power with a fraction as its exponent is computed in double for each element'),
    ('div_int64 mod_int64', 'processors have no instruction for quotients of vectors of integers'),
    ('randomnormal* randomuniform* bernoulli multinomial',
     'ten rounds of integer products of 64 bits make a number (Philox), so that each is a function of its index'),
    ('topk_*', 'an element is compared with the least of the best so far, which depends on all before, and carries its '
               'index along'),
    ('nms_*', 'a box is compared with all that were chosen before it, one after the other'),
    ('argmax_* hardmax_* maxpool_indices',
     'an element takes a comparison, a test for NaN and two selects, of the value and of its index in 64 bits'),
    ('nonzero_*', 'a pass counts, and a second one writes each index of 64 bits where the count before it says'),
    ('cumsum_*', 'each sum depends on the one before it: within a vector it takes a shuffle and a sum for each doubling'),
    ('gridsample_* roialign', 'neighbours are gathered, which takes a cycle for each element, and their weights depend '
                              'on coordinates that are computed for each'),
    ('resize_*', 'vectors are gathered or interleaved from neighbours, which takes a shuffle or a gather for each '
                 'vector of results'),
    ('gather_* gatherelements_* gathernd_* onehot_* slice_step_* slice_reverse_*',
     'an element is moved by an instruction of its own, or a gather, which takes a cycle for each'),
    ('scatterelements_add', 'an element is added to where an index says, one after the other, as two may be the same'),
    ('transpose_* depth_to_space_* concat_last_ones',
     'pieces of a few elements are moved: a tile is transposed in registers, with a shuffle for each vector and '
     'doubling, and stores of pieces fill lines in parts'),
    ('reducesum_20000x* matmul_10000x2x1 matmul_500x100x2 matmul_1000x64x3 gemm_right_run_few',
     'rows of results are shorter than a vector: sums go across lanes, or vectors are gathered'),
    ('softmax_* logsoftmax_* layernorm_* groupnorm_* meanvariance_* instancenorm_* lpnorm_* reducel2_* '
     'reducelogsumexp_*',
     'three or four passes over rows that the cache holds, of which the roofline counts one; each row ends with a sum '
     'across lanes'),
    ('dft_* stft_*', 'butterflies of small radix exchange elements between lanes, and few products meet a sum'),
    ('lstm_* rnn_* gru_*', 'steps depend on each other, and a step is a product of one row by a matrix, which memory or '
                           'the cache bounds'),
    ('maxpool_* averagepool_*', 'rows of the result do not fill vectors, windows that are apart are gathered, and a '
                                'maximum that keeps NaN takes two instructions'),
    ('conv1d_*_g64 conv1d_*_g256 conv2d_*_g64 conv2d_*_g72 conv2d_*_g24 conv1d_1-1_* conv1d_32-1_* deconv2d_21-21_* '
     'deconv2d_16-1_*',
     'each product of a depthwise convolution, or of one channel, loads an element of its own from beside a vector, '
     'and strides are gathered'),
    ('conv2d_256-256_k3_56_s2_g32', 'two groups of 8 channels share a vector, so that half of its products are with '
                                    'zeros'),
    ('conv2d_1-16_k3_28', 'nine products for each result, whose rows of 28 elements are one vector and a part'),
    ('einsum_bhwc_hkc-bhwk', 'rows of results are short, and each has a matrix of its own'),
    ('attention_of_nodes_small', 'matrices of a few rows: most of the time passes between kernels'),
    ('matmul_33x1x1000', 'one product for each result: rows of an odd length are stored across lines'),
]


def reason_of(name):
    for patterns, reason in REASONS:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split()):
            return reason
    return ''
