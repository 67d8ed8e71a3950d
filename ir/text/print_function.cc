#include <filesystem>

#include "ir/builder.h"
#include "ir/text/printing.h"
#include "ir/text/safetensors.h"

namespace relaxc {

namespace text {

namespace {

// Returns the type arguments as the type of the call's result.
std::optional<Type> stated_type(const Expr& value) {
  const std::string& op = op_name(value);
  if (!op.starts_with("relax.call_tir") && op != "relax.call_dps_packed") return std::nullopt;
  const std::vector<Type>& types = value.as<Call>()->type_args;
  if (types.empty()) return std::nullopt;
  return types.size() == 1 ? types[0] : tuple_type(types);
}

// Returns the last binding of a branch when the branch's value is its variable.
const Binding* final_binding(const SeqExpr& seq) {
  if (seq.blocks.empty() || seq.blocks.back().dataflow || seq.blocks.back().bindings.empty()) return nullptr;
  const Binding& last = seq.blocks.back().bindings.back();
  return same_node(last.var, seq.body) ? &last : nullptr;
}

}  // namespace

bool Printer::is_redundant_annotation(const Binding& binding) {
  std::optional<Type> stated = stated_type(binding.value);
  return stated && structural_equal(*stated, binding.var.type());
}

void Printer::declare_scalars(const std::vector<VarRef>& vars) {
  for (const VarRef& var : vars) {
    const PrimType* prim = var.type().as<PrimType>();
    if (!prim || names_.find(var)) continue;
    dims_.insert(var.get());
    std::string made = prim->pointee ? type(var.type()) : scalar_type_name(prim->dtype) + "()";
    line(fmt::format("{} = {}", names_.define(var), made));
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
  line(fmt::format("if {}:", condition));
  for (const Expr* branch : {&node.then_branch, &node.else_branch}) {
    if (branch == &node.else_branch) line("else:");
    Indent indent(*this);
    Scope scope(*this);
    sequence(*branch, &target);
  }
}

void Printer::binding(const Binding& b) {
  std::vector<VarRef> dims = free_scalars(b.var.type());
  if (b.cast) {
    for (const VarRef& var : free_scalars(*b.cast)) dims.push_back(var);
  }
  if (!b.value.is<Function>()) {
    for (const VarRef& var : free_scalars(b.value)) dims.push_back(var);
  }
  declare_scalars(dims);
  if (const If* branch = b.value.as<If>(); branch && !b.cast) return if_binding(b, *branch);
  if (const Function* function = b.value.as<Function>(); function && !b.cast)
    return graph_function(names_.define(b.var), *function, true);
  std::string value =
      b.cast ? fmt::format("R.match_cast({}, {})", argument(b.value), type(*b.cast)) : argument(b.value);
  std::string annotation = is_redundant_annotation(b) ? "" : ": " + type(b.var.type());
  line(fmt::format("{}{} = {}", target_name(b.var), annotation, value));
}

// Prints the statements of a body, then `return value`, or `target = value` in a branch.
void Printer::sequence(const Expr& seq, const VarRef* target) {
  const SeqExpr* node = seq.as<SeqExpr>();
  const Binding* last = nullptr;
  if (node) {
    last = target ? final_binding(*node) : nullptr;
    bool direct = last && !last->cast && !last->value.is<If>() && !last->value.is<Function>() &&
                  structural_equal(last->var.type(), target->type()) && !is_leaf(last->value);
    if (!direct) last = nullptr;
    for (const BindingBlock& block : node->blocks) {
      if (block.dataflow) {
        line("with R.dataflow():");
        Indent indent(*this);
        for (const Binding& b : block.bindings) binding(b);
        std::vector<std::string> outputs;
        for (const VarRef& var : block.outputs) outputs.push_back(name(var));
        line(fmt::format("R.output({})", fmt::join(outputs, ", ")));
        continue;
      }
      for (const Binding& b : block.bindings) {
        if (&b != last) binding(b);
      }
    }
  }
  const Expr& value = last ? last->value : node ? node->body : seq;
  declare_scalars(free_scalars(value));
  if (target) declare_scalars(free_scalars(target->type()));
  if (!target) return line("return " + argument(value));
  std::string annotation = last && is_redundant_annotation(*last) ? "" : ": " + type(target->type());
  line(fmt::format("{}{} = {}", name(*target), annotation, argument(value)));
}

void Printer::graph_function(const std::string& function_name, const Function& function, bool nested) {
  Scope scope(*this);
  std::vector<std::string> flags;
  const AttrValue* symbol = function.attrs.find("global_symbol");
  const std::string* symbol_text = symbol ? symbol->as<std::string>() : nullptr;
  Attrs attrs = symbol_text && *symbol_text == function_name && !nested ? function.attrs.without("global_symbol")
                                                                        : function.attrs;
  if (!symbol && !nested) flags.push_back("private=True");
  if (!function.pure) flags.push_back("pure=False");
  line(flags.empty() ? "@R.function" : fmt::format("@R.function({})", fmt::join(flags, ", ")));

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
  quote_dims_ = true;
  std::vector<std::string> params;
  for (const VarRef& param : function.params) params.push_back(fmt::format("{}: {}", name(param), type(param.type())));
  std::string result = type(function.result);
  quote_dims_ = false;
  line(fmt::format("def {}({}) -> {}:", function_name, fmt::join(params, ", "), result));
  Indent indent(*this);
  for (const VarRef& var : dims)
    line(fmt::format("{} = {}()", name(var), scalar_type_name(dtype_of(static_cast<const Expr&>(var)))));
  if (!attrs.empty()) line(fmt::format("R.func_attr({})", dictionary(attrs)));
  if (calls_module_ && !nested) line("cls = Module");
  sequence(function.body, nullptr);
}

void Printer::function(const std::string& function_name, const Expr& function) {
  if (const PrimFunc* program = function.as<PrimFunc>()) return prim_func(function_name, *program);
  if (const ExternFunc* external = function.as<ExternFunc>())
    return line(fmt::format("{} = {}", function_name, extern_func(function, *external)));
  const Function* graph = function.as<Function>();
  if (!graph) return line(fmt::format("{} = {}", function_name, expr(function)));
  used_.clear();
  calls_module_ = false;
  walk_nodes(function, [&](const NodeRef& node) {
    calls_module_ = calls_module_ || node.is<GlobalVar>();
    visit_children(node, [&](const NodeRef& child, Slot slot) {
      if (child.is<Var>() && (slot.role == Role::kField || slot.role == Role::kHint)) used_.insert(child.get());
    });
    return true;
  });
  graph_function(function_name, *graph, false);
}

void Printer::module(const IRModule& module) {
  module_ = &module;
  line("@I.ir_module");
  line("class Module:");
  Indent indent(*this);
  bool empty = true;
  auto separate = [&] {
    if (!empty) out_ += '\n';
    empty = false;
  };
  if (!module.attrs.empty()) {
    line(fmt::format("I.module_attrs({})", to_string(AttrValue(module.attrs))));
    empty = false;
  }
  if (!module.global_infos.empty()) {
    std::vector<std::string> entries;
    for (const auto& [key, infos] : module.global_infos) {
      std::vector<std::string> items;
      for (const GlobalInfo& info : infos) items.push_back(global_info(info));
      entries.push_back(fmt::format("{}: [{}]", text::string_literal(key), fmt::join(items, ", ")));
    }
    line(fmt::format("I.module_global_infos({{{}}})", fmt::join(entries, ", ")));
    empty = false;
  }
  // Programs come first, then external functions, then the graph; main is last.
  auto rank = [](const std::string& name, const Expr& function) {
    if (name == "main") return 3;
    return function.is<PrimFunc>() ? 0 : function.is<ExternFunc>() ? 1 : 2;
  };
  for (int kind = 0; kind <= 3; ++kind) {
    for (const auto& [name, function] : module.functions) {
      if (rank(name, function) != kind) continue;
      separate();
      this->function(name, function);
    }
  }
  if (empty) line("pass");
}

}  // namespace text

namespace {

std::string finish(text::Printer& printer, const PrintOptions& options) {
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

text::Printer message_printer() { return text::Printer(PrintOptions{}); }

}  // namespace

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
std::string print_expr(const Expr& expr) { return message_printer().expr(expr); }
std::string print_type(const Type& type) { return message_printer().type(type); }
std::string print_stmt(const Stmt& stmt) {
  text::Printer printer(PrintOptions{});
  printer.stmt(stmt);
  return printer.take();
}
std::string print_node(const NodeRef& node) {
  if (is_type_kind(node.kind())) return print_type(cast_handle<Type>(node));
  if (is_stmt_kind(node.kind())) return print_stmt(cast_handle<Stmt>(node));
  return print_expr(cast_handle<Expr>(node));
}

}  // namespace relaxc
