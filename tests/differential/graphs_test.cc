// Graphs that fusion, scheduling and memory planning have to decide something about.
#include "tests/differential/differential.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

using List = std::vector<int64_t>;
const Contents kSmall{.low = -2, .high = 2};

Expr conv2d(Graph& g, const Expr& x, const std::string& weight, Attrs attrs) {
  return g.op("nn.conv2d", {x, g.weights(weight, kFloat32, kSmall)}, std::move(attrs));
}
// Both branches as sequences of bindings built by the functions.
Expr branch(Graph& g, const Expr& condition, const std::function<Expr(Builder&)>& then_value,
            const std::function<Expr(Builder&)>& else_value) {
  auto sequence = [&](const std::function<Expr(Builder&)>& value) {
    Builder b(op_table());
    b.begin_dataflow();
    Expr result = value(b);
    b.end_dataflow({});
    return b.finish(result);
  };
  Expr a = sequence(then_value), b = sequence(else_value);
  g.builder.end_dataflow({});
  Expr result = g.builder.emit(make(If{condition, a, b}, a.type()));
  g.builder.begin_dataflow();
  return result;
}

struct GraphCases {
  std::vector<Case> cases;

  void add(std::string name, std::function<Expr(Graph&)> build, Sizes least = {}, double tolerance = -1,
           int64_t most = 8000) {
    Case test;
    test.name = std::move(name);
    test.build = std::move(build);
    test.least = std::move(least);
    test.tolerance = tolerance;
    test.most = most;
    cases.push_back(std::move(test));
  }
  void add_networks();
  void add_reductions_and_views();
  void add_shared_values();
  void add_chains();
  void add_branches();
};

void GraphCases::add_networks() {
  const Sizes image = {{"h", 3}, {"w", 3}};
  add(
      "conv bias relu residual",
      [](Graph& g) {
        Expr x = g.input("n,8,h,w");
        Expr y = conv2d(g, x, "8,8,3,3", {{"padding", List{1}}});
        y = g.op("add", {y, g.weights("1,8,1,1")});
        y = g.op("nn.relu", {y});
        return g.op("nn.relu", {g.op("add", {y, x})});
      },
      image);
  add(
      "conv batch_norm relu pool",
      [](Graph& g) {
        Expr x = g.input("n,3,h,w");
        Expr y = conv2d(g, x, "16,3,3,3", {{"padding", List{1}}, {"strides", List{2}}});
        y = g.op(
            "nn.batch_norm",
            {y, g.weights("16"), g.weights("16"), g.weights("16"), g.weights("16", kFloat32, {.low = 0.5, .high = 2})},
            {{"training", false}, {"axis", 1}});
        y = g.op("nn.relu", {g.item(y, 0)});
        return g.op("nn.max_pool2d", {y}, {{"pool_size", List{3, 3}}, {"strides", List{2, 2}}, {"padding", List{1}}});
      },
      {{"h", 5}, {"w", 5}}, 1e-4);
  add(
      "matmul bias gelu",
      [](Graph& g) {
        Expr y = g.op("matmul", {g.input("b,n,24"), g.weights("24,40")});
        return g.op("nn.gelu", {g.op("add", {y, g.weights("40")})});
      },
      {}, 1e-4);
  add(
      "linear chain",
      [](Graph& g) {
        Expr x = g.input("n,17");
        for (int i = 0; i < 3; ++i) {
          x = g.op("matmul", {x, g.op("permute_dims", {g.weights("17,17", kFloat32, kSmall)})});
          x = g.op("tanh", {g.op("add", {x, g.weights("17")})});
        }
        return x;
      },
      {}, 1e-4);
  add(
      "softmax with mask",
      [](Graph& g) {
        Expr scores = g.op("multiply", {g.input("b,2,n,m"), g.weights("", kFloat32)});
        Expr masked = g.op("where", {g.input("b,1,1,m", kBool, {.low = 0, .high = 1}), scores, g.weights("")});
        return g.op("nn.softmax", {masked}, {{"axis", -1}});
      },
      {{"m", 1}}, 1e-5);
  add(
      "attention",
      [](Graph& g) {
        Expr q = g.input("b,n,16"), k = g.input("b,m,16"), v = g.input("b,m,16");
        auto heads = [&](const Expr& x, const char* rows) {
          Expr y = g.op("reshape", {x, g.shape(std::string("b,") + rows + ",2,8")});
          return g.op("permute_dims", {y}, {{"axes", List{0, 2, 1, 3}}});
        };
        Expr scores =
            g.op("matmul", {heads(q, "n"), g.op("permute_dims", {heads(k, "m")}, {{"axes", List{0, 1, 3, 2}}})});
        Expr weights = g.op("nn.softmax", {g.op("multiply", {scores, g.weights("", kFloat32)})}, {{"axis", -1}});
        Expr y = g.op("permute_dims", {g.op("matmul", {weights, heads(v, "m")})}, {{"axes", List{0, 2, 1, 3}}});
        return g.op("reshape", {y, g.shape("b,n,16")});
      },
      {{"m", 1}}, 1e-4);
  add(
      "layer_norm residual",
      [](Graph& g) {
        Expr x = g.input("n,m"), r = g.input("n,m");
        Expr y = g.op("nn.layer_norm", {g.op("add", {x, r}), g.input("m"), g.input("m")}, {{"axes", List{-1}}});
        return g.op("add", {y, r});
      },
      {{"m", 2}}, 3e-4);
  add(
      "pool after relu",
      [](Graph& g) {
        Expr y = g.op("nn.relu", {g.op("add", {g.input("n,c,h,w"), g.input("c,1,1")})});
        return g.op("nn.avg_pool2d", {y},
                    {{"pool_size", List{2, 2}}, {"strides", List{1, 1}}, {"padding", List{1, 0, 0, 1}}});
      },
      image);
}

