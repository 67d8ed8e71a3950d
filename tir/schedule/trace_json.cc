// Traces as JSON, in TVM's layout: [[[name, inputs, attrs, outputs], ...], [[step, decision], ...]]. Inputs are the
// arguments that may be random variables, by name ("b0", "l3"), with lists spread out; a string among inputs has a
// second pair of quotes. Maps of positions and other expressions are texts ("lambda i, j: (j, i)", "T.vscale() * 4").
#include <cmath>
#include <limits>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tir/schedule/script.h"
#include "tir/schedule/trace_names.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns "ComputeAt" for "compute_at".
std::string instruction_name(std::string_view primitive) {
  std::string result;
  bool upper = true;
  for (char c : primitive) {
    if (c != '_') result += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = c == '_';
  }
  return result;
}

// ---- Writing

std::string quoted(std::string_view text) { return json_string(text); }

std::string json_of(const AttrValue& value, RVNames& names, bool among_inputs) {
  if (value.is_none()) return "null";
  if (const bool* flag = value.as<bool>()) return *flag ? "true" : "false";
  if (const int64_t* number = value.as<int64_t>()) return std::to_string(*number);
  if (const double* number = value.as<double>()) {
    if (std::isnan(*number)) return "NaN";  // as Python has them
    if (std::isinf(*number)) return *number < 0 ? "-Infinity" : "Infinity";
    std::string text = fmt::format("{}", *number);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  if (const std::string* text = value.as<std::string>()) return quoted(among_inputs ? quoted(*text) : *text);
  if (const AttrList* list = value.as<AttrList>()) {
    auto text_of = [&](const AttrValue& item) { return json_of(item, names, among_inputs); };
    return fmt::format("[{}]", joined(*list, text_of));
  }
  if (const Attrs* entries = value.as<Attrs>()) {
    auto text_of = [&](const auto& entry) {
      return quoted(entry.first) + ": " + json_of(entry.second, names, among_inputs);
    };
    return fmt::format("{{{}}}", joined(*entries, text_of));
  }
  const Expr* e = value.as<Expr>();
  if (auto number = e ? as_int(*e) : std::nullopt) return std::to_string(*number);
  return quoted(value_text(value, names));
}

}  // namespace

std::string Trace::json() const {
  RVNames names;
  std::vector<std::string> instructions, decisions;
  for (size_t i = 0; i < steps.size(); ++i) {
    const TraceStep& step = steps[i];
    std::vector<std::string> inputs, attrs;
    for (size_t p = 0; p < step.arguments.size(); ++p) {
      const Param& param = step.primitive->params[p];
      const AttrList* list = step.arguments[p].as<AttrList>();
      bool input = param.kind.is_input;
      if (param.kind.is_list) {
        for (const AttrValue& item : list ? *list : AttrList()) inputs.push_back(json_of(item, names, true));
      } else {
        (input ? inputs : attrs).push_back(json_of(step.arguments[p], names, input));
      }
    }
    std::string outputs = joined(step.results, [&](const VarRef& result) { return quoted(names(result)); });
    instructions.push_back(fmt::format("[{}, [{}], [{}], [{}]]", quoted(instruction_name(step.primitive->name)),
                                       joined(inputs), joined(attrs), outputs));
    if (!step.decision.is_none()) decisions.push_back(fmt::format("[{}, {}]", i, json_of(step.decision, names, false)));
  }
  return fmt::format("[[{}], [{}]]", joined(instructions), joined(decisions));
}

// ---- Reading

// JSON is Python with other names for constants.
AttrValue read_json(std::string_view json) {
  return schedule_value(json, {{"null", {}},
                               {"true", true},
                               {"false", false},
                               {"NaN", std::numeric_limits<double>::quiet_NaN()},
                               {"Infinity", std::numeric_limits<double>::infinity()}});
}

