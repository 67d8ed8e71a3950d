// Expects: any module. Guarantees: params of tensor programs are dense, no program calls another one, and no graph
// function uses the value that one returns: a program that returns a value gets a copy that stores it, which R.call_tir
// calls.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "ops/attributes.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

// The program that an expression calls: cls.f(...), or T.call_extern of a program of the module.
struct ProgramCall {
  std::string name;
  std::span<const Expr> args;
};
std::optional<ProgramCall> as_program_call(const Expr& e, const IRModule& module) {
  const Call* call = e.as<Call>();
  if (!call) return std::nullopt;
  std::span<const Expr> args = call->args;
  if (const GlobalVar* global = call->callee.as<GlobalVar>()) return ProgramCall{global->name, args};
  bool is_extern = op_name(e) == ops::kCallExtern || op_name(e) == ops::kCallPureExtern;
  const StringImm* symbol = is_extern && !args.empty() ? args[0].as<StringImm>() : nullptr;
  const Expr* function = symbol ? module.find(symbol->value) : nullptr;
  bool is_program = function && function->is<PrimFunc>();
  return is_program ? std::optional(ProgramCall{symbol->value, args.subspan(1)}) : std::nullopt;
}

Stmt in_front(std::vector<Stmt> first, const Stmt& last, const Span& span) {
  first.push_back(last);
  return seq(std::move(first), span);
}

class CallInliner {
 public:
  explicit CallInliner(const IRModule& module) : module_(module) {}

  // Returns the program with the programs that it calls written out.
  PrimFuncRef program(const std::string& name, const Span& span = {}) {
    if (const PrimFuncRef* known = find_value(done_, name)) return *known;
    if (contains_name(name))
      fail_unsupported(span, "'{}' calls itself, and recursion in tensor programs is not supported; write it as a loop",
                       name);
    PrimFuncRef function = module_.prim_func(name, span);
    Temporarily names(active_, active_);
    active_.push_back(name);
    PrimFuncRef result = calls_programs(function) ? with_body(function, below_root(stmt(function->body))) : function;
    return done_.emplace(name, result).first->second;
  }

 private:
  bool contains_name(const std::string& name) const { return std::ranges::find(active_, name) != active_.end(); }
  bool calls_programs(const NodeRef& node) const {
    return any_node(node, [&](const NodeRef& n) {
      return n.is<Call>() && as_program_call(cast_handle<Expr>(n), module_).has_value();
    });
  }
  // Blocks of a called program need a root block in the caller.
  static Stmt below_root(const Stmt& body) {
    const Block* root = body.as<Block>();
    if (!holds<Block>(body) || (root && is_root(*root))) return body;
    return make(Block{.name = kRootBlock, .body = body}, body.span());
  }

  Stmt stmt(const Stmt& s) {
    if (!calls_programs(s)) return s;
    if (const Seq* node = s.as<Seq>())
      return seq(map_each(node->stmts, [&](const Stmt& inner) { return stmt(inner); }), s.span());
    Temporarily before(before_, std::vector<Stmt>());
    if (const Evaluate* node = s.as<Evaluate>()) {
      if (auto call = as_program_call(node->value, module_)) {
        std::vector<Expr> args = map_each(call->args, [&](const Expr& arg) { return expr(arg, {}); });
        Stmt body = inlined(call->name, args, std::nullopt, s.span());
        return in_front(std::move(before_), body, s.span());
      }
    }
    if (const While* node = s.as<While>(); node && calls_programs(node->condition)) return while_loop(s, *node);
    NodeRef result = map_children(s, [&](const NodeRef& child, Slot slot) -> NodeRef {
      if (is_stmt_kind(child.kind())) return stmt(cast_handle<Stmt>(child));
      if (!is_expr_kind(child.kind()) || slot.exact || !calls_programs(child)) return child;
      if (s.is<Block>()) fail_unsupported(s.span(), "a call of a tensor program in the signature of a block");
      return expr(cast_handle<Expr>(child), {});
    });
    return in_front(std::move(before_), cast_handle<Stmt>(result), s.span());
  }
  // Evaluates the condition's calls before the loop, and again after each iteration.
  Stmt while_loop(const Stmt& s, const While& node) {
    Expr condition = expr(node.condition, {});
    std::vector<Stmt> first = std::exchange(before_, {});
    std::vector<Stmt> cells;
    std::vector<Stmt> again;
    for (const Stmt& one : first) (one.is<AllocBuffer>() ? cells : again).push_back(one);
    Stmt repeated = seq({stmt(node.body), instantiate(seq(again), {})}, s.span());
    cells.insert(cells.end(), again.begin(), again.end());
    cells.push_back(make(While{condition, repeated}, s.span()));
    return seq(std::move(cells), s.span());
  }

