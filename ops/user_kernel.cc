#include "ops/user_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ops/common.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// Returns the attribute of the name, or the item of a list that "pads_1" names.
std::optional<AttrValue> attribute(const Attrs& attrs, const std::string& name) {
  if (const AttrValue* whole = attrs.find(name)) return *whole;
  size_t underscore = name.rfind('_');
  if (underscore == std::string::npos || underscore + 1 == name.size()) return std::nullopt;
  size_t index = 0;
  for (char c : name.substr(underscore + 1)) {
    if (c < '0' || c > '9' || index > 1000) return std::nullopt;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  const AttrValue* whole = attrs.find(name.substr(0, underscore));
  const AttrList* list = whole ? whole->as<AttrList>() : nullptr;
  return list && index < list->size() ? std::optional((*list)[index]) : std::nullopt;
}

// Returns the number that an attribute is.
std::optional<Expr> as_scalar(const AttrValue& value, DType dtype) {
  if (const bool* flag = value.as<bool>()) return scalar_imm(*flag, dtype);
  if (const int64_t* number = value.as<int64_t>())
    return dtype.is_float() ? scalar_imm(static_cast<double>(*number), dtype) : int_imm(*number, dtype);
  const double* number = value.as<double>();
  return number && dtype.is_float() ? std::optional(scalar_imm(*number, dtype)) : std::nullopt;
}

// A C function gets all scalars in 64 bits: a float as the bits of a double.
Expr as_argument(const Expr& scalar) {
  const FloatImm* number = scalar.as<FloatImm>();
  return number ? int_imm(std::bit_cast<int64_t>(number->value)) : cast_to(scalar, kInt64);
}

class KernelCaller {
 public:
  KernelCaller(const UserKernel& kernel, const KernelRequest& request, IRModule& module, Builder& builder)
      : kernel_(kernel), request_(request), module_(module), builder_(builder), tensors_(request.tensors) {}

  std::variant<Expr, std::string> run() {
    if (!set_attributes() || !check_counts() || !arrange_constants()) return reason_;
    std::vector<Type> outputs = request_.outputs;
    if (outputs.empty()) {
      for (size_t i = tensors_.size(); i < params_.size(); ++i)
        outputs.push_back(tensor_type_of_rank(-1, buffer_type(params_[i]).dtype));
    }
    const Expr callee =
        kernel_.symbol.empty() ? global_var(kernel_.name, program_.type()) : extern_func(kernel_.symbol);
    KernelMatch match = match_kernel({.callee = callee, .tensors = tensors_, .outputs = outputs}, program_);
    if (!match.contradictions.empty()) return match.contradictions.front();
    if (!check_dims(match) || !check_condition(match) || !infer_outputs(match, outputs)) return reason_;
    return make_call(match, outputs);
  }

 private:
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  // Puts attributes in place of the scalar params.
  std::optional<PrimFuncRef> with_attributes(const PrimFuncRef& program, VarMap& values) {
    PrimFunc copy = *program;
    for (const VarRef& param : program->params) {
      const PrimType* scalar = param.type().as<PrimType>();
      if (!scalar) continue;
      std::optional<AttrValue> value = attribute(request_.attrs, param->name);
      if (!value) value = attribute(kernel_.defaults, param->name);
      std::optional<Expr> number = value ? as_scalar(*value, scalar->dtype) : std::nullopt;
      if (!number) {
        refuse_attribute(param->name, value, scalar->dtype);
        return std::nullopt;
      }
      values.emplace(param.get(), *number);
      std::erase_if(copy.params, [&](const VarRef& other) { return same_node(other, param); });
    }
    if (values.empty()) return program;
    Substitution replaced(values);
    for (VarRef& param : copy.params) param = replaced.var(param);
    copy.body = replaced.stmt(copy.body);
    return make_prim_func(std::move(copy), program.span());
  }

  void refuse_attribute(const std::string& name, const std::optional<AttrValue>& value, DType dtype) {
    if (value) {
      refuse(fmt::format("attribute '{}' is {}, and the kernel takes {}", name, to_string(*value), to_string(dtype)));
      return;
    }
    std::string known = joined(request_.attrs, [](const auto& entry) { return entry.first; });
    refuse(fmt::format("it takes '{}', and there is no attribute of that name{}", name,
                       known.empty() ? "" : "; there are " + known));
  }

  bool set_attributes() {
    std::optional<PrimFuncRef> program = with_attributes(kernel_.program, attributes_);
    if (!program) return false;
    program_ = *program;
    params_ = buffer_params(program_);
    return true;
  }

  bool check_counts() {
    size_t inputs = tensors_.size(), outputs = request_.num_outputs;
    if (params_.size() == inputs + outputs) return true;
    return refuse(
        fmt::format("it has {} buffers, and there are {} inputs and {} results", params_.size(), inputs, outputs));
  }

  // Gives constant operands the layouts that the kernel asks for.
  bool arrange_constants() {
    for (const auto& [name, map] : kernel_.layout) {
      size_t i = 0;
      while (i < params_.size() && params_[i]->name != name) ++i;
      if (i >= tensors_.size()) return refuse(fmt::format("'{}' is a result, and layout= is for operands", name));
      if (!tensors_[i].is<Constant>())
        return refuse(
            fmt::format("operand '{}' is not constant, and the kernel reads it in a layout of its own", name));
      std::string problem = problem_of_index_map(*map.as<Lambda>(), tensors_[i].type());
      if (!problem.empty()) return refuse(fmt::format("the layout of operand '{}' {}", name, problem));
      tensors_[i] = builder_.op("layout_transform", {tensors_[i]}, Attrs{{"index_map", map}});
    }
    return true;
  }

  bool check_dims(const KernelMatch& match) {
    for (const KernelDim& dim : unproven_dims(match)) {
      bool may_wait = request_.outputs.empty() && dim.verdict != Verdict::kContradicted && kernel_.symbol.empty();
      if (may_wait) continue;  // a pass tests it when the model runs
      std::string place = fmt::format("dim {} of {} {}", dim.dim, dim.operand->role, dim.operand->number);
      if (dim.verdict == Verdict::kContradicted)
        return refuse(fmt::format("{} is {}, expected {}", place, text_of_dim(dim.given), text_of_dim(dim.wanted)));
      if (!request_.outputs.empty())
        return refuse(fmt::format("{} is {}, which is not known to be {}", place, text_of_dim(dim.given),
                                  text_of_dim(dim.wanted)));
      builder_.match_cast(shape_expr({dim.given}), shape_type({dim.wanted}), name_of_check(place));
    }
    return true;
  }

  bool check_condition(const KernelMatch& match) {
    if (!kernel_.where) return true;
    DimValues values;
    for (const auto& [name, value] : kernel_.defaults) values.insert_or_assign(name, value);
    for (const auto& [name, value] : request_.attrs) {
      values.insert_or_assign(name, value);
      const AttrList* list = value.as<AttrList>();
      for (size_t i = 0; list && i < list->size(); ++i)
        values.insert_or_assign(fmt::format("{}_{}", name, i), (*list)[i]);
    }
    for (const VarRef& var : scalar_arguments(program_)) {
      const Expr* dim = find_value(match.dims, var.get());
      if (!dim) continue;
      Expr value = simplify(*dim);
      auto number = as_int(value);
      values.insert_or_assign(var->name, number ? AttrValue(*number) : AttrValue(value));
    }
    std::optional<std::string> why = kernel_.where(values);
    return !why || refuse(*why);
  }

  // Completes the types of results that the request leaves open.
  bool infer_outputs(KernelMatch& match, std::vector<Type>& outputs) {
    if (!request_.outputs.empty()) return true;
    for (const KernelOperand& operand : match.operands) {
      if (!operand.is_output) continue;
      const DType dtype = buffer_type(operand.param).dtype;
      std::vector<std::optional<Expr>> dims = dims_in_call(match, operand);
      auto open = std::ranges::find_if_not(dims, [](const auto& dim) { return dim.has_value(); });
      if (open != dims.end() && (!kernel_.shape || operand.number > 0))
        return refuse(
            fmt::format("dim {} of result {} does not follow from the inputs; give a program that computes "
                        "the shape of the first result, @S.shape(\"{}\")",
                        open - dims.begin(), operand.number, kernel_.name));
      if (open != dims.end()) {
        std::optional<std::vector<Expr>> computed = computed_dims(dims.size());
        if (!computed) return false;
        outputs[operand.number] = tensor_type(*computed, dtype);
        bind_dims(operand.param.type(), outputs[operand.number], match.dims);
        continue;
      }
      auto in_graph = [](const std::optional<Expr>& dim) { return simplify(cast_to(*dim, kInt64)); };
      outputs[operand.number] = tensor_type(map_each(dims, in_graph), dtype);
    }
    return true;
  }

  // Calls the program of the shape, and returns the dims that it computes when the model runs.
  std::optional<std::vector<Expr>> computed_dims(size_t rank) {
    VarMap unused;
    std::optional<PrimFuncRef> program = with_attributes(*kernel_.shape, unused);
    if (!program) return std::nullopt;
    Type list = tensor_type({int_imm(static_cast<int64_t>(rank))}, kInt64);
    Expr callee = global_var(add_program(kernel_.name + "_shape", *program), program->type());
    Expr dims =
        builder_.emit(call(op_ref(ops::kCallTir), {callee, tuple(tensors_)}, {}, list, builder_.span(), {list}));
    std::vector<Expr> result;
    for (size_t i = 0; i < rank; ++i) result.push_back(make_dim(fmt::format("{}_dim{}", kernel_.name, i)));
    builder_.match_cast(builder_.op("tensor_to_shape", {dims}), shape_type(result));
    return result;
  }

  Expr make_call(const KernelMatch& match, const std::vector<Type>& outputs) {
    Type type = outputs.size() == 1 ? outputs[0] : tuple_type(outputs);
    const Span& span = builder_.span();
    if (kernel_.symbol.empty()) {
      Expr callee = global_var(add_program(kernel_.name, program_), program_.type());
      return call(op_ref(ops::kCallTir), {callee, tuple(tensors_)}, {}, type, span, outputs);
    }
    std::vector<Expr> scalars;
    for (const VarRef& var : scalar_arguments(kernel_.program)) {
      const Expr* attribute = find_value(attributes_, var.get());
      scalars.push_back(attribute ? as_argument(*attribute) : simplify(cast_to(match.dims.at(var.get()), kInt64)));
    }
    std::vector<Expr> args = {extern_func(kernel_.symbol, span), tuple(tensors_)};
    if (!scalars.empty()) args.push_back(shape_expr(std::move(scalars)));
    return call(op_ref(ops::kCallDpsPacked), std::move(args), {}, type, span, outputs);
  }

  // Returns the name under which the module has the program. Calls with equal attributes share it.
  std::string add_program(const std::string& name, const PrimFuncRef& program) {
    for (const auto& [known, function] : module_.functions) {
      if (known.starts_with(name) && structural_equal(function, program)) return known;
    }
    std::string unique = module_.fresh_name(name);
    module_.functions.emplace(unique, with_fresh_variables(program));
    return unique;
  }

  const UserKernel& kernel_;
  const KernelRequest& request_;
  IRModule& module_;
  Builder& builder_;
  std::vector<Expr> tensors_;
  PrimFuncRef program_ = kernel_.program;
  std::vector<Buffer> params_ = {};
  VarMap attributes_ = {};
  std::string reason_ = {};
};

}  // namespace

