// The description of one operator, and the table of them. Rows live in ops/<group>.cc; the importer, the builder, the
// text format, the verifier and the passes read them. The table is an explicit object that is handed to the code that
// needs it.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/module.h"
#include "support/diagnostic.h"

namespace relaxc {

class Builder;

// Says how fusion may treat the operator's kernel, ordered from freest to strictest.
enum class OpPattern : uint8_t {
  kElementwise,  // output[i] depends on inputs[i] alone
  kBroadcast,    // the same after broadcasting
  kInjective,    // output[i] depends on single elements of the inputs (transpose, slice, ...)
  kReduction,    // reduces axes of an input
  kAnchor,       // contraction or window (matmul, conv, pool): takes elementwise consumers into its epilogue
  kOpaque,       // never fused
};

struct OpInput {
  const char* name;
  const char* doc;
  enum class Arity : uint8_t { kOne, kOptional, kVariadic } arity = Arity::kOne;
  // A shape becomes a tuple of scalars (kScalars); a scalar may stand for a shape (kShape).
  enum class Form : uint8_t { kAny, kScalars, kShape } form = Form::kAny;
  size_t items = 0;  // a shorter shape is repeated to this many
};
struct OpAttr {
  const char* name;
  AttrValue otherwise;  // the default; none when the attribute is required or may be None
  AttrKind kind = AttrKind::kAny;
  size_t items = 0;                            // a shorter list is repeated to this many: padding=1 is (1, 1, 1, 1)
  const char* default_from = nullptr;          // the attribute whose value None stands for: out_layout is data_layout's
  std::vector<std::string_view> choices = {};  // the strings that are allowed; empty: any
  bool is_extension = false;                   // Relax does not have it: left out when it is the default
};

// Two dims of one call that must be equal for the call to be valid, and are not known to be.
struct DimCheck {
  Expr a, b;
  std::string what = "check";  // "k is larger than axis 1"
};
// Returns the reason as the name of the match_cast that tests it, "k_is_larger_than_axis_1"; what_of_check inverts it.
std::string name_of_check(std::string_view what);
std::string what_of_check(std::string name);

// The view of a call that infer and legalize get. `args` are leaf values.
struct OpCall {
  const Call& call;
  const Span& span;
  std::vector<DimCheck>* checks = nullptr;  // gathers what require_equal() cannot decide
  // The sizes that OpRow::sizes counted. Behind the `given` arguments of the operator stand the tensors that it left.
  const std::vector<Expr>* sizes = nullptr;
  size_t given = SIZE_MAX;

