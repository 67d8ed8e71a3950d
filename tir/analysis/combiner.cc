#include "tir/analysis/combiner.h"

#include <algorithm>
#include <array>
#include <functional>

#include "ir/visit.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"

namespace relaxc {

static bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return structural_equal(x, y); });
}

bool is_element(const Expr& e, const BufferStore& store) {
  const BufferLoad* load = e.as<BufferLoad>();
  return load && same_node(load->buffer, store.buffer) && !load->predicate &&
         same_indices(load->indices, store.indices);
}

namespace {

using Part = Combiner::Part;
using Values = std::unordered_map<const NodeHeader*, Expr>;  // the values of variables that the body binds

// An operator of out = op(out, value), and its identity element.
struct Operator {
  BinaryOp op;
  Expr (*identity)(DType);
};
constexpr Operator kOperators[] = {
    {BinaryOp::kAdd, zero}, {BinaryOp::kMul, one}, {BinaryOp::kMax, lowest}, {BinaryOp::kMin, highest}};

bool mentions_parts(const NodeRef& node, const std::vector<Part>& parts) {
  return std::ranges::any_of(parts, [&](const Part& part) { return uses_var(node, part.store->buffer); });
}

bool find_operators(std::vector<Part>& parts) {
  for (Part& part : parts) {
    const Binary* node = part.store->value.as<Binary>();
    auto known = std::ranges::find_if(kOperators, [&](const Operator& row) { return node && row.op == node->op; });
    if (known == std::end(kOperators)) return false;
    if (!is_element(node->a, *part.store) && !is_element(node->b, *part.store)) return false;
    part.op = node->op;
    part.value = is_element(node->a, *part.store) ? node->b : node->a;
    if (mentions_parts(part.value, parts)) return false;
  }
  return true;
}

// A choice depends on its elements through comparisons only, so ranks (small integers) can represent them. The laws
// below combine three elements at a time, for which three ranks per buffer are enough.
constexpr int kRanks = 3;
constexpr size_t kMostParts = 3;
using Tuple = std::array<int, kMostParts>;
struct Step {
  const Tuple &before, &value;  // the buffers' content before the iteration, and the iteration's values
  Tuple now;
};
using Term = std::function<int(const Step&)>;  // empty: the expression has another form

Term both(Term a, Term b, BinaryOp op) {
  if (!a || !b) return {};
  return [a = std::move(a), b = std::move(b), op](const Step& at) {
    return static_cast<int>(*fold_int(op, a(at), b(at), kInt64));
  };
}
Term either(Term condition, Term a, Term b) {
  if (!condition || !a || !b) return {};
  return [condition = std::move(condition), a = std::move(a), b = std::move(b)](const Step& at) {
    return condition(at) ? a(at) : b(at);
  };
}

bool is_extremum(const Binary* node) { return node && (node->op == BinaryOp::kMax || node->op == BinaryOp::kMin); }

// Analyses the body of a choice: finds each part's value, and the effect of the body as a function of ranks.
class Choice {
 public:
  Choice(std::vector<Part>& parts, Values bound) : parts_(parts), bound_(std::move(bound)), found_(parts.size()) {}

