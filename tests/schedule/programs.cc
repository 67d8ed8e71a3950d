#include "tests/schedule/programs.h"

#include "ir/visit.h"
#include "tir/lower/lower.h"

namespace relaxc::test {

namespace {

Expr f(double value) { return float_imm(value); }
Expr relu(const Expr& x) { return max(x, f(0)); }

PrimFuncRef finish(ComputeBuilder& b, const std::vector<Buffer>& outputs) { return b.finish(outputs); }

Buffer matmul(ComputeBuilder& b, const Buffer& x, const Buffer& y, const Expr& n, const Expr& m, const Expr& k) {
  return b.reduce("C", kFloat32, {n, m}, {k}, zero(kFloat32), combine_sum,
                  [&](Axes i, Axes r) { return load(x, {i[0], r[0]}) * load(y, {r[0], i[1]}); });
}

Buffer conv2d(ComputeBuilder& b, const Buffer& x, const Buffer& w, const std::vector<Expr>& shape, const Expr& channels,
              int64_t kernel, int64_t stride) {
  return b.reduce("conv", kFloat32, shape, {channels, int_imm(kernel), int_imm(kernel)}, zero(kFloat32), combine_sum,
                  [&](Axes i, Axes r) {
                    return load(x, {i[0], r[0], i[2] * stride + r[1], i[3] * stride + r[2]}) *
                           load(w, {i[1], r[0], r[1], r[2]});
                  });
}

Buffer padded(ComputeBuilder& b, const Buffer& x, const Expr& n, const Expr& c, const Expr& h, const Expr& w) {
  return b.compute("pad", kFloat32, {n, c, h + 2, w + 2}, [&](Axes i) {
    Expr inside = i[2] >= int_imm(1) && i[2] < h + 1 && i[3] >= int_imm(1) && i[3] < w + 1;
    return if_then_else(inside, load(x, {i[0], i[1], i[2] - 1, i[3] - 1}), f(0));
  });
}

const ProgramRow kRows[] = {
    {"elementwise",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 37), m = d("m", 19);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer y = b.compute("y", kFloat32, {n, m}, [&](Axes i) { return at(x, i) * f(2); });
       Buffer z = b.compute("z", kFloat32, {n, m}, [&](Axes i) { return at(y, i) + f(1); });
       return finish(b, {z});
     }},
    {"chain",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 45);
       Buffer x = b.input("x", kFloat32, {n, int_imm(8)});
       Buffer y = b.compute("y", kFloat32, {n, int_imm(8)}, [&](Axes i) { return relu(at(x, i)); });
       Buffer z = b.compute("z", kFloat32, {n, int_imm(8)}, [&](Axes i) { return at(y, i) + at(x, i); });
       Buffer u = b.compute("u", kFloat32, {n, int_imm(8)}, [&](Axes i) { return at(z, i) * at(y, i); });
       return finish(b, {u});
     }},
    {"matmul",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 17), m = d("m", 24), k = d("k", 13);
       Buffer x = b.input("A", kFloat32, {n, k}), y = b.input("B", kFloat32, {k, m});
       return finish(b, {matmul(b, x, y, n, m, k)});
     }},
    {"matmul_bias_relu",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 16), m = int_imm(32), k = d("k", 8);
       Buffer x = b.input("A", kFloat32, {n, k}), y = b.input("B", kFloat32, {k, m}),
              bias = b.input("bias", kFloat32, {m});
       Buffer c = matmul(b, x, y, n, m, k);
       Buffer s = b.compute("sum", kFloat32, {n, m}, [&](Axes i) { return at(c, i) + load(bias, {i[1]}); });
       Buffer r = b.compute("relu", kFloat32, {n, m}, [&](Axes i) { return relu(at(s, i)); });
       return finish(b, {r});
     }},
    {"two_matmuls",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 9), m = int_imm(12), k = int_imm(7), p = int_imm(5);
       Buffer x = b.input("A", kFloat32, {n, k}), y = b.input("B", kFloat32, {k, m}),
              w = b.input("W", kFloat32, {m, p});
       Buffer c = matmul(b, x, y, n, m, k);
       Buffer e = b.reduce("E", kFloat32, {n, p}, {m}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(c, {i[0], r[0]}) * load(w, {r[0], i[1]}); });
       return finish(b, {e});
     }},
    {"batch_matmul",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("b", 3), m = int_imm(6), k = d("k", 5);
       Buffer x = b.input("A", kFloat32, {n, m, k}), y = b.input("B", kFloat32, {n, m, k});
       Buffer c = b.reduce("C", kFloat32, {n, m, m}, {k}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(x, {i[0], i[1], r[0]}) * load(y, {i[0], i[2], r[0]}); });
       return finish(b, {c});
     }},
    {"conv2d",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 1), c = int_imm(3), h = d("h", 6), w = int_imm(7), k = int_imm(4);
       Buffer x = b.input("x", kFloat32, {n, c, h, w}), y = b.input("w", kFloat32, {k, c, int_imm(3), int_imm(3)});
       Buffer p = padded(b, x, n, c, h, w);
       return finish(b, {conv2d(b, p, y, {n, k, h, w}, c, 3, 1)});
     }},
    {"conv2d_stride_bias_relu",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 2), c = int_imm(2), h = d("h", 4), w = int_imm(5), k = int_imm(4);
       Buffer x = b.input("x", kFloat32, {n, c, h * 2 + 1, w * 2 + 1});
       Buffer y = b.input("w", kFloat32, {k, c, int_imm(3), int_imm(3)}), bias = b.input("bias", kFloat32, {k});
       Buffer o = conv2d(b, x, y, {n, k, h, w}, c, 3, 2);
       Buffer r =
           b.compute("relu", kFloat32, {n, k, h, w}, [&](Axes i) { return relu(at(o, i) + load(bias, {i[1]})); });
       return finish(b, {r});
     }},
    {"conv2d_residual",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = int_imm(1), c = int_imm(4), h = d("h", 5), w = d("w", 6);
       Buffer x = b.input("x", kFloat32, {n, c, h, w}), y = b.input("w", kFloat32, {c, c, int_imm(3), int_imm(3)});
       Buffer skip = b.input("skip", kFloat32, {n, c, h, w});
       Buffer p = padded(b, x, n, c, h, w);
       Buffer o = conv2d(b, p, y, {n, c, h, w}, c, 3, 1);
       Buffer a = b.compute("add", kFloat32, {n, c, h, w}, [&](Axes i) { return at(o, i) + at(skip, i); });
       Buffer r = b.compute("relu", kFloat32, {n, c, h, w}, [&](Axes i) { return relu(at(a, i)); });
       return finish(b, {r});
     }},
    {"depthwise",
     [](Dims& d) {
       ComputeBuilder b;
       Expr c = d("c", 6), h = d("h", 5), w = int_imm(6);
       Buffer x = b.input("x", kFloat32, {int_imm(1), c, h, w}),
              y = b.input("w", kFloat32, {c, int_imm(3), int_imm(3)});
       Buffer p = padded(b, x, int_imm(1), c, h, w);
       Buffer o = b.reduce("depthwise", kFloat32, {int_imm(1), c, h, w}, {int_imm(3), int_imm(3)}, zero(kFloat32),
                           combine_sum, [&](Axes i, Axes r) {
                             return load(p, {i[0], i[1], i[2] + r[0], i[3] + r[1]}) * load(y, {i[1], r[0], r[1]});
                           });
       return finish(b, {o});
     }},
    {"max_pool",
     [](Dims& d) {
       ComputeBuilder b;
       Expr c = d("c", 5), h = d("h", 4), w = int_imm(6);
       Buffer x = b.input("x", kFloat32, {c, h * 2, w * 2});
       Buffer o = b.reduce("pool", kFloat32, {c, h, w}, {int_imm(2), int_imm(2)}, lowest(kFloat32), combine_max,
                           [&](Axes i, Axes r) { return load(x, {i[0], i[1] * 2 + r[0], i[2] * 2 + r[1]}); });
       return finish(b, {o});
     }},
    {"avg_pool_overlapping",
     [](Dims& d) {
       ComputeBuilder b;
       Expr h = d("h", 7), w = int_imm(6);
       Buffer x = b.input("x", kFloat32, {h + 2, w + 2});
       Buffer s = b.reduce("sum", kFloat32, {h, w}, {int_imm(3), int_imm(3)}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(x, {i[0] + r[0], i[1] + r[1]}); });
       Buffer o = b.compute("avg", kFloat32, {h, w}, [&](Axes i) { return at(s, i) * f(0.125); });
       return finish(b, {o});
     }},
    {"global_pool",
     [](Dims& d) {
       ComputeBuilder b;
       Expr c = int_imm(5), h = d("h", 4), w = d("w", 3);
       Buffer x = b.input("x", kFloat32, {c, h, w});
       Buffer s = b.reduce("sum", kFloat32, {c}, {h, w}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(x, {i[0], r[0], r[1]}); });
       Buffer o = b.compute("scaled", kFloat32, {c}, [&](Axes i) { return at(s, i) * f(0.5); });
       return finish(b, {o});
     }},
    {"softmax",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 6), m = d("m", 9);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer top = b.reduce("top", kFloat32, {n}, {m}, lowest(kFloat32), combine_max,
                             [&](Axes i, Axes r) { return load(x, {i[0], r[0]}); });
       Buffer e = b.compute("e", kFloat32, {n, m},
                            [&](Axes i) { return intrinsic("tir.exp", {at(x, i) - load(top, {i[0]})}, kFloat32); });
       Buffer s = b.reduce("s", kFloat32, {n}, {m}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(e, {i[0], r[0]}); });
       Buffer o = b.compute("softmax", kFloat32, {n, m},
                            [&](Axes i) { return binary(BinaryOp::kDiv, at(e, i), load(s, {i[0]})); });
       return finish(b, {o});
     }},
    {"layer_norm",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 5), m = int_imm(12);
       Buffer x = b.input("x", kFloat32, {n, m}), g = b.input("g", kFloat32, {m});
       Buffer s = b.reduce("s", kFloat32, {n}, {m}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(x, {i[0], r[0]}); });
       Buffer c =
           b.compute("centered", kFloat32, {n, m}, [&](Axes i) { return at(x, i) - load(s, {i[0]}) * f(1.0 / 16); });
       Buffer q = b.reduce("q", kFloat32, {n}, {m}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(c, {i[0], r[0]}) * load(c, {i[0], r[0]}); });
       Buffer o = b.compute("norm", kFloat32, {n, m}, [&](Axes i) {
         return binary(BinaryOp::kDiv, at(c, i), load(q, {i[0]}) + f(1)) * load(g, {i[1]});
       });
       return finish(b, {o});
     }},
    {"row_sum",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 7), m = d("m", 33);
       Buffer x = b.input("x", kFloat32, {n, m});
       return finish(b, {b.reduce("sum", kFloat32, {n}, {m}, zero(kFloat32), combine_sum,
                                  [&](Axes i, Axes r) { return load(x, {i[0], r[0]}); })});
     }},
    {"column_max",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 21), m = d("m", 10);
       Buffer x = b.input("x", kInt32, {n, m});
       return finish(b, {b.reduce("top", kInt32, {m}, {n}, lowest(kInt32), combine_max,
                                  [&](Axes i, Axes r) { return load(x, {r[0], i[0]}); })});
     }},
    {"total",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 40);
       Buffer x = b.input("x", kInt64, {n});
       return finish(b, {b.reduce("sum", kInt64, {}, {n}, zero(kInt64), combine_sum,
                                  [&](Axes, Axes r) { return load(x, {r[0]}); })});
     }},
    {"two_results",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 11), m = int_imm(6);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer y = b.buffer("y", kFloat32, {n, m}), z = b.buffer("z", kFloat32, {m, n});
       b.block("both", {n, m}, {}, [&](Axes i, Axes) {
         return ComputeBuilder::Bodies{std::nullopt,
                                       seq({store(y, at(x, i) + f(1), i), store(z, at(x, i) * f(3), {i[1], i[0]})})};
       });
       return finish(b, {y, z});
     }},
    {"stencil",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 30);
       Buffer x = b.input("x", kFloat32, {n + 4});
       Buffer y = b.compute("y", kFloat32, {n + 2},
                            [&](Axes i) { return load(x, {i[0]}) + load(x, {i[0] + 1}) + load(x, {i[0] + 2}); });
       Buffer z = b.compute("z", kFloat32, {n}, [&](Axes i) { return load(y, {i[0]}) - load(y, {i[0] + 2}); });
       return finish(b, {z});
     }},
    {"blur",
     [](Dims& d) {
       ComputeBuilder b;
       Expr h = d("h", 10), w = d("w", 8);
       Buffer x = b.input("x", kFloat32, {h + 2, w + 2});
       Buffer y = b.compute("bx", kFloat32, {h + 2, w}, [&](Axes i) {
         return load(x, {i[0], i[1]}) + load(x, {i[0], i[1] + 1}) + load(x, {i[0], i[1] + 2});
       });
       Buffer z = b.compute("by", kFloat32, {h, w}, [&](Axes i) {
         return load(y, {i[0], i[1]}) + load(y, {i[0] + 1, i[1]}) + load(y, {i[0] + 2, i[1]});
       });
       return finish(b, {z});
     }},
    {"gather",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 12), m = d("m", 5);
       Buffer x = b.input("x", kFloat32, {n, m}), index = b.input("index", kInt64, {n});
       Buffer g = b.compute("g", kFloat32, {n, m},
                            [&](Axes i) { return load(x, {max(min(load(index, {i[0]}), n - 1), int_imm(0)), i[1]}); });
       Buffer o = b.compute("o", kFloat32, {n, m}, [&](Axes i) { return at(g, i) + at(x, i); });
       return finish(b, {o});
     }},
    {"transpose",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 9), m = d("m", 14);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer t = b.compute("t", kFloat32, {m, n}, [&](Axes i) { return load(x, {i[1], i[0]}); });
       Buffer o = b.compute("o", kFloat32, {m, n}, [&](Axes i) { return at(t, i) + f(1); });
       return finish(b, {o});
     }},
    {"concat",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 8), m = d("m", 7);
       Buffer x = b.input("x", kFloat32, {n}), y = b.input("y", kFloat32, {m});
       Buffer o = b.compute("o", kFloat32, {n + m},
                            [&](Axes i) { return if_then_else(i[0] < n, load(x, {i[0]}), load(y, {i[0] - n})); });
       return finish(b, {o});
     }},
    {"cumulative_sum",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 5), m = d("m", 9);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer y = b.compute("y", kFloat32, {n, m}, [&](Axes i) { return at(x, i) * f(2); });
       Buffer o = b.buffer("o", kFloat32, {n, m});
       b.block("scan", {n}, {}, [&](Axes i, Axes) {
         VarRef j = make_dim("j");
         Expr before = if_then_else(j > int_imm(0), load(o, {i[0], static_cast<const Expr&>(j) - 1}), f(0));
         return ComputeBuilder::Bodies{std::nullopt, loop(j, m, store(o, before + load(y, {i[0], j}), {i[0], j}))};
       });
       return finish(b, {o});
     }},
    {"attention",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 6), m = d("m", 7), k = int_imm(4);
       Buffer q = b.input("q", kFloat32, {n, k}), key = b.input("key", kFloat32, {m, k}),
              v = b.input("v", kFloat32, {m, k});
       Buffer s = b.reduce("scores", kFloat32, {n, m}, {k}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(q, {i[0], r[0]}) * load(key, {i[1], r[0]}); });
       Buffer top = b.reduce("top", kFloat32, {n}, {m}, lowest(kFloat32), combine_max,
                             [&](Axes i, Axes r) { return load(s, {i[0], r[0]}); });
       Buffer e = b.compute("e", kFloat32, {n, m}, [&](Axes i) {
         return intrinsic("tir.exp", {(at(s, i) - load(top, {i[0]})) * f(0.0625)}, kFloat32);
       });
       Buffer total = b.reduce("total", kFloat32, {n}, {m}, zero(kFloat32), combine_sum,
                               [&](Axes i, Axes r) { return load(e, {i[0], r[0]}); });
       Buffer o = b.reduce("o", kFloat32, {n, k}, {m}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(e, {i[0], r[0]}) * load(v, {r[0], i[1]}); });
       Buffer r = b.compute("r", kFloat32, {n, k},
                            [&](Axes i) { return binary(BinaryOp::kDiv, at(o, i), load(total, {i[0]})); });
       return finish(b, {r});
     }},
    {"int8_dot",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 5), m = int_imm(16), k = int_imm(12);
       DType u8 = DType::uint(8), s8 = DType::int_(8);
       Buffer x = b.input("A", u8, {n, k}), y = b.input("B", s8, {m, k});
       Buffer c = b.reduce("C", kInt32, {n, m}, {k}, zero(kInt32), combine_sum, [&](Axes i, Axes r) {
         return cast_to(load(x, {i[0], r[0]}), kInt32) * cast_to(load(y, {i[1], r[0]}), kInt32);
       });
       return finish(b, {c});
     }},
    {"reduction_chain",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 6), m = int_imm(5), k = d("k", 4);
       Buffer x = b.input("x", kFloat32, {n, m, k});
       Buffer s = b.reduce("s", kFloat32, {n, m}, {k}, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return load(x, {i[0], i[1], r[0]}); });
       Buffer t = b.reduce("t", kFloat32, {n}, {m}, lowest(kFloat32), combine_max,
                           [&](Axes i, Axes r) { return load(s, {i[0], r[0]}); });
       return finish(b, {t});
     }},
    {"broadcast_chain",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 6), m = d("m", 5);
       Buffer x = b.input("x", kFloat32, {n}), y = b.input("y", kFloat32, {m});
       Buffer p = b.compute("p", kFloat32, {n}, [&](Axes i) { return at(x, i) * f(3); });
       Buffer q = b.compute("q", kFloat32, {m}, [&](Axes i) { return at(y, i) - f(1); });
       Buffer o = b.compute("o", kFloat32, {n, m}, [&](Axes i) { return load(p, {i[0]}) + load(q, {i[1]}); });
       return finish(b, {o});
     }},
    {"reshape",
     [](Dims& d) {
       ComputeBuilder b;
       Expr n = d("n", 10), m = int_imm(6);
       Buffer x = b.input("x", kFloat32, {n, m});
       Buffer y = b.compute("flat", kFloat32, {n * 6},
                            [&](Axes i) { return load(x, {floor_div(i[0], 6), floor_mod(i[0], 6)}); });
       Buffer o = b.compute("o", kFloat32, {n * 6}, [&](Axes i) { return relu(at(y, i)); });
       return finish(b, {o});
     }},
};

