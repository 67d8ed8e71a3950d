// The examples of operators whose operands are not simply tensors of one shape.
#include "frontend/onnx/examples.h"

#include <map>

#include "frontend/onnx/node.h"
#include "support/joined.h"

namespace relaxc {

namespace {

// Domain, operator, and what stands in the parentheses behind it. An operator may have several. `dtypes` are those of
// T, U and V that are the common ones, where it is not those that are tried first.
struct ExampleRow {
  const char *domain, *name, *operands, *dtypes = "";
};
constexpr const char *kOnnx = "", *kMl = "ai.onnx.ml", *kMs = "com.microsoft", *kTraining = "ai.onnx.preview.training";
constexpr ExampleRow kExamples[] = {
    {kOnnx, "AffineGrid", "T[2, 2, 3], int64[4]{2, 3, 4, 4}"},
    {kOnnx, "AveragePool", "T[1, 3, 8, 8], kernel_shape=[2, 2]"},
    {kOnnx, "BatchNormalization", "T[2, 3, 4, 4], U[3], U[3], U[3], U[3]", "float32 float32"},
    {kOnnx, "BitCast", "T[2, 4], to=U", "float32 int32"},
    {kOnnx, "BitShift", "T[2, 3], T[2, 3], direction=\"LEFT\""},
    {kOnnx, "BlackmanWindow", "T[]", "int64"},
    {kOnnx, "Cast", "T[2, 3], to=U", "float32 int64"},
    {kOnnx, "CastLike", "T[2, 3], U[2, 3]", "float32 int64"},
    {kOnnx, "CausalConvWithState", "T[1, 3, 8], T[3, 1, 4]"},
    {kOnnx, "CenterCropPad", "T[4, 5], int64[2]{3, 6}"},
    {kOnnx, "Clip", "T[2, 3], T[], T[]"},
    {kOnnx, "Col2Im", "T[1, 8, 9], int64[2]{4, 4}, int64[2]{2, 2}"},
    {kOnnx, "Compress", "T[4, 2], bool[4], axis=0"},
    {kOnnx, "Concat", "T[2, 3], T[2, 3], axis=0"},
    {kOnnx, "ConcatFromSequence", "seq(T[2, 3]), axis=0"},
    {kOnnx, "Constant", "value=T[2]{1, 2}"},
    {kOnnx, "ConstantOfShape", "int64[2], value=T[1]{1}"},
    {kOnnx, "Conv", "T[1, 3, 8, 8], T[4, 3, 3, 3]"},
    {kOnnx, "ConvInteger", "T[1, 3, 8, 8], U[4, 3, 3, 3]", "uint8 int8"},
    {kOnnx, "ConvTranspose", "T[1, 3, 8, 8], T[3, 4, 3, 3]"},
    {kOnnx, "Crop", "T[1, 3, 8, 8], border=[1, 1, 1, 1]"},
    {kOnnx, "CumProd", "T[2, 3], U[]{1}", "float32 int64"},
    {kOnnx, "CumSum", "T[2, 3], U[]{1}", "float32 int64"},
    {kOnnx, "DFT", "T[1, 8, 1], -, int64[]{1}"},
    {kOnnx, "DeformConv", "T[1, 3, 4, 4], T[2, 3, 3, 3], T[1, 18, 2, 2]"},
    {kOnnx, "DepthToSpace", "T[1, 8, 2, 2], blocksize=2"},
    {kOnnx, "DequantizeLinear", "T[2, 3], U[], T[]", "int8 float32"},
    {kOnnx, "Det", "T[3, 3]"},
    {kOnnx, "DynamicSlice", "T[4, 5], int64[1]{1}, int64[1]{3}, int64[1]{0}"},
    {kOnnx, "Einsum", "T[2, 3], T[3, 4], equation=\"ij,jk->ik\""},
    {kOnnx, "Expand", "T[1, 3], int64[2]{2, 3}"},
    {kOnnx, "EyeLike", "T[3, 3], dtype=U", "float32 float64"},
    {kOnnx, "GRU", "T[5, 2, 3], T[1, 12, 3], T[1, 12, 4], hidden_size=4"},
    {kOnnx, "Flatten", "T[2, 3, 4]"},
    {kOnnx, "Max", "T[2, 3], T[2, 3]"},
    {kOnnx, "Mean", "T[2, 3], T[2, 3]"},
    {kOnnx, "Min", "T[2, 3], T[2, 3]"},
    {kOnnx, "Mod", "T[2, 3], T[2, 3]"},
    {kOnnx, "Mod", "T[2, 3], T[2, 3], fmod=1"},
    {kOnnx, "Sum", "T[2, 3], T[2, 3]"},
    {kOnnx, "SequenceConstruct", "T[2, 3], T[2, 3]"},
    {kOnnx, "Gather", "T[4, 3], U[2], axis=0"},
    {kOnnx, "GatherElements", "T[4, 3], U[2, 3]"},
    {kOnnx, "GatherND", "T[4, 3], U[2, 1]"},
    {kOnnx, "Gemm", "T[2, 3], T[3, 4], T[4]"},
    {kOnnx, "GlobalAveragePool", "T[1, 3, 4, 4]"},
    {kOnnx, "GlobalLpPool", "T[1, 3, 4, 4]"},
    {kOnnx, "GlobalMaxPool", "T[1, 3, 4, 4]"},
    {kOnnx, "GridSample", "T[1, 3, 4, 4], U[1, 2, 2, 2]"},
    {kOnnx, "GroupNormalization", "T[1, 4, 3, 3], T[4], T[4], num_groups=2"},
    {kOnnx, "HammingWindow", "T[]", "int64"},
    {kOnnx, "HannWindow", "T[]", "int64"},
    {kOnnx, "If", "bool[], then_branch={T[2]}, else_branch={T[2]}"},
    {kOnnx, "ImageScaler", "T[1, 3, 4, 4], bias=[0.5, 0.5, 0.5], scale=2.0"},
    {kOnnx, "InstanceNormalization", "T[1, 3, 4, 4], T[3], T[3]"},
    {kOnnx, "LRN", "T[1, 3, 4, 4], size=3"},
    {kOnnx, "LSTM", "T[5, 2, 3], T[1, 16, 3], T[1, 16, 4], hidden_size=4"},
    {kOnnx, "LayerNormalization", "T[2, 3], T[3]"},
    {kOnnx, "LinearAttention",
     "T[1, 4, 8], T[1, 4, 8], T[1, 4, 8], q_num_heads=2, kv_num_heads=2, update_rule=\"linear\""},
    {kOnnx, "Loop", "int64[]{3}, -, T[2], body={i go v -> go v}"},
    {kOnnx, "LpPool", "T[1, 3, 8, 8], kernel_shape=[2, 2]"},
    {kOnnx, "MatMul", "T[2, 3], T[3, 4]"},
    {kOnnx, "MatMulInteger", "T[2, 3], U[3, 4]", "uint8 int8"},
    {kOnnx, "MaxPool", "T[1, 3, 8, 8], kernel_shape=[2, 2]"},
    {kOnnx, "MaxRoiPool", "T[1, 3, 8, 8], T[2, 5], pooled_shape=[2, 2]"},
    {kOnnx, "MaxUnpool", "T[1, 1, 2, 2], int64[1, 1, 2, 2], kernel_shape=[2, 2], strides=[2, 2]"},
    {kOnnx, "MeanVarianceNormalization", "T[1, 3, 4, 4]"},
    {kOnnx, "MelWeightMatrix", "T[]{8}, T[]{16}, T[]{100}, U[]{0}, U[]{50}", "int64 float32"},
    {kOnnx, "Multinomial", "T[2, 3], sample_size=4, dtype=U"},
    {kOnnx, "NegativeLogLikelihoodLoss", "T[2, 3], U[2]", "float32 int64"},
    {kOnnx, "NonMaxSuppression", "T[1, 6, 4], T[1, 2, 6], int64[]{3}, float32[]{0.5}, float32[]{0.1}"},
    {kOnnx, "OneHot", "T[4], U[]{5}, V[2]", "int64 int64 float32"},
    {kOnnx, "Optional", "T[2, 3]"},
    {kOnnx, "OptionalGetElement", "opt(T[2, 3])"},
    {kOnnx, "OptionalHasElement", "opt(T[2, 3])"},
    {kOnnx, "Pad", "T[2, 3], int64[4]{0, 1, 0, 1}"},
    {kOnnx, "Pow", "T[2, 3], U[2, 3]"},
    {kOnnx, "QLinearConv", "T[1, 3, 8, 8], float32[], T[], U[4, 3, 3, 3], float32[], U[], float32[], T[]",
     "uint8 int8"},
    {kOnnx, "QLinearMatMul", "T[2, 3], float32[], T[], U[3, 4], float32[], U[], float32[], T[]", "uint8 int8"},
    {kOnnx, "QuantizeLinear", "T[2, 3], T[], U[]", "float32 uint8"},
    {kOnnx, "RNN", "T[5, 2, 3], T[1, 4, 3], T[1, 4, 4], hidden_size=4"},
    {kOnnx, "RandomNormal", "shape=[2, 3], dtype=T"},
    {kOnnx, "RandomNormalLike", "T[2, 3], dtype=U", "float32 float64"},
    {kOnnx, "RandomUniform", "shape=[2, 3], dtype=T"},
    {kOnnx, "RandomUniformLike", "T[2, 3], dtype=U", "float32 float64"},
    {kOnnx, "Range", "T[], T[], T[]"},
    {kOnnx, "RegexFullMatch", "T[3], pattern=\"a+\""},
    {kOnnx, "Reshape", "T[2, 3], int64[2]{3, 2}"},
    {kOnnx, "Resize", "T[1, 1, 2, 2], -, -, int64[4]{1, 1, 4, 3}"},
    {kOnnx, "ReverseSequence", "T[4, 3], int64[3]"},
    {kOnnx, "RMSNormalization", "T[2, 3], T[3]"},
    {kOnnx, "RoiAlign", "T[1, 3, 8, 8], T[2, 4], int64[2], output_height=2, output_width=2"},
    {kOnnx, "RotaryEmbedding", "T[1, 2, 4, 8], T[16, 4], T[16, 4], int64[1, 4]"},
    {kOnnx, "STFT", "T[1, 32, 1], int64[]{8}, T[16]"},
    {kOnnx, "Scan", "T[2], T[3, 2], num_scan_inputs=1, body={state row -> state row} -> 2"},
    {kOnnx, "Scatter", "T[4, 3], U[2, 3], T[2, 3]"},
    {kOnnx, "ScatterElements", "T[4, 3], U[2, 3], T[2, 3]"},
    {kOnnx, "ScatterND", "T[4, 3], U[2, 1], T[2, 3]"},
    {kOnnx, "SequenceAt", "seq(T[2, 3]), int64[]"},
    {kOnnx, "SequenceEmpty", "dtype=T"},
    {kOnnx, "SequenceErase", "seq(T[2, 3]), int64[]"},
    {kOnnx, "SequenceInsert", "seq(T[2, 3]), T[2, 3]"},
    {kOnnx, "SequenceLength", "seq(T[2, 3])"},
    {kOnnx, "SequenceMap", "seq(T[2, 3]), body={v -> v}"},
    {kOnnx, "SimplifiedLayerNormalization", "T[2, 3], T[3]"},
    {kOnnx, "Slice", "T[4, 3], U[1]{1}, U[1]{3}"},
    {kOnnx, "SoftmaxCrossEntropyLoss", "T[2, 3], U[2]", "float32 int64"},
    {kOnnx, "SpaceToDepth", "T[1, 2, 4, 4], blocksize=2"},
    {kOnnx, "Split", "T[4, 2], axis=0, num_outputs=2 -> 2"},
    {kOnnx, "SplitToSequence", "T[4, 2], int64[]{2}"},
    {kOnnx, "Squeeze", "T[1, 3], int64[1]{0}"},
    {kOnnx, "StringNormalizer", "T[3], case_change_action=\"LOWER\""},
    {kOnnx, "StringSplit", "T[3] -> 2"},
    {kOnnx, "TensorScatter", "T[2, 1, 8, 4], T[2, 1, 2, 4], int64[2]"},
    {kOnnx, "TfIdfVectorizer",
     "T[6], mode=\"TF\", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], "
     "ngram_indexes=[0, 1], pool_int64s=[2, 3]"},
    {kOnnx, "TfIdfVectorizer",
     "T[6], mode=\"TF\", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], "
     "ngram_indexes=[0, 1], pool_strings=[\"a\", \"b\"]"},
    {kOnnx, "Tile", "T[2, 3], int64[2]{2, 1}"},
    {kOnnx, "TopK", "T[2, 4], int64[1]{2} -> 2"},
    {kOnnx, "Unique", "T[6] -> 4"},
    {kOnnx, "Unsqueeze", "T[3], int64[1]{0}"},
    {kOnnx, "Upsample", "T[1, 1, 2, 2], float32[4]{1, 1, 2, 2}"},
    {kOnnx, "Where", "bool[2, 3], T[2, 3], T[2, 3]"},

    {kMl, "ArrayFeatureExtractor", "T[2, 3], int64[2]"},
    {kMl, "CastMap", "map(int64, T[]), cast_to=\"TO_FLOAT\""},
    {kMl, "CategoryMapper", "T[3], cats_int64s=[1, 2], cats_strings=[\"a\", \"b\"]", "int64"},
    {kMl, "DictVectorizer", "map(int64, T[]), int64_vocabulary=[1, 2]"},
    {kMl, "FeatureVectorizer", "T[2, 3], T[2, 2], inputdimensions=[3, 2]"},
    {kMl, "Imputer", "T[2, 3], imputed_value_floats=[1.0], replaced_value_float=0.0"},
    {kMl, "Imputer", "T[2, 3], imputed_value_int64s=[1], replaced_value_int64=0"},
    {kMl, "LabelEncoder", "T[3], keys_int64s=[1, 2], values_floats=[0.5, 1.5], default_float=0.0"},
    {kMl, "LabelEncoder", "T[3], keys_floats=[1.0, 2.0], values_int64s=[3, 4]"},
    {kMl, "LabelEncoder", "T[3], keys_strings=[\"a\", \"b\"], values_int64s=[3, 4]"},
    {kMl, "LabelEncoder", "T[3], keys_tensor=T[2]{1, 2}, values_tensor=float32[2]{1, 2}, default_tensor=float32[1]{0}"},
    {kMl, "LinearClassifier",
     "T[2, 3], coefficients=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], intercepts=[0.1, 0.2], classlabels_ints=[0, 1] -> 2"},
    {kMl, "LinearRegressor", "T[2, 3], coefficients=[0.1, 0.2, 0.3], intercepts=[0.5]"},
    {kMl, "Normalizer", "T[2, 3], norm=\"L2\""},
    {kMl, "OneHotEncoder", "T[3], cats_int64s=[1, 2]"},
    {kMl, "OneHotEncoder", "T[3], cats_strings=[\"a\", \"b\"]"},
    {kMl, "SVMClassifier",
     "T[2, 3], classlabels_ints=[0, 1], coefficients=[1.0, -1.0], kernel_params=[0.5, 0.0, 3.0], "
     "kernel_type=\"RBF\", rho=[0.1], support_vectors=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], vectors_per_class=[1, 1] -> 2"},
    {kMl, "SVMRegressor",
     "T[2, 3], coefficients=[1.0, -1.0], kernel_params=[0.5, 0.0, 3.0], kernel_type=\"RBF\", n_supports=2, "
     "rho=[0.1], support_vectors=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]"},
    {kMl, "Scaler", "T[2, 3], offset=[0.5], scale=[2.0]"},
    {kMl, "TreeEnsemble",
     "T[2, 3], n_targets=1, nodes_featureids=[0], nodes_splits=T[1]{0.5}, nodes_modes=uint8[1]{0}, "
     "nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1], tree_roots=[0], "
     "leaf_targetids=[0, 0], leaf_weights=T[2]{1, 2}"},
    {kMl, "TreeEnsembleClassifier",
     "T[2, 3], classlabels_int64s=[0, 1], nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], "
     "nodes_featureids=[0, 0, 0], nodes_values=[0.5, 0.0, 0.0], nodes_modes=[\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], "
     "nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], class_treeids=[0, 0], class_nodeids=[1, 2], "
     "class_ids=[0, 1], class_weights=[1.0, 2.0] -> 2"},
    {kMl, "TreeEnsembleRegressor",
     "T[2, 3], n_targets=1, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], "
     "nodes_values=[0.5, 0.0, 0.0], nodes_modes=[\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], nodes_truenodeids=[1, 0, 0], "
     "nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], "
     "target_weights=[1.0, 2.0]"},
    {kMl, "ZipMap", "T[2, 3], classlabels_int64s=[1, 2, 3]"},
    {kMl, "ZipMap", "T[2, 3], classlabels_strings=[\"a\", \"b\", \"c\"]"},

    {kTraining, "Adagrad", "T[], int64[], T[2], T[2], T[2] -> 2"},
    {kTraining, "Adam", "T[], int64[], T[2], T[2], T[2], T[2] -> 3"},
    {kTraining, "Gradient", "T[2, 3], xs=[\"x0\"], y=\"x0\""},
    {kTraining, "Momentum",
     "T[], int64[], T[2], T[2], T[2], alpha=0.9, beta=1.0, mode=\"standard\", norm_coefficient=0.0 -> 2"},

    {kMs, "Attention", "T[1, 4, 8], T[8, 24], T[24], num_heads=2"},
    {kMs, "PackedAttention", "T[4, 8], T[8, 24], T[24], int32[2, 3], int32[3], num_heads=2"},
    {kMs, "PackedMultiHeadAttention", "T[4, 8], T[4, 8], T[4, 8], -, int32[2, 3], int32[3], num_heads=2"},
    {kMs, "DecoderMaskedMultiHeadAttention", "T[1, 1, 8], T[1, 1, 8], T[1, 1, 8], num_heads=2"},
    {kMs, "Tokenizer", "T[3], mark=0, mincharnum=1, pad_value=\"#\", separators=[\" \"]"},
    {kMs, "RelativePositionBias", "T[32, 2], int64[]{4}, int64[]{4}, max_distance=128"},
    {kMs, "GatedRelativePositionBias", "T[1, 4, 8], T[8], T[1, 2, 4, 4], T[4, 8], T[8], T[1, 2, 1, 1], num_heads=2"},
    {kMs, "ConvTransposeWithDynamicPads", "T[1, 3, 8, 8], T[3, 4, 3, 3], int64[4]{1, 1, 1, 1}"},
    {kMs, "GatedAdd", "T[2, 3], T[2, 3], T[2, 1]"},
    {kMs, "GemmaRotaryEmbedding", "float32[1, 4, 8], T[1, 2, 4, 8], T[1, 2, 4, 8], T[1, 2, 4, 8], T[1, 2, 4, 8] -> 2",
     "float16"},
    {kMs, "LongformerAttention",
     "T[1, 4, 8], T[8, 24], T[24], T[1, 4], T[8, 24], T[24], int32[1, 4], num_heads=2, window=1"},
    {kMs, "RemovePadding", "T[2, 4, 8], int32[2] -> 4"},
    {kMs, "RestorePadding", "T[5, 8], int32[2, 4]"},
    {kMs, "SparseAttention",
     "T[1, 4, 16], T[1, 4, 8], T[1, 4, 8], T[1, 2, 16, 4], T[1, 2, 16, 4], int32[1, 2]{0, 1}, int32[1, 1]{0}, "
     "int32[]{4}, "
     "int32[1], num_heads=4, kv_num_heads=2, sparse_block_size=16 -> 3"},
    {kMs, "MoE", "T[3, 8], T[3, 4], T[4, 16, 8], -, T[4, 8, 16], k=1, activation_type=\"relu\""},
    {kMs, "QMoE",
     "T[3, 8], T[3, 4], uint8[4, 16, 4], T[4, 16], -, uint8[4, 8, 8], T[4, 8], k=1, activation_type=\"relu\", "
     "expert_weight_bits=4"},
    {kMs, "CausalConvWithState", "T[1, 3, 8], T[3, 1, 4]"},
    {kMs, "CropAndResize", "T[1, 3, 8, 8], float32[2, 4], int32[2], int32[2]"},
    {kMs, "DynamicTimeWarping", "T[4, 6]"},
    {kMs, "DynamicQuantizeLSTM",
     "float32[5, 2, 3], T[1, 3, 16], T[1, 4, 16], -, -, -, -, -, float32[1], T[1], float32[1], T[1], hidden_size=4",
     "int8"},
    {kMs, "DynamicQuantizeMatMul", "T[2, 3], U[3, 4], float32[]", "float32 int8"},
    {kMs, "EmbedLayerNormalization", "int32[1, 4], -, T[10, 8], T[16, 8], -, T[8], T[8]"},
    {kMs, "QEmbedLayerNormalization",
     "int32[1, 4], -, T[10, 8], T[16, 8], -, T[8], T[8], -, float32[], float32[], -, float32[], float32[], T[], T[], "
     "-, "
     "T[], T[]",
     "uint8"},
    {kMs, "ExpandDims", "T[3], int32[]{0}"},
    {kMs, "FusedConv", "T[1, 3, 8, 8], T[4, 3, 3, 3], activation=\"Relu\""},
    {kMs, "FusedGemm", "T[2, 3], T[3, 4], T[4], activation=\"Relu\""},
    {kMs, "FusedMatMul", "T[2, 3], T[3, 4]"},
    {kMs, "FusedMatMulActivation", "T[2, 3], T[3, 4], activation=\"Relu\""},
    {kMs, "GatherBlockQuantized", "T[4, 32], int64[2], U[4, 2], block_size=16", "uint4 float32"},
    {kMs, "GatherND", "T[4, 3], U[2, 1]"},
    {kMs, "GemmFastGelu", "T[2, 3], T[3, 4], T[4]"},
    {kMs, "GridSample", "T[1, 3, 4, 4], U[1, 2, 2, 2]"},
    {kMs, "GroupNorm", "T[1, 3, 3, 4], U[4], U[4], groups=2, activation=0"},
    {kMs, "GroupQueryAttention",
     "T[1, 4, 16], T[1, 4, 8], T[1, 4, 8], -, -, int32[1], int32[]{4}, num_heads=4, kv_num_heads=2 -> 3"},
    {kMs, "Inverse", "T[3, 3]"},
    {kMs, "Irfft", "T[2, 5, 2], signal_ndim=1"},
    {kMs, "LinearAttention",
     "T[1, 4, 8], T[1, 4, 8], T[1, 4, 8], q_num_heads=2, kv_num_heads=2, update_rule=\"linear\""},
    {kMs, "MatMulBlockQuantizedFp8Weight", "T[2, 32], U[4, 32], float32[4, 2], block_size=16", "float16 float8_e4m3fn"},
    {kMs, "MatMulBnb4", "T[2, 32], uint8[64], T[8], K=32, N=4, block_size=16, quant_type=1"},
    {kMs, "MatMulInteger16", "T[2, 3], U[3, 4]", "int16 int16"},
    {kMs, "MatMulIntegerToFloat", "T[2, 3], U[3, 4], V[], V[]", "uint8 int8 float32"},
    {kMs, "MatMulNBits", "T[2, 32], uint8[4, 2, 8], T[4, 2], K=32, N=4, bits=4, block_size=16"},
    {kMs, "MulInteger", "T[2, 3], T[], T[2, 3]", "uint8"},
    {kMs, "MultiHeadAttention", "T[1, 4, 8], T[1, 4, 8], T[1, 4, 8], num_heads=2"},
    {kMs, "NhwcConv", "T[1, 8, 8, 3], T[4, 3, 3, 3]"},
    {kMs, "NhwcFusedConv", "T[1, 8, 8, 3], T[4, 3, 3, 3], activation=\"Relu\""},
    {kMs, "NhwcMaxPool", "T[1, 8, 8, 3], kernel_shape=[2, 2]"},
    {kMs, "Pad", "T[2, 3], int64[4]{0, 1, 0, 1}"},
    {kMs, "QAttention", "T[1, 4, 8], U[8, 24], float32[24], float32[], float32[], num_heads=2", "uint8 int8"},
    {kMs, "QGemm", "T[2, 3], float32[], T[], U[3, 4], float32[], U[]", "uint8 int8"},
    {kMs, "QLinearAdd", "T[2, 3], float32[], T[], T[2, 3], float32[], T[], float32[], T[]", "uint8"},
    {kMs, "QLinearAveragePool", "T[1, 3, 8, 8], float32[], T[], float32[], T[], kernel_shape=[2, 2]", "uint8"},
    {kMs, "QLinearConcat", "float32[], T[], T[2, 3], float32[], T[], T[2, 3], float32[], T[], axis=0", "uint8"},
    {kMs, "QLinearConv", "T[1, 3, 8, 8], float32[], T[], U[4, 3, 3, 3], float32[], U[], float32[], T[]", "uint8 int8"},
    {kMs, "QLinearGlobalAveragePool", "T[1, 3, 4, 4], float32[], T[], float32[], T[]", "uint8"},
    {kMs, "QLinearLeakyRelu", "T[2, 3], float32[], T[], float32[], T[]", "uint8"},
    {kMs, "QLinearMul", "T[2, 3], float32[], T[], T[2, 3], float32[], T[], float32[], T[]", "uint8"},
    {kMs, "QLinearReduceMean", "T[2, 3], float32[], T[], float32[], T[], axes=[1], keepdims=1", "uint8"},
    {kMs, "QLinearSigmoid", "T[2, 3], float32[], T[], float32[], T[]", "uint8"},
    {kMs, "QLinearSoftmax", "T[2, 3], float32[], T[], float32[], T[], opset=13", "uint8"},
    {kMs, "QLinearWhere", "bool[2, 3], T[2, 3], float32[], T[], T[2, 3], float32[], T[], float32[], T[]", "uint8"},
    {kMs, "QuantizeLinear", "T[2, 3], T[], U[]", "float32 uint8"},
    {kMs, "DequantizeLinear", "T[2, 3], U[], T[]", "int8 float32"},
    {kMs, "Range", "T[], T[], T[]"},
    {kMs, "ReduceSumInteger", "T[2, 3], axes=[1], keepdims=1", "uint8"},
    {kMs, "RotaryEmbedding", "T[1, 2, 4, 8], int64[1, 4], T[16, 4], T[16, 4]"},
    {kMs, "SimplifiedLayerNormalization", "T[2, 3], T[3]"},
    {kMs, "SkipGroupNorm", "T[1, 3, 3, 4], U[4], U[4], T[1, 3, 3, 4], groups=2, activation=0"},
    {kMs, "SkipLayerNormalization", "T[1, 2, 4], T[1, 2, 4], T[4]"},
    {kMs, "SkipSimplifiedLayerNormalization", "T[1, 2, 4], T[1, 2, 4], T[4]"},
    {kMs, "TorchEmbedding", "T[4, 3], U[2]"},
    {kMs, "TransposeMatMul", "T[2, 3], T[3, 4]"},
    {kMs, "UnfoldTensor", "T[2, 8], dim=1, size=4, step=2"},
    {kMs, "Unique", "T[6] -> 3"},
};

// The examples of the other operators: tensors of one shape.
std::vector<OnnxExample> plain_examples(int inputs) {
  std::vector<OnnxExample> result;
  for (const char* tensor : {"T[2, 3]", "T[2, 3, 4, 4]", "T[]", "T[4]"})
    result.push_back({joined(std::vector<std::string>(static_cast<size_t>(inputs), tensor))});
  return result;
}

}  // namespace

std::vector<OnnxForms> onnx_forms() {
  std::map<std::pair<std::string, std::string>, OnnxForms> operators;
  for (const onnx_import::ConverterRow& row : onnx_import::all_converters()) {
    OnnxForms& forms = operators[{row.domain, std::string(row.op_type)}];
    if (forms.since.empty() || row.since > forms.since.back()) forms.examples = plain_examples(row.least_inputs);
    forms.domain = row.domain, forms.name = row.op_type, forms.why_refused = row.why_refused;
    forms.since.insert(std::ranges::upper_bound(forms.since, row.since), row.since);
  }
  std::map<std::pair<std::string, std::string>, std::vector<OnnxExample>> given;
  for (const auto& [domain, name, operands, dtypes] : kExamples) {
    OnnxExample& example = given[{domain, name}].emplace_back(OnnxExample{operands});
    char variable = 'T';
    for (std::string_view dtype : parts_of(dtypes, ' ')) example.dtypes[variable++] = parse_dtype(dtype).value();
  }
  std::vector<OnnxForms> result;
  for (auto& [key, forms] : operators) {
    if (const auto* examples = find_value(given, key)) forms.examples = *examples;
    result.push_back(std::move(forms));
  }
  return result;
}

}  // namespace relaxc
