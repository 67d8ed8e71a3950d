// Reads R.emit_te(f, x): a call of the tensor program that a function of te makes, or an operator like topi's.
#include <algorithm>

#include "ir/op_names.h"
#include "ir/text/parse_te.h"

namespace relaxc::text {

namespace {

// Functions of topi whose operators have other names. Of those with attributes, these have the same arguments.
constexpr std::pair<std::string_view, std::string_view> kTopi[] = {{"cast", "astype"},
                                                                   {"concatenate", "concat"},
                                                                   {"nn.dense", "linear"},
                                                                   {"nn.leaky_relu", "nn.leakyrelu"},
                                                                   {"nn.matmul", "matmul"},
                                                                   {"nn.sigmoid", "sigmoid"},
                                                                   {"transpose", "permute_dims"},
                                                                   {"true_divide", "divide"},
                                                                   {"x86.concatenate", "concat"}};
constexpr std::string_view kSameInTopi =
    " astype broadcast_to clip concat cumsum expand_dims flip linear matmul max min nn.conv1d nn.conv2d nn.conv3d "
    "nn.layer_norm nn.leakyrelu nn.log_softmax nn.softmax permute_dims prod repeat reshape split squeeze stack sum "
    "take "
    "tile where ";
constexpr std::string_view kOfPrograms[] = {"primfunc_attrs", "primfunc_name_hint"};

}  // namespace

// Returns the name behind the prefix of topi or of a library that TVM calls for the same: "nn.relu", "matmul".
std::string_view Parser::TeReader::name_in_topi(std::string_view path) {
  for (std::string_view prefix : {"tvm.topi.", "topi."}) {
    if (path.starts_with(prefix)) return path.substr(prefix.size());
  }
  for (std::string_view library : {"cblas.matmul", "mkl.matmul"}) {
    if (path == library || (path.starts_with("tvm.contrib.") && path.substr(12) == library)) return "matmul";
  }
  return {};
}

// Reads R.emit_te(topi.nn.relu, x) as the operator R.nn.relu; nullopt where topi's function has none like it.
std::optional<Value> Parser::TeReader::topi(const Syntax& at) {
  std::string path = spelling(in.required(at, 0, "func"));
  std::string_view name = name_in_topi(path);
  if (name.empty()) return std::nullopt;
  const std::string_view* other = row_of(kTopi, name);
  std::string own(other ? *other : name);
  const OpRow* row = in.ops_.find("relax." + own);
  if (!row) return std::nullopt;
  if (own == "full") return full(*row, at);
  bool is_plain = row->attrs.empty() && row->inputs.size() <= 2;
  bool is_conv = own.starts_with("nn.conv") && in.positional(at) > 6;  // there the groups follow the dilation
  if (!is_plain && (is_conv || kSameInTopi.find(fmt::format(" {} ", own)) == kSameInTopi.npos)) return std::nullopt;
  Syntax call = at;
  call.children.erase(call.children.begin());
  std::erase_if(call.keywords, [](const Keyword& keyword) {
    bool is_default = keyword.name.starts_with("trans") && keyword.value->text == "False";  // of cblas.matmul
    return is_default || std::ranges::find(kOfPrograms, keyword.name) != std::end(kOfPrograms);
  });
  bool same = kSameInTopi.find(fmt::format(" {} ", own)) != kSameInTopi.npos;
  if (!is_plain || same || in.positional(call) != 2) return in.operator_call(*row, call);
  Value a = in.eval(*call.children[1]), b = in.eval(*call.children[2]);
  in.lift_number(a, b, path, at);
  in.lift_number(b, a, path, at);
  return in.typed_call(OpName{row->name}, {in.leaf(a, at), in.leaf(b, at)}, at);
}

// Reads R.emit_te(topi.full, shape, dtype, value).
Value Parser::TeReader::full(const OpRow& row, const Syntax& at) {
  Syntax number(SyntaxKind::kCall, at), call(SyntaxKind::kCall, at);
  auto argument = [&](size_t i, std::string_view name) {
    const Syntax* given = i + 1 < in.positional(at) ? at.children[i + 2] : in.keyword(at, name);
    if (!given) in.fail(at, "argument '{}' is missing", name);
    return given;
  };
  const Syntax *dtype = argument(1, "dtype"), *value = argument(2, "fill_value");
  if (is_call(*value) && in.positional(*value) == 2) value = value->children[2];  // tir.IntImm("int64", 0)
  number.children = {at.children[0], value, dtype};
  call.children = {at.children[0], argument(0, "shape"), &number, dtype};
  Expr filler = in.constant(number).expr;
  Expr shape = in.operator_input(&row.inputs[0], *call.children[1]);
  Call made{op_ref(row.name), {shape, filler}, {}, {}};
  made.attrs.set(row.attrs[0].name, in.attribute(row.attrs[0], *dtype));
  return in.typed_call(std::move(made), at);
}

// Reads C = topi.nn.relu(A) in te: a stage with the loops that the operator R.nn.relu becomes.
std::vector<Expr> Parser::TeReader::topi_stages(const Syntax& at) {
  std::string path = spelling(*at.children[0]);
  auto refuse = [&](const char* why) {
    in.fail({at, {}, "write it with te.compute, or as R.nn.relu(x) or a similar operator of a @R.function"}, "{} {}",
            path, why);
  };
  VarMap of_tensors;  // the graph's variable of each tensor, and the tensor
  Parser::Body none;
  Temporarily body(in.body_, &none);
  Temporarily graph(in.in_graph_, true);
  Temporarily ints(in.default_int_, kInt64);
  std::optional<Value> value;
  {
    NameScope scope(in.scopes_);
    Syntax call = at;
    for (size_t i = 1; i < call.children.size(); ++i) {
      const Syntax& given = *call.children[i];
      bool is_tensor = is_name(given) || is_call(given);
      std::vector<Expr> tensors = is_tensor ? inner_values(given) : std::vector<Expr>();
      if (tensors.size() != 1 || !tensors[0].is<Var>() || !tensors[0].type().is<BufferType>()) continue;
      const BufferType& type = buffer_type(cast<Var>(tensors[0]));
      Syntax& name = in.tree_->node();
      static_cast<Place&>(name) = given;
      name.kind = SyntaxKind::kName;
      name.text = in.tree_->text(fmt::format("<tensor{}>", kept_.size()));
      VarRef var =
          make_var(tensors[0].as<Var>()->name,
                   tensor_type(map_each(type.shape, [](const Expr& dim) { return cast_to(dim, kInt64); }), type.dtype));
      of_tensors.emplace(var.get(), tensors[0]);
      in.define(name.text, var);
      kept_.push_back(var);
      call.children.begin()[static_cast<std::ptrdiff_t>(i)] = &name;
    }
    call.children.insert(call.children.begin(), at.children[0]);
    value = topi(call);
  }
  const OpRow* row = value ? in.ops_.find(op_name(value->expr)) : nullptr;
  if (!row || !row->legalize || !none.blocks.empty()) refuse("is not known in te programs here");
  const Call& node = *value->expr.as<Call>();
  Span place = in.span(at);
  PrimFuncRef program = row->legalize(OpCall{node, place});
  return add_stages(program, node, of_tensors, place);
}

// Adds the blocks of the operator's program, whose first params are the tensors of the call.
std::vector<Expr> Parser::TeReader::add_stages(const PrimFuncRef& program, const Call& call, const VarMap& of_tensors,
                                               const Span& place) {
  std::vector<Expr> tensors;
  for (const Expr& arg : call.args) {
    const Tuple* several = arg.as<Tuple>();
    for (const Expr& item : several ? several->items : std::vector{arg}) {
      if (item.type().is<TensorType>()) tensors.push_back(item);
    }
  }
  const Block* root = program->body.as<Block>();
  RELAXC_CHECK(root, "the program of {} has a root block", op_name(call.callee));
  VarMap renamed;
  Stage stage;
  size_t read = 0;
  for (const VarRef& param : program->params) {
    if (!param.type().is<BufferType>())
      relaxc::fail(place, "operators with symbolic dims are not known in te programs");
    if (read == tensors.size()) {
      stage.buffers.push_back(param);
      continue;
    }
    const Expr& tensor = tensors[read++];
    const Expr* buffer = find_value(of_tensors, tensor.get());
    const Constant* number = tensor.as<Constant>();
    bool is_known = buffer || (number && number->data.size() == 1);
    if (!is_known) relaxc::fail(place, "only numbers and tensors are arguments in te programs");
    if (buffer) renamed.emplace(param.get(), *buffer);
    if (!buffer) numbers_.emplace(param.get(), number->data.as_double(0));
  }
  size_t outputs = stage.buffers.size();
  stage.buffers.insert(stage.buffers.end(), root->alloc_buffers.begin(), root->alloc_buffers.end());
  Stmt stmt = rewrite(root->body, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    const double* number = find_value(numbers_, load->buffer.get());
    if (!number) return std::nullopt;
    DType dtype = dtype_of(load);
    return dtype.is_float() ? float_imm(*number, dtype) : int_imm(static_cast<int64_t>(*number), dtype);
  });
  stmt = rewrite(stmt, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    Block copy = *block;
    std::erase_if(copy.reads, [&](const BufferRegion& region) { return numbers_.contains(region.buffer.get()); });
    copy.name = unique(block->name);
    return make(std::move(copy), block.span());
  });
  stage.stmt = substitute(stmt, renamed);
  stages_.push_back(std::move(stage));
  const std::vector<Buffer>& made = stages_.back().buffers;
  return {made.begin(), made.begin() + static_cast<std::ptrdiff_t>(outputs)};
}

