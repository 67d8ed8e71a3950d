#include "passes/graph_rewriter.h"

#include "ir/op_names.h"
#include "ir/type_relation.h"
#include "ops/attributes.h"
#include "support/diagnostic.h"
#include "support/lists.h"

namespace relaxc {

FunctionRef GraphRewriter::run(const FunctionRef& function) {
  replaced_ = Substitution();
  Expr body = sequence(function->body);
  if (same_node(body, function->body)) return function;
  Function copy = *function;
  copy.body = body;
  copy.result = replaced_(function->result);
  return make_function(std::move(copy), function.span());
}

Expr GraphRewriter::sequence(const Expr& seq) {
  const SeqExpr* node = seq.as<SeqExpr>();
  RELAXC_CHECK(node, "a function body or branch is a sequence of bindings");
  Builder builder(ops_);
  bool changed = false;
  for (const BindingBlock& block : node->blocks) {
    bool dataflow = block.dataflow && keeps_dataflow();
    changed = changed || dataflow != block.dataflow;
    if (dataflow) builder.begin_dataflow();
    for (const Binding& original : block.bindings) {
      in_dataflow_ = dataflow;
      changed = binding(original, builder) || changed;
    }
    if (dataflow) builder.end_dataflow({});
  }
  Expr body = replaced_(node->body);
  return changed || !same_node(body, node->body) ? builder.finish(body) : seq;
}

// Returns whether the builder has anything but the unchanged binding.
bool GraphRewriter::binding(const Binding& original, Builder& builder) {
  builder.set_span(original.var.span());
  Binding binding = original;
  binding.value = value(original.value);
  // Dims in the variable's type are replaced, too; the variable keeps its name until visit() decides.
  binding.var = replaced_.var(original.var);
  if (binding.cast) binding.cast = replaced_(*binding.cast);
  bool changed = !same_node(binding.value, original.value) || !same_node(binding.var, original.var) ||
                 (binding.cast && !same_node(*binding.cast, *original.cast));
  size_t size = builder.size();
  std::optional<Expr> replacement = visit(binding, builder);
  changed = changed || replacement || builder.size() != size;
  if (!replacement) {
    builder.keep(std::move(binding));
    return changed;
  }
  Expr leaf = is_leaf(*replacement) ? *replacement : Expr(builder.emit(*replacement, original.var->name));
  replaced_.add(original.var, leaf);
  replaced_.add(binding.var, leaf);
  return changed;
}

Expr GraphRewriter::scoped(const Expr& seq) {
  enter_scope();
  Expr result = sequence(seq);
  leave_scope();
  return result;
}

Expr GraphRewriter::value(const Expr& value) {
  if (auto function = try_cast<Function>(value)) return local_function(*function);
  if (!value.is<If>()) return replaced_(value);
  Expr mapped = map_sequences(value, [&](const Expr& seq) { return scoped(seq); });
  If branch = *mapped.as<If>();
  Expr condition = replaced_(branch.condition);
  if (same_node(condition, branch.condition)) return mapped;
  branch.condition = condition;
  return make(std::move(branch), value.type(), value.span());
}

Expr GraphRewriter::local_function(const FunctionRef& function) {
  Function copy = *function;
  bool changed = false;
  for (VarRef& param : copy.params) {
    VarRef renamed = replaced_.var(param);
    changed = changed || !same_node(renamed, param);
    param = renamed;
  }
  copy.body = scoped(function->body);
  copy.result = replaced_(function->result);
  changed = changed || !same_node(copy.body, function->body) || !same_node(copy.result, function->result);
  return changed ? make_function(std::move(copy), function.span()) : function;
}

Expr reshape(const Expr& x, std::vector<Expr> dims, Builder& builder, std::string hint) {
  return builder.op("reshape", {x, shape_expr(std::move(dims))}, Attrs{}, std::move(hint));
}
Expr pad_axis(const Expr& x, size_t axis, int64_t amount, Builder& builder) {
  if (amount == 0) return x;
  std::vector<int64_t> widths(2 * known_shape(x.type())->size(), 0);
  widths[2 * axis + 1] = amount;
  return builder.op("nn.pad", {x}, PadAttrs{.pad_width = widths});
}

Expr permute_dims(const Expr& x, std::vector<int64_t> axes, Builder& builder) {
  return builder.op("permute_dims", {x}, Attrs{{"axes", to_attr(axes)}});
}

std::optional<Expr> with_better_type(const Expr& call, const Type& declared, const OpTable& ops) {
  if (!ops.find(op_name(call))) return std::nullopt;
  const Call& node = *call.as<Call>();
  Type known = infer_call_type(node, call.span(), ops);
  bool is_better = fits(declared, known) == Verdict::kProven && fits(known, declared) != Verdict::kProven;
  return is_better ? std::optional<Expr>(make(Call(node), known, call.span())) : std::nullopt;
}

VarSet used_outside(const FunctionRef& function, const std::function<bool(const Binding&)>& is_inside) {
  VarSet used;
  auto add_result = [&](const Expr& seq) {
    add_free_vars(cast<SeqExpr>(seq)->body, used);
    return seq;
  };
  for_each_binding(function->body, [&](const Binding& binding) {
    if (is_inside(binding)) return;
    const If* branch = binding.value.as<If>();
    if (!binding.value.is<Function>()) add_free_vars(branch ? branch->condition : binding.value, used);
    map_sequences(binding.value, add_result);
  });
  add_result(function->body);
  return used;
}

IRModule map_functions(IRModule module, const std::function<FunctionRef(const FunctionRef&, IRModule&)>& fn) {
  const std::map<std::string, Expr> before = module.functions;
  for (const auto& [name, function] : before) {
    if (auto graph = try_cast<Function>(function)) module.functions.insert_or_assign(name, fn(*graph, module));
  }
  return module;
}

IRModule map_functions(IRModule module, const std::function<FunctionRef(const FunctionRef&)>& fn) {
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule&) { return fn(function); });
}

