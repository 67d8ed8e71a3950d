#include "tir/interpret/interpreter.h"

#include <cmath>

#include "ir/intrinsics.h"
#include "tests/catch.h"
#include "tests/interpret.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

// A program that stores one expression into a buffer of one element of its dtype.
Tensor evaluate_one(const Expr& value) {
  DType dtype = dtype_of(value);
  Buffer out = make_buffer("out", dtype.element(), {int_imm(dtype.lanes)});
  Expr index = dtype.lanes > 1 ? ramp(int_imm(0), int_imm(1), dtype.lanes) : int_imm(0);
  PrimFuncRef f = make_prim_func({{out}, store(out, value, {index}), {}});
  return interpret_on(f, {})[0];
}
int64_t int_of(const Expr& value) { return evaluate_one(value).as_int(0); }
double float_of(const Expr& value) { return evaluate_one(value).as_double(0); }

std::string message_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return Tensor::of(std::move(shape), kFloat32, values);
}

}  // namespace

TEST_CASE("interpreter: integers wrap", "[interpreter]") {
  DType int8 = DType::int_(8), uint8 = DType::uint(8);
  auto op = [](BinaryOp kind, int64_t a, int64_t b, DType dtype) {
    return int_of(binary(kind, int_imm(a, dtype), int_imm(b, dtype)));
  };
  CHECK(op(BinaryOp::kAdd, 127, 1, int8) == -128);
  CHECK(op(BinaryOp::kMul, 200, 2, uint8) == 144);
  CHECK(op(BinaryOp::kSub, 0, 1, uint8) == 255);
  CHECK(op(BinaryOp::kDiv, -7, 2, kInt32) == -3);
  CHECK(op(BinaryOp::kTruncMod, -7, 2, kInt32) == -1);
  CHECK(op(BinaryOp::kFloorDiv, -7, 2, kInt32) == -4);
  CHECK(op(BinaryOp::kFloorMod, -7, 2, kInt32) == 1);
  CHECK(op(BinaryOp::kFloorMod, 7, -2, kInt64) == -1);
  CHECK(op(BinaryOp::kDiv, INT64_MIN, -1, kInt64) == INT64_MIN);
  CHECK(op(BinaryOp::kDiv, -1, 2, DType::uint(64)) == INT64_MAX);
  CHECK(op(BinaryOp::kShiftRight, -8, 1, kInt32) == -4);
  CHECK(op(BinaryOp::kShiftRight, 0xF8, 1, uint8) == 0x7C);
  CHECK(op(BinaryOp::kLT, 200, 100, uint8) == 0);
  CHECK(op(BinaryOp::kGE, -1, 1, DType::uint(64)) == 1);
  CHECK(int_of(cast_to(int_imm(300, kInt32), uint8)) == 44);
}

TEST_CASE("interpreter: casts of floats saturate", "[interpreter]") {
  auto to = [](double value, DType dtype) { return int_of(cast_to(float_imm(value, kFloat64), dtype)); };
  CHECK(to(-1.9, kInt32) == -1);
  CHECK(to(1e10, kInt32) == INT32_MAX);
  CHECK(to(-1e10, kInt32) == INT32_MIN);
  CHECK(to(1e30, kInt64) == INT64_MAX);
  CHECK(to(-3, DType::uint(8)) == 0);
  CHECK(to(300, DType::uint(8)) == 255);
  CHECK(to(NAN, kInt64) == 0);
  CHECK(to(0.5, kBool) == 1);
  CHECK(to(-200, DType::int_(8)) == -128);
}

