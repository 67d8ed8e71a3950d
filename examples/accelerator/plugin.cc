// The plug-in: what the compiler has to know of the matrix unit.
#include "accelerator.h"

RELAXC_PLUGIN(tables) {
  mxu::add_operators(tables);
  mxu::add_claim(tables);
  tables.add_schedules(
#include "mxu_schedules.inc"
      , "mxu.py");
  mxu::add_instructions(tables);
  tables.add_library(MXU_RUNTIME);
}
