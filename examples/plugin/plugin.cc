// The entry of the plug-in: adds an operator, a pass and a lowering step to the compiler's tables.
#include "example.h"

#include <relaxc/plugin.h>

RELAXC_PLUGIN(tables) {
  add_operator(tables);
  add_pass(tables);
  add_lowering_step(tables);
}
