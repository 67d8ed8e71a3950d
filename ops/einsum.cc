// Einstein summation: "ij,jk->ik", "...ii->...i", "i,i", ...
#include <array>
#include <map>
#include <set>

#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// The name of a dim: a letter, or the position (from the right) of a dim that "..." stands for.
struct Label {
  char letter;  // 0 for a dim of the ellipsis
  size_t from_right = 0;
  auto operator<=>(const Label&) const = default;
};
struct Equation {
  std::vector<std::vector<Label>> operands;  // one label per dim
  std::vector<Label> result, summed;         // summed in order of first use
  std::map<Label, Expr> extents;

  std::vector<Expr> dims(const std::vector<Label>& labels) const {
    return map_each(labels, [&](const Label& label) { return extents.at(label); });
  }
};

constexpr std::string_view kEllipsis = "...";
bool has_ellipsis(const std::string& term) { return term.find(kEllipsis) != std::string::npos; }

// Returns the labels of one term. `rank` tells how many dims the ellipsis stands for.
std::vector<Label> parse_term(const OpCall& op, const std::string& term, size_t rank) {
  size_t dots = term.find(kEllipsis), letters = term.size() - (has_ellipsis(term) ? kEllipsis.size() : 0);
  if (letters > rank || (!has_ellipsis(term) && letters != rank))
    op.fail("'{}' names {} dims of an operand of rank {}", term, letters, rank);
  std::vector<Label> labels;
  for (size_t k = 0; k < term.size(); ++k) {
    if (k == dots) {
      for (size_t d = rank - letters; d-- > 0;) labels.push_back({0, d});
      k += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[k]))) {
      labels.push_back({term[k], 0});
    } else {
      op.fail("unexpected '{}' in the subscripts", term[k]);
    }
  }
  return labels;
}

std::vector<Label> parse_result(const OpCall& op, const std::string& text, const Equation& equation, size_t ellipsis) {
  bool has_dots = has_ellipsis(text);
  std::vector<Label> result = parse_term(op, text, has_dots ? text.size() - kEllipsis.size() + ellipsis : text.size());
  if (!has_dots && ellipsis > 0) op.fail("the result of the subscripts has no '...'");
  for (const Label& label : result) {
    if (!equation.extents.contains(label)) op.fail("'{}' of the result is in no operand", label.letter);
    if (std::ranges::count(result, label) > 1) op.fail("'{}' is twice in the result", label.letter);
  }
  return result;
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',') terms.emplace_back();
    if (c != ',') terms.back() += c;
  }
  return terms;
}

Equation parse(const OpCall& op, const std::vector<Type>& operands) {
  std::string text = op.attrs<EinsumAttrs>().subscripts;
  std::erase(text, ' ');
  size_t arrow = text.find("->");
  std::vector<std::string> terms = split_terms(text.substr(0, arrow));
  if (terms.size() != operands.size()) op.fail("subscripts of {} operands, got {}", terms.size(), operands.size());

  Equation equation;
  std::vector<Label> order;  // of first use
  std::map<Label, int> uses;
  size_t ellipsis = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<Expr>& shape = *known_shape(operands[i]);
    std::vector<Label> labels = parse_term(op, terms[i], shape.size());
    for (size_t d = 0; d < labels.size(); ++d) {
      const Label& label = labels[d];
      if (label.letter == 0) ellipsis = std::max(ellipsis, label.from_right + 1);
      if (uses[label]++ == 0) order.push_back(label);
      auto [it, is_new] = equation.extents.emplace(label, shape[d]);
      if (!is_new) it->second = broadcast_shapes(op, {it->second}, {shape[d]})[0];  // a dim of 1 broadcasts
    }
    equation.operands.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    equation.result = parse_result(op, text.substr(arrow + 2), equation, ellipsis);
  } else {  // the ellipsis, then the letters used once, sorted
    for (size_t d = ellipsis; d-- > 0;) equation.result.push_back({0, d});
    for (const auto& [label, count] : uses) {
      if (label.letter != 0 && count == 1) equation.result.push_back(label);
    }
  }
  for (const Label& label : order) {
    if (!contains(equation.result, label)) equation.summed.push_back(label);
  }
  return equation;
}

DType einsum_dtype(const OpCall& op, const std::vector<Type>& operands) {
  DType dtype = common_dtype(op, operands);
  kNumbers.check(op, dtype);
  return dtype;
}

