// The simplifier against brute force: random expressions over small ranges keep their value, bounds hold, and what it
// proves is true.
#include "ir/arith.h"

#include <random>

#include "ir/text/printer.h"
#include "tests/catch.h"

using namespace relaxc;

namespace {

struct Variable {
  VarRef var;
  int64_t min, max;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Expr integer(const std::vector<Variable>& vars, int depth) {
    if (depth == 0 || pick(0, 5) == 0) {
      if (pick(0, 2) == 0) return int_imm(pick(-6, 9));
      return vars[static_cast<size_t>(pick(0, static_cast<int64_t>(vars.size()) - 1))].var;
    }
    Expr a = integer(vars, depth - 1);
    switch (pick(0, 8)) {
      case 0:
      case 1:
        return binary(BinaryOp::kAdd, a, integer(vars, depth - 1));
      case 2:
        return binary(BinaryOp::kSub, a, integer(vars, depth - 1));
      case 3:
        return binary(BinaryOp::kMul, a, int_imm(pick(-3, 6)));
      case 4:
        return binary(BinaryOp::kFloorDiv, a, int_imm(pick(1, 8)));
      case 5:
        return binary(BinaryOp::kFloorMod, a, int_imm(pick(1, 8)));
      case 6:
        return binary(BinaryOp::kMin, a, integer(vars, depth - 1));
      case 7:
        return binary(BinaryOp::kMax, a, integer(vars, depth - 1));
      default:
        return select(condition(vars, depth - 1), a, integer(vars, depth - 1));
    }
  }
  Expr condition(const std::vector<Variable>& vars, int depth) {
    constexpr BinaryOp kCompare[] = {BinaryOp::kLT, BinaryOp::kLE, BinaryOp::kGT,
                                     BinaryOp::kGE, BinaryOp::kEQ, BinaryOp::kNE};
    if (depth > 1 && pick(0, 4) == 0) {
      Expr a = condition(vars, depth - 1), b = condition(vars, depth - 1);
      return pick(0, 2) == 0 ? not_(a) : binary(pick(0, 1) ? BinaryOp::kAnd : BinaryOp::kOr, a, b);
    }
    return binary(kCompare[pick(0, 5)], integer(vars, depth), integer(vars, depth));
  }

 private:
  std::mt19937_64 random_;
};

using Values = std::unordered_map<const NodeHeader*, int64_t>;

int64_t evaluate(const Expr& e, const Values& values) {
  if (const IntImm* imm = e.as<IntImm>()) return imm->value;
  if (e.is<Var>()) return values.at(e.get());
  if (const Not* node = e.as<Not>()) return !evaluate(node->value, values);
  if (const Select* node = e.as<Select>())
    return evaluate(node->condition, values) ? evaluate(node->a, values) : evaluate(node->b, values);
  if (const Cast* node = e.as<Cast>()) return evaluate(node->value, values);
  const Binary* node = e.as<Binary>();
  if (!node) throw std::logic_error("not evaluated: " + print_expr(e));
  return *fold_int(node->op, evaluate(node->a, values), evaluate(node->b, values), dtype_of(node->a));
}

// Calls fn for every assignment of values in range.
template <class F>
void for_all(const std::vector<Variable>& vars, Values& values, size_t next, const F& fn) {
  if (next == vars.size()) return fn();
  for (int64_t v = vars[next].min; v <= vars[next].max; ++v) {
    values[vars[next].var.get()] = v;
    for_all(vars, values, next + 1, fn);
  }
}

void check_expression(const Expr& e, const Analyzer& facts, const std::vector<Variable>& vars,
                      const std::function<bool(const Values&)>& valid) {
  Expr simple = facts.simplify(e);
  INFO(print_expr(e) << "  ->  " << print_expr(simple));
  bool is_condition = dtype_of(e).is_bool();
  Interval bounds = is_condition ? Interval{} : facts.bounds(e);
  bool proven = is_condition && facts.can_prove(e);
  int64_t divisor = is_condition ? 1 : facts.known_divisor(e);
  size_t wrong = 0, outside = 0, disproved = 0, indivisible = 0;
  Values values;
  for_all(vars, values, 0, [&] {
    if (!valid(values)) return;
    int64_t value = evaluate(e, values);
    wrong += value != evaluate(simple, values);
    outside += value < bounds.min || value > bounds.max;
    disproved += proven && !value;
    indivisible += divisor == 0 ? value != 0 : value % divisor != 0;
  });
  CHECK(wrong == 0);
  CHECK(outside == 0);
  CHECK(disproved == 0);
  CHECK(indivisible == 0);
  Expr twice = facts.simplify(simple);
  INFO("again: " << print_expr(twice));
  CHECK(structural_equal(simple, twice));
}

}  // namespace

