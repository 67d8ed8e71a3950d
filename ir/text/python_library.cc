// Parts of Python's libraries that scripts and tests around a module rely on: functions that call others (map,
// functools.reduce), what argparse and sys.argv are for a script that gets no arguments, and the params that pytest
// gives a test.
#include <algorithm>

#include "ir/text/parsing.h"
#include "ir/text/python_nn.h"
#include "ir/text/python_run.h"

namespace relaxc::text {

// functools.partial, and argparse: what a script gets that is run without arguments. A required one has no value.
const std::string_view kScriptLibrary = R"python(
def library():
    def partial(function, *given, **settings):
        def partly_given(*rest, **others):
            return function(*given, *rest, **{**settings, **others})
        return partly_given

    class Namespace:
        def __init__(self):
            pass

    class ArgumentParser:
        def __init__(self, *args, **settings):
            self.values = Namespace()

        def add_argument(self, *names, default=None, action=None, dest=None, type=None, required=False, **others):
            name = names[0]
            for other in names:
                if other.startswith("--") and not name.startswith("--"):
                    name = other
            is_option = name.startswith("-")
            name = name.lstrip("-").replace("-", "_") if dest is None else dest
            if action == "store_true" and default is None:
                default = False
            if action == "store_false" and default is None:
                default = True
            if type is not None and isinstance(default, str):
                default = type(default)
            if (is_option and not required) or default is not None:
                set_attribute(self.values, name, default)

        def add_argument_group(self, *args, **settings):
            return self

        def add_mutually_exclusive_group(self, *args, **settings):
            return self

        def set_defaults(self, **values):
            for name, value in values.items():
                set_attribute(self.values, name, value)

        def parse_args(self, *args):
            return self.values

        def parse_known_args(self, *args):
            return self.values, []
)python";

// ---- Shapes

// Returns the dims of A.shape, A.shape[0] and so on, where the rank of A is known; other values themselves.
PythonValue Python::expanded(const PythonValue& value) {
  if (PythonResult dims = model_dims(value)) return *dims;
  bool is_shape = value.is(Kind::kSyntax) && value.syntax->kind == SyntaxKind::kAttribute &&
                  value.syntax->text == "shape" && is_name(*value.syntax->children[0]);
  auto rank = is_shape ? ranks_.find(value.syntax->children[0]->text) : ranks_.end();
  if (rank == ranks_.end()) return value;
  std::vector<PythonValue> dims;
  for (int64_t i = 0; i < rank->second; ++i) {
    const Syntax* position = lift(python_int(i), *value.syntax);
    dims.push_back(node_like(heap_.node(SyntaxKind::kSubscript, *value.syntax), {value.syntax, position}, heap_));
  }
  return heap_.list(Kind::kTuple, std::move(dims));
}

// Returns the rank of the tensor that te.compute(shape, ...) makes, where it is known.
std::optional<int64_t> Python::rank_of_stage(const Args& args) {
  const PythonValue shape = expanded(argument_of(args, 0, "shape"));
  const bool known = shape.is_list() && shape.items->computed == 0;
  return known ? std::optional(std::ssize(shape.items->values)) : std::nullopt;
}

