// Every operator that has a lowering, at every level of the compiler. Above 600 lines: one list of cases.
#include <set>

#include "ir/arith.h"
#include "tests/differential/differential.h"
#include "tests/differential/references.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

constexpr DType kInt8 = DType::int_(8), kInt16 = DType::int_(16), kUInt8 = DType::uint(8), kUInt32 = DType::uint(32),
                kUInt64 = DType::uint(64), kFloat16 = DType::float_(16), kBFloat16 = DType::bfloat16();

using List = std::vector<int64_t>;

const Contents kAny{.special = true};
const Contents kPositive{.low = 0.125, .high = 4};
const Contents kUnit{.low = -1, .high = 1};
const Contents kSmallOperands{.low = -2, .high = 2};

// Name of the operator without "relax.", and what else tells the case.
Case op_case(std::string op, std::string suffix, std::function<std::vector<Expr>(Graph&)> args, Attrs attrs = {},
             Sizes least = {}, double tolerance = -1) {
  Case result;
  result.name = suffix.empty() ? op : op + " " + suffix;
  result.build = [op, args, attrs](Graph& g) { return g.op(op, args(g), attrs); };
  result.least = std::move(least);
  result.tolerance = tolerance;
  return result;
}
// An operator with several results.
Case tuple_case(std::string op, std::string suffix, int64_t count, std::function<std::vector<Expr>(Graph&)> args,
                Attrs attrs = {}, Sizes least = {}) {
  Case result = op_case(op, suffix, args, attrs, std::move(least));
  result.build = [op, args, attrs, count](Graph& g) -> Expr {
    Expr all = g.op(op, args(g), attrs);
    std::vector<Expr> items;
    for (int64_t i = 0; i < count; ++i) items.push_back(g.item(all, i));
    return tuple(items);
  };
  return result;
}
auto one(std::string dims, DType dtype = kFloat32, Contents contents = {}) {
  return [=](Graph& g) { return std::vector<Expr>{g.input(dims, dtype, contents)}; };
}
auto two(std::string a, std::string b, DType dtype = kFloat32, Contents contents_a = {}, Contents contents_b = {}) {
  return [=](Graph& g) { return std::vector<Expr>{g.input(a, dtype, contents_a), g.input(b, dtype, contents_b)}; };
}

