// Reads calls of tensor programs and kernels in graph functions: R.call_tir and its variants.
#include <algorithm>

#include "ir/text/parsing.h"

namespace relaxc::text {

namespace {

// Moves integers among the tensors of a program after them, as dims of a shape: only the order within buffers and
// within scalars matters for a program's parameters. `inputs` keeps the tensors.
std::vector<Expr> take_scalars(Expr& inputs) {
  const Tuple* several = inputs.as<Tuple>();
  if (!several) return {};
  std::vector<Expr> tensors, scalars;
  for (const Expr& item : several->items) (item.type().is<PrimType>() ? scalars : tensors).push_back(item);
  bool dims_only = std::ranges::all_of(scalars, [](const Expr& e) { return dtype_of(e) == kInt64; });
  if (!dims_only || scalars.empty()) return {};
  inputs = tuple(std::move(tensors), inputs.span());
  return scalars;
}

}  // namespace

// Reads the form of 2022, which gives shapes and dtypes: (m, k), dtype="float32", or lists of both.
std::vector<Type> Parser::early_outputs(const Syntax& shapes, const Syntax& dtypes) {
  std::vector<const Syntax*> several = {&shapes}, of = {&dtypes};
  bool nested = !shapes.children.empty() && is_list(*shapes.children[0]);
  if (nested) several = items(shapes);
  if (is_list(dtypes)) of = items(dtypes);
  if (of.size() != 1 && of.size() != several.size()) fail(dtypes, "{} dtypes for {} shapes", of.size(), several.size());
  std::vector<Type> result;
  for (size_t i = 0; i < several.size(); ++i)
    result.push_back(
        relaxc::tensor_type(graph_dims(*several[i]), dtype(*of[of.size() == 1 ? 0 : i]), span(*several[i])));
  return result;
}

Value Parser::call_tir_form(const std::string& path, const Syntax& at) {
  const std::vector<std::string_view>& names = argument_names(path);
  auto position = [&](std::string_view name) {
    return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
  };
  bool sound = fits_signature(path, at);
  const Syntax& function = required(at, 0, "func");
  const Syntax* dtypes = keyword(at, "dtype");
  bool early = dtypes && path == "R.call_tir";
  bool packed = path == "R.call_dps_packed" || (early && function.kind == SyntaxKind::kString);
  Call call{op_ref(packed ? "relax.call_dps_packed" : "relax." + path.substr(2)), {}, {}, {}};
  call.args.push_back(called_program(function, packed, early));
  const Syntax& inputs = required(at, 1, "args");
  Expr given = as_argument(inputs);
  if (!sound) throw Failed();
  // One tensor is accepted in place of a tuple of one.
  if (!given.type().is<TupleType>()) given = tuple({given}, span(inputs));
  std::vector<Expr> scalars = packed ? std::vector<Expr>() : take_scalars(given);
  call.args.push_back(given);
  const Syntax* outputs = arg(at, position("out_sinfo"), early ? "shape" : "out_sinfo");
  if (!outputs) fail(at, "the output type is missing: out_sinfo=R.Tensor((n, 4), dtype=\"float32\")");
  call.type_args = early ? early_outputs(*outputs, *dtypes) : read_each(items(*outputs), &Parser::type);
  if (const Syntax* more = arg(at, position("tir_vars"), "tir_vars"); !is_none(more)) {
    call.args.push_back(tir_vars(*more));
    if (!scalars.empty()) fail(*more, "scalar arguments stand in args and in tir_vars");
  } else if (!scalars.empty()) {
    call.args.push_back(shape_expr(std::move(scalars), span(inputs)));
  }
  call_tir_attributes(path, at, call);
  return typed_call(std::move(call), at);
}

// Reads the callee: a tensor program of the module, or (packed) the name of a kernel in machine code. Early texts name
// both without a prefix.
Expr Parser::called_program(const Syntax& at, bool packed, bool early) {
  const std::string* bare = early && is_name(at) ? function_named(at.text) : nullptr;
  Expr program = packed && at.kind == SyntaxKind::kString ? callee(at)
                 : bare                                   ? global_var(*bare, declared_.at(*bare))
                                                          : expr(at);
  // A variable may be bound to an external function.
  for (const BindingBlock& block : body_->blocks) {
    for (const Binding& b : block.bindings) {
      if (packed && same_node(b.var, program) && b.value.is<ExternFunc>()) program = b.value;
    }
  }
  bool right = program.is<GlobalVar>() || (packed && program.is<ExternFunc>());
  if (!right)
    fail(at, "expected {}", packed ? "the name of a kernel in quotes" : "a tensor program of the module: cls.f");
  return program;
}

Expr Parser::tir_vars(const Syntax& at) {
  Expr value = as_argument(at);
  if (const Tuple* several = value.as<Tuple>()) {
    std::vector<Expr> numbers = several->items;
    for (Expr& number : numbers) number = graph_dim(number, at);
    value = shape_expr(std::move(numbers), span(at));
  }
  if (!value.is<ShapeExpr>()) fail(at, "expected R.shape([...])");
  return value;
}

// Reads the other arguments as attributes.
void Parser::call_tir_attributes(const std::string& path, const Syntax& at, Call& call) {
  constexpr std::string_view kRead[] = {"func", "args", "out_sinfo", "tir_vars", "shape", "dtype"};
  const std::vector<std::string_view>& names = argument_names(path);
  for (size_t i = 0; i < names.size(); ++i) {
    const Syntax* value = std::ranges::find(kRead, names[i]) == std::end(kRead) ? arg(at, i, names[i]) : nullptr;
    if (!is_none(value)) call.attrs.set(std::string(names[i]), attr_value(*value));
  }
  for (const Keyword& keyword : at.keywords) {
    if (std::ranges::find(names, canonical_keyword(keyword.name)) == names.end())
      call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  if (const AttrValue* indices = call.attrs.find("inplace_indices"); indices && indices->as<int64_t>())
    call.attrs.set("inplace_indices", AttrList{*indices});
}

}  // namespace relaxc::text
