#include "passes/graph.h"

#include <algorithm>

#include "passes/name_dims.h"
#include "support/diagnostic.h"

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
  CHECK(node, "a function body or branch is a sequence of bindings");
  Builder builder(ops_);
  bool changed = false;
  for (const BindingBlock& block : node->blocks) {
    if (block.dataflow) builder.begin_dataflow();
    for (const Binding& original : block.bindings) {
      builder.set_span(original.var.span());
      Binding binding = original;
      if (const If* choice = original.value.as<If>()) {
        Expr condition = replaced_(choice->condition);
        binding.value = make(If{condition, branch(choice->then_branch), branch(choice->else_branch)},
                             original.value.type(), original.value.span());
      } else {
        binding.value = replaced_(original.value);
      }
      // Dims in the variable's own type follow; a replaced variable keeps its old name until visit() decides.
      binding.var = replaced_.var(original.var);
      if (binding.cast) binding.cast = replaced_(*binding.cast);
      size_t size = builder.size();
      std::optional<Expr> replacement = visit(binding, builder);
      changed = changed || replacement || builder.size() != size || !same_node(binding.value, original.value) ||
                !same_node(binding.var, original.var) || (binding.cast && !same_node(*binding.cast, *original.cast));
      if (!replacement) {
        builder.keep(std::move(binding));
        continue;
      }
      Expr leaf = is_leaf(*replacement) ? *replacement : Expr(builder.emit(*replacement, original.var->name));
      replaced_.add(original.var, leaf);
      replaced_.add(binding.var, leaf);
    }
    if (block.dataflow) builder.end_dataflow({});
  }
  Expr body = replaced_(node->body);
  return changed || !same_node(body, node->body) ? builder.finish(body) : seq;
}

Expr GraphRewriter::branch(const Expr& seq) {
  enter_branch();
  Expr result = sequence(seq);
  leave_branch();
  return result;
}

IRModule map_functions(IRModule module, const std::function<FunctionRef(const FunctionRef&)>& fn) {
  std::vector<std::pair<std::string, FunctionRef>> todo;
  for (const auto& [name, function] : module.functions) {
    if (auto graph = try_cast<Function>(function)) todo.emplace_back(name, *graph);
  }
  for (auto& [name, function] : todo) module.functions.insert_or_assign(name, fn(function));
  return module;
}

namespace {

void each_binding(const Expr& seq, const std::function<void(const Binding&)>& fn) {
  for (const BindingBlock& block : seq.as<SeqExpr>()->blocks) {
    for (const Binding& binding : block.bindings) {
      if (const If* branch = binding.value.as<If>()) {
        each_binding(branch->then_branch, fn);
        each_binding(branch->else_branch, fn);
      }
      fn(binding);
    }
  }
}

}  // namespace

void for_each_binding(const FunctionRef& function, const std::function<void(const Binding&)>& fn) {
  each_binding(function->body, fn);
}

namespace {

// The element of a one-element constant as an immediate; nullopt for dtypes that a double cannot hold exactly.
std::optional<Expr> as_immediate(const Expr& tensor) {
  const Constant* constant = tensor.as<Constant>();
  if (!constant || constant->data.size() != 1) return std::nullopt;
  DType dtype = constant->data.dtype();
  if (dtype.is_float()) return float_imm(constant->data.as_double(0), dtype);
  if (dtype.is_integral() || dtype.is_bool()) return int_imm(constant->data.as_int(0), dtype);
  return std::nullopt;
}

PrimFuncRef inline_scalar_constants(const PrimFuncRef& program, std::vector<Expr>& tensors) {
  std::unordered_map<const NodeHeader*, Expr> values;
  PrimFunc copy = *program;
  copy.params.clear();
  std::vector<Expr> rest;
  size_t next = 0;
  for (const VarRef& param : program->params) {
    bool is_input = param.type().is<BufferType>() && next < tensors.size();
    if (!is_input) {
      copy.params.push_back(param);
      continue;
    }
    Expr argument = tensors[next++];
    if (auto value = as_immediate(argument)) {
      values.emplace(param.get(), *value);
    } else {
      copy.params.push_back(param);
      rest.push_back(argument);
    }
  }
  if (values.empty()) return program;
  tensors = std::move(rest);
  copy.body = rewrite(
      program->body,
      [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
        auto it = values.find(load->buffer.get());
        return it == values.end() ? std::nullopt : std::optional(it->second);
      },
      [&](const Ref<Block>& block) -> std::optional<Stmt> {
        Block cleaned = *block;
        std::erase_if(cleaned.reads, [&](const BufferRegion& region) { return values.contains(region.buffer.get()); });
        if (cleaned.reads.size() == block->reads.size()) return std::nullopt;
        return make(std::move(cleaned), block.span());
      });
  return make_prim_func(std::move(copy), program.span());
}

}  // namespace