// Returns the values of an argument of topi, which te computes.
std::vector<Expr> Parser::TeReader::inner_values(const Syntax& at) {
  Temporarily graph(in.in_graph_, false);
  Temporarily ints(in.default_int_, kInt32);
  if (is_name(at) && !in.lookup(at.text)) return {};
  return is_name(at) || calls_topi(at) ? values_of(at, "") : std::vector<Expr>();
}

// Reads R.emit_te(lambda x: x + 1, y): what the lambda says of the tensors.
Value Parser::TeReader::emit_lambda(const Syntax& at) {
  const Syntax& lambda = *at.children[1];
  size_t count = lambda.children.size() - 1;
  if (count != in.positional(at) - 1)
    in.fail(at, "the lambda takes {} arguments, got {}", count, in.positional(at) - 1);
  const Syntax& body = *lambda.children.back();
  bool of_topi = is_call(body) && spelling(*body.children[0]).find("topi.") != std::string::npos;
  if (callee(body) == "T.compute") {
    Line &function = in.tree_->line(), &result = in.tree_->line();
    static_cast<Place&>(function) = static_cast<Place&>(result) = lambda;
    result.kind = LineKind::kReturn;
    result.value = &body;
    for (size_t i = 0; i < count; ++i)
      function.params.push_back({*lambda.children[i], lambda.children[i]->text, nullptr});
    function.body.push_back(&result);
    return emit(at, function, "te_compute");
  }
  std::vector<Expr> args = in.read_each(at.operands().subspan(1), &Parser::as_argument);
  NameScope scope(in.scopes_);
  for (size_t i = 0; i < count; ++i) in.define(lambda.children[i]->text, args[i]);
  if (!of_topi) return in.eval(body);
  Syntax inner = body;
  inner.children.insert(inner.children.begin(), at.children[0]);
  return emit(inner);
}

