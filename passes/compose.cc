// Expects: call_tirs (legalize). Guarantees: a private graph function with the attribute Primitive that a rule of the
// user's names, or that is a match of a pattern of the user's (apply_kernels), is one tensor program of that name,
// which callers call by call_tir. Its blocks are those of the function's tensor programs, in order, each under a name
// of its own. This is TVM's FuseTIR, which takes the same functions, for those that somebody asked for; others stay
// graph functions.
#include "passes/compose.h"

#include <algorithm>
#include <set>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/names.h"
#include "ir/text/printer.h"
#include "ops/common.h"
#include "support/diagnostic.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/program.h"

namespace relaxc {

PrimFuncRef copy_program(const Type& type) {
  ComputeBuilder b;
  Buffer in = b.input("x", *tensor_dtype(type), *known_shape(type));
  return b.finish({b.compute("T_copy", *tensor_dtype(type), *known_shape(type), [&](Axes i) { return load(in, i); })});
}

Buffer ProgramComposer::buffer_of(const Expr& tensor, const std::string& hint) {
  if (const Buffer* known = find_value(buffers_, tensor.get())) return *known;
  Buffer buffer = make_buffer(hint, *tensor_dtype(tensor.type()), *known_shape(tensor.type()));
  buffers_.emplace(tensor.get(), buffer);
  params_.push_back(buffer);
  inputs_.push_back(tensor);
  return buffer;
}

void ProgramComposer::add(const KernelCall& call, const PrimFuncRef& called, const std::vector<Expr>& outputs,
                          const Edit& edit) {
  PrimFuncRef program = with_fresh_variables(called);
  KernelMatch match = match_kernel(call, program);
  VarMap map = match.dims;
  for (const KernelOperand& operand : match.operands) {
    const Buffer& param = operand.param;
    if (!operand.is_output) {
      map.emplace(param.get(), buffer_of(call.tensors[operand.number], param->name));
      continue;
    }
    map.emplace(param.get(), buffer_for(outputs[operand.number], param->name));
  }
  add_stage(program, map, edit);
}

void ProgramComposer::add(const PrimFuncRef& program, const std::vector<Expr>& inputs, const Expr& output,
                          const Edit& edit) {
  VarMap map;
  for (size_t i = 0; i < inputs.size(); ++i)
    map.emplace(program->params[i].get(), buffer_of(inputs[i], program->params[i]->name));
  map.emplace(program->params.back().get(), buffer_for(output, program->params.back()->name));
  add_stage(program, map, edit);
}

Buffer ProgramComposer::buffer_for(const Expr& output, const std::string& name) {
  Buffer buffer = make_buffer(name, *tensor_dtype(output.type()), *known_shape(output.type()));
  buffers_.emplace(output.get(), buffer);
  computed_.push_back(buffer);
  return buffer;
}

void ProgramComposer::add_stage(const PrimFuncRef& program, const VarMap& values, const Edit& edit) {
  Stmt stage = take_root(substitute(program->body, values), computed_);
  stages_.push_back(edit ? edit(stage) : stage);
}

bool ProgramComposer::computes(const Expr& tensor) const {
  const Buffer* buffer = find_value(buffers_, tensor.get());
  auto is_it = [&](const Buffer& other) { return same_node(other, *buffer); };
  return buffer && std::ranges::any_of(computed_, is_it);
}

PrimFuncRef ProgramComposer::finish(const std::vector<Expr>& outputs, const Span& span, Attrs attrs) {
  std::vector<VarRef> params = params_;
  std::vector<Buffer> inner = computed_;
  for (const Expr& tensor : outputs) {
    const Buffer& output = buffers_.at(tensor.get());
    params.push_back(output);
    std::erase_if(inner, [&](const Buffer& buffer) { return same_node(buffer, output); });
  }
  return make_prim_func({std::move(params), root_block(std::move(inner), seq(stages_)), std::move(attrs)}, span);
}

std::optional<KernelNode> kernel_node_of(const Binding& binding, const IRModule& module) {
  const bool is_call_tir = !binding.cast && as_call(binding.value, ops::kCallTir);
  std::optional<KernelCall> call = is_call_tir ? as_spread_kernel_call(binding.value, module) : std::nullopt;
  std::optional<PrimFuncRef> called = call ? called_program(call->callee, module) : std::nullopt;
  if (!called || call->outputs.size() != 1 || (*called)->attrs.has(attr_names::kScheduledPart)) return std::nullopt;
  PrimFuncRef program = promote_indices(*called);
  return KernelNode{*call, program, pattern_of(program), find_nests(program).value_or(std::vector<Ref<Block>>())};
}

bool is_primitive(const Function& function) {
  const AttrValue* flag = function.attrs.find(attr_names::kPrimitive);
  return flag && (*flag == AttrValue(true) || *flag == AttrValue(1));
}

// Returns whether a pattern made the function, or a rule names it.
static bool is_composed(const std::string& name, const Function& function, const PassContext& context) {
  if (!is_primitive(function)) return false;
  return function.attrs.has(attr_names::kScheduledPart) ||
         std::ranges::any_of(context.schedules,
                             [&](const ScheduleRule& rule) { return rule.function == name || rule.op == name; });
}

IRModule map_uncomposed(IRModule module, const PassContext& context,
                        const std::function<FunctionRef(const FunctionRef&, IRModule& module)>& fn) {
  std::set<const NodeHeader*> composed;
  for (const auto& [name, value] : module.functions) {
    const Function* function = value.as<Function>();
    if (function && is_composed(name, *function, context)) composed.insert(value.get());
  }
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return composed.contains(function.get()) ? function : fn(function, result);
  });
}