TEST_CASE("interpreter: floats round after every operation", "[interpreter]") {
  Expr big = float_imm(16777216, kFloat32), unit = float_imm(1, kFloat32);
  CHECK(float_of(binary(BinaryOp::kAdd, big, unit)) == 16777216);
  DType half = DType::float_(16);
  CHECK(float_of(binary(BinaryOp::kAdd, float_imm(2048, half), float_imm(1, half))) == 2048);
  CHECK(float_of(cast_to(float_imm(1.00390625, kFloat32), DType::bfloat16())) == 1.0);
  // Between two halves, just above the middle: rounding through float32 would give 1.
  double above = 1 + std::ldexp(1, -11) + std::ldexp(1, -40);
  CHECK(float_of(cast_to(float_imm(above, kFloat64), half)) == 1 + std::ldexp(1, -10));
  CHECK(std::isnan(float_of(binary(BinaryOp::kMax, float_imm(NAN), float_imm(1)))));
  CHECK(std::isnan(float_of(binary(BinaryOp::kMin, float_imm(1), float_imm(NAN)))));
  CHECK(int_of(binary(BinaryOp::kNE, float_imm(NAN), float_imm(NAN))) == 1);
  CHECK(float_of(binary(BinaryOp::kFloorMod, float_imm(-1.5), float_imm(1))) == 0.5);
  CHECK(float_of(intrinsic("tir.exp", {float_imm(1)}, kFloat32)) == Approx(2.718281828));
}

TEST_CASE("interpreter: vectors, masks and lets", "[interpreter]") {
  Buffer x = make_buffer("x", kInt32, {int_imm(4)}), y = make_buffer("y", kInt32, {int_imm(8)});
  Expr lanes = ramp(int_imm(0), int_imm(1), 4);
  VarRef v = make_var("v", prim_type(kInt32.with_lanes(4)));
  // y[i * 2] = masked x[i] (i >= 1) * 3 + i.
  Expr mask = binary(BinaryOp::kGE, lanes, broadcast(int_imm(1), 4));
  Expr loaded = make(BufferLoad{x, {lanes}, mask}, prim_type(kInt32.with_lanes(4)));
  Expr value = let(v, loaded,
                   binary(BinaryOp::kAdd, binary(BinaryOp::kMul, v, broadcast(int_imm(3, kInt32), 4)),
                          ramp(int_imm(0, kInt32), int_imm(1, kInt32), 4)));
  VarRef w = make_var("w", prim_type(kInt32.with_lanes(4)));
  Stmt body = seq(
      {loop(make_dim("i"), int_imm(1), no_op()), make(Bind{w, value}), store(y, w, {ramp(int_imm(0), int_imm(2), 4)})});
  PrimFuncRef f = make_prim_func({{x, y}, body, {}});
  Tensor a = Tensor::of<int32_t>({4}, kInt32, {10, 11, 12, 13}),
         b = Tensor::of<int32_t>({8}, kInt32, {0, 9, 0, 9, 0, 9, 0, 9});
  std::vector<Tensor> both = {a, b};
  interpret(f, both);
  std::vector<int32_t> expected = {0, 9, 34, 9, 38, 9, 42, 9};
  for (int i = 0; i < 8; ++i) CHECK(b.as_int(i) == expected[i]);
  // A vector store reads everything before it writes.
  Stmt shift =
      store(x, make(BufferLoad{x, {ramp(int_imm(0), int_imm(1), 3)}, std::nullopt}, prim_type(kInt32.with_lanes(3))),
            {ramp(int_imm(1), int_imm(1), 3)});
  std::vector<Tensor> one = {a};
  interpret(make_prim_func({{x}, shift, {}}), one);
  CHECK(a.as_int(1) == 10);
  CHECK(a.as_int(3) == 12);
}

TEST_CASE("interpreter: blocks reduce, symbolic dims bind", "[interpreter]") {
  VarRef n = make_dim("n"), m = make_dim("m");
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {n, m});
  Buffer sum = b.reduce("sum", kFloat32, {n}, {m}, zero(kFloat32), combine_sum,
                        [&](Axes i, Axes r) { return load(x, {i[0], r[0]}); });
  Buffer out = b.compute("out", kFloat32, {n, m + 1},
                         [&](Axes i) { return if_then_else(i[1] < m, load(x, {i[0], i[1]}), load(sum, {i[0]})); });
  PrimFuncRef f = b.finish({out});
  Interpreter interpreter(f);
  for (int64_t rows : {1, 3}) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows * 2; ++i) values.push_back(static_cast<float>(i));
    std::vector<Tensor> inputs = {floats({rows, 2}, values)};
    Tensor result = floats({rows, 3}, std::vector<float>(rows * 3));
    inputs.push_back(result);
    interpreter.run(inputs);
    CHECK(interpret_on(f, std::vector<Tensor>{inputs[0]})[0].shape() == std::vector<int64_t>{rows, 3});
    for (int64_t i = 0; i < rows; ++i) CHECK(result.as_double(i * 3 + 2) == values[i * 2] + values[i * 2 + 1]);
  }
  std::vector<Tensor> wrong = {floats({2, 2}, {1, 2, 3, 4}), floats({2, 2}, {1, 2, 3, 4})};
  std::string text = message_of([&] { interpreter.run(wrong); });
  INFO(text);
  CHECK(contains(text, "buffer 'out': dim 1 is 2, expected"));
  CHECK(contains(text, "= 3"));
}

