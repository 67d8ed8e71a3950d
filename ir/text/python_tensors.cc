// What Python's statements need to know of tensors before the module is read: how many dims they have. So
// len(x.shape), x.ndim, list(x.shape) and n, m = x.shape have values in the functions of te that a builder calls.
#include <algorithm>

#include "ir/text/parsing.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

namespace {

const Syntax* given(const Syntax& call, size_t i, std::string_view keyword) {
  for (const Syntax::Keyword& each : call.keywords) {
    if (each.name == keyword) return each.value;
  }
  return i + 1 < call.children.size() ? call.children[i + 1] : nullptr;
}

// Returns how many items a written list has; nullopt for others.
std::optional<int64_t> count_of(const Syntax* at) {
  auto is_starred = [](const Syntax* each) { return each->kind == SyntaxKind::kStarred; };
  if (!at || !is_list(*at) || std::ranges::any_of(at->children, is_starred)) return std::nullopt;
  return std::ssize(at->children);
}

// Returns the shape in te.placeholder((n, m)), te.compute((n, m), ...), relax.Var("x", R.Tensor((n, m))), R.Tensor((n,
// m)); null for other calls.
const Syntax* shape_in(const Syntax& call) {
  std::string_view form = call.children[0]->text;
  if (is_one_of(form, {"placeholder", "compute", "Tensor", "TensorStructInfo"})) return given(call, 0, "shape");
  if (!is_one_of(form, {"Var", "DataflowVar"})) return nullptr;
  const Syntax* type = given(call, 1, "struct_info");
  bool is_tensor = type && is_call(*type) && is_one_of(type->children[0]->text, {"Tensor", "TensorStructInfo"});
  return is_tensor ? given(*type, 0, "shape") : type;
}

// Returns the name of an operator of the graph, or of a function of topi: "nn.relu"; "" for other calls.
std::string operator_in(const Syntax& callee) {
  std::string path = spelling(callee);
  for (std::string_view prefix : {"tvm.", "relax.op.", "rx.op.", "relax.", "rx.", "topi.", "R.", "$R."}) {
    if (path.starts_with(prefix)) path.erase(0, prefix.size());
  }
  return path == spelling(callee) ? "" : path;
}

// How the rank of an operator's result follows from its arguments.
enum class RankOf : uint8_t { kFirst, kWidest, kShape, kReduced, kTwo, kMore };
constexpr std::pair<std::string_view, RankOf> kRanks[] = {{"abs", RankOf::kFirst},
                                                          {"add", RankOf::kWidest},
                                                          {"astype", RankOf::kFirst},
                                                          {"batch_matmul", RankOf::kWidest},
                                                          {"broadcast_to", RankOf::kShape},
                                                          {"cast", RankOf::kFirst},
                                                          {"clip", RankOf::kFirst},
                                                          {"concat", RankOf::kFirst},
                                                          {"concatenate", RankOf::kFirst},
                                                          {"cumsum", RankOf::kFirst},
                                                          {"dense", RankOf::kFirst},
                                                          {"divide", RankOf::kWidest},
                                                          {"erf", RankOf::kFirst},
                                                          {"exp", RankOf::kFirst},
                                                          {"expand_dims", RankOf::kMore},
                                                          {"flip", RankOf::kFirst},
                                                          {"floor_divide", RankOf::kWidest},
                                                          {"full", RankOf::kShape},
                                                          {"linear", RankOf::kFirst},
                                                          {"log", RankOf::kFirst},
                                                          {"matmul", RankOf::kWidest},
                                                          {"max", RankOf::kReduced},
                                                          {"maximum", RankOf::kWidest},
                                                          {"mean", RankOf::kReduced},
                                                          {"min", RankOf::kReduced},
                                                          {"minimum", RankOf::kWidest},
                                                          {"multiply", RankOf::kWidest},
                                                          {"negative", RankOf::kFirst},
                                                          {"nn.batch_flatten", RankOf::kTwo},
                                                          {"nn.flatten", RankOf::kTwo},
                                                          {"nn.matmul", RankOf::kWidest},
                                                          {"ones", RankOf::kShape},
                                                          {"permute_dims", RankOf::kFirst},
                                                          {"power", RankOf::kWidest},
                                                          {"prod", RankOf::kReduced},
                                                          {"relu", RankOf::kFirst},
                                                          {"repeat", RankOf::kFirst},
                                                          {"reshape", RankOf::kShape},
                                                          {"rsqrt", RankOf::kFirst},
                                                          {"sigmoid", RankOf::kFirst},
                                                          {"sqrt", RankOf::kFirst},
                                                          {"square", RankOf::kFirst},
                                                          {"strided_slice", RankOf::kFirst},
                                                          {"subtract", RankOf::kWidest},
                                                          {"sum", RankOf::kReduced},
                                                          {"tanh", RankOf::kFirst},
                                                          {"transpose", RankOf::kFirst},
                                                          {"zeros", RankOf::kShape}};

}  // namespace