TEST_CASE("simplify keeps values, bounds contain them, proofs hold", "[arith]") {
  std::vector<Variable> vars = {{make_dim("x"), 0, 7}, {make_dim("y"), -3, 4}, {make_dim("z"), 0, 3}};
  Analyzer facts;
  for (const Variable& v : vars) facts.bind(v.var, Interval{v.min, v.max});
  Generator generator(1);
  for (int i = 0; i < 3000; ++i) {
    Expr e = i % 2 ? generator.integer(vars, 4) : generator.condition(vars, 3);
    check_expression(e, facts, vars, [](const Values&) { return true; });
  }
}

TEST_CASE("simplify with symbolic extents", "[arith]") {
  // i < n and j < n for every n >= 0.
  std::vector<Variable> vars = {{make_dim("i"), 0, 5}, {make_dim("j"), 0, 5}, {make_dim("n"), 0, 6}};
  Analyzer facts;
  facts.bind(vars[2].var, Interval{0, std::numeric_limits<int64_t>::max()});
  facts.bind(vars[0].var, int_imm(0), vars[2].var);
  facts.bind(vars[1].var, int_imm(0), vars[2].var);
  auto valid = [&](const Values& values) {
    int64_t n = values.at(vars[2].var.get());
    return values.at(vars[0].var.get()) < n && values.at(vars[1].var.get()) < n;
  };
  Generator generator(2);
  for (int i = 0; i < 3000; ++i) {
    Expr e = i % 2 ? generator.integer(vars, 4) : generator.condition(vars, 3);
    check_expression(e, facts, vars, valid);
  }
  CHECK(facts.can_prove(vars[0].var < vars[2].var));
  CHECK(facts.can_prove(vars[0].var * 4 + 3 < vars[2].var * 4));
  CHECK_FALSE(facts.can_prove(vars[0].var < vars[1].var));
}

TEST_CASE("the quotient of a fused loop is below the outer extent", "[arith]") {
  const VarRef n = make_dim("n"), m = make_dim("m"), fused = make_dim("fused"), in_rows = make_dim("in_rows");
  Analyzer facts;
  for (const VarRef& dim : {n, m}) facts.bind(dim, Interval{0, std::numeric_limits<int64_t>::max()});
  facts.bind(fused, int_imm(0), n * 8);
  facts.bind(in_rows, int_imm(0), n * m);
  CHECK(facts.can_prove(floor_div(fused, int_imm(8)) < n));
  CHECK_FALSE(facts.can_prove(floor_div(fused, int_imm(8)) < n - 1));
  CHECK_FALSE(facts.can_prove(floor_div(fused, int_imm(7)) < n));
  CHECK(facts.can_prove(floor_div(in_rows, m) < n));
  CHECK_FALSE(facts.can_prove(floor_div(in_rows, m) + 1 < n));
}

// Bounds without memory took 2^depth steps here, as a divisor is looked at twice.
TEST_CASE("nested divisors cost no more than their number", "[arith]") {
  Analyzer facts;
  VarRef m = make_dim("m"), n = make_dim("n");
  for (const VarRef& var : {m, n}) facts.bind(var, Interval{.min = 0});
  Expr e = n;
  for (int depth = 0; depth < 60; ++depth) e = floor_div(m, e);
  CHECK(facts.bounds(e).min == 0);
  CHECK(facts.can_prove(e + 1 > int_imm(0)));
}