const KernelRule* kernel_of(const std::string& program, const PassContext& context) {
  if (!context.kernels) return nullptr;
  // Copies have numbers: "softmax_1".
  std::string base = program.substr(0, program.find_last_not_of("0123456789") + 1);
  for (const KernelRule& rule : *context.kernels) {
    if (rule.kernel && (rule.kernel->name == program || rule.kernel->name + "_" == base)) return &rule;
  }
  return nullptr;
}

namespace {

// What stands for a call of a composed function: other bindings of the function, and a call_tir.
struct ComposedFunction {
  std::vector<VarRef> params;
  std::vector<Binding> before;
  Expr call;
  bool is_tuple;  // the function's result is a tuple
};

// Returns the program that reads x in row-major order and gives the elements another shape of the same size; of the
// same shape, a copy.
PrimFuncRef reshape_program(const Type& x, const Type& result) {
  ComputeBuilder b;
  const std::vector<Expr>&from = *known_shape(x), &to = *known_shape(result);
  bool is_copy = equal_shapes(x, result) == Verdict::kProven;
  Buffer in = b.input("x", *tensor_dtype(x), from);
  return b.finish({b.compute(is_copy ? "T_copy" : "T_reshape", *tensor_dtype(x), to, [&](Axes i) {
    return load(in, is_copy ? i : unflatten_index(flatten_index(i, to), from));
  })});
}

// Returns the name by which rules know the function: several of a pattern's matches have that of the pattern.
std::string name_of_composed(const std::string& name, const Function& function) {
  return function.attrs.get_string(attr_names::kScheduledPart, name);
}

class FunctionComposer {
 public:
  FunctionComposer(std::string name, const FunctionRef& function, IRModule& module)
      : name_(std::move(name)), function_(function), module_(module) {}

  ComposedFunction run() {
    for (const Binding& binding : bindings_of(function_->body)) add(binding);
    const Expr& body = cast<SeqExpr>(function_->body)->body;
    std::vector<Expr> outputs;
    std::vector<Type> types;
    for (const Expr& result : items_of(replaced_(body))) {
      require_tensor(result, function_.span());
      // An input, a constant, or a result that is there already, is copied.
      bool is_new = composer_.computes(result) &&
                    !std::ranges::any_of(outputs, [&](const Expr& other) { return same_node(other, result); });
      Expr output = is_new ? result : make_var("copy", result.type());
      if (!is_new) composer_.add(reshape_program(result.type(), result.type()), {result}, output, edit_);
      outputs.push_back(output);
      types.push_back(output.type());
    }
    PrimFuncRef program =
        with_program_name(composer_.finish(outputs, function_.span()), name_of_composed(name_, *function_));
    module_.functions.erase(name_);  // the program takes the name
    Expr call = make_call_tir(module_, name_, program, composer_.inputs(), types, function_.span());
    return {function_->params, kept_, call, function_->result.is<TupleType>()};
  }

