// The node machinery: equality and hash up to names, substitution through types, free variables, rewriting.
#include "ir/visit.h"

#include "ir/builder.h"
#include "ir/module.h"
#include "ops/ops.h"
#include "tests/catch.h"

using namespace relaxc;

namespace {

// for i in range(extent): out[i] = in[i] + 1, under the names given.
PrimFuncRef increment(const char* loop_name, const char* in_name, int64_t step = 1) {
  VarRef n = make_dim("n"), i = make_dim(loop_name);
  Buffer in = make_buffer(in_name, kFloat32, {n}), out = make_buffer("out", kFloat32, {n});
  Expr value = binary(BinaryOp::kAdd, load(in, {i}), float_imm(static_cast<double>(step)));
  return make_prim_func({{in, out}, loop(i, n, store(out, value, {i})), {}});
}

}  // namespace

TEST_CASE("equality ignores the names of bound variables, and so does the hash", "[visit]") {
  PrimFuncRef a = increment("i", "x"), b = increment("j", "y"), c = increment("i", "x", 2);
  CHECK(structural_equal(a, b));
  CHECK(structural_hash(a) == structural_hash(b));
  Difference difference;
  EqualOptions options;
  options.difference = &difference;
  CHECK_FALSE(structural_equal(a, c, options));
  CHECK(difference.text.find("value") != std::string::npos);
  CHECK(structural_hash(a) != structural_hash(c));
}

TEST_CASE("free variables equal themselves, or a partner when asked", "[visit]") {
  VarRef x = make_dim("x"), y = make_dim("y");
  Expr a = x + 1, b = y + 1;
  CHECK_FALSE(structural_equal(a, b));
  CHECK(structural_equal(a, a));
  EqualOptions options;
  options.map_free_vars = true;
  CHECK(structural_equal(a, b, options));
  // One partner, consistently.
  CHECK_FALSE(structural_equal(x + x, x + y, options));
}

TEST_CASE("substitution reaches dims in types and keeps variables consistent", "[visit]") {
  VarRef n = make_dim("n");
  VarRef x = make_var("x", tensor_type({n, int_imm(4)}, kFloat32));
  Expr pair = tuple({x, x});
  Expr changed = substitute(pair, {{n.get(), int_imm(3)}});
  const Tuple& items = *changed.as<Tuple>();
  CHECK(same_node(items.items[0], items.items[1]));
  CHECK(is_int(known_shape(items.items[0].type())->at(0), 3));
  CHECK(same_node(substitute(pair, {{make_dim("m").get(), int_imm(3)}}), pair));
}

TEST_CASE("free variables are used and not bound inside", "[visit]") {
  VarRef n = make_dim("n"), i = make_dim("i"), k = make_dim("k");
  Buffer out = make_buffer("out", kInt64, {n});
  Stmt body = loop(i, n, store(out, static_cast<const Expr&>(i) + k, {i}));
  std::vector<VarRef> free = free_vars(body);
  REQUIRE(free.size() == 3);
  CHECK(same_node(free[0], n));
  CHECK(free_vars(increment("i", "x")).empty());
}

TEST_CASE("a rewrite that changes nothing returns the same node", "[visit]") {
  PrimFuncRef program = increment("i", "x");
  CHECK(same_node(rewrite(program->body, [](const Ref<IntImm>&) -> std::optional<Expr> { return std::nullopt; }),
                  program->body));
  Stmt changed = rewrite(program->body, [](const Ref<FloatImm>&) -> std::optional<Expr> { return float_imm(7); });
  CHECK_FALSE(same_node(changed, program->body));
  // A statement that becomes two joins the sequence around it.
  Stmt two = seq({program->body, evaluate(int_imm(0))});
  Stmt three = rewrite(two, [](const Ref<Evaluate>& node) -> std::optional<Stmt> { return seq({node, node}); });
  REQUIRE(three.is<Seq>());
  CHECK(three.as<Seq>()->stmts.size() == 3);
}

TEST_CASE("fresh variables keep a program equal and share nothing with it", "[visit]") {
  PrimFuncRef program = increment("i", "x"), copy = with_fresh_variables(program);
  CHECK(structural_equal(program, copy));
  CHECK_FALSE(same_node(program->params[0], copy->params[0]));
}