// The sizes of poolings that round up: without the proof each stage doubles the expression.
TEST_CASE("quotients are compared by their dividends", "[arith]") {
  VarRef n = make_dim("n");
  auto over = [](const Expr& a, int64_t b) { return floor_div(a, int_imm(b)); };
  Analyzer facts;
  CHECK(facts.can_prove(over(n + 1, 2) >= over(n, 2)));
  CHECK(facts.can_prove(over(n, 3) + 1 >= over(n + 2, 3)));
  CHECK(facts.can_prove(over(over(n + 1, 2) + 1, 2) - 1 <= over(n + 1, 4)));
  CHECK(facts.can_prove(over(n, 2) * 3 - over(n - 4, 2) * 3 >= int_imm(6)));
  CHECK_FALSE(facts.can_prove(over(n, 2) >= over(n + 1, 2)));
  CHECK_FALSE(facts.can_prove(over(n, 2) >= over(n, 3)));
  // The rule holds for all that it proves.
  std::vector<Variable> vars = {{make_dim("x"), -9, 12}};
  Generator generator(4);
  for (int round = 0; round < 2000; ++round) {
    auto number = [&](int64_t low, int64_t high) { return generator.pick(low, high); };
    auto quotient = [&] {
      Expr q = over(vars[0].var * number(1, 3) + number(-5, 5), number(1, 6));
      return number(0, 1) ? over(q + number(-3, 3), number(1, 4)) : q;
    };
    check_expression(quotient() * number(1, 3) + number(-4, 4) >= quotient() * number(1, 3), Analyzer(), vars,
                     [](const Values&) { return true; });
  }
}

TEST_CASE("clamps of one value are compared by their constants", "[arith]") {
  VarRef n = make_dim("n"), k = make_dim("k");
  auto at_most = [](const Expr& a, int64_t b) { return min(a, int_imm(b)); };
  Analyzer facts;
  CHECK(facts.can_prove(at_most(n, 2) - at_most(n, 1) <= int_imm(1)));
  CHECK(facts.can_prove(at_most(n, 5) >= at_most(n, 1)));
  CHECK(facts.can_prove(max(n, int_imm(7)) - max(n, int_imm(3)) <= int_imm(4)));
  CHECK(facts.can_prove(min(Expr(n), k + 1) - min(n, k) <= int_imm(1)));
  CHECK_FALSE(facts.can_prove(at_most(n, 3) - at_most(n, 1) <= int_imm(1)));
  CHECK_FALSE(facts.can_prove(at_most(n, 2) - at_most(k, 1) <= int_imm(1)));
  std::vector<Variable> vars = {{make_dim("x"), -9, 12}};
  Generator generator(5);
  for (int round = 0; round < 2000; ++round) {
    auto number = [&](int64_t low, int64_t high) { return generator.pick(low, high); };
    auto clamp = [&] {
      Expr x = vars[0].var * number(1, 2), bound = int_imm(number(-5, 9));
      return number(0, 1) ? min(x, bound) : max(x, bound);
    };
    check_expression(clamp() * number(1, 3) + number(-4, 4) >= clamp() * number(1, 3), Analyzer(), vars,
                     [](const Values&) { return true; });
  }
}

