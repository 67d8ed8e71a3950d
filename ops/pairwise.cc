// Probabilities of classes from those of pairs of classes.
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// The second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling"
// (2004), with the limits of libsvm: p minimizes the sum over i and j of (r[j, i] p[i] - r[i, j] p[j])^2, and each step
// solves the equation of one class.
constexpr int64_t kMostRounds = 100;
constexpr double kLimit = 0.005;  // of the error, divided by the number of classes

class Coupling {
 public:
  Coupling(const OpCall& op, Inputs x, Buffer result, Expr row)
      : x_(x), result_(std::move(result)), row_(std::move(row)), classes_(op.shape(0)[1]), dtype_(op.dtype(0)) {}

  Stmt run() const {
    VarRef k = make_dim("k");
    Expr limit = binary(BinaryOp::kDiv, scalar_imm(kLimit, dtype_), cast_to(classes_, dtype_));
    Expr start = binary(BinaryOp::kDiv, one(dtype_), cast_to(classes_, dtype_));
    return seq({make(AllocBuffer{quotients_, {}}), round_.declared(), error_.declared(), product_.declared(),
                round_.set(int_imm(0)), loop(k, classes_, set_p(k, start)), error_.set(highest(dtype_)), multiply(),
                measure(),
                make(While{round_.get() < int_imm(kMostRounds) && error_.get() >= limit,
                           seq({round_.set(round_.get() + 1), improve(), multiply(), measure()})})});
  }

 private:
  Expr r(const Expr& i, const Expr& j) const { return load(x_[0], {row_, i, j}); }
  Expr p(const Expr& k) const { return load(result_, {row_, k}); }
  Stmt set_p(const Expr& k, const Expr& value) const { return store(result_, value, {row_, k}); }
  Expr quotient(const Expr& k) const { return load(quotients_, {k}); }
  Expr over(const Expr& a, const Expr& b) const { return binary(BinaryOp::kDiv, a, b); }
  // Returns the matrix's element beside the diagonal.
  Expr beside(const Expr& i, const Expr& j) const { return zero(dtype_) - r(j, i) * r(i, j); }
  // Sets the sum of squares that the diagonal has at i.
  Stmt diagonal(const Expr& i, const LocalScalar& sum) const {
    VarRef j = make_dim("j");
    return seq(
        {sum.set(zero(dtype_)), loop(j, classes_, when(not_equal(i, j), sum.set(sum.get() + r(j, i) * r(j, i))))});
  }
  // Sets quotients_ = Q p, and product_ = p Q p.
  Stmt multiply() const {
    VarRef i = make_dim("i"), j = make_dim("j");
    LocalScalar sum("diagonal", dtype_);
    Stmt add = when(not_equal(i, j), store(quotients_, quotient(i) + beside(i, j) * p(j), {i}));
    return seq({product_.set(zero(dtype_)),
                loop(i, classes_,
                     seq({sum.declared(), diagonal(i, sum), store(quotients_, sum.get() * p(i), {i}),
                          loop(j, classes_, add), product_.set(product_.get() + p(i) * quotient(i))}))});
  }
  Stmt measure() const {
    VarRef k = make_dim("k");
    Expr error = intrinsic("tir.abs", {quotient(k) - product_.get()}, dtype_);
    return seq({error_.set(zero(dtype_)), loop(k, classes_, error_.set(max(error_.get(), error)))});
  }
  Stmt improve() const {
    VarRef i = make_dim("i"), j = make_dim("j"), change = make_var("change", prim_type(dtype_));
    LocalScalar sum("diagonal", dtype_);
    Expr grown = one(dtype_) + change;
    Expr element = select(equal(i, j), sum.get(), beside(i, j));
    Expr product = product_.get() + change * (change * sum.get() + scalar_imm(2, dtype_) * quotient(i));
    Stmt update =
        seq({store(quotients_, over(quotient(j) + change * element, grown), {j}), set_p(j, over(p(j), grown))});
    return loop(
        i, classes_,
        seq({sum.declared(), diagonal(i, sum), make(Bind{change, over(product_.get() - quotient(i), sum.get())}),
             set_p(i, p(i) + change), product_.set(over(over(product, grown), grown)), loop(j, classes_, update)}));
  }

  Inputs x_;
  Buffer result_;
  Expr row_, classes_;
  DType dtype_;
  Buffer quotients_ = make_buffer("quotients", dtype_, {classes_});
  LocalScalar round_{"round", kInt64}, error_{"error", dtype_}, product_{"product", dtype_};
};

Type infer_pairwise(const OpCall& op) {
  require_rank(op, 0, 3);
  kFloats.check(op, op.dtype(0));
  op.require_equal(op.shape(0)[1], op.shape(0)[2], "classes of a pair");
  return tensor_type({op.shape(0)[0], op.shape(0)[1]}, op.dtype(0));
}
PrimFuncRef lower_pairwise(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  Buffer result = b.buffer("T_pairwise", op.dtype(0), {op.shape(0)[0], op.shape(0)[1]});
  const std::vector<Buffer>& inputs = x;
  b.block("T_pairwise", {op.shape(0)[0]}, {},
          [&](Axes i, Axes) { return ComputeBuilder::Bodies{std::nullopt, Coupling(op, inputs, result, i[0]).run()}; });
  return b.finish({result});
}

}  // namespace

std::vector<OpRow> pairwise_ops() {
  return {{.name = "relax.pairwise_probabilities",
           .doc = "probabilities of classes [n, k] from those of i against j, [n, k, k]",
           .inputs = {{"pairs", "[n, k, k]; the diagonal is not read"}},
           .infer = infer_pairwise,
           .infer_partial = infer_unknown,
           .legalize = lower_pairwise}};
}

}  // namespace relaxc
