// Reads topi's functions in te: C = topi.nn.relu(A) is the stages that the operator R.nn.relu becomes. Functions whose
// operators have another signature are rows of kSignatures.
#include <algorithm>
#include <ranges>

#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/parse_te.h"
#include "support/lists.h"

namespace relaxc::text {

namespace {

// A function of topi that is an operator with other arguments. `params`: topi's, in their order, each with the name
// that it has there behind '>', or without one where it has no meaning for the operator. `fixed`: further arguments.
struct TopiSignature {
  std::string_view name, op, params, fixed = {};
};
constexpr TopiSignature kSignatures[] = {
    {"image.resize2d", "image.resize2d",
     "data>data roi>roi size>size layout>layout method>method "
     "coordinate_transformation_mode>coordinate_transformation_mode rounding_method>rounding_method"},
    {"gather", "gather_elements", "data>data axis>axis indices>indices"},
    {"nn.conv1d_ncw", "nn.conv1d",
     "data>data kernel>weight strides>strides padding>padding dilation>dilation out_dtype"},
    {"nn.conv2d_nchw", "nn.conv2d",
     "Input>data Filter>weight stride>strides padding>padding dilation>dilation out_dtype"},
    {"nn.conv2d_nhwc", "nn.conv2d",
     "Input>data Filter>weight stride>strides padding>padding dilation>dilation out_dtype",
     "data_layout=\"NHWC\" kernel_layout=\"HWIO\""},
    {"nn.group_conv2d_nchw", "nn.conv2d",
     "Input>data Filter>weight stride>strides padding>padding dilation>dilation groups>groups out_dtype"},
    {"nn.flatten", "nn.batch_flatten", "data>data"},
    {"nn.layer_norm", "nn.layer_norm", "data>data gamma>gamma beta>beta axis>axes epsilon>epsilon"},
    {"nn.rms_norm", "nn.rms_norm", "data>data weight>weight axis>axes epsilon>epsilon"},
    {"nn.pool2d.max", "nn.max_pool2d",
     "data>data kernel>pool_size stride>strides dilation>dilation padding>padding pool_type ceil_mode>ceil_mode "
     "layout>layout count_include_pad"},
    {"nn.pool2d.avg", "nn.avg_pool2d",
     "data>data kernel>pool_size stride>strides dilation>dilation padding>padding pool_type ceil_mode>ceil_mode "
     "layout>layout count_include_pad>count_include_pad"},
    {"nn.adaptive_pool.avg", "nn.adaptive_avg_pool2d", "data>data output_size>output_size pool_type layout>layout"},
    {"nn.global_pool.avg", "nn.adaptive_avg_pool2d", "data>data pool_type layout>layout", "output_size=(1,1)"},
    {"reshape", "reshape", "a>x newshape>shape"},
    {"sum", "sum", "data>x axis>axis keepdims>keepdims"},
    {"max", "max", "data>x axis>axis keepdims>keepdims"},
    {"min", "min", "data>x axis>axis keepdims>keepdims"}};

const Syntax* argument_of(const Syntax& call, size_t position, std::string_view name) {
  for (const Syntax::Keyword& keyword : call.keywords) {
    if (keyword.name == name) return keyword.value;
  }
  return position + 1 < call.children.size() ? call.children[position + 1] : nullptr;
}

}  // namespace

// Returns the call of the operator that the call of topi's function is; nullopt where there is no row for it.
std::optional<std::pair<std::string, Syntax>> Parser::TeReader::renamed_topi(const Syntax& at) {
  std::string name(name_in_topi(spelling(*at.children[0])));
  for (std::string_view pool : {"nn.pool2d", "nn.adaptive_pool", "nn.global_pool"}) {
    size_t position = pool == "nn.pool2d" ? 5 : pool == "nn.adaptive_pool" ? 2 : 1;
    const Syntax* kind = name == pool ? argument_of(at, position, "pool_type") : nullptr;
    if (kind && kind->kind == SyntaxKind::kString) name += "." + in.string(*kind);
  }
  const TopiSignature* row = find_item(kSignatures, std::string_view(name), &TopiSignature::name);
  if (!row) return std::nullopt;
  Syntax call(SyntaxKind::kCall, at);
  call.children.push_back(at.children[0]);
  auto add = [&](std::string_view keyword, const Syntax* value) {
    call.keywords.push_back({*value, in.tree_->text(keyword), value});
  };
  size_t position = 0;
  for (std::string_view param : parts_of(row->params, ' ')) {
    size_t arrow = param.find('>');
    const Syntax* given = argument_of(at, position++, param.substr(0, arrow));
    if (given && arrow != param.npos && !is_none(given)) add(param.substr(arrow + 1), given);
  }
  if (position < in.positional(at)) return std::nullopt;
  for (std::string_view fixed : parts_of(row->fixed, ' ')) {
    size_t equals = fixed.find('=');
    Diagnostics none;
    const Syntax* value = parse_expression({in.origin_, fixed.substr(equals + 1), at.line, at.column}, *in.tree_, none);
    if (value) add(fixed.substr(0, equals), value);
  }
  return std::pair{std::string(row->op), call};
}

// Returns the argument with names of the graph in place of te's tensors, of which the stages so far are made.
const Syntax* Parser::TeReader::with_graph_names(const Syntax& at, VarMap& of_tensors) {
  bool may_be_tensor = is_name(at) || is_call(at);
  std::vector<Expr> tensors = may_be_tensor ? inner_values(at) : std::vector<Expr>();
  if (tensors.size() == 1 && tensors[0].is<Var>() && tensors[0].type().is<BufferType>()) {
    const BufferType& type = buffer_type(cast<Var>(tensors[0]));
    Syntax& name = in.tree_->node();
    static_cast<Place&>(name) = at;
    name.kind = SyntaxKind::kName;
    name.text = in.tree_->text(fmt::format("<tensor{}>", kept_.size()));
    VarRef var =
        make_var(tensors[0].as<Var>()->name,
                 tensor_type(map_each(type.shape, [](const Expr& dim) { return cast_to(dim, kInt64); }), type.dtype));
    of_tensors.emplace(var.get(), tensors[0]);
    in.define(name.text, var);
    kept_.push_back(var);
    return &name;
  }
  bool has_parts = is_list(at) || at.kind == SyntaxKind::kBinary || at.kind == SyntaxKind::kCompare;
  if (!has_parts) return &at;
  Syntax& result = in.tree_->node();
  static_cast<Place&>(result) = at;
  result.kind = at.kind;
  result.text = at.text;
  result.depth = at.depth;
  for (const Syntax* child : at.children) result.children.push_back(with_graph_names(*child, of_tensors));
  return &result;
}

// Reads C = topi.nn.relu(A) in te: stages with the loops that the operator R.nn.relu becomes.
std::vector<Expr> Parser::TeReader::topi_stages(const Syntax& at) {
  VarMap of_tensors;  // the graph's variable of each tensor, and the tensor
  Parser::Body none;
  Temporarily body(in.body_, &none);
  Temporarily graph(in.in_graph_, true);
  Temporarily ints(in.default_int_, kInt64);
  std::optional<Value> value;
  {
    NameScope scope(in.scopes_);
    auto renamed = renamed_topi(at);
    Syntax call = renamed ? renamed->second : at;
    for (size_t i = 1; i < call.children.size(); ++i)
      call.children.begin()[static_cast<std::ptrdiff_t>(i)] = with_graph_names(*call.children[i], of_tensors);
    for (Keyword& keyword : call.keywords) keyword.value = with_graph_names(*keyword.value, of_tensors);
    if (renamed) {
      value = in.operator_call(*in.ops_.find("relax." + renamed->first), call);
    } else {
      call.children.insert(call.children.begin(), at.children[0]);
      value = topi(call);
    }
  }
  if (!value)
    in.fail({at, {}, "write it with te.compute, or as R.nn.relu(x) or a similar operator of a @R.function"},
            "{} is not known in te programs here", spelling(*at.children[0]));
  for (const BindingBlock& block : none.blocks) {
    for (const Binding& binding : block.bindings) add_graph_value(binding.var, binding.value, of_tensors, at);
  }
  return graph_stages(value->expr, of_tensors, at);
}

// Remembers the tensor that a variable of the graph is.
void Parser::TeReader::add_graph_value(const VarRef& var, const Expr& value, VarMap& of_tensors, const Syntax& at) {
  std::vector<Expr> made = graph_stages(value, of_tensors, at);
  if (made.size() != 1) in.fail(at, "operators with several results inside of others are not known in te programs");
  of_tensors.insert_or_assign(var.get(), made[0]);
  kept_.push_back(var);
}

// Adds the stages that an expression of the graph becomes, and returns its tensors.
std::vector<Expr> Parser::TeReader::graph_stages(const Expr& value, VarMap& of_tensors, const Syntax& at) {
  if (const Expr* known = find_value(of_tensors, value.get())) return {*known};
  const OpRow* row = in.ops_.find(op_name(value));
  if (!row) in.fail(at, "{} is not known in te programs here", spelling(*at.children[0]));
  Call call = *value.as<Call>();
  auto as_variable = [&](const Expr& arg) -> Expr {
    if (!arg.is<Call>() || !arg.type().is<TensorType>()) return arg;
    VarRef var = make_var("inner", arg.type(), in.span(at));
    add_graph_value(var, arg, of_tensors, at);
    return var;
  };
  for (Expr& arg : call.args) {
    const Tuple* several = arg.as<Tuple>();
    arg = several ? tuple(map_each(several->items, as_variable), arg.span()) : as_variable(arg);
  }
  Span place = in.span(at);
  if (row->legalize) return add_stages(row->legalize(OpCall{call, place}), call, of_tensors, place);
  const Expr* source = row->view ? find_value(of_tensors, call.args[0].get()) : nullptr;
  if (source) return {reshaped(cast<Var>(*source), *known_shape(value.type()), place)};
  if (!row->decompose) in.fail(at, "{} is not known in te programs here", spelling(*at.children[0]));
  Builder builder(in.ops_);
  builder.set_span(place);
  Expr whole = builder.finish(row->decompose(OpCall{call, place}, builder));
  const SeqExpr* sequence = whole.as<SeqExpr>();
  for (const BindingBlock& block : sequence ? sequence->blocks : std::vector<BindingBlock>()) {
    for (const Binding& binding : block.bindings) add_graph_value(binding.var, binding.value, of_tensors, at);
  }
  return graph_stages(sequence ? sequence->body : whole, of_tensors, at);
}

// Adds a stage that copies the elements, in row-major order, to a buffer of this shape.
Buffer Parser::TeReader::reshaped(const Buffer& source, const std::vector<Expr>& shape, const Span& place) {
  const BufferType& from = buffer_type(source);
  Buffer result = make_buffer("T_reshape", from.dtype, shape, "global", place);
  Block block{.name = unique("T_reshape"), .body = no_op()};
  std::vector<Expr> indices, of_source(from.shape.size(), int_imm(0, kInt64));
  std::vector<For> loops;
  Expr position = int_imm(0, kInt64);
  for (size_t d = 0; d < shape.size(); ++d) {
    VarRef loop = make_var(fmt::format("ax{}", d), prim_type(kInt64)),
           axis = make_var(fmt::format("v_ax{}", d), prim_type(kInt64));
    loops.push_back({.var = loop, .min = int_imm(0, kInt64), .extent = shape[d], .body = no_op()});
    block.iter_vars.push_back({axis, whole_range(shape[d]), IterKind::kSpatial, loop});
    indices.push_back(axis);
    position = position * shape[d] + axis;
  }
  for (size_t d = from.shape.size(); d-- > 0;) {
    Expr dim = cast_to(from.shape[d], kInt64);
    of_source[d] = d == 0 ? position : relaxc::binary(BinaryOp::kFloorMod, position, dim);
    position = relaxc::binary(BinaryOp::kFloorDiv, position, dim);
  }
  block.body = relaxc::store(result, relaxc::load(source, of_source, place), indices, place);
  Accesses found = find_accesses(block.body, block.init);
  block.reads = std::move(found.reads);
  block.writes = std::move(found.writes);
  Stmt stmt = make(std::move(block), place);
  for (For& loop : loops | std::views::reverse) {
    loop.body = stmt;
    stmt = make(std::move(loop), place);
  }
  stages_.push_back({{result}, stmt});
  return result;
}

}  // namespace relaxc::text