TEST_CASE("interpreter: same dim, different sizes", "[interpreter]") {
  VarRef n = make_dim("n");
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {n}), y = b.input("y", kFloat32, {n});
  PrimFuncRef f =
      b.finish({b.compute("z", kFloat32, {n}, [&](Axes i) { return binary(BinaryOp::kAdd, at(x, i), at(y, i)); })});
  std::vector<Tensor> inputs = {floats({2}, {1, 2}), floats({3}, {1, 2, 3})};
  CHECK(contains(message_of([&] { interpret_on(f, inputs); }), "buffer 'y': dim 0 is 3, expected n = 2"));
}

TEST_CASE("interpreter: windows, allocations and scalars", "[interpreter]") {
  // Column j of x through a strided window, copied into a fresh buffer, then out.
  Buffer x = make_buffer("x", kFloat32, {int_imm(3), int_imm(4)}), out = make_buffer("out", kFloat32, {int_imm(3)});
  VarRef j = make_dim("j"), s0 = make_dim("s0"), offset = make_dim("offset");
  BufferType type{.dtype = kFloat32, .shape = {int_imm(3)}, .strides = {s0}, .elem_offset = Expr(offset)};
  Buffer window = make_var("window", make(type));
  Buffer fresh = make_buffer("fresh", kFloat32, {int_imm(3)}, "local");
  VarRef i = make_dim("i"), k = make_dim("k");
  Stmt body = seq(
      {loop(i, int_imm(3), store(fresh, load(window, {i}), {i})),
       loop(k, int_imm(3), store(out, binary(BinaryOp::kAdd, load(fresh, {k}), cast_to(offset + s0, kFloat32)), {k}))});
  Stmt block = make(Block{.name = "root",
                          .iter_vars = {},
                          .predicate = {},
                          .reads = {},
                          .writes = {},
                          .annotations = {},
                          .alloc_buffers = {fresh},
                          .match_buffers = {{{x, {{int_imm(0), int_imm(3)}, {j, int_imm(1)}}}, window}},
                          .init = {},
                          .body = body});
  // The window has one dim less than its source, whose last dim is a single column: strides follow the kept dims.
  PrimFuncRef f = make_prim_func({{x, out, j}, block, {}});
  std::vector<Tensor> inputs = {floats({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})};
  std::vector<int64_t> column = {2};
  CHECK(contains(message_of([&] { interpret_on(f, inputs, column); }), "dim 0 of the source has extent 3, expected 1"));

  BufferType row_type{
      .dtype = kFloat32, .shape = {int_imm(3), int_imm(1)}, .strides = {s0, int_imm(1)}, .elem_offset = Expr(offset)};
  Buffer column_window = make_var("window", make(row_type));
  Stmt body2 = loop(
      i, int_imm(3),
      store(out, binary(BinaryOp::kAdd, load(column_window, {i, int_imm(0)}), cast_to(offset + s0, kFloat32)), {i}));
  Stmt block2 = make(Block{.name = "root",
                           .iter_vars = {},
                           .predicate = {},
                           .reads = {},
                           .writes = {},
                           .annotations = {},
                           .alloc_buffers = {},
                           .match_buffers = {{{x, {{int_imm(0), int_imm(3)}, {j, int_imm(1)}}}, column_window}},
                           .init = {},
                           .body = body2});
  Tensor result = interpret_on(make_prim_func({{x, out, j}, block2, {}}), inputs, column)[0];
  for (int r = 0; r < 3; ++r) CHECK(result.as_double(r) == r * 4 + 2 + 2 + 4);
  column = {4};
  CHECK(contains(message_of([&] { interpret_on(make_prim_func({{x, out, j}, block2, {}}), inputs, column); }),
                 "[4, 5) of dim 1 is out of range, the extent is 4"));
}

