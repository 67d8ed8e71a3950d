#include "passes/index_facts.h"

#include <algorithm>

#include "vm/index_check.h"

namespace relaxc {

namespace {

// Operators whose elements are elements of their first argument.
constexpr std::string_view kMoves[] = {"relax.reshape",       "relax.expand_dims",  "relax.squeeze",
                                       "relax.permute_dims",  "relax.flatten",      "relax.broadcast_to",
                                       "relax.take",          "relax.gather_nd",    "relax.gather_elements",
                                       "relax.check_indices", "relax.strided_slice"};
constexpr int kDeepest = 16;  // how many bindings back a range is looked for

bool is_one_of(std::string_view op, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

int64_t axis_of(const Call& node, size_t rank) {
  int64_t axis = node.attrs.get_int("axis", -1);
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

}  // namespace

std::optional<IndexOperand> find_index_operand(const Expr& value, OutOfRange gather) {
  const std::string& op = op_name(value);
  bool scatters = op == "relax.scatter_elements" || op == "relax.scatter_nd";
  bool gathers = op == "relax.take" || op == "relax.gather_elements" || op == "relax.gather_nd";
  if (!scatters && (!gathers || gather == OutOfRange::kClamp)) return std::nullopt;
  const Call& node = *value.as<Call>();
  if (op == "relax.take" && node.attrs.get_string("mode", "fast") != "fast") return std::nullopt;
  const std::vector<Expr>* shape = known_shape(node.args[0].type());
  if (!shape) return std::nullopt;
  if (op == "relax.take" && (!node.attrs.find("axis") || node.attrs.find("axis")->is_none())) {
    Expr size = int_imm(1);
    for (const Expr& dim : *shape) size = size * dim;
    return IndexOperand{1, {simplify(size)}};
  }
  bool is_nd = op == "relax.gather_nd" || op == "relax.scatter_nd";
  if (!is_nd) return IndexOperand{1, {(*shape)[static_cast<size_t>(axis_of(node, shape->size()))]}};
  const std::vector<Expr>* tuples = known_shape(node.args[1].type());
  auto length = tuples && !tuples->empty() ? as_int(tuples->back()) : std::nullopt;
  if (!length || *length < 1) return std::nullopt;
  auto first = shape->begin() + node.attrs.get_int("batch_dims", 0);
  return IndexOperand{1, {first, first + *length}};
}

const Expr* IndexFacts::value_of(const Expr& leaf) const {
  auto it = values_.find(leaf.get());
  return it == values_.end() ? nullptr : &it->second;
}

bool IndexFacts::prove(const Expr& indices, const std::vector<Expr>& dims, const Analyzer& facts,
                       const Span& span) const {
  const Constant* constant = indices.as<Constant>();
  std::vector<int64_t> sizes;
  for (const Expr& dim : dims) {
    if (auto known = as_int(dim)) sizes.push_back(*known);
  }
  if (constant && sizes.size() == dims.size()) {
    auto bad = vm::find_bad_index(constant->data, sizes);
    if (bad) fail(span, "indices{}", vm::describe(*bad, constant->data));
    return true;
  }
  const Expr* value = value_of(indices);
  if (value && op_name(*value) == "relax.check_indices" &&
      structural_equal(value->as<Call>()->args[1], shape_expr(dims)))
    return true;
  std::optional<Range> range = range_of(indices);
  return range && std::all_of(dims.begin(), dims.end(), [&](const Expr& dim) {
           return facts.can_prove(int_imm(0) - dim <= range->least) && facts.can_prove(range->most < dim);
         });
}

std::optional<IndexFacts::Range> IndexFacts::range_of(const Expr& tensor, int depth) const {
  if (depth > kDeepest) return std::nullopt;
  if (tensor.type().is<PrimType>()) return Range{tensor, tensor};
  if (const Constant* constant = tensor.as<Constant>()) {
    if (constant->data.size() == 0) return std::nullopt;
    int64_t least = constant->data.as_int(0), most = least;
    for (int64_t i = 1; i < constant->data.size(); ++i) {
      least = std::min(least, constant->data.as_int(i));
      most = std::max(most, constant->data.as_int(i));
    }
    return Range{int_imm(least), int_imm(most)};
  }
  if (const Expr* value = value_of(tensor)) {
    if (const Call* node = value->as<Call>()) {
      if (auto range = range_of_call(*node, op_name(*value), depth + 1)) return range;
    }
    const TupleGetItem* item = value->as<TupleGetItem>();
    const Expr* whole = item && item->index == 1 ? value_of(item->tuple) : nullptr;
    if (whole && op_name(*whole).ends_with("topk"))
      return range_of_call(*whole->as<Call>(), "relax.argsort", depth + 1);
  }
  auto dtype = tensor_dtype(tensor.type());
  if (!dtype || !dtype->is_integral() || dtype->bits > 16) return std::nullopt;
  int64_t values = int64_t{1} << dtype->bits;
  if (dtype->is_uint()) return Range{int_imm(0), int_imm(values - 1)};
  return Range{int_imm(-values / 2), int_imm(values / 2 - 1)};
}

std::optional<IndexFacts::Range> IndexFacts::range_of_call(const Call& node, const std::string& op, int depth) const {
  if (is_one_of(op, kMoves)) return range_of(node.args[0], depth);
  if (op == "relax.scalar_to_tensor") return Range{node.args[0], node.args[0]};
  if (op == "relax.astype") {
    auto from = tensor_dtype(node.args[0].type());
    const AttrValue* dtype = node.attrs.find("dtype");
    const DType* to = dtype ? dtype->as<DType>() : nullptr;
    bool keeps = from && to && from->is_int() && to->is_int() && from->bits <= to->bits;
    return keeps ? range_of(node.args[0], depth) : std::nullopt;
  }
  if (op == "relax.arange") {
    auto step = node.args.size() > 2 ? as_int(node.args[2]) : std::optional<int64_t>(1);
    bool is_integer = node.args.size() > 1 && dtype_of(node.args[0]).is_int() && dtype_of(node.args[1]).is_int();
    if (!is_integer || !step || *step < 1) return std::nullopt;
    return Range{node.args[0], node.args[1] - 1};
  }
  if (op == "relax.argmax" || op == "relax.argmin" || op == "relax.argsort") {
    const std::vector<Expr>* shape = known_shape(node.args[0].type());
    const AttrValue* axis = node.attrs.find("axis");
    if (!shape || shape->empty() || !axis || axis->is_none()) return std::nullopt;
    return Range{int_imm(0), (*shape)[static_cast<size_t>(axis_of(node, shape->size()))] - 1};
  }
  return std::nullopt;
}

}  // namespace relaxc
