#include <algorithm>

#include "ir/attr_names.h"
#include "passes/compose.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// The bindings of one block that move into a function, and the others.
class Outliner {
 public:
  Outliner(const BindingBlock& block, const VarSet& group, const VarSet& used_after) {
    for (const Binding& binding : block.bindings) {
      bool is_member = group.contains(binding.var.get());
      bool reads_group = uses_var(binding.value, made_), reads_later = uses_var(binding.value, later_vars_);
      if (is_member) {
        can_move = can_move && !reads_later;
        members_.push_back(binding);
        made_.insert(binding.var.get());
      } else if (reads_group || reads_later) {
        later_.push_back(binding);
        later_vars_.insert(binding.var.get());
        add_free_vars(binding.value, used_);
      } else {
        before_.push_back(binding);
      }
    }
    used_.insert(used_after.begin(), used_after.end());
  }

  bool can_move = true;  // no other binding reads what a member computes and is read by a member
  bool is_empty() const { return members_.empty(); }

  // Returns the block's bindings with a call of the function, which the module gets.
  std::vector<Binding> run(const std::string& name, IRModule& module, const OpTable& ops) {
    collect_inputs();
    std::vector<VarRef> outputs;
    for (const Binding& member : members_) {
      if (used_.contains(member.var.get())) outputs.push_back(member.var);
    }
    FunctionRef function = make_body(outputs, ops);
    module.functions.insert_or_assign(name, function);
    const Span& span = members_.back().var.span();
    std::vector<Type> types = map_each(outputs, [](const VarRef& var) { return var.type(); });
    Type type = outputs.size() == 1 ? types[0] : tuple_type(types);
    Expr called = call(global_var(name, function.type()), arguments_, {}, type, span);
    std::vector<Binding> result = before_;
    if (outputs.size() == 1) {
      result.push_back({called, std::nullopt, outputs[0]});
    } else {
      VarRef all = make_var(name, type, span);
      result.push_back({called, std::nullopt, all});
      for (size_t i = 0; i < outputs.size(); ++i)
        result.push_back({tuple_get(all, static_cast<int64_t>(i)), std::nullopt, outputs[i]});
    }
    result.insert(result.end(), later_.begin(), later_.end());
    return result;
  }

 private:
  // Makes params for what members use, and one for the dims that no type of these gives.
  void collect_inputs() {
    std::vector<VarRef> dims, values;
    auto note = [&](const NodeRef& node) {
      for (const VarRef& var : free_vars(node)) {
        if (made_.contains(var.get())) continue;
        std::vector<VarRef>& list = var.type().is<PrimType>() ? dims : values;
        if (!contains(list, var)) list.push_back(var);
      }
    };
    for (const Binding& member : members_) {
      note(member.value);
      note(member.var.type());
    }
    for (size_t i = 0; i < values.size(); ++i) note(values[i].type());
    for (const VarRef& dim : dims) map_.emplace(dim.get(), make_dim(dim->name));
    VarMap given;
    for (const VarRef& value : values) {
      params_.push_back(make_var(value->name, substitute(value.type(), map_), value.span()));
      map_.emplace(value.get(), params_.back());
      arguments_.push_back(value);
      bind_dims(value.type(), value.type(), given);
    }
    std::vector<Expr> others;
    for (const VarRef& dim : dims) {
      if (!given.contains(dim.get())) others.push_back(dim);
    }
    if (others.empty()) return;
    params_.push_back(make_var("dims", substitute(shape_type(others), map_)));
    arguments_.push_back(shape_expr(others));
  }

  static bool contains(const std::vector<VarRef>& list, const VarRef& var) {
    return std::ranges::any_of(list, [&](const VarRef& other) { return same_node(other, var); });
  }

  FunctionRef make_body(const std::vector<VarRef>& outputs, const OpTable& ops) {
    Builder builder(ops);
    builder.begin_dataflow();
    for (const Binding& member : members_) {
      VarRef var = make_var(member.var->name, substitute(member.var.type(), map_), member.var.span());
      map_.emplace(member.var.get(), var);
      builder.keep({substitute(member.value, map_), std::nullopt, var});
    }
    std::vector<Expr> results;
    std::vector<VarRef> result_vars;
    for (const VarRef& output : outputs) {
      results.push_back(map_.at(output.get()));
      result_vars.push_back(cast<Var>(results.back()));
    }
    builder.end_dataflow(result_vars);
    Expr result = results.size() == 1 ? results[0] : tuple(results);
    Expr body = builder.finish(result);
    return make_function(
        {.params = params_, .body = body, .result = result.type(), .attrs = Attrs{{attr_names::kPrimitive, true}}},
        members_.back().var.span());
  }

  std::vector<Binding> members_, before_, later_;
  VarSet made_, later_vars_, used_;
  VarMap map_;  // to the function's terms
  std::vector<VarRef> params_;
  std::vector<Expr> arguments_;
};

}  // namespace

std::optional<FunctionRef> outline(const FunctionRef& function, const VarSet& group, const std::string& name,
                                   IRModule& module, const OpTable& ops) {
  int parts = 0;
  bool can_move = true;
  Expr body = rewrite_blocks(function->body, [&](const BindingBlock& block, const VarSet& used_after) {
    Outliner outliner(block, group, used_after);
    if (outliner.is_empty()) return block.bindings;
    ++parts;
    can_move = can_move && outliner.can_move;
    return can_move && parts == 1 ? outliner.run(name, module, ops) : block.bindings;
  });
  if (parts != 1 || !can_move) return std::nullopt;
  Function copy = *function;
  copy.body = body;
  return make_function(std::move(copy), function.span());
}

}  // namespace relaxc
