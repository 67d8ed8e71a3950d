#include "tir/schedule/script.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/text/printer.h"
#include "ir/text/syntax.h"
#include "support/checked_math.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/scalable_vectors.h"
#include "tir/schedule/script_body.h"
#include "tir/schedule/script_functions.h"

namespace relaxc {

using text::Line, text::LineKind, text::Lines, text::Syntax, text::SyntaxKind;

namespace {

class Interpreter {
 public:
  Interpreter(Schedule& schedule, std::shared_ptr<const Origin> origin, std::string name, ScheduleNames names = {})
      : schedule_(schedule), origin_(std::move(origin)), schedule_name_(std::move(name)), names_(std::move(names)) {}

  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  Flow run(const Lines& lines) {
    for (const Line* line : lines) {
      if (Flow flow = statement(*line); flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }
  AttrValue evaluate(const Syntax& at) { return value(at, {}); }

 private:
  template <class At>
  Span span(const At& at) const {
    return {origin_, at.line, at.column, at.length};
  }

  Flow statement(const Line& line) {
    if (++steps_ > 1'000'000) fail(span(line), "the schedule runs more than 1000000 statements");
    switch (line.kind) {
      case LineKind::kExpression:
        value(*line.value, {});
        return Flow::kNext;
      case LineKind::kAssign:
        // sch = tvm.tir.Schedule(Module)
        if (line.value->kind == SyntaxKind::kCall && line.value->children[0]->text == "Schedule") {
          schedule_name_ = std::string(line.target->text);
          return Flow::kNext;
        }
        assign(*line.target, value(*line.value, names_of_targets(*line.target)), line.value);
        return Flow::kNext;
      case LineKind::kAugmented: {
        Syntax sum(SyntaxKind::kBinary, line);
        sum.text = line.text;
        sum.children.assign({line.target, line.value});
        assign(*line.target, value(sum, {}));
        return Flow::kNext;
      }
      case LineKind::kFor: {
        for (const AttrValue& item : list_of(*line.value)) {
          assign(*line.target, item);
          if (run(line.body) == Flow::kBreak) return Flow::kNext;
        }
        return run(line.otherwise);
      }
      case LineKind::kIf:
        return run(truth(*line.value) ? line.body : line.otherwise);
      case LineKind::kTry: {
        const auto refused = schedule_.try_steps([&] { run(line.body); });
        for (const Line* clause : line.otherwise)
          if (clause->text == (refused ? "except" : "else") || clause->text == "finally") run(clause->body);
        return Flow::kNext;
      }
      case LineKind::kAssert:
        if (truth(*line.value)) return Flow::kNext;
        fail_to_fit(span(line), "{}",
                    line.extra ? to_string(value(*line.extra, {})) : std::string("the assertion does not hold"));
      case LineKind::kRaise:
        fail_to_fit(span(line), "the schedule raises an error");
      case LineKind::kBreak:
      case LineKind::kContinue:
        return line.kind == LineKind::kBreak ? Flow::kBreak : Flow::kContinue;
      case LineKind::kPass:
      case LineKind::kImport:
        return Flow::kNext;
      default:
        fail(span(line), "a schedule is made of assignments, calls of primitives, for, if, try and assert");
    }
  }

  AttrList list_of(const Syntax& at) {
    const AttrValue items = value(at, {});
    if (const AttrList* list = items.as<AttrList>()) return *list;
    fail(span(at), "expected a list to iterate over, got {}", to_string(items));
  }

  // Returns [f(x) for x in list if condition], from the clause on whose target is child `clause`.
  void comprehend(const Syntax& at, size_t clause, AttrList& out) {
    if (clause >= at.children.size()) return out.push_back(value(*at.children[0], {}));
    for (const AttrValue& item : list_of(*at.children[clause + 1])) {
      if (++steps_ > 1'000'000) fail(span(at), "the schedule runs more than 1000000 statements");
      assign(*at.children[clause], item);
      const Syntax* condition = at.children[clause + 2];
      if (!condition || truth(*condition)) comprehend(at, clause + 3, out);
    }
  }

  bool truth(const Syntax& at) { return truth_of(at, value(at, {})); }
  bool truth_of(const Syntax& at, const AttrValue& result) const {
    if (const bool* flag = result.as<bool>()) return *flag;
    if (const int64_t* number = result.as<int64_t>()) return *number != 0;
    if (const AttrList* list = result.as<AttrList>()) return !list->empty();
    if (result.is_none()) return false;
    const Expr* open = result.as<Expr>();
    if (open && !is_handle(result)) fail(span(at), "'{}' is not known while compiling", print_expr(*open));
    fail(span(at), "expected True or False, got {}", to_string(result));
  }
  // Returns a flag, or a condition over dims that is not known.
  AttrValue truth_or_condition(const Syntax& at) {
    AttrValue result = value(at, {});
    const Expr* open = result.as<Expr>();
    return open && !is_handle(result) && dtype_of(*open).is_bool() ? result : AttrValue(truth_of(at, result));
  }

  static bool is_list(const Syntax& at) { return at.kind == SyntaxKind::kTuple || at.kind == SyntaxKind::kList; }
  // `from`: the expression that gave the value.
  void assign(const Syntax& target, const AttrValue& value, const Syntax* from = nullptr) {
    if (target.kind == SyntaxKind::kName) {
      names_.insert_or_assign(std::string(target.text), value);
      return;
    }
    const AttrList* list = value.as<AttrList>();
    if (!is_list(target)) fail(span(target), "expected names on the left of '='");
    if (!list) fail(span(target), "expected {} values, got {}", target.children.size(), to_string(value));
    size_t names = target.children.size();
    auto stars = std::ranges::count(target.children, SyntaxKind::kStarred, &Syntax::kind);
    if (stars == 1 ? list->size() + 1 < names : list->size() != names)
      fail_to_fit(span(target), "expected {} values, {} {}", names,
                  from && from->kind == SyntaxKind::kCall ? fmt::format("{} gives", from->children[0]->text) : "got",
                  list->size());
    auto item = list->begin();
    for (const Syntax* name : target.children) {
      if (name->kind != SyntaxKind::kStarred) {
        assign(*name, *item++);
        continue;
      }
      auto end = item + static_cast<long>(list->size() + 1 - names);
      assign(*name->children[0], AttrList(item, end));
      item = end;
    }
  }

  // `targets`: the names that the result gets, for the trace.
  AttrValue value(const Syntax& at, const std::vector<std::string>& targets) {
    switch (at.kind) {
      case SyntaxKind::kName:
        if (const AttrValue* known = find_value(names_, at.text)) return *known;
        if (std::optional<Expr> dim = dim_named(at.text)) return *dim;
        fail(span(at), "'{}' is {}", at.text, at.text == schedule_name_ ? kAboutSchedule : "not defined");
      case SyntaxKind::kInt:
        if (auto number = text::whole_number(at.text)) return *number;
        fail(span(at), "'{}' is not a number", at.text);
      case SyntaxKind::kFloat:
        return std::strtod(std::string(at.text).c_str(), nullptr);  // beyond the largest number: infinity
      case SyntaxKind::kString: {
        std::string error, result = text::unquote(at.text, error);
        if (!error.empty()) fail(span(at), "{}", error);
        return result;
      }
      case SyntaxKind::kConstant:
        return at.text == "None" ? AttrValue() : AttrValue(at.text == "True");
      case SyntaxKind::kTuple:
      case SyntaxKind::kList: {
        AttrList list;
        for (const Syntax* item : at.children) append(list, *item);
        return list;
      }
      case SyntaxKind::kDict: {
        Attrs entries;
        for (size_t i = 0; i + 1 < at.children.size(); i += 2) {
          AttrValue key = value(*at.children[i], {});
          if (!key.as<std::string>()) fail(span(*at.children[i]), "expected a string as key");
          entries.set(*key.as<std::string>(), value(*at.children[i + 1], {}));
        }
        return entries;
      }
      case SyntaxKind::kLambda:
        return lambda(at);
      case SyntaxKind::kComprehension: {
        if (at.children[1]) fail(span(at), "a schedule has lists, and no dictionaries that are computed");
        Temporarily outer(names_, names_);
        AttrList list;
        comprehend(at, 2, list);
        return list;
      }
      case SyntaxKind::kCall:
        if (const Syntax& map = map_in(at); &map != &at) return value(map, {});
        return call(at, targets);
      case SyntaxKind::kSubscript:
        return subscript(at);
      case SyntaxKind::kAttribute:
        return member(at);
      case SyntaxKind::kUnary:
      case SyntaxKind::kBinary:
      case SyntaxKind::kCompare:
      case SyntaxKind::kBool:
        return arithmetic(at);
      case SyntaxKind::kConditional:
        return value(truth(*at.children[1]) ? *at.children[0] : *at.children[2], targets);
      default:
        fail(span(at), "expected a value that a schedule can compute: a number, text, list, lambda or call");
    }
  }

  // Returns an attribute of what sch.get gave: sch.get(loop).extent, sch.get(block).iter_vars.
  AttrValue member(const Syntax& at) {
    if (auto kind = script_iter_type(*at.children[0], at.text)) return *kind;
    const AttrValue object = value(*at.children[0], {});
    if (std::optional<AttrValue> result = script_member(object, at.text)) return *result;
    fail(span(at), "of objects a schedule knows {}", script_members());
  }

  // Returns the symbolic dim, or scalar param, of the function that is scheduled.
  std::optional<Expr> dim_named(std::string_view name) {
    if (schedule_name_.empty()) return std::nullopt;  // a value by itself
    try {
      for (const VarRef& var : scalar_arguments(schedule_.function())) {
        if (var->name == name) return var;
      }
    } catch (const CompileError&) {  // a module of several functions
    }
    return std::nullopt;
  }

  void append(AttrList& list, const Syntax& item) {
    if (item.text == "AXIS_SEPARATOR") return;  // te.AXIS_SEPARATOR: the memory of a CPU is flat
    if (item.kind != SyntaxKind::kStarred) {
      list.push_back(value(item, {}));
      return;
    }
    AttrValue items = value(*item.children[0], {});
    if (!items.as<AttrList>()) fail(span(item), "expected a list after '*'");
    for (const AttrValue& one : *items.as<AttrList>()) list.push_back(one);
  }

  AttrValue subscript(const Syntax& at) {
    AttrValue object = value(*at.children[0], {});
    const AttrList* list = object.as<AttrList>();
    const Syntax& index = *at.children[1];
    if (object.as<Attrs>()) {
      const AttrValue key = value(index, {});
      if (auto item = script_member(object, key.as<std::string>() ? *key.as<std::string>() : "")) return *item;
      fail_to_fit(span(index), "the dictionary has no {}", to_string(key));
    }
    if (!list) fail(span(at), "only lists and dictionaries have items");
    auto size = static_cast<int64_t>(list->size());
    auto bound = [&](const Syntax* syntax, int64_t otherwise) {
      return syntax ? script_bound(integer(*syntax), size) : otherwise;
    };
    if (index.kind == SyntaxKind::kSlice) {
      int64_t from = bound(index.children[0], 0), to = bound(index.children[1], size);
      return from < to ? AttrList(list->begin() + from, list->begin() + to) : AttrList();
    }
    int64_t position = integer(index);
    if (position < 0) position += size;
    if (position < 0 || position >= size) fail_to_fit(span(index), "the list has {} items", size);
    return (*list)[static_cast<size_t>(position)];
  }

  int64_t integer(const Syntax& at) {
    AttrValue result = value(at, {});
    if (const int64_t* number = result.as<int64_t>()) return *number;
    fail(span(at), "expected a whole number, got {}", to_string(result));
  }

  // Returns a number as an expression; sampled numbers stay variables.
  Expr scalar(const Syntax& at, const AttrValue& any) {
    if (const int64_t* number = any.as<int64_t>()) return int_imm(*number);
    if (const double* number = any.as<double>()) return scalar_imm(*number, kFloat64);
    if (const Expr* e = any.as<Expr>(); e && e->type().is<PrimType>()) return *e;
    fail(span(at), "expected a number, got {}", to_string(any));
  }

  AttrValue unary(const Syntax& at) {
    if (at.text == "not") return negated_condition(truth_or_condition(*at.children[0]));
    // The digits of the smallest number would be out of range without the sign.
    if (at.text == "-" && at.children[0]->text == "9223372036854775808") return std::numeric_limits<int64_t>::min();
    AttrValue operand = value(*at.children[0], {});
    if (const double* number = operand.as<double>(); number && at.text == "-") return -*number;
    if (const int64_t* number = operand.as<int64_t>(); number && at.text == "-") return -*number;
    if (at.text == "+") return operand;
    fail(span(at), "'{}' is not known here", at.text);
  }

  AttrValue arithmetic(const Syntax& at) {
    if (at.kind == SyntaxKind::kUnary) return unary(at);
    if (at.kind == SyntaxKind::kBool) {
      const bool is_and = at.text == "and";
      const AttrValue left = truth_or_condition(*at.children[0]);
      const bool decides = left.as<bool>() && *left.as<bool>() != is_and;
      return decides ? left : joined_conditions(is_and, left, truth_or_condition(*at.children[1]));
    }
    AttrValue x = value(*at.children[0], {}), y = value(*at.children[1], {});
    if (at.text == "+" && x.as<AttrList>() && y.as<AttrList>()) {
      AttrList joined = *x.as<AttrList>();
      joined.insert(joined.end(), y.as<AttrList>()->begin(), y.as<AttrList>()->end());
      return joined;
    }
    if (at.text == "in" || at.text == "not in") return is_in(at, x, y) == (at.text == "in");
    const bool is_identity = at.text == "is" || at.text == "is not";
    if (is_identity || (at.kind == SyntaxKind::kCompare && (is_handle(x) || is_handle(y))))
      return are_one(at, x, y) == (at.text == "is" || at.text == "==");
    const ScriptOperation* row = find_script_operation(at.text);
    bool divides = at.text == "/" || at.text == "//" || at.text == "%";
    auto p = as_double(x), q = as_double(y);
    if (divides && p && q && *q == 0) fail(span(at), "division by zero");
    if (row && p && q && (x.as<double>() || y.as<double>() || at.text == "/")) return row->on_floats(*p, *q);
    if (at.kind == SyntaxKind::kCompare && (at.text == "==" || at.text == "!=") && !(x.as<Expr>() || y.as<Expr>()))
      return (x == y) == (at.text == "==");
    Expr a = scalar(*at.children[0], x), b = scalar(*at.children[1], y);
    if (!row || at.text == "/") fail(span(at), "'{}' is not known here", at.text);
    if (dtype_of(a) != dtype_of(b)) as_int(a) ? a = cast_to(a, dtype_of(b)) : b = cast_to(b, dtype_of(a));
    if (auto m = as_int(a), n = as_int(b); m && n && row->checked && !row->checked(*m, *n))
      fail(span(at), "the result is too large a number");
    return known_number(simplify(binary(row->op, a, b)));
  }

  // Returns whether both are the same block, loop, flag or None.
  bool are_one(const Syntax& at, const AttrValue& x, const AttrValue& y) const {
    const bool is_identity = at.text == "is" || at.text == "is not";
    if (!is_identity && at.text != "==" && at.text != "!=")
      fail(span(at), "blocks and loops have no order; compare them with 'is' or '=='");
    auto has_identity = [](const AttrValue& v) { return is_handle(v) || v.is_none() || v.as<bool>(); };
    if (is_identity && !has_identity(x) && !has_identity(y))
      fail(span(at), "'{}' compares blocks, loops, True, False and None; compare other values with '{}'", at.text,
           at.text == "is" ? "==" : "!=");
    if (is_handle(x) || is_handle(y)) return is_same_handle(x, y);
    return has_identity(x) && has_identity(y) && x == y;
  }

  // Returns whether the value is one of a list's.
  bool is_in(const Syntax& at, const AttrValue& value, const AttrValue& list) const {
    const AttrList* items = list.as<AttrList>();
    if (!items) fail(span(*at.children[1]), "expected a list behind '{}', got {}", at.text, to_string(list));
    for (const AttrValue& item : *items) {
      if (is_same_handle(value, item)) return true;
      if (is_handle(value) || is_handle(item)) continue;
      if (value.as<Expr>() || item.as<Expr>()) fail(span(at), "{} is not known to be a number", to_string(value));
      if (item == value || (as_double(item) && as_double(item) == as_double(value))) return true;
    }
    return false;
  }

  static bool takes_all(const Syntax& at) {
    return at.kind == SyntaxKind::kLambda &&
           std::ranges::count(at.children.begin(), at.children.end() - 1, SyntaxKind::kStarred, &Syntax::kind) == 1;
  }
  // Reads lambda i, j: (i // 4, j, i % 4). Of lambda *index, k, so many params are made that there are `rank`.
  AttrValue lambda(const Syntax& at, size_t rank = 0) {
    Lambda result;
    Temporarily outer(names_, names_);
    for (size_t i = 0; i + 1 < at.children.size(); ++i) {
      const Syntax& param = *at.children[i];
      if (param.kind == SyntaxKind::kStarred && takes_all(at) && rank > 0) {
        AttrList all;
        std::string name(param.children[0]->text);
        size_t others = at.children.size() - 2;
        for (size_t k = 0; k + others < rank; ++k) {
          result.params.push_back(make_dim(fmt::format("{}{}", name, k), span(param)));
          all.emplace_back(Expr(result.params.back()));
        }
        names_.insert_or_assign(name, all);
        continue;
      }
      if (param.kind != SyntaxKind::kName) fail(span(param), "expected a name");
      result.params.push_back(make_dim(std::string(param.text), span(param)));
      names_.insert_or_assign(std::string(param.text), AttrValue(Expr(result.params.back())));
    }
    AttrValue body = value(*at.children.back(), {});
    const AttrList all = body.as<AttrList>() ? *body.as<AttrList>() : AttrList{body};
    // Among (begin, end) pairs a position stands for one element.
    bool pairs = std::ranges::any_of(all, [](const AttrValue& item) { return item.as<AttrList>(); });
    for (const AttrValue& item : all) {
      if (const std::string* text = item.as<std::string>())
        fail(span(at), "axis separators ('{}') are not supported", *text);
      const AttrList ends = item.as<AttrList>() ? *item.as<AttrList>() : AttrList{item};
      for (const AttrValue& end : ends) result.results.push_back(scalar(*at.children.back(), end));
      if (pairs && ends.size() == 1) result.results.push_back(result.results.back() + 1);
    }
    return Expr(make(std::move(result), object_type(), span(at)));
  }

  // Returns the lambda in tvm.tir.IndexMap.from_func(lambda ..., inverse_index_map=lambda ...) or T.index_map(lambda
  // ...), else the expression. The inverse is derived, so a given one is only read.
  const Syntax& map_in(const Syntax& at) {
    static constexpr std::string_view kMaps[] = {"from_func", "from_func_with_separators", "index_map"};
    bool is_map = at.kind == SyntaxKind::kCall && at.children[0]->kind == SyntaxKind::kAttribute &&
                  std::ranges::count(kMaps, at.children[0]->text) > 0;
    if (!is_map) return at;
    const Syntax* map = at.children.size() > 1 ? at.children[1] : nullptr;
    const Syntax* inverse = at.children.size() > 3 ? at.children[3] : nullptr;
    for (const Syntax::Keyword& keyword : at.keywords) {
      if (keyword.name == "mapping_function") map = keyword.value;
      if (keyword.name == "inverse_index_map") inverse = keyword.value;
    }
    if (!map || map->kind != SyntaxKind::kLambda) fail(span(at), "{} takes a lambda", at.children[0]->text);
    if (!inverse || (inverse->kind == SyntaxKind::kConstant && inverse->text == "None")) return *map;
    if (inverse->kind != SyntaxKind::kLambda) fail(span(*inverse), "expected a lambda, the inverse of the map");
    if (takes_all(*map) || takes_all(*inverse)) return *map;
    size_t given = inverse->children.size() - 1, results = num_results(*map);
    if (given != results) fail(span(*inverse), "the inverse takes {} positions; the map gives {}", given, results);
    if (num_results(*inverse) != map->children.size() - 1)
      fail(span(*inverse), "the inverse gives {} positions; the map takes {}", num_results(*inverse),
           map->children.size() - 1);
    return *map;
  }
  size_t num_results(const Syntax& map) { return value(map, {}).as<Expr>()->as<Lambda>()->results.size(); }

  // Maps a param to its `lambda *index`, whose number of positions follows from the other arguments.
  using StarredMaps = std::map<size_t, const Syntax*>;

  bool is_on_schedule(const Syntax& callee) const {
    return callee.kind == SyntaxKind::kAttribute && callee.children[0]->kind == SyntaxKind::kName &&
           callee.children[0]->text == schedule_name_;
  }

  AttrValue call(const Syntax& at, const std::vector<std::string>& targets) {
    const Syntax& callee = *at.children[0];
    AttrList positional;
    StarredMaps maps;
    for (size_t i = 1; i < at.children.size(); ++i) {
      const Syntax& argument = map_in(*at.children[i]);
      if (takes_all(argument)) {
        maps.emplace(positional.size(), &argument);
        positional.emplace_back();
        continue;
      }
      append(positional, argument);
    }
    if (!is_on_schedule(callee)) return function(at, callee, positional);
    if (callee.text == "work_on") {
      const std::string* name = positional.empty() ? nullptr : positional[0].as<std::string>();
      if (!name) fail(span(at), "work_on takes a function's name");
      at_line(at, [&] { schedule_.work_on(*name); });
      return {};
    }
    if (callee.text == "get") {
      if (positional.empty()) fail(span(at), "get takes a block, a loop or a number");
      if (!is_handle(positional[0])) return schedule_.get(scalar(at, positional[0]));
      AttrValue object;
      at_line(at, [&] { object = script_object(schedule_.get(BlockRV{cast<Var>(*positional[0].as<Expr>())})); });
      return object;
    }
    const scheduling::Primitive* primitive = scheduling::find_primitive(callee.text);
    if (!primitive) fail(span(callee), "{}", scheduling::unknown_primitive(callee.text));
    // split(loop, 32) is of 2020: the number is the inner extent.
    if (callee.text == "split" && positional.size() == 2 && positional[1].as<int64_t>())
      positional[1] = AttrList{AttrValue(), positional[1]};
    AttrValue decision;
    AttrList arguments = arguments_of(at, *primitive, positional, maps, decision);
    std::vector<VarRef> results;
    at_line(at, [&] {
      for (const auto& [position, map] : maps) arguments[position] = Expr(IndexMap().map);  // until the rank is known
      size_t rank = maps.empty() ? 0 : schedule_.map_rank(*primitive, arguments);
      for (const auto& [position, map] : maps) arguments[position] = lambda(*map, rank);
      schedule_.name_results(targets);
      results = schedule_.apply(*primitive, arguments, decision);
    });
    schedule_.name_results({});
    if (!primitive->gives_list()) return results.empty() ? AttrValue() : AttrValue(Expr(results[0]));
    return map_each(results, [](const VarRef& var) -> AttrValue { return Expr(var); });
  }

  // Returns one value for each param: positional, by keyword, or the default.
  AttrList arguments_of(const Syntax& at, const scheduling::Primitive& primitive, const AttrList& positional,
                        StarredMaps& maps, AttrValue& decision) {
    std::vector<std::optional<AttrValue>> given(primitive.params.size());
    auto next = positional.begin();
    for (size_t i = 0; i < given.size(); ++i) {
      bool takes_rest = primitive.params[i].kind.is_variadic;
      if (!takes_rest && next == positional.end()) continue;
      given[i] = takes_rest ? AttrList(std::exchange(next, positional.end()), positional.end()) : AttrValue(*next++);
    }
    if (next != positional.end())
      fail(span(at), "{} takes {} arguments, got {}", primitive.name, given.size(), positional.size());
    for (const Syntax::Keyword& keyword : at.keywords) {
      if (keyword.name == "decision" && primitive.samples()) {
        decision = value(*keyword.value, {});
        continue;
      }
      size_t position = position_of(keyword, primitive);
      const AttrList* loops = primitive.params[position].kind.is_variadic ? given[position]->as<AttrList>() : nullptr;
      if (loops ? !loops->empty() : given[position].has_value())
        fail(span(*keyword.value), "{}: argument '{}' is given twice", primitive.name, keyword.name);
      const Syntax& argument = map_in(*keyword.value);
      if (takes_all(argument)) maps.emplace(position, &argument);
      given[position] = takes_all(argument) ? AttrValue() : value(argument, {});
    }
    AttrList arguments;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) given[i] = primitive.params[i].otherwise;
      if (!given[i]) fail(span(at), "{}: argument '{}' is missing", primitive.name, primitive.params[i].name);
      arguments.push_back(*given[i]);
    }
    return arguments;
  }

