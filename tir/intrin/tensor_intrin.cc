#include "tir/intrin/tensor_intrin.h"

#include "ir/arith.h"
#include "ir/visit.h"
#include "support/diagnostic.h"

namespace relaxc {

void TensorIntrins::add(TensorIntrin intrin) {
  std::vector<Buffer> described = buffer_params(intrin.description), implemented = buffer_params(intrin.implementation);
  for (const PrimFuncRef& program : {intrin.description, intrin.implementation}) {
    if (program->params.size() != buffer_params(program).size())
      fail(program.span(), "intrinsic '{}': its params are buffers, no scalars", intrin.name);
  }
  if (described.size() != implemented.size())
    fail(intrin.implementation.span(), "intrinsic '{}': the description has {} buffers, the implementation {}",
         intrin.name, described.size(), implemented.size());
  for (size_t i = 0; i < described.size(); ++i) {
    const BufferType &a = buffer_type(described[i]), &b = buffer_type(implemented[i]);
    bool same = a.dtype == b.dtype && a.shape.size() == b.shape.size();
    for (size_t d = 0; same && d < a.shape.size(); ++d) same = Analyzer().can_prove_equal(a.shape[d], b.shape[d]);
    if (!same)
      fail(implemented[i].span(), "intrinsic '{}': buffer '{}' has another dtype or shape than '{}' of the description",
           intrin.name, implemented[i]->name, described[i]->name);
  }
  auto stores = [](const PrimFuncRef& program, const Buffer& buffer) {
    bool found = false;
    walk(program->body, [&](const BufferStore& store) { found = found || same_node(store.buffer, buffer); });
    return found;
  };
  for (size_t i = 0; i < described.size(); ++i) {
    if (stores(intrin.implementation, implemented[i]) && !stores(intrin.description, described[i]))
      fail(implemented[i].span(), "intrinsic '{}': the implementation writes '{}', the description only reads it",
           intrin.name, implemented[i]->name);
  }
  std::string name = intrin.name;
  rows_.insert_or_assign(std::move(name), std::move(intrin));
}

const TensorIntrin* TensorIntrins::find(std::string_view name) const {
  auto it = rows_.find(name);
  return it == rows_.end() ? nullptr : &it->second;
}

std::vector<std::string> TensorIntrins::names() const {
  std::vector<std::string> result;
  for (const auto& [name, row] : rows_) result.push_back(name);
  return result;
}

}  // namespace relaxc