  // Returns the expression with its calls evaluated before the statement, those in a branch only where `guard` holds.
  Expr expr(const Expr& e, const std::optional<Expr>& guard) {
    if (!calls_programs(e)) return e;
    if (const Let* let = e.as<Let>()) return expr(substitute(let->body, {{let->var.get(), let->value}}), guard);
    if (const Call* choice = as_call(e, ops::kIfThenElse)) {
      Expr condition = expr(choice->args[0], guard);
      auto where = [&](const Expr& holds) { return guard ? if_then_else(*guard, holds, bool_imm(false)) : holds; };
      Expr a = expr(choice->args[1], where(condition)), b = expr(choice->args[2], where(!condition));
      return if_then_else(condition, a, b, e.span());
    }
    auto call = as_program_call(e, module_);
    if (!call) {
      return cast_handle<Expr>(map_children(e, [&](const NodeRef& child, Slot slot) -> NodeRef {
        bool is_operand = is_expr_kind(child.kind()) && !slot.exact;
        return is_operand ? NodeRef(expr(cast_handle<Expr>(child), guard)) : child;
      }));
    }
    if (dtype_of(e).is_void())
      fail(e.span(), "'{}' does not say which dtype it returns; write `-> T.int32` behind its params", call->name);
    std::vector<Expr> args = map_each(call->args, [&](const Expr& arg) { return expr(arg, guard); });
    Buffer cell = make_buffer(call->name + "_result", dtype_of(e), {int_imm(1)}, "local", e.span());
    Stmt body = inlined(call->name, args, cell, e.span());
    before_.push_back(make(AllocBuffer{cell, {}}, e.span()));
    before_.push_back(guard ? make(IfThenElse{*guard, body, std::nullopt}, e.span()) : body);
    return load(cell, {int_imm(0)}, e.span());
  }

  // Returns the body of the program on these arguments.
  Stmt inlined(const std::string& name, const std::vector<Expr>& args, const std::optional<Buffer>& result,
               const Span& span) {
    PrimFuncRef callee = program(name, span);
    if (callee->params.size() != args.size())
      fail(span, "'{}' takes {} arguments, got {}", name, callee->params.size(), args.size());
    if (result && !callee->result) fail(span, "'{}' returns no value", name);
    // Views by which a raw pointer is used need no shape here.
    PrimFuncRef dense = takes_strides(callee) ? dense_params(callee) : callee;
    Stmt body = without_jumps(dense->body, result);
    if (const Block* root = body.as<Block>(); root && is_root(*root)) {
      std::vector<Stmt> stmts =
          map_each(root->alloc_buffers, [](const Buffer& b) -> Stmt { return make(AllocBuffer{b, {}}, b.span()); });
      body = in_front(std::move(stmts), root->body, span);
    }
    Arguments given(name, dense, args, span);
    return in_front(std::move(given.prologue), instantiate(body, given.values), span);
  }
  static bool takes_strides(const PrimFuncRef& program) {
    return std::ranges::any_of(buffer_params(program), [](const Buffer& buffer) {
      return !buffer_type(buffer).strides.empty() || buffer_type(buffer).elem_offset;
    });
  }

  // The values of a program's params and dims at a call.
  struct Arguments {
    VarMap values;
    std::vector<Stmt> prologue;  // scalars, views, and assertions about dims

    Arguments(const std::string& callee, const PrimFuncRef& program, const std::vector<Expr>& args, const Span& place)
        : name(callee), span(place) {
      // Dims are bound by the buffers that have them, whichever comes first.
      for (size_t i = 0; i < args.size(); ++i) {
        if (program->params[i].type().is<PrimType>()) scalar(program->params[i], args[i]);
      }
      for (size_t i = 0; i < args.size(); ++i) bind_dims(program->params[i], args[i]);
      for (size_t i = 0; i < args.size(); ++i) {
        if (program->params[i].type().is<BufferType>()) buffer(program->params[i], args[i]);
      }
    }