// Remembers the rank of what te.placeholder((n, m)), te.compute((n, m), ...) or relax.Var("x", R.Tensor((n, m))) makes.
void Python::note_rank(std::string_view name, const Syntax& value) {
  ranks_.erase(name);
  if (!is_call(value)) return;
  auto given = [](const Syntax& call, size_t i, std::string_view keyword) -> const Syntax* {
    for (const Syntax::Keyword& each : call.keywords) {
      if (each.name == keyword) return each.value;
    }
    return i + 1 < call.children.size() ? call.children[i + 1] : nullptr;
  };
  const Syntax* shape = nullptr;
  if (is_one_of(value.children[0]->text, {"placeholder", "compute"})) {
    shape = given(value, 0, "shape");
  } else if (is_one_of(value.children[0]->text, {"Var", "DataflowVar"})) {
    const Syntax* type = given(value, 1, "struct_info");
    bool is_tensor = type && is_call(*type) && is_one_of(type->children[0]->text, {"Tensor", "TensorStructInfo"});
    shape = is_tensor ? given(*type, 0, "shape") : type;
  }
  if (!shape) return;
  const PythonValue dims = expanded({.kind = Kind::kSyntax, .syntax = shape});
  auto is_starred = [](const Syntax* each) { return each->kind == SyntaxKind::kStarred; };
  if (dims.items) {
    ranks_.insert_or_assign(name, std::ssize(dims.items->values));
  } else if (is_list(*shape) && std::ranges::none_of(shape->children, is_starred)) {
    ranks_.insert_or_assign(name, std::ssize(shape->children));
  }
}

// ---- Functions that call others

// Calls a function that is an argument of another; nullopt where it is not known.
PythonResult Python::call_value(const PythonValue& function, const Args& args) {
  if (PythonResult result = applied(function, args)) return result;
  if (!function.is(Kind::kSyntax) || function.text.empty()) return std::nullopt;
  constexpr std::pair<std::string_view, std::string_view> kOperators[] = {{"operator.mul", "*"},
                                                                          {"operator.add", "+"},
                                                                          {"operator.sub", "-"},
                                                                          {"operator.floordiv", "//"},
                                                                          {"operator.mod", "%"}};
  const std::string_view* op = row_of(kOperators, function.text);
  if (op && args.positional.size() == 2) return arithmetic(*op, args.positional[0], args.positional[1], heap_);
  return call_builtin(function.text, args.positional, heap_);
}

// Computes map, filter and functools.reduce.
PythonResult Python::higher_order(std::string_view name, const Args& args) {
  const bool reduces = name == "functools.reduce";
  if (!is_one_of(name, {"map", "filter", "functools.reduce"}) || args.positional.size() < 2) return std::nullopt;
  std::vector<std::vector<PythonValue>> lists;
  for (size_t i = 1; i < (reduces ? 2 : args.positional.size()); ++i) {
    auto values = items_of(args.positional[i]);
    if (!values) return std::nullopt;
    lists.push_back(std::move(*values));
  }
  const size_t count = std::ranges::min_element(lists, {}, &std::vector<PythonValue>::size)->size();
  auto called = [&](std::vector<PythonValue> values) {
    std::vector<Place> places(values.size());
    PythonResult result = call_value(args.positional[0], Args{.positional = std::move(values), .places = places});
    return result ? *result : throw PythonUnknown();
  };
  std::vector<PythonValue> result;
  if (reduces) {
    if (args.positional.size() > 2) lists[0].insert(lists[0].begin(), args.positional[2]);
    if (lists[0].empty()) throw PythonRaised{"TypeError"};
    PythonValue sum = lists[0][0];
    for (size_t i = 1; i < lists[0].size(); ++i) sum = named(called({sum, lists[0][i]}), "item", call_place_);
    return sum;
  }
  for (size_t i = 0; i < count; ++i) {
    std::vector<PythonValue> values;
    for (const auto& list : lists) values.push_back(list[i]);
    PythonValue value = named(called(values), "item", call_place_);
    if (name == "map") {
      result.push_back(value);
      continue;
    }
    std::optional<bool> keeps = truth_of(value);
    if (!keeps) throw PythonUnknown();
    if (*keeps) result.push_back(values[0]);
  }
  return heap_.list(Kind::kList, std::move(result));
}

