#include <filesystem>

#include "ir/attr_names.h"
#include "ir/builder.h"
#include "ir/kernel_call.h"
#include "ir/text/printing.h"
#include "ir/text/safetensors.h"

namespace relaxc {

namespace text {

namespace {

// Returns whether the value is a call whose type arguments equal the annotation of the variable.
bool has_type(const Binding& binding) {
  const std::string& op = op_name(binding.value);
  if (!calls_kernel(op)) return false;
  const std::vector<Type>& types = binding.value.as<Call>()->type_args;
  return !types.empty() && structural_equal(types.size() == 1 ? types[0] : tuple_type(types), binding.var.type());
}

// Returns the last binding of a branch when a variable of this type can take its value in its place; else null.
const Binding* final_binding(const SeqExpr& seq, const Type& wanted) {
  if (seq.blocks.empty() || seq.blocks.back().dataflow || seq.blocks.back().bindings.empty()) return nullptr;
  const Binding& last = seq.blocks.back().bindings.back();
  bool direct = same_node(last.var, seq.body) && !last.cast && !last.value.is<If>() && !last.value.is<Function>() &&
                structural_equal(last.var.type(), wanted) && !is_leaf(last.value);
  return direct ? &last : nullptr;
}

}  // namespace

void Printer::declare_scalars(const std::vector<VarRef>& vars) {
  for (const VarRef& var : vars) {
    const PrimType* prim = var.type().as<PrimType>();
    if (!prim || names_.find(var)) continue;
    dims_.insert(var.get());
    std::string made = prim->pointee ? type(var.type()) : scalar_type_name(prim->dtype) + "()";
    line("{} = {}", names_.define(var), made);
  }
}

// Returns `_` where the value is not used.
std::string Printer::target_name(const VarRef& var) {
  if (var->name == "_" && !used_.contains(var.get())) return "_";
  return names_.define(var);
}

void Printer::if_binding(const Binding& binding, const If& node) {
  std::string condition = expr(node.condition);
  // Both branches end by assigning the result's name.
  const VarRef& target = binding.var;
  if (target_name(target) == "_") names_.alias(target, "_");
  line("if {}:", condition);
  for (const Expr* branch : {&node.then_branch, &node.else_branch}) {
    if (branch == &node.else_branch) line("else:");
    Temporarily indent(depth_, depth_ + 1);
    NameScope scope(names_);
    sequence(*branch, &target);
  }
}

void Printer::binding(const Binding& b) {
  declare_scalars(free_scalars(b.var.type()));
  if (b.cast) declare_scalars(free_scalars(*b.cast));
  if (!b.value.is<Function>()) declare_scalars(free_scalars(b.value));
  if (const If* branch = b.value.as<If>(); branch && !b.cast) return if_binding(b, *branch);
  if (const Function* function = b.value.as<Function>(); function && !b.cast)
    return graph_function(names_.define(b.var), *function, true);
  std::string value =
      b.cast ? fmt::format("R.match_cast({}, {})", argument(b.value), type(*b.cast)) : argument(b.value);
  std::string annotation = has_type(b) ? "" : ": " + type(b.var.type());
  line("{}{} = {}", target_name(b.var), annotation, value);
}

// Prints the statements of a body, then `return value`, or `target = value` in a branch.
void Printer::sequence(const Expr& seq, const VarRef* target) {
  const SeqExpr* node = seq.as<SeqExpr>();
  const Binding* last = node && target ? final_binding(*node, target->type()) : nullptr;
  for (const BindingBlock& block : node ? std::span(node->blocks) : std::span<const BindingBlock>()) {
    if (block.dataflow) line("with R.dataflow():");
    Temporarily indent(depth_, depth_ + (block.dataflow ? 1 : 0));
    for (const Binding& b : block.bindings) {
      if (&b != last) binding(b);
    }
    if (block.dataflow) line("R.output({})", printed(block.outputs, &Printer::name));
  }
  const Expr& value = last ? last->value : node ? node->body : seq;
  declare_scalars(free_scalars(value));
  if (target) declare_scalars(free_scalars(target->type()));
  if (!target) return line("return " + argument(value));
  std::string annotation = last && has_type(*last) ? "" : ": " + type(target->type());
  line("{}{} = {}", name(*target), annotation, argument(value));
}

Attrs Printer::decorator(const char* form, const std::string& name, const Attrs& attrs, std::string_view flag,
                         bool nested) {
  const AttrValue* symbol = attrs.find(attr_names::kGlobalSymbol);
  std::vector<std::string_view> flags;
  if (!symbol && !nested) flags.push_back("private=True");
  if (!flag.empty()) flags.push_back(flag);
  line(flags.empty() ? fmt::format("@{}", form) : fmt::format("@{}({})", form, joined(flags)));
  const std::string* text = symbol ? symbol->as<std::string>() : nullptr;
  return text && *text == name && !nested ? attrs.without(attr_names::kGlobalSymbol) : attrs;
}

void Printer::graph_function(const std::string& function_name, const Function& function, bool nested) {
  NameScope scope(names_);
  Attrs attrs = decorator("R.function", function_name, function.attrs, function.pure ? "" : "pure=False", nested);
  // Params are named first, so that dims do not take their names.
  for (const VarRef& param : function.params) names_.define(param);
  std::vector<VarRef> dims;
  auto collect = [&](const Type& t) {
    for (const VarRef& var : free_scalars(t)) {
      if (names_.find(var)) continue;
      names_.define(var);
      dims_.insert(var.get());
      dims.push_back(var);
    }
  };
  for (const VarRef& param : function.params) collect(param.type());
  collect(function.result);
  {
    Temporarily quoted(quote_dims_, true);
    auto param = [&](const VarRef& var) { return fmt::format("{}: {}", name(var), type(var.type())); };
    std::string params = joined(function.params, param);
    line("def {}({}) -> {}:", function_name, params, type(function.result));
  }
  Temporarily indent(depth_, depth_ + 1);
  for (const VarRef& var : dims)
    line("{} = {}()", name(var), scalar_type_name(dtype_of(static_cast<const Expr&>(var))));
  if (!attrs.empty()) line("R.func_attr({})", dictionary(attrs));
  if (calls_module_ && !nested) line("cls = Module");
  sequence(function.body, nullptr);
}

void Printer::function(const std::string& function_name, const Expr& function) {
  if (const PrimFunc* program = function.as<PrimFunc>()) return prim_func(function_name, *program);
  if (const ExternFunc* external = function.as<ExternFunc>())
    return line("{} = {}", function_name, extern_func(function, *external));
  const Function* graph = function.as<Function>();
  if (!graph) return line("{} = {}", function_name, expr(function));
  used_.clear();
  calls_module_ = false;
  walk_children(function, [&](const NodeRef& child, Slot slot, const NodeRef&) {
    calls_module_ = calls_module_ || child.is<GlobalVar>();
    if (child.is<Var>() && (slot.role == Role::kField || slot.role == Role::kHint)) used_.insert(child.get());
  });
  graph_function(function_name, *graph, false);
}

void Printer::module(const IRModule& module) {
  module_ = &module;
  line("@I.ir_module");
  line("class Module:");
  Temporarily indent(depth_, depth_ + 1);
  size_t head = out_.size();
  if (!module.attrs.empty()) line("I.module_attrs({})", to_string(AttrValue(module.attrs)));
  if (!module.global_infos.empty()) {
    auto entry = [&](const auto& row) {
      return fmt::format("{}: [{}]", string_literal(row.first), joined(row.second, global_info));
    };
    line("I.module_global_infos({{{}}})", joined(module.global_infos, entry));
  }
  // Programs come first, then external functions, then the graph; main is last.
  auto rank = [](const std::string& name, const Expr& function) {
    if (name == "main") return 3;
    return function.is<PrimFunc>() ? 0 : function.is<ExternFunc>() ? 1 : 2;
  };
  for (int kind = 0; kind <= 3; ++kind) {
    for (const auto& [name, function] : module.functions) {
      if (rank(name, function) != kind) continue;
      if (out_.size() > head) out_ += '\n';
      this->function(name, function);
    }
  }
  if (out_.size() == head) line("pass");
}

}  // namespace text

static std::string finish(text::Printer& printer, const PrintOptions& options) {
  std::string body = printer.take(), side;
  bool elided = !printer.elided().empty();
  if (elided && !options.constants_file.empty()) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const Tensor& tensor : printer.elided())
      tensors.emplace_back(fmt::format("constant_{}", tensors.size()), tensor);
    text::write_safetensors(options.constants_file, tensors);
    std::string file = std::filesystem::path(options.constants_file).filename().string();
    side = fmt::format("metadata = I.load_safetensors({})\n\n", to_string(AttrValue(file)));
    elided = false;
  }
  return fmt::format("# from tvm.script import ir as I\n# {}\n# from tvm.script import relax as R\n\n{}{}{}",
                     printer.spelled("from tvm.script import tir as T"), side, body,
                     elided ? "\n# Constants are elided here; this text cannot be read back.\n" : "");
}

std::string print_module(const IRModule& module, const PrintOptions& options) {
  text::Printer printer(options);
  printer.module(module);
  return finish(printer, options);
}
std::string print_function(const std::string& name, const Expr& function, const PrintOptions& options) {
  text::Printer printer(options);
  printer.function(name, function);
  return finish(printer, options);
}
std::string print_expr(const Expr& expr) { return text::Printer({}).expr(expr); }
std::string print_plain(const Expr& expr) {
  return print_expr(rewrite(expr, [](const Ref<IntImm>& number) -> std::optional<Expr> {
    return dtype_of(number) == kInt32 ? std::optional(int_imm(number->value)) : std::nullopt;
  }));
}
std::string print_type(const Type& type) { return text::Printer({}).type(type); }
std::string print_stmt(const Stmt& stmt) {
  text::Printer printer({});
  printer.stmt(stmt);
  return printer.take();
}
std::string print_node(const NodeRef& node) {
  if (is_type_kind(node.kind())) return print_type(cast_handle<Type>(node));
  if (is_stmt_kind(node.kind())) return print_stmt(cast_handle<Stmt>(node));
  return print_expr(cast_handle<Expr>(node));
}

}  // namespace relaxc