// Reads R.emit_te(f, x, y): a call of the tensor program that f makes of tensors like these.
Value Parser::TeReader::emit(const Syntax& at) {
  const Syntax& callee_at = in.required(at, 0, "func");
  if (callee_at.kind == SyntaxKind::kLambda && in.positional(at) > 0) return emit_lambda(at);
  const Line* const* function = is_name(callee_at) ? find_value(functions_, callee_at.text) : nullptr;
  if (auto value = function ? std::nullopt : topi(at)) return *value;
  if (!function)
    in.fail({at, {}, "define a function of te.compute above the module, or call a tensor program with R.call_tir"},
            "R.emit_te needs a Python interpreter for '{}'", spelling(callee_at));
  return emit(at, **function, std::string(callee_at.text));
}

Value Parser::TeReader::emit(const Syntax& at, const Line& function, const std::string& function_name) {
  std::vector<Expr> args = in.read_each(at.operands().subspan(1), &Parser::as_argument);
  std::vector<std::string> known(std::begin(kOfPrograms), std::end(kOfPrograms));
  for (const Param& param : function.params) known.emplace_back(param.name);
  in.check_keywords(at, known);
  for (size_t i = args.size(); i < function.params.size(); ++i) {
    if (const Syntax* value = in.keyword(at, function.params[i].name)) args.push_back(in.as_argument(*value));
  }
  if (args.size() != function.params.size())
    in.fail(at, "'{}' takes {} arguments, got {}", function_name, function.params.size(), args.size());
  // Numbers and texts are part of the program.
  auto is_fixed = [](const Expr& arg) { return arg.is<IntImm>() || arg.is<FloatImm>() || arg.is<StringImm>(); };
  auto is_scalar = [&](const Expr& arg) { return !is_fixed(arg) && arg.type().is<PrimType>(); };
  std::vector<Expr> scalars;  // of the call, and their params
  std::vector<VarRef> of_scalars;
  std::vector<std::pair<Expr, VarRef>> dims;  // each symbolic dim of the arguments, and the program's name for it
  std::vector<VarRef> params;
  std::vector<Expr> outputs;
  std::optional<PrimFuncRef> made;
  {
    Temporarily graph(in.in_graph_, false);
    Temporarily ints(in.default_int_, kInt32);
    NameScope scope(in.scopes_);
    begin_program();
    std::vector<Expr> tensors;
    for (size_t i = 0; i < args.size(); ++i) {
      bool is_number = is_fixed(args[i]) || is_scalar(args[i]);
      if (!is_number) params.push_back(placeholder_like(args[i], function.params[i], dims));
      tensors.push_back(is_number ? args[i] : Expr(params.back()));
    }
    for (size_t i = 0; i < args.size(); ++i) {  // a dim of a tensor has a name there
      if (!is_scalar(args[i])) continue;
      auto known = std::ranges::find_if(dims, [&](const auto& dim) { return structural_equal(dim.first, args[i]); });
      if (known == dims.end()) {
        scalars.push_back(args[i]);
        of_scalars.push_back(make_var(std::string(function.params[i].name), args[i].type(), in.span(at)));
      }
      tensors[i] = known == dims.end() ? Expr(of_scalars.back()) : Expr(known->second);
    }
    std::erase_if(args, [&](const Expr& arg) { return is_fixed(arg) || is_scalar(arg); });
    for (const auto& [dim, var] : dims) {  // a function of Python may name the dims around it
      if (dim.is<Var>()) in.define(dim.as<Var>()->name, var);
    }
    outputs = run(function, tensors, at);
    for (const Expr& output : outputs) {
      if (!output.is<Var>() || !output.type().is<BufferType>()) in.fail(at, "expected a tensor of te.compute");
      params.push_back(cast<Var>(output));
    }
    params.insert(params.end(), of_scalars.begin(), of_scalars.end());
    made = program(params, at);
  }
  VarMap outside;
  for (size_t i = 0; i < scalars.size(); ++i) outside.emplace(of_scalars[i].get(), scalars[i]);
  for (const auto& [dim, var] : dims) outside.emplace(var.get(), dim);
  Call call{op_ref(ops::kCallTir), {}, {}, {}};
  const Syntax* hint = in.keyword(at, "primfunc_name_hint");
  if (const Syntax* given = in.keyword(at, "primfunc_attrs")) {
    PrimFunc with_attrs = **made;
    for (const auto& [key, value] : in.attrs(*given)) with_attrs.attrs.set(key, value);
    made = make_prim_func(std::move(with_attrs), made->span());
  }
  std::string name = add_program(hint ? in.string(*hint) : function_name, *made);
  call.args = {global_var(name, made->type()), tuple(args, in.span(at))};
  if (!scalars.empty()) call.args.push_back(shape_expr(scalars, in.span(at)));
  for (const Expr& output : outputs) {
    const BufferType& type = buffer_type(cast<Var>(output));
    call.type_args.push_back(tensor_type(
        map_each(type.shape, [&](const Expr& dim) { return cast_to(substitute(dim, outside), kInt64); }), type.dtype));
  }
  return in.typed_call(std::move(call), at);
}