void add_elementwise(std::vector<Case>& cases) {
  // Functions of floats: tolerance in units of 1 + |x|.
  struct Unary {
    const char* name;
    Contents contents;
  };
  const Unary floats[] = {{"acos", kUnit},      {"acosh", {1, 8}},    {"asin", kUnit},
                          {"asinh", kAny},      {"atan", kAny},       {"atanh", {-0.875, 0.875}},
                          {"ceil", kAny},       {"cos", {}},          {"cosh", {}},
                          {"erf", kAny},        {"exp", kAny},        {"floor", kAny},
                          {"log", kAny},        {"rsqrt", kPositive}, {"sigmoid", kAny},
                          {"sin", {}},          {"sinh", {}},         {"sqrt", kAny},
                          {"tan", kUnit},       {"tanh", kAny},       {"trunc", kAny},
                          {"round", kAny},      {"nn.silu", {}},      {"nn.gelu", {}},
                          {"nn.gelu_tanh", {}}, {"nn.softplus", {}},  {"isfinite", kAny},
                          {"isinf", kAny},      {"isnan", kAny},      {"abs", kAny},
                          {"negative", kAny},   {"sign", kAny},       {"square", {}},
                          {"nn.relu", kAny},    {"nn.relu6", kAny},   {"nn.selu", {}}};
  for (const Unary& row : floats) {
    cases.push_back(op_case(row.name, "", one("n,m", kFloat32, row.contents)));
    Contents finite = row.contents;
    finite.special = false;
    cases.push_back(op_case(row.name, "float64", one("n", kFloat64, finite)));
    cases.push_back(op_case(row.name, "float16", one("n,m", kFloat16, finite)));
  }
  cases.push_back(op_case("exp", "bfloat16", one("n", kBFloat16)));
  for (const char* name : {"abs", "negative", "sign", "square", "nn.relu"}) {
    for (DType dtype : {kInt8, kInt32, kInt64})
      cases.push_back(op_case(name, to_string(dtype), one("n,m", dtype, {-9, 9})));
  }
  cases.push_back(op_case("bitwise_not", "", one("n,m", kInt32)));
  cases.push_back(op_case("bitwise_not", "uint8", one("n", kUInt8)));
  cases.push_back(op_case("logical_not", "", one("n,m", kBool, {0, 1})));
  cases.push_back(op_case("nn.leakyrelu", "", one("n,m", kFloat32, kAny), {{"alpha", 0.1}}));
  cases.push_back(op_case("clip", "", [](Graph& g) -> std::vector<Expr> {
    return {g.input("n,m", kFloat32, kAny), float_imm(-1.5), float_imm(2)};
  }));
  cases.push_back(op_case("clip", "int32", [](Graph& g) -> std::vector<Expr> {
    return {g.input("n,m", kInt32, {-9, 9}), int_imm(-3), int_imm(5)};
  }));
  cases.push_back(op_case("nn.softplus", "beta", one("n,m"), {{"beta", 2.0}}));
  cases.push_back(op_case("log_add_exp", "", two("n,m", "n,1")));
  cases.push_back(op_case(
      "ewise_fma", "", [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("n,m"), g.input("n,m")}; }));
  cases.push_back(
      op_case("add", "scalar", [](Graph& g) -> std::vector<Expr> { return {g.input("n,m", kInt64), int_imm(3)}; }));
  for (const char* name : {"round", "floor", "ceil", "trunc"})
    cases.push_back(op_case(name, "int32", one("n", kInt32)));
  for (const char* name : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "equal", "not_equal", "less",
                           "less_equal", "greater", "greater_equal"}) {
    cases.push_back(op_case(name, "", two("n,m", "n,m", kFloat32, kAny, kAny)));
    cases.push_back(op_case(name, "row", two("n,m", "m", kFloat32, kAny, kAny)));
    cases.push_back(op_case(name, "column", two("n,m", "n,1")));
    cases.push_back(op_case(name, "int64", two("n,m", "1,m", kInt64, {-9, 9}, {1, 9})));
    cases.push_back(op_case(name, "uint8", two("n,m", "n,m", kUInt8, {0, 255}, {1, 255})));
  }
  for (const char* name : {"floor_divide", "floor_mod", "mod"}) {
    cases.push_back(op_case(name, "int32", two("n,m", "n,m", kInt32, {-20, 20}, {1, 9})));
    cases.push_back(op_case(name, "negative", two("n,m", "m", kInt64, {-20, 20}, {-9, -1})));
    cases.push_back(op_case(name, "uint8", two("n", "n", kUInt8, {0, 200}, {1, 9})));
    cases.push_back(op_case(name, "float32", two("n,m", "n,m", kFloat32, {}, {0.5, 3})));
  }
  for (const char* name : {"logical_and", "logical_or", "logical_xor", "equal"})
    cases.push_back(op_case(name, "bool", two("n,m", "m", kBool, {0, 1}, {0, 1})));
  for (const char* name : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    cases.push_back(op_case(name, "", two("n,m", "n,m", kInt32, {-100, 100}, {-100, 100})));
  for (const char* name : {"left_shift", "right_shift"}) {
    cases.push_back(op_case(name, "uint32", two("n,m", "n,m", kUInt32, {0, 100}, {0, 31})));
    cases.push_back(op_case(name, "int8", two("n", "n", kInt8, {-100, 100}, {0, 7})));
  }
  cases.push_back(op_case("power", "", two("n,m", "n,m", kFloat32, kPositive, kSmallOperands), {}, {}, 1e-5));
  cases.push_back(op_case("power", "int32", two("n", "n", kInt32, {-5, 5}, {0, 5})));
  cases.push_back(op_case("atan2", "", two("n,m", "n,1")));
  cases.push_back(op_case("nn.prelu", "", two("n,m,k", "m,1")));
  cases.push_back(op_case("nn.prelu", "axis", two("n,m,k", "m"), {{"axis", 1}}));
  cases.push_back(op_case("where", "", [](Graph& g) {
    return std::vector<Expr>{g.input("n,1", kBool, {0, 1}), g.input("m", kFloat32, kAny),
                             g.input("n,m", kFloat32, kAny)};
  }));
  cases.push_back(op_case("where", "int8", [](Graph& g) {
    return std::vector<Expr>{g.input("n,m", kBool, {0, 1}), g.input("n,m", kInt8), g.input("", kInt8)};
  }));
  const DType dtypes[] = {kBool,  kInt8,   kUInt8,   kInt16,    kInt32,   kUInt32,
                          kInt64, kUInt64, kFloat16, kBFloat16, kFloat32, kFloat64};
  for (DType from : dtypes) {
    for (DType to : dtypes) {
      if (from == to) continue;
      Contents contents{from.is_bool() ? 0.0 : -100.0, from.is_bool() ? 1.0 : 100.0};
      contents.special = from.is_float() && from != kFloat16;
      cases.push_back(
          op_case("astype", to_string(from) + " to " + to_string(to), one("n", from, contents), {{"dtype", to}}));
    }
  }
}

