// Expects and guarantees what fold_constants does, except for weights in 8 bits, and numbers that are dequantized,
// which stay as the model holds them: integer_regions and backends compute with them.
#include "passes/fold_constants.h"

namespace relaxc {

IRModule fold_parameters(IRModule module, PassContext& context) { return fold(std::move(module), context, true); }

}  // namespace relaxc
