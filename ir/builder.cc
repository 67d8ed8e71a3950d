#include "ir/builder.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ir/sequence.h"

namespace relaxc {

bool is_leaf(const Expr& expr) {
  if (const Tuple* tuple = expr.as<Tuple>()) return std::ranges::all_of(tuple->items, is_leaf);
  if (expr.type().is<PrimType>()) return !expr.is<Call>() || ops::is_tir_op(op_name(expr));
  return expr.is<Var>() || expr.is<Constant>() || expr.is<ShapeExpr>() || expr.is<GlobalVar>() || expr.is<OpRef>() ||
         expr.is<ExternFunc>() || expr.is<StringImm>() || expr.is<DTypeImm>();
}

void Builder::keep(Binding binding) {
  if (blocks_.empty() || blocks_.back().dataflow != in_dataflow_) blocks_.push_back({in_dataflow_, {}, {}});
  blocks_.back().bindings.push_back(std::move(binding));
  ++size_;
}

Expr Builder::leaf(const Expr& value) { return is_leaf(value) ? value : emit(value); }

VarRef Builder::emit(Expr value, std::string hint) {
  if (hint.empty()) {
    const std::string& op = op_name(value);
    hint = op.empty() ? "v" : op.substr(op.rfind('.') + 1);
  }
  VarRef var = make_var(std::move(hint), value.type(), span_);
  keep({std::move(value), std::nullopt, var});
  return var;
}

VarRef Builder::match_cast(Expr value, Type type, std::string hint) {
  VarRef var = make_var(hint.empty() ? "v" : std::move(hint), type, span_);
  keep({leaf(value), std::move(type), var});
  return var;
}

Expr Builder::op(std::string name, std::vector<Expr> args, Attrs attrs, std::string hint) {
  name = ops::full_name(std::move(name));
  for (Expr& arg : args) arg = leaf(arg);
  const OpRow* row = ops_.find(name);
  Call payload{op_ref(std::move(name)), std::move(args), std::move(attrs), {}};
  if (row) payload = normalize_call(*row, std::move(payload));
  Type type = infer_call_type(payload, span_, ops_);
  return emit(make(std::move(payload), type, span_), std::move(hint));
}

std::vector<Binding> Builder::since(size_t first) const {
  std::vector<Binding> result;
  for (auto block = blocks_.rbegin(); result.size() < size_ - first; ++block) {
    auto taken = std::min(block->bindings.size(), size_ - first - result.size());
    result.insert(result.begin(), block->bindings.end() - static_cast<int64_t>(taken), block->bindings.end());
  }
  return result;
}

void Builder::begin_dataflow() {
  in_dataflow_ = true;
  blocks_.push_back({true, {}, {}});
}
void Builder::end_dataflow(std::vector<VarRef> outputs) {
  RELAXC_CHECK(in_dataflow_ && !blocks_.empty());
  blocks_.back().outputs = std::move(outputs);
  in_dataflow_ = false;
}

Expr with_dataflow_outputs(const Expr& seq) {
  return rewrite_blocks(seq, [](const BindingBlock& block, const VarSet&) { return block.bindings; });
}

Expr Builder::finish(const Expr& body) {
  Expr result = leaf(body);
  in_dataflow_ = false;
  return with_dataflow_outputs(seq_expr(std::move(blocks_), result, span_));
}

}  // namespace relaxc
