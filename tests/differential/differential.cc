#include "tests/differential/differential.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/arith.h"
#include "ir/text/printer.h"
#include "tests/interpret_module.h"
#include "tests/narrow_dims.h"
#include "tests/run_reference.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (char c : text) {
    if (c == separator) {
      parts.push_back(part);
      part.clear();
    } else if (c != ' ') {
      part += c;
    }
  }
  if (!part.empty() || !parts.empty()) parts.push_back(part);
  return parts;
}

int64_t evaluate(const std::string& text, const Sizes& sizes) {
  int64_t sum = 0;
  for (const std::string& term : split(text, '+')) {
    int64_t factor = 1;
    for (const std::string& name : split(term, '*')) {
      factor *= std::isdigit(static_cast<unsigned char>(name[0])) ? std::stoll(name) : sizes.at(name);
    }
    sum += factor;
  }
  return sum;
}

Tensor random_tensor(std::vector<int64_t> shape, DType dtype, const Contents& contents, int64_t extent,
                     std::mt19937& random) {
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  constexpr double kSpecial[] = {0.0,   -0.0,   std::numeric_limits<double>::infinity(),
                                 1e-41, -1e-41, -std::numeric_limits<double>::infinity(),
                                 3e38,  -3e38,  std::numeric_limits<double>::quiet_NaN()};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (dtype.is_float()) {
      // Multiples of 1/8: sums and products of a few thousand are exact in float32, in any order.
      int64_t steps = static_cast<int64_t>((contents.high - contents.low) * 8);
      double value = contents.low + static_cast<double>(random() % static_cast<uint32_t>(steps + 1)) / 8;
      if (contents.special && random() % 8 == 0) value = kSpecial[random() % std::size(kSpecial)];
      tensor.set_double(i, value);
    } else if (!contents.extent.empty()) {
      tensor.set_int(i, extent == 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(2 * extent)) - extent);
    } else {
      int64_t low =
          static_cast<int64_t>(dtype.is_uint() || dtype.is_bool() ? std::max(contents.low, 0.0) : contents.low);
      int64_t high = static_cast<int64_t>(dtype.is_bool() ? std::min(contents.high, 1.0) : contents.high);
      tensor.set_int(i, low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1)));
    }
  }
  return tensor;
}

std::string compare(const Tensor& got, const Tensor& want, double tolerance) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return fmt::format("got {}, expected {}", describe(got), describe(want));
  if (tolerance < 0) {
    DType dtype = want.dtype();
    tolerance = !dtype.is_float()                 ? 0
                : dtype == kFloat64               ? 1e-13
                : dtype == kFloat32               ? 4e-6
                : dtype.code == DTypeCode::kFloat ? 4e-3
                                                  : 3e-2;
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = got.as_double(i), b = want.as_double(i);
    if (want.dtype().is_integral() ? got.as_int(i) == want.as_int(i) : a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    if (std::fabs(a - b) <= tolerance * (1 + std::fabs(b)) && std::isfinite(a)) continue;
    // Close to the largest finite number, rounding decides.
    if (std::isinf(a) != std::isinf(b) && std::max(std::fabs(a), std::fabs(b)) > 3e38 &&
        std::min(std::fabs(a), std::fabs(b)) > 3.4e38)
      continue;
    return fmt::format("element {} of {} is {}, expected {}", i, describe(want), a, b);
  }
  return {};
}

int effort() {
  const char* text = std::getenv("RELAXC_DIFFERENTIAL");
  return text ? std::max(1, std::atoi(text)) : 1;
}

std::string print(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  return text;
}

IRModule through(const IRModule& module, const char* passes, const std::string& target) {
  CompileSettings settings;
  settings.passes = passes;
  settings.target = target;
  return run_pipeline(module, settings);
}

class Runner {
 public:
  explicit Runner(const Case& test) : test_(test), random_(std::hash<std::string>()(test.name) & 0xffffffff) {
    Graph graph({}, 1);
    test.build(graph);
    names_ = [&] {
      std::vector<std::string> names;
      for (const auto& [name, dim] : graph.dims()) names.push_back(name);
      return names;
    }();
  }