Type infer_einsum(const OpCall& op) {
  std::vector<Type> operands = tensor_list(op, 0);
  Equation equation = parse(op, operands);
  return tensor_type(equation.dims(equation.result), einsum_dtype(op, operands));
}

PrimFuncRef lower(const OpCall& op) {
  std::vector<Type> operands = tensor_list(op, 0);
  Equation equation = parse(op, operands);
  DType out_dtype = einsum_dtype(op, operands);
  ComputeBuilder b;
  std::vector<Buffer> x = inputs_of_tuple(b, op);
  auto product_of_elements = [&](Axes i, Axes r, DType dtype) {
    std::map<Label, Expr> axis;
    for (size_t d = 0; d < equation.result.size(); ++d) axis.emplace(equation.result[d], i[d]);
    for (size_t d = 0; d < equation.summed.size(); ++d) axis.emplace(equation.summed[d], r[d]);
    auto element = [&](size_t k) {
      std::vector<Expr> indices = map_each(equation.operands[k], [&](const Label& label) { return axis.at(label); });
      return cast_to(load_broadcast(x[k], indices), dtype);
    };
    // Multiplies from left to right. Thousands of factors are grouped, nested only as deep as their number's logarithm.
    std::function<Expr(size_t, size_t)> product = [&](size_t first, size_t last) {
      constexpr size_t kGroup = 16;
      size_t step = 1;
      while (last - first > step * kGroup) step *= kGroup;
      Expr result = step == 1 ? element(first) : product(first, first + step);
      for (size_t k = first + step; k < last; k += step) {
        result = result * (step == 1 ? element(k) : product(k, std::min(k + step, last)));
      }
      return result;
    };
    return product(0, x.size());
  };
  std::vector<Expr> shape = equation.dims(equation.result), summed = equation.dims(equation.summed);
  if (summed.empty())
    return b.finish(
        {b.compute("T_einsum", out_dtype, shape, [&](Axes i) { return product_of_elements(i, {}, out_dtype); })});
  DType dtype = accumulation_dtype(out_dtype);
  Buffer out = b.reduce("T_einsum", dtype, shape, summed, zero(dtype), combine_sum,
                        [&](Axes i, Axes r) { return product_of_elements(i, r, dtype); });
  return b.finish({as_dtype(b, out, out_dtype, "T_einsum_cast")});
}

// How many elements a dim of the run is taken for, when the order of products is chosen; and up to so many operands
// are put into an order. More are multiplied in one pass.
constexpr double kGuessedExtent = 64;
constexpr size_t kMostOrdered = 16;

// An operand, or a product of some of them.
struct Term {
  Expr value;
  std::vector<Label> labels;
};

// Fewer rows, columns or products of each sum take less time than the transpose of an operand.
constexpr int64_t kFewestRows = 8, kFewestColumns = 16, kFewestSummed = 4;

// A sum of products of two operands as a product of matrices: the columns' operand is the one that has the last label
// of the result. Labels of the result that both have, and those of one that stand before these, are those of a batch.
class MatrixProduct {
 public:
  MatrixProduct(const Equation& equation, const Term& x, const Term& y, const std::vector<Label>& result)
      : equation_(equation), result_(result) {
    const bool ends_x = !result.empty() && contains(x.labels, result.back());
    left_ = ends_x ? &y : &x;
    right_ = ends_x ? &x : &y;
  }

  // Returns nullopt where the einsum is not a product of matrices, where it is one without any transpose of the
  // operands, and where there are too few rows, columns or summed elements to gain. Constant matrices are packed, so
  // that these gain for any rows.
  std::optional<Expr> run(Builder& b) {
    if (!sort_labels() || !has_whole_dims(*left_) || !has_whole_dims(*right_)) return std::nullopt;
    const std::vector<Label> left = joined(batch_of(*left_), rows_, summed_);
    const std::vector<Label> right = joined(batch_of(*right_), summed_, columns_);
    const bool lies_well = columns_.size() == 1 && right_->labels.back() == columns_.back();
    const bool gains = right_->value.is<Constant>() || (!lies_well && !is_few(rows_, kFewestRows));
    if (!gains || is_few(columns_, kFewestColumns) || is_few(summed_, kFewestSummed)) return std::nullopt;
    Expr product =
        b.op("matmul", {matrices(*left_, left, {rows_, summed_}, b), matrices(*right_, right, {summed_, columns_}, b)});
    const std::vector<Label> made = joined(batch_, rows_, columns_);
    return permuted(b.op("reshape", {product, shape_expr(equation_.dims(made))}), made, result_, b);
  }

