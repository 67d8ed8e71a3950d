#include <algorithm>
#include <numeric>

#include "ir/arith_simplifier.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

template <class T>
int sign(T a, T b) {
  return a < b ? -1 : a > b;
}

int compare_children(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return sign(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (int order = compare_atoms(a[i], b[i])) return order;
  }
  return 0;
}

}  // namespace

int compare_atoms(const Expr& a, const Expr& b) {
  if (same_node(a, b)) return 0;
  if (a.kind() != b.kind()) return sign(a.kind(), b.kind());
  if (const Var* x = a.as<Var>()) return x->name.compare(b.as<Var>()->name);
  if (const IntImm* x = a.as<IntImm>()) return sign(x->value, b.as<IntImm>()->value);
  if (const Binary* x = a.as<Binary>()) {
    const Binary* y = b.as<Binary>();
    if (x->op != y->op) return sign(x->op, y->op);
    if (int order = compare_atoms(x->a, y->a)) return order;
    return compare_atoms(x->b, y->b);
  }
  if (const Cast* x = a.as<Cast>()) {
    if (dtype_of(a) != dtype_of(b)) return to_string(dtype_of(a)).compare(to_string(dtype_of(b)));
    return compare_atoms(x->value, b.as<Cast>()->value);
  }
  if (const Select* x = a.as<Select>()) {
    const Select* y = b.as<Select>();
    return compare_children({x->condition, x->a, x->b}, {y->condition, y->a, y->b});
  }
  if (const Call* x = a.as<Call>()) {
    const Call* y = b.as<Call>();
    if (int order = op_name(a).compare(op_name(b))) return order;
    if (int order = compare_children(x->args, y->args)) return order;
    if (structural_equal(a, b)) return 0;
  }
  if (const BufferLoad* x = a.as<BufferLoad>()) {
    const BufferLoad* y = b.as<BufferLoad>();
    if (int order = x->buffer->name.compare(y->buffer->name)) return order;
    return compare_children(x->indices, y->indices);
  }
  return debug_print(a).compare(debug_print(b));
}

bool same_monomial(const Monomial& a, const Monomial& b) {
  return std::ranges::equal(a, b,
                            [](const Expr& x, const Expr& y) { return same_node(x, y) || structural_equal(x, y); });
}
Monomial without(Monomial atoms, size_t i) {
  atoms.erase(atoms.begin() + static_cast<long>(i));
  return atoms;
}

std::optional<Monomial> divide(const Monomial& a, const Monomial& b) {
  Monomial rest = a;
  for (const Expr& atom : b) {
    auto it = std::ranges::find_if(rest, [&](const Expr& x) { return structural_equal(x, atom); });
    if (it == rest.end()) return std::nullopt;
    rest.erase(it);
  }
  return rest;
}

// Orders constants last, then by degree and atoms.
static bool term_before(const Monomial& a, const Monomial& b) {
  if (a.empty() || b.empty()) return !a.empty() && b.empty();
  return compare_children(a, b) < 0;
}

Poly Poly::term(Monomial atoms, int64_t factor) {
  Poly result;
  if (factor != 0) result.terms_.push_back({std::move(atoms), factor});
  return result;
}
Poly Poly::constant(int64_t value) { return term({}, value); }
Poly Poly::atom(const Expr& expr) { return term({expr}, 1); }

int64_t Poly::constant_part() const {
  return !terms_.empty() && terms_.back().atoms.empty() ? terms_.back().factor : 0;
}
std::optional<int64_t> Poly::as_constant() const {
  if (overflowed_) return std::nullopt;
  if (terms_.empty()) return 0;
  return terms_[0].atoms.empty() ? std::optional(terms_[0].factor) : std::nullopt;
}

// Terms are in order, so that long sums are merged without comparing each term with each.
void Poly::add(Monomial atoms, int64_t factor) {
  if (factor == 0) return;
  auto before = [](const Term& term, const Monomial& other) { return term_before(term.atoms, other); };
  auto it = std::lower_bound(terms_.begin(), terms_.end(), atoms, before);
  // Different atoms may be equal in this order, such as two variables of one name.
  while (it != terms_.end() && !term_before(atoms, it->atoms) && !same_monomial(it->atoms, atoms)) ++it;
  if (it == terms_.end() || term_before(atoms, it->atoms)) {
    terms_.insert(it, {std::move(atoms), factor});
    return;
  }
  auto sum = checked_add(it->factor, factor);
  if (!sum) overflowed_ = true;
  it->factor = sum.value_or(0);
  if (it->factor == 0) terms_.erase(it);
}

Poly Poly::scaled(int64_t factor) && {
  if (factor == 0) terms_.clear();
  for (Term& term : terms_) {
    auto scaled = checked_mul(term.factor, factor);
    if (!scaled) overflowed_ = true;
    term.factor = scaled.value_or(term.factor);
  }
  return std::move(*this);
}
Poly Poly::plus(Poly other, int64_t factor) && {
  other = std::move(other).scaled(factor);
  overflowed_ = overflowed_ || other.overflowed_;
  if (terms_.empty()) terms_.swap(other.terms_);
  for (Term& term : other.terms_) add(std::move(term.atoms), term.factor);
  return std::move(*this);
}

Poly Poly::times(const Poly& other) const {
  if (auto factor = other.as_constant()) return scaled(*factor);
  if (auto factor = as_constant()) return other.scaled(*factor);
  Poly result;
  result.overflowed_ = overflowed_ || other.overflowed_;
  for (const Term& a : terms_) {
    for (const Term& b : other.terms_) {
      Monomial atoms = a.atoms;
      atoms.insert(atoms.end(), b.atoms.begin(), b.atoms.end());
      std::ranges::stable_sort(atoms, [](const Expr& x, const Expr& y) { return compare_atoms(x, y) < 0; });
      auto factor = checked_mul(a.factor, b.factor);
      if (!factor) result.overflowed_ = true;
      result.add(std::move(atoms), factor.value_or(0));
    }
  }
  return result;
}

int64_t Poly::gcd_without_constant() const {
  int64_t result = 0;
  for (const Term& term : terms_) {
    if (!term.atoms.empty()) result = std::gcd(result, term.factor);
  }
  return result;
}

Expr Poly::to_expr(DType dtype) const {
  std::optional<Expr> sum;
  auto append = [&](const Term& term, int64_t magnitude, BinaryOp op) {
    std::optional<Expr> product;
    for (const Expr& atom : term.atoms) product = product ? binary(BinaryOp::kMul, *product, atom) : atom;
    if (!product) {
      product = int_imm(magnitude, dtype);
    } else if (magnitude != 1) {
      product = binary(BinaryOp::kMul, *product, int_imm(magnitude, dtype));
    }
    sum = sum ? binary(op, *sum, *product) : *product;
  };
  for (const Term& term : terms_) {
    if (term.factor > 0) append(term, term.factor, BinaryOp::kAdd);
  }
  for (const Term& term : terms_) {
    if (term.factor >= 0) continue;
    bool is_added = !sum || term.factor == INT64_MIN;
    append(term, is_added ? term.factor : -term.factor, is_added ? BinaryOp::kAdd : BinaryOp::kSub);
  }
  return sum ? *sum : int_imm(0, dtype);
}

}  // namespace relaxc
