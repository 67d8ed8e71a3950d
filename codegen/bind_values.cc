#include "codegen/bind_values.h"

#include <algorithm>
#include <set>

#include "ir/arith.h"
#include "ir/attr_names.h"
#include "ir/text/printer.h"
#include "ir/type_relation.h"
#include "ir/visit.h"
#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// Returns whether the result of the operator is a size that int64 does not hold.
bool overflows(const Binary& size) {
  const std::optional<int64_t> a = as_int(size.a), b = as_int(size.b);
  if (!a || !b || dtype_of(size.a) != kInt64) return false;
  if (size.op == BinaryOp::kAdd) return !checked_add(*a, *b);
  if (size.op == BinaryOp::kSub) return !checked_sub(*a, *b);
  return size.op == BinaryOp::kMul && !checked_mul(*a, *b);
}

// Computes what contains a dim that becomes a number: n + 3 becomes 6.
class ValueBinding final : public Substitution {
 public:
  using Substitution::Substitution;
  Expr expr(const Expr& node) override {
    Expr result = Substitution::expr(node);
    if (!result.is<Binary>() || same_node(result, node)) return result;
    if (overflows(*result.as<Binary>()))
      fail_usage(node.span(), "the size {} overflows int64 with the values of its dims; choose smaller ones",
                 print_expr(node));
    return simplify(result);
  }
};

// Throws for a param with a size below 0.
Expr with_values(const Expr& function, const VarMap& values) {
  Expr result = ValueBinding(values)(function);
  if (!result.is<Function>()) return result;
  const std::vector<VarRef>&stated = function.as<Function>()->params, &params = result.as<Function>()->params;
  for (size_t i = 0; i < params.size(); ++i) {
    const std::vector<Expr>* dims = known_shape(params[i].type());
    for (size_t axis = 0; dims && axis < dims->size(); ++axis) {
      if (as_int(dims->at(axis)).value_or(0) < 0)
        fail_usage(params[i].span(), "dim {} of param '{}', {}, would be {}, expected at least 0", axis,
                   params[i]->name, print_expr(known_shape(stated[i].type())->at(axis)), print_expr(dims->at(axis)));
    }
  }
  return result;
}

}  // namespace

static bool is_public(const FunctionRef& function) { return function->attrs.has(attr_names::kGlobalSymbol); }

// Throws for a name of a dim that the module does not have.
template <class Value>
static void check_dim_names(const std::map<std::string, Value>& given, const std::set<std::string>& known) {
  for (const auto& [name, _] : given) {
    if (!known.contains(name))
      fail_usage({}, "the module has no symbolic dim '{}'{}", name, known.empty() ? "" : "; it has: " + joined(known));
  }
}

IRModule with_dims_bound(IRModule module, const std::map<std::string, int64_t>& dims) {
  auto is_graph = [](const auto& entry) { return entry.second.template is<Function>(); };
  bool has_graph = std::ranges::any_of(module.functions, is_graph);
  std::set<std::string> known;
  for (auto& [name, function] : module.functions) {
    const Function* graph = function.as<Function>();
    if (graph ? !is_public(cast<Function>(function)) : has_graph) continue;
    VarMap values;
    for (const VarRef& param : graph ? graph->params : function.as<PrimFunc>()->params) {
      for (const VarRef& dim : free_vars(param.type())) {
        known.insert(dim->name);
        if (auto it = dims.find(dim->name); it != dims.end())
          values.insert_or_assign(dim.get(), int_imm(it->second, dtype_of(dim)));
      }
    }
    if (!values.empty()) function = with_values(function, values);
  }
  check_dim_names(dims, known);
  return module;
}

DimRanges dim_ranges(const Function& function) {
  DimRanges ranges;
  auto read = [&](const char* attr, int64_t DimRange::* end) {
    const AttrValue* value = function.attrs.find(attr);
    if (!value) return;
    const Attrs* numbers = value->as<Attrs>();
    if (!numbers) fail({}, "the attribute '{}' is not a dictionary from names of dims to numbers", attr);
    for (const auto& [name, number] : *numbers) {
      const int64_t* known = number.as<int64_t>();
      if (!known)
        fail({}, "the attribute '{}' gives dim '{}' {}, which is not a number", attr, name, to_string(number));
      ranges[name].*end = *known;
    }
  };
  read(attr_names::kLowerBound, &DimRange::least);
  read(attr_names::kUpperBound, &DimRange::most);
  for (const auto& [name, range] : ranges) {
    if (range.least > range.most || range.most < 0)
      fail({}, "dim '{}' may be {} to {}, which no size is", name, range.least, range.most);
  }
  return ranges;
}

