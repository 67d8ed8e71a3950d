#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

// Marks the place in the trace; replays may stop here.
void Schedule::enter_postproc() {
  Step step(*this, PrimitiveId::k_enter_postproc);
  step.done();
}

}  // namespace relaxc
