#pragma once
#include "tir/target.h"

namespace relaxc {

// Returns the patches in a register tile of Winograd's products with weights in that many vectors of filters.
int64_t patches_in_tile(int64_t vectors, const Target& target);

}  // namespace relaxc