  void run() {
    const char* targets[] = {"host", "x86-64-v3", "x86-64-v2"};
    int rounds = effort();
    for (int round = 0; round < rounds; ++round) {
      if (!names_.empty()) {
        const char* drawn = targets[random_() % 3];
        for (const char* target : targets) {
          if (rounds == 1 && target != drawn) continue;  // all of them with more effort
          std::vector<Sizes> sizes;
          if (round == 0) sizes = test_.sizes;
          for (int i = 0; i < 3; ++i) sizes.push_back(random_sizes());
          check({}, sizes, target);
        }
      }
      for (int i = 0; i < (names_.empty() ? 3 : 1); ++i) {
        Sizes sizes = i < static_cast<int>(test_.sizes.size()) ? test_.sizes[static_cast<size_t>(i)] : random_sizes();
        check(sizes, {sizes}, names_.empty() ? targets[i] : targets[random_() % 3]);
      }
      if (!names_.empty()) check_mixed(targets[random_() % 3]);
    }
  }

 private:
  // Some dims are numbers, often 0, beside variables.
  void check_mixed(const std::string& target) {
    Sizes fixed, drawn = random_sizes();
    for (const std::string& name : names_) {
      auto least = test_.least.find(name);
      bool may_be_empty = least == test_.least.end() || least->second == 0;
      if (random_() % 2) fixed[name] = may_be_empty && random_() % 2 ? 0 : drawn.at(name);
    }
    check(fixed, {random_sizes(fixed), random_sizes(fixed)}, target);
  }
  Sizes random_sizes(const Sizes& fixed = {}) {
    constexpr int64_t kSizes[] = {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 100};
    for (int attempt = 0; attempt < 100; ++attempt) {
      Sizes sizes = fixed;
      for (const std::string& name : names_) {
        if (fixed.contains(name)) continue;
        int64_t size = kSizes[random_() % std::size(kSizes)];
        if (size == 0 && random_() % 2) size = 1;
        if (random_() % 6 == 0) size = 300 + static_cast<int64_t>(random_() % 5000);
        auto least = test_.least.find(name);
        if (least != test_.least.end()) size = std::max(size, least->second);
        sizes[name] = size;
      }
      if (count_elements(sizes) <= test_.most) return sizes;
    }
    Sizes sizes = fixed;
    for (const std::string& name : names_) {
      if (fixed.contains(name)) continue;
      auto least = test_.least.find(name);
      sizes[name] = std::max<int64_t>(3, least == test_.least.end() ? 0 : least->second);
    }
    return sizes;
  }
  int64_t count_elements(const Sizes& sizes) {
    // Dims before contents: huge tensors are not made.
    Graph graph({}, 1);
    test_.build(graph);
    return graph.count_elements(sizes);
  }

  // The dims that are not fixed are variables.
  void check(const Sizes& fixed, const std::vector<Sizes>& all_sizes, const std::string& target) {
    bool is_symbolic = fixed.size() < names_.size();
    std::string context =
        fmt::format("{} for {}, {}{}", test_.name, target, is_symbolic ? "symbolic but for: " : "sizes ", print(fixed));
    INFO(context);
    try {
      uint32_t seed = static_cast<uint32_t>(random_());
      Graph graph(fixed, seed);
      IRModule module = graph.finish(test_.build(graph));
      IRModule legal = through(module, "legalize", target);
      IRModule scheduled = through(module, "kernels", target);
      // The same kernels as users write them, who count in int32 as often as not.
      IRModule from_int32 = through(counted_in(legal, kInt32), "check_dims,kernels", target);
      CompileSettings settings;
      settings.target = target;
      settings.jobs = 1;
      CompiledModule compiled = compile(module, settings);
      Program program = compiled.load();
      Session one(program, {.threads = 1}), two(program, {.threads = 2});
      for (const Sizes& sizes : all_sizes) {
        std::string at = context + "; " + print(sizes);
        std::vector<Tensor> inputs = graph.make_inputs(sizes, static_cast<uint32_t>(random_()));
        std::vector<Tensor> expected = interpret_module(legal, inputs, "legalize", {.check_regions = true});
        check_reference(sizes, inputs, expected, at);
        compare_all(interpret_module(scheduled, inputs, "legalize", {.reverse_parallel_loops = true}), expected,
                    at + ": scheduled");
        compare_all(interpret_module(scheduled, inputs, "destination_passing,lower_kernels"), expected,
                    at + ": lowered");
        if (&sizes == &all_sizes.front())
          compare_all(interpret_module(from_int32, inputs, "destination_passing,lower_kernels"), expected,
                      at + ": from int32");
        std::vector<Tensor> results = one.run(inputs);
        compare_all(results, expected, at + ": compiled");
        std::vector<Tensor> parallel = two.run(inputs);
        for (size_t i = 0; i < results.size(); ++i) {
          if (!same_contents(results[i], parallel.at(i))) fail_case(at + ": 1 and 2 threads differ");
        }
      }
    } catch (const std::exception& error) {
      fail_case(fmt::format("{}: {}", context, error.what()));
    }
  }
  // Compares the interpreter's results with plain C++, for a case of one operator that has a reference.
  void check_reference(const Sizes& sizes, const std::vector<Tensor>& inputs, const std::vector<Tensor>& got,
                       const std::string& at) {
    if (!test_.has_reference) return;
    Graph known(sizes, 1);
    auto wanted = run_reference(known.finish(test_.build(known)), inputs);
    if (!wanted) return fail_case(at + ": no reference");
    compare_all(got, *wanted, at + ": reference");
  }
  void compare_all(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, const std::string& at) {
    if (got.size() != expected.size())
      return fail_case(fmt::format("{}: {} results, expected {}", at, got.size(), expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      std::string difference = compare(got[i], expected[i], test_.tolerance);
      if (!difference.empty()) fail_case(fmt::format("{}: result {}: {}", at, i, difference));
    }
  }
  void fail_case(const std::string& message) { FAIL_CHECK(message); }

  const Case& test_;
  std::mt19937 random_;
  std::vector<std::string> names_;
};

}  // namespace

