#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/text/bare_values.h"
#include "ir/text/printing.h"

namespace relaxc::text {

namespace {

bool starts_at_zero(const For& loop) { return is_int(loop.min, 0); }
bool is_plain(const For& loop) {
  return loop.kind == ForKind::kSerial && loop.annotations.empty() && loop.thread.empty();
}
// Returns whether the buffer's layout is the default one.
bool is_compact(const BufferType& type) {
  BufferType defaults;
  return type.strides.empty() && !type.elem_offset && type.data_alignment == defaults.data_alignment &&
         type.offset_factor == defaults.offset_factor && type.axis_separators.empty() && !type.auto_broadcast;
}
// Returns whether an annotation can describe the buffer param.
bool is_simple(const BufferType& type) {
  bool constant_dims = std::ranges::all_of(type.shape, [](const Expr& dim) { return dim.is<IntImm>(); });
  return constant_dims && is_compact(type) && type.scope == BufferType().scope;
}

// A root block without other information is implied by the blocks below it.
bool hides_root(const PrimFunc& function) {
  const Block* root = function.body.as<Block>();
  return root && is_root(*root) && !root->predicate && root->reads.empty() && root->writes.empty() &&
         root->annotations.empty() && root->match_buffers.empty() && !root->init && holds<Block>(root->body);
}

}  // namespace

void Printer::line(std::string_view text) {
  out_.append(static_cast<size_t>(depth_) * 4, ' ');
  out_ += text;
  out_ += '\n';
}

void Printer::body(const Stmt& stmt) {
  Temporarily indent(depth_, depth_ + 1);
  NameScope scope(names_);
  this->stmt(stmt, Place::kLast);
}

// Prints a statement that holds for `inner`: the rest of the block, or the body of a `with`.
void Printer::held(const std::string& head, const std::string& target, const Stmt& inner, Place place) {
  if (place == Place::kLast) {
    line(target.empty() ? head : fmt::format("{} = {}", target, head));
    return stmt(inner, place);
  }
  line(target.empty() ? fmt::format("with {}:", head) : fmt::format("with {} as {}:", head, target));
  body(inner);
}

void Printer::evaluate(const Evaluate& node) {
  if (as_call(node.value, ops::kBreakLoop)) return line("break");
  if (as_call(node.value, ops::kContinueLoop)) return line("continue");
  const Call* returned = as_call(node.value, ops::kRet);
  if (returned && returned->args.empty()) return line("return");
  if (returned && returned->args.size() == 1) return line("return " + expr(returned->args[0]));
  std::string text = expr(node.value);
  // A bare T.prefetch(...) is a different statement in TVM, and a bare value without an effect is refused.
  bool stands_alone = node.value.is<Call>() && text.back() == ')' && !as_call(node.value, ops::kPrefetch) &&
                      may_stand_alone(node.value);
  line(stands_alone ? text : fmt::format("T.evaluate({})", text));
}

void Printer::assertion(const Assert& node) {
  std::string text = "assert " + expr(node.condition);
  bool later = options_.dialect == Dialect::kTvm26;
  bool plain = node.kind.empty() && node.values.empty();
  if (plain && node.message.empty()) return line(text);
  if (plain && node.message.size() == 1 && !later) return line("{}, {}", text, string_literal(node.message[0]));
  std::string parts = joined(node.message, string_literal), values = list(node.values);
  if (!parts.empty() && !values.empty()) parts += ", ";
  std::string kind =
      node.kind.empty() && !later ? "None" : string_literal(node.kind.empty() ? "RuntimeError" : node.kind);
  line("{}, ({}, [{}])", text, kind, parts + values);
}

void Printer::alloc_buffer(const AllocBuffer& node) {
  const BufferType& type = buffer_type(node.buffer);
  std::string notes = node.annotations.empty() ? "" : ", annotations=" + attribute(node.annotations);
  // Later versions have buffers only; their pointers are A.data.
  bool later = options_.dialect == Dialect::kTvm26 && !node.contents;
  bool pointer = pointers_.contains(node.buffer.get()) && is_compact(type) && !type.data && !later;
  if (!pointer) pointers_.erase(node.buffer.get());
  const Constant* contents = node.contents ? node.contents->as<Constant>() : nullptr;
  std::string_view form = type.data ? "T.decl_buffer" : spelled("T.decl_buffer");
  std::string dtype = dtype_literal(type.dtype), args;
  if (contents) {
    form = "T.allocate_const";
    args = fmt::format("{}, {}, [{}]", tensor_items(contents->data), dtype, list(type.shape));
  } else if (pointer) {
    form = "T.allocate";
    args = fmt::format("[{}], {}, {}", list(type.shape), dtype, string_literal(type.scope));
  } else {
    args = buffer_args(type);
  }
  line("{} = {}({}{})", names_.define(node.buffer), form, args, notes);
}

void Printer::find_pointers(const PrimFunc& function) {
  pointers_.clear();
  std::unordered_set<const NodeHeader*> direct;
  walk_nodes(function.body, [&](const NodeRef& node) {
    if (const AllocBuffer* alloc = node.as<AllocBuffer>()) pointers_.insert(alloc->buffer.get());
    if (is_expr_kind(node.kind()) && as_call(cast_handle<Expr>(node), ops::kBufferData)) return false;
    visit_children(node, [&](const NodeRef& child, Slot slot) {
      if (child.is<Var>() && slot.role == Role::kField) direct.insert(child.get());
    });
    return true;
  });
  std::erase_if(pointers_, [&](const NodeHeader* buffer) { return direct.contains(buffer); });
}

void Printer::stmt(const Stmt& s, Place place) {
  match(
      s,
      [&](const Seq& node) {
        if (node.stmts.empty()) line("pass");
        for (size_t i = 0; i < node.stmts.size(); ++i)
          stmt(node.stmts[i], i + 1 < node.stmts.size() ? Place::kMiddle : place);
      },
      [&](const BufferStore& node) {
        if (!node.predicate) return line("{} = {}", element(node.buffer, node.indices), expr(node.value));
        line("{}.vstore([{}], {}, predicate={})", name(node.buffer), list(node.indices), expr(node.value),
             expr(*node.predicate));
      },
      [&](const For& node) {
        if (node.kind != ForKind::kLaunchThread) return for_loop(s);
        std::string head = fmt::format("T.launch_thread({}, {})", string_literal(node.thread), expr(node.extent));
        NameScope scope(names_);
        held(head, names_.define(node.var), node.body, place);
      },
      [&](const While& node) {
        line("while {}:", expr(node.condition));
        body(node.body);
      },
      [&](const IfThenElse& node) { if_then_else(node); },
      [&](const Bind& node) {
        std::string value = expr(node.value);
        std::string var = names_.define(node.var);
        std::string stated = type(node.var.type());
        // In that dialect `x: T.int32 = e` is a scalar that may change.
        if (options_.dialect == Dialect::kTvm26) stated = fmt::format("T.let[{}]", stated);
        line("{}: {} = {}", var, stated, value);
      },
      [&](const AllocBuffer& node) { alloc_buffer(node); }, [&](const Evaluate& node) { evaluate(node); },
      [&](const Assert& node) { assertion(node); },
      [&](const AttrStmt& node) {
        held(fmt::format("T.attr({}, {}, {})", expr(node.node), string_literal(node.key), expr(node.value)), "",
             node.body, place);
      },
      [&](const Block& node) { block(node); });
}

void Printer::if_then_else(const IfThenElse& node) {
  line("if {}:", expr(node.condition));
  body(node.then_body);
  std::optional<Stmt> rest = node.else_body;
  while (rest) {
    const IfThenElse* chained = rest->as<IfThenElse>();
    // A T.Let in the condition needs lines before the `if`, so it cannot be an `elif`.
    if (chained && holds<Let>(chained->condition)) chained = nullptr;
    line(chained ? fmt::format("elif {}:", expr(chained->condition)) : "else:");
    body(chained ? chained->then_body : *rest);
    rest = chained ? chained->else_body : std::nullopt;
  }
}

void Printer::for_loop(const Stmt& stmt) {
  NameScope scope(names_);
  // Perfect nests of plain loops from 0 whose extents do not depend on each other are one grid.
  std::vector<const For*> nest;
  std::vector<std::string> extents;
  auto fits = [&](const For& loop) {
    if (!is_plain(loop) || loop.step || !starts_at_zero(loop) || dtype_of(loop.extent) != dtype_of(loop.var))
      return false;
    return std::ranges::none_of(nest, [&](const For* outer) { return uses_var(loop.extent, outer->var); });
  };
  for (const For* loop = stmt.as<For>(); loop && fits(*loop) && !is_marked(loop); loop = loop->body.as<For>()) {
    extents.push_back(expr(loop->extent));
    nest.push_back(loop);
  }
  if (nest.size() >= 2) {
    std::vector<std::string> vars;
    for (const For* loop : nest) {
      vars.push_back(names_.define(loop->var));
      loops_.insert_or_assign(loop->var.get(), Range{loop->min, loop->extent});
    }
    line("for {} in T.grid({}):", joined(vars), joined(extents));
    return body(nest.back()->body);
  }
  const For& loop = *stmt.as<For>();
  Range range{loop.min, loop.extent};
  bool short_form = starts_at_zero(loop) && !(loop.step && is_plain(loop));
  std::string args = short_form ? expr(loop.extent) : fmt::format("{}, {}", expr(loop.min), expr(range_end(range)));
  if (loop.step) args += (is_plain(loop) ? ", " : ", step=") + expr(*loop.step);
  if (loop.kind == ForKind::kThreadBinding) args += ", thread=" + string_literal(loop.thread);
  if (!loop.annotations.empty()) args += ", annotations=" + attribute(loop.annotations);
  std::string var = names_.define(loop.var);
  if (!loop.step) loops_.insert_or_assign(loop.var.get(), range);
  std::string head = is_plain(loop) ? "range" : fmt::format("T.{}", info(loop.kind).name);
  line("for {} in {}({}):{}", var, head, args, mark(&loop));
  body(loop.body);
}

void Printer::block_axes(const Block& node) {
  std::vector<std::string> values = map_each(node.iter_vars, [&](const IterVar& axis) { return expr(axis.value); });
  // Axes that take a loop unchanged have its variable, its domain and its dtype.
  auto takes_loop = [&](const IterVar& axis) {
    auto loop = axis.value.is<Var>() ? loops_.find(axis.value.get()) : loops_.end();
    return loop != loops_.end() && info(axis.kind).letter && dtype_of(axis.var) == dtype_of(axis.value) &&
           structural_equal(loop->second.min, axis.domain.min) &&
           structural_equal(loop->second.extent, axis.domain.extent);
  };
  for (size_t i = 0; i < node.iter_vars.size();) {
    size_t end = i;
    while (end < node.iter_vars.size() && takes_loop(node.iter_vars[end])) ++end;
    if (end - i >= 2) {
      std::span<const IterVar> axes(node.iter_vars.begin() + i, end - i);
      std::string vars = joined(axes, [&](const IterVar& axis) { return names_.define(axis.var); }), letters;
      for (const IterVar& axis : axes) letters += info(axis.kind).letter;
      line("{} = T.axis.remap({}, [{}])", vars, string_literal(letters), joined(std::span(values).subspan(i, end - i)));
      i = end;
      continue;
    }
    const IterVar& axis = node.iter_vars[i];
    std::string domain = is_int(axis.domain.min, 0)
                             ? expr(axis.domain.extent)
                             : fmt::format("({}, {})", expr(axis.domain.min), expr(range_end(axis.domain)));
    line("{} = T.axis.{}({}, {})", names_.define(axis.var), info(axis.kind).name, domain, values[i]);
    ++i;
  }
}

void Printer::block_body(const Block& node) {
  for (const Buffer& buffer : node.alloc_buffers) {
    std::string args = buffer_args(buffer_type(buffer));
    line("{} = {}({})", names_.define(buffer), spelled("T.alloc_buffer"), args);
  }
  for (const MatchBuffer& window : node.match_buffers) {
    declare_scalars(window.defines);
    std::string args = buffer_args(buffer_type(window.buffer));
    std::string source = region(window.source);
    line("{} = T.match_buffer({}, {})", names_.define(window.buffer), source, args);
  }
  if (node.init) {
    line("with T.init():");
    body(*node.init);
  }
  stmt(node.body, Place::kLast);
}

void Printer::block(const Block& node) {
  line("with {}({}):{}", spelled("T.block"), string_literal(node.name), mark(&node));
  Temporarily indent(depth_, depth_ + 1);
  NameScope scope(names_);
  block_axes(node);
  if (node.predicate) line("T.where({})", expr(*node.predicate));
  line("T.reads({})", printed(node.reads, &Printer::region));
  line("T.writes({})", printed(node.writes, &Printer::region));
  if (!node.annotations.empty()) line("{}({})", spelled("T.block_attr"), attribute(node.annotations));
  block_body(node);
}

void Printer::prim_func(const std::string& function_name, const PrimFunc& function) {
  NameScope scope(names_);
  Temporarily bare(default_int_, kInt32);
  find_pointers(function);
  std::vector<std::string> params;
  std::vector<std::pair<VarRef, std::string>> handles;
  for (const VarRef& param : function.params) {
    std::string name = names_.define(param);
    const BufferType* buffer = param.type().as<BufferType>();
    bool simple = !buffer || is_simple(*buffer);
    if (!simple) handles.emplace_back(param, names_.reserve("var_" + name));
    params.push_back(simple ? fmt::format("{}: {}", name, type(param.type())) : handles.back().second + ": T.handle");
  }
  const char* flag = options_.dialect == Dialect::kTvm26 ? "s_tir=True" : "";
  Attrs attrs = decorator("T.prim_func", function_name, function.attrs, flag, false);
  line("def {}({}){}:", function_name, joined(params),
       function.result ? " -> " + scalar_type_name(*function.result) : "");
  {
    Temporarily indent(depth_, depth_ + 1);
    if (!attrs.empty()) line("T.func_attr({})", dictionary(attrs));
    std::vector<VarRef> dims;
    for (const auto& [param, handle] : handles) walk(param.type(), [&](const Ref<Var>& var) { dims.push_back(var); });
    for (const VarRef& var : free_scalars(make_prim_func(PrimFunc(function)))) dims.push_back(var);
    declare_scalars(dims);
    for (const auto& [param, handle] : handles)
      line("{} = T.match_buffer({}, {})", name(param), handle, buffer_args(buffer_type(param)));
    if (hides_root(function)) {
      line("# with {}(\"root\"):", spelled("T.block"));
      block_body(*function.body.as<Block>());
    } else {
      stmt(function.body, Place::kLast);
    }
  }
  loops_.clear();
}

}  // namespace relaxc::text
