// Reads calls of topi's functions as operators of the graph: those with other names or arguments are rows of tables
// here, those that are made of several operators of topi_arrays.cc and topi_nn.cc.
#include <algorithm>
#include <ranges>

#include "ir/arith.h"
#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/parse_te.h"
#include "ir/text/topi_call.h"
#include "support/lists.h"

namespace relaxc::text {

namespace {

// A function of topi that is an operator with other arguments. `params`: topi's, in their order, each with the name
// that it has there behind '>', or without one where it has no meaning for the operator.
struct TopiSignature {
  std::string_view name, op, params;
};
constexpr TopiSignature kSignatures[] = {
    {"clip", "clip", "x>x a_min>min a_max>max"},
    {"concatenate", "concat", "a_tuple>tensors axis>axis"},
    {"cumprod", "cumprod", "data>data axis>axis dtype>dtype exclusive>exclusive"},
    {"cumsum", "cumsum", "data>data axis>axis dtype>dtype exclusive>exclusive"},
    {"gather", "gather_elements", "data>data axis>axis indices>indices"},
    {"image.resize2d", "image.resize2d",
     "data>data roi>roi size>size layout>layout method>method "
     "coordinate_transformation_mode>coordinate_transformation_mode rounding_method>rounding_method"},
    {"max", "max", "data>x axis>axis keepdims>keepdims"},
    {"min", "min", "data>x axis>axis keepdims>keepdims"},
    {"nn.flatten", "nn.batch_flatten", "data>data"},
    {"nn.layer_norm", "nn.layer_norm", "data>data gamma>gamma beta>beta axis>axes epsilon>epsilon"},
    {"nn.leaky_relu", "nn.leakyrelu", "x>data alpha>alpha"},
    {"nn.log_softmax", "nn.log_softmax", "x>data axis>axis"},
    {"nn.prelu", "nn.prelu", "x>data slope>alpha axis>axis"},
    {"nn.rms_norm", "nn.rms_norm", "data>data weight>weight axis>axes epsilon>epsilon"},
    {"nn.softmax", "nn.softmax", "x>data axis>axis"},
    {"nn.softmax_common", "nn.softmax", "x>data axis>axis use_fast_exp>"},
    {"prod", "prod", "data>x axis>axis keepdims>keepdims"},
    {"reinterpret", "bitcast", "x>x dtype>dtype"},
    {"reshape", "reshape", "a>x newshape>shape"},
    {"scatter_elements", "scatter_elements", "data>data indices>indices updates>updates axis>axis reduction>reduction"},
    {"split", "split", "ary>x indices_or_sections>indices_or_sections axis>axis"},
    {"squeeze", "squeeze", "a>x axis>axis"},
    {"sum", "sum", "data>x axis>axis keepdims>keepdims"},
    {"transpose", "permute_dims", "a>x axes>axes"}};

const Syntax* argument_of(const Syntax& call, size_t position, std::string_view name) {
  for (const Syntax::Keyword& keyword : call.keywords) {
    if (keyword.name == name) return keyword.value;
  }
  return position + 1 < call.children.size() ? call.children[position + 1] : nullptr;
}

// Functions of topi whose operators have other names, and the same arguments.
constexpr std::pair<std::string_view, std::string_view> kTopi[] = {
    {"broadcast_div", "divide"}, {"broadcast_mul", "multiply"},
    {"broadcast_pow", "power"},  {"broadcast_sub", "subtract"},
    {"cast", "astype"},          {"fast_erf", "erf"},
    {"fast_exp", "exp"},         {"fast_tanh", "tanh"},
    {"nn.sigmoid", "sigmoid"},   {"true_divide", "divide"}};
// Of the operators with attributes, these have topi's arguments.
constexpr std::string_view kSameInTopi =
    " astype broadcast_to concat expand_dims flip meshgrid nn.group_norm nn.instance_norm permute_dims repeat stack "
    "tile ";
constexpr std::string_view kOfPrograms[] = {"primfunc_attrs", "primfunc_name_hint"};

// The functions that are made of several operators, by their names.
const TopiComposition* composition_of(std::string_view name) {
  for (std::span<const TopiComposition> group : {topi_array_functions(), topi_nn_functions(), topi_moves()}) {
    auto found = std::ranges::find(group, name, &TopiComposition::name);
    if (found != group.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

// The arguments of one call. Those of te are numbers of tensor programs, and tensors that have names of the graph.
class Parser::TopiArguments : public TopiCall {
 public:
  TopiArguments(Parser& parser, const Syntax& at, const TopiComposition& row, bool of_te)
      : in_(parser), at_(at), name_(row.name), of_te_(of_te) {
    size_t position = 0;
    for (std::string_view param : parts_of(row.params, ' ')) {
      bool takes_rest = param.ends_with('*');
      if (takes_rest) param.remove_suffix(1);
      std::vector<std::string_view> names = parts_of(param, '|');
      const Syntax* value = position < in_.positional(at) ? at.children[position + 1] : nullptr;
      for (std::string_view each : names) {
        known_.emplace_back(each);
        if (!value) value = in_.keyword(at, each);
      }
      given_.emplace(names[0], value);
      for (; takes_rest && position < in_.positional(at); ++position) rest_.push_back(at.children[position + 1]);
      ++position;
    }
    if (in_.positional(at) > position)
      in_.fail(at, "topi.{} takes at most {} arguments, got {}", name_, position, in_.positional(at));
    for (std::string_view each : {"name", "tag", "attrs", "span"}) known_.emplace_back(each);
    in_.check_keywords(at, known_);
  }

  bool has(std::string_view name) const override {
    auto found = given_.find(name);
    return found != given_.end() && !is_none(found->second);
  }
  Expr tensor(std::string_view name) override { return as_tensor(required(name)); }
  std::vector<Expr> tensors(std::string_view name) override {
    std::vector<const Syntax*> parts = rest_;
    if (parts.empty()) parts = in_.items(required(name));
    std::vector<Expr> result;
    for (const Syntax* part : parts) {
      Expr value = as_tensor(*part);
      const TupleType* several = value.type().as<TupleType>();
      for (size_t i = 0; several && i < several->items.size(); ++i) result.push_back(item(value, i));
      if (!several) result.push_back(value);
    }
    if (result.empty()) fail(fmt::format("argument '{}' is empty", name));
    return result;
  }
  AttrValue value(std::string_view name) override {
    const Syntax* at = argument(name);
    return is_none(at) ? AttrValue() : constant_of(*at, name);
  }
  DType dtype(std::string_view name, DType otherwise) override {
    const Syntax* at = argument(name);
    return is_none(at) ? otherwise : in_.dtype(*at);
  }
  Expr op(const char* name, std::vector<Expr> args, Attrs attrs) override {
    const OpRow* row = in_.ops_.find(std::string("relax.") + name);
    RELAXC_CHECK(row, "the operator relax.{}", name);
    return in_.leaf(in_.typed_call(Call{op_ref(row->name), std::move(args), std::move(attrs), {}}, at_), at_);
  }
  Expr item(const Expr& several, size_t i) override {
    const Tuple* known = several.as<Tuple>();
    return known ? known->items.at(i) : in_.leaf({tuple_get(several, static_cast<int64_t>(i), in_.span(at_))}, at_);
  }
  [[noreturn]] void fail(const std::string& message) override { in_.fail(at_, "topi.{}: {}", name_, message); }

 private:
  const Syntax* argument(std::string_view name) const {
    auto found = given_.find(name);
    RELAXC_CHECK(found != given_.end(), "topi.{} has a param {}", name_, name);
    return found->second;
  }
  const Syntax& required(std::string_view name) {
    const Syntax* value = argument(name);
    if (is_none(value)) fail(fmt::format("argument '{}' is missing", name));
    return *value;
  }
  // Returns the tensor, or for a number a tensor of it.
  Expr as_tensor(const Syntax& at) {
    Expr value = in_.as_argument(at);
    if (const IntImm* whole = value.as<IntImm>()) return number(static_cast<double>(whole->value), kInt32);
    if (const FloatImm* real = value.as<FloatImm>()) return number(real->value, kFloat32);
    return value;
  }
  AttrValue constant_of(const Syntax& at, std::string_view name) {
    if (is_list(at)) return map_each(at.children, [&](const Syntax* item) { return constant_of(*item, name); });
    if (at.kind == SyntaxKind::kString || at.kind == SyntaxKind::kConstant) return in_.attr_value(at);
    Temporarily graph(in_.in_graph_, !of_te_);
    Temporarily ints(in_.default_int_, of_te_ ? kInt32 : kInt64);
    Expr value = simplify(of_te_ ? in_.scalar(at) : in_.eval(at).expr);
    if (const IntImm* whole = value.as<IntImm>()) return whole->value;
    if (const FloatImm* real = value.as<FloatImm>()) return real->value;
    if (const Constant* data = value.as<Constant>(); data && data->data.size() == 1) {
      if (data->data.dtype().is_float()) return data->data.as_double(0);
      return data->data.as_int(0);
    }
    auto items_of = [&](const std::vector<Expr>& items) -> std::optional<AttrValue> {
      AttrList result;
      for (const Expr& item : items) {
        const IntImm* whole = item.as<IntImm>();
        if (!whole) return std::nullopt;
        result.emplace_back(whole->value);
      }
      return AttrValue(std::move(result));
    };
    const Tuple* several = value.as<Tuple>();
    const ShapeExpr* shape = value.as<ShapeExpr>();
    std::optional<AttrValue> list = several ? items_of(several->items) : shape ? items_of(shape->values) : std::nullopt;
    if (!list) in_.fail(at, "topi.{}: argument '{}' is not a constant", name_, name);
    return *list;
  }

  Parser& in_;
  const Syntax& at_;
  std::string_view name_;
  bool of_te_;
  std::map<std::string_view, const Syntax*> given_;
  std::vector<const Syntax*> rest_;
  std::vector<std::string> known_;
};

// Returns the call of the operator that the call of topi's function is; nullopt where there is no row for it.
std::optional<Value> Parser::TeReader::renamed_topi(const std::string& name, const Syntax& at) {
  const TopiSignature* row = find_item(kSignatures, std::string_view(name), &TopiSignature::name);
  if (!row) return std::nullopt;
  Syntax call(SyntaxKind::kCall, at);
  call.children.push_back(at.children[0]);
  size_t position = 0;
  std::vector<std::string> known;
  for (std::string_view param : parts_of(row->params, ' ')) {
    size_t arrow = param.find('>');
    known.emplace_back(param.substr(0, arrow));
    std::string_view own = param.substr(arrow + 1);
    const Syntax* given = argument_of(at, position++, known.back());
    if (!given) given = in.keyword(at, own);
    if (given && !is_none(given) && !own.empty()) call.keywords.push_back({*given, in.tree_->text(own), given});
    known.emplace_back(own);
  }
  in.check_keywords(at, known);
  if (position < in.positional(at))
    in.fail(at, "topi.{} takes at most {} arguments, got {}", name, position, in.positional(at));
  return in.operator_call(*in.ops_.find("relax." + std::string(row->op)), call);
}

// Reads a call of topi's function of this name, whose arguments have their meaning in the graph.
std::optional<Value> Parser::TeReader::composed_topi(const std::string& name, const Syntax& at, bool of_te) {
  const TopiComposition* row = composition_of(name);
  if (!row) return std::nullopt;
  Temporarily annotation(in.wanted_, std::optional<Type>());
  TopiArguments call(in, at, *row, of_te);
  return Value{row->make(call)};
}

// Returns the name behind the prefix of topi or of a library that TVM calls for the same: "nn.relu", "matmul". A
// function for a kind of target, such as topi.cuda.conv2d_nchw, is that of topi.nn.
std::string Parser::TeReader::name_in_topi(std::string_view path) {
  if (path.starts_with("tvm.")) path.remove_prefix(4);
  constexpr std::string_view kLibraries[] = {"cblas", "cublas", "cudnn", "mkl", "dnnl", "rocblas", "mps"};
  std::string_view library = path.starts_with("contrib.") ? path.substr(8) : path;
  for (std::string_view each : kLibraries) {
    bool is_product = library.ends_with(".matmul") || library.ends_with(".batch_matmul");
    if (is_product && library.substr(0, library.rfind('.')) == each) return "matmul";
  }
  bool is_schedule = path.substr(path.rfind('.') + 1).starts_with("schedule_");  // topi.cuda.schedule_reduce(C)
  if (!path.starts_with("topi.") || is_schedule) return {};
  path.remove_prefix(5);
  constexpr std::string_view kTargets[] = {"adreno.", "arm_cpu.", "bifrost.", "cuda.", "generic.",       "gpu.", "hls.",
                                           "mali.",   "rocm.",    "hexagon.", "x86.",  "intel_graphics."};
  constexpr std::string_view kParts[] = {"broadcast.", "math.", "reduction.", "tensor.", "transform."};
  for (std::string_view part : kParts) {
    if (path.starts_with(part)) return std::string(path.substr(part.size()));
  }
  for (std::string_view target : kTargets) {
    if (!path.starts_with(target)) continue;
    std::string of_nn = fmt::format("nn.{}", path.substr(target.size()));
    bool is_known = composition_of(of_nn) || find_item(kSignatures, std::string_view(of_nn), &TopiSignature::name);
    return is_known ? of_nn : of_nn.substr(3);
  }
  if (path.starts_with("nn.fast_")) return fmt::format("nn.{}", path.substr(8));
  bool is_broadcast = path.starts_with("broadcast_") && path != "broadcast_to" && !row_of(kTopi, path);
  return std::string(is_broadcast ? path.substr(10) : path);
}

// Reads a call of topi's function of this name as operators; nullopt where there are none like it. `of_te`: the
// arguments that are no tensors have their meaning in te.
std::optional<Value> Parser::TeReader::topi(const std::string& name, const Syntax& at, bool of_te) {
  Syntax call = at;
  std::erase_if(call.keywords, [](const Keyword& keyword) {
    return std::ranges::find(kOfPrograms, keyword.name) != std::end(kOfPrograms);
  });
  if (auto value = composed_topi(name, call, of_te)) return value;
  if (auto value = renamed_topi(name, call)) return value;
  const std::string_view* other = row_of(kTopi, std::string_view(name));
  std::string own(other ? *other : std::string_view(name));
  const OpRow* row = in.ops_.find("relax." + own);
  if (!row && name.starts_with("nn.")) return topi(name.substr(3), at, of_te);  // topi.nn has all of topi
  if (!row) return std::nullopt;
  if (own == "full") return full(*row, call);
  for (auto [i, keyword] : {std::pair(0, "x"), std::pair(0, "lhs"), std::pair(1, "rhs")}) {  // topi's names of operands
    const Syntax* operand = in.positional(call) == static_cast<size_t>(i) ? in.keyword(call, keyword) : nullptr;
    if (!operand) continue;
    call.children.push_back(operand);
    std::erase_if(call.keywords, [&](const Keyword& each) { return each.name == keyword; });
  }
  bool same = kSameInTopi.find(fmt::format(" {} ", own)) != kSameInTopi.npos;
  if (!same && (!row->attrs.empty() || row->inputs.size() > 2)) return std::nullopt;
  if (same || in.positional(call) != 2) return in.operator_call(*row, call);
  Value a = in.eval(*call.children[1]), b = in.eval(*call.children[2]);
  for (Value* each : {&a, &b})  // tvm.tir.const(2, "float32") is as good as 2
    each->literal = each->literal || each->expr.is<IntImm>() || each->expr.is<FloatImm>();
  in.lift_number(a, b, name, at);
  in.lift_number(b, a, name, at);
  return in.typed_call(OpName{row->name}, {in.leaf(a, at), in.leaf(b, at)}, at);
}

// Reads topi.full(shape, dtype, value).
Value Parser::TeReader::full(const OpRow& row, const Syntax& at) {
  Syntax number(SyntaxKind::kCall, at), call(SyntaxKind::kCall, at);
  const Syntax &shape_at = in.required(at, 0, "shape"), &dtype = in.required(at, 1, "dtype");
  const Syntax* value = &in.required(at, 2, "fill_value");
  if (is_call(*value) && in.positional(*value) == 2) {  // tir.IntImm("int64", 0), tir.const(0, "int64")
    bool dtype_first = value->children[1]->kind == SyntaxKind::kString;
    value = value->children[dtype_first ? 2 : 1];
  }
  number.children = {at.children[0], value, &dtype};
  call.children = {at.children[0], &shape_at, &number, &dtype};
  Expr filler = in.constant(number).expr;
  Expr shape = in.operator_input(&row.inputs[0], *call.children[1]);
  Call made{op_ref(row.name), {shape, filler}, {}, {}};
  made.attrs.set(row.attrs[0].name, in.attribute(row.attrs[0], dtype));
  return in.typed_call(std::move(made), at);
}

}  // namespace relaxc::text