void add_reductions(std::vector<Case>& cases) {
  for (const char* name : {"sum", "prod", "max", "min", "mean", "variance", "std"}) {
    bool is_float = std::string(name) == "variance" || std::string(name) == "std";
    Contents contents = std::string(name) == "prod"                            ? Contents{1, 1}
                        : std::string(name).starts_with("m") && name[1] != 'e' ? kAny
                                                                               : Contents{};
    Sizes least;
    if (is_float || std::string(name) == "mean") least = {{"n", 1}, {"m", 1}, {"k", 1}};
    double tolerance = is_float || std::string(name) == "mean" ? 2e-5 : -1;
    cases.push_back(op_case(name, "all", one("n,m", kFloat32, contents), {}, least, tolerance));
    cases.push_back(op_case(name, "last", one("n,m", kFloat32, contents), {{"axis", List{-1}}, {"keepdims", true}},
                            least, tolerance));
    cases.push_back(op_case(name, "first", one("n,m", kFloat32, contents), {{"axis", List{0}}}, least, tolerance));
    cases.push_back(op_case(name, "middle", one("n,m,k", kFloat32, contents), {{"axis", List{1}}}, least, tolerance));
    cases.push_back(op_case(name, "outer", one("n,m,k", kFloat32, contents), {{"axis", List{0, 2}}}, least, tolerance));
    cases.push_back(op_case(name, "none", one("n,m", kFloat32, contents), {{"axis", List{}}}, least, tolerance));
    // Which of the axes are reduced is not in the program.
    if (!is_float) {
      cases.push_back(op_case(
          fmt::format("dyn.{}", name), "to a shape",
          [=](Graph& g) -> std::vector<Expr> {
            Expr b = g.dim("b");
            g.input("b");
            std::vector<Expr> shape = {select(b < int_imm(3), g.dim("n"), int_imm(1)),
                                       select(b < int_imm(6), int_imm(1), g.dim("m")), g.dim("k")};
            return {g.input("n,m,k", kFloat32, contents), shape_expr(shape)};
          },
          {}, {{"n", 1}, {"m", 1}, {"k", 1}}, tolerance));
    }
    cases.push_back(op_case(name, "float16", one("n,m", kFloat16, contents.special ? Contents{} : contents),
                            {{"axis", List{1}}}, least, 4e-3));
    if (is_float) continue;
    for (DType dtype : {kInt8, kInt32, kInt64, kUInt8})
      cases.push_back(op_case(name, to_string(dtype), one("n,m", dtype, contents.special ? Contents{} : contents),
                              {{"axis", List{1}}}, least));
  }
  cases.push_back(op_case("max", "bool", one("n,m", kBool, {0, 1}), {{"axis", List{1}}}));
  for (const char* name : {"argmax", "argmin"}) {
    Sizes least = {{"n", 1}, {"m", 1}};
    cases.push_back(op_case(name, "", one("n,m", kFloat32, kAny), {{"axis", 1}}, least));
    cases.push_back(op_case(name, "first axis", one("n,m", kFloat32), {{"axis", 0}, {"keepdims", true}}, least));
    cases.push_back(op_case(name, "all", one("n,m", kFloat32), {}, least));
    cases.push_back(op_case(name, "last", one("n,m", kInt8), {{"axis", 1}, {"select_last_index", true}}, least));
    cases.push_back(op_case(name, "int64", one("n,m", kInt64), {{"axis", 1}}, least));
  }
  for (const char* name : {"cumsum", "cumprod"}) {
    Contents contents = std::string(name) == "cumprod" ? Contents{1, 1} : Contents{};
    cases.push_back(op_case(name, "", one("n,m", kFloat32, contents), {{"axis", 1}}));
    cases.push_back(op_case(name, "exclusive", one("n,m", kFloat32, contents), {{"axis", 0}, {"exclusive", true}}));
    cases.push_back(
        op_case(name, "reverse", one("n,m", kInt32, {1, 3}), {{"axis", 1}, {"reverse", true}, {"exclusive", true}}));
    cases.push_back(op_case(name, "flat", one("n,m", kInt8, {1, 2}), {{"dtype", kInt64}}));
  }
  for (const char* name : {"nn.softmax", "nn.log_softmax"}) {
    cases.push_back(op_case(name, "", one("n,m"), {{"axis", -1}}, {{"m", 1}}, 1e-5));
    cases.push_back(op_case(name, "middle", one("n,m,k"), {{"axis", 1}}, {{"m", 1}}, 1e-5));
    cases.push_back(op_case(name, "float16", one("n,m", kFloat16), {{"axis", -1}}, {{"m", 1}}));
    cases.push_back(op_case(name, "float64", one("n,m", kFloat64), {{"axis", 0}}, {{"n", 1}}, 1e-6));
  }
}

