// Bounds of Slice at and beyond the ends of int32 and int64, in every place that decides about them: the converter with
// constant bounds on static and symbolic dims, shape arithmetic, and bounds that only the run knows.
#include "ir/arith.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

constexpr int64_t kSize = 5;
const std::vector<int64_t> kBounds = {
    INT64_MIN,     INT64_MIN + 1, int64_t{INT32_MIN} - 1, INT32_MIN,     -6,       -5, -3, -1, 0, 1, 3, 4, 5, 6,
    INT32_MAX - 1, INT32_MAX,     int64_t{INT32_MAX} + 1, INT64_MAX - 1, INT64_MAX};
const std::vector<int64_t> kSteps = {1, 2, -1, -2, INT64_MIN, INT64_MAX};

// Returns the result of ONNX Runtime 1.20 for each of these combinations, with 5 and with 0 elements. It follows the
// standard's text, except that the largest int32 and int64 are an open end downwards, too.
std::vector<int64_t> expected(int64_t size, int64_t start, int64_t end, int64_t step) {
  auto from_end = [&](int64_t bound) { return bound < 0 ? bound + size : bound; };
  std::vector<int64_t> result;
  if (step > 0) {
    int64_t last = std::clamp<int64_t>(from_end(end), 0, size);
    for (int64_t i = std::clamp<int64_t>(from_end(start), 0, size); i < last; i += std::min(step, size + 1))
      result.push_back(i);
    return result;
  }
  bool is_open = end == INT32_MAX || end == INT64_MAX;
  int64_t last = is_open ? -1 : std::max<int64_t>(from_end(end), -1);
  int64_t first = size == 0 ? -1 : std::clamp<int64_t>(from_end(start), 0, size - 1);
  for (int64_t i = first; i > last; i += std::max(step, -size - 1)) result.push_back(i);
  return result;
}

struct Bounds {
  int64_t start, end, step;
};
std::vector<Bounds> all_bounds() {
  std::vector<Bounds> result;
  for (int64_t start : kBounds) {
    for (int64_t end : kBounds) {
      for (int64_t step : kSteps) result.push_back({start, end, step});
    }
  }
  return result;
}
std::string text(const Bounds& b, int64_t size) {
  return fmt::format("[{}:{}:{}] of {} elements", b.start, b.end, b.step, size);
}

// A node y<i> for each combination, with constant bounds.
void add_slices(OnnxModel& model, const std::vector<Bounds>& bounds) {
  for (size_t i = 0; i < bounds.size(); ++i) {
    std::string n = std::to_string(i);
    model.constant("s" + n, int64s({bounds[i].start})).constant("e" + n, int64s({bounds[i].end}));
    model.constant("t" + n, int64s({bounds[i].step}));
    model.node("Slice", "x s" + n + " e" + n + " axes t" + n, "y" + n);
    model.output("y" + n, kInt64);
  }
}

// The positions that a strided_slice, or the whole tensor, reads of a dim of `size`.
std::vector<int64_t> positions(const Expr& result, const VarMap& values,
                               const std::unordered_map<const NodeHeader*, Expr>& bindings, int64_t size) {
  auto it = bindings.find(result.get());
  const Call* slice = it == bindings.end() ? nullptr : as_call(it->second, ops::kStridedSlice);
  int64_t bounds[] = {0, size, 1};
  for (size_t i = 0; slice && i < 3; ++i) {
    auto known = as_int(simplify(substitute(slice->args[i + 2].as<Tuple>()->items[0], values)));
    REQUIRE(known);
    bounds[i] = *known;
  }
  std::vector<int64_t> read;
  for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2]) read.push_back(i);
  return read;
}

}  // namespace

TEST_CASE("constant bounds of a slice at the ends of their range", "[frontend]") {
  const std::vector<Bounds> bounds = all_bounds();
  for (const char* dims : {"5", "0", "n"}) {
    OnnxModel model;
    model.input("x", kInt64, dims).constant("axes", int64s({0}));
    add_slices(model, bounds);
    FunctionRef main = model.import().graph_function("main");
    std::unordered_map<const NodeHeader*, Expr> bindings;
    for (const BindingBlock& block : main->body.as<SeqExpr>()->blocks) {
      for (const Binding& binding : block.bindings) bindings.emplace(binding.var.get(), binding.value);
    }
    const Expr& body = main->body.as<SeqExpr>()->body;
    const Tuple* results = (bindings.contains(body.get()) ? bindings.at(body.get()) : body).as<Tuple>();
    REQUIRE(results);
    const Expr& dim = (*known_shape(main->params[0].type()))[0];
    for (int64_t size : {int64_t{0}, int64_t{1}, kSize}) {
      if (as_int(dim).value_or(size) != size) continue;
      VarMap values;
      if (dim.is<Var>()) values.emplace(dim.get(), int_imm(size));
      for (size_t i = 0; i < bounds.size(); ++i) {
        std::vector<int64_t> wanted = expected(size, bounds[i].start, bounds[i].end, bounds[i].step);
        if (positions(results->items[i], values, bindings, size) == wanted) continue;
        FAIL_CHECK(text(bounds[i], size) << " with dim " << dims);
      }
    }
  }
}

TEST_CASE("bounds of a slice in shape arithmetic", "[frontend]") {
  const std::vector<Bounds> bounds = all_bounds();
  OnnxModel model;
  model.constant("x", int64s({0, 1, 2, 3, 4})).constant("axes", int64s({0}));
  model.input("unused", kFloat32, "1");
  add_slices(model, bounds);
  std::vector<Tensor> results = model.compile().run({numbers({1})});
  REQUIRE(results.size() == bounds.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    Tensor wanted = int64s(expected(kSize, bounds[i].start, bounds[i].end, bounds[i].step));
    if (!same_tensor(results[i], wanted)) FAIL_CHECK(text(bounds[i], kSize));
  }
}

TEST_CASE("bounds of a slice that the run gives", "[frontend]") {
  for (const char* dims : {"5", "n"}) {
    OnnxModel model;
    model.input("x", kInt64, dims).input("s", kInt64, "1").input("e", kInt64, "1").input("t", kInt64, "1");
    model.constant("axes", int64s({0})).node("Slice", "x s e axes t", "y");
    model.output("y", kInt64);
    Session session = model.compile();
    for (int64_t size : {int64_t{0}, int64_t{1}, kSize}) {
      if (dims[0] == '5' && size != kSize) continue;
      std::vector<int64_t> elements;
      for (int64_t i = 0; i < size; ++i) elements.push_back(i);
      for (const Bounds& b : all_bounds()) {
        std::vector<Tensor> result =
            session.run({int64s(elements), int64s({b.start}), int64s({b.end}), int64s({b.step})});
        if (!same_tensor(result[0], int64s(expected(size, b.start, b.end, b.step))))
          FAIL_CHECK(text(b, size) << " with dim " << dims);
      }
    }
  }
}

}  // namespace relaxc::test