   private:
    const std::string& name;
    const Span& span;

    static Expr pointer_of(const Expr& arg) {
      return arg.type().is<BufferType>() ? buffer_data(cast<Var>(arg), arg.span()) : arg;
    }
    void scalar(const VarRef& param, const Expr& arg) {
      DType dtype = dtype_of(param);
      Expr value = dtype.is_handle() ? pointer_of(arg) : arg;
      bool is_number = value.type().is<PrimType>();
      if (!is_number || dtype_of(value).is_handle() != dtype.is_handle() || dtype_of(value).lanes != dtype.lanes)
        fail(span, "param '{}' of '{}' is {}, got {}", param->name, name, print_type(param.type()),
             print_type(arg.type()));
      if (!dtype.is_handle()) value = cast_to(value, dtype);
      bool is_leaf = value.is<Var>() || value.is<IntImm>() || value.is<FloatImm>() || as_call(value, ops::kBufferData);
      if (!is_leaf) {
        VarRef var = make_var(param->name, value.type(), span);
        prologue.push_back(make(Bind{var, value}, span));
        value = var;
      }
      values.emplace(param.get(), value);
    }
    static const BufferType* given_buffer(const Expr& arg) { return arg.type().as<BufferType>(); }
    void bind_dims(const VarRef& param, const Expr& arg) {
      const BufferType *type = param.type().as<BufferType>(), *given = given_buffer(arg);
      if (!type || !given || given->shape.size() != type->shape.size()) return;
      for (size_t d = 0; d < type->shape.size(); ++d) {
        const Expr& dim = type->shape[d];
        if (dim.is<Var>()) values.try_emplace(dim.get(), cast_to(given->shape[d], dtype_of(dim)));
      }
    }
    void buffer(const VarRef& param, const Expr& arg) {
      const BufferType& type = buffer_type(param);
      const PrimType* pointer = arg.type().as<PrimType>();
      const BufferType* given = given_buffer(arg);
      if (!given && !(pointer && pointer->dtype.is_handle()))
        fail(span, "param '{}' of '{}' is a buffer, got {}", param->name, name, print_type(arg.type()));
      for (const VarRef& dim : free_vars(shape_expr(type.shape))) {
        if (!values.contains(dim.get()))
          fail(span, "the dim '{}' of param '{}' of '{}' does not follow from the arguments", dim->name, param->name,
               name);
      }
      BufferType view = type;
      for (Expr& dim : view.shape) dim = substitute(dim, values);
      bool same_rank = given && given->dtype == type.dtype && given->shape.size() == type.shape.size();
      if (same_rank && given->strides.empty() && !given->elem_offset && !given->data) {
        require_dims(param, view.shape, given->shape);
        values.emplace(param.get(), arg);
        return;
      }
      if (given && (!given->strides.empty() || given->elem_offset))
        fail_unsupported(span, "param '{}' of '{}' gets a buffer with strides or an offset; pass its pointer",
                         param->name, name);
      view.data = pointer_of(arg);
      Buffer var = make_var(param->name, make(std::move(view), span), span);
      prologue.push_back(make(AllocBuffer{var, {}}, span));
      values.emplace(param.get(), var);
    }
    void require_dims(const VarRef& param, const std::vector<Expr>& wanted, const std::vector<Expr>& given) {
      for (size_t d = 0; d < wanted.size(); ++d) {
        Expr expected = cast_to(wanted[d], kInt64), actual = cast_to(given[d], kInt64);
        Expr holds = simplify(equal(expected, actual));
        if (is_int(holds, 1)) continue;
        std::string what = fmt::format("argument '{}' of '{}': dim {}", param->name, name, d);
        if (is_int(holds, 0)) fail(span, "{} is {}, expected {}", what, print_expr(actual), print_expr(expected));
        prologue.push_back(make(Assert{holds, {what + " is {}, expected {}"}, {}, {actual, expected}}, span));
      }
    }
  };

  const IRModule& module_;
  std::map<std::string, PrimFuncRef> done_;
  std::vector<std::string> active_;
  std::vector<Stmt> before_;
};

