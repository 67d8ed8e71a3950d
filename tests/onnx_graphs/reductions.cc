// Reductions, scans, products, and the softmax family.
#include <cmath>

#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

namespace {

using G = Generator;

// ONNX Runtime 1.27 gives wrong shapes for axes counted from the end of an operand without elements.
int64_t axis_of_reduction(G& g, int64_t axis, const Value& x) { return has_zero(x.shape) ? axis : g.written(axis, x); }

void reduce(G& g, const char* name) {
  std::string op = std::string(name).substr(6);
  Value x = g.value(
      [&](const Value& v) {
        return v.dtype.is_float() && (op != "LogSum" || v.range.low > 0.05) &&
               (op != "LogSumExp" || v.range.magnitude() < 10);
      },
      g.float_dtype(), 0, 4, op == "LogSum" ? kPositive : Range{});
  std::vector<int64_t> axes;
  Shape reduced;
  bool keep = g.chance(0.5), all = g.chance(0.15);
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!all && g.chance(0.5)) continue;
    axes.push_back(static_cast<int64_t>(i));
    reduced.push_back(x.shape[i]);
  }
  G::need(!axes.empty() || all);
  bool may_be_empty = op == "Sum" || op == "Prod" || op == "L1" || op == "L2" || op == "SumSquare";
  G::need(may_be_empty || !has_zero(reduced));
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone || keep) shape.push_back(gone ? Dim(1) : x.shape[i]);
  }
  auto count = static_cast<double>(std::max<int64_t>(most_elements(reduced), 1));
  double most = x.range.magnitude(), error = x.range.error, unit = 2e-7 * count;
  Range range = x.range;
  if (op == "Sum")
    range = {std::min(0.0, x.range.low * count), std::max(0.0, x.range.high * count), x.range.step, error * count};
  if (op == "L1") range = {0, most * count, x.range.step, error * count};
  if (op == "Mean") range.error += unit * most + 1e-9;
  if (op == "SumSquare") range = {0, most * most * count, x.range.step * x.range.step, 2 * error * most * count};
  if (op == "L2") {
    G::need(x.range.exact());  // the root is steep at 0
    range = {0, most * std::sqrt(count), 1, unit * most * std::sqrt(count)};
  }
  if (op == "Prod") {
    G::need(most <= 1 || count <= 4);
    double largest = std::max(1.0, std::pow(most, count));
    range = {-largest, largest, 1, count * (error * largest / std::max(most, 1.0) + unit * largest)};
  }
  if (op == "LogSum") range = {std::log(x.range.low), std::log(x.range.high * count), 1, error / x.range.low + unit};
  if (op == "LogSumExp") range = {x.range.low, x.range.high + std::log(count), 1, error * 2 + unit};
  std::vector<int64_t> given = axes;
  for (int64_t& axis : given) axis = axis_of_reduction(g, axis, x);
  std::vector<std::string> inputs = {x.name};
  Attrs attrs;
  if (!keep || g.chance(0.5)) attrs.push_back(attribute("keepdims", keep ? 1 : 0));
  if (!all) {
    if (g.opset() >= 18 || op == "Sum") {
      inputs.push_back(g.ints(given));
    } else {
      attrs.push_back(attribute("axes", given));
    }
  }
  g.emit(name, inputs, attrs, x.dtype, shape, range);
}

void arg_reduce(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype.is_float() && v.range.exact() && G::fits(v, 1, 4); },
                    g.float_dtype(), 1, 4);
  int64_t axis = g.axis_of(x);
  Dim dim = x.shape[static_cast<size_t>(axis)];
  G::need(dim.least() > 0);
  bool keep = g.chance(0.5);
  Attrs attrs = {attribute("axis", axis_of_reduction(g, axis, x)), attribute("keepdims", keep ? 1 : 0)};
  if (g.chance(0.4)) attrs.push_back(attribute("select_last_index", 1));
  Shape shape = x.shape;
  shape[static_cast<size_t>(axis)] = 1;
  if (!keep) shape.erase(shape.begin() + axis);
  g.emit(name, {x.name}, attrs, kInt64, shape, {0, static_cast<double>(dim.most() - 1), 1, 0});
}