void GraphCases::add_reductions_and_views() {
  add(
      "reduction and broadcast",
      [](Graph& g) {
        Expr x = g.input("n,m");
        Expr exp = g.op("exp", {x});
        Expr sum = g.op("sum", {exp}, {{"axis", List{1}}, {"keepdims", true}});
        return g.op("divide", {exp, g.op("add", {sum, g.weights("", kFloat32, {.low = 1, .high = 2})})});
      },
      {}, 1e-5);
  add("two reductions of one", [](Graph& g) {
    Expr x = g.op("square", {g.input("n,m")});
    Expr rows = g.op("sum", {x}, {{"axis", List{1}}}), columns = g.op("max", {x}, {{"axis", List{0}}});
    return g.op("add", {g.op("expand_dims", {rows}, {{"axis", List{1}}}), columns});
  });
  add("reduction of a reduction", [](Graph& g) {
    Expr x = g.input("n,m,k");
    Expr y = g.op("nn.relu", {g.op("sum", {x}, {{"axis", List{2}}})});
    return g.op("max", {g.op("add", {y, g.weights("")})}, {{"axis", List{1}}});
  });
  add("transposes and slices", [](Graph& g) {
    g.input("m");  // binds m
    Expr x = g.op("nn.relu", {g.input("n,m+4")});
    Expr y = g.op("strided_slice", {x, g.shape("1"), g.shape("2"), g.shape("m+2"), g.shape("1")},
                  {{"assume_inbound", true}});
    y = g.op("permute_dims", {g.op("add", {y, g.weights("")})});
    y = g.op("flip", {y}, {{"axis", 0}});
    return g.op("concat", {tuple({y, g.op("permute_dims", {g.input("n,3")})})}, {{"axis", 0}});
  });
  add(
      "reshape views",
      [](Graph& g) {
        Expr x = g.op("exp", {g.input("n,6")});
        Expr y = g.op("reshape", {x, g.shape("n,2,3")});
        y = g.op("negative", {g.op("permute_dims", {y}, {{"axes", List{0, 2, 1}}})});
        Expr z = g.op("reshape", {y, g.shape("2*n,3")});
        Expr late = g.op("sum", {g.op("reshape", {x, g.shape("6*n")})}, {{"axis", List{0}}});
        return g.op("add", {g.op("reshape", {g.op("sqrt", {g.op("abs", {z})}), g.shape("3,2*n")}), late});
      },
      {}, 1e-5);
  add(
      "view outlives its tensor's name",
      [](Graph& g) {
        // The view of x is read after temporaries that could take x's memory.
        Expr x = g.op("nn.softmax", {g.input("n,8")}, {{"axis", -1}});
        Expr view = g.op("reshape", {x, g.shape("8*n")});
        Expr a = g.op("cumsum", {g.input("8*n")}, {{"axis", 0}});
        Expr b = g.op("cumsum", {a}, {{"axis", 0}});
        Expr c = g.op("sort", {b}, {{"axis", 0}});
        return g.op("cumsum", {g.op("add", {c, view})}, {{"axis", 0}});
      },
      {}, 1e-3, 600);
  add("empty reductions", [](Graph& g) {
    Expr x = g.input("n,m");
    Expr sum = g.op("sum", {x}, {{"axis", List{1}}}), product = g.op("matmul", {x, g.input("m,k")});
    return tuple({g.op("add", {sum, sum}), g.op("nn.relu", {product}), g.op("max", {x}, {{"axis", List{0}}})});
  });
  cases.back().sizes = {
      {{"n", 3}, {"m", 0}, {"k", 5}}, {{"n", 0}, {"m", 4}, {"k", 5}}, {{"n", 17}, {"m", 0}, {"k", 33}}};
}

