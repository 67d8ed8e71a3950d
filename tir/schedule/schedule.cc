#include "tir/schedule/schedule.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "tir/edit/facts.h"
#include "tir/edit/step.h"
#include "tir/program.h"

namespace relaxc {

using namespace scheduling;

// ---- The schedule

Schedule::Schedule(IRModule module, ScheduleOptions options)
    : options_(options), module_(std::move(module)), random_(options.seed) {
  std::vector<std::string> programs;
  for (const auto& [name, function] : module_.functions) {
    if (function.is<PrimFunc>()) programs.push_back(name);
  }
  if (programs.size() == 1) working_on_ = programs[0];
  if (programs.size() > 1 && std::count(programs.begin(), programs.end(), "main")) working_on_ = "main";
}
Schedule::Schedule(const PrimFuncRef& function, ScheduleOptions options)
    : Schedule(IRModule{{{"main", function}}, {}, {}}, options) {}
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

const std::string& Schedule::resolve(const std::string& function) const {
  // TVM calls the only function main.
  bool is_only = function == "main" && module_.functions.size() == 1;
  return function.empty() || is_only ? working_on_ : function;
}

Tree& Schedule::tree(const std::string& function) const {
  const std::string& name = resolve(function);
  auto it = trees_.find(name);
  if (it == trees_.end()) {
    bool has_programs = std::any_of(module_.functions.begin(), module_.functions.end(),
                                    [](const auto& entry) { return entry.second.template is<PrimFunc>(); });
    if (name.empty() && !has_programs) fail({}, "the module has no tensor program to schedule");
    if (name.empty()) fail({}, "the module has several tensor programs; say which one with work_on or func_name");
    auto made = std::make_unique<Tree>(program(name));
    find_facts(*made);
    it = trees_.emplace(name, std::move(made)).first;
  }
  return *it->second;
}

void Schedule::work_on(const std::string& function) {
  const std::string& name = resolve(function);
  program(name);
  working_on_ = name;
}

PrimFuncRef Schedule::program(const std::string& name) const {
  if (module_.functions.size() == 1 && !module_.find(name))
    fail({},
         "this schedule sees tensor program '{}' alone; if the module has '{}', that is scheduled by a definition of "
         "its own: @S.schedule(\"{}\")",
         working_on_, name, name);
  return module_.prim_func(name);
}

const TensorIntrins& Schedule::intrins() const {
  return options_.intrins ? *options_.intrins : builtin_tensor_intrins();
}
void Schedule::add_intrins(const TensorIntrins& more) {
  std::vector<std::string> names = more.names();
  if (names.empty()) return;
  auto table = std::make_shared<TensorIntrins>(intrins());
  for (const std::string& name : names) table->add(*more.find(name));
  options_.intrins = table.get();
  own_intrins_ = std::move(table);
}

IRModule Schedule::module() const {
  IRModule result = module_;
  for (const auto& [name, tree] : trees_) result.functions.insert_or_assign(name, tree->function());
  return result;
}
PrimFuncRef Schedule::function(const std::string& name) const { return with_distinct_lets(tree(name).function()); }

Stmt Schedule::get_node(const VarRef& var) const {
  auto it = nodes_.find(var.get());
  if (it == nodes_.end()) fail(var.span(), "get: '{}' is no block or loop of this schedule", var->name);
  if (!is_alive(it->second)) fail(var.span(), "get: '{}' is no longer part of the program", var->name);
  return it->second->tree->stmt(*it->second);
}
Stmt Schedule::get(const BlockRV& block) const { return get_node(block.var); }
Stmt Schedule::get(const LoopRV& loop) const { return get_node(loop.var); }
int64_t Schedule::get(const Expr& number) const {
  VarMap known;
  walk(number, [&](const Ref<Var>& var) {
    auto it = numbers_.find(var.get());
    if (it != numbers_.end()) known.emplace(var.get(), int_imm(it->second, dtype_of(var)));
  });
  auto value = as_int(simplify(substitute(number, known)));
  if (!value) fail(number.span(), "get: {} is no number of this schedule", print_expr(number));
  return *value;
}

void Schedule::find_named_blocks(std::string_view type, AttrValue& argument) {
  bool several = type == "Blocks" || (type == "Subtree" && argument.as<AttrList>());
  if (!several && type != "BlockRV" && type != "Place" && type != "Subtree") return;
  if (several && !argument.is_none() && !argument.as<AttrList>()) argument = AttrList{argument};
  auto find = [&](AttrValue& value) {
    if (const std::string* name = value.as<std::string>()) value = Expr(get_block(*name, std::nullopt).var);
  };
  if (!several) return find(argument);
  AttrList items = argument.as<AttrList>() ? *argument.as<AttrList>() : AttrList();
  for (AttrValue& item : items) find(item);
  argument = items;
}

std::vector<VarRef> Schedule::apply(const Primitive& primitive, const AttrList& arguments, const AttrValue& decision) {
  AttrList all = arguments;
  for (size_t i = all.size(); i < primitive.params.size(); ++i) {
    if (!primitive.params[i].otherwise)
      fail({}, "{}: argument '{}' is missing", primitive.name, primitive.params[i].name);
    all.push_back(*primitive.params[i].otherwise);
  }
  if (all.size() > primitive.params.size())
    fail({}, "{} takes {} arguments, got {}", primitive.name, primitive.params.size(), all.size());
  std::vector<std::string> names = std::move(result_names_);
  result_names_.clear();
  for (size_t i = 0; i < all.size(); ++i) find_named_blocks(primitive.params[i].type, all[i]);
  result_names_ = std::move(names);
  struct Decided {
    AttrValue& value;
    ~Decided() { value = {}; }
  } decided{decision_ = decision};
  return primitive.invoke(*this, all);
}

size_t Schedule::map_rank(const Primitive& primitive, AttrList& arguments) {
  find_named_blocks(primitive.params[0].type, arguments[0]);
  const Expr* block = arguments[0].as<Expr>();
  if (!block || !block->is<Var>()) fail({}, "{}: expected a block", primitive.name);
  Step step(*this, PrimitiveId::k_transform_layout);
  TreeNode* node = step.block({cast<Var>(*block)});
  if (primitive.name != std::string_view("transform_layout")) return node->block->iter_vars.size();
  return buffer_type(step.buffer(node, arguments[1], AccessKind::kRead)).shape.size();
}

// ---- Index maps

IndexMap::IndexMap(size_t rank, const std::function<Exprs(const Exprs&)>& fn)
    : map([&] {
        std::vector<VarRef> params;
        for (size_t i = 0; i < rank; ++i) params.push_back(make_dim(fmt::format("i{}", i)));
        std::vector<Expr> results = fn({params.begin(), params.end()});
        return make(Lambda{params, results}, object_type());
      }()) {}

namespace {

// The map's numbers are of any width; results take the indices'.
Expr in_dtype(const Expr& e, DType dtype, const VarMap& values) {
  if (auto it = values.find(e.get()); it != values.end()) return it->second;
  if (const IntImm* number = e.as<IntImm>()) return int_imm(number->value, dtype);
  const Binary* node = e.as<Binary>();
  if (node && dtype_of(node->a) == dtype_of(e))
    return binary(node->op, in_dtype(node->a, dtype, values), in_dtype(node->b, dtype, values));
  return cast_to(e.is<Var>() ? e : substitute(e, values), dtype);
}

}  // namespace

Exprs IndexMap::operator()(const Exprs& indices) const {
  if (indices.size() != map->params.size())
    fail({}, "a map of {} positions is given {}", map->params.size(), indices.size());
  VarMap values;
  DType dtype = indices.empty() ? kInt64 : dtype_of(indices[0]);
  for (size_t i = 0; i < map->params.size(); ++i) values.emplace(map->params[i].get(), cast_to(indices[i], dtype));
  Exprs result;
  for (const Expr& e : map->results) result.push_back(in_dtype(e, dtype, values));
  return result;
}

// ---- Rows

namespace scheduling {

namespace {

struct BadArgument {
  const char* expected;
};

template <class T>
struct Decode;
template <class T>
T decode(const AttrValue& value) {
  return Decode<T>::from(value);
}

std::optional<VarRef> as_var(const AttrValue& value) {
  const Expr* e = value.as<Expr>();
  return e && e->is<Var>() ? std::optional(cast<Var>(*e)) : std::nullopt;
}
// What text writes as a bare literal and C++ as an expression, or the other way round.
std::optional<int64_t> integer(const AttrValue& value) {
  if (const int64_t* number = value.as<int64_t>()) return *number;
  const Expr* e = value.as<Expr>();
  return e ? as_int(*e) : std::nullopt;
}

template <>
struct Decode<BlockRV> {
  static BlockRV from(const AttrValue& value) {
    auto var = as_var(value);
    if (!var) throw BadArgument{"a block"};
    return {*var};
  }
};
template <>
struct Decode<LoopRV> {
  static LoopRV from(const AttrValue& value) {
    auto var = as_var(value);
    if (!var) throw BadArgument{"a loop"};
    return {*var};
  }
};
template <>
struct Decode<Place> {
  static Place from(const AttrValue& value) {
    auto var = as_var(value);
    if (!var) throw BadArgument{"a block or a loop"};
    return BlockRV{*var};  // Step::place() looks at what it is
  }
};
template <class T>
struct Decode<std::vector<T>> {
  static std::vector<T> from(const AttrValue& value) {
    std::vector<T> result;
    if (value.is_none()) return result;
    const AttrList* list = value.as<AttrList>();
    if (!list) throw BadArgument{"a list"};
    for (const AttrValue& item : *list) result.push_back(decode<T>(item));
    return result;
  }
};
template <>
struct Decode<Variadic> {
  static Variadic from(const AttrValue& value) { return {decode<Loops>(value)}; }
};
template <>
struct Decode<Subtree> {
  static Subtree from(const AttrValue& value) {
    if (value.as<AttrList>()) return decode<Blocks>(value);
    return decode<BlockRV>(value);
  }
};
template <>
struct Decode<Expr> {
  static Expr from(const AttrValue& value) {
    if (const int64_t* number = value.as<int64_t>()) return int_imm(*number);
    const Expr* e = value.as<Expr>();
    if (e && e->type().is<PrimType>()) return *e;
    throw BadArgument{"a number"};
  }
};
template <>
struct Decode<Factor> {
  static Factor from(const AttrValue& value) {
    if (value.is_none()) return std::nullopt;
    return decode<Expr>(value);
  }
};
template <>
struct Decode<BufferArg> {
  static BufferArg from(const AttrValue& value) { return value; }
};
template <>
struct Decode<AttrValue> {
  static AttrValue from(const AttrValue& value) { return value; }
};
template <>
struct Decode<IndexMap> {
  static IndexMap from(const AttrValue& value) {
    const Expr* e = value.as<Expr>();
    if (!e || !e->is<Lambda>()) throw BadArgument{"a lambda from old positions to new ones"};
    return IndexMap(cast<Lambda>(*e));
  }
};
template <>
struct Decode<int64_t> {
  static int64_t from(const AttrValue& value) {
    if (auto number = integer(value)) return *number;
    throw BadArgument{"a whole number"};
  }
};
template <>
struct Decode<double> {
  static double from(const AttrValue& value) {
    if (const double* number = value.as<double>()) return *number;
    if (auto number = integer(value)) return static_cast<double>(*number);
    throw BadArgument{"a number"};
  }
};
template <>
struct Decode<bool> {
  static bool from(const AttrValue& value) {
    if (const bool* flag = value.as<bool>()) return *flag;
    if (auto number = integer(value); number && (*number == 0 || *number == 1)) return *number == 1;
    throw BadArgument{"True or False"};
  }
};
template <>
struct Decode<std::string> {
  static std::string from(const AttrValue& value) {
    if (const std::string* text = value.as<std::string>()) return *text;
    throw BadArgument{"a string"};
  }
};
template <>
struct Decode<DType> {
  static DType from(const AttrValue& value) {
    DType result;
    if (from_attr(value, result)) return result;
    throw BadArgument{"a dtype"};
  }
};
template <class T>
struct Decode<std::optional<T>> {
  static std::optional<T> from(const AttrValue& value) {
    if (value.is_none()) return std::nullopt;
    return decode<T>(value);
  }
};

std::vector<VarRef> variables(const BlockRV& block) { return {block.var}; }
std::vector<VarRef> variables(const LoopRV& loop) { return {loop.var}; }
[[maybe_unused]] std::vector<VarRef> variables(const Expr& number) { return {cast<Var>(number)}; }
template <class T>
std::vector<VarRef> variables(const std::vector<T>& items) {
  std::vector<VarRef> result;
  for (const T& item : items) result.push_back(variables(item)[0]);
  return result;
}

// The method with decoded arguments.
template <PrimitiveId id, class R, class... Args>
std::vector<VarRef> invoke_method(Schedule& schedule, R (Schedule::*method)(Args...), const AttrList& arguments) {
  const Primitive& row = primitives()[static_cast<size_t>(id)];
  auto run = [&]<size_t... I>(std::index_sequence<I...>) {
    [[maybe_unused]] auto at = [&]<class T>(std::type_identity<T>, size_t i) -> T {
      try {
        return decode<T>(arguments[i]);
      } catch (const BadArgument& bad) {
        const Expr* e = arguments[i].as<Expr>();
        fail(e ? e->span() : Span(), "{}: argument '{}' is {}, expected {}", row.name, row.params[i].name,
             to_string(arguments[i]), bad.expected);
      }
    };
    // Braces evaluate in order.
    std::tuple<std::remove_cvref_t<Args>...> decoded{at(std::type_identity<std::remove_cvref_t<Args>>(), I)...};
    return std::apply([&](auto&&... args) { return (schedule.*method)(std::move(args)...); }, std::move(decoded));
  };
  if constexpr (std::is_void_v<R>) {
    run(std::index_sequence_for<Args...>());
    return {};
  } else {
    return variables(run(std::index_sequence_for<Args...>()));
  }
}
template <PrimitiveId id, auto method>
std::vector<VarRef> invoke(Schedule& schedule, const AttrList& arguments) {
  return invoke_method<id>(schedule, method, arguments);
}

AttrValue parse_default(std::string_view text) {
  if (text == "{}") return {};
  if (text == "true" || text == "false") return text == "true";
  if (text.starts_with('"')) return std::string(text.substr(1, text.size() - 2));
  return static_cast<int64_t>(std::stoll(std::string(text)));
}

// "(LoopRV loop, bool flag = true)" taken apart.
std::vector<Param> parse_params(std::string_view signature) {
  std::vector<Param> result;
  signature = signature.substr(1, signature.size() - 2);
  while (!signature.empty()) {
    int depth = 0;
    size_t end = 0;
    for (; end < signature.size(); ++end) {
      char c = signature[end];
      depth += (c == '<' || c == '{') - (c == '>' || c == '}');
      if (c == ',' && depth == 0) break;
    }
    std::string_view one = signature.substr(0, end);
    signature.remove_prefix(std::min(end + 1, signature.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    size_t equals = one.find(" = ");
    Param param;
    if (equals != std::string_view::npos) {
      param.otherwise = parse_default(one.substr(equals + 3));
      one = one.substr(0, equals);
    }
    size_t space = one.rfind(' ');
    param.type = one.substr(0, space);
    param.name = one.substr(space + 1);
    result.push_back(std::move(param));
  }
  return result;
}

}  // namespace

std::span<const Primitive> primitives() {
  static const std::vector<Primitive> kRows = {
#define X(name, result, params, doc) \
  {#name, #result, doc, parse_params(#params), &invoke<PrimitiveId::k_##name, &Schedule::name>},
      RELAXC_SCHEDULE_PRIMITIVES(X)
#undef X
  };
  return kRows;
}

const Primitive* find_primitive(std::string_view name) {
  if (name == "get_sblock") name = "get_block";
  for (const Primitive& row : primitives()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace scheduling

}  // namespace relaxc