void softmax(G& g, const char* name) {
  std::string op = name;
  Value x = g.value(
      [&](const Value& v) {
        return v.dtype.is_float() && G::fits(v, 1, 4) && (op != "Hardmax" || v.range.exact()) &&
               v.range.magnitude() < 100;
      },
      g.float_dtype(), 1, 4);
  int64_t axis = g.axis_of(x);
  auto count = static_cast<double>(x.shape[static_cast<size_t>(axis)].most());
  Range range = {0, 1, 1, 2 * x.range.error + 1e-6};
  if (op == "LogSoftmax") range = {x.range.low - x.range.high - std::log(count + 1), 0, 1, 2 * x.range.error + 2e-6};
  if (op == "Hardmax") range = kFlags;
  g.emit(op, {x.name}, {attribute("axis", g.written(axis, x))}, x.dtype, x.shape, range);
}

void cumsum(G& g, const char* name) {
  Value x = g.value(
      [](const Value& v) {
        return (v.dtype.is_float() || v.dtype == kInt64 || v.dtype == kInt32) && v.dtype.bits >= 32 && G::fits(v, 1, 4);
      },
      kFloat32, 1, 4);
  int64_t axis = g.axis_of(x);
  auto count = static_cast<double>(x.shape[static_cast<size_t>(axis)].most() + 1);
  Attrs attrs;
  if (g.chance(0.4)) attrs.push_back(attribute("exclusive", 1));
  if (g.chance(0.4)) attrs.push_back(attribute("reverse", 1));
  double most = x.range.magnitude() * count;
  g.emit(name, {x.name, g.scalar(g.chance(0.7) ? kInt64 : kInt32, static_cast<double>(g.written(axis, x)))}, attrs,
         x.dtype, x.shape, {-most * (x.range.low < 0), most, x.range.step, x.range.error * count});
}

// The range of a sum of `count` products.
Range of_products(const Range& a, const Range& b, double count) {
  double most = a.magnitude() * b.magnitude() * count;
  double low = a.low >= 0 && b.low >= 0 ? 0 : -most;
  double error = (a.error * b.magnitude() + b.error * a.magnitude()) * count;
  // Algorithms other than the sum of products (Winograd) round even where the sum is exact.
  return {low, most, a.step * b.step, error + 1e-6 * most};
}

void matmul(G& g, const char* name) {
  Value a = g.float_value(1, 4);
  Dim inner = a.shape.back();
  G::need(inner.is_static || !inner.symbol.empty());
  Value b = g.tensor(a.dtype, {inner, g.new_dim()});
  Shape shape = a.shape;
  shape.back() = b.shape[1];
  g.emit(name, {a.name, b.name}, {}, a.dtype, shape, of_products(a.range, b.range, static_cast<double>(inner.most())));
}

// Both operands drawn together: vectors, matrices, batches that broadcast.
void new_matmul(G& g, const char* name) {
  DType dtype = g.float_dtype();
  Dim rows = g.new_dim(), inner = g.new_dim(), columns = g.new_dim();
  Shape batch = g.new_shape(g.draw(0, 2)), left = batch, right = batch;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (g.chance(0.3)) (g.chance(0.5) ? left : right)[i] = 1;
  }
  if (g.chance(0.4)) right.clear();
  // ONNX Runtime 1.27 gives wrong shapes where batches broadcast and there are no products.
  G::need(inner.least() > 0 || left == right);
  Shape shape = broadcast(left, right);
  bool row_vector = left.empty() && g.chance(0.2), column_vector = right.empty() && g.chance(0.2);
  if (!row_vector) left.push_back(rows), shape.push_back(rows);
  left.push_back(inner);
  right.push_back(inner);
  if (!column_vector) right.push_back(columns), shape.push_back(columns);
  auto operand = [&](const Shape& wanted) {
    for (const auto& [known, value] : g.graph().values) {
      if (value.dtype == dtype && value.shape == wanted && g.chance(0.5)) return value;
    }
    return g.tensor(dtype, wanted);
  };
  Value a = operand(left), b = operand(right);
  g.emit(name, {a.name, b.name}, {}, dtype, shape, of_products(a.range, b.range, static_cast<double>(inner.most())));
}

void gemm(G& g, const char* name) {
  Value a = g.float_value(2, 2);
  bool trans_a = g.chance(0.4), trans_b = g.chance(0.4);
  Dim rows = a.shape[trans_a ? 1 : 0], inner = a.shape[trans_a ? 0 : 1], columns = g.new_dim();
  Value b = g.tensor(a.dtype, trans_b ? Shape{columns, inner} : Shape{inner, columns});
  Attrs attrs;
  if (trans_a) attrs.push_back(attribute("transA", 1));
  if (trans_b) attrs.push_back(attribute("transB", 1));
  // ONNX Runtime 1.27 forgets beta where the inner dim is 0.
  double alpha = g.chance(0.5) ? 1 : 0.5, beta = g.chance(0.5) || inner.least() == 0 ? 1 : -2;
  if (alpha != 1) attrs.push_back(attribute("alpha", alpha));
  if (beta != 1) attrs.push_back(attribute("beta", beta));
  Range range = of_products(a.range, b.range, static_cast<double>(inner.most()));
  range = {range.low * alpha, range.high * alpha, range.step * alpha, range.error * alpha};
  std::vector<std::string> inputs = {a.name, b.name};
  if (g.chance(0.7)) {
    Shape shape = g.one_of<Shape>({{}, {columns}, {1, columns}, {rows, 1}, {rows, columns}, {1}});
    Value c = g.tensor(a.dtype, shape);
    inputs.push_back(c.name);
    range = {range.low - 4, range.high + 4, std::min(range.step, c.range.step), range.error + 2 * c.range.error};
  }
  g.emit(name, inputs, attrs, a.dtype, {rows, columns}, range);
}

