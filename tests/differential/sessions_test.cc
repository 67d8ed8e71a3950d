// Compiled programs seen by a caller: inputs that do not fit, results that alias, threads, memory, large graphs.
#include <ctime>
#include <thread>

#include "tests/allocations.h"
#include "tests/differential/differential.h"
#include "vm/error.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

CompiledModule compile_graph(const std::function<Expr(Graph&)>& build) {
  Graph graph({}, 1);
  return compile(graph.finish(build(graph)));
}
Tensor filled(std::vector<int64_t> shape, float value) {
  Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = value;
  return tensor;
}
std::string error_of(Session& session, const std::vector<Tensor>& inputs) {
  try {
    session.run(inputs);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "no error";
}
bool has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) return false;
  }
  return true;
}
Expr chain(Graph& g, Expr x, int length) {
  Expr one = g.weights("");
  for (int i = 0; i < length; ++i) x = i % 2 ? g.op("nn.relu", {x}) : g.op("add", {x, one});
  return x;
}
// Of the passes, in processor time; only its growth means something.
double seconds_of_passes(const std::function<Expr(Graph&)>& build) {
  Graph graph({}, 1);
  IRModule module = graph.finish(build(graph));
  std::clock_t start = std::clock();
  run_pipeline(module);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("inputs that do not fit are named, with the dim and both values", "[session]") {
  Session session(compile_graph([](Graph& g) { return g.op("add", {g.input("n,4"), g.input("n,1")}); }).load(),
                  {.threads = 1});
  CHECK(has(error_of(session, {filled({3, 4}, 1), filled({5, 1}, 1)}), {"x1", "n", "3", "5"}));
  CHECK(has(error_of(session, {filled({3, 7}, 1), filled({3, 1}, 1)}), {"x0", "4", "7"}));
  CHECK(has(error_of(session, {filled({3}, 1), filled({3, 1}, 1)}), {"x0"}));
  CHECK(has(error_of(session, {filled({3, 4}, 1)}), {"2", "1"}));
  CHECK(has(error_of(session, {filled({3, 4}, 1), filled({3, 1}, 1), filled({3, 1}, 1)}), {"2", "3"}));
  CHECK(has(error_of(session, {Tensor::empty({3, 4}, kFloat64), filled({3, 1}, 1)}), {"x0", "float64", "float32"}));
  // The session still works.
  CHECK(session.run({filled({3, 4}, 1), filled({3, 1}, 2)})[0].as_double(11) == 3);
  CHECK(session.run({filled({0, 4}, 1), filled({0, 1}, 2)})[0].shape() == std::vector<int64_t>{0, 4});
}

TEST_CASE("results may be inputs, views of them, constants and one another", "[session]") {
  Session session(compile_graph([](Graph& g) -> Expr {
                    Expr x = g.input("n,m"), y = g.op("negative", {x});
                    return tuple({x, g.op("reshape", {x, g.shape("n*m")}), g.weights("2"), y, y,
                                  g.op("reshape", {y, g.shape("m,n")})});
                  }).load(),
                  {.threads = 1});
  Tensor x = filled({2, 3}, 5);
  std::vector<Tensor> first = session.run({x});
  REQUIRE(first.size() == 6);
  CHECK(first[0].as_double(5) == 5);
  CHECK(first[1].shape() == std::vector<int64_t>{6});
  CHECK(first[5].shape() == std::vector<int64_t>{3, 2});
  CHECK(first[4].as_double(0) == -5);
  // Results of a run stay as they are when the next one runs.
  session.run({filled({2, 3}, 7)});
  CHECK(first[3].as_double(0) == -5);
  CHECK(first[5].as_double(5) == -5);

  std::vector<Tensor> outputs = {filled({2, 3}, 0), filled({6}, 0),    filled({2}, 0),
                                 filled({2, 3}, 0), filled({2, 3}, 0), filled({3, 2}, 0)};
  session.run_into(std::vector<Tensor>{x}, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) CHECK(same_contents(outputs[i], first[i]));
  // An output in the input's place.
  outputs[3] = x;
  session.run_into(std::vector<Tensor>{x}, outputs);
  CHECK(outputs[4].as_double(3) == -5);
  CHECK(x.as_double(3) == -5);
  CHECK(outputs[0].as_double(3) == 5);
}

TEST_CASE("threads share a program, each with its own session", "[session]") {
  Program program = compile_graph([](Graph& g) {
                      return g.op("nn.softmax", {g.op("matmul", {g.input("n,32"), g.weights("32,32")})});
                    }).load();
  std::vector<std::vector<Tensor>> results(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      Session session(program, {.threads = 2});
      for (int64_t n = 1; n < 60; ++n) session.run({filled({n, 32}, static_cast<float>(n) / 64)});
      results[t] = session.run({filled({17, 32}, 0.5F)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) CHECK(same_contents(result.at(0), results[0].at(0)));
}

TEST_CASE("a run with dims seen before allocates nothing", "[session]") {
  Session session(compile_graph([](Graph& g) {
                    Expr x = g.op("matmul", {g.input("n,32"), g.weights("32,32")});
                    Expr y = g.op("cumsum", {x}, {{"axis", 0}});
                    return g.op("add", {g.op("nn.softmax", {y}),
                                        g.op("permute_dims", {g.op("matmul", {g.op("permute_dims", {x}), y})})});
                  }).load(),
                  {.threads = 2});
  for (int64_t n : {32, 32}) session.run({filled({n, 32}, 1)});
  int64_t before = session.memory_stats().allocations;
  for (int i = 0; i < 5; ++i) session.run({filled({32, 32}, 1)});
  CHECK(session.memory_stats().allocations == before);
}

TEST_CASE("the formula peak_bytes is what a run takes", "[session]") {
  Program program = compile_graph([](Graph& g) {
                      Expr x = g.op("matmul", {g.input("8,32"), g.weights("32,64")});
                      Expr y = g.op("cumsum", {g.op("permute_dims", {x})}, {{"axis", 0}});
                      return tuple({g.op("matmul", {g.op("nn.softmax", {x}), y}), y});
                    }).load();
  Session session(program, {.threads = 1});
  session.run({filled({8, 32}, 1)});
  CHECK(std::to_string(session.memory_stats().peak_bytes) == program.executable().metadata.at("peak_bytes.main"));
}

// Quadratic passes would take 64 times as long; the bounds leave room for a busy machine.
TEST_CASE("a run allocates nothing after one with dims as large", "[session]") {
  Session session(compile_graph([](Graph& g) {
                    Expr x = g.input("n,m"), y = chain(g, g.op("matmul", {x, g.input("m,k")}), 3);
                    return g.op("matmul", {y, g.op("permute_dims", {y})});
                  }).load(),
                  {.threads = 1});
  constexpr int64_t kMost = 40;
  auto matrix = [memory = filled({3, kMost, kMost}, 1)](int64_t which, int64_t rows, int64_t columns) {
    return Tensor::view({rows, columns}, kFloat32, memory.data<float>() + which * kMost * kMost, memory.owner());
  };
  int64_t from_heap = 0, from_system = session.memory_stats().allocations;
  uint32_t random = 1;
  auto dim = [&] { return 1 + static_cast<int64_t>((random = random * 1664525 + 1013904223) >> 16) % kMost; };
  for (int run = 0; run < 1000; ++run) {
    int64_t n = run == 0 ? kMost : dim(), m = run == 0 ? kMost : dim(), k = run == 0 ? kMost : dim();
    std::vector<Tensor> inputs = {matrix(0, n, m), matrix(1, m, k)}, outputs = {matrix(2, n, n)};
    const int64_t before = heap_allocations();
    session.run_into(inputs, outputs);
    from_heap += heap_allocations() - before;
    REQUIRE(outputs[0].as_double(0) > 0);
    if (run == 0) from_heap = 0, from_system = session.memory_stats().allocations;
  }
  CHECK(from_heap == 0);
  CHECK(session.memory_stats().allocations == from_system);

  const Tensor x = matrix(0, 3, 4), y = matrix(1, 4, 5);
  session.run({x, y});
  const int64_t before = heap_allocations();
  session.run({x, y});
  CHECK(heap_allocations() - before == 1);  // the vector of the results
}

TEST_CASE("passes on long and wide graphs grow slower than quadratic", "[session]") {
  auto deep = [](int length) { return [=](Graph& g) { return chain(g, g.input("n,m"), length); }; };
  double small = seconds_of_passes(deep(300)), large = seconds_of_passes(deep(2400));
  INFO("300 nodes: " << small << " s, 2400 nodes: " << large << " s");
  CHECK(large < 32 * small);
  // Wide: many short chains of one input, joined.
  auto wide = [](int width) {
    return [=](Graph& g) {
      Expr x = g.input("n,m");
      std::vector<Expr> parts;
      for (int i = 0; i < width; ++i) parts.push_back(chain(g, x, 3));
      return g.op("concat", {tuple(parts)}, {{"axis", 0}});
    };
  };
  small = seconds_of_passes(wide(50));
  large = seconds_of_passes(wide(400));
  INFO("50 branches: " << small << " s, 400 branches: " << large << " s");
  CHECK(large < 32 * small);
}

TEST_CASE("a chain of 10,000 nodes compiles and runs", "[session]") {
  CompiledModule module = compile_graph([](Graph& g) { return chain(g, g.input("n"), 10000); });
  Session session(module.load(), {.threads = 1});
  CHECK(session.run({filled({3}, 1)})[0].shape() == std::vector<int64_t>{3});
}

TEST_CASE("symbolic dims nested forty deep compile", "[session]") {
  CompiledModule module = compile_graph([](Graph& g) {
    Expr x = g.input("n");
    for (int i = 0; i < 40; ++i) {
      Expr n = (*known_shape(x.type()))[0];
      x = g.op("strided_slice", {x, g.shape("0"), g.shape("0"), shape_expr({n}), g.shape("2")},
               {{"assume_inbound", true}});
    }
    return x;
  });
  Session session(module.load(), {.threads = 1});
  CHECK(session.run({filled({7}, 1)})[0].shape() == std::vector<int64_t>{1});
}

}  // namespace relaxc::test