  bool read() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!find_value(parts_[i].store->value, i) || !found_[i]) return false;
      // With equal values of two parts, a comparison would not show which part it belongs to.
      for (size_t other = 0; other < i; ++other) {
        if (structural_equal(parts_[other].value, *found_[i])) return false;
      }
      parts_[i].value = *found_[i];
      parts_[i].op.reset();
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      terms_.push_back(value(parts_[i].store->value, i));
      if (!terms_.back()) return false;
    }
    return true;
  }

  // Tests commutativity and associativity on all tuples of three ranks.
  void find_laws(Combiner& combiner) const {
    std::vector<Tuple> all{Tuple{}};
    for (size_t i = 0; i < parts_.size(); ++i) {
      size_t count = all.size();
      for (int rank = 1; rank < kRanks; ++rank) {
        for (size_t n = 0; n < count; ++n) {
          all.push_back(all[n]);
          all.back()[i] = rank;
        }
      }
    }
    for (const Tuple& a : all) {
      // Each group begins with the init, so that it is combined several times: only the first time may change anything.
      combiner.regroups = combiner.regroups && combine(a, a) == a;
      for (const Tuple& b : all) {
        Tuple ab = combine(a, b);
        combiner.commutes = combiner.commutes && ab == combine(b, a);
        combiner.regroups = combiner.regroups && combine(ab, a) == ab;
        for (const Tuple& c : all) combiner.regroups = combiner.regroups && combine(ab, c) == combine(a, combine(b, c));
      }
    }
  }

 private:
  Tuple combine(const Tuple& before, const Tuple& value) const {
    Step at{before, value, before};
    for (size_t i = 0; i < terms_.size(); ++i) at.now[i] = terms_[i](at);
    return at.now;
  }

  // Returns the value of a bound variable that depends on the content of the buffers, else null.
  const Expr* bound_value(const Expr& e) const { return relaxc::find_value(bound_, e.get()); }
  bool find_value(const Expr& e, size_t part) {
    if (is_element(e, *parts_[part].store)) return true;
    if (const Expr* content = bound_value(e)) return find_value(*content, part);
    if (auto node = branches_of(e)) return find_value(node->a, part) && find_value(node->b, part);
    if (mentions_parts(e, parts_) || uses_var(e, bound_)) {
      const Binary* node = e.as<Binary>();
      return is_extremum(node) && find_value(node->a, part) && find_value(node->b, part);
    }
    if (!found_[part]) found_[part] = e;
    return structural_equal(*found_[part], e);
  }

  // Returns the part whose element or value the expression is.
  std::optional<size_t> part_of(const Expr& e) const {
    if (const Expr* content = bound_value(e)) return part_of(*content);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (is_element(e, *parts_[i].store) || structural_equal(e, parts_[i].value)) return i;
    }
    if (auto node = branches_of(e)) return part_of(node->a);
    return std::nullopt;
  }

  // Returns the expression's rank. A bound variable (is_bound) has the value from before the first store.
  Term value(const Expr& e, size_t part, bool is_bound = false) const {
    if (is_element(e, *parts_[part].store))
      return [part, is_bound](const Step& at) { return is_bound ? at.before[part] : at.now[part]; };
    if (const Expr* content = bound_value(e)) return value(*content, part, true);
    if (auto node = branches_of(e))
      return either(truth(node->condition, is_bound), value(node->a, part, is_bound), value(node->b, part, is_bound));
    if (structural_equal(e, parts_[part].value)) return [part](const Step& at) { return at.value[part]; };
    const Binary* node = e.as<Binary>();
    if (!is_extremum(node)) return {};
    return both(value(node->a, part, is_bound), value(node->b, part, is_bound), node->op);
  }

  Term truth(const Expr& e, bool is_bound) const {
    if (const Expr* content = bound_value(e)) return truth(*content, true);
    if (const Not* node = e.as<Not>())
      return both(truth(node->value, is_bound), [](const Step&) { return 0; }, BinaryOp::kEQ);
    const Binary* node = e.as<Binary>();
    if (node && (node->op == BinaryOp::kAnd || node->op == BinaryOp::kOr))
      return both(truth(node->a, is_bound), truth(node->b, is_bound), node->op);
    std::optional<size_t> part = node && info(node->op).compares ? part_of(node->a) : std::nullopt;
    if (!part) return {};
    return both(value(node->a, *part, is_bound), value(node->b, *part, is_bound), node->op);
  }

  std::vector<Part>& parts_;
  Values bound_;
  std::vector<std::optional<Expr>> found_;
  std::vector<Term> terms_;
};

// Rewrites the statements of a choice to other elements and values, with new variables.
class Retargeter final : public Rewriter {
 public:
  Retargeter(const std::vector<Part>& parts, const std::vector<Ref<BufferLoad>>& elements,
             const std::vector<Expr>& values)
      : parts_(parts), elements_(elements), values_(values) {}

  Expr expr(const Expr& e) override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (is_element(e, *parts_[i].store)) return elements_[i];
      if (structural_equal(e, parts_[i].value)) return values_[i];
    }
    return Rewriter::expr(e);
  }
  Stmt stmt(const Stmt& s) override {
    if (const Bind* node = s.as<Bind>()) {
      VarRef fresh = make_var(node->var->name, node->var.type());
      Expr value = (*this)(node->value);
      renamed_.emplace(node->var.get(), fresh);
      return make(Bind{fresh, value}, s.span());
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      const BufferStore* node = s.as<BufferStore>();
      if (node && same_node(s, parts_[i].store))
        return store(elements_[i]->buffer, (*this)(node->value), elements_[i]->indices);
    }
    return Rewriter::stmt(s);
  }

 private:
  const std::vector<Part>& parts_;
  const std::vector<Ref<BufferLoad>>& elements_;
  const std::vector<Expr>& values_;
};

