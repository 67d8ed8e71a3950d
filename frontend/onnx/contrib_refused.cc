// Operators of com.microsoft that are refused by name, with the reason and the remedy. Those that make sense in a model
// that is compiled ahead have a converter. Of other domains the reason is that of the domain.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

std::string why_domain_is_unknown(std::string_view domain) {
  struct Domain {
    std::string_view prefix, why;
  };
  constexpr std::string_view kOptimized =
      "ONNX Runtime's optimizer writes this domain for one kind of machine; compile the model that was optimized, not "
      "the result";
  constexpr Domain kDomains[] = {
      {"com.microsoft.nchwc", kOptimized},
      {"com.ms.internal.nhwc", kOptimized},
      {"com.microsoft.dml", kOptimized},
      {"ai.onnx.preview.training", "it belongs to a training loop; compile the model that the loop trains"},
      {"ai.onnx.contrib",
       "it is one of ONNX Runtime Extensions, which prepare texts and images; export the model without this step, and "
       "do it in your program"},
      {"org.pytorch.aten",
       "PyTorch's exporter had no ONNX operator for it; export with a newer opset or exporter, or rewrite this call in "
       "the model"},
      {"pkg.", "the functions of this domain come with the model, and this model does not define it; export it again"},
  };
  for (const Domain& known : kDomains) {
    if (domain.starts_with(known.prefix)) return std::string(known.why);
  }
  return "";
}

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
      {"keeps its weights in the layout of one kernel for GPUs; export the model with MatMulNBits, or with "
       "DequantizeLinear of float4e2m1 in blocks",
       {"MatMulBlockQuantizedFp4Weight"}},
      {"was written for the models of one product and has no specification; export the model with operators of ai.onnx "
       "(LSTM and Attention, Conv and ReduceMax, or MaxPool of Where(mask, x, lowest))",
       {"AttnLSTM", "MaxpoolWithMask", "WordConvEmbedding"}},
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