namespace {

// Returns the element of a one-element constant as an immediate; nullopt for dtypes that have none.
std::optional<Expr> as_immediate(const Expr& tensor) {
  const Constant* constant = tensor.as<Constant>();
  if (!constant || constant->data.size() != 1) return std::nullopt;
  DType dtype = constant->data.dtype();
  if (dtype.is_float()) return float_imm(constant->data.as_double(0), dtype);
  if (dtype.is_integral() || dtype.is_bool()) return int_imm(constant->data.as_int(0), dtype);
  return std::nullopt;
}

PrimFuncRef inline_scalar_constants(const PrimFuncRef& program, std::vector<Expr>& tensors) {
  VarMap values;
  PrimFunc copy = *program;
  copy.params.clear();
  std::vector<Expr> rest;
  size_t next = 0;
  for (const VarRef& param : program->params) {
    bool is_input = param.type().is<BufferType>() && next < tensors.size();
    auto value = is_input ? as_immediate(tensors[next]) : std::nullopt;
    if (value) {
      values.emplace(param.get(), *value);
    } else {
      copy.params.push_back(param);
      if (is_input) rest.push_back(tensors[next]);
    }
    next += is_input;
  }
  if (values.empty()) return program;
  tensors = std::move(rest);
  copy.body = rewrite(
      program->body, [&](const Ref<BufferLoad>& load) { return copy_value(values, load->buffer.get()); },
      [&](const Ref<Block>& block) -> std::optional<Stmt> {
        Block cleaned = *block;
        std::erase_if(cleaned.reads, [&](const BufferRegion& region) { return values.contains(region.buffer.get()); });
        if (cleaned.reads.size() == block->reads.size()) return std::nullopt;
        return make(std::move(cleaned), block.span());
      });
  return make_prim_func(std::move(copy), program.span());
}

}  // namespace

Expr add_program(IRModule& module, const std::string& name, const PrimFuncRef& program) {
  const std::string unique = module.fresh_name(name);
  module.functions.emplace(unique, program);
  return global_var(unique, program.type());
}

Expr make_call_tir(IRModule& module, std::string name, PrimFuncRef program, std::vector<Expr> tensors,
                   std::vector<Type> outputs, const Span& span) {
  program = inline_scalar_constants(program, tensors);
  // Dims that no buffer gives become scalar params, in order of use; the arguments are in the graph's terms.
  NamedDims named = name_dims(program);
  std::vector<Expr> scalars;
  PrimFunc copy = *named.program;
  for (const VarRef& var : free_vars(named.program)) {
    RELAXC_CHECK(var.type().is<PrimType>(), "tensor program '{}' uses '{}', which is not a dim", name, var->name);
    copy.params.push_back(var);
    scalars.push_back(copy_value(named.values, var.get()).value_or(var));
  }
  program = with_fresh_variables(make_prim_func(std::move(copy), span));
  std::vector<Expr> args = {add_program(module, name, program), tuple(std::move(tensors))};
  if (!scalars.empty()) args.push_back(shape_expr(std::move(scalars)));
  Type type = outputs.size() == 1 ? outputs[0] : tuple_type(outputs);
  return call(op_ref(ops::kCallTir), std::move(args), {}, type, span, std::move(outputs));
}

std::optional<KernelCall> as_spread_kernel_call(const Expr& value, const IRModule& module) {
  std::optional<KernelCall> kernel = as_kernel_call(value, module);
  if (!kernel || kernel->has_destinations) return kernel;
  const Call& node = *value.as<Call>();
  if (!node.args[1].is<Tuple>())
    fail(value.span(), "{}: a tuple value as an argument; run spread_tuples before", op_name(value));
  if (node.args.size() > 2 && !node.args[2].is<ShapeExpr>())
    fail_unsupported(value.span(), "{}: the scalar arguments are a shape value, expected R.shape([...])",
                     op_name(value));
  return kernel;
}

}  // namespace relaxc