VarRef Parser::TeReader::placeholder_like(const Expr& arg, const Param& param,
                                          std::vector<std::pair<Expr, VarRef>>& dims) {
  const std::vector<Expr>* shape = known_shape(arg.type());
  std::optional<DType> dtype = tensor_dtype(arg.type());
  if (!shape || !dtype) in.fail(param, "the shape and dtype of argument '{}' are not known", param.name);
  auto inside = [&](const Expr& dim) -> Expr {
    if (dim.is<IntImm>()) return dim;
    auto known = std::ranges::find_if(dims, [&](const auto& each) { return structural_equal(each.first, dim); });
    if (known != dims.end()) return known->second;
    const Var* var = dim.as<Var>();
    return dims.emplace_back(dim, make_dim(var ? var->name : fmt::format("d{}", dims.size()))).second;
  };
  return placeholder(std::string(param.name), *dtype, map_each(*shape, inside), in.span(param));
}

std::string Parser::TeReader::add_program(const std::string& wanted, const PrimFuncRef& program) {
  for (const auto& [name, known] : emitted_) {
    if (structural_equal(known, program)) return name;
  }
  std::string name = wanted;
  for (int64_t i = 1; in.declared_.contains(name) || in.unknown_.contains(name); ++i)
    name = fmt::format("{}{}", wanted, i);
  in.declared_.emplace(name, program.type());
  in.module_.functions.emplace(name, program);
  emitted_.emplace_back(name, program);
  return name;
}

}  // namespace relaxc::text
