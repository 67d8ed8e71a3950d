// Expects: operators on leaves. Guarantees: a pure operator whose arguments are all constants is a constant, unless its
// result is much larger than they are (a broadcast or fill stays code).
#include "passes/graph.h"

namespace relaxc {

namespace {

bool is_constant(const Expr& arg) {
  if (const Tuple* items = arg.as<Tuple>()) {
    for (const Expr& item : items->items) {
      if (!is_constant(item)) return false;
    }
    return true;
  }
  if (const ShapeExpr* shape = arg.as<ShapeExpr>()) {
    for (const Expr& dim : shape->values) {
      if (!dim.is<IntImm>()) return false;
    }
    return true;
  }
  return arg.is<Constant>() || arg.is<IntImm>() || arg.is<FloatImm>() || arg.is<DTypeImm>() || arg.is<StringImm>();
}

// Bytes of a tensor of constant shape; nullopt when it is not one.
std::optional<int64_t> bytes_of(const Type& type) {
  const std::vector<Expr>* shape = known_shape(type);
  std::optional<DType> dtype = tensor_dtype(type);
  if (!shape || !dtype || !type.is<TensorType>()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Expr& dim : *shape) {
    auto known = as_int(dim);
    if (!known) return std::nullopt;
    dims.push_back(*known);
  }
  auto count = element_count(dims);
  return count ? std::optional(*count * dtype->bytes()) : std::nullopt;
}

int64_t constant_bytes(const Expr& arg) {
  if (const Constant* constant = arg.as<Constant>()) return constant->data.bytes();
  int64_t total = 0;
  if (const Tuple* items = arg.as<Tuple>()) {
    for (const Expr& item : items->items) total += constant_bytes(item);
  }
  return total;
}

// Collects the foldable bindings: first run finds what to compute, second puts the results in.
class Folder final : public GraphRewriter {
 public:
  Folder(const OpTable& ops, int64_t limit) : GraphRewriter(ops), limit_(limit) {}
  std::vector<Binding> todo;                            // in order, closed
  std::unordered_map<const NodeHeader*, Expr> results;  // variable -> constant

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder&) override {
    if (auto it = results.find(binding.var.get()); it != results.end()) return it->second;
    if (!results.empty() || binding.cast) return std::nullopt;
    const Call* node = binding.value.as<Call>();
    const OpRow* row = ops_.find(op_name(binding.value));
    bool runs = row && (row->legalize || row->name == "relax.reshape" || row->name == "relax.check_indices");
    if (!node || !runs || !row->pure) return std::nullopt;
    int64_t operand_bytes = 0;
    for (const Expr& arg : node->args) {
      if (!is_constant(arg) && !known(arg)) return std::nullopt;
      operand_bytes += constant_bytes(arg);
      if (auto it = computed_.find(arg.get()); it != computed_.end()) operand_bytes += it->second;
    }
    auto bytes = bytes_of(binding.value.type());
    if (!bytes) return std::nullopt;
    if (*bytes > 4 * operand_bytes + 65536 || *bytes - operand_bytes > limit_) return std::nullopt;
    todo.push_back(binding);
    computed_.emplace(binding.var.get(), *bytes);
    return std::nullopt;
  }

 private:
  bool known(const Expr& arg) const {
    if (arg.is<Var>()) return computed_.contains(arg.get());
    const Tuple* items = arg.as<Tuple>();
    if (!items) return false;
    for (const Expr& item : items->items) {
      if (!is_constant(item) && !known(item)) return false;
    }
    return true;
  }
  int64_t limit_;
  std::unordered_map<const NodeHeader*, int64_t> computed_;  // bytes
};

}  // namespace

IRModule fold_constants(IRModule module, PassContext& context) {
  if (!context.evaluate) return module;
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    Folder folder(context.ops, context.fold_limit);
    folder.run(function);
    if (folder.todo.empty()) return function;
    // Only what someone outside of the folded bindings uses has to come back.
    std::unordered_set<const NodeHeader*> inside, wanted;
    for (const Binding& binding : folder.todo) inside.insert(binding.var.get());
    auto want = [&](const NodeRef& node) {
      for (const VarRef& var : free_vars(node)) wanted.insert(var.get());
    };
    for_each_binding(function, [&](const Binding& binding) {
      if (!inside.contains(binding.var.get())) want(binding.value);
      if (binding.value.is<If>()) {
        want(binding.value.as<If>()->then_branch.as<SeqExpr>()->body);
        want(binding.value.as<If>()->else_branch.as<SeqExpr>()->body);
      }
    });
    want(function->body.as<SeqExpr>()->body);
    std::vector<VarRef> outputs;
    for (const Binding& binding : folder.todo) {
      if (wanted.contains(binding.var.get())) outputs.push_back(binding.var);
    }
    if (outputs.empty()) return function;
    std::vector<Expr> items(outputs.begin(), outputs.end());
    Expr result = tuple(items);
    VarRef result_var = make_var("result", result.type());
    std::vector<BindingBlock> blocks = {{true, folder.todo, {}}, {false, {{result, std::nullopt, result_var}}, {}}};
    IRModule closed;
    Expr body = with_dataflow_outputs(seq_expr(std::move(blocks), result_var));
    closed.functions.emplace("main", make_function({{}, body, result.type(), true, Attrs{{"global_symbol", "main"}}}));
    std::vector<Tensor> values = context.evaluate(closed);
    CHECK(values.size() == outputs.size(), "{} constants for {} bindings", values.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      folder.results.emplace(outputs[i].get(), constant(values[i], outputs[i].span()));
    return folder.run(function);
  });
}

}  // namespace relaxc