  const Expr& arg(size_t i) const { return call.args.at(i); }
  size_t size() const { return std::min(given, call.args.size()); }
  // Returns a size that only the run can tell, an int64 scalar.
  const Expr& run_size(size_t i) const { return sizes->at(i); }
  // Return the dims, rank or dtype of tensor argument i; a CompileError names the argument when they are not known.
  const Type& type(size_t i) const;  // the argument need not be a tensor
  const std::vector<Expr>& shape(size_t i) const;
  int64_t rank(size_t i) const;
  DType dtype(size_t i) const;
  // Returns the dtype of the first tensor among the arguments, tuples included, if it is known.
  std::optional<DType> first_dtype() const;
  template <HasFields T>
  T attrs() const {
    return read_attrs<T>(call.attrs, span);
  }
  const std::string& name() const { return call.callee.as<OpRef>()->name; }
  // The requirements of infer on dims. Dims that cannot be equal are an error that names both ("inner dims: 3 and 4").
  // Requirements that only the run can decide go to `checks`, of which passes/check_dims.cc makes tests.
  void require_equal(const Expr& a, const Expr& b, std::string_view what) const;
  void require_at_most(const Expr& a, const Expr& b, std::string_view what) const;
  void require_multiple(const Expr& a, int64_t factor, std::string_view what) const;
  // Throws an error at this call: "nn.conv2d: weight has 3 input channels, expected 4".
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    relaxc::fail(span, "{}: {}", name(), fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    relaxc::fail_unsupported(span, "{}: {}", name(), fmt::format(format, std::forward<Args>(args)...));
  }
};

// An operand that holds indices, in [-dim, dim), of axes of these sizes: one for all, or one per item of the last axis.
struct IndexOperand {
  size_t position;
  std::vector<Expr> dims;
  bool reads = true;  // a gather, which may clamp; else a scatter
};

// The view of a call that a reference gets: dims are numbers. `x` are the tensor arguments, tuples flattened.
struct ReferenceCall {
  const Call& call;
  std::vector<Tensor> x;
  template <HasFields T>
  T attrs() const {
    return read_attrs<T>(call.attrs);
  }
  int64_t number(size_t i) const;             // a scalar argument
  std::vector<int64_t> dims(size_t i) const;  // a shape argument
};
using Reference = std::function<std::vector<Tensor>(const ReferenceCall&)>;

// The sizes of results that only the run can tell, and the tensor program that counts them. A call becomes two kernels
// (ops/run_sizes.h): this one, and that of OpRow::legalize, which fills results of these sizes.
struct RunSizes {
  std::vector<const char*> names = {};                              // of the sizes, and so of dims of what follows
  std::function<PrimFuncRef(const OpCall&)> count = {};             // its outputs: int64[names.size()], and those left
  std::vector<OpInput> left = {};                                   // tensors that filling reads besides the arguments
  std::function<std::vector<Type>(const OpCall&)> infer_left = {};  // their types
};

namespace gradients {
class GradientCall;  // ops/gradient.h
}

// How the gradient of a call's result becomes those of its arguments.
struct GradientRule {
  // Returns what the argument gets. It may have the dims of a broadcast, over which it is then summed.
  using Of = std::function<Expr(const gradients::GradientCall&)>;
  // An item for each argument that may be a tensor. Where it is empty, or there is none, the result stays the same in a
  // neighbourhood of the argument's value: floor, the condition of where.
  std::vector<Of> arguments = {};
  // Emits the operator in terms of others, whose gradients are used then, and returns their value; else empty.
  std::function<Expr(const OpCall&, Builder&)> written = {};
};

struct LayoutQuestion;  // ops/layouts.h
struct LayoutOffer;

// All that the compiler knows about an operator. Rows have designated initializers, without empty and default members.
struct OpRow {
  std::string name = {};  // "relax.nn.conv2d"; printed as R.nn.conv2d
  std::string doc = {};   // one line
  std::string onnx = {};  // the ONNX operator that is this one without any conversion: "Abs"
  std::vector<OpInput> inputs = {};
  std::vector<OpAttr> attrs = {};  // in the order they print; op_attrs<T>() derives it from the attribute struct
  OpPattern pattern = OpPattern::kOpaque;
  bool pure = true;
  // It moves elements and computes nothing with them, so that they may be complex numbers, which others refuse.
  bool moves = false;
  // The result has argument 0's elements in their order, in its memory.
  bool view = false;
  // Returns the call's type. Throws a CompileError for operands that do not fit; requirements on dims go through
  // OpCall::require_*. Every operand has a shape and a dtype; its dims may be variables about which nothing is known.
  std::function<Type(const OpCall&)> infer = {};
  // Returns whether the rank or a constant dim of the type depends on dims: which of them are 1. When empty, none does,
  // and infer gets variables in place of dims that are not known.
  std::function<bool(const OpCall&)> needs_dims = {};
  // Returns the type where an operand's rank or dtype, or a dim that is needed, is not known; when empty, a tensor of
  // the first tensor's dtype.
  std::function<Type(const OpCall&)> infer_partial = {};
  // Returns a tensor program of the call: params are its tensor arguments in order (tuples flattened), then the
  // outputs. It may use the graph's symbolic dims freely; legalize replaces them by the program's. When empty, the
  // operator is decomposed, lowered elsewhere (builtins), or nothing lowers it and compiling it reports that.
  std::function<PrimFuncRef(const OpCall&)> legalize = {};
  // Set for an operator whose results have sizes that only the run can tell. infer and legalize get them as
  // OpCall::run_size; its `decompose` follows from them.
  std::optional<RunSizes> sizes = {};
  // Emits other operators through the builder and returns their value, for an operator that stands for several
  // (passes/decompose.cc). They are not decomposed in turn, so one that emits its own operator leaves the call as it
  // is.
  std::function<Expr(const OpCall&, Builder&)> decompose = {};
  // The reason why nothing lowers the operator, and what to do instead, for messages; empty where something does.
  std::string why = {};
  // The reason why a function of the runtime (vm/builtins.cc) does the operator's work, which is not fused and runs on
  // one thread; empty where tensor programs or bytecode do it.
  std::string why_runtime = {};
  // Fills in arguments and attributes that Relax derives from others, such as the step of arange; may be empty.
  std::function<void(Call&)> complete = {};
  // The built-in operators' come from the tables of ops/gradient_*.cc. An operator without one that has `decompose` is
  // differentiated as those operators.
  std::optional<GradientRule> gradient = {};
  // Returns another form of a call, on tensors in other layouts than the plain order (ops/layouts.h); nullopt where it
  // has none. When empty, there is none for any call.
  std::function<std::optional<LayoutOffer>(const LayoutQuestion&)> layouts = {};
  // Returns the results in plain C++, for tests on small tensors: given where a wrong formula in `legalize` would pass
  // them otherwise, since no case of the ONNX backend tests reaches the operator (ops/reference.h).
  Reference reference = {};
  // Returns the operand whose elements the call requires to be indices in range; nullopt for a call that gives every
  // element a meaning, and where a shape is not known.
  std::function<std::optional<IndexOperand>(const OpCall&)> indexed = {};
};

class OpTable {
 public:
  explicit OpTable(std::vector<OpRow> rows);
  const OpRow* find(std::string_view name) const;
  const std::vector<OpRow>& rows() const { return rows_; }  // sorted by name

