// Python's operators on numbers, and its functions of numbers and lists that a schedule may call: len, range,
// enumerate, min. Internal to tir/schedule/.
#pragma once
#include <optional>
#include <string>

#include "ir/stmt.h"
#include "ir/text/syntax.h"

namespace relaxc {

// What the name of the schedule is where a value is expected: print(sch).
inline constexpr const char* kAboutSchedule =
    "the schedule, not a value; relaxc compile --emit=loops prints the loops that its steps make, --emit=trace the "
    "steps";

// An operator on two known numbers. `on_floats` computes it when one of them is a float, or the operator is /.
struct ScriptOperation {
  std::string_view symbol;
  BinaryOp op;
  AttrValue (*on_floats)(double, double);
  std::optional<int64_t> (*checked)(int64_t, int64_t) = nullptr;  // of operators whose results may overflow
};
const ScriptOperation* find_script_operation(std::string_view symbol);  // null for others
std::optional<double> as_double(const AttrValue& number);
AttrValue known_number(const Expr& e);  // a number or flag that is known, else the expression
// Return `and` or `or`, and `not`, of flags and of conditions over dims that are not known.
AttrValue joined_conditions(bool is_and, const AttrValue& left, const AttrValue& right);
AttrValue negated_condition(const AttrValue& condition);

// Returns the bound of a slice of a list, which counts from its end where it is negative.
int64_t script_bound(int64_t number, int64_t size);

// Returns the result; nullopt where this is no such function, or, with an error, where the arguments do not fit.
std::optional<AttrValue> script_function(std::string_view name, const AttrList& arguments, std::string& error);

// Returns tvm.tir.IterVar.CommReduce and the like, kinds of axes; nullopt for other attributes.
std::optional<AttrValue> script_iter_type(const text::Syntax& owner, std::string_view name);
// Returns what sch.get(block) or sch.get(loop) is, with attributes as TVM's objects have; and such an attribute, or
// nullopt. script_members() names them.
AttrValue script_object(const Stmt& stmt);
std::optional<AttrValue> script_member(const AttrValue& object, std::string_view name);
std::string_view script_members();

}  // namespace relaxc