std::vector<ProgramRow> all_rows() {
  std::vector<ProgramRow> rows(std::begin(kRows), std::end(kRows));
  rows.insert(rows.end(), operator_programs().begin(), operator_programs().end());
  return rows;
}

using Sizes = std::map<std::string, int64_t>;

// Such as the windows of an image that is smaller than one.
bool has_negative_dims(const PrimFuncRef& program, const Sizes& sizes) {
  VarMap dims;
  for (const VarRef& dim : symbolic_dims(program)) {
    if (auto size = sizes.find(dim->name); size != sizes.end()) dims.emplace(dim.get(), int_imm(size->second));
  }
  bool found = false;
  walk(static_cast<const Expr&>(program), [&](const Ref<Var>& var) {
    const BufferType* type = var.type().as<BufferType>();
    for (const Expr& dim : type ? type->shape : std::vector<Expr>()) {
      auto known = as_int(simplify(substitute(dim, dims)));
      found = found || (known && *known < 0);
    }
  });
  return found;
}

// All dims 1; two of several sizes; and each dim 0 once beside others.
std::vector<Sizes> some_sizes(const PrimFuncRef& program) {
  std::vector<Sizes> sizes(3);
  int64_t number = 1;
  std::vector<VarRef> dims = symbolic_dims(program);
  if (dims.empty()) return {{}};
  for (const VarRef& dim : dims) {
    sizes[0][dim->name] = 1;
    sizes[1][dim->name] = 5 + number;
    sizes[2][dim->name] = 16 + 3 * (number++ % 2);
  }
  for (const VarRef& dim : dims) {
    Sizes with_empty = sizes[1];
    with_empty[dim->name] = 0;
    if (!has_negative_dims(program, with_empty)) sizes.push_back(with_empty);
  }
  return sizes;
}