// Returns the dims of A.shape, A.shape[0] and so on, where the rank of A is known; other values themselves.
PythonValue Python::expanded(const PythonValue& value) {
  if (PythonResult dims = model_dims(value)) return *dims;
  bool is_shape = value.is(Kind::kSyntax) && value.syntax->kind == SyntaxKind::kAttribute &&
                  value.syntax->text == "shape" && is_name(*value.syntax->children[0]);
  auto rank = is_shape ? ranks_.find(value.syntax->children[0]->text) : ranks_.end();
  if (rank == ranks_.end()) return value;
  std::vector<PythonValue> dims;
  for (int64_t i = 0; i < rank->second; ++i) {
    const Syntax* position = lift(python_int(i), *value.syntax);
    if (PythonResult known = known_dim(value, i)) {
      dims.push_back(*known);
      continue;
    }
    dims.push_back(node_like(heap_.node(SyntaxKind::kSubscript, *value.syntax), {value.syntax, position}, heap_));
  }
  PythonValue array = heap_.list(Kind::kTuple, std::move(dims));
  array.text = kArray;
  return array;
}

// Returns dim i of A.shape where it is written as a number: A = te.placeholder((n, 4)).
PythonResult Python::known_dim(const PythonValue& shape, int64_t i) const {
  const Syntax* at = shape.is(Kind::kSyntax) ? shape.syntax : nullptr;
  bool is_shape = at && at->kind == SyntaxKind::kAttribute && at->text == "shape" && is_name(*at->children[0]);
  auto known = is_shape ? shapes_.find(at->children[0]->text) : shapes_.end();
  if (known == shapes_.end()) return std::nullopt;
  const std::vector<std::optional<int64_t>>& dims = known->second;
  if (i < 0) i += std::ssize(dims);
  bool is_known = i >= 0 && i < std::ssize(dims) && dims[static_cast<size_t>(i)];
  return is_known ? PythonResult(python_int(*dims[static_cast<size_t>(i)])) : std::nullopt;
}

// Returns what a loop takes of the value one after the other: also the tensors of topi.split(x, 2), which get a name.
std::optional<std::vector<PythonValue>> Python::items_of(const PythonValue& value) {
  const Syntax* call = value.is(Kind::kSyntax) && is_call(*value.syntax) ? value.syntax : nullptr;
  const std::string name = call && writes_ ? operator_in(*call->children[0]) : "";
  std::optional<int64_t> count;
  if (name == "meshgrid") count = count_of(given(*call, 0, "a_tuple"));
  const Syntax* parts = name == "split" ? given(*call, 1, "indices_or_sections") : nullptr;
  if (parts && parts->kind == SyntaxKind::kInt) count = whole_number(parts->text);
  if (parts && is_list(*parts) && count_of(parts)) count = *count_of(parts) + 1;
  constexpr int64_t kMost = 1000;
  if (!count || *count > kMost) return iterate(expanded(value), heap_);
  const PythonValue tensors = named(value, "tensors", *call);
  std::vector<PythonValue> result;
  for (int64_t i = 0; i < *count; ++i)
    result.push_back(
        node_like(heap_.node(SyntaxKind::kSubscript, *call), {tensors.syntax, lift(python_int(i), *call)}, heap_));
  return result;
}

