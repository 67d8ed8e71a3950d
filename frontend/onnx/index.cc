// Gathers, scatters, sorts and other operators on positions.
#include <map>

#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

int64_t axis_of(Node& n) { return n.axis(n.attr_int("axis", 0), n.rank(0)); }
Expr gather(Node& n) { return n.op("take", n.tensors(), TakeAttrs{.axis = axis_of(n)}); }
Expr gather_elements(Node& n) { return n.op("gather_elements", n.tensors(), AxisAttrs{axis_of(n)}); }
// Returns the operands with the number of coordinates in the last dim of `indices`, which the ranks tell where the
// model leaves it open: the result has a dim for each dim of the data behind the coordinates.
std::vector<Expr> with_coordinates(Node& n, std::optional<int64_t> result, int64_t batch_dims) {
  std::vector<Expr> operands = n.tensors();
  std::vector<Expr> dims = n.shape(1);
  if (dims.empty() || as_int(dims.back())) return operands;
  if (!result) n.fail_open_rank(operands[1], "the last dim of the indices", dims.size() == 1 ? "[2]" : "[n, 2]");
  const Expr count = int_imm(n.rank(1) - 1 + n.rank(0) - batch_dims - *result);
  n.require_equal(dims.back(), count, "coordinates of an index, as the ranks tell them");
  dims.back() = count;
  operands[1] = n.match_cast(operands[1], tensor_type(std::move(dims), n.dtype(1)));
  return operands;
}
Expr gather_nd(Node& n) {
  const int64_t batch_dims = n.attr_int("batch_dims", 0);
  return n.op("gather_nd", with_coordinates(n, n.output_rank(0), batch_dims), GatherNdAttrs{batch_dims});
}
std::string reduction_of(Node& n) {
  std::string reduction = n.attr_string("reduction", "none");
  return reduction == "none" ? "update" : reduction;
}
Expr scatter(Node& n) { return n.op("scatter_elements", n.tensors(), ScatterElementsAttrs{.axis = axis_of(n)}); }
Expr scatter_elements(Node& n) {
  return n.op("scatter_elements", n.tensors(), ScatterElementsAttrs{.axis = axis_of(n), .reduction = reduction_of(n)});
}
Expr scatter_nd(Node& n) {
  return n.op("scatter_nd", with_coordinates(n, n.rank(2), 0), ScatterNdAttrs{reduction_of(n)});
}

Outputs one_hot(Node& n) {
  Expr indices = n.tensor(0), values = n.tensor(2);
  if (n.rank(2) != 1) n.fail("values have rank {}, expected 1", n.rank(2));
  n.require_equal(n.dim(2, 0), int_imm(2), "number of values");
  if (n.dtype(0).is_float()) indices = n.cast(indices, kInt64);
  auto pick = [&](int64_t i) { return n.reshape(n.slice(values, 0, int_imm(i), int_imm(i + 1)), {}); };
  Expr depth = n.scalar_int(1), off = pick(0), on = pick(1);
  int64_t axis = n.axis(n.attr_int("axis", -1), n.rank(0) + 1);
  return {n.of(n.op("dyn.one_hot", {indices, on, off, depth}, LastAxisAttrs{axis}))};
}

Outputs topk(Node& n) {
  DynamicTopKAttrs attrs{.axis = n.axis(n.attr_int("axis", -1), n.rank(0)), .largest = n.attr_int("largest", 1) != 0};
  Expr k = n.opset() < 10 ? int_imm(n.required_int("k")) : n.scalar_int(1);
  return n.items_of(n.op("dyn.topk", {n.tensor(0), k}, attrs), 2);
}

Outputs reverse_sequence(Node& n) {
  if (n.rank(1) != 1) n.fail("lengths have rank {}, expected 1", n.rank(1));
  int64_t time = n.axis(n.attr_int("time_axis", 0), n.rank(0), "time_axis");
  ReverseSequenceAttrs attrs{.time_axis = time, .batch_axis = n.attr_int("batch_axis", 1)};
  // Lengths are between 0 and the size of the time axis.
  auto extreme = [&](const char* name) {
    return n.ints_of(n.of(n.reduce(name, n.cast(n.tensor(1), kInt64), {0}, false))).at(0);
  };
  Expr longest = extreme("max"), shortest = extreme("min");
  n.require_equal(min(longest, n.shape(0)[time]), longest, "longest sequence");
  n.require_equal(max(shortest, int_imm(0)), shortest, "shortest sequence");
  return {n.of(n.op("reverse_sequence", n.tensors(), attrs))};
}