 private:
  static std::vector<Label> joined(std::vector<Label> a, const std::vector<Label>& b, const std::vector<Label>& c) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), c.begin(), c.end());
    return a;
  }
  static Expr permuted(const Expr& x, const std::vector<Label>& from, const std::vector<Label>& to, Builder& b) {
    if (from == to) return x;
    return b.op("permute_dims", {x}, AxesAttrs{map_each(to, [&](const Label& label) {
                  return static_cast<int64_t>(std::ranges::find(from, label) - from.begin());
                })});
  }

  bool sort_labels() {
    auto in_left = [&](const Label& label) { return contains(left_->labels, label); };
    auto in_right = [&](const Label& label) { return contains(right_->labels, label); };
    size_t end = result_.size();
    while (end > 0 && in_right(result_[end - 1]) && !in_left(result_[end - 1])) --end;
    columns_.assign(result_.begin() + static_cast<ptrdiff_t>(end), result_.end());
    size_t begin = end;
    while (begin > 0 && in_left(result_[begin - 1]) && !in_right(result_[begin - 1])) --begin;
    rows_.assign(result_.begin() + static_cast<ptrdiff_t>(begin), result_.begin() + static_cast<ptrdiff_t>(end));
    batch_.assign(result_.begin(), result_.begin() + static_cast<ptrdiff_t>(begin));
    if (rows_.empty()) {  // they stand elsewhere
      std::erase_if(batch_, [&](const Label& label) {
        if (in_right(label)) return false;
        rows_.push_back(label);
        return true;
      });
    }
    // In the order in which the columns' operand has them.
    for (const Label& label : right_->labels) {
      if (!contains(result_, label)) summed_.push_back(label);
    }
    auto is_summed_by_both = [&](const Label& label) { return contains(result_, label) || contains(summed_, label); };
    return !rows_.empty() && !columns_.empty() && !summed_.empty() && std::ranges::all_of(summed_, in_left) &&
           std::ranges::all_of(left_->labels, is_summed_by_both);
  }
  std::vector<Label> batch_of(const Term& term) const {
    std::vector<Label> result = batch_;
    std::erase_if(result, [&](const Label& label) { return !contains(term.labels, label); });
    return result;
  }
  // Returns whether no dim of 1 stands for one of another extent, and dims of unlike names are not taken for equal
  // ones.
  bool has_whole_dims(const Term& term) const {
    const std::vector<Expr>* dims = known_shape(term.value.type());
    return dims && tensor_dtype(term.value.type()) == kFloat32 &&
           std::ranges::equal(*dims, equation_.dims(term.labels),
                              [](const Expr& a, const Expr& b) { return structural_equal(simplify(a), simplify(b)); });
  }
  Expr extent(const std::vector<Label>& labels) const {
    Expr product = int_imm(1);
    for (const Expr& dim : equation_.dims(labels)) product = product * dim;
    return simplify(product);
  }
  bool is_few(const std::vector<Label>& labels, int64_t fewest) const {
    auto known = as_int(extent(labels));
    return known && *known < fewest;
  }
  // Returns the operand as matrices, in a batch that has dims of 1 for labels that only the other operand has.
  Expr matrices(const Term& term, const std::vector<Label>& order, std::array<std::vector<Label>, 2> dims,
                Builder& b) const {
    std::vector<Expr> shape;
    for (const Label& label : batch_) {
      const bool is_own = contains(term.labels, label);
      if (is_own || !shape.empty()) shape.push_back(is_own ? equation_.extents.at(label) : int_imm(1));
    }
    for (const std::vector<Label>& labels : dims) shape.push_back(extent(labels));
    return b.op("reshape", {permuted(term.value, term.labels, order, b), shape_expr(shape)});
  }

  const Equation& equation_;
  const std::vector<Label>& result_;
  const Term *left_, *right_;
  std::vector<Label> batch_, rows_, columns_, summed_;
};