 private:
  void add(const Binding& binding) {
    Expr value = replaced_(binding.value);
    const VarRef& var = binding.var;
    if (binding.cast) return keep({value, replaced_(*binding.cast), var});
    if (value.is<Tuple>() || items_.contains(value.get())) return void(items_.emplace(var.get(), items_of(value)));
    if (is_leaf(value)) return replaced_.add(var, value);
    const TupleGetItem* get = value.as<TupleGetItem>();
    if (const std::vector<Expr>* items = get ? find_value(items_, get->tuple.get()) : nullptr)
      return replaced_.add(var, items->at(static_cast<size_t>(get->index)));
    if (const Call* reshaped = as_call(value, ops::kReshape)) {
      require_tensor(reshaped->args[0], var.span());
      require_tensor(var, var.span());
      return composer_.add(reshape_program(reshaped->args[0].type(), var.type()), {reshaped->args[0]}, var, edit_);
    }
    std::optional<KernelCall> call = as_spread_kernel_call(value, module_);
    std::optional<PrimFuncRef> called = call ? called_program(call->callee, module_) : std::nullopt;
    return called ? add_call(*call, promote_indices(*called), var) : keep({value, std::nullopt, var});
  }

  void add_call(const KernelCall& call, const PrimFuncRef& program, const VarRef& var) {
    if (call.has_destinations || !call.in_place.empty())
      refuse(var.span(), fmt::format("'{}' writes over a tensor", call.name()));
    KernelMatch match = match_kernel(call, program);
    if (match.operands.empty()) refuse(var.span(), fmt::format("'{}' takes raw handles", call.name()));
    if (!match.contradictions.empty()) refuse(var.span(), match.contradictions[0]);
    for (const Expr& tensor : call.tensors) require_tensor(tensor, var.span());
    std::vector<Expr> outputs = {var};
    if (const TupleType* several = var.type().as<TupleType>()) {
      outputs = map_each(several->items, [&](const Type& type) -> Expr { return make_var(var->name, type); });
      items_.emplace(var.get(), outputs);
    }
    for (const Expr& tensor : outputs) require_tensor(tensor, var.span());
    composer_.add(call, program, outputs, edit_);
  }

  // Keeps a binding that the function's tensor programs may read, before the call.
  void keep(Binding binding) {
    for (const VarRef& used : free_vars(binding.value)) {
      const std::vector<Expr>* items = find_value(items_, used.get());
      auto computes = [&](const Expr& tensor) { return composer_.computes(tensor); };
      if (items ? std::ranges::any_of(*items, computes) : computes(used))
        refuse(binding.var.span(),
               fmt::format("{} reads what a tensor program of it computes, and is not one", print_expr(binding.value)));
    }
    if (holds<SeqExpr>(binding.value)) refuse(binding.var.span(), "it has branches or local functions");
    kept_.push_back(std::move(binding));
  }

  // Returns the items of a tuple, or the tensor itself.
  std::vector<Expr> items_of(const Expr& value) const {
    if (const std::vector<Expr>* known = find_value(items_, value.get())) return *known;
    const Tuple* written = value.as<Tuple>();
    return written ? written->items : std::vector<Expr>{value};
  }

  void require_tensor(const Expr& value, const Span& span) const {
    if (!value.type().is<TensorType>() || !known_shape(value.type()) || !tensor_dtype(value.type()))
      refuse(span, fmt::format("{} is not a tensor of known shape and dtype", print_expr(value)));
  }
  [[noreturn]] void refuse(const Span& span, const std::string& why) const {
    fail(span, "function '{}' cannot become one tensor program: {}", name_, why);
  }