void add_contractions(std::vector<Case>& cases) {
  cases.push_back(op_case("matmul", "", two("n,k", "k,m")));
  cases.back().sizes = {
      {{"n", 1}, {"k", 300}, {"m", 33}}, {{"n", 33}, {"k", 17}, {"m", 65}}, {{"n", 4}, {"k", 0}, {"m", 5}}};
  cases.push_back(op_case("matmul", "batched", two("b,n,k", "b,k,m")));
  cases.push_back(op_case("matmul", "broadcast", two("b,1,n,k", "c,k,m")));
  cases.push_back(op_case("matmul", "vectors", two("k", "k")));
  cases.push_back(op_case("matmul", "left vector", two("k", "b,k,m")));
  cases.push_back(op_case("matmul", "right vector", two("n,k", "k")));
  cases.push_back(op_case("matmul", "fixed weight", two("n,24", "24,40")));
  cases.push_back(op_case("matmul", "narrow weight", two("n,24", "24,3")));
  cases.push_back(op_case("matmul", "float64", two("n,k", "k,m", kFloat64)));
  cases.push_back(op_case("matmul", "float16", two("n,k", "k,m", kFloat16, kUnit, kUnit), {}, {}, 2e-2));
  cases.push_back(op_case("matmul", "int32", two("n,k", "k,m", kInt32)));
  cases.push_back(
      op_case("matmul", "int8 widened", two("n,k", "k,m", kInt8, {-100, 100}, {-100, 100}), {{"out_dtype", kInt32}}));
  cases.push_back(
      op_case("matmul", "uint8 widened", two("n,k", "k,m", kUInt8, {0, 255}, {0, 255}), {{"out_dtype", kInt32}}));
  cases.push_back(op_case("linalg.det", "", one("b,3,3"), {}, {}, 1e-4));
  cases.push_back(op_case("linalg.det", "symbolic", one("b,n,n", kFloat64, kUnit), {}, {}, 1e-6));
  cases.back().most = 300;
  const char* subscripts[][3] = {
      {"ij,jk->ik", "n,k", "k,m"}, {"bij,bjk->bik", "b,n,k", "b,k,m"},        {"i,j->ij", "n", "m"},
      {"ij,ij->", "n,m", "n,m"},   {"bhqd,bhkd->bhqk", "b,2,n,k", "b,2,m,k"}, {"...ij,...jk->...ik", "b,n,k", "k,m"}};
  for (auto& row : subscripts) {
    std::string a = row[1], b = row[2];
    cases.push_back(op_case("einsum", row[0],
                            [a, b](Graph& g) -> std::vector<Expr> { return {tuple({g.input(a), g.input(b)})}; },
                            {{"subscripts", row[0]}}));
  }
  cases.push_back(op_case("einsum", "ii->i", [](Graph& g) -> std::vector<Expr> { return {tuple({g.input("n,n")})}; },
                          {{"subscripts", "ii->i"}}));
  cases.push_back(op_case("einsum", "ij->ji", [](Graph& g) -> std::vector<Expr> { return {tuple({g.input("n,m")})}; },
                          {{"subscripts", "ij->ji"}}));

  const Sizes image = {{"h", 5}, {"w", 5}, {"c", 1}, {"l", 5}};
  auto conv = [&](std::string op, std::string suffix, std::string x, std::string w, Attrs attrs,
                  DType dtype = kFloat32) {
    cases.push_back(op_case(op, suffix, two(x, w, dtype, kSmallOperands, kSmallOperands), attrs, image));
    cases.back().most = 6000;
  };
  conv("nn.conv1d", "", "n,c,l", "6,c,3", {{"padding", List{1}}});
  conv("nn.conv1d", "strided", "n,3,l", "m,3,3", {{"strides", List{2}}, {"dilation", List{2}}});
  conv("nn.conv2d", "3x3", "n,4,h,w", "16,4,3,3", {{"padding", List{1}}});
  conv("nn.conv2d", "symbolic channels", "n,c,h,w", "m,c,3,3", {{"padding", List{1}}});
  conv("nn.conv2d", "1x1", "n,8,h,w", "20,8,1,1", {});
  conv("nn.conv2d", "strided", "n,3,h,w", "9,3,3,3", {{"strides", List{2}}, {"padding", List{0, 1, 2, 1}}});
  conv("nn.conv2d", "dilated", "n,3,h,w", "5,3,2,2", {{"dilation", List{2, 1}}, {"padding", List{1}}});
  conv("nn.conv2d", "depthwise", "n,6,h,w", "6,1,3,3", {{"groups", 6}, {"padding", List{1}}});
  conv("nn.conv2d", "grouped", "n,6,h,w", "8,3,3,3", {{"groups", 2}, {"strides", List{1, 2}}});
  conv("nn.conv2d", "fixed", "2,4,14,14", "32,4,3,3", {{"padding", List{1}}});
  conv("nn.conv2d", "float16", "n,3,h,w", "4,3,3,3", {}, kFloat16);
  cases.back().tolerance = 2e-2;
  conv("nn.conv2d", "int8", "n,3,h,w", "4,3,3,3", {{"out_dtype", kInt32}, {"padding", List{1}}}, kInt8);
  conv("nn.conv3d", "", "n,2,h,w,5", "3,2,2,2,2", {{"padding", List{1}}});
  conv("nn.conv1d_transpose", "", "n,3,l", "3,4,3", {{"strides", List{2}}, {"padding", List{1}}});
  conv("nn.conv2d_transpose", "", "n,3,h,w", "3,4,3,3",
       {{"strides", List{2}}, {"padding", List{1}}, {"output_padding", List{1}}});
  conv("nn.conv2d_transpose", "grouped", "n,4,h,w", "4,2,2,2", {{"groups", 2}, {"dilation", List{2}}});
  conv("nn.conv3d_transpose", "", "n,2,h,w,3", "2,2,2,2,2", {{"strides", List{2}}});
}