namespace {

const AttrList& list_at(const AttrList& list, size_t i) {
  const AttrList* result = i < list.size() ? list[i].as<AttrList>() : nullptr;
  if (!result) fail({}, "a trace is [[[name, inputs, attrs, outputs], ...], [[step, decision], ...]]");
  return *result;
}

// Returns the argument that an input writes: a random variable by its name, a string in a second pair of quotes, or an
// expression over variables.
AttrValue input_of(const AttrValue& value, const ScheduleNames& variables) {
  if (const AttrList* list = value.as<AttrList>())
    return map_each(*list, [&](const AttrValue& item) { return input_of(item, variables); });
  if (const Attrs* entries = value.as<Attrs>()) {
    Attrs result;
    for (const auto& [key, item] : *entries) result.set(key, input_of(item, variables));
    return result;
  }
  const std::string* text = value.as<std::string>();
  if (!text) return value;
  if (text->starts_with('"')) return read_json(*text);
  if (const AttrValue* known = find_value(variables, *text)) return *known;
  if (text->find('(') == std::string::npos && text->find(' ') == std::string::npos)
    fail({}, "'{}' is not a random variable of the trace", *text);
  return schedule_value(*text, variables);
}

const Primitive& named_instruction(const std::string* name) {
  std::string_view wanted = name && *name == "GetSBlock" ? "GetBlock" : name ? std::string_view(*name) : "";
  for (const Primitive& known : primitives()) {
    if (instruction_name(known.name) == wanted) return known;
  }
  fail({}, "{}", unknown_primitive(wanted));
}

AttrValue attr_of(const AttrValue& value) {
  const std::string* text = value.as<std::string>();
  bool is_expr = text && (text->starts_with("lambda ") || text->starts_with("T."));
  return is_expr ? schedule_value(*text) : value;
}

// Returns one value for each param. A list takes all inputs but those of the params after it.
AttrList arguments_of(const Primitive& primitive, const AttrList& inputs, const AttrList& attrs,
                      const ScheduleNames& variables) {
  AttrList arguments;
  size_t num_inputs = 0, next_input = 0, next_attr = 0;
  for (const Param& param : primitive.params) num_inputs += param.kind.is_input;
  for (const Param& param : primitive.params) {
    num_inputs -= param.kind.is_input;
    if (param.kind.is_list) {
      AttrList list;
      for (; next_input + num_inputs < inputs.size(); ++next_input)
        list.push_back(input_of(inputs[next_input], variables));
      arguments.emplace_back(list);
      continue;
    }
    bool is_missing = param.kind.is_input ? next_input >= inputs.size() : next_attr >= attrs.size();
    if (!is_missing) {
      arguments.push_back(param.kind.is_input ? input_of(inputs[next_input++], variables)
                                              : attr_of(attrs[next_attr++]));
    } else if (!param.kind.is_input && param.otherwise) {
      arguments.push_back(*param.otherwise);  // of a parameter that a later version has added
    } else {
      fail({}, "{}: argument '{}' is missing", primitive.name, param.name);
    }
  }
  if (next_input < inputs.size())
    fail({}, "{}: there are {} inputs, {} expected", primitive.name, inputs.size(), next_input);
  return arguments;
}

}  // namespace

Trace Trace::from_json(std::string_view json) { return from_value(read_json(json)); }

Trace Trace::from_value(const AttrValue& all) {
  const AttrList empty;
  const AttrList& top = all.as<AttrList>() ? *all.as<AttrList>() : empty;
  Trace trace;
  ScheduleNames variables;
  for (const AttrValue& one : list_at(top, 0)) {
    const AttrList& row = one.as<AttrList>() ? *one.as<AttrList>() : empty;
    const Primitive& primitive = named_instruction(row.empty() ? nullptr : row[0].as<std::string>());
    TraceStep step{&primitive, arguments_of(primitive, list_at(row, 1), list_at(row, 2), variables), {}, {}};
    for (const AttrValue& output : list_at(row, 3)) {
      const std::string* text = output.as<std::string>();
      if (!text) fail({}, "{}: an output is {}, expected a name", primitive.name, relaxc::to_string(output));
      VarRef var = make_var(*text, primitive.gives_numbers() ? prim_type(kInt64) : object_type());
      variables.insert_or_assign(*text, Expr(var));
      step.results.push_back(var);
    }
    trace.steps.push_back(std::move(step));
  }
  for (const AttrValue& one : list_at(top, 1)) {
    const AttrList& pair = one.as<AttrList>() ? *one.as<AttrList>() : empty;
    const int64_t* at = pair.size() == 2 ? pair[0].as<int64_t>() : nullptr;
    if (!at || *at < 0 || *at >= static_cast<int64_t>(trace.steps.size()))
      fail({}, "a decision is [step, value], with the number of a step of the trace");
    trace.steps[static_cast<size_t>(*at)].decision = pair[1];
  }
  return trace;
}

}  // namespace relaxc
