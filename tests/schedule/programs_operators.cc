// Single operators of networks, of forms that the programs of programs.cc do not have.
#include "tests/schedule/programs.h"

namespace relaxc::test {

namespace {

Expr number(double value) { return float_imm(value); }
Expr div(const Expr& a, const Expr& b) { return binary(BinaryOp::kDiv, a, b); }
Expr square(const Expr& x) { return x * x; }
const Expr kOne = int_imm(1), kZero = int_imm(0);

Buffer sum(ComputeBuilder& b, const char* name, std::vector<Expr> shape, std::vector<Expr> reduced,
           const std::function<Expr(Axes, Axes)>& value) {
  return b.reduce(name, kFloat32, std::move(shape), std::move(reduced), zero(kFloat32), combine_sum, value);
}

const ProgramRow kOperatorRows[] = {
    {"argmax",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 7), m = d("m", 12);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer top = b.buffer("top", kFloat32, {n}), where = b.buffer("where", kInt64, {n});
       b.block("argmax", {n}, {m}, [&](Axes i, Axes r) {
         Expr value = load(x, {i[0], r[0]}), best = load(top, {i[0]});
         // Of equals the first, in whatever order they come.
         Expr better = value > best || (equal(value, best) && r[0] < load(where, {i[0]}));
         return ComputeBuilder::Bodies{seq({store(where, int_imm(-1), {i[0]}), store(top, number(-100), {i[0]})}),
                                       seq({store(where, select(better, r[0], load(where, {i[0]})), {i[0]}),
                                            store(top, select(better, value, best), {i[0]})})};
       });
       return b.finish({top, where});
     }},
    {"group_norm",
     [](Dims& d) {
       ComputeBuilder b;
       Expr g = int_imm(3), c = int_imm(4), h = d("h", 6);
       Buffer x = b.input("x", kFloat32, {g, c, h});
       Buffer s = sum(b, "s", {g}, {c, h}, [&](Axes i, Axes r) { return load(x, {i[0], r[0], r[1]}); });
       Buffer q = sum(b, "q", {g}, {c, h}, [&](Axes i, Axes r) { return square(load(x, {i[0], r[0], r[1]})); });
       return b.finish({b.compute("norm", kFloat32, {g, c, h}, [&](Axes i) {
         return div(at(x, i) - load(s, {i[0]}) * number(1.0 / 64), load(q, {i[0]}) + number(1));
       })});
     }},
    {"rms_norm",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 5), m = d("m", 9);
       Buffer x = b.input("x", kFloat32, {n, m}), w = b.input("w", kFloat32, {m});
       Buffer q = sum(b, "q", {n}, {m}, [&](Axes i, Axes r) { return square(load(x, {i[0], r[0]})); });
       return b.finish({b.compute("norm", kFloat32, {n, m}, [&](Axes i) {
         return at(x, i) * intrinsic("tir.rsqrt", {load(q, {i[0]}) + number(1)}, kFloat32) * load(w, {i[1]});
       })});
     }},
    {"winograd_input",
     [](Dims& d) {
       ComputeBuilder b;
       Expr t = d("t", 5), c = int_imm(3), four = int_imm(4);
       Buffer x = b.input("x", kFloat32, {c, t * 2 + 2});
       Buffer m = b.input("B", kFloat32, {four, four});
       Buffer tile =
           b.compute("tile", kFloat32, {four, t, c}, [&](Axes i) { return load(x, {i[2], i[1] * 2 + i[0]}); });
       return b.finish({sum(b, "V", {four, t, c}, {four},
                            [&](Axes i, Axes r) { return load(tile, {r[0], i[1], i[2]}) * load(m, {r[0], i[0]}); })});
     }},
    {"strided_slice",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 8), m = int_imm(6);
       Buffer x = b.input("x", kFloat32, {n * 3 + 1, m + 2});
       Buffer s = b.compute("s", kFloat32, {n, m}, [&](Axes i) { return load(x, {i[0] * 3 + 1, i[1] + 2}); });
       return b.finish({b.compute("o", kFloat32, {n, m}, [&](Axes i) { return at(s, i) * number(2); })});
     }},
    {"upsample",
     [](Dims& d) {
       ComputeBuilder b;
       Expr c = int_imm(2), h = d("h", 5), w = d("w", 4);
       Buffer x = b.input("x", kFloat32, {c, h, w});
       Buffer u = b.compute("u", kFloat32, {c, h * 2, w * 2},
                            [&](Axes i) { return load(x, {i[0], floor_div(i[1], 2), floor_div(i[2], 2)}); });
       return b.finish({b.compute("o", kFloat32, {c, h * 2, w * 2}, [&](Axes i) { return max(at(u, i), number(0)); })});
     }},
    {"one_hot",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 9), m = d("m", 5);
       Buffer x = b.input("x", kInt64, {n});
       return b.finish({b.compute("hot", kFloat32, {n, m},
                                  [&](Axes i) { return select(equal(load(x, {i[0]}), i[1]), number(1), number(0)); })});
     }},
    {"where_clip",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 31);
       Buffer x = b.input("x", kFloat32, {n}), y = b.input("y", kFloat32, {n});
       Buffer w =
           b.compute("w", kFloat32, {n}, [&](Axes i) { return select(at(x, i) > at(y, i), at(x, i), number(0)); });
       Buffer c = b.compute("c", kFloat32, {n}, [&](Axes i) { return min(max(at(w, i), number(-2)), number(3)); });
       return b.finish({b.compute("o", kFloat32, {n}, [&](Axes i) { return at(c, i) - at(y, i); })});
     }},
    {"cumulative_product",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 4), m = int_imm(5);
       Buffer x = b.input("x", kInt32, {n, m}), o = b.buffer("o", kInt32, {n, m});
       b.block("scan", {n}, {}, [&](Axes i, Axes) {
         VarRef j = make_dim("j");
         Expr at_j = j, before = if_then_else(at_j > kZero, load(o, {i[0], at_j - 1}), int_imm(1, kInt32));
         return ComputeBuilder::Bodies{std::nullopt, loop(j, m, store(o, before * load(x, {i[0], j}), {i[0], j}))};
       });
       return b.finish({o});
     }},
    {"dilated_conv",
     [](Dims& d) {
       ComputeBuilder b;
       Expr c = int_imm(2), k = int_imm(3), h = d("h", 6), w = int_imm(5), three = int_imm(3);
       Buffer x = b.input("x", kFloat32, {c, h + 4, w + 4}), y = b.input("w", kFloat32, {k, c, three, three});
       return b.finish({sum(b, "conv", {k, h, w}, {c, three, three}, [&](Axes i, Axes r) {
         return load(x, {r[0], i[1] + r[1] * 2, i[2] + r[2] * 2}) * load(y, {i[0], r[0], r[1], r[2]});
       })});
     }},
    {"conv1d",
     [](Dims& d) {
       ComputeBuilder b;
       Expr c = int_imm(3), k = int_imm(4), n = d("n", 11), three = int_imm(3);
       Buffer x = b.input("x", kFloat32, {c, n}), y = b.input("w", kFloat32, {k, c, three});
       Buffer p = b.compute("pad", kFloat32, {c, n + 2}, [&](Axes i) {
         return if_then_else(i[1] >= kOne && i[1] < n + 1, load(x, {i[0], i[1] - 1}), number(0));
       });
       Buffer o = sum(b, "conv", {k, n}, {c, three},
                      [&](Axes i, Axes r) { return load(p, {r[0], i[1] + r[1]}) * load(y, {i[0], r[0], r[1]}); });
       return b.finish({b.compute("o", kFloat32, {k, n}, [&](Axes i) { return max(at(o, i), number(0)); })});
     }},
    {"conv3d",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 3), two = int_imm(2), k = int_imm(2), h = int_imm(3);
       Buffer x = b.input("x", kFloat32, {two, n + 1, h + 1, h + 1});
       Buffer y = b.input("w", kFloat32, {k, two, two, two, two});
       return b.finish({sum(b, "conv", {k, n, h, h}, {two, two, two, two}, [&](Axes i, Axes r) {
         return load(x, {r[0], i[1] + r[1], i[2] + r[2], i[3] + r[3]}) * load(y, {i[0], r[0], r[1], r[2], r[3]});
       })});
     }},
    {"transposed_conv",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 5), c = int_imm(2), k = int_imm(3), four = int_imm(4);
       Buffer x = b.input("x", kFloat32, {c, n}), y = b.input("w", kFloat32, {c, k, four});
       // Stride 2: each position gathers the inputs that reach it.
       return b.finish({sum(b, "o", {k, n * 2 + 2}, {c, four}, [&](Axes i, Axes r) {
         Expr from = i[1] - r[1];
         Expr hits = from >= kZero && equal(floor_mod(from, 2), kZero) && floor_div(from, 2) < n;
         return if_then_else(hits, load(x, {r[0], floor_div(from, 2)}) * load(y, {r[0], i[0], r[1]}), number(0));
       })});
     }},
    {"outer_product",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 9), m = d("m", 6);
       Buffer x = b.input("x", kFloat32, {n}), y = b.input("y", kFloat32, {m});
       Buffer p = b.compute("p", kFloat32, {n, m}, [&](Axes i) { return load(x, {i[0]}) * load(y, {i[1]}); });
       return b.finish({b.compute("o", kFloat32, {m, n}, [&](Axes i) { return load(p, {i[1], i[0]}) + number(1); })});
     }},
    {"dot",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 24);
       Buffer x = b.input("x", kFloat32, {n}), y = b.input("y", kFloat32, {n});
       Buffer p = b.compute("p", kFloat32, {n}, [&](Axes i) { return at(x, i) * at(y, i); });
       return b.finish({sum(b, "dot", {}, {n}, [&](Axes, Axes r) { return load(p, {r[0]}); })});
     }},
    {"triangular_mask",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 7), m = d("m", 8);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer t = b.compute("t", kFloat32, {n, m}, [&](Axes i) { return select(i[1] <= i[0], at(x, i), number(0)); });
       return b.finish({b.reduce("top", kFloat32, {n}, {m}, lowest(kFloat32), combine_max,
                                 [&](Axes i, Axes r) { return load(t, {i[0], r[0]}); })});
     }},
    {"gelu",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 13), m = int_imm(4);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer e = b.compute("e", kFloat32, {n, m},
                            [&](Axes i) { return intrinsic("tir.erf", {at(x, i) * number(0.70710678)}, kFloat32); });
       return b.finish({b.compute("gelu", kFloat32, {n, m},
                                  [&](Axes i) { return at(x, i) * number(0.5) * (at(e, i) + number(1)); })});
     }},
    {"requantize",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 6), m = int_imm(8), k = d("k", 5);
       DType s8 = DType::int_(8);
       Buffer x = b.input("A", s8, {n, k}), y = b.input("B", s8, {k, m});
       Buffer c = b.reduce("C", kInt32, {n, m}, {k}, zero(kInt32), combine_sum, [&](Axes i, Axes r) {
         return cast_to(load(x, {i[0], r[0]}), kInt32) * cast_to(load(y, {r[0], i[1]}), kInt32);
       });
       return b.finish({b.compute("q", s8, {n, m}, [&](Axes i) {
         Expr scaled = floor_div(at(c, i), int_imm(4, kInt32));
         return cast_to(max(min(scaled, int_imm(127, kInt32)), int_imm(-128, kInt32)), s8);
       })});
     }},
    {"in_place",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 14), m = int_imm(3);
       Buffer x = b.input("x", kFloat32, {n, m}), o = b.buffer("o", kFloat32, {n, m});
       b.block("scale", {n, m}, {}, [&](Axes i, Axes) {
         return ComputeBuilder::Bodies{std::nullopt, store(o, at(o, i) * number(2) + at(x, i), i)};
       });
       return b.finish({o});
     }},
};

}  // namespace

std::span<const ProgramRow> operator_programs() { return kOperatorRows; }

}  // namespace relaxc::test
