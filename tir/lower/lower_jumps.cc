// `break`, `continue` and `return` become conditions on flags, so that later steps see loops and branches only (Böhm
// and Jacopini, 1966). A loop that a jump may end becomes a `while`. What follows `if c: continue` goes to the other
// branch, which needs no flag.
#include <algorithm>

#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

bool is_jump(const Expr& e) {
  const std::string& name = op_name(e);
  return name == ops::kBreakLoop || name == ops::kContinueLoop || name == ops::kRet;
}
bool has_jumps(const NodeRef& node) {
  return any_node(node, [](const NodeRef& n) { return n.is<Call>() && is_jump(cast_handle<Expr>(n)); });
}

// A cell that a jump sets. It exists only if it is tested somewhere.
struct Flag {
  explicit Flag(const char* name) : cell(make_buffer(name, kBool, {int_imm(1)}, "local")) {}
  Buffer cell;
  bool is_tested = false;

  Stmt set(bool value, const Span& span) const { return store(cell, bool_imm(value), {int_imm(0)}, span); }
};
using Flags = std::vector<Flag*>;

void add_flags(Flags& to, const Flags& from) {
  for (Flag* flag : from) {
    if (std::ranges::find(to, flag) == to.end()) to.push_back(flag);
  }
}
Expr none_is_set(const Flags& flags) {
  Expr result = bool_imm(true);
  for (Flag* flag : flags) {
    flag->is_tested = true;
    result = result && !load(flag->cell, {int_imm(0)});
  }
  return result;
}
// Returns the statement with the flag's memory, which holds false at first.
Stmt with_flag(const Flag& flag, const Stmt& body) {
  if (!flag.is_tested) return body;
  return seq({make(AllocBuffer{flag.cell, {}}), flag.set(false, body.span()), body}, body.span());
}

class JumpLowering {
 public:
  explicit JumpLowering(std::optional<Buffer> result) : result_(std::move(result)) {}

  Stmt run(const Stmt& body) {
    Stmt lowered = lower(body).stmt;
    if (const Block* root = lowered.as<Block>(); root && is_root(*root)) {
      lowered = edited<Block>(lowered, [&](Block& block) { block.body = with_flag(returned_, block.body); });
    } else {
      lowered = with_flag(returned_, lowered);
    }
    // Flags that nothing tests have no memory.
    return rewrite(lowered, [&](const Ref<BufferStore>& node) -> std::optional<Stmt> {
      auto is_cell = [&](const Flag* flag) { return !flag->is_tested && same_node(flag->cell, node->buffer); };
      return std::ranges::any_of(flags_, is_cell) ? std::optional(no_op()) : std::nullopt;
    });
  }

 private:
  struct Lowered {
    Stmt stmt;
    Flags flags = {};  // that may be set after the statement
  };
  struct Loop {
    Flag stops{"stop"}, skips{"skip"};
  };

  Lowered lower(const Stmt& s) {
    if (!has_jumps(s)) return {s};
    if (const Seq* node = s.as<Seq>()) return lower_list(node->stmts, s.span());
    if (const Evaluate* node = s.as<Evaluate>()) return jump(node->value, s.span());
    if (const IfThenElse* node = s.as<IfThenElse>()) {
      std::span<const Stmt> rest;
      return branch(*node, rest, s.span());
    }
    if (s.is<For>() || s.is<While>()) return loop(s);
    Lowered result{s};
    auto lowered_part = [&](const Stmt& body) {
      Lowered part = lower(body);
      add_flags(result.flags, part.flags);
      return part.stmt;
    };
    if (s.is<Block>()) result.stmt = edited<Block>(s, [&](Block& block) { block.body = lowered_part(block.body); });
    if (s.is<AttrStmt>())
      result.stmt = edited<AttrStmt>(s, [&](AttrStmt& attr) { attr.body = lowered_part(attr.body); });
    if (same_node(result.stmt, s)) fail(s.span(), "a jump cannot stand in this statement");
    return result;
  }

  Lowered jump(const Expr& value, const Span& span) {
    if (!is_jump(value)) fail(span, "break, continue and T.ret are statements; they have no value");
    if (op_name(value) != ops::kRet) {
      if (loops_.empty()) fail(span, "break and continue stand in a loop");
      Flag& flag = op_name(value) == ops::kBreakLoop ? loops_.back()->stops : loops_.back()->skips;
      return {flag.set(true, span), {&flag}};
    }
    std::vector<Stmt> stmts;
    const std::vector<Expr>& args = value.as<Call>()->args;
    if (result_) {
      if (args.empty()) fail(span, "the program returns a value elsewhere");
      DType dtype = buffer_type(*result_).dtype;
      stmts.push_back(store(*result_, cast_to(args[0], dtype),
                            map_each(buffer_type(*result_).shape, [](const Expr&) { return int_imm(0); }), span));
    } else if (!args.empty() && holds<Call>(args[0])) {
      stmts.push_back(evaluate(args[0], span));  // for its effects
    }
    stmts.push_back(returned_.set(true, span));
    return {seq(std::move(stmts), span), {&returned_}};
  }