void GraphCases::add_shared_values() {
  add("two outputs", [](Graph& g) {
    Expr x = g.op("nn.relu", {g.input("n,m")});
    Expr y = g.op("add", {x, g.weights("")});
    return tuple({x, g.op("multiply", {y, y}), g.op("sum", {y}, {{"axis", List{0}}})});
  });
  add("the same output twice, an input, a constant", [](Graph& g) {
    Expr x = g.input("n,m");
    Expr y = g.op("negative", {x});
    return tuple(
        {y, x, y, g.weights("3,2"), g.op("reshape", {x, g.shape("n*m")}), g.op("reshape", {y, g.shape("m*n")})});
  });
  add(
      "unused outputs",
      [](Graph& g) {
        g.input("m");
        Expr parts = g.op("split", {g.input("n,3*m")}, {{"indices_or_sections", 3}, {"axis", 1}});
        g.op("exp", {g.item(parts, 0)});
        Expr top = g.op("topk", {g.item(parts, 1)}, {{"k", 2}, {"axis", -1}, {"dtype", kInt64}});
        return g.op("add", {g.item(top, 0), g.item(top, 0)});
      },
      {{"m", 2}}, -1, 2000);
  add(
      "diamond",
      [](Graph& g) {
        Expr x = g.op("exp", {g.input("n,m")});
        Expr a = g.op("sin", {x}), b = g.op("cumsum", {x}, {{"axis", 1}}), c = g.op("cos", {x});
        return g.op("add", {g.op("multiply", {a, b}), g.op("multiply", {g.op("add", {a, c}), b})});
      },
      {}, 1e-4);
  add(
      "a group around a call it may not take",
      [](Graph& g) {
        // add needs sort needs relu; add could take relu only together with sort.
        Expr x = g.op("nn.relu", {g.input("n,m")});
        Expr sorted = g.op("sort", {x}, {{"axis", -1}});
        Expr sum = g.op("add", {x, sorted});
        return tuple({sum, g.op("subtract", {sum, g.op("max", {sorted}, {{"axis", List{-1}}, {"keepdims", true}})})});
      },
      {}, -1, 1500);
  add(
      "equal subexpressions",
      [](Graph& g) {
        Expr x = g.input("n,m"), y = g.input("n,m");
        auto f = [&] { return g.op("tanh", {g.op("add", {x, y})}); };
        return g.op("add", {g.op("multiply", {f(), f()}), g.op("multiply", {g.op("add", {y, x}), f()})});
      },
      {}, 1e-5);
  add(
      "constants into constants",
      [](Graph& g) {
        Expr c = g.op("multiply", {g.op("permute_dims", {g.weights("5,4")}), g.op("exp", {g.weights("4,1")})});
        return g.op("add", {g.op("matmul", {g.input("n,4"), c}), g.op("sum", {c}, {{"axis", List{0}}})});
      },
      {}, 1e-4);
}

