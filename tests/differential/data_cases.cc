// Operators that move or make data: layouts, indexing, creation, images.
#include "tests/differential/operator_cases.h"

namespace relaxc::test::operator_cases {

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
}

void add_splits_and_pads(std::vector<Case>& cases) {
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
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) pad(mode, " crop", {-1, 2, 1, -2});
  cases.push_back(op_case("dyn.pad", "symbolic", [](Graph& g) -> std::vector<Expr> {
    g.input("b");
    return {g.input("n,m"), g.shape("b,1,0,b"), g.input("")};
  }));
}

// Operators with a part of the elements of another tensor, a mask, or parameters for each channel.
static void add_parts(std::vector<Case>& cases) {
  auto quantized = [&](const char* name, const char* scale, DType dtype) {
    cases.push_back(op_case(name, std::string("by ") + scale, [=](Graph& g) -> std::vector<Expr> {
      return {g.input("n,m", dtype), g.input(scale, kFloat32, kPositive), g.input(scale, kInt8)};
    }));
  };
  for (const char* scale : {"", "m"}) {
    quantized("quantize", scale, kFloat32);
    quantized("dequantize", scale, kInt8);
  }
  for (auto [bytes, results] : {std::pair(kUInt8, kInt8), std::pair(kInt8, kFloat32)}) {
    cases.push_back(op_case("lookup", to_string(bytes), [=](Graph& g) -> std::vector<Expr> {
      return {g.input("n,m", bytes, {bytes.is_uint() ? 0.0 : -128.0, bytes.is_uint() ? 255.0 : 127.0}),
              g.input("256", results)};
    }));
  }
  cases.push_back(op_case("slice_scatter", "",
                          [](Graph& g) -> std::vector<Expr> {
                            return {g.input("n,m"), g.input("3,m"), int_imm(1), int_imm(7), int_imm(2)};
                          },
                          {{"axis", 0}}, {{"n", 7}}));
  cases.push_back(op_case("masked_fill", "",
                          [](Graph& g) -> std::vector<Expr> { return {g.input("n,m"), g.input("n,1", kBool)}; },
                          {{"value", 2.5}}));
  cases.push_back(op_case("nn.pixel_shuffle", "",
                          [](Graph& g) -> std::vector<Expr> {
                            g.input("k");
                            return {g.input("n,4*k,m,3")};
                          },
                          {{"upscale_factor", 2}}));
  for (const char* reduction : {"none", "sum", "mean"})
    cases.push_back(op_case(
        "nn.nll_loss", reduction,
        [](Graph& g) -> std::vector<Expr> {
          return {g.input("n,4,m"), g.input("n,m", kInt64, {.low = 0, .high = 3}), g.input("4", kFloat32, kPositive)};
        },
        {{"reduction", reduction}, {"ignore_index", 2}}, {}, 1e-4));
}

void add_indexing(std::vector<Case>& cases) {
  add_parts(cases);
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
  cases.push_back(op_case("fill.nonzero", "", [](Graph& g) -> std::vector<Expr> {
    return {g.input("n,m", kInt32, {1, 2}), shape_expr({g.dim("n*m")})};
  }));
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

// Columns of windows, signals, and random numbers.
static void add_columns(std::vector<Case>& cases) {
  cases.push_back(op_case(
      "nn.col2im", "",
      [](Graph& g) -> std::vector<Expr> {
        g.input("m");
        return {g.input("n,8,4*m"), g.shape("m,5"), shape_expr({int_imm(2), int_imm(2)})};
      },
      {{"padding", List{1, 0, 0, 0}}}, {{"m", 1}}, 1e-4));
  cases.push_back(op_case(
      "nn.deform_columns", "",
      [](Graph& g) -> std::vector<Expr> {
        return {g.input("n,4,h,w"), g.input("n,24,m,k"), g.shape("3,2"), g.input("n,12,m,k")};
      },
      {{"strides", List{2, 1}}, {"padding", List{1, 0}}, {"offset_groups", 2}}, {}, 1e-3));
  cases.back().most = 1000;
  for (const char* parts : {"1", "2"}) {
    cases.push_back(op_case(
        "signal.dft", parts,
        [=](Graph& g) -> std::vector<Expr> {
          g.input("k");
          return {g.input(std::string("n,m,") + parts), g.dim("k")};
        },
        {{"inverse", *parts == '2'}, {"onesided", *parts == '1'}}, {{"k", 1}}, 1e-3));
    cases.back().most = 300;
  }
  cases.push_back(op_case(
      "dyn.count_ngrams", "",
      [](Graph& g) -> std::vector<Expr> { return {g.input("n,m", kInt64, {0, 3}), g.input("k,2", kInt64, {0, 3})}; },
      {{"max_skip_count", 2}}));
  cases.back().most = 300;
  for (const char* name : {"random.uniform", "random.normal"}) {
    for (DType dtype : {kFloat32, kFloat64, kFloat16})
      cases.push_back(op_case(
          name, to_string(dtype),
          [](Graph& g) -> std::vector<Expr> {
            g.input("n,m");
            return {g.shape("n,m"), g.dim("m")};
          },
          {{"dtype", dtype}}, {}, 1e-3));
  }
  for (DType dtype : {kInt32, kUInt32})
    cases.push_back(op_case("bitcast", to_string(dtype), one("n,m"), {{"dtype", dtype}}));
  cases.push_back(op_case("bitcast", "bool", one("n,m", kBool), {{"dtype", kInt8}}));
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
  cases.push_back(op_case(
      "image.grid_sample", "three dims",
      [](Graph& g) -> std::vector<Expr> { return {g.input("n,2,3,h,w"), g.input("n,3,2,m,2", kFloat32, {-1.5, 1.5})}; },
      {{"padding_mode", "border"}}, least, 1e-3));
  cases.push_back(op_case("image.affine_grid", "three dims", [](Graph& g) -> std::vector<Expr> {
    g.input("h,w");
    return {g.input("n,3,4"), g.shape("h,2,w")};
  }));
  for (const char* method : {"linear", "cubic"}) {
    cases.push_back(op_case(
        "image.resize", std::string("antialias ") + method,
        [](Graph& g) -> std::vector<Expr> {
          g.input("m,k");
          return {g.input("n,2,h,w"), g.shape("n,2,m,k")};
        },
        {{"axes", List{2, 3}}, {"method", method}, {"antialias", true}}, {{"h", 2}, {"w", 2}, {"m", 1}, {"k", 1}},
        1e-4));
    cases.back().most = 1000;
  }
  add_columns(cases);
}

}  // namespace relaxc::test::operator_cases