// A scalar has no axes, so that its positions have no coordinates: [0, 0] or [0, 1], other than those of NumPy and of
// ONNX Runtime, which takes it for a vector. The strings that are not empty are found.
Expr nonzero(Node& n) {
  Expr x = n.tensor(0);
  if (n.dtype(0).is_string()) x = n.builder().op("string.full_match", {x}, PatternAttrs{"(?s).+"});
  Expr found = n.op("nonzero", {x});
  return n.rank(0) == 0 ? n.slice(found, 0, int_imm(0), int_imm(0)) : found;
}
Expr compress(Node& n) {
  if (n.rank(1) != 1) n.fail("the condition has rank {}, expected 1", n.rank(1));
  Expr x = n.tensor(0), condition = n.tensor(1);
  int64_t axis = n.has_attr("axis") ? axis_of(n) : 0;
  if (!n.has_attr("axis")) x = n.reshape(x, {n.simplify(product(n.shape(0)))});
  Expr found = n.op("nonzero", {condition});
  return n.op("take", {x, n.reshape(found, {n.dim_of(found, 1)})}, TakeAttrs{.axis = axis});
}

// The outputs are the distinct elements, or slices along an axis, where each comes first, which of them each is, and
// how often each occurs.
Outputs unique(Node& n) {
  std::vector<Expr> args = {n.tensor(0), bool_imm(n.attr_int("sorted", 1) != 0)};
  std::vector<size_t> wanted = {0};
  for (size_t i = 1; i < 4; ++i) {
    args.push_back(bool_imm(n.has_output(i)));
    if (n.has_output(i)) wanted.push_back(i);
  }
  if (n.has_attr("axis")) args.push_back(int_imm(axis_of(n)));
  Expr found = n.op("unique", args);
  if (wanted.size() == 1) return {n.of(found)};
  Outputs items = n.items_of(found, std::ssize(wanted)), outputs(std::min<size_t>(n.outputs(), 4));
  for (size_t k = 0; k < wanted.size(); ++k) outputs[wanted[k]] = items[k];
  return outputs;
}

// ---- TfIdfVectorizer