  size_t position_of(const Syntax::Keyword& keyword, const scheduling::Primitive& primitive) const {
    if (const auto* found = find_item(primitive.params, keyword.name, &scheduling::Param::name))
      return static_cast<size_t>(found - primitive.params.data());
    fail(span(*keyword.value), "{} has no argument '{}'; it has: {}", primitive.name, keyword.name,
         joined(primitive.params, &scheduling::Param::name));
  }

  // Gives errors the line of the schedule as their place, not that of the program.
  void at_line(const Syntax& at, const std::function<void()>& run) const {
    try {
      run();
    } catch (const CompileError& error) {
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      for (Diagnostic& diagnostic : diagnostics) diagnostic.span = span(at);
      throw CompileError(std::move(diagnostics));
    }
  }

  AttrValue function(const Syntax& at, const Syntax& callee, const AttrList& arguments) {
    std::string_view name = callee.kind == SyntaxKind::kName ? callee.text : "";
    std::string error;
    if (auto result = script_function(name, arguments, error)) return *result;
    if (!error.empty()) fail(span(at), "{}", error);
    bool is_method = callee.kind == SyntaxKind::kAttribute && callee.children[0]->kind == SyntaxKind::kName;
    auto object = is_method ? names_.find(callee.children[0]->text) : names_.end();
    if (object != names_.end() && callee.text == "append" && arguments.size() == 1 && object->second.as<AttrList>()) {
      AttrList longer = *object->second.as<AttrList>();
      longer.push_back(arguments[0]);
      object->second = std::move(longer);
      return {};
    }
    if (callee.kind == SyntaxKind::kAttribute) {
      if (callee.text == "vscale" && arguments.empty()) return vscale(kInt64);
      // T.int64(0), T.Cast("int64", x): whole numbers that are known have no dtype here.
      bool is_const = callee.text == "const" && arguments.size() == 2;  // tvm.tir.const(32, "int32")
      bool casts = callee.text == "Cast" && arguments.size() == 2;
      DType dtype;
      const AttrValue stated = casts ? arguments[0] : is_const ? arguments[1] : AttrValue(std::string(callee.text));
      if ((casts || is_const || arguments.size() == 1) && from_attr(stated, dtype)) {
        const AttrValue& argument = is_const ? arguments[0] : arguments.back();
        if (argument.as<bool>()) return argument;
        const double* real = argument.as<double>();
        auto whole = real ? std::nullopt : as_int(scalar(at, argument));
        if (whole && dtype.is_float()) return scalar_imm(static_cast<double>(*whole), dtype);
        Expr result = real ? scalar_imm(*real, dtype) : simplify(cast_to(scalar(at, argument), dtype));
        if (auto known = as_int(result)) return *known;
        return result;
      }
    }
    fail(span(callee),
         "a schedule calls primitives of '{}', len, range, enumerate and the like, T.vscale, T.Cast and T.int64",
         schedule_name_);
  }