// Returns the rank of the tensor that te.compute(shape, ...) makes, where it is known.
std::optional<int64_t> Python::rank_of_stage(const Args& args) {
  const PythonValue shape = expanded(argument_of(args, 0, "shape"));
  const bool known = shape.is_list() && shape.items->computed == 0;
  return known ? std::optional(std::ssize(shape.items->values)) : std::nullopt;
}

// Remembers the rank of the tensor that the expression makes, or that has this type.
void Python::note_rank(std::string_view name, const Syntax& value) {
  std::optional<int64_t> rank = rank_made_by(value);
  PythonResult dtype = dtype_made_by(value);
  note_dims(name, value);
  ranks_.erase(name);
  dtypes_.erase(name);
  if (rank) ranks_.insert_or_assign(name, *rank);
  if (dtype) dtypes_.insert_or_assign(name, dtype->text);
}

// Remembers the dims of such a tensor that are written as numbers.
void Python::note_dims(std::string_view name, const Syntax& value) {
  std::optional<std::vector<std::optional<int64_t>>> dims;
  if (auto known = is_name(value) ? shapes_.find(value.text) : shapes_.end(); known != shapes_.end())
    dims = known->second;
  const Syntax* shape = is_call(value) ? shape_in(value) : nullptr;
  if (count_of(shape)) {
    dims.emplace();
    for (const Syntax* dim : shape->children)
      dims->push_back(dim->kind == SyntaxKind::kInt ? whole_number(dim->text) : std::nullopt);
  }
  shapes_.erase(name);
  if (dims) shapes_.insert_or_assign(name, std::move(*dims));
}

// Returns the dtype of such a tensor, as a text; nullopt where it is not known.
PythonResult Python::dtype_made_by(const Syntax& value) {
  if (is_name(value)) {
    auto known = dtypes_.find(value.text);
    return known == dtypes_.end() ? std::nullopt : PythonResult(heap_.string(known->second));
  }
  if (value.kind == SyntaxKind::kBinary || value.kind == SyntaxKind::kUnary) return dtype_made_by(*value.children[0]);
  if (!is_call(value) || value.children.size() < 2) return std::nullopt;
  auto literal = [&](const Syntax* at) -> PythonResult {
    return at && at->kind == SyntaxKind::kString ? literal_value(*at, heap_) : std::nullopt;
  };
  const Syntax &callee = *value.children[0], *first = value.children[1], *dtype = given(value, 1, "dtype");
  if (callee.text == "placeholder") return dtype ? literal(dtype) : heap_.string("float32");
  if (is_one_of(callee.text, {"Tensor", "TensorStructInfo", "astype", "cast"})) return literal(dtype);
  if (is_one_of(callee.text, {"Var", "DataflowVar"})) {
    const Syntax* type = given(value, 1, "struct_info");
    return type ? dtype_made_by(*type) : std::nullopt;
  }
  if (is_one_of(callee.text, {"emit", "emit_output", "normalize"})) return dtype_made_by(*first);
  std::string name = operator_in(callee);
  if (is_one_of(callee.text, {"emit_te", "call_te"})) {
    if (is_name(*first) || value.children.size() < 3) return dtype_made_by(*first);
    name = operator_in(*first);
    first = value.children[2];
  }
  bool keeps = name.starts_with("nn.") || (row_of(kRanks, std::string_view(name)) && !given(value, 99, "dtype"));
  if (!keeps || given(value, 99, "out_dtype") || is_one_of(name, {"full", "ones", "zeros", "cast"}))
    return std::nullopt;
  return dtype_made_by(is_list(*first) && !first->children.empty() ? *first->children[0] : *first);
}

// Returns the rank of what te.placeholder((n, m)), te.compute((n, m), ...), relax.Var("x", R.Tensor((n, m))) or
// bb.emit(relax.op.add(x, y)) makes.
std::optional<int64_t> Python::rank_made_by(const Syntax& value) {
  if (!is_call(value)) {
    PythonResult rank = rank_of(value);
    return rank ? std::optional(rank->whole) : std::nullopt;
  }
  const Syntax* shape = shape_in(value);
  if (PythonResult rank = shape ? std::nullopt : rank_of(value)) return rank->whole;
  if (!shape) return std::nullopt;
  const PythonValue dims = expanded({.kind = Kind::kSyntax, .syntax = shape});
  return dims.items ? std::optional(std::ssize(dims.items->values)) : count_of(shape);
}

