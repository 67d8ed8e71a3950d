// Gradients of matrix products and of sums of products.
#include <set>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/gradient.h"

namespace relaxc::gradients {

namespace {

using T = const Term&;
using G = const GradientCall&;

Term product_of(T a, T b) { return a.op("matmul", b); }
Term transposed(T x) {
  std::vector<int64_t> axes = int_range(0, x.rank());
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return x.permuted(axes);
}

// The operands of a product as matrices: a vector is a row on the left, a column on the right.
struct Matrices {
  Term a, b, dy;
  explicit Matrices(G g) : a(g.x(0)), b(g.x(1)), dy(g.dy()) {
    std::vector<Expr> dims = dy.shape();
    if (a.rank() == 1) dims.insert(dims.end() - (b.rank() > 1), int_imm(1));
    if (b.rank() == 1) dims.push_back(int_imm(1));
    if (dims.size() != dy.shape().size()) dy = dy.reshaped(dims);
    if (a.rank() == 1) a = a.reshaped({int_imm(1), a.dim(0)});
    if (b.rank() == 1) b = b.reshaped({b.dim(0), int_imm(1)});
    const DType dtype = a.dtype();
    dy = dy.as(dtype);
  }
};
// A batch that an operand does not have is summed over, as any broadcast.
Expr matmul_of_left(G g) {
  Matrices m(g);
  Term da = product_of(m.dy, transposed(m.b));
  return da.expr;
}
// All rows of a batch that share the right operand make one product.
Expr matmul_of_right(G g) {
  Matrices m(g);
  if (m.b.rank() == 2 && m.a.rank() > 2) {
    const std::vector<Expr> rows(m.a.shape().begin(), m.a.shape().end() - 1);
    const Expr count = simplify(product(rows));
    m.a = m.a.reshaped({count, m.a.shape().back()});
    m.dy = m.dy.reshaped({count, m.dy.shape().back()});
  }
  Term db = product_of(transposed(m.a), m.dy);
  if (g.x(1).rank() > 1) return db.expr;
  return db.reshaped({db.shape().begin(), db.shape().end() - 1}).expr;
}
Expr outer(const OpCall& op, Builder& b) {
  Term x{op.arg(0), &b}, y{op.arg(1), &b};
  return (x.reshaped({x.dim(0), int_imm(1)}) * y).expr;
}

// ---- einsum

struct Subscripts {
  std::vector<std::string> operands;
  std::string result;
};
Subscripts read_subscripts(G g) {
  std::string text = g.attrs<EinsumAttrs>().subscripts;
  std::erase(text, ' ');
  if (text.find('.') != std::string::npos) g.unsupported("is not known for an ellipsis");
  Subscripts result;
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    result.operands.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (arrow != std::string::npos) {
    result.result = text.substr(arrow + 2);
    return result;
  }
  for (char label : std::set<char>(left.begin(), left.end())) {
    if (label != ',' && std::ranges::count(left, label) == 1) result.result += label;
  }
  return result;
}
// The gradient of an operand is the sum of products of dy and the other operands, with ones for a label that only this
// operand has.
Expr gradient_of_operand(G g, const Subscripts& subscripts, const std::vector<Expr>& operands, size_t which) {
  const std::string& labels = subscripts.operands[which];
  if (std::set<char>(labels.begin(), labels.end()).size() != labels.size())
    g.unsupported("is not known for the diagonal '{}'", labels);
  const Term operand = g.term(operands[which]);
  std::string text = subscripts.result;
  std::vector<Expr> factors = {g.dy().expr};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == which) continue;
    text += "," + subscripts.operands[i];
    factors.push_back(operands[i]);
  }
  for (size_t d = 0; d < labels.size(); ++d) {
    if (text.find(labels[d]) != std::string::npos) continue;
    text += std::string(",") + labels[d];
    factors.push_back(
        g.builder.op("ones", {shape_expr({operand.dim(static_cast<int64_t>(d))})}, FillAttrs{operand.dtype()}));
  }
  return g.builder.op("einsum", {tuple(factors)}, EinsumAttrs{text + "->" + labels});
}
Expr einsum(G g) {
  const Subscripts subscripts = read_subscripts(g);
  const size_t count = subscripts.operands.size();
  const Tuple* written = g.op.arg(0).as<Tuple>();
  std::vector<Expr> operands, gradients;
  for (size_t i = 0; i < count; ++i) {
    operands.push_back(written ? written->items[i]
                               : g.builder.emit(tuple_get(g.op.arg(0), static_cast<int64_t>(i), g.op.span)));
  }
  for (size_t i = 0; i < count; ++i) gradients.push_back(gradient_of_operand(g, subscripts, operands, i));
  return tuple(gradients);
}

}  // namespace

std::vector<GradientRow> product_gradients() {
  return {
      {"matmul", {{matmul_of_left, matmul_of_right}}},
      {"outer", written(outer)},
      {"einsum", {{einsum}}},
  };
}

}  // namespace relaxc::gradients