void add_windows(std::vector<Case>& cases) {
  const Sizes image = {{"h", 5}, {"w", 5}, {"l", 5}, {"c", 1}};
  auto pool = [&](std::string op, std::string suffix, std::string x, Attrs attrs, DType dtype = kFloat32) {
    cases.push_back(op_case(op, suffix, one(x, dtype), attrs, image));
    cases.back().most = 8000;
  };
  for (std::string kind : {"max", "avg"}) {
    pool("nn." + kind + "_pool1d", "", "n,c,l", {{"pool_size", List{3}}, {"strides", List{2}}, {"padding", List{1}}});
    pool("nn." + kind + "_pool2d", "", "n,c,h,w",
         {{"pool_size", List{3, 3}}, {"strides", List{2, 2}}, {"padding", List{1}}});
    pool("nn." + kind + "_pool2d", "plain", "n,3,h,w", {{"pool_size", List{2, 2}}, {"strides", List{2, 2}}});
    pool("nn." + kind + "_pool2d", "ceil", "n,c,h,w",
         {{"pool_size", List{3, 2}}, {"strides", List{2, 2}}, {"padding", List{1, 0, 1, 1}}, {"ceil_mode", true}});
    pool("nn." + kind + "_pool2d", "counted", "n,c,h,w",
         {{"pool_size", List{3, 3}},
          {"strides", List{1, 2}},
          {"padding", List{1}},
          {"count_include_pad", true},
          {"ceil_mode", true}});
    pool("nn." + kind + "_pool3d", "", "n,2,h,w,5",
         {{"pool_size", List{2}}, {"strides", List{2}}, {"dilation", List{2}}});
  }
  pool("nn.max_pool2d", "int8", "n,c,h,w", {{"pool_size", List{3, 3}}, {"padding", List{1}}}, kInt8);
  pool("nn.lp_pool", "", "n,c,h,w",
       {{"p", 2}, {"pool_size", List{2, 2}}, {"strides", List{1}}, {"padding", List{0}}, {"dilation", List{1}}});
  cases.push_back(tuple_case("nn.max_pool_with_indices", "", 2, one("n,c,h,w"),
                             {{"pool_size", List{3, 3}}, {"strides", List{2, 2}}, {"padding", List{1}}}, image));
  cases.back().most = 8000;
  for (int rank : {1, 2, 3}) {
    std::string dims = rank == 1   ? "n,c,l"
                       : rank == 2 ? "n,c,h,w"
                                   : "n,c,h,w,5",
                op = fmt::format("nn.adaptive_avg_pool{}d", rank);
    pool(op, "global", dims, {{"output_size", List(static_cast<size_t>(rank), 1)}});
    pool(op, "3", dims, {{"output_size", List(static_cast<size_t>(rank), 3)}});
    cases.back().tolerance = 1e-5;
    cases[cases.size() - 2].tolerance = 1e-5;
  }
}

void add_normalizations(std::vector<Case>& cases) {
  auto norm = [&](std::string op, std::string suffix, std::function<std::vector<Expr>(Graph&)> args, Attrs attrs) {
    cases.push_back(op_case(op, suffix, args, attrs, {{"m", 2}, {"h", 2}, {"w", 2}}, 3e-4));
    cases.back().most = 8000;
  };
  auto with_scales = [](std::string x, std::string scale, DType dtype = kFloat32) {
    return [=](Graph& g) { return std::vector<Expr>{g.input(x, dtype), g.input(scale, dtype), g.input(scale, dtype)}; };
  };
  for (bool training : {false, true}) {
    cases.push_back(tuple_case("nn.batch_norm", training ? "training" : "inference", 3,
                               [](Graph& g) {
                                 return std::vector<Expr>{g.input("n,c,h,w"), g.input("c"), g.input("c"), g.input("c"),
                                                          g.input("c", kFloat32, kPositive)};
                               },
                               {{"axis", 1}, {"epsilon", 1e-3}, {"training", training}},
                               {{"n", 1}, {"h", 2}, {"w", 2}, {"c", 1}}));
    cases.back().tolerance = 3e-4;
  }
  norm("nn.layer_norm", "", with_scales("n,m", "m"), {{"axes", List{-1}}});
  norm("nn.layer_norm", "two axes", with_scales("n,h,w", "h,w"), {{"axes", List{-2, -1}}});
  norm("nn.layer_norm", "float16", with_scales("n,m", "m", kFloat16), {{"axes", List{-1}}});
  cases.back().tolerance = 2e-2;
  norm("nn.layer_norm", "fixed", with_scales("n,7,32", "32"), {{"axes", List{-1}}});
  norm("nn.rms_norm", "", two("n,m", "m"), {{"axes", List{-1}}});
  norm("nn.instance_norm", "", with_scales("n,c,h,w", "c"), {{"channel_axis", 1}, {"axes", List{2, 3}}});
  norm("nn.group_norm", "", with_scales("n,6,h,w", "6"),
       {{"num_groups", 3}, {"channel_axis", 1}, {"axes", List{2, 3}}});
  norm("nn.lrn", "", one("n,c,h,w"), {{"size", 3}, {"axis", 1}});
}