// Writes a sum of products of several operands as sums of products of two, each over the labels that nothing else has:
// the pair whose product takes the fewest operations first (opt_einsum's greedy order). Products of matrices become
// such, where an operand has to be transposed.
class PairByPair {
 public:
  PairByPair(const OpCall& op, Builder& b) : b_(b), equation_(parse(op, tensor_list(op, 0))) {
    const Tuple* operands = op.arg(0).as<Tuple>();
    for (size_t k = 0; operands && k < operands->items.size(); ++k)
      terms_.push_back({operands->items[k], equation_.operands[k]});
  }

  std::optional<Expr> run() {
    // Without a sum, one pass over the result does all products. Names of labels are letters.
    const bool is_short = terms_.size() > 1 && terms_.size() <= kMostOrdered && equation_.extents.size() <= 26;
    if (!is_short || equation_.summed.empty() || has_repeated_labels()) return std::nullopt;
    if (terms_.size() == 2) return MatrixProduct(equation_, terms_[0], terms_[1], equation_.result).run(b_);
    while (terms_.size() > 2) {
      auto [i, j] = cheapest_pair();
      Term product = multiplied(terms_[i], terms_[j], rest_of(i, j));
      terms_.erase(terms_.begin() + static_cast<ptrdiff_t>(j));
      terms_[i] = std::move(product);
    }
    return multiplied(terms_[0], terms_[1], equation_.result).value;
  }

 private:
  bool has_repeated_labels() const {
    return std::ranges::any_of(terms_, [](const Term& term) {
      return std::set<Label>(term.labels.begin(), term.labels.end()).size() < term.labels.size();
    });
  }
  double cost(const Term& a, const Term& b) const {
    std::set<Label> all(a.labels.begin(), a.labels.end());
    all.insert(b.labels.begin(), b.labels.end());
    double product = 1;
    for (const Label& label : all) {
      auto extent = as_int(equation_.extents.at(label));
      product *= extent ? static_cast<double>(*extent) : kGuessedExtent;
    }
    return product;
  }
  std::pair<size_t, size_t> cheapest_pair() const {
    std::pair<size_t, size_t> best{0, 1};
    for (size_t i = 0; i < terms_.size(); ++i) {
      for (size_t j = i + 1; j < terms_.size(); ++j) {
        if (cost(terms_[i], terms_[j]) < cost(terms_[best.first], terms_[best.second])) best = {i, j};
      }
    }
    return best;
  }
  // Returns the labels of the pair that the result or another operand has.
  std::vector<Label> rest_of(size_t i, size_t j) const {
    std::vector<Label> kept;
    auto is_used = [&](const Label& label) {
      if (contains(equation_.result, label)) return true;
      for (size_t k = 0; k < terms_.size(); ++k) {
        if (k != i && k != j && contains(terms_[k].labels, label)) return true;
      }
      return false;
    };
    for (size_t k : {i, j}) {
      for (const Label& label : terms_[k].labels) {
        if (is_used(label) && !contains(kept, label)) kept.push_back(label);
      }
    }
    return kept;
  }
  std::string text_of(const std::vector<Label>& labels) {
    std::string text;
    for (const Label& label : labels)
      text += names_.try_emplace(label, static_cast<char>('a' + names_.size())).first->second;
    return text;
  }
  Term multiplied(const Term& x, const Term& y, const std::vector<Label>& labels) {
    if (auto product = MatrixProduct(equation_, x, y, labels).run(b_)) return {*product, labels};
    std::string subscripts = fmt::format("{},{}->{}", text_of(x.labels), text_of(y.labels), text_of(labels));
    return {b_.op("einsum", {tuple({x.value, y.value})}, EinsumAttrs{.subscripts = subscripts}), labels};
  }

  Builder& b_;
  Equation equation_;
  std::vector<Term> terms_;
  std::map<Label, char> names_;
};

Expr decompose_einsum(const OpCall& op, Builder& b) {
  std::optional<Expr> result = PairByPair(op, b).run();
  return result ? *result : b.op(op.name(), op.call.args, op.call.attrs);  // lowered as it is
}

}  // namespace

std::vector<OpRow> einsum_ops() {
  return {{.name = "relax.einsum",
           .doc = "sum of products over the labels that the result leaves out: subscripts=\"bij,bjk->bik\"",
           .inputs = {{"operands", "tuple of tensors"}},
           .attrs = op_attrs<EinsumAttrs>(),
           .pattern = OpPattern::kAnchor,
           .infer = infer_einsum,
           .legalize = lower,
           .decompose = decompose_einsum}};
}

}  // namespace relaxc