// Returns a value that a path of a library stands for: sys.argv is that of a script without arguments.
PythonResult Python::library_constant(std::string_view path) {
  if (path == "math.pi") return python_float(3.141592653589793);
  if (path == "math.inf") return python_float(std::numeric_limits<double>::infinity());
  constexpr std::pair<std::string_view, std::string_view> kIntrins[] = {
      {"VNNI_DOT_16x4_INTRIN", "dot_16x4_vnni"},
      {"AVX512_DOT_16x4_INTRIN", "dot_16x4_avx512"},
      {"ARM_DOT_4x4_i8_NEON_INTRIN", "dot_4x4_i8i8s32_neon"},
      {"ARM_DOT_4x4_i8_SDOT_INTRIN", "dot_4x4_i8i8s32_sdot"},
      {"ARM_DOT_4x4_u8_UDOT_INTRIN", "dot_4x4_u8u8u32_udot"}};
  if (path.starts_with("tvm.") && path.find("tensor_intrin") != path.npos) {
    if (const std::string_view* name = row_of(kIntrins, path.substr(path.rfind('.') + 1))) return heap_.string(*name);
  }
  if (path == "sys.argv") return heap_.list(Kind::kList, {heap_.string("script.py")});
  return std::nullopt;
}

// ---- Tests

namespace {

// Returns the decorator @pytest.mark.parametrize("m, n", [(1, 2), (3, 4)]), and the like.
bool is_parametrization(const Syntax& decorator) {
  return is_call(decorator) && head_of(decorator).text == "parametrize" && decorator.children.size() >= 3;
}

std::vector<std::string_view> names_in(std::string_view text) {
  std::vector<std::string_view> names;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find_first_of(" ,", at), text.size());
    if (end > at) names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace

// Returns whether a decorator leaves the function as it is, or only says when a test runs, and with which params.
bool is_test_decorator(const Syntax& decorator) {
  const std::string path = spelling(head_of(decorator));
  return is_parametrization(decorator) || path.starts_with("pytest.") || path.starts_with("tvm.testing.") ||
         is_one_of(path, {"unittest.skip", "functools.lru_cache", "functools.wraps", "lru_cache", "staticmethod"});
}

// Gives the params of a test the first values with which it is run: those of its decorators, and of fixtures, which are
// functions, or tvm.testing.parameter("float32", "int8"), by their names.
void Python::give_test_values(PythonFunction& function) {
  const Line& line = *function.line;
  std::map<std::string_view, PythonValue> given;
  for (const Syntax* decorator : line.decorators) {
    if (!is_parametrization(*decorator)) continue;
    PythonValue names = eval(*decorator->children[1]), values = eval(*decorator->children[2]);
    auto rows = iterate(values, heap_);
    if (!rows || rows->empty()) continue;
    std::vector<std::string_view> params;
    if (names.is(Kind::kString)) params = names_in(names.text);
    for (const PythonValue& name : names.is_list() ? names.items->values : std::vector<PythonValue>())
      params.push_back(name.text);
    const PythonValue& first = rows->front();
    if (params.size() == 1) given.insert_or_assign(params[0], first);
    for (size_t i = 0; params.size() > 1 && first.is_list() && i < first.items->values.size() && i < params.size(); ++i)
      given.insert_or_assign(params[i], first.items->values[i]);
  }
  const bool is_test = line.text.starts_with("test") || !given.empty();
  for (size_t i = 0; i < line.params.size(); ++i) {
    if (function.defaults[i] || !is_test) continue;
    std::string_view name = line.params[i].name;
    if (auto known = given.find(name); known != given.end()) {
      function.defaults[i] = known->second;
      continue;
    }
    auto fixture = module_scope().values.find(name);
    if (fixture == module_scope().values.end()) continue;
    PythonValue value = fixture->second;
    if (value.is(Kind::kFunction)) value = call(*value.function, {});
    function.defaults[i] = value;
  }
}

// Returns whether the function needs no arguments.
bool Python::is_callable_alone(const PythonFunction& function) {
  for (size_t i = 0; i < function.line->params.size(); ++i) {
    if (!function.defaults[i] && function.line->params[i].stars.empty()) return false;
  }
  return true;
}

}  // namespace relaxc::text
