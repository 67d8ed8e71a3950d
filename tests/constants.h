// Modules whose main takes its weights as params, for tests to fill in.
#pragma once
#include "ir/module.h"
#include "ir/visit.h"

namespace relaxc::test {

// Params of main from the second on become these constants.
inline IRModule with_constants(IRModule module, const std::vector<Tensor>& tensors) {
  Function main = *module.graph_function("main");
  VarMap constants;
  for (size_t i = 0; i < tensors.size(); ++i) constants.emplace(main.params[i + 1].get(), constant(tensors[i]));
  main.params.erase(main.params.begin() + 1, main.params.begin() + 1 + static_cast<ptrdiff_t>(tensors.size()));
  main.body = substitute(main.body, constants);
  module.functions.at("main") = make_function(std::move(main));
  return module;
}

}  // namespace relaxc::test