void add_layouts(std::vector<Case>& cases) {
  for (DType dtype : {kFloat32, kInt8, kInt64}) {
    cases.push_back(op_case("permute_dims", "2d " + to_string(dtype), one("n,m", dtype)));
    cases.push_back(op_case("permute_dims", "3d " + to_string(dtype), one("n,m,k", dtype), {{"axes", List{1, 2, 0}}}));
  }
  cases.push_back(op_case("permute_dims", "4d", one("b,n,4,k"), {{"axes", List{0, 2, 1, 3}}}));
  cases.push_back(op_case("flatten", "", one("n,m,k")));
  cases.push_back(op_case("squeeze", "", one("n,1,m,1"), {{"axis", List{1, 3}}}));
  cases.push_back(op_case("expand_dims", "", one("n,m"), {{"axis", List{0, 2}}}));
  cases.push_back(
      op_case("concat", "",
              [](Graph& g) -> std::vector<Expr> { return {tuple({g.input("n,m"), g.input("k,m"), g.input("3,m")})}; },
              {{"axis", 0}}));
  cases.push_back(op_case("concat", "last",
                          [](Graph& g) -> std::vector<Expr> { return {tuple({g.input("n,m"), g.input("n,k")})}; },
                          {{"axis", -1}}));
  cases.push_back(op_case("concat", "int64",
                          [](Graph& g) -> std::vector<Expr> {
                            return {tuple({g.input("n", kInt64), g.input("m", kInt64), g.input("2", kInt64)})};
                          },
                          {{"axis", 0}}));
  cases.push_back(op_case("broadcast_to", "", [](Graph& g) -> std::vector<Expr> {
    g.input("b,m");
    return {g.input("n,1"), g.shape("b,n,m")};
  }));
  cases.push_back(op_case("broadcast_to", "same", [](Graph& g) -> std::vector<Expr> {
    g.input("n");
    return {g.input("m"), g.shape("n,m")};
  }));
  cases.push_back(
      op_case("stack", "",
              [](Graph& g) -> std::vector<Expr> { return {tuple({g.input("n,m"), g.input("n,m"), g.input("n,m")})}; },
              {{"axis", 1}}));
  cases.push_back(op_case("outer", "", two("n", "m")));
  for (const char* name : {"no_grad", "start_checkpoint", "end_checkpoint"})
    cases.push_back(op_case(std::string("grad.") + name, "", one("n,m")));
  cases.push_back(op_case("tile", "", one("n,m"), {{"repeats", List{2, 3}}}));
  cases.push_back(op_case("tile", "more axes", one("n,m"), {{"repeats", List{2, 1, 3}}}));
  cases.push_back(op_case("tile", "fewer axes", one("n,m"), {{"repeats", List{2}}}));
  cases.push_back(op_case("dyn.tile", "symbolic", [](Graph& g) -> std::vector<Expr> {
    g.input("b");
    return {g.input("n,3"), g.shape("b,1")};
  }));
  cases.back().most = 200;
  cases.push_back(op_case("repeat", "", one("n,m"), {{"repeats", 3}, {"axis", 0}}));
  cases.push_back(op_case("repeat", "last", one("n,m"), {{"repeats", 2}, {"axis", 1}}));
  cases.push_back(op_case("repeat", "flat", one("n,m"), {{"repeats", 2}}));
  cases.push_back(op_case("flip", "", one("n,m"), {{"axis", 1}}));
  cases.push_back(op_case("flip", "first", one("n,m", kInt8), {{"axis", 0}}));
  auto slice = [&](std::string suffix, std::string x, List begin, std::string end, List stride, List axes,
                   Sizes least) {
    cases.push_back(op_case(
        "strided_slice", suffix,
        [=](Graph& g) -> std::vector<Expr> {
          std::vector<Expr> which, first, step;
          for (int64_t i : axes) which.push_back(int_imm(i));
          for (int64_t i : begin) first.push_back(int_imm(i));
          for (int64_t i : stride) step.push_back(int_imm(i));
          return {g.input(x), shape_expr(which), shape_expr(first), g.shape(end), shape_expr(step)};
        },
        {{"assume_inbound", true}}, least));
  };
  slice("", "n,m", {1}, "m", {1}, {1}, {{"m", 1}});
  slice("strided", "n,m", {0, 2}, "n,m", {3, 2}, {0, 1}, {{"m", 2}});
  slice("fixed end", "n,m", {1}, "5", {1}, {0}, {{"n", 5}});
  cases.push_back(op_case("strided_slice", "backward",
                          [](Graph& g) -> std::vector<Expr> {
                            return {g.input("n,m"), shape_expr({int_imm(1)}),
                                    shape_expr({simplify(g.dim("m") - int_imm(1))}), shape_expr({int_imm(-1)}),
                                    shape_expr({int_imm(-2)})};
                          },
                          {{"assume_inbound", true}}, {{"m", 1}}));
  cases.push_back(op_case("strided_slice", "clamped", [](Graph& g) -> std::vector<Expr> {
    return {g.input("n,m"), tuple({int_imm(0), int_imm(1)}), tuple({int_imm(-3), int_imm(1)}),
            tuple({int_imm(100), int_imm(-1)})};
  }));
  cases.push_back(tuple_case("split", "sections", 2,
                             [](Graph& g) -> std::vector<Expr> {
                               g.input("m");
                               return {g.input("n,2*m")};
                             },
                             {{"indices_or_sections", 2}, {"axis", 1}}));
  cases.push_back(
      tuple_case("split", "indices", 3, one("n,m"), {{"indices_or_sections", List{2, 5}}, {"axis", 0}}, {{"n", 5}}));
  auto pad = [&](std::string mode, std::string suffix, List width, DType dtype = kFloat32) {
    cases.push_back(op_case("nn.pad", mode + suffix, one("n,m", dtype),
                            {{"pad_width", width}, {"pad_mode", mode}, {"pad_value", 2.0}}, {{"n", 4}, {"m", 4}}));
  };
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    pad(mode, "", {1, 2, 3, 0});
    pad(mode, " int8", {0, 0, 2, 2}, kInt8);
  }
  cases.push_back(op_case("dyn.pad", "of an empty axis",
                          [](Graph& g) -> std::vector<Expr> { return {g.input("n,3"), g.shape("1,2,0,0")}; },
                          {{"pad_mode", "edge"}}));
  cases.back().sizes = {{{"n", 0}}};
  pad("constant", " crop", {-1, 2, 1, -2});
  cases.push_back(op_case("dyn.pad", "symbolic", [](Graph& g) -> std::vector<Expr> {
    g.input("b");
    return {g.input("n,m"), g.shape("b,1,0,b"), g.input("")};
  }));
}