// Networks pad an image to whole windows by -size % window, and exporters write that with remainders of remainders.
TEST_CASE("a size and what it lacks to a multiple are one quotient", "[arith]") {
  VarRef n = make_dim("n");
  auto mod = [](const Expr& a, int64_t b) { return floor_mod(a, int_imm(b)); };
  auto over = [](const Expr& a, int64_t b) { return floor_div(a, int_imm(b)); };
  Analyzer facts;
  facts.bind(n, Interval{.min = 0});
  Expr padded = n + mod(mod(n, 7) * -1, 7);
  CHECK(print_expr(facts.simplify(over(padded, 7))) == "(n + 6) // 7");
  CHECK(print_expr(facts.simplify(n - mod(n, 7))) == "n // 7 * 7");
  CHECK(print_expr(facts.simplify(n + mod(n, 2))) == "(n + 1) // 2 * 2");
  // Any number of stages costs no more than their number.
  auto stages = [&](int count) {
    Expr size = n;
    for (int i = 0; i < count; ++i) size = facts.simplify(over(size + mod(size, 2) + 1, 2));
    return print_expr(size).size();
  };
  CHECK(stages(24) - stages(16) == stages(16) - stages(8));
  std::vector<Variable> vars = {{make_dim("x"), -9, 12}, {make_dim("y"), -2, 3}};
  Generator generator(5);
  for (int round = 0; round < 2000; ++round) {
    auto number = [&](int64_t low, int64_t high) { return generator.pick(low, high); };
    Expr x = number(0, 1) ? Expr(vars[0].var) : vars[0].var * number(-3, 3) + vars[1].var;
    int64_t c = number(1, 7), factor = number(-3, 3);
    Expr rest = number(0, 2) ? int_imm(factor) : vars[1].var * factor;
    Expr lacks =
        mod(number(0, 1) ? mod(x, c * number(1, 3)) * number(-2, 2) + number(-4, 4) : x * -1 + number(-4, 4), c);
    check_expression(x * rest + lacks * rest + number(-5, 5), Analyzer(), vars, [](const Values&) { return true; });
  }
}

// The position in a buffer of an element that a fused and split loop reaches: neighbours stay neighbours.
TEST_CASE("quotients and remainders of a fused loop become its position", "[arith]") {
  Expr a = make_dim("a"), b = make_dim("b"), c = make_dim("c");
  auto mod = [](const Expr& e, int64_t by) { return floor_mod(e, int_imm(by)); };
  auto over = [](const Expr& e, int64_t by) { return floor_div(e, int_imm(by)); };
  Analyzer facts;
  facts.bind(cast<Var>(c), Interval{.min = 0, .max = 15});
  Expr fused = a * 2048 + b * 16 + c;
  Expr first = facts.simplify(over(fused, 28 * 28)), second = mod(over(fused, 28), 28), third = mod(fused, 28);
  CHECK(print_expr(first) == "(a * 128 + b) // 49");
  CHECK(print_expr(facts.simplify((first * 28 + second) * 28 + third)) == "a * 2048 + b * 16 + c");
  // Here a part divides two axes: the remainder is that of a sum with a quotient.
  fused = a * 1792 + b * 16 + c;
  first = over(fused, 28 * 28), second = mod(over(fused, 28), 28), third = mod(fused, 28);
  CHECK(print_expr(facts.simplify((first * 28 + second) * 28 + third)) == "a * 1792 + b * 16 + c");
}

TEST_CASE("division by a sum", "[arith]") {
  std::vector<Variable> vars = {{make_dim("i"), 0, 6}, {make_dim("j"), 0, 5}, {make_dim("h"), 0, 4}};
  const Expr &i = vars[0].var, &j = vars[1].var, &h = vars[2].var;
  Analyzer facts;
  for (const Variable& v : vars) facts.bind(v.var, Interval{0, std::numeric_limits<int64_t>::max()});
  facts.bind(vars[1].var, int_imm(0), h + 2);
  auto valid = [&](const Values& values) { return values.at(j.get()) < values.at(h.get()) + 2; };
  auto over = [](const Expr& a, const Expr& b) { return binary(BinaryOp::kFloorDiv, a, b); };
  CHECK(structural_equal(facts.simplify(over(i * 32 * (h + 2), h + 2)), facts.simplify(i * 32)));
  CHECK(structural_equal(facts.simplify(over(i * (h + 2) + j, h + 2)), i));
  CHECK(structural_equal(facts.simplify(over(h * h + h * 5 + 6, h + 2)), facts.simplify(h + 3)));
  // Sums of products by random sums that are positive.
  Generator generator(3);
  for (int round = 0; round < 2000; ++round) {
    auto number = [&](int64_t low, int64_t high) { return int_imm(generator.pick(low, high)); };
    Expr divisor = h * number(0, 3) + i * number(0, 2) + number(1, 4);
    Expr dividend =
        divisor * (i * number(-2, 3) + j * number(-1, 2) + number(-3, 3)) + j * number(0, 2) + number(-2, 2);
    BinaryOp op = round % 2 ? BinaryOp::kFloorDiv : BinaryOp::kFloorMod;
    check_expression(binary(op, facts.simplify(dividend), divisor), facts, vars, valid);
  }
}