TEST_CASE("interpreter: errors name what is wrong", "[interpreter]") {
  Buffer x = make_buffer("x", kInt32, {int_imm(4)});
  Tensor data = Tensor::of<int32_t>({4}, kInt32, {0, 1, 2, 3});
  std::vector<Tensor> one = {data};
  VarRef i = make_dim("i");
  auto message = [&](Stmt body, InterpretOptions options = {}) {
    return message_of([&] { interpret(make_prim_func({{x}, body, {}}), one, {}, options); });
  };
  CHECK(contains(message(loop(i, int_imm(5), store(x, int_imm(1, kInt32), {i}))),
                 "buffer 'x': index 4 of dim 0 is out of range [0, 4)"));
  CHECK(contains(message(store(x, load(x, {int_imm(-1)}), {int_imm(0)})), "index -1"));
  Expr quotient = binary(BinaryOp::kFloorDiv, int_imm(1, kInt32), load(x, {int_imm(0)}));
  *data.data<int32_t>() = 0;
  CHECK(contains(message(store(x, quotient, {int_imm(0)})), "FloorDiv of 1 by zero"));
  Stmt forever = make(While{bool_imm(true), no_op()});
  CHECK(contains(message(forever, {.max_steps = 1000}), "step limit"));
  CHECK(contains(message(make(Assert{bool_imm(false), {"n must be even"}})), "assertion failed: n must be even"));
  CHECK(contains(message(store(x, int_imm(1, kInt32), {i})), "variable 'i' has no value"));
  // A guarded load reads one side; a select reads both.
  Expr outside = load(x, {int_imm(7)}), no = binary(BinaryOp::kLT, load(x, {int_imm(1)}), int_imm(0, kInt32));
  CHECK(message(store(x, if_then_else(no, outside, int_imm(5, kInt32)), {int_imm(0)})) == "no error");
  CHECK(contains(message(store(x, select(no, outside, int_imm(5, kInt32)), {int_imm(0)})), "index 7"));
  Buffer huge = make_buffer("huge", kFloat32, {int_imm(INT64_MAX), int_imm(4)});
  CHECK(contains(message(seq({make(AllocBuffer{huge, {}}), no_op()})), "exceeds the limit"));
}

TEST_CASE("interpreter: loops of all kinds, while, if, predicate", "[interpreter]") {
  Buffer x = make_buffer("x", kInt32, {int_imm(4)});
  VarRef i = make_dim("i"), v = make_dim("v");
  // v = i - 1 where that is in [0, 4): the predicate guards the domain.
  Stmt block = make(Block{.name = "b",
                          .iter_vars = {{v, {int_imm(0), int_imm(4)}, IterKind::kSpatial, i - 1}},
                          .predicate = i > int_imm(0),
                          .body = store(x, cast_to(v * 10, kInt32), {v})});
  Tensor data = Tensor::of<int32_t>({4}, kInt32, {-1, -1, -1, -1});
  std::vector<Tensor> one = {data};
  for (ForKind kind : {ForKind::kSerial, ForKind::kParallel, ForKind::kVectorized, ForKind::kUnrolled}) {
    interpret(make_prim_func({{x}, loop(i, int_imm(5), block, kind), {}}), one, {}, {.reverse_parallel_loops = true});
    for (int k = 0; k < 4; ++k) CHECK(data.as_int(k) == k * 10);
  }
  CHECK(contains(message_of([&] { interpret(make_prim_func({{x}, loop(i, int_imm(6), block), {}}), one); }),
                 "block 'b': axis 'v' is 4, outside of its domain [0, 4)"));
}

