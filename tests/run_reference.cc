#include "tests/run_reference.h"

#include <algorithm>

#include "codegen/compile.h"
#include "ir/visit.h"

namespace relaxc::test {

std::optional<std::vector<Tensor>> run_reference(const IRModule& module, const std::vector<Tensor>& inputs) {
  const Function& main = *module.functions.at("main").as<Function>();
  const Call* call = nullptr;
  walk(main.body, [&](const Call& found) { call = &found; });
  const OpRow* row = call ? op_table().find(call->callee.as<OpRef>()->name) : nullptr;
  if (!row || !row->reference) return std::nullopt;
  ReferenceCall view{*call, {}};
  auto add = [&](const Expr& arg) {
    if (const Constant* constant = arg.as<Constant>()) view.x.push_back(constant->data);
    for (size_t i = 0; i < main.params.size(); ++i) {
      if (same_node(arg, main.params[i])) view.x.push_back(inputs.at(i));
    }
  };
  for (const Expr& arg : call->args) {
    add(arg);
    if (const Tuple* several = arg.as<Tuple>()) std::for_each(several->items.begin(), several->items.end(), add);
  }
  return row->reference(view);
}

}  // namespace relaxc::test