void GraphCases::add_chains() {
  add("repeated doubling", [](Graph& g) {
    Expr x = g.op("arange", {int_imm(0), g.dim("n"), int_imm(1)}, {{"dtype", kInt64}});
    for (int i = 0; i < 28; ++i) x = g.op("add", {x, x});
    return g.op("add", {x, g.input("n", kInt64)});
  });
  add("repeated squaring", [](Graph& g) {
    Expr x = g.input("n,m", kFloat32, {.low = -1, .high = 1});
    for (int i = 0; i < 25; ++i) x = g.op("multiply", {x, x});
    return x;
  });
  add("long chain", [](Graph& g) {
    Expr x = g.input("n,m");
    for (int i = 0; i < 80; ++i)
      x = g.op(i % 3 ? "add" : "nn.relu", i % 3 ? std::vector<Expr>{x, g.weights("")} : std::vector<Expr>{x});
    return x;
  });
}

void GraphCases::add_branches() {
  add(
      "if",
      [](Graph& g) {
        Expr x = g.op("exp", {g.input("n,m")}), flag = g.input("", kBool, {.low = 0, .high = 1});
        Expr y = branch(
            g, flag, [&](Builder& b) { return b.op("add", {b.op("sin", {x}), x}); },
            [&](Builder& b) { return b.op("negative", {b.op("cumsum", {x}, Attrs{{"axis", 0}})}); });
        Expr z = g.op("multiply", {y, x});
        Expr again = branch(g, flag, [&](Builder& b) { return b.op("add", {z, x}); }, [&](Builder&) { return x; });
        return tuple({again, g.op("sum", {y}, {{"axis", List{0}}})});
      },
      {}, 1e-3, 1000);
  add(
      "if with constants and dims",
      [](Graph& g) {
        Expr x = g.input("n,m"), flag = g.input("", kBool, {.low = 0, .high = 1});
        Expr weights = g.weights("3");
        // Both branches and what follows use the constant and n * m.
        Expr y = branch(
            g, flag,
            [&](Builder& b) {
              return b.op("concat", {tuple({b.op("reshape", {x, g.shape("n*m")}), b.op("add", {weights, weights})})},
                          Attrs{{"axis", 0}});
            },
            [&](Builder& b) {
              return b.op("concat", {tuple({weights, b.op("reshape", {b.op("sin", {x}), g.shape("n*m")})})},
                          Attrs{{"axis", 0}});
            });
        return tuple({y, weights, g.op("reshape", {g.op("exp", {x}), g.shape("n*m")})});
      },
      {}, 1e-5);
  add(
      "nested if",
      [](Graph& g) {
        Expr x = g.input("n"), outer = g.input("", kBool, {.low = 0, .high = 1}),
             inner = g.input("", kBool, {.low = 0, .high = 1});
        return branch(
            g, outer,
            [&](Builder& b) -> Expr {
              Expr doubled = b.op("add", {x, x});
              b.end_dataflow({});
              Builder one(op_table()), two(op_table());
              one.begin_dataflow();
              Expr a = one.op("exp", {doubled});
              one.end_dataflow({});
              Expr then_branch = one.finish(a), else_branch = two.finish(x);
              Expr result = b.emit(make(If{inner, then_branch, else_branch}, then_branch.type()));
              b.begin_dataflow();
              return b.op("add", {result, doubled});
            },
            [&](Builder&) { return x; });
      },
      {}, 1e-5);
}

std::vector<Case> graph_cases() {
  GraphCases all;
  all.add_networks();
  all.add_reductions_and_views();
  all.add_shared_values();
  all.add_chains();
  all.add_branches();
  return all.cases;
}

}  // namespace

TEST_CASE("graphs agree at every level", "[differential]") {
  const char* only = std::getenv("RELAXC_DIFFERENTIAL_CASE");
  for (const Case& test : graph_cases()) {
    if (!only || test.name.find(only) != std::string::npos) check_case(test);
  }
}

}  // namespace relaxc::test