TEST_CASE("interpreter: blocks stay in their regions", "[interpreter]") {
  Buffer x = make_buffer("x", kInt32, {int_imm(4)}), y = make_buffer("y", kInt32, {int_imm(4)});
  VarRef i = make_dim("i"), v = make_dim("v");
  auto program = [&](const Expr& read_from, const Expr& written_from) {
    Expr unit = int_imm(1);
    Stmt block = make(Block{.name = "b",
                            .iter_vars = {{v, {int_imm(0), int_imm(4)}, IterKind::kSpatial, i}},
                            .reads = {{x, {{read_from, unit}}}},
                            .writes = {{y, {{written_from, unit}}}},
                            .body = store(y, load(x, {v}), {v})});
    return make_prim_func({{x, y}, loop(i, int_imm(4), block), {}});
  };
  std::vector<Tensor> both = {Tensor::of<int32_t>({4}, kInt32, {1, 2, 3, 4}), Tensor::empty({4}, kInt32)};
  auto message = [&](const PrimFuncRef& f) {
    return message_of([&] { interpret(f, both, {}, {.check_regions = true}); });
  };
  CHECK(message(program(v, v)) == "no error");
  CHECK(contains(message(program(v + 1, v)), "block 'b' reads buffer 'x' at [0], which it does not declare"));
  CHECK(contains(message(program(v, int_imm(0))), "block 'b' writes buffer 'y' at [1], which it does not declare"));
}

TEST_CASE("interpreter: steps, break and continue", "[interpreter]") {
  Buffer out = make_buffer("out", kInt64, {int_imm(8)});
  VarRef i = make_dim("i");
  auto leave = [](const char* op) { return evaluate(intrinsic(op, {}, DType::void_())); };
  auto when = [](Expr condition, Stmt then) { return make(IfThenElse{condition, then, std::nullopt}); };
  // 1, 3, 5, 7, ...: 3 is left out, 7 ends the loop.
  Stmt body = seq({when(equal(i, int_imm(3)), leave("tir.continue_loop")),
                   when(equal(i, int_imm(7)), leave("tir.break_loop")), store(out, i, {i})});
  For loop{i, int_imm(1), int_imm(100), ForKind::kSerial, {}, {}, body, int_imm(2)};
  VarRef j = make_dim("j");
  Stmt clear = relaxc::loop(j, int_imm(8), store(out, int_imm(0), {j}));
  PrimFuncRef f = make_prim_func({{out}, seq({clear, make(std::move(loop))}), {}});
  Tensor result = interpret_on(f, {})[0];
  std::vector<int64_t> values;
  for (int64_t k = 0; k < 8; ++k) values.push_back(result.as_int(k));
  CHECK(values == std::vector<int64_t>{0, 1, 0, 0, 0, 5, 0, 0});
}

TEST_CASE("interpreter: views and constants in memory", "[interpreter]") {
  Buffer out = make_buffer("out", kInt32, {int_imm(4)}), table = make_buffer("table", kInt32, {int_imm(4)});
  BufferType type = buffer_type(table);
  type.data = buffer_data(table);
  type.shape = {int_imm(2), int_imm(2)};
  Buffer view = make_var("view", make(type));
  Expr contents = constant(Tensor::of({4}, kInt32, std::vector<int32_t>{1, 2, 3, 4}));
  VarRef i = make_dim("i");
  Expr element = load(view, {floor_div(i, 2), floor_mod(i, 2)});
  Stmt body = seq({make(AllocBuffer{table, {}, contents}), make(AllocBuffer{view, {}}),
                   loop(i, int_imm(4), store(out, element, {i}))});
  Tensor result = interpret_on(make_prim_func({{out}, body, {}}), {})[0];
  for (int64_t k = 0; k < 4; ++k) CHECK(result.as_int(k) == k + 1);
}

TEST_CASE("interpreter: floats of 8 bits and less", "[interpreter]") {
  auto rounded = [](double value, const char* dtype) { return float_of(float_imm(value, *parse_dtype(dtype))); };
  CHECK(rounded(0.3, "float8_e4m3fn") == 0.3125);
  CHECK(rounded(448, "float8_e4m3fn") == 448);
  CHECK(std::isnan(rounded(1e6, "float8_e4m3fn")));
  CHECK(std::isinf(rounded(1e6, "float8_e5m2")));
  CHECK(rounded(-1e6, "float4_e2m1fn") == -6);
  CHECK(rounded(2.5, "float4_e2m1fn") == 2);  // ties to even
  CHECK(rounded(100, "float6_e3m2fn") == 28);
  CHECK(rounded(1000, "float8_e8m0fnu") == 1024);
}

}  // namespace relaxc