void add_indexing(std::vector<Case>& cases) {
  cases.push_back(op_case("take", "wrap",
                          [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("k", kInt64, {-9, 9})}; },
                          {{"axis", 0}, {"mode", "wrap"}}, {{"n", 1}}));
  cases.push_back(op_case("take", "one", [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), int_imm(0)}; },
                          {{"axis", 0}}, {{"n", 1}}));
  cases.push_back(
      op_case("take", "axis 0",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("k", kInt64, {.extent = "n"})}; },
              {{"axis", 0}}, {{"n", 1}}));
  cases.push_back(
      op_case("take", "axis 1",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("k,b", kInt32, {.extent = "m"})}; },
              {{"axis", 1}}, {{"m", 1}}));
  cases.push_back(
      op_case("take", "flat",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("k", kInt64, {.extent = "n*m"})}; },
              {}, {{"n", 1}, {"m", 1}}));
  cases.push_back(
      op_case("take", "one",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("", kInt64, {.extent = "n"})}; },
              {{"axis", 0}}, {{"n", 1}}));
  cases.push_back(op_case("take", "empty axis",
                          [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("0", kInt64)}; },
                          {{"axis", 0}}));
  // Clamped on an empty axis: zeros.
  cases.push_back(
      op_case("take", "from an empty axis",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("k", kInt64, {.extent = "n"})}; },
              {{"axis", 0}, {"mode", "clip"}}));
  cases.back().sizes = {{{"n", 0}, {"m", 3}, {"k", 2}}};
  cases.push_back(op_case("take", "clip",
                          [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("k", kInt64, {-9, 9})}; },
                          {{"axis", 0}, {"mode", "clip"}}));
  cases.push_back(
      op_case("gather_elements", "",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("n,k", kInt64, {.extent = "m"})}; },
              {{"axis", 1}}, {{"m", 1}}));
  cases.push_back(
      op_case("gather_nd", "",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,m,k"), g.input("b,1", kInt64, {.extent = "n"})}; },
              {}, {{"n", 1}}));
  cases.push_back(op_case(
      "gather_nd", "batched",
      [](Graph& g) -> std::vector<Expr> { return {g.input("b,n,m"), g.input("b,k,1", kInt64, {.extent = "n"})}; },
      {{"batch_dims", 1}}, {{"n", 1}}));
  for (const char* reduction : {"update", "add", "mul", "max", "min"}) {
    // With update, equal indices would leave the order open; here it is defined: one after the other.
    cases.push_back(op_case("scatter_elements", reduction,
                            [](Graph& g) -> std::vector<Expr> {
                              return {g.input("n,m", kFloat32, {1, 2}), g.input("n,k", kInt64, {.extent = "m"}),
                                      g.input("n,k", kFloat32, {1, 1})};
                            },
                            {{"axis", 1}, {"reduction", reduction}}, {{"m", 1}}));
    cases.push_back(op_case("scatter_nd", reduction,
                            [](Graph& g) -> std::vector<Expr> {
                              return {g.input("n,m", kInt32), g.input("k,1", kInt64, {.extent = "n"}),
                                      g.input("k,m", kInt32)};
                            },
                            {{"reduction", reduction}}, {{"n", 1}}));
  }
  cases.push_back(op_case(
      "one_hot", "",
      [](Graph& g) -> std::vector<Expr> { return {g.input("n,m", kInt64, {-3, 8}), float_imm(2), float_imm(-1)}; },
      {{"depth", 7}, {"axis", -1}}));
  cases.push_back(op_case("dyn.one_hot", "symbolic",
                          [](Graph& g) -> std::vector<Expr> {
                            g.input("m");
                            return {g.input("n", kInt32, {-3, 8}), g.input("", kInt8), g.input("", kInt8), g.dim("m")};
                          },
                          {{"axis", 0}}));
  cases.push_back(
      op_case("reverse_sequence", "",
              [](Graph& g) -> std::vector<Expr> { return {g.input("n,b,k"), g.input("b", kInt64, {0, 40})}; },
              {{"time_axis", 0}, {"batch_axis", 1}}));
  cases.push_back(op_case(
      "dyn.nonzero", "", [](Graph& g) -> std::vector<Expr> { return {g.input("n,m", kInt32, {1, 2}), g.dim("n*m")}; }));
  for (bool flag : {false, true}) {
    std::string suffix = flag ? " descending" : "";
    cases.push_back(op_case("sort", suffix, one("n,m"), {{"axis", -1}, {"descending", flag}}));
    cases.push_back(
        op_case("sort", "special" + suffix, one("n,m", kFloat32, kAny), {{"axis", 0}, {"descending", flag}}));
    cases.push_back(op_case("argsort", suffix, one("n,m", kInt32), {{"axis", 0}, {"descending", flag}}));
    for (size_t i = cases.size() - 3; i < cases.size(); ++i) cases[i].most = 2000;
    cases.push_back(tuple_case("topk", suffix, 2, one("n,m"), {{"k", 3}, {"axis", -1}, {"largest", flag}}, {{"m", 3}}));
    cases.back().most = 2000;
    cases.push_back(tuple_case("dyn.topk", suffix, 2,
                               [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), int_imm(3)}; },
                               {{"axis", -1}, {"largest", flag}}, {{"m", 3}}));
    cases.back().most = 2000;
  }
}

