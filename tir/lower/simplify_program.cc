#include "tir/lower/lower.h"

namespace relaxc {

PrimFuncRef simplify_program(const PrimFuncRef& function) {
  return with_body(function, simplify(function->body, facts_of_params(function)));
}

}  // namespace relaxc