  // Lowers a branch, and the statements that follow it in its list as far as one of its sides takes them.
  Lowered branch(const IfThenElse& node, std::span<const Stmt>& rest, const Span& span) {
    std::vector<Stmt> sides[] = {{node.then_body}, {node.else_body.value_or(no_op())}};
    bool leaves[] = {always_leaves(sides[0][0]), always_leaves(sides[1][0])};
    if (leaves[0] != leaves[1]) {
      std::vector<Stmt>& stays = sides[leaves[0] ? 1 : 0];
      stays.insert(stays.end(), rest.begin(), rest.end());
      rest = {};
    }
    Lowered then_side = lower_list(sides[0], span), else_side = lower_list(sides[1], span);
    const Seq* nothing = else_side.stmt.as<Seq>();
    std::optional<Stmt> otherwise;
    if (!nothing || !nothing->stmts.empty()) otherwise = else_side.stmt;
    Lowered result{make(IfThenElse{node.condition, then_side.stmt, otherwise}, span), then_side.flags};
    add_flags(result.flags, else_side.flags);
    return result;
  }

  Lowered lower_list(std::span<const Stmt> stmts, const Span& span) {
    std::vector<Stmt> out;
    Lowered result{no_op()};
    for (size_t i = 0; i < stmts.size(); ++i) {
      std::span<const Stmt> rest = stmts.subspan(i + 1);
      const IfThenElse* test = has_jumps(stmts[i]) ? stmts[i].as<IfThenElse>() : nullptr;
      Lowered one = test ? branch(*test, rest, stmts[i].span()) : lower(stmts[i]);
      out.push_back(one.stmt);
      add_flags(result.flags, one.flags);
      if (rest.empty() || always_leaves(stmts[i])) break;
      if (one.flags.empty()) continue;
      Lowered after = lower_list(rest, span);
      out.push_back(make(IfThenElse{none_is_set(one.flags), after.stmt, std::nullopt}, span));
      add_flags(result.flags, after.flags);
      break;
    }
    result.stmt = seq(std::move(out), span);
    return result;
  }
  // Returns whether the statement ends in a jump on all paths.
  static bool always_leaves(const Stmt& s) {
    if (const Seq* node = s.as<Seq>()) return std::ranges::any_of(node->stmts, always_leaves);
    if (const Evaluate* node = s.as<Evaluate>()) return is_jump(node->value);
    if (const AttrStmt* node = s.as<AttrStmt>()) return always_leaves(node->body);
    const IfThenElse* node = s.as<IfThenElse>();
    return node && node->else_body && always_leaves(node->then_body) && always_leaves(*node->else_body);
  }

  Lowered loop(const Stmt& s) {
    const For* counted = s.as<For>();
    loops_.push_back(std::make_unique<Loop>());
    Lowered body = lower(counted ? counted->body : s.as<While>()->body);
    std::unique_ptr<Loop> own = std::move(loops_.back());
    loops_.pop_back();
    body.stmt = with_flag(own->skips, body.stmt);
    std::erase(body.flags, &own->skips);
    Lowered result{s};
    Flags exits = body.flags;
    std::erase(body.flags, &own->stops);
    result.flags = body.flags;
    if (exits.empty()) {
      result.stmt = counted ? edited<For>(s, [&](For& loop) { loop.body = body.stmt; })
                            : edited<While>(s, [&](While& loop) { loop.body = body.stmt; });
    } else {
      Expr goes_on = none_is_set(exits);
      result.stmt = with_flag(own->stops, counted ? as_while(*counted, goes_on, body.stmt, s.span())
                                                  : tested_while(*s.as<While>(), goes_on, body.stmt, s.span()));
    }
    finished_.push_back(std::move(own));
    flags_.push_back(&finished_.back()->stops);
    flags_.push_back(&finished_.back()->skips);
    return result;
  }
  static Stmt tested_while(const While& loop, const Expr& goes_on, const Stmt& body, const Span& span) {
    // The condition may read out of range after a jump.
    return make(While{if_then_else(goes_on, loop.condition, bool_imm(false)), body}, span);
  }
  static Stmt as_while(const For& loop, const Expr& goes_on, const Stmt& body, const Span& span) {
    if (loop.kind == ForKind::kParallel || loop.kind == ForKind::kVectorized || binds_thread(loop.kind))
      fail(span, "T.ret cannot leave the {} loop '{}'; make the loop serial", info(loop.kind).name, loop.var->name);
    DType dtype = dtype_of(loop.var);
    Buffer cell = make_buffer(loop.var->name + "_at", dtype, {int_imm(1)}, "local");
    VarRef end = make_var(loop.var->name + "_end", prim_type(dtype));
    Expr at = load(cell, {int_imm(0)}), step = loop.step.value_or(int_imm(1, dtype));
    Stmt inner = seq({make(Bind{loop.var, at}), body, store(cell, loop.var + step, {int_imm(0)}, span)}, span);
    return seq({make(Bind{end, loop.min + loop.extent}), make(AllocBuffer{cell, {}}),
                store(cell, loop.min, {int_imm(0)}, span), make(While{at < end && goes_on, inner}, span)},
               span);
  }

  std::optional<Buffer> result_;
  Flag returned_{"returned"};
  std::vector<std::unique_ptr<Loop>> loops_;     // around the statement
  std::vector<std::unique_ptr<Loop>> finished_;  // whose flags stores refer to
  Flags flags_{&returned_};
};

}  // namespace

Stmt without_jumps(const Stmt& body, const std::optional<Buffer>& result) {
  return has_jumps(body) ? JumpLowering(result).run(body) : body;
}

// Turns break, continue and T.ret into conditions on flags. Values that T.ret returns are dropped: a caller that wants
// one gets a program that stores it (inline_calls).
PrimFuncRef lower_jumps(const PrimFuncRef& function) {
  Stmt body = without_jumps(function->body, std::nullopt);
  if (same_node(body, function->body) && !function->result) return function;
  PrimFunc copy = *function;
  copy.body = body;
  copy.result.reset();
  return make_prim_func(std::move(copy), function.span());
}

}  // namespace relaxc