  Schedule& schedule_;
  std::shared_ptr<const Origin> origin_;
  std::string schedule_name_;
  ScheduleNames names_;
  int64_t steps_ = 0;
};

}  // namespace

std::shared_ptr<const Origin> origin_of(std::string_view text, const std::string& filename) {
  return std::make_shared<const Origin>(Origin{filename, "", "", std::make_shared<const std::string>(text)});
}

AttrValue evaluate(const Syntax& at, const std::shared_ptr<const Origin>& origin, ScheduleNames names) {
  Schedule none{IRModule()};
  return Interpreter(none, origin, "", std::move(names)).evaluate(at);
}

AttrValue schedule_value(std::string_view text, ScheduleNames names) {
  Diagnostics diagnostics;
  text::SyntaxTree tree;
  auto origin = origin_of(text, "<value>");
  const Syntax* at = text::parse_expression({origin, *origin->text}, tree, diagnostics);
  diagnostics.throw_if_errors();
  if (!at) fail({}, "expected a value, found an empty text");
  return evaluate(*at, origin, std::move(names));
}

void ScheduleBody::operator()(Schedule& schedule, const Target&, Decisions&) const {
  schedule.add_intrins(*intrins);
  Interpreter(schedule, origin, schedule_name).run(lines);
}

}  // namespace relaxc
