// Reads calls of tensor programs and kernels in graph functions: R.call_tir and its variants.
#include <algorithm>

#include "ir/text/parsing.h"

namespace relaxc::text {

// The positions of the arguments in the forms of call_tir.
struct CallTirForm {
  std::string_view name;
  int outputs, scalars, attributes;  // position; attributes: of the first
  std::vector<std::string_view> attribute_names;
};

namespace {

const CallTirForm kCallTirForms[] = {
    {"R.call_dps_packed", 2, 3, 3, {}},
    {"R.call_tir", 2, 3, 3, {}},
    {"R.call_tir_inplace", 3, 4, 2, {"inplace_indices"}},
    {"R.call_tir_with_grad", 2, 5, 3, {"te_grad_name", "te_grad_kwargs"}},
    {"R.dist.call_tir_local_view", 2, 3, 3, {}},
};

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

Value Parser::call_tir_form(const std::string& name, const Syntax& at) {
  const CallTirForm& form = *std::ranges::find(kCallTirForms, name, &CallTirForm::name);
  bool sound = check_call_tir(form, at);
  const Syntax& function = required(at, 0, "func");
  const Syntax* dtypes = keyword(at, "dtype");
  bool early = dtypes && form.name == "R.call_tir";
  bool packed = name == "R.call_dps_packed" || (early && function.kind == SyntaxKind::kString);
  Call call{op_ref(packed ? "relax.call_dps_packed" : "relax." + name.substr(2)), {}, {}, {}};
  call.args.push_back(called_program(function, packed, early));
  const Syntax& inputs = required(at, 1, "args");
  Expr given = as_argument(inputs);
  if (!sound) throw Failed();
  // One tensor is accepted in place of a tuple of one.
  if (!given.type().is<TupleType>()) given = tuple({given}, span(inputs));
  std::vector<Expr> scalars = packed ? std::vector<Expr>() : take_scalars(given);
  call.args.push_back(given);
  const Syntax* outputs = arg(at, static_cast<size_t>(form.outputs), early ? "shape" : "out_sinfo");
  if (!outputs) fail(at, "the output type is missing: out_sinfo=R.Tensor((n, 4), dtype=\"float32\")");
  call.type_args = early ? early_outputs(*outputs, *dtypes) : read_each(items(*outputs), &Parser::type);
  if (const Syntax* more = arg(at, static_cast<size_t>(form.scalars), "tir_vars"); !is_none(more)) {
    call.args.push_back(tir_vars(*more));
    if (!scalars.empty()) fail(*more, "scalar arguments stand in args and in tir_vars");
  } else if (!scalars.empty()) {
    call.args.push_back(shape_expr(std::move(scalars), span(inputs)));
  }
  call_tir_attributes(form, at, call);
  return typed_call(std::move(call), at);
}

namespace {

std::vector<std::string> call_tir_keywords(const CallTirForm& form) {
  std::vector<std::string> known = {"args", "dtype", "func", "gvar", "out_sinfo", "out_ty", "shape", "tir_vars"};
  known.insert(known.end(), form.attribute_names.begin(), form.attribute_names.end());
  return known;
}

}  // namespace

// Other keywords are attributes, unless they are close to a keyword of the form. Returns false after an error.
bool Parser::check_call_tir(const CallTirForm& form, const Syntax& at) {
  std::vector<std::string> known = call_tir_keywords(form);
  bool sound = true;
  for (const Keyword& keyword : at.keywords) {
    std::string near = nearest(keyword.name, known);
    if (near.empty() || near == keyword.name) continue;
    report_with_hint(keyword, near, "unknown argument '{}'", keyword.name);
    sound = false;
  }
  size_t most = static_cast<size_t>(std::max(form.scalars, form.outputs)) + 1;
  if (positional(at) > most)
    report(*at.children[most + 1], "{} takes {} arguments, got {}", form.name, most, positional(at));
  return sound;
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

void Parser::call_tir_attributes(const CallTirForm& form, const Syntax& at, Call& call) {
  for (size_t i = 0; i < form.attribute_names.size(); ++i) {
    const Syntax* value = arg(at, static_cast<size_t>(form.attributes) + i, form.attribute_names[i]);
    if (!is_none(value)) call.attrs.set(std::string(form.attribute_names[i]), attr_value(*value));
  }
  std::vector<std::string> known = call_tir_keywords(form);
  for (const Keyword& keyword : at.keywords) {
    if (std::ranges::find(known, keyword.name) == known.end())
      call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  if (const AttrValue* indices = call.attrs.find("inplace_indices"); indices && indices->as<int64_t>())
    call.attrs.set("inplace_indices", AttrList{*indices});
}

}  // namespace relaxc::text