  std::string name_;
  FunctionRef function_;
  IRModule& module_;
  ProgramComposer composer_;
  text::NameTable block_names_;
  ProgramComposer::Edit edit_ = [this](const Stmt& stage) {
    return rewrite(stage, [this](const Ref<Block>& block) -> std::optional<Stmt> {
      std::string name = block_names_.reserve(block->name);
      if (name == block->name) return std::nullopt;
      return edited<Block>(block, [&](Block& copy) { copy.name = name; });
    });
  };
  Substitution replaced_;
  std::unordered_map<const NodeHeader*, std::vector<Expr>> items_;  // of tuples, by their variables
  std::vector<Binding> kept_;
};

// Replaces calls of a composed function.
class CallReplacer final : public GraphRewriter {
 public:
  CallReplacer(const OpTable& ops, const std::string& name, const ComposedFunction& composed)
      : GraphRewriter(ops), name_(name), composed_(composed) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    const Call* node = binding.value.as<Call>();
    const GlobalVar* callee = node ? node->callee.as<GlobalVar>() : nullptr;
    if (!callee || callee->name != name_ || binding.cast) return std::nullopt;
    VarMap map;
    for (size_t i = 0; i < composed_.params.size(); ++i) {
      map.emplace(composed_.params[i].get(), node->args[i]);
      bind_dims(composed_.params[i].type(), node->args[i].type(), map);
    }
    for (const VarRef& param : composed_.params) {
      for (const VarRef& dim : free_vars(param.type())) {
        if (!map.contains(dim.get()))
          fail(binding.var.span(), "the call does not say what '{}' is in the type of parameter '{}' of '{}'",
               dim->name, param->name, name_);
      }
    }
    for (const Binding& kept : composed_.before) {
      std::optional<Type> cast;
      if (kept.cast) {
        for (const VarRef& dim : free_vars(*kept.cast)) map.emplace(dim.get(), make_dim(dim->name));
        cast = substitute(*kept.cast, map);
      }
      VarRef var = make_var(kept.var->name, substitute(kept.var.type(), map), kept.var.span());
      map.emplace(kept.var.get(), var);
      builder.keep({substitute(kept.value, map), cast, var});
    }
    // Profiles name the place of the call, where the function's operators were.
    Expr substituted = substitute(composed_.call, map);
    Expr call = make(Call(*substituted.as<Call>()), substituted.type(), span_of(binding));
    if (!composed_.is_tuple || call.type().is<TupleType>()) return call;
    return tuple({builder.emit(call, binding.var->name)});
  }

 private:
  const std::string& name_;
  const ComposedFunction& composed_;
};

// Composes the functions that rules name, callees first.
class ModuleComposer {
 public:
  ModuleComposer(IRModule module, const PassContext& context) : module_(std::move(module)), context_(context) {}

  IRModule run() {
    const std::map<std::string, Expr> before = module_.functions;
    for (const auto& [name, _] : before) compose(name);
    return std::move(module_);
  }

 private:
  void compose(const std::string& name) {
    const Expr* found = module_.find(name);
    auto function = found ? try_cast<Function>(*found) : std::nullopt;
    if (!function || !is_composed(name, **function, context_)) return;
    if ((*function)->attrs.has(attr_names::kGlobalSymbol))
      fail(function->span(),
           "function '{}' cannot become one tensor program: it is public; say @R.function(private=True)", name);
    if (!open_.insert(name).second)
      fail(function->span(), "function '{}' cannot become one tensor program: it calls itself", name);
    std::vector<std::string> callees;
    walk(*function, [&](const GlobalVar& callee) { callees.push_back(callee.name); });
    for (const std::string& callee : callees) compose(callee);
    FunctionRef graph = module_.graph_function(name);
    ComposedFunction composed = FunctionComposer(name, graph, module_).run();
    module_ = map_functions(std::move(module_), [&](const FunctionRef& caller) {
      return CallReplacer(context_.ops, name, composed).run(caller);
    });
    open_.erase(name);
  }

  IRModule module_;
  const PassContext& context_;
  std::set<std::string> open_;
};

}  // namespace

IRModule compose(IRModule module, PassContext& context) { return ModuleComposer(std::move(module), context).run(); }

}  // namespace relaxc
