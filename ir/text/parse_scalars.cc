// Scalars of tensor programs: names that are bound to a value, and those that are assigned in the dialect that has
// assignment, which are buffers of one element.
#include <algorithm>

#include "ir/text/parsing.h"
#include "support/lists.h"

namespace relaxc::text {

static constexpr const char* kRemedy =
    "keep a value that changes in memory: `s = T.alloc_buffer((1,), \"float32\", scope=\"local\")`, then `s[0] = ...`";

// Reads m, n = A.shape, which gives the dims other names, and x, y = a + 1, b.
void Parser::unpack_scalars(const Line& line) {
  bool is_meta = callee_path(*line.value) == "T.meta_var";  // values that Python computes before the program
  const Syntax& given = is_meta ? required(*line.value, 0, "value") : *line.value;
  std::vector<const Syntax*> targets = items(*line.target), values = items(given);
  if (given.kind == SyntaxKind::kAttribute && given.text == "shape") {
    std::vector<Expr> shape = dims(given, kInt32);
    if (shape.size() != targets.size()) fail(line, "{} names for {} dims", targets.size(), shape.size());
    for (size_t i = 0; i < targets.size(); ++i) define(name_of_target(*targets[i]), shape[i]);
    return;
  }
  if (targets.size() != values.size()) fail(line, "{} names for {} values", targets.size(), values.size());
  std::vector<Value> read = read_each(values, &Parser::eval);
  for (size_t i = 0; i < targets.size() && is_meta; ++i) define(name_of_target(*targets[i]), read[i].expr);
  if (is_meta) return;
  for (size_t i = 0; i < targets.size(); ++i) assign_scalar(*targets[i], read[i], read[i].expr.type(), *targets[i]);
}

// Finds names that the function assigns again where they are visible.
void Parser::find_cells(const Lines& lines, std::set<std::string_view> visible) {
  for (const Line* line : lines) {
    bool assigns = line->kind == LineKind::kAssign || line->kind == LineKind::kAugmented;
    if (assigns && is_name(*line->target)) {
      bool again = !visible.insert(line->target->text).second || line->kind == LineKind::kAugmented;
      if (again) cells_.insert(std::string(line->target->text));
    }
    find_cells(line->body, visible);
    find_cells(line->otherwise, visible);
  }
}

// Binds the name to the value for the rest of the block. Python would assign, which is the same but for names that are
// bound around the block: what they are bound to does not change.
void Parser::bind_scalar(const Syntax& target, const Value& value, const Type& type, const Place& at) {
  const Entity* known = scopes_.find_here(target.text) ? nullptr : lookup(target.text);
  auto outer = known && known->expr ? bound_scalars_.find(known->expr->get()) : bound_scalars_.end();
  if (outer != bound_scalars_.end()) {
    BoundScalar& bound = outer->second;
    const bool is_carried = std::ranges::any_of(
        loop_starts_, [&](size_t start) { return bound.bound_at < start && start < bound.last_read; });
    if (is_carried)
      fail({target, {}, kRemedy},
           "each iteration begins with the value that '{}' has in line {}, and not with this one", target.text,
           bound.line);
    bound.hidden_in = target.line;
  }
  VarRef var = define_var(target, type);
  bound_scalars_.insert_or_assign(var.get(), BoundScalar{target.line, ++scalar_time_});
  out_->push_back(make(Bind{var, value.expr}, span(at)));
}

// Refuses a value that Python would have changed in an inner block.
void Parser::read_scalar(const Syntax& at, const Expr& var) {
  auto found = bound_scalars_.find(var.get());
  const bool is_param =
      std::ranges::any_of(params_, [&](const auto& param) { return param && same_node(*param, var); });
  if (found == bound_scalars_.end() && is_param)
    found = bound_scalars_.emplace(var.get(), BoundScalar{var.span().line, 0}).first;
  if (found == bound_scalars_.end()) return;
  BoundScalar& bound = found->second;
  bound.last_read = ++scalar_time_;
  if (bound.hidden_in)
    fail({at, {}, kRemedy}, "'{}' is the value of line {} here: that of line {} ends with its loop, branch or block",
         at.text, bound.line, *bound.hidden_in);
}

void Parser::assign_scalar(const Syntax& target, const Value& value, const Type& type, const Place& at) {
  std::string var_name = name_of_target(target);
  if (!value.expr.type().is<PrimType>()) fail(target, "expected a scalar");
  const Entity* known = lookup(var_name);
  bool assigned = known && known->form == Entity::Form::kCell;
  if (!assigned && !cells_.contains(var_name)) return bind_scalar(target, value, type, at);
  if (!assigned) declare_cell(target, dtype_of(value.expr));
  Buffer cell = cast<Var>(*lookup(var_name)->expr);
  DType wanted = buffer_type(cell).dtype;
  Expr stored = value.literal ? adapt(value, wanted, target) : value.expr;
  if (dtype_of(stored) != wanted)
    fail(target, "'{}' is {}, got {}", var_name, to_string(wanted), to_string(dtype_of(stored)));
  out_->push_back(relaxc::store(cell, stored, {int_imm(0, kInt32)}, span(target)));
}

void Parser::declare_cell(const Syntax& target, DType dtype) {
  Buffer cell = make_buffer(name_of_target(target), dtype, {int_imm(1, kInt32)}, "local", span(target));
  scopes_.define(cell->name, Entity{.expr = cell, .form = Entity::Form::kCell});
  out_->push_back(make(AllocBuffer{cell, {}}, span(target)));
}

}  // namespace relaxc::text
