#include "ops/user_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ranges>

#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ops/common.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/index_map.h"

namespace relaxc {

namespace {

// Returns the tensor that an attribute of a node is; null for others.
const Constant* tensor_of(const AttrValue* value) {
  const Expr* expr = value ? value->as<Expr>() : nullptr;
  return expr ? expr->as<Constant>() : nullptr;
}

// Returns element i of the tensor, in row-major order.
std::optional<AttrValue> element_of(const Tensor& tensor, size_t i) {
  const auto at = static_cast<int64_t>(i);
  if (at >= tensor.size()) return std::nullopt;
  return tensor.dtype().is_float() ? AttrValue(tensor.as_double(at)) : AttrValue(tensor.as_int(at));
}

// Returns the attribute of the name, or the item of a list or tensor that "pads_1" names.
std::optional<AttrValue> attribute(const Attrs& attrs, const std::string& name) {
  if (const AttrValue* whole = attrs.find(name)) {
    const Constant* tensor = tensor_of(whole);
    return tensor && tensor->data.size() == 1 ? element_of(tensor->data, 0) : *whole;
  }
  size_t underscore = name.rfind('_');
  if (underscore == std::string::npos || underscore + 1 == name.size()) return std::nullopt;
  size_t index = 0;
  for (char c : name.substr(underscore + 1)) {
    if (c < '0' || c > '9' || index > 1000) return std::nullopt;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  const AttrValue* whole = attrs.find(name.substr(0, underscore));
  if (const Constant* tensor = tensor_of(whole)) return element_of(tensor->data, index);
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
    if (!set_attributes()) return reason_;
    find_written();
    add_tensor_attributes();
    if (!check_counts() || !arrange_constants()) return reason_;
    check_writes();
    std::vector<Type> outputs = request_.outputs;
    if (outputs.empty()) {
      for (size_t i = tensors_.size(); i < params_.size(); ++i)
        outputs.push_back(tensor_type_of_rank(-1, buffer_type(params_[i]).dtype));
    }
    const Expr callee =
        kernel_.symbol.empty() ? global_var(kernel_.name, program_.type()) : extern_func(kernel_.symbol);
    if (!check_types()) return reason_;
    KernelMatch match = match_kernel({.callee = callee, .tensors = tensors_, .outputs = outputs}, program_);
    if (!match.contradictions.empty()) return match.contradictions.front();
    if (!check_dims(match) || !check_open_attributes(match) || !check_condition(match) ||
        !infer_outputs(match, outputs))
      return reason_;
    if (kernel_.symbol.empty()) return call_program(outputs);
    std::optional<Expr> call = call_function(match, outputs);
    return call ? std::variant<Expr, std::string>(*call) : reason_;
  }

 private:
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  // Puts attributes in place of the scalar params.
  bool set_attributes() {
    const PrimFuncRef& program = kernel_.program;
    PrimFunc copy = *program;
    for (const VarRef& param : program->params) {
      const PrimType* scalar = param.type().as<PrimType>();
      if (!scalar) continue;
      std::optional<AttrValue> value = attribute(request_.attrs, param->name);
      if (!value) value = attribute(kernel_.defaults, param->name);
      std::optional<Expr> number = value ? as_scalar(*value, scalar->dtype) : std::nullopt;
      if (!number) return refuse_attribute(param->name, value, scalar->dtype);
      attributes_.emplace(param.get(), *number);
      std::erase_if(copy.params, [&](const VarRef& other) { return same_node(other, param); });
    }
    if (!attributes_.empty()) {
      Substitution replaced(attributes_);
      for (VarRef& param : copy.params) param = replaced.var(param);
      copy.body = replaced.stmt(copy.body);
      program_ = make_prim_func(std::move(copy), program.span());
    }
    params_ = buffer_params(program_);
    return true;
  }

  // A buffer that is neither an input nor a result is the tensor attribute of its name.
  void add_tensor_attributes() {
    for (size_t i = 0; i < params_.size() && params_.size() > tensors_.size() + request_.num_outputs; ++i) {
      const AttrValue* value = request_.attrs.find(params_[i]->name);
      if (!tensor_of(value) || i > tensors_.size() || written_.contains(params_[i].get())) continue;
      tensors_.insert(tensors_.begin() + static_cast<std::ptrdiff_t>(i), *value->as<Expr>());
      from_attributes_.push_back(i);
    }
  }

  bool refuse_attribute(const std::string& name, const std::optional<AttrValue>& value, DType dtype) {
    if (value)
      return refuse(fmt::format("attribute '{}' is {}, and the kernel takes {}", name, text_of_attribute(*value),
                                to_string(dtype)));
    std::string known = joined(request_.attrs, [](const auto& entry) { return entry.first; });
    return refuse(fmt::format("it takes '{}', and there is no attribute of that name{}; {}", name,
                              known.empty() ? "" : "; there are " + known, remedy_of_absent(name)));
  }

  bool check_counts() {
    size_t inputs = tensors_.size(), outputs = request_.num_outputs;
    if (params_.size() == inputs + outputs) return true;
    // A node may leave out its last results; the kernel computes them all the same. Which buffers of a C function are
    // results is known if it says so.
    auto is_result = [&](const Buffer& param) { return written_.contains(param.get()); };
    bool has_more = request_.outputs.empty() && params_.size() > inputs + outputs &&
                    std::all_of(params_.begin() + static_cast<std::ptrdiff_t>(inputs), params_.end(), is_result);
    if (has_more) return true;
    std::string names = joined(params_, [](const Buffer& param) { return param->name; });
    std::string types = joined(tensors_, [](const Expr& tensor) { return text_of_tensor(tensor.type()); });
    bool may_say = !kernel_.symbol.empty() && kernel_.results == 0 && request_.outputs.empty() &&
                   params_.size() > inputs + outputs;
    return refuse(fmt::format("it has {} buffers ({}), and there are {} inputs ({}) and {} results{}", params_.size(),
                              names, inputs, types, outputs,
                              may_say
                                  ? fmt::format("; if the node leaves out results, say how many the function computes: "
                                                "@S.extern(\"{}\", results={})",
                                                kernel_.symbol, params_.size() - inputs)
                                  : ""));
  }

  void find_written() {
    walk(
        program_->body, [&](const BufferStore& store) { written_.insert(store.buffer.get()); },
        [&](const Block& block) {
          for (const BufferRegion& region : block.writes) written_.insert(region.buffer.get());
        });
    for (size_t i = params_.size() - std::min(kernel_.results, params_.size()); i < params_.size(); ++i)
      written_.insert(params_[i].get());
  }

  // An operand is a value that others may read as well, or a constant of the model.
  void check_writes() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (written_.contains(params_[i].get()))
        fail(program_.span(), "kernel '{}' writes its operand '{}', which others may read; write to a T.alloc_buffer",
             kernel_.name, params_[i]->name);
    }
  }

