#include <algorithm>

#include "tests/ops/harness.h"

using namespace relaxc;
using namespace relaxc::test;

namespace {

const OpTable& pooling_table() {
  static const OpTable kTable(pooling_ops());
  return kTable;
}

struct PoolingCase {
  Shape data, size, strides, before, after, dilation;
  bool ceil_mode = false;
  size_t n() const { return size.size(); }
  Attrs attrs() const {
    Shape padding = before;
    padding.insert(padding.end(), after.begin(), after.end());
    return Attrs{{"pool_size", size},
                 {"strides", strides},
                 {"padding", padding},
                 {"dilation", dilation},
                 {"ceil_mode", ceil_mode}};
  }
  Shape result() const {
    Shape shape = {data[0], data[1]};
    for (size_t d = 0; d < n(); ++d) {
      int64_t rest = data[d + 2] + before[d] + after[d] - (dilation[d] * (size[d] - 1) + 1);
      int64_t count = rest / strides[d] + 1;
      if (ceil_mode) {
        count = static_cast<int64_t>(std::ceil(static_cast<double>(rest) / static_cast<double>(strides[d]))) + 1;
        if ((count - 1) * strides[d] >= data[d + 2] + before[d]) --count;
      }
      shape.push_back(count);
    }
    return shape;
  }
  // Calls fn(index in the data, inside the data, inside the padded data) for each position of the window.
  void window(const Shape& o, const std::function<void(const Shape&, bool, bool)>& fn) const {
    for_each_index(size, [&](const Shape& k) {
      Shape at = {o[0], o[1]};
      bool inside = true, padded = true;
      for (size_t d = 0; d < n(); ++d) {
        at.push_back(o[d + 2] * strides[d] + k[d] * dilation[d] - before[d]);
        inside = inside && at.back() >= 0 && at.back() < data[d + 2];
        padded = padded && at.back() < data[d + 2] + after[d];
      }
      fn(at, inside, padded);
    });
  }
};

std::vector<PoolingCase> cases() {
  return {
      {{2, 3, 8}, {3}, {1}, {0}, {0}, {1}},
      {{1, 2, 8}, {3}, {2}, {1}, {2}, {2}},
      {{2, 2, 7, 6}, {2, 3}, {2, 1}, {0, 0}, {0, 0}, {1, 1}},
      {{1, 2, 7, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {{1, 2, 7, 6}, {3, 3}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, true},
      {{1, 2, 6, 6}, {3, 3}, {2, 3}, {1, 0}, {1, 2}, {1, 1}, true},
      {{1, 1, 4, 4}, {3, 3}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, true},
      {{1, 1, 2, 2}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, true},  // the last window would start outside
      {{1, 1, 9, 9}, {2, 2}, {3, 2}, {1, 1}, {1, 1}, {2, 3}, true},
      {{1, 2, 5, 4, 6}, {2, 2, 3}, {2, 1, 2}, {1, 0, 1}, {0, 1, 1}, {1, 2, 1}},
      {{1, 2, 5, 4, 6}, {2, 2, 3}, {2, 3, 2}, {1, 0, 1}, {0, 1, 1}, {1, 1, 1}, true},
      // Columns are folded after rows.
      {{1, 2, 7, 20}, {3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{1, 2, 9, 41}, {3, 3}, {1, 2}, {0, 0}, {0, 1}, {2, 1}, true},
      {{1, 2, 9, 60}, {5, 5}, {3, 3}, {2, 2}, {2, 1}, {1, 1}},
      {{1, 2, 11, 59}, {5, 5}, {4, 3}, {2, 2}, {2, 1}, {1, 1}, true},
      {{1, 1, 4, 5, 20}, {2, 3, 3}, {1, 2, 1}, {1, 0, 1}, {0, 1, 1}, {1, 1, 1}},
  };
}
std::string name_of(const char* kind, const PoolingCase& c) { return fmt::format("nn.{}_pool{}d", kind, c.n()); }
Symbolic symbolic_dims(const PoolingCase& c) {
  std::vector<Expr> dims = {make_dim("n"), int_imm(c.data[1])};
  for (size_t d = 0; d < c.n(); ++d) dims.push_back(make_dim("s"));
  return {dims};
}

}  // namespace

TEST_CASE("max pool", "[ops][pool]") {
  for (const PoolingCase& c : cases()) {
    for (DType dtype : {kFloat32, DType::int_(8), DType::uint(8)}) {
      Tensor x = values(c.data, dtype);
      for (const Symbolic& symbolic : {Symbolic{}, symbolic_dims(c)}) {
        check_tensor(run_op(pooling_table(), name_of("max", c), {x}, c.attrs(), symbolic)[0], c.result(),
                     [&](const Shape& o) {
                       double most = -INFINITY;
                       c.window(o, [&](const Shape& at, bool inside, bool) {
                         if (inside) most = std::max(most, element(x, at));
                       });
                       if (most == -INFINITY && !dtype.is_float()) return dtype.is_uint() ? 0.0 : -128.0;
                       return most;
                     });
      }
    }
  }
}

TEST_CASE("average pool", "[ops][pool]") {
  for (const PoolingCase& c : cases()) {
    Tensor x = values(c.data);
    for (bool include : {false, true}) {
      for (const Symbolic& symbolic : {Symbolic{}, symbolic_dims(c)}) {
        Attrs attrs = c.attrs().with("count_include_pad", include);
        check_tensor(run_op(pooling_table(), name_of("avg", c), {x}, attrs, symbolic)[0], c.result(),
                     [&](const Shape& o) {
                       double sum = 0, count = 0;
                       c.window(o, [&](const Shape& at, bool inside, bool padded) {
                         if (inside) sum += element(x, at);
                         count += include ? padded : inside;
                       });
                       return sum / std::max(count, 1.0);
                     });
      }
    }
  }
  // float16 sums in float32.
  PoolingCase c{{1, 1, 64, 64}, {64, 64}, {1, 1}, {0, 0}, {0, 0}, {1, 1}};
  Tensor ones = Tensor::empty(c.data, DType::float_(16));
  for (int64_t i = 0; i < ones.size(); ++i) ones.set_double(i, 3);
  CHECK(run_op(pooling_table(), "nn.avg_pool2d", {ones}, c.attrs())[0].as_double(0) == 3);
}

TEST_CASE("sum pool", "[ops][pool]") {
  for (const PoolingCase& c : cases()) {
    for (DType dtype : {kFloat32, DType::int_(8), DType::uint(8)}) {
      Tensor x = values(c.data, dtype);
      for (const Symbolic& symbolic : {Symbolic{}, symbolic_dims(c)}) {
        const Tensor result =
            run_op(pooling_table(), fmt::format("nn.sum_pool{}d", c.n()), {x}, c.attrs(), symbolic)[0];
        CHECK(result.dtype() == (dtype == kFloat32 ? kFloat32 : kInt32));
        check_tensor(result, c.result(), [&](const Shape& o) {
          double sum = 0;
          c.window(o, [&](const Shape& at, bool inside, bool) { sum += inside ? element(x, at) : 0; });
          return sum;
        });
      }
    }
  }
}

TEST_CASE("Lp pool", "[ops][pool]") {
  for (const PoolingCase& c : cases()) {
    Tensor x = values(c.data);
    for (int64_t p : {1, 2, 3}) {
      check_tensor(run_op(pooling_table(), "nn.lp_pool", {x}, c.attrs().with("p", p))[0], c.result(),
                   [&](const Shape& o) {
                     double sum = 0;
                     c.window(o, [&](const Shape& at, bool inside, bool) {
                       if (inside) sum += std::pow(std::fabs(element(x, at)), static_cast<double>(p));
                     });
                     return std::pow(sum, 1.0 / static_cast<double>(p));
                   });
    }
  }
}

TEST_CASE("max pool with positions", "[ops][pool]") {
  for (const PoolingCase& c : cases()) {
    Tensor x = values(c.data);
    for (int64_t order : {0, 1}) {
      for (const Symbolic& symbolic : {Symbolic{}, symbolic_dims(c)}) {
        Attrs attrs = c.attrs().with("storage_order", order);
        std::vector<Tensor> out = run_op(pooling_table(), "nn.max_pool_with_indices", {x}, attrs, symbolic);
        auto winner = [&](const Shape& o) {
          std::optional<Shape> best;
          c.window(o, [&](const Shape& at, bool inside, bool) {
            if (inside && (!best || element(x, at) > element(x, *best))) best = at;
          });
          return best;
        };
        check_tensor(out[0], c.result(), [&](const Shape& o) {
          auto best = winner(o);
          return best ? element(x, *best) : -INFINITY;
        });
        check_tensor(out[1], c.result(), [&](const Shape& o) {
          auto best = winner(o);
          if (!best) return -1.0;
          Shape shape = c.data;
          if (order == 1) {
            std::reverse(best->begin() + 2, best->end());
            std::reverse(shape.begin() + 2, shape.end());
          }
          return static_cast<double>(flat(*best, shape));
        });
      }
    }
  }
}

TEST_CASE("adaptive average pool", "[ops][pool]") {
  auto check = [](const Shape& data, const std::optional<Shape>& size, const Symbolic& symbolic) {
    Tensor x = values(data);
    size_t n = data.size() - 2;
    Shape result = {data[0], data[1]};
    for (size_t d = 0; d < n; ++d) result.push_back(size ? (*size)[d] : data[d + 2]);
    Attrs attrs{{"output_size", size ? AttrValue(*size) : AttrValue()}};
    std::string name = fmt::format("nn.adaptive_avg_pool{}d", n);
    check_tensor(run_op(pooling_table(), name, {x}, attrs, symbolic)[0], result, [&](const Shape& o) {
      Shape extents, starts;
      for (size_t d = 0; d < n; ++d) {
        int64_t in = data[d + 2], out = result[d + 2];
        starts.push_back(o[d + 2] * in / out);
        extents.push_back(((o[d + 2] + 1) * in + out - 1) / out - starts[d]);
      }
      double sum = 0, count = 0;
      for_each_index(extents, [&](const Shape& k) {
        Shape at = {o[0], o[1]};
        for (size_t d = 0; d < n; ++d) at.push_back(starts[d] + k[d]);
        sum += element(x, at);
        count += 1;
      });
      return sum / count;
    });
  };
  VarRef h = make_dim("h"), w = make_dim("w");
  for (const Symbolic& symbolic : {Symbolic{}, Symbolic{{int_imm(1), int_imm(2), h, w}}}) {
    check({1, 2, 7, 6}, Shape{1, 1}, symbolic);
    check({1, 2, 7, 6}, Shape{3, 2}, symbolic);
    check({1, 2, 7, 6}, Shape{7, 4}, symbolic);
    check({1, 2, 3, 2}, Shape{5, 5}, symbolic);
    check({1, 2, 7, 6}, std::nullopt, symbolic);
  }
  check({2, 2, 9}, Shape{4}, {});
  check({1, 1, 4, 5, 6}, Shape{1, 2, 4}, {});
}

TEST_CASE("pools in other layouts", "[ops][pool]") {
  Tensor x = values({2, 8, 7, 6});
  Attrs window{{"pool_size", Shape{3, 2}}, {"strides", 2}, {"padding", 1}};
  for (auto [data, out] : {std::pair{"NHWC", "NHWC"}, std::pair{"NCHW4c", "NCHW4c"}, std::pair{"NCHW4c", "NCHW"}}) {
    for (auto [name, attrs] : {std::pair{"nn.max_pool2d", window}, std::pair{"nn.avg_pool2d", window},
                               std::pair{"nn.adaptive_avg_pool2d", Attrs{{"output_size", Shape{3, 2}}}}}) {
      CAPTURE(data, out, name);
      Tensor expected = in_layout(run_op(pooling_table(), name, {x}, attrs)[0], "NCHW", out);
      Attrs laid_out = attrs.with("layout", data).with("out_layout", out);
      Tensor got = run_op(pooling_table(), name, {in_layout(x, "NCHW", data)}, laid_out)[0];
      check_tensor(got, expected.shape(), [&](const Shape& o) { return element(expected, o); });
    }
  }
}

TEST_CASE("pool errors", "[ops][pool]") {
  auto message = [](Shape data, Attrs attrs, const char* name = "nn.max_pool2d", DType dtype = kFloat32) {
    return error_of(pooling_table(), name, {values(std::move(data), dtype)}, attrs);
  };
  CHECK(contains(message({1, 2, 3, 3}, {{"pool_size", 4}}), "the window of 4 is larger than the padded input of 3"));
  CHECK(contains(message({1, 2, 3, 3}, {{"pool_size", 9}, {"ceil_mode", true}}), "the window of 9 is larger"));
  CHECK(contains(message({1, 2, 3}, {{"pool_size", 2}}), "data has rank 3, expected 4"));
  CHECK(contains(message({1, 2}, {{"pool_size", 2}}, "nn.lp_pool"), "data has rank 2, expected at least 3"));
  CHECK(contains(message({1, 2, 3, 3}, {{"layout", "NHWX"}}), "does not order the axes NCHW"));
  CHECK(contains(message({1, 2, 3, 3}, {{"pool_size", Shape{1, 2, 3}}}), "pool_size has 3 values, expected 2"));
  CHECK(contains(message({1, 2, 3, 3}, {}, "nn.avg_pool2d", kBool), "expected a number, got bool"));
  CHECK(contains(message({1, 2, 3, 3}, {{"output_size", 0}}, "nn.adaptive_avg_pool2d"), "output_size is 0"));
}