// Returns the graph functions that the host runs, and those that run in their place for other shapes.
static std::set<std::string> entry_functions(const IRModule& module) {
  std::set<std::string> result;
  for (const auto& [name, function] : module.functions) {
    const Function* graph = function.as<Function>();
    if (!graph || !is_public(cast<Function>(function))) continue;
    result.insert(name);
    const std::string otherwise = graph->attrs.get_string(attr_names::kOtherwise, "");
    if (module.functions.contains(otherwise)) result.insert(otherwise);
  }
  return result;
}

IRModule with_dim_ranges(IRModule module, const DimRanges& given) {
  std::set<std::string> known;
  for (const std::string& name : entry_functions(module)) {
    Expr& function = module.functions.at(name);
    Function copy = *function.as<Function>();
    DimRanges ranges = dim_ranges(copy);
    for (const VarRef& param : copy.params) {
      for (const VarRef& dim : free_vars(param.type())) {
        known.insert(dim->name);
        if (auto it = given.find(dim->name); it != given.end()) ranges[dim->name] = it->second;
      }
    }
    Attrs least, most;
    for (const auto& [dim, range] : ranges) {
      if (range.least > 0) least.set(dim, range.least);
      if (range.most != DimRange().most) most.set(dim, range.most);
    }
    copy.attrs = copy.attrs.without(attr_names::kLowerBound).without(attr_names::kUpperBound);
    if (!least.empty()) copy.attrs.set(attr_names::kLowerBound, least);
    if (!most.empty()) copy.attrs.set(attr_names::kUpperBound, most);
    dim_ranges(copy);  // tests them
    function = make_function(std::move(copy), function.span());
  }
  check_dim_names(given, known);
  return module;
}

std::string function_with_params(const IRModule& module, const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& [name, function] : module.functions)
    if (function.is<Function>() && is_public(cast<Function>(function))) names.push_back(name);
  const std::string name = !wanted.empty() ? wanted : names.size() == 1 ? names[0] : "main";
  const Expr* found = module.find(name);
  if (!found || !found->is<Function>())
    fail_usage({}, "there is no graph function '{}' whose params could be bound; there are: {}", name, joined(names));
  return name;
}

namespace {

// Binds the param, and dims that are known by it.
void bind_param(const VarRef& param, const Tensor& tensor, VarMap& to) {
  Expr value = constant(tensor, param.span());
  VarMap dims;
  bind_dims(param.type(), value.type(), dims);
  if (fits(substitute(param.type(), dims), value.type()) != Verdict::kProven)
    fail(param.span(), "param '{}' is {}, and the tensor bound to it is {}", param->name, print_type(param.type()),
         print_type(value.type()));
  for (const auto& [dim, known] : dims) {
    auto [it, is_new] = to.emplace(dim, known);
    if (!is_new && !structural_equal(it->second, known))
      fail(param.span(), "param '{}' has a dim of {}, which another bound param has as {}", param->name,
           print_expr(known), print_expr(it->second));
  }
  to.insert_or_assign(param.get(), value);
}

}  // namespace

IRModule with_params_bound(IRModule module, const std::string& function, const std::map<std::string, Tensor>& values) {
  const std::string name = function_with_params(module, function);
  Expr& found = module.functions.at(name);
  Function copy = *found.as<Function>();
  std::vector<std::string> names = map_each(copy.params, [](const VarRef& param) { return param->name; });
  const AttrValue* shown = copy.attrs.find(attr_names::kInputNames);  // those of an imported model
  if (shown) from_attr(*shown, names);
  VarMap bound;
  std::vector<VarRef> params;
  std::vector<std::string> open;
  for (size_t i = 0; i < copy.params.size(); ++i) {
    if (auto it = values.find(names.at(i)); it != values.end()) {
      bind_param(copy.params[i], it->second, bound);
    } else {
      params.push_back(copy.params[i]);
      open.push_back(names[i]);
    }
  }
  for (const auto& [param, tensor] : values)
    if (!std::ranges::count(names, param))
      fail_usage({}, "'{}' has no param '{}'; it has: {}", name, param, joined(names));
  copy.params = std::move(params);
  if (shown) copy.attrs.set(attr_names::kInputNames, to_attr(open));
  const std::string otherwise = copy.attrs.get_string(attr_names::kOtherwise, "");
  found = with_values(make_function(std::move(copy), found.span()), bound);
  return module.functions.contains(otherwise) ? with_params_bound(std::move(module), otherwise, values) : module;
}

}  // namespace relaxc
