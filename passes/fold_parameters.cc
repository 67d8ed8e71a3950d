// Expects and guarantees what fold_constants does, except for weights in 8 bits, which stay as the model holds them:
// backends compute with them. It takes the place of the first fold_constants where a backend is loaded.
#include "passes/fold_constants.h"

namespace relaxc {

IRModule fold_parameters(IRModule module, PassContext& context) { return fold(std::move(module), context, true); }

}  // namespace relaxc
