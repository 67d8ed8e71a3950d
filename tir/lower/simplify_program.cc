#include "tir/lower/lower.h"

namespace relaxc {

// Simplifies the program with the dims of the buffers and the loop ranges as facts.
PrimFuncRef simplify_program(const PrimFuncRef& function) {
  return with_body(function, simplify(function->body, facts_of_params(function)));
}

}  // namespace relaxc