TEST_CASE("the smaller and the larger of any two constants are constants", "[arith]") {
  using Limits = std::numeric_limits<int64_t>;
  for (int64_t a : {Limits::min(), int64_t{-1}, int64_t{0}, int64_t{2}, Limits::max()}) {
    for (int64_t b : {Limits::min(), int64_t{-1}, int64_t{0}, int64_t{2}, Limits::max()}) {
      CHECK(as_int(simplify(binary(BinaryOp::kMin, int_imm(a), int_imm(b)))) == std::min(a, b));
      CHECK(as_int(simplify(binary(BinaryOp::kMax, int_imm(a), int_imm(b)))) == std::max(a, b));
    }
  }
}

TEST_CASE("huge factors, divisors and extents do not overflow", "[arith]") {
  VarRef n = make_dim("n");
  Analyzer facts;
  facts.bind(n, Interval{.min = 0});
  auto huge = [](int64_t value) { return int_imm(value); };
  // The number of elements of a range with a huge step. fold_int wraps, so the value tells of an overflow on the way.
  for (int64_t step : {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2 + 2, int64_t{1} << 40, int64_t{7}}) {
    Expr count = facts.simplify(floor_div(n - 1, huge(step)) + 1);
    Expr left = facts.simplify(floor_mod(n - 1, huge(step)));
    INFO(print_expr(count) << " and " << print_expr(left));
    for (int64_t value : {0, 1, 5, 1000}) {
      CHECK(evaluate(count, {{n.get(), value}}) == (value == 0 ? 0 : (value - 1) / step + 1));
      CHECK(evaluate(left, {{n.get(), value}}) == (value == 0 ? step - 1 : (value - 1) % step));
    }
    CHECK(structural_equal(count, facts.simplify(count)));
  }
  // A factor that no int64 holds is not lost inside of a quotient, a minimum or a division by a sum.
  Expr product = binary(BinaryOp::kMul, binary(BinaryOp::kMul, n, huge(INT64_MAX / 2)), huge(4));
  for (const Expr& e : {floor_div(product, 7), min(product, huge(3)), floor_div(n * 4, n + INT64_MAX),
                        floor_div(n * INT64_MIN, n * -1), product < huge(3)}) {
    INFO(print_expr(e) << "  ->  " << print_expr(facts.simplify(e)));
    CHECK(evaluate(facts.simplify(e), {{n.get(), 2}}) == evaluate(e, {{n.get(), 2}}));
  }
  // The end of a range may be beyond all int64.
  VarRef i = make_dim("i");
  facts.bind(i, int_imm(5), huge(INT64_MAX));
  CHECK(facts.bounds(i).min == 5);
  CHECK(facts.bounds(i).max == INT64_MAX);
  CHECK(!facts.can_prove(i < huge(INT64_MAX)));
  facts.assume(huge(INT64_MIN) < i);
  CHECK(facts.can_prove(i >= huge(5)));
}

TEST_CASE("long sums are compared part by part", "[arith]") {
  Analyzer facts;
  Expr total = int_imm(0), half = int_imm(0);
  std::vector<Expr> parts;
  for (int i = 0; i < 90; ++i) {
    VarRef n = make_dim("n");
    facts.bind(n, Interval{0, std::numeric_limits<int64_t>::max()});
    parts.push_back(min(n, int_imm(300)));
    total = total + parts.back();
    if (i == 44) half = total;
  }
  Expr backwards = int_imm(0);
  for (size_t i = parts.size(); i-- > 0;) backwards = backwards + parts[i];
  CHECK(facts.can_prove_equal(total, backwards));
  CHECK(facts.can_prove(half <= total));
  CHECK_FALSE(facts.can_prove(half < total));
  CHECK(facts.bounds(total).max == 90 * 300);
  CHECK(is_int(facts.simplify(total - half - backwards + half), 0));
}
