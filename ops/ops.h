// <relaxc/operators.h>: the operator table: a row per operator, a file per group. A new operator is a row in its file.
#pragma once
#include "ir/op.h"

namespace relaxc {

// Returns the table of all groups.
OpTable make_op_table();

// Each of these returns the rows of one group.
std::vector<OpRow> elementwise_ops();     // unary, binary, comparison, logic, where, clip, cast, activations, quantize
std::vector<OpRow> reduction_ops();       // sum, mean, max, ..., argmax, cumsum, softmax family
std::vector<OpRow> linear_algebra_ops();  // matmul, det, outer
std::vector<OpRow> einsum_ops();
std::vector<OpRow> convolution_ops();    // conv1d/2d/3d and transposed
std::vector<OpRow> pooling_ops();        // max, average, global
std::vector<OpRow> normalization_ops();  // batch, layer, instance, group norm, LRN
std::vector<OpRow> layout_ops();         // transpose, reshape, concat, expand, tile, flip, ...
std::vector<OpRow> slice_ops();          // strided_slice, split
std::vector<OpRow> pad_ops();            // nn.pad, dyn.pad
std::vector<OpRow> index_ops();          // take, gather, scatter, one_hot, nonzero, ...
std::vector<OpRow> sort_ops();           // sort, argsort, topk
std::vector<OpRow> create_ops();         // full, arange, eye, tril/triu, ...
std::vector<OpRow> image_ops();          // resize, grid_sample, pixel_shuffle, ...
std::vector<OpRow> attention_ops();      // nn.attention, ...
std::vector<OpRow> training_ops();       // losses, dropout, grad.*
std::vector<OpRow> vision_ops();         // vision.*
std::vector<OpRow> distributed_ops();    // ccl.*, dist.*
std::vector<OpRow> graph_ops();          // call_tir, shape_of, tensor_to_shape, memory.*, vm.*, ...

}  // namespace relaxc
