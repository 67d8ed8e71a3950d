// Operators of com.microsoft that are refused by name, with the reason and the remedy. Those that make sense in a model
// that is compiled ahead have a converter.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

std::vector<ConverterRow> contrib_refused_converters() {
  struct Group {
    const char* why;
    std::vector<const char*> operators;
  };
  static const std::vector<Group> kGroups = {
      {"generates text in a loop around the decoder; export the decoder as a model and call it for each token from "
       "your "
       "program",
       {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"}},
      {"belongs to the loop that generates text around a decoder; do this step in your program",
       {"BifurcationDetector", "NGramRepeatBlock"}},
      {"is a form of Attention that ONNX Runtime writes for its own loops and fusions on GPUs; export the model "
       "without "
       "these",
       {"DecoderAttention", "DecoderMaskedSelfAttention"}},
      {"keeps its keys and values in pages that a server of models manages; export the model with past and present "
       "keys "
       "and values, or with GroupQueryAttention",
       {"PagedAttention"}},
      {"orders int8 matrices as cuBLASLt does on GPUs; quantize the model with QuantizeLinear and DequantizeLinear",
       {"DequantizeWithOrder", "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization",
        "QOrderedLongformerAttention", "QOrderedMatMul", "QuantizeWithOrder"}},
      {"has numbers in a format of one accelerator; quantize the model with QuantizeLinear and DequantizeLinear",
       {"DequantizeBFP", "MatMulFpQ4", "QuantizeBFP"}},
      {"holds a program for another compiler; export the model without it", {"EPContext", "Snpe"}},
      {"is written by ONNX Runtime's optimizer for GPUs; compile the model that was optimized, not the result",
       {"GemmFloat8", "MatMulNBitsMlp", "MatMulNBitsQkv"}},
      {"has a sparse operand, and there are no values of sparse tensors; store the operand as a dense tensor",
       {"SparseToDenseMatMul"}},
      {"packs the mask of a dropout into bits for training; export the model for inference",
       {"BitmaskBiasDropout", "BitmaskDropout"}},
  };
  std::vector<ConverterRow> rows;
  for (const Group& group : kGroups) {
    for (const char* name : group.operators) rows.push_back(refused_row(name, 1, group.why));
  }
  return in_domain("com.microsoft", rows);
}

}  // namespace relaxc::onnx_import