// Moves the cast of a choice into its branches, for example of a position that is counted in int64 and stored in int32.
// A branch that loads the stored position is then not widened and narrowed again.
Stmt with_casts_inside(const Stmt& s, const std::function<bool(const Expr&)>& is_choice) {
  auto cast_branch = [](const Expr& e, DType to) {
    const Cast* cast = e.as<Cast>();
    DType wide = dtype_of(e);
    bool returns =
        cast && dtype_of(cast->value) == to && to.is_integral() && wide.is_integral() && wide.bits >= to.bits;
    return returns ? cast->value : cast_to(e, to);
  };
  return rewrite(s, [&](const Ref<Cast>& cast) -> std::optional<Expr> {
    const Select* node = cast->value.as<Select>();
    if (!node || !is_choice(cast->value)) return std::nullopt;
    DType to = dtype_of(cast);
    return select(node->condition, cast_branch(node->a, to), cast_branch(node->b, to));
  });
}

}  // namespace

Expr Combiner::identity(size_t part) const {
  const BufferType& type = buffer_type(parts[part].store->buffer);
  auto row = std::ranges::find(kOperators, *parts[part].op, &Operator::op);
  return row->identity(type.dtype);
}

Stmt Combiner::body(const std::vector<Ref<BufferLoad>>& elements, const std::vector<Expr>& values) const {
  if (is_choice()) return Retargeter(parts, elements, values).stmt(seq(choice_steps));
  std::vector<Stmt> stores;
  for (size_t i = 0; i < parts.size(); ++i)
    stores.push_back(store(elements[i]->buffer, binary(*parts[i].op, elements[i], values[i]), elements[i]->indices));
  return seq(stores);
}

std::optional<Combiner> find_combiner(const Block& block) {
  if (!block.init || !block.match_buffers.empty()) return std::nullopt;
  Combiner result;
  Stmt body = block.body;
  if (const IfThenElse* branch = body.as<IfThenElse>(); branch && !branch->else_body) {
    result.condition = branch->condition;
    body = branch->then_body;
  }
  // Variables that depend on the content of the buffers stay; others are substituted.
  Values bound;
  VarMap inputs;
  auto depends = [&](const Expr& e) {
    auto is_written = [&](const BufferRegion& region) { return uses_var(e, region.buffer); };
    return std::ranges::any_of(block.writes, is_written) || uses_var(e, bound);
  };
  for (const Stmt& each : statements_of(body)) {
    Stmt s = with_casts_inside(substitute(each, inputs), depends);
    if (const Bind* node = s.as<Bind>()) {
      if (!result.parts.empty()) return std::nullopt;
      if (!depends(node->value)) {
        inputs.emplace(node->var.get(), node->value);
        continue;
      }
      bound.emplace(node->var.get(), node->value);
    } else if (auto stored = try_cast<BufferStore>(s); stored && !(*stored)->predicate) {
      for (const Part& part : result.parts) {
        if (same_node(part.store->buffer, (*stored)->buffer)) return std::nullopt;
      }
      result.parts.push_back({*stored, (*stored)->value, std::nullopt, (*stored)->value});
    } else {
      return std::nullopt;
    }
    result.choice_steps.push_back(s);
  }
  std::vector<Stmt> inits = statements_of(*block.init);
  if (result.parts.empty() || inits.size() != result.parts.size()) return std::nullopt;
  for (Part& part : result.parts) {
    auto init = std::ranges::find_if(inits, [&](const Stmt& s) {
      const BufferStore* node = s.as<BufferStore>();
      return node && same_node(node->buffer, part.store->buffer) && same_indices(node->indices, part.store->indices);
    });
    if (init == inits.end()) return std::nullopt;
    part.init = init->as<BufferStore>()->value;
  }
  auto reads_parts = [&](const Part& part) { return mentions_parts(part.init, result.parts); };
  if (std::ranges::any_of(result.parts, reads_parts)) return std::nullopt;
  if (result.condition && mentions_parts(*result.condition, result.parts)) return std::nullopt;
  if (bound.empty() && find_operators(result.parts)) return result;
  if (result.parts.size() > kMostParts) return std::nullopt;
  Choice choice(result.parts, std::move(bound));
  if (!choice.read()) return std::nullopt;
  choice.find_laws(result);
  return result;
}

}  // namespace relaxc
