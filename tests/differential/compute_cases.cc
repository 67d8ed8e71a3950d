// Operators that compute: elementwise, reductions, contractions, windows, normalizations.
#include "tests/differential/operator_cases.h"

namespace relaxc::test::operator_cases {

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
    // The program does not say which axes are reduced.
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

  const Sizes image = {{"h", 5}, {"w", 5}, {"c", 1}, {"k", 1}, {"l", 5}};
  auto conv = [&](std::string op, std::string suffix, std::string x, std::string w, Attrs attrs,
                  DType dtype = kFloat32) {
    cases.push_back(op_case(op, suffix, two(x, w, dtype, kSmallOperands, kSmallOperands), attrs, image));
    cases.back().most = 6000;
  };
  conv("nn.conv1d", "", "n,c,l", "6,c,3", {{"padding", List{1}}});
  conv("nn.conv1d", "strided", "n,3,l", "m,3,3", {{"strides", List{2}}, {"dilation", List{2}}});
  conv("nn.conv1d", "in blocks", "n,64,l", "80,64,3", {{"strides", List{2}}, {"padding", List{1, 2}}});
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
  conv("nn.conv2d_transpose", "grouped phases", "n,4,h,w", "4,2,3,2", {{"groups", 2}, {"strides", List{3, 2}}});
  conv("nn.conv2d_transpose", "dilated phases", "n,2,h,w", "2,3,3,3",
       {{"strides", List{2, 3}}, {"dilation", List{2, 3}}, {"padding", List{1, 0, 2, 4}}});
  conv("nn.conv2d_transpose", "flipped", "n,2,h,w", "2,3,3,2", {{"dilation", List{1, 2}}, {"padding", List{1}}});
  conv("nn.conv2d_transpose", "cropped", "n,2,h,w", "2,2,2,2", {{"strides", List{2}}, {"padding", List{3, 2, 2, 4}}});
  conv("nn.conv2d_transpose", "apart", "n,2,h,w", "2,2,2,1",
       {{"strides", List{3, 2}}, {"output_padding", List{1}}, {"padding", List{0, 1, 0, 0}}});
  conv("nn.conv1d_transpose", "symbolic window", "n,3,l", "3,2,k", {{"strides", List{2}}});
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

}  // namespace relaxc::test::operator_cases
