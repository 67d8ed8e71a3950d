// The rules of the verifier that text cannot break: the reader refuses such modules, so they are built here.
#include "ir/verify/verify.h"

#include "ir/builder.h"
#include "ops/ops.h"
#include "tests/catch.h"

using namespace relaxc;

namespace {

const OpTable& every_op() {
  static const OpTable kTable = make_op_table();
  return kTable;
}

// At least one report, and all of this rule.
void check_breaks(const char* rule, const IRModule& module) {
  Diagnostics diagnostics;
  verify(module, every_op(), diagnostics);
  CHECK(diagnostics.has_errors());
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    INFO(diagnostic.message);
    CHECK(diagnostic.message.ends_with(fmt::format("[{}]", rule)));
  }
}
void check_breaks(const char* rule, const Expr& function) {
  IRModule module;
  module.functions.emplace("main", function);
  check_breaks(rule, module);
}

const Type kVector = tensor_type({int_imm(4)}, kFloat32);
VarRef value(const char* name) { return make_var(name, kVector); }
Expr exp_of(const Expr& x) { return call(op_ref("relax.exp"), {x}, {}, kVector); }

Expr graph(std::vector<VarRef> params, std::vector<BindingBlock> blocks, const Expr& body) {
  Expr sequence = make(SeqExpr{std::move(blocks), body}, body.type());
  return make_function({std::move(params), sequence, body.type(), true, {}});
}
BindingBlock plain(std::vector<Binding> bindings) { return {false, std::move(bindings), {}}; }

Buffer vector(const char* name, DType dtype = kFloat32) { return make_buffer(name, dtype, {int_imm(4)}); }
Expr program(std::vector<VarRef> params, Stmt body) { return make_prim_func({std::move(params), std::move(body), {}}); }
Stmt fill(const Buffer& buffer, const Expr& index) {
  return make(BufferStore{buffer, float_imm(1), {index}, std::nullopt});
}

}  // namespace

TEST_CASE("verify: rules of modules and graph functions", "[verify]") {
  VarRef x = value("x"), y = value("y"), z = value("z");
  IRModule odd_name;
  odd_name.functions.emplace("a.b", graph({x}, {}, x));
  check_breaks("M1", odd_name);

  check_breaks("G1", graph({x}, {plain({{exp_of(z), std::nullopt, y}})}, y));
  check_breaks("G2", graph({x}, {plain({{exp_of(x), std::nullopt, y}, {exp_of(x), std::nullopt, y}})}, y));
  check_breaks("G3", graph({x}, {plain({{exp_of(exp_of(x)), std::nullopt, y}})}, y));
  check_breaks("G3", graph({x}, {}, exp_of(x)));
  check_breaks("G4", graph({x}, {{true, {{exp_of(x), std::nullopt, y}}, {}}}, y));
  check_breaks("G4", graph({x}, {{true, {{exp_of(x), std::nullopt, y}}, {y, x}}}, y));
  Expr missing = call(global_var("gone", object_type()), {x}, {}, kVector);
  check_breaks("G8", graph({x}, {plain({{missing, std::nullopt, y}})}, y));
  check_breaks("G10", graph({x}, {plain({{call(op_ref("relax.exp"), {x, x}, {}, kVector), std::nullopt, y}})}, y));
  check_breaks("G10", graph({x}, {plain({{call(op_ref("relax.no_such"), {x}, {}, kVector), std::nullopt, y}})}, y));
  Expr item = make(TupleGetItem{tuple({x}), 3}, kVector);
  check_breaks("G12", graph({x}, {plain({{item, std::nullopt, y}})}, y));
  check_breaks("G15", graph({x}, {plain({})}, x));
  check_breaks("G15", graph({x}, {plain({{exp_of(x), std::nullopt, y}}), plain({{exp_of(y), std::nullopt, z}})}, z));
}

TEST_CASE("verify: rules of tensor programs", "[verify]") {
  Buffer a = vector("A"), b = vector("B");
  VarRef i = make_dim("i"), j = make_var("j", prim_type(kInt32));
  Expr zero = int_imm(0), four = int_imm(4);

  check_breaks("T1", program({a}, fill(b, zero)));
  check_breaks("T3", program({a}, seq({loop(i, four, fill(a, i)), loop(i, four, fill(a, i))})));
  check_breaks("T4", program({a}, make(BufferStore{a, float_imm(1), {zero, zero}, std::nullopt})));
  check_breaks("T5", program({a}, fill(a, float_imm(1))));
  check_breaks("T6", program({a}, make(BufferStore{a, int_imm(1), {zero}, std::nullopt})));
  check_breaks("T7", program({a}, make(While{four, fill(a, zero)})));
  check_breaks("T7", program({a}, make(IfThenElse{four, fill(a, zero), std::nullopt})));
  check_breaks("T8", program({a}, make(For{j, zero, four, ForKind::kSerial, {}, {}, fill(a, j)})));
  check_breaks("T8", program({a}, make(For{i, zero, four, ForKind::kThreadBinding, {}, {}, fill(a, i)})));
  For odd_step{i, zero, four, ForKind::kSerial, {}, {}, fill(a, i), int_imm(2, kInt32)};
  check_breaks("T8", program({a}, make(odd_step)));
  odd_step.step = int_imm(0);
  check_breaks("T8", program({a}, make(odd_step)));
  BufferType view = buffer_type(a);
  view.data = zero;
  check_breaks("T16", program({a}, seq({make(AllocBuffer{make_var("V", make(view)), {}}), fill(a, zero)})));
  Expr contents = constant(Tensor::of({2}, kFloat32, std::vector<float>{1, 2}));
  check_breaks("T16", program({a}, seq({make(AllocBuffer{b, {}, contents}), fill(a, zero)})));
  check_breaks("T17", program({a}, evaluate(intrinsic("tir.exp", {float_imm(1), float_imm(2)}, kFloat32))));
  check_breaks("T17", program({a}, evaluate(intrinsic("tir.tvm_access_ptr", {zero}, DType::handle()))));
  Expr wide = make(Broadcast{float_imm(1), 4}, prim_type(kFloat32.with_lanes(8)));
  check_breaks("T12", program({a}, evaluate(wide)));
  check_breaks("T13", program({value("x")}, no_op()));
  check_breaks("T15", program({a}, make(Seq{{fill(a, zero)}})));
  check_breaks("T15", program({a}, make(Seq{{fill(a, zero), make(Seq{{fill(a, zero), fill(a, four)}})}})));

  auto block = [&](std::string name, std::vector<IterVar> axes, Stmt body) {
    return make(Block{.name = std::move(name),
                      .iter_vars = std::move(axes),
                      .writes = {{a, {{zero, four}}}},
                      .body = std::move(body)});
  };
  VarRef axis = make_dim("v"), narrow = make_var("v", prim_type(kInt32));
  IterVar fits{axis, {zero, four}, IterKind::kSpatial, zero}, odd{narrow, {zero, four}, IterKind::kSpatial, zero};
  check_breaks("T9", program({a}, block("root", {}, block("b", {odd}, fill(a, zero)))));
  check_breaks("T14", program({a}, block("b", {fits}, fill(a, axis))));
}