 private:
  std::vector<OpRow> rows_;
  std::unordered_map<std::string_view, const OpRow*> by_name_;
};

// Returns the attribute list of a row, derived from its struct; the default of a list tells how many items it has.
template <HasFields T>
std::vector<OpAttr> op_attrs() {
  static_assert(lists_all_members<T>(), "fields() does not list each member once, under its name");
  std::vector<OpAttr> result;
  T defaults{};
  for_each_field<T>([&](const auto& f) {
    using Member = std::remove_cvref_t<decltype(defaults.*f.member)>;
    result.push_back({f.name, to_attr(defaults.*f.member), attr_kind<Member>()});
    if constexpr (requires { (defaults.*f.member).front(); } && !std::is_same_v<Member, std::string>)
      result.back().items = (defaults.*f.member).size();
  });
  return result;
}

// Convert a device mesh to an attribute, and back.
AttrValue to_attr(const DeviceMesh& mesh);
bool from_attr(const AttrValue& value, DeviceMesh& mesh);

// Returns the call in the canonical form that every module holds it in, so that equal calls are equal nodes: attributes
// have their kind's spelling ("float32" becomes a dtype, 1 a list [1], 2 becomes 2.0), attributes that were left out
// get their defaults, short lists all items, and scalars become tuples where the row says so. Values that do not fit
// stay; infer rejects them. The function is idempotent.
Call normalize_call(const OpRow& row, Call call);
bool is_normal(const OpRow& row, const Call& call);

// Returns whether the call has no effect other than its result. The operator's row decides, or the type of the function
// that is called, which a row like that of call_builtin_with_ctx gets as its first argument.
bool is_pure(const Call& call, const OpTable& ops);

// Returns the type of a call of an operator, a module function, an extern function or a closure. Unknown operators and
// operands that do not fit throw a CompileError at the span; `checks` gets what only the run can decide.
Type infer_call_type(const Call& call, const Span& span, const OpTable& ops, std::vector<DimCheck>* checks = nullptr);

}  // namespace relaxc