  std::string text_of_param(const KernelOperand& operand) const {
    return fmt::format("{} '{}'", operand.is_output ? "result" : "input", operand.param->name);
  }

  // Compares what match_kernel() would compare, too, in the terms of whoever wrote the kernel.
  bool check_types() {
    for (size_t i = 0; i < params_.size(); ++i) {
      const Buffer& param = params_[i];
      const BufferType& declared = buffer_type(param);
      const bool is_output = i >= tensors_.size();
      if (is_output && request_.outputs.empty()) break;
      const Type type = is_output ? request_.outputs[i - tensors_.size()] : tensors_[i].type();
      std::optional<DType> dtype = tensor_dtype(type);
      int64_t rank = known_rank(type), dims = std::ssize(declared.shape);
      if (is_output && dtype && *dtype != declared.dtype)
        return refuse(fmt::format("result '{}' is {} in the model, and '{}' declares {}", param->name,
                                  to_string(*dtype), kernel_.name, to_string(declared.dtype)));
      if (rank < 0 || rank == dims) continue;
      if (is_output)
        return refuse(fmt::format("result '{}' has {} dims in the model, and '{}' declares {}", param->name, rank,
                                  kernel_.name, dims));
      if (kernel_.layout.contains(param->name))
        return refuse(
            fmt::format("after layout= '{}' has {} dims, and '{}' declares {}; declare '{}' in that shape, {}",
                        param->name, rank, kernel_.name, dims, param->name, text_of_tensor(type)));
    }
    return true;
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
      tensors_[i] =
          builder_.op("layout_transform", {tensors_[i]}, Attrs{{"index_map", index_map_attr(*map.as<Lambda>())}});
    }
    return true;
  }

  bool check_dims(const KernelMatch& match) {
    for (const KernelDim& dim : unproven_dims(match)) {
      bool may_wait = request_.outputs.empty() && dim.verdict != Verdict::kContradicted && kernel_.symbol.empty();
      if (may_wait) continue;  // a pass tests it when the model runs
      std::string given = text_of_dim(dim.given), wanted = text_of_dim(dim.wanted),
                  declared = text_of_dim(buffer_type(dim.operand->param).shape[dim.dim]),
                  place = fmt::format("dim {} of {}", dim.dim, text_of_param(*dim.operand));
      if (declared != wanted) wanted = fmt::format("{} = {}", declared, wanted);
      const bool is_wrong = dim.verdict == Verdict::kContradicted;
      if (dim.operand->is_output)
        return refuse(fmt::format("{} is {} in the model, and '{}' declares {}{}", place, given, kernel_.name, wanted,
                                  is_wrong ? "" : ", which is not known to be the same"));
      if (is_wrong || !request_.outputs.empty())
        return refuse(
            fmt::format("{} is {}, {} {}", place, given, is_wrong ? "expected" : "which is not known to be", wanted));
      builder_.match_cast(shape_expr({dim.given}), shape_type({dim.wanted}),
                          name_of_check(fmt::format("{} of {} and {}", place, kernel_.name, declared)));
    }
    return true;
  }

  // Returns whether a dim of the signature has the attribute's name and value: the k of a top-k is that of its results.
  bool is_dim(const KernelMatch& match, const OpenAttr& attr) const {
    std::optional<Expr> value;
    if (const int64_t* number = attr.value.as<int64_t>()) value = int_imm(*number);
    if (const Expr* expr = attr.value.as<Expr>()) value = *expr;
    return value && std::ranges::any_of(scalar_arguments(program_), [&](const VarRef& var) {
             const Expr* dim = find_value(match.dims, var.get());
             return dim && var->name == attr.name && equal_dims(*dim, *value) == Verdict::kProven;
           });
  }

  bool check_open_attributes(const KernelMatch& match) {
    std::vector<std::string> unread;
    for (const OpenAttr& attr : request_.open) {
      // Of two operators that have the attribute, the kernel reads that of the last.
      const AttrValue* value = request_.attrs.find(attr.name);
      bool is_read = reads_attribute(kernel_, attr.name) && value && *value == attr.value;
      if (is_read || is_dim(match, attr)) continue;
      unread.push_back(fmt::format("{}={}", attr.name, text_of_attribute(attr.value)));
      if (!attr.op.empty()) unread.back() += " of " + attr.op;
    }
    if (unread.empty()) return true;
    const bool is_one = unread.size() == 1, is_pattern = !request_.open[0].op.empty();
    const char* them = is_one ? "it" : "them";
    return refuse(fmt::format(
        "'{}' neither reads nor names {}, which {}; {} if it is right for that", kernel_.name, joined(unread),
        is_one ? "is not the default" : "are not the defaults",
        is_pattern ? fmt::format("write {} in the pattern", them) : fmt::format("add {} to @S.implements", them)));
  }

  static constexpr size_t kMostItems = 64;  // of a tensor, that a condition may name
  bool check_condition(const KernelMatch& match) {
    if (!kernel_.where) return true;
    DimValues values;
    for (const auto& [name, value] : kernel_.defaults) values.insert_or_assign(name, value);
    for (const auto& [name, value] : request_.attrs) {
      const AttrList* list = value.as<AttrList>();
      const Constant* tensor = tensor_of(&value);
      const size_t items = list ? list->size() : tensor ? std::min<size_t>(tensor->data.size(), kMostItems) : 0;
      if (!tensor || items == 1) values.insert_or_assign(name, *attribute(request_.attrs, name));
      for (size_t i = 0; i < items; ++i) {
        const std::string item = fmt::format("{}_{}", name, i);
        values.insert_or_assign(item, *attribute(request_.attrs, item));
      }
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

  // Sets the dims that do not follow from the kernel's signature to those of the node's own result.
  void complete(std::vector<std::optional<Expr>>& dims, const Type& known) const {
    const std::vector<Expr>* shape = known_shape(known);
    if (!shape || shape->size() != dims.size()) return;
    VarSet given;
    for (const Expr& tensor : request_.tensors) {
      for (const VarRef& var : free_vars(tensor.type())) given.insert(var.get());
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      bool is_given =
          std::ranges::all_of(free_vars((*shape)[i]), [&](const VarRef& v) { return given.contains(v.get()); });
      if (!dims[i] && is_given) dims[i] = (*shape)[i];
    }
  }

  // Completes the types of results that the request leaves open.
  bool infer_outputs(KernelMatch& match, std::vector<Type>& outputs) {
    if (!request_.outputs.empty()) return true;
    bool is_computed = false;
    for (const KernelOperand& operand : match.operands) {
      if (!operand.is_output) continue;
      const BufferType& declared = buffer_type(operand.param);
      std::vector<std::optional<Expr>> dims = dims_in_call(match, operand);
      if (operand.number < request_.known.size()) complete(dims, request_.known[operand.number]);
      auto open = std::ranges::find_if_not(dims, [](const auto& dim) { return dim.has_value(); });
      if (open != dims.end()) {
        const std::string place = fmt::format("dim {} of {}", open - dims.begin(), text_of_param(operand));
        if (is_computed)
          return refuse(
              fmt::format("{} follows neither from the inputs nor from the result of which @S.shape computes "
                          "the dims",
                          place));
        if (!kernel_.shape)
          return refuse(
              fmt::format("{} does not follow from the inputs; give a program that computes the dims of this "
                          "result, @S.shape(\"{}\")",
                          place, kernel_.name));
        is_computed = true;
        if (!compute_dims(operand, dims)) return false;
      }
      auto in_graph = [](const std::optional<Expr>& dim) { return simplify(cast_to(*dim, kInt64)); };
      outputs[operand.number] = tensor_type(map_each(dims, in_graph), declared.dtype);
      bind_dims(shape_type(declared.shape), outputs[operand.number], match.dims);
    }
    return true;
  }

  // Calls the program of the shape, and sets the dims that it computes when the model runs.
  bool compute_dims(const KernelOperand& operand, std::vector<std::optional<Expr>>& dims) {
    std::vector<Expr> tensors = tensors_;  // it may have buffers of its own for attributes
    for (size_t i : std::views::reverse(from_attributes_))
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
    auto made = call_user_kernel(*kernel_.shape, {.tensors = tensors, .attrs = request_.attrs}, module_, builder_);
    if (const std::string* why = std::get_if<std::string>(&made)) return refuse("its @S.shape does not fit: " + *why);
    const Expr& list = std::get<Expr>(made);
    const int64_t rank = std::ssize(dims);
    if (fits(tensor_type({int_imm(rank)}, kInt64), list.type()) != Verdict::kProven)
      return refuse(fmt::format("its @S.shape gives {}, expected int64({}), the dims of {}",
                                text_of_tensor(list.type()), rank, text_of_param(operand)));
    Expr computed = builder_.op("tensor_to_shape", {builder_.emit(list)});
    for (int64_t i = 0; i < rank; ++i) {
      auto& dim = dims[static_cast<size_t>(i)];
      if (!dim) dim = make_dim(fmt::format("{}_dim{}", kernel_.name, i));
    }
    builder_.match_cast(computed, shape_type(map_each(dims, [](const auto& dim) { return cast_to(*dim, kInt64); })));
    return true;
  }

  static Type type_of(const std::vector<Type>& outputs) {
    return outputs.size() == 1 ? outputs[0] : tuple_type(outputs);
  }

  Expr call_program(const std::vector<Type>& outputs) {
    Expr callee = global_var(add_program(kernel_.name, program_), program_.type());
    return call(op_ref(ops::kCallTir), {callee, tuple(tensors_)}, {}, type_of(outputs), builder_.span(), outputs);
  }

  std::optional<Expr> call_function(const KernelMatch& match, const std::vector<Type>& outputs) {
    std::vector<Expr> scalars;
    for (const VarRef& var : scalar_arguments(kernel_.program)) {
      const Expr *attribute = find_value(attributes_, var.get()), *dim = find_value(match.dims, var.get());
      if (!attribute && !dim) {
        refuse(fmt::format("'{}' does not follow from the dims of the inputs and results", var->name));
        return std::nullopt;
      }
      scalars.push_back(attribute ? as_argument(*attribute) : simplify(cast_to(*dim, kInt64)));
    }
    const Span& span = builder_.span();
    std::vector<Expr> args = {extern_func(kernel_.symbol, program_.span()), tuple(tensors_)};
    if (!scalars.empty()) args.push_back(shape_expr(std::move(scalars)));
    return call(op_ref(ops::kCallDpsPacked), std::move(args), {}, type_of(outputs), span, outputs);
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
  std::vector<size_t> from_attributes_ = {};  // the positions of those tensors
  PrimFuncRef program_ = kernel_.program;
  std::vector<Buffer> params_ = {};
  std::set<const NodeHeader*> written_ = {};  // the buffers that the program writes
  VarMap attributes_ = {};
  std::string reason_ = {};
};

}  // namespace

bool reads_attribute(const UserKernel& kernel, std::string_view name) {
  auto is_read = [&](std::string_view text) {
    if (!text.starts_with(name)) return false;
    text.remove_prefix(name.size());
    bool is_item = text.size() > 1 && text[0] == '_' && text.find_first_not_of("0123456789", 1) == text.npos;
    return text.empty() || is_item;
  };
  return std::ranges::any_of(kernel.where.reads, is_read) ||
         std::ranges::any_of(kernel.program->params,
                             [&](const VarRef& param) { return param.type().is<PrimType>() && is_read(param->name); });
}

std::string remedy_of_absent(std::string_view name) {
  return fmt::format("for one that a node may leave out write defaults={{\"{}\": ...}} in @S.implements", name);
}

std::string text_of_dim(const Expr& dim) {
  if (std::optional<int64_t> number = as_int(dim)) return fmt::format("{}", *number);
  if (const Var* var = dim.as<Var>()) return var->name;
  if (const Cast* cast = dim.as<Cast>()) return text_of_dim(cast->value);
  const Binary* node = dim.as<Binary>();
  if (!node) return debug_print(dim);
  const BinaryOpInfo& op = info(node->op);
  if (!op.symbol) return fmt::format("{}({}, {})", op.name, text_of_dim(node->a), text_of_dim(node->b));
  auto part = [](const Expr& e) { return e.is<Binary>() ? "(" + text_of_dim(e) + ")" : text_of_dim(e); };
  return fmt::format("{} {} {}", part(node->a), op.symbol, part(node->b));
}

std::string text_of_attribute(const AttrValue& value) {
  const Constant* tensor = tensor_of(&value);
  return tensor ? text_of_tensor(value.as<Expr>()->type()) : to_string(value);
}

std::string text_of_tensor(const Type& type) {
  std::optional<DType> dtype = tensor_dtype(type);
  const std::vector<Expr>* shape = known_shape(type);
  return fmt::format("{}({})", dtype ? to_string(*dtype) : "a tensor", shape ? joined(*shape, text_of_dim) : "...");
}

std::string note_at(const Span& span, std::string_view message) {
  const std::string place = to_string(span);
  std::string text = fmt::format("{}{}note: {}\n{}", place, place.empty() ? "" : ": ", message, source_excerpt(span));
  text.pop_back();
  return text;
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