// The n-grams of a pool, by length, of which some count; and the column of each.
struct Pool {
  std::vector<int64_t> items, starts, columns;
  int64_t least, most;
  std::vector<std::string> words = {};  // of a pool of strings, each once
  std::map<std::string, int64_t> numbers = {};
  Pool(Node& n)
      : items(n.attr_ints("pool_int64s").value_or(std::vector<int64_t>())),
        starts(n.required_ints("ngram_counts")),
        columns(n.required_ints("ngram_indexes")),
        least(n.required_int("min_gram_length")),
        most(n.required_int("max_gram_length")) {
    std::vector<std::string> texts = n.attr_strings("pool_strings");
    if (texts.empty() == items.empty())
      n.fail("expected n-grams in one of the attributes 'pool_int64s' and 'pool_strings'");
    for (const std::string& text : texts) {  // a string is the number of its first occurrence
      auto [place, is_new] = numbers.try_emplace(text, std::ssize(words));
      if (is_new) words.push_back(text);
      items.push_back(place->second);
    }
    if (least < 1 || most < least || most > std::ssize(starts))
      n.fail("min_gram_length is {}, max_gram_length {} and ngram_counts has {} numbers", least, most, starts.size());
    starts.push_back(std::ssize(items));
    int64_t count = 0;
    for (int64_t length = 1; length < std::ssize(starts); ++length) {
      int64_t begin = starts[static_cast<size_t>(length) - 1], size = starts[static_cast<size_t>(length)] - begin;
      if (begin < 0 || size < 0 || size % length != 0)
        n.fail(
            "ngram_counts: n-grams of length {0} are items {1} to {2} of the pool, expected a multiple of {0} of them",
            length, begin, begin + size);
      count += size / length;
    }
    if (count != std::ssize(columns)) n.fail("{} n-grams and {} ngram_indexes", count, columns.size());
    for (int64_t column : columns) {
      if (column < 0 || column >= (int64_t{1} << 24)) n.fail("an ngram_index is {}, expected 0 to 2^24 - 1", column);
    }
  }
};
// Returns how often each n-gram of the pool occurs in each row; those of a length that does not count have none.
Expr ngram_counts(Node& n, const Expr& rows, const Pool& pool) {
  const NgramAttrs attrs{n.required_int("max_skip_count")};
  std::vector<Expr> parts;
  for (int64_t length = 1; length < std::ssize(pool.starts); ++length) {
    int64_t begin = pool.starts[static_cast<size_t>(length) - 1], end = pool.starts[static_cast<size_t>(length)];
    if (begin == end) continue;
    int64_t count = (end - begin) / length;
    if (length < pool.least || length > pool.most) {
      parts.push_back(n.op("zeros", {shape_expr({n.dim_of(rows, 0), int_imm(count)})}, FillAttrs{kInt64}));
      continue;
    }
    Tensor table = Tensor::empty({count, length}, n.dtype_of_tensor(rows));
    for (int64_t i = begin; i < end; ++i) table.set_int(i - begin, pool.items[static_cast<size_t>(i)]);
    parts.push_back(n.op("dyn.count_ngrams", {rows, constant(table)}, attrs));
  }
  if (parts.empty()) n.fail("the pool is empty");
  return join(n, parts, 1);
}
Expr tf_idf(Node& n) {
  Pool pool(n);
  std::vector<Expr> shape = n.shape(0);
  if (shape.empty() || shape.size() > 2) n.fail("input has rank {}, expected 1 or 2", shape.size());
  if (n.dtype(0) != kInt32 && n.dtype(0) != kInt64 && !n.dtype(0).is_string())
    n.fail("the input is {}, expected int32, int64 or strings", to_string(n.dtype(0)));
  if (n.dtype(0).is_string() == pool.words.empty())
    n.fail("the input is {}, the n-grams are {}", to_string(n.dtype(0)), pool.words.empty() ? "integers" : "strings");
  Expr rows = n.tensor(0);
  if (!pool.words.empty())  // words that are not in the pool are -1, which no n-gram has
    rows = n.builder().op("string.find",
                          {rows, constant(Tensor::strings({std::ssize(pool.words)}, pool.words), n.span())});
  if (shape.size() == 1) rows = n.reshape(rows, {int_imm(1), shape[0]});
  Expr counts = n.cast(ngram_counts(n, rows, pool), kFloat32);
  std::string mode = n.attr_string("mode", "");
  std::vector<double> weights = n.attr_floats("weights");
  if (weights.empty()) weights.assign(pool.columns.size(), 1);
  if (weights.size() != pool.columns.size()) n.fail("{} weights for {} n-grams", weights.size(), pool.columns.size());
  if (mode == "IDF") counts = n.binary("minimum", counts, n.scalar(1, kFloat32));
  if (mode == "IDF" || mode == "TFIDF") counts = n.mul(counts, constant(float_list(weights)));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") n.fail("mode is '{}', expected TF, IDF or TFIDF", mode);
  // Each column of the result takes the n-gram that names it, or a column of zeros behind them. Where several name it
  // they are added: round k takes the k-th of each column.
  int64_t columns = std::ranges::max(pool.columns) + 1, ngrams = std::ssize(pool.columns);
  std::vector<std::vector<int64_t>> rounds;
  std::vector<size_t> taken(static_cast<size_t>(columns));
  for (int64_t k = 0; k < ngrams; ++k) {
    auto column = static_cast<size_t>(pool.columns[static_cast<size_t>(k)]);
    const size_t round = taken[column]++;
    constexpr size_t kMostRounds = 64;
    if (round == kMostRounds) n.unsupported("ngram_indexes that name a column more than {} times", kMostRounds);
    if (round == rounds.size()) rounds.emplace_back(static_cast<size_t>(columns), ngrams);
    rounds[round][column] = k;
  }
  Expr padded = n.op("dyn.pad", {counts, shape_expr(int_imms({0, 0, 0, 1}))}, PadAttrs()), result = padded;
  for (size_t round = 0; round < rounds.size(); ++round) {
    Expr sources = constant(Tensor::of<int64_t>({columns}, kInt64, rounds[round]));
    Expr part = n.op("take", {padded, sources}, TakeAttrs{.axis = 1});
    result = round == 0 ? part : n.add(result, part);
  }
  return shape.size() == 2 ? result : n.reshape(result, {int_imm(columns)});
}

}  // namespace

std::vector<ConverterRow> index_converters() {
  return {
      {"Gather", 1, 2, 2, gather, "axis"},
      {"GatherElements", 11, 2, 2, gather_elements, "axis"},
      {"GatherND", 11, 2, 2, gather_nd, "batch_dims"},
      {"Scatter", 9, 3, 3, scatter, "axis", "", 0, "", 11},
      {"ScatterElements", 11, 3, 3, scatter_elements, "axis reduction"},
      {"ScatterND", 11, 3, 3, scatter_nd, "reduction"},
      {"OneHot", 9, 3, 3, one_hot, "axis"},
      {"TopK", 1, 1, 1, topk, "axis k largest sorted"},
      {"TopK", 10, 2, 2, topk, "axis largest sorted"},
      {"ReverseSequence", 10, 2, 2, reverse_sequence, "batch_axis time_axis"},
      {"NonZero", 9, 1, 1, nonzero},
      {"Compress", 9, 2, 2, compress, "axis"},
      {"Unique", 11, 1, 1, unique, "axis sorted"},
      {"TfIdfVectorizer", 9, 1, 1, tf_idf,
       "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s pool_strings "
       "weights"},
  };
}

}  // namespace relaxc::onnx_import
