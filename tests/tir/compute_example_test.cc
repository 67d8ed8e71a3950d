// The example of docs/compute.md, compiled and run; the document shows these lines.
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/interpret.h"
#include "tir/compute.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// For each row of x: scaled to a sum of 1; the largest element and where it is; the running sums.
PrimFuncRef row_statistics() {
  ComputeBuilder b;
  Expr n = make_dim("n"), m = make_dim("m");  // symbolic dims
  Buffer x = b.input("x", kFloat32, {n, m});

  // One value per row from many: out[i] = init, then combine(out[i], value(i, r)) for each r.
  Buffer sum = b.reduce("sum", kFloat32, {n}, {m}, zero(kFloat32), combine_sum,
                        [&](Axes i, Axes r) { return load(x, {i[0], r[0]}); });
  // One value per element.
  Buffer scaled = b.compute("scaled", kFloat32, {n, m},
                            [&](Axes i) { return binary(BinaryOp::kDiv, at(x, i), load(sum, {i[0]})); });

  // Several outputs of one block. Of equal elements the first: in whatever order a schedule lets them come.
  Buffer top = b.buffer("top", kFloat32, {n}), where = b.buffer("where", kInt64, {n});
  b.block("argmax", {n}, {m}, [&](Axes i, Axes r) {
    Expr value = load(x, {i[0], r[0]}), best = load(top, {i[0]}), index = load(where, {i[0]});
    Expr better = value > best || (equal(value, best) && r[0] < index);
    return ComputeBuilder::Bodies{.init = seq({store(where, m, {i[0]}), store(top, lowest(kFloat32), {i[0]})}),
                                  .body = seq({store(where, select(better, r[0], index), {i[0]}),
                                               store(top, select(better, value, best), {i[0]})})};
  });

  // Statements of any form: each running sum needs the one before.
  Buffer running = b.buffer("running", kFloat32, {n, m});
  VarRef i = make_dim("i"), k = make_dim("k");
  Expr before = if_then_else(k > int_imm(0), load(running, {i, k - 1}), zero(kFloat32));
  b.extern_block("scan", loop(i, n, loop(k, m, store(running, before + load(x, {i, k}), {i, k}))));

  return b.finish({scaled, top, where, running});
}

}  // namespace

TEST_CASE("the example of docs/compute.md", "[tir]") {
  Tensor x = Tensor::empty({2, 3}, kFloat32);
  for (int64_t i = 0; i < 6; ++i) x.set_double(i, i == 2 ? 1 : static_cast<double>(i));  // 0 1 1, 3 4 5
  std::vector<Tensor> out = interpret_on(row_statistics(), std::vector<Tensor>{x});
  REQUIRE(out.size() == 4);
  CHECK(out[0].as_double(5) == Approx(5.0 / 12));
  CHECK(out[1].as_double(0) == 1);
  CHECK(out[2].as_double(0) == 1);
  CHECK(out[2].as_double(1) == 2);
  CHECK(out[3].as_double(5) == 12);
}

TEST_CASE("docs/compute.md shows the lines of its example", "[tir]") {
  std::ifstream source(RELAXC_SOURCE_DIR "/tests/tir/compute_example_test.cc"),
      document(RELAXC_SOURCE_DIR "/docs/compute.md");
  std::string code{std::istreambuf_iterator<char>(source), {}}, line;
  bool inside = false;
  int lines = 0;
  while (std::getline(document, line)) {
    if (line.starts_with("```")) {
      inside = !inside && line == "```cpp";
      continue;
    }
    if (!inside) continue;
    ++lines;
    INFO(line);
    CHECK(code.find(line + "\n") != std::string::npos);
  }
  CHECK(lines > 25);
}

TEST_CASE("outputs are what a stage of the builder makes, each once", "[tir]") {
  ComputeBuilder b, other;
  Buffer x = b.input("x", kFloat32, {int_imm(4)}), idle = b.buffer("idle", kFloat32, {int_imm(4)});
  Buffer y = b.compute("y", kFloat32, {int_imm(4)}, [&](Axes i) { return at(x, i); });
  CHECK_THROWS_WITH(b.finish({idle}), Catch::Contains("no stage makes output 'idle'"));
  CHECK_THROWS_WITH(b.finish({y, y}), Catch::Contains("named twice"));
  CHECK_THROWS_WITH(b.finish({x}), Catch::Contains("is not a buffer that this builder made"));
  CHECK_THROWS_WITH(other.finish({y}), Catch::Contains("is not a buffer that this builder made"));
  CHECK_NOTHROW(b.finish({y}));
}

}  // namespace relaxc::test
