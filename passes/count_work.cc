// Expects: tensor programs before their schedules, which may compute things twice. Guarantees: each has the formulas of
// its work as an attribute, which is kept to the bytecode.
#include "ir/attr_names.h"
#include "passes/pass.h"
#include "tir/analysis/work.h"
#include "tir/rules/versions.h"

namespace relaxc {

PrimFuncRef count_work(const std::string&, const PrimFuncRef& program, const PassContext&) {
  const auto versions = versions_by_dims(program);
  Work work = work_of(versions ? versions->general : program);
  PrimFunc function = *program;
  function.attrs.set(attr_names::kWork, Attrs{{"operations", work.operations}, {"accesses", to_attr(work.accesses)}});
  return make_prim_func(std::move(function), program.span());
}

}  // namespace relaxc