PythonResult Python::widest_rank(std::span<const Syntax* const> parts) {
  PythonResult result;
  for (const Syntax* part : parts) {
    PythonResult rank = rank_of(*part);
    if (rank && (!result || rank->whole > result->whole)) result = rank;
  }
  return result;
}

// Returns the rank of a tensor of the graph or of te, as a number; nullopt where it is not known.
PythonResult Python::rank_of(const Syntax& at) {
  if (std::optional<Type> type = type_of(at); type && type->is<TensorType>()) {  // of a model, inferred by the reader
    if (int64_t rank = known_rank(*type); rank >= 0) return python_int(rank);
  }
  if (is_name(at)) {
    if (auto known = tensors_.find(at.text); known != tensors_.end() && known->second.rank) return known->second.rank;
    auto known = ranks_.find(at.text);
    return known == ranks_.end() ? std::nullopt : PythonResult(python_int(known->second));
  }
  if (at.kind == SyntaxKind::kBinary) return widest_rank(at.children);
  if (at.kind == SyntaxKind::kUnary) return rank_of(*at.children[0]);
  if (!is_call(at) || at.children.size() < 2) return std::nullopt;
  const Syntax &callee = *at.children[0], &first = *at.children[1];
  if (is_one_of(callee.text, {"emit", "emit_output", "normalize"})) return rank_of(first);
  std::string name = operator_in(callee);
  std::span<const Syntax* const> args(at.children.begin() + 1, at.children.end());
  if (is_one_of(callee.text, {"emit_te", "call_te"})) {  // by the function's name, its result's
    if (is_name(first)) return rank_of(first);
    name = operator_in(first);
    args = args.subspan(1);
  }
  if (name == "Tensor") {
    std::optional<int64_t> count = count_of(given(at, 0, "shape"));
    return count ? PythonResult(python_int(*count)) : std::nullopt;
  }
  return rank_of_operator(name, args, at);
}

// Returns the rank of what an operator makes of its arguments.
PythonResult Python::rank_of_operator(std::string_view name, std::span<const Syntax* const> args, const Syntax& at) {
  const RankOf* row = row_of(kRanks, name);
  if (name.empty() || args.empty() || (!row && !name.starts_with("nn."))) return std::nullopt;
  const Syntax& data = is_list(*args[0]) && !args[0]->children.empty() ? *args[0]->children[0] : *args[0];
  switch (row ? *row : RankOf::kFirst) {
    case RankOf::kFirst:
      return rank_of(data);
    case RankOf::kWidest:
      return widest_rank(args);
    case RankOf::kTwo:
      return python_int(2);
    case RankOf::kMore: {
      const Syntax* axis = args.size() > 1 ? args[1] : given(at, 99, "axis");
      PythonResult rank = rank_of(data);
      bool is_known = rank && axis && args.size() < 3 && !given(at, 99, "num_newaxis");
      return is_known ? PythonResult(python_int(rank->whole + count_of(axis).value_or(1))) : std::nullopt;
    }
    case RankOf::kShape: {
      const size_t shape = is_one_of(name, {"reshape", "broadcast_to"}) ? 1 : 0;
      std::optional<int64_t> count = args.size() > shape ? count_of(args[shape]) : std::nullopt;
      return count ? PythonResult(python_int(*count)) : std::nullopt;
    }
    case RankOf::kReduced: {
      const Syntax *keeps = given(at, 99, "keepdims"), *axis = given(at, 1, "axis");
      if (keeps && keeps->text == "True") return rank_of(data);
      PythonResult rank = rank_of(data);
      bool is_one = axis && (axis->kind == SyntaxKind::kInt || axis->kind == SyntaxKind::kUnary);
      bool is_known = rank && !keeps && at.children[1] == args[0] && (is_one || count_of(axis));
      return is_known ? PythonResult(python_int(rank->whole - count_of(axis).value_or(1))) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace relaxc::text