void add_creation(std::vector<Case>& cases) {
  auto scalar_dims = [](Graph& g, const char* dims) { return g.shape(dims); };
  cases.push_back(op_case(
      "full", "", [=](Graph& g) -> std::vector<Expr> { return {scalar_dims(g, "7,33"), g.input("", kFloat32)}; },
      {{"dtype", kFloat32}}));
  cases.push_back(op_case("full", "with input", [=](Graph& g) -> std::vector<Expr> {
    g.input("n,m");
    return {scalar_dims(g, "n,m"), g.input("", kInt8)};
  }));
  for (const char* name : {"zeros", "ones"})
    cases.push_back(op_case(name, "",
                            [=](Graph& g) -> std::vector<Expr> {
                              g.input("n,m");
                              return {scalar_dims(g, "m,n")};
                            },
                            {{"dtype", kInt16}}));
  cases.push_back(op_case("arange", "",
                          [](Graph& g) -> std::vector<Expr> {
                            g.input("n");
                            return {int_imm(0), g.dim("n"), int_imm(1)};
                          },
                          {{"dtype", kInt64}}));
  cases.push_back(op_case("arange", "float",
                          [](Graph& g) -> std::vector<Expr> {
                            g.input("n");
                            return {int_imm(2), g.dim("2*n+2"), int_imm(3)};
                          },
                          {{"dtype", kFloat32}}));
  for (const char* name : {"tril", "triu"}) {
    cases.push_back(op_case(name, "", [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), int_imm(0)}; }));
    cases.push_back(op_case(name, "shifted",
                            [](Graph& g) -> std::vector<Expr> { return {g.input("b,n,m", kInt32), int_imm(-2)}; }));
  }
  cases.push_back(op_case("eye", "",
                          [](Graph& g) -> std::vector<Expr> {
                            g.input("n,m");
                            return {g.dim("n"), g.dim("m"), int_imm(1)};
                          },
                          {{"dtype", kFloat32}}));
  cases.push_back(op_case("eye_like", "", [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), int_imm(-1)}; },
                          {{"dtype", kInt16}}));
  for (const char* name : {"zeros_like", "ones_like"}) cases.push_back(op_case(name, "", one("n,m")));
  cases.push_back(op_case(
      "full_like", "", [](Graph& g) -> std::vector<Expr> { return {g.input("n,m", kInt32), g.input("", kFloat32)}; }));
  cases.push_back(op_case("shape_to_tensor", "", [](Graph& g) -> std::vector<Expr> {
    g.input("n,m");
    return {g.shape("n,2*m,3")};
  }));
  cases.push_back(op_case("scalar_to_tensor", "",
                          [](Graph& g) -> std::vector<Expr> {
                            g.input("n,m");
                            return {g.dim("n*m")};
                          },
                          {{"dtype", kInt64}}));
}

void add_images(std::vector<Case>& cases) {
  const Sizes least = {{"h", 2}, {"w", 2}};
  for (const char* method : {"nearest", "linear", "cubic"}) {
    for (const char* mode : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      cases.push_back(op_case(
          "image.resize", std::string(method) + " " + mode,
          [](Graph& g) -> std::vector<Expr> { return {g.input("n,2,h,w"), g.shape("n,2,2*h,w+3")}; },
          {{"axes", List{2, 3}}, {"method", method}, {"coordinate_transformation_mode", mode}}, least, 1e-4));
      cases.back().most = 2000;
    }
  }
  for (const char* method : {"nearest", "bilinear", "bicubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      cases.push_back(op_case(
          "image.grid_sample", std::string(method) + " " + padding,
          [](Graph& g) -> std::vector<Expr> { return {g.input("n,2,h,w"), g.input("n,2,5,m", kFloat32, {-1.5, 1.5})}; },
          {{"method", method}, {"padding_mode", padding}, {"align_corners", false}}, least, 1e-3));
      cases.back().most = 1500;
    }
  }
}

std::string op_of(const Case& test) { return test.name.substr(0, test.name.find(' ')); }

const std::vector<Case>& all_cases() {
  static const std::vector<Case> kCases = [] {
    std::vector<Case> cases;
    add_elementwise(cases);
    add_reductions(cases);
    add_contractions(cases);
    add_windows(cases);
    add_normalizations(cases);
    add_layouts(cases);
    add_indexing(cases);
    add_creation(cases);
    add_images(cases);
    for (Case& test : cases) test.has_reference = references().contains("relax." + op_of(test));
    return cases;
  }();
  return kCases;
}

}  // namespace

TEST_CASE("every operator with a lowering is among the differential tests", "[differential]") {
  std::set<std::string> covered;
  for (const Case& test : all_cases()) covered.insert("relax." + op_of(test));
  for (const OpRow& row : op_table().rows()) {
    if (row.legalize) {
      INFO(row.name);
      CHECK(covered.contains(row.name));
    }
  }
  for (const auto& [name, reference] : references()) {
    INFO(name);
    CHECK(covered.contains(name));
  }
}

// Several test cases, so that a failure says where and a glob picks a part. With sanitizers every eighth case runs.
void check_part(size_t part, size_t parts) {
  const char* only = std::getenv("RELAXC_DIFFERENTIAL_CASE");
  const std::vector<Case>& cases = all_cases();
  for (size_t i = part; i < cases.size(); i += kSanitized ? 8 * parts : parts) {
    if (only && cases[i].name.find(only) == std::string::npos) continue;
    check_case(cases[i]);
  }
}
TEST_CASE("operators agree at every level (1/2)", "[differential]") { check_part(0, 2); }
TEST_CASE("operators agree at every level (2/2)", "[differential]") { check_part(1, 2); }

}  // namespace relaxc::test