std::string text_of_dim(const Expr& dim) {
  std::optional<int64_t> number = as_int(dim);
  return number ? fmt::format("{}", *number) : debug_print(dim);
}

std::variant<Expr, std::string> call_user_kernel(const UserKernel& kernel, const KernelRequest& request,
                                                 IRModule& module, Builder& builder) {
  return KernelCaller(kernel, request, module, builder).run();
}

bool attribute_is(std::string_view name, const AttrValue& value, const AttrValue& wanted, int64_t rank) {
  if (value == wanted) return true;
  if (const DType* dtype = value.as<DType>())
    return wanted.as<std::string>() && to_string(*dtype) == *wanted.as<std::string>();
  auto number = [](const AttrValue& v) -> std::optional<double> {
    if (const bool* flag = v.as<bool>()) return *flag;
    if (const int64_t* whole = v.as<int64_t>()) return static_cast<double>(*whole);
    return v.as<double>() ? std::optional(*v.as<double>()) : std::nullopt;
  };
  const AttrList *a = value.as<AttrList>(), *b = wanted.as<AttrList>();
  if (a && b)
    return std::ranges::equal(*a, *b,
                              [&](const AttrValue& x, const AttrValue& y) { return attribute_is(name, x, y, rank); });
  if (a)
    return !a->empty() &&
           std::ranges::all_of(*a, [&](const AttrValue& x) { return attribute_is(name, x, wanted, rank); });
  auto x = number(value), y = number(wanted);
  if (!x || !y) return false;
  bool is_axis = rank > 0 && (name == "axis" || name == "axes");
  auto from_start = [&](double axis) { return axis < 0 ? axis + static_cast<double>(rank) : axis; };
  if (is_axis) return from_start(*x) == from_start(*y);
  bool has_float = value.as<double>() || wanted.as<double>();
  return *x == *y || (has_float && static_cast<float>(*x) == static_cast<float>(*y));
}

}  // namespace relaxc