// Turns y = cls.f(x, n), where f returns a scalar, into a R.call_tir of a program that stores it.
class ResultTaker final : public GraphRewriter {
 public:
  ResultTaker(const OpTable& ops, IRModule& module) : GraphRewriter(ops), module_(module) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    const Call* call = binding.value.as<Call>();
    const GlobalVar* callee = call ? call->callee.as<GlobalVar>() : nullptr;
    const PrimType* type = callee ? binding.value.type().as<PrimType>() : nullptr;
    if (!type || !called_program(call->callee, module_)) return std::nullopt;
    builder.set_span(binding.value.span());
    std::string name = storing(callee->name, binding.value.span());
    std::vector<Expr> tensors, scalars;
    auto is_scalar = [](const Expr& arg) { return arg.type().is<PrimType>(); };
    std::ranges::partition_copy(call->args, std::back_inserter(scalars), std::back_inserter(tensors), is_scalar);
    std::vector<Expr> args = {global_var(name, module_.find(name)->type()), tuple(std::move(tensors))};
    if (!scalars.empty()) args.push_back(shape_expr(std::move(scalars)));
    Type result = tensor_type({}, type->dtype);
    Expr stored = builder.emit(
        relaxc::call(op_ref(ops::kCallTir), std::move(args), {}, result, builder.span(), {result}), binding.var->name);
    if (type->dtype.is_float()) {
      Expr bits = builder.emit(builtin("vm.builtin.float_bits", stored, kInt64), "bits");
      return builtin("vm.builtin.float_from_bits", bits, type->dtype);
    }
    Expr item = builder.op(std::string(ops::kTensorItem.text), {stored}, TensorItemAttrs{0}, binding.var->name);
    if (type->dtype == kInt64) return item;
    return type->dtype.is_bool() ? not_equal(item, int_imm(0)) : cast_to(item, type->dtype);
  }

 private:
  static Expr builtin(const char* name, const Expr& arg, DType dtype) {
    return relaxc::call(extern_func(name), {arg}, {}, prim_type(dtype), arg.span(), {prim_type(dtype)});
  }
  // Returns the name of the copy that stores its result in its last param.
  std::string storing(const std::string& name, const Span& span) {
    if (const std::string* known = find_value(copies_, name)) return *known;
    PrimFuncRef program = module_.prim_func(name);
    for (const Buffer& buffer : buffer_params(program)) {
      if (stores_to(program->body, buffer))
        fail_unsupported(span, "'{}' returns a value and writes its param '{}', too", name, buffer->name);
    }
    PrimFunc copy = *program;
    Buffer result = make_buffer("result", *program->result, {});
    copy.body = without_jumps(program->body, result);
    copy.params.push_back(result);
    copy.result.reset();
    std::string unique = module_.fresh_name(name + "_value");
    module_.functions.emplace(unique,
                              with_fresh_variables(without_symbol(make_prim_func(std::move(copy), program.span()))));
    return copies_.emplace(name, unique).first->second;
  }

  IRModule& module_;
  std::map<std::string, std::string> copies_;
};

}  // namespace

IRModule inline_calls(IRModule module, PassContext& context) {
  CallInliner inliner(module);
  std::map<std::string, Expr> inlined;
  std::unordered_set<std::string> called;  // by other programs
  for (const auto& [name, function] : module.functions) {
    if (!function.is<PrimFunc>()) continue;
    inlined.insert_or_assign(name, dense_params(inliner.program(name)));
    walk(function, [&](const Ref<Call>& call) {
      if (auto callee = as_program_call(call, module)) called.insert(callee->name);
    });
  }
  std::unordered_set<std::string> used;  // by graph functions
  for (const auto& [name, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(function, [&](const GlobalVar& global) { used.insert(global.name); });
  }
  for (auto& [name, function] : inlined) {
    bool is_public = name == context.function || function.as<PrimFunc>()->attrs.has(attr_names::kGlobalSymbol);
    bool is_done = called.contains(name) && !used.contains(name) && !is_public;
    is_done ? static_cast<void>(module.functions.erase(name)) : static_cast<void>(module.functions.at(name) = function);
  }
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& all) {
    return ResultTaker(context.ops, all).run(function);
  });
}

}  // namespace relaxc