Expr make_call_tir(IRModule& module, std::string name, PrimFuncRef program, std::vector<Expr> tensors,
                   std::vector<Type> outputs, const Span& span) {
  program = inline_scalar_constants(program, tensors);
  // Dims that no buffer gives become scalar params, in order of use; the arguments are in the graph's terms.
  NamedDims named = name_dims(program);
  std::vector<Expr> scalars;
  PrimFunc copy = *named.program;
  for (const VarRef& var : free_vars(named.program)) {
    CHECK(var.type().is<PrimType>(), "tensor program '{}' uses '{}', which is not a dim", name, var->name);
    copy.params.push_back(var);
    auto value = named.values.find(var.get());
    scalars.push_back(value == named.values.end() ? Expr(var) : value->second);
  }
  program = with_fresh_variables(make_prim_func(std::move(copy), span));
  std::string unique = module.fresh_name(std::move(name));
  Expr callee = global_var(unique, program.type());
  module.functions.emplace(unique, program);
  std::vector<Expr> args = {callee, tuple(std::move(tensors))};
  if (!scalars.empty()) args.push_back(shape_expr(std::move(scalars)));
  Type type = outputs.size() == 1 ? outputs[0] : tuple_type(outputs);
  return call(op_ref("relax.call_tir"), std::move(args), {}, type, span, std::move(outputs));
}

bool calls_program(std::string_view op) {
  // Where gradients are not asked for, call_tir_with_grad is call_tir.
  return op == "relax.call_tir" || op == "relax.call_dps_packed" || op == "relax.call_tir_with_grad";
}

std::optional<CallTir> match_call_tir(const Expr& expr) {
  const std::string& name = op_name(expr);
  if (!calls_program(name)) return std::nullopt;
  const Call* node = expr.as<Call>();
  CallTir result{node->args.at(0), {}, {}, node->type_args};
  const Tuple* tensors = node->args.at(1).as<Tuple>();
  if (!tensors && node->args[1].type().is<TupleType>())
    fail(expr.span(), "{}: a tuple value as an argument; run spread_tuples before", name);
  result.tensors = tensors ? tensors->items : std::vector<Expr>{node->args[1]};
  if (node->args.size() > 2) {
    const ShapeExpr* scalars = node->args[2].as<ShapeExpr>();
    CHECK(scalars, "call_tir's scalar arguments are a shape");
    result.scalars = scalars->values;
  }
  // One type argument may be a tuple of the outputs.
  if (result.outputs.size() == 1) {
    if (const TupleType* several = result.outputs[0].as<TupleType>())
      result.outputs = std::vector<Type>(several->items);
  }
  return result;
}

VarMap bind_scalars(const PrimFuncRef& callee, const CallTir& call) {
  VarMap result;
  size_t next_scalar = 0, next_tensor = 0;
  for (const VarRef& param : callee->params) {
    if (!param.type().is<PrimType>()) continue;
    CHECK(next_scalar < call.scalars.size(), "call_tir gives {} scalar arguments, too few", call.scalars.size());
    result.emplace(param.get(), call.scalars[next_scalar++]);
  }
  for (const VarRef& param : buffer_params(callee)) {
    size_t i = next_tensor++;
    Type type = i < call.tensors.size() ? call.tensors[i].type() : call.outputs.at(i - call.tensors.size());
    const std::vector<Expr>* dims = known_shape(type);
    const std::vector<Expr>& wanted = buffer_type(param).shape;
    if (!dims || dims->size() != wanted.size()) continue;
    for (size_t d = 0; d < wanted.size(); ++d) {
      if (wanted[d].is<Var>()) result.emplace(wanted[d].get(), (*dims)[d]);
    }
  }
  return result;
}

}  // namespace relaxc