void einsum(G& g, const char* name) {
  auto equation =
      g.one_of<std::string>({"ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->", "ij->j", "bhi,bhj->bhij", "i,j->ij",
                             "ij,ij->i", "ij,jk", "bik,kj->bij", "ii->i", "bij,bkj->bki", "i,i", "ijk,k->ij"});
  DType dtype = g.chance(0.8) ? kFloat32 : kFloat64;
  std::map<char, Dim> letters;
  std::vector<Value> operands;
  std::string left = equation.substr(0, equation.find('-')), term;
  left += ',';
  for (char c : left) {
    if (c != ',') {
      term += c;
      continue;
    }
    Shape shape;
    for (char letter : term) shape.push_back(letters.emplace(letter, g.new_dim()).first->second);
    Value operand;
    for (const auto& [known, value] : g.graph().values) {
      if (value.dtype == dtype && value.shape == shape && g.chance(0.5)) operand = value;
    }
    if (operand.name.empty()) operand = g.tensor(dtype, shape);
    operands.push_back(operand);
    term.clear();
  }
  std::string result;
  if (equation.find("->") != std::string::npos) {
    result = equation.substr(equation.find("->") + 2);
  } else {
    // Implicit form: letters that occur once, sorted.
    for (const auto& [letter, dim] : letters) {
      if (std::count(left.begin(), left.end(), letter) == 1) result += letter;
    }
  }
  Shape shape;
  double count = 1;
  for (const auto& [letter, dim] : letters) {
    if (result.find(letter) == std::string::npos) count *= static_cast<double>(dim.most());
  }
  for (char letter : result) shape.push_back(letters.at(letter));
  std::vector<std::string> inputs;
  for (const Value& operand : operands) inputs.push_back(operand.name);
  Range one = {1, 1, 1, 0};
  g.emit(name, inputs, {attribute("equation", equation.c_str())}, dtype, shape,
         of_products(operands[0].range, operands.size() > 1 ? operands[1].range : one, count));
}

void matmul_integer(G& g, const char* name) {
  DType left = g.chance(0.5) ? DType::int_(8) : DType::uint(8), right = g.chance(0.5) ? DType::int_(8) : DType::uint(8);
  Dim rows = g.new_dim(), inner = g.new_dim(), columns = g.new_dim();
  G::need(inner.least() > 0);  // ONNX Runtime 1.27 leaves the result of no products unset
  Value a = g.tensor(left, {rows, inner}, {-8, 8, 1, 0}), b = g.tensor(right, {inner, columns}, {-8, 8, 1, 0});
  std::vector<std::string> inputs = {a.name, b.name};
  if (g.chance(0.5)) inputs.push_back(g.scalar(left, 2));
  if (inputs.size() == 3 && g.chance(0.5)) inputs.push_back(g.scalar(right, 1));
  double most = 200 * static_cast<double>(inner.most());
  g.emit(name, inputs, {}, kInt32, {rows, columns}, {-most, most, 1, 0});
}

}  // namespace

std::vector<Operator> reduction_operators() {
  std::vector<Operator> rows;
  for (const char* name : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                           "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})
    rows.push_back({name, 13, reduce});
  for (const char* name : {"ArgMax", "ArgMin"}) rows.push_back({name, 13, arg_reduce});
  for (const char* name : {"Softmax", "LogSoftmax", "Hardmax"}) rows.push_back({name, 13, softmax});
  rows.insert(rows.end(), {{"CumSum", 13, cumsum},
                           {"MatMul", 13, matmul},
                           {"MatMul", 13, new_matmul},
                           {"Gemm", 13, gemm},
                           {"Einsum", 13, einsum},
                           {"MatMulInteger", 13, matmul_integer}});
  return rows;
}

}  // namespace relaxc::test::onnx_graphs
