#include "tir/primitives/enter_postproc.h"

namespace relaxc {

using namespace scheduling;

// Marks the place in the trace; replays may stop here.
void EnterPostproc::apply(Step&) const {}

}  // namespace relaxc