Graph::Graph(Sizes fixed, uint32_t seed) : builder(op_table()), fixed_(std::move(fixed)), random_(seed) {
  builder.begin_dataflow();
}

Expr Graph::parse(const std::string& text) {
  Expr sum = int_imm(0);
  for (const std::string& term : split(text, '+')) {
    Expr product = int_imm(1);
    for (const std::string& name : split(term, '*')) {
      if (std::isdigit(static_cast<unsigned char>(name[0]))) {
        product = product * std::stoll(name);
        continue;
      }
      auto it = dims_.find(name);
      if (it == dims_.end())
        it = dims_.emplace(name, fixed_.contains(name) ? int_imm(fixed_.at(name)) : Expr(make_dim(name))).first;
      product = product * it->second;
    }
    sum = sum + product;
  }
  return simplify(sum);
}
Expr Graph::dim(const std::string& text) { return parse(text); }
Expr Graph::shape(const std::string& dims) {
  std::vector<Expr> values;
  for (const std::string& dim : split(dims, ',')) values.push_back(parse(dim));
  return shape_expr(std::move(values));
}
Expr Graph::input(const std::string& dims, DType dtype, Contents contents) {
  VarRef var = make_var(fmt::format("x{}", inputs_.size()), tensor_type(shape(dims).as<ShapeExpr>()->values, dtype));
  inputs_.push_back({var, dims, dtype, std::move(contents)});
  return var;
}
Expr Graph::weights(const std::string& dims, DType dtype, Contents contents) {
  std::vector<int64_t> shape;
  for (const std::string& dim : split(dims, ',')) shape.push_back(evaluate(dim, {}));
  return constant(random_tensor(std::move(shape), dtype, contents, 0, random_));
}
IRModule Graph::finish(const Expr& result) {
  Expr body = builder.finish(result);
  std::vector<VarRef> params;
  for (const Input& input : inputs_) params.push_back(input.var);
  IRModule module;
  module.functions.emplace("main",
                           make_function({params, body, result.type(), true, Attrs{{"global_symbol", "main"}}}));
  return module;
}
std::vector<Tensor> Graph::make_inputs(const Sizes& sizes, uint32_t seed) const {
  std::mt19937 random(seed);
  std::vector<Tensor> tensors;
  for (const Input& input : inputs_) {
    std::vector<int64_t> shape;
    for (const std::string& dim : split(input.dims, ',')) shape.push_back(evaluate(dim, sizes));
    int64_t extent = input.contents.extent.empty() ? 0 : evaluate(input.contents.extent, sizes);
    tensors.push_back(random_tensor(std::move(shape), input.dtype, input.contents, extent, random));
  }
  return tensors;
}
int64_t Graph::count_elements(const Sizes& sizes) const {
  int64_t total = 0;
  for (const Input& input : inputs_) {
    int64_t count = 1;
    for (const std::string& dim : split(input.dims, ',')) count *= evaluate(dim, sizes);
    total += count;
  }
  return total;
}

void check_case(const Case& test) {
  Runner(test).run();
  SUCCEED();
}

}  // namespace relaxc::test