// The written program with these numbers in place of dims.
PrimFuncRef with_sizes(const PrimFuncRef& program, const Sizes& sizes) {
  VarMap numbers;
  for (const VarRef& dim : symbolic_dims(program)) {
    if (auto size = sizes.find(dim->name); size != sizes.end()) numbers.emplace(dim.get(), int_imm(size->second));
  }
  return cast<PrimFunc>(Substitution(numbers)(static_cast<const Expr&>(program)));
}

}  // namespace

std::vector<TestProgram> empty_programs() {
  std::vector<TestProgram> result;
  auto add = [&](const std::string& name, const PrimFuncRef& program) {
    if (!has_negative_dims(program, {})) result.push_back({name, program, some_sizes(program)});
  };
  for (const ProgramRow& row : all_rows()) {
    Dims variables{true};
    row.build(variables);
    for (const auto& [empty, var] : variables.vars) {
      Dims fixed{false, empty}, mixed{true, empty};
      add(fmt::format("{}_empty_{}", row.name, empty), row.build(fixed));
      if (variables.vars.size() > 1) add(fmt::format("{}_empty_{}_symbolic", row.name, empty), row.build(mixed));
    }
  }
  for (const auto& [name, function] : written_programs().functions) {
    PrimFuncRef program = cast<PrimFunc>(function);
    std::vector<VarRef> dims = symbolic_dims(program);
    for (const VarRef& empty : dims) {
      Sizes sizes;
      for (const VarRef& dim : dims) sizes[dim->name] = same_node(dim, empty) ? 0 : 8;
      add(fmt::format("{}_empty_{}", name, empty->name), with_sizes(program, sizes));
      if (dims.size() > 1)
        add(fmt::format("{}_empty_{}_symbolic", name, empty->name), with_sizes(program, {{empty->name, 0}}));
    }
  }
  return result;
}

std::vector<TestProgram> schedule_programs() {
  std::vector<TestProgram> result;
  auto add = [&](const std::string& name, const PrimFuncRef& fixed, const PrimFuncRef& symbolic) {
    result.push_back({name, fixed, {{}}});
    if (!symbolic_dims(symbolic).empty()) result.push_back({name + "_symbolic", symbolic, some_sizes(symbolic)});
  };
  for (const ProgramRow& row : all_rows()) {
    Dims numbers{false}, variables{true};
    add(row.name, row.build(numbers), row.build(variables));
  }
  for (const auto& [name, function] : written_programs().functions) {
    PrimFuncRef program = cast<PrimFunc>(function);
    Sizes sizes;
    for (const VarRef& dim : symbolic_dims(program)) sizes.emplace(dim->name, sizes.empty() ? 11 : 8);
    add(name, with_sizes(program, sizes), program);
  }
  return result;
}

}  // namespace relaxc::test
