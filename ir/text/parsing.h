// The reader's state, shared by its parts; README.md says which file reads what. Internal to ir/text/.
#pragma once
#include <fmt/format.h>

#include <set>

#include "ir/builder.h"
#include "ir/intrinsics.h"
#include "ir/text/model_types.h"
#include "ir/text/names.h"
#include "ir/text/parser.h"
#include "ir/text/syntax.h"
#include "support/nearest.h"

namespace relaxc::text {

// Thrown after an error was reported; caught where statements are separated.
struct Failed {};

// The place of an error, with a text that may have been meant, or "", and a note for its message.
struct ErrorPlace : Place {
  ErrorPlace(const Place& at, std::string_view near = {}, const char* remark = nullptr)  // NOLINT: any place is one
      : Place(at), hint(near), note(remark) {}
  std::string_view hint;
  const char* note;
  ErrorKind kind = ErrorKind::kInvalid;
};
inline ErrorPlace unsupported(ErrorPlace at) {
  at.kind = ErrorKind::kUnsupported;
  return at;
}

// A scalar or graph value. A literal has no dtype yet: it takes the other operand's.
struct Value {
  Expr expr;
  bool literal = false;
  std::optional<double> exact = {};  // a float literal before rounding
};

constexpr int kDeepestStatement = 256;
// Returns how many lanes a buffer's element has at these indices: those of the last one.
int index_lanes(const std::vector<Expr>& indices);
// Returns A.elem_offset.
Expr elem_offset(const Buffer& buffer, const Span& span);
// Finds an operator by its symbol, or by the name of its call form.
std::optional<BinaryOp> operator_of(std::string_view text, const char* BinaryOpInfo::* column = &BinaryOpInfo::symbol);
bool fits(int64_t value, DType dtype);
// Return the result of arithmetic that Python does on numbers; nullopt when 64 bits do not hold it.
std::optional<int64_t> fold_whole(std::string_view op, int64_t a, int64_t b);
std::optional<double> fold_real(std::string_view op, double a, double b);
// Returns -4 for `4 * vscale`: the lanes of a scalable vector in Ramp's encoding.
std::optional<int64_t> scalable_lanes(const Expr& count);

// Return the spelling of a form ("T.Ramp" for "T.ramp") and of a keyword that the reader uses.
std::string canonical_form(std::string path);
std::string_view canonical_keyword(std::string_view name);
// Returns whether the path names a type, such as "R.Tensor". A type is not a value.
bool is_type_name(std::string_view path);
bool is_array_of_numpy(const Syntax& at);
// Returns the elements as another dtype.
Tensor converted(const Tensor& data, DType dtype);
// Describes the syntax for messages: "math.inf", "R.device(...)", "a lambda".
std::string spelling(const Syntax& at);
bool holds_definition(const Line& line);                     // of a module or of a part of one
std::optional<double> special_float(std::string_view text);  // "inf", "-inf", "nan"
// Reads one dictionary of constants, such as a JSON object; throws CompileErrors.
Attrs read_dictionary(const Source& source);

class Parser {
 public:
  Parser(std::shared_ptr<const Origin> origin, const OpTable& ops, Diagnostics& diagnostics, std::string wanted = "");
  ~Parser();
  IRModule run();

 private:
  friend Attrs read_dictionary(const Source& source);
  using Keyword = Syntax::Keyword;

  // ---- parser.cc: definitions, errors, names
  struct Signature {
    std::vector<VarRef> params;
    std::optional<Type> result;
    std::map<std::string, Entity> names;
    bool sound = true;
    Type type(bool pure) const { return function_type(params, result.value_or(object_type()), pure); }
  };
  struct Pending {
    std::string name;
    const Line* line;
    bool states_scalars = false;  // its decorator says s_tir=True
    bool is_program = false, is_private = false, pure = true;
    bool sound = true;                        // its lines are
    std::optional<Signature> signature = {};  // graph functions only
  };
  void read_definitions();
  void model_errors(std::vector<Diagnostic> errors);
  void definition(const Line& line, bool top, bool& keep);
  bool built_definition(const Line& line, bool& keep);
  void function_definition(const Line& line, bool& keep);
  void define_program(const Pending& pending);
  bool is_other_module(const Line& line);
  void forget_module();
  void forget_function(const std::string& name);
  Span span(const Place& at) const { return {origin_, at.line, at.column, at.length}; }
  // Reports an error. fail() also ends the reading of the statement.
  Diagnostic& report_text(const ErrorPlace& at, std::string message);
  template <class... Args>
  Diagnostic& report(const ErrorPlace& at, fmt::format_string<Args...> format, Args&&... args) {
    return report_text(at, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void fail(const ErrorPlace& at, fmt::format_string<Args...> format, Args&&... args) {
    report_text(at, fmt::format(format, std::forward<Args>(args)...));
    throw Failed();
  }
  // Runs fn; errors that it throws end up in the diagnostics. Returns false after an error.
  template <class F>
  bool guarded(F&& fn) {
    try {
      fn();
      return true;
    } catch (const Failed&) {
    } catch (const CompileError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics()) diagnostics_.add(diagnostic);
    }
    ++failures_;
    return false;
  }
  // Returns a count that grows when an error is reported, and when a statement is skipped because of an earlier error.
  size_t errors() const {
    for (const std::vector<Diagnostic>& all = diagnostics_.all(); counted_ < all.size(); ++counted_)
      reported_ += all[counted_].severity == Severity::kError;
    return failures_ + reported_;
  }

  const Entity* lookup(std::string_view name) const { return scopes_.find(name); }
  void define(std::string_view name, Expr value) { scopes_.define(name, Entity{std::move(value)}); }
  // Defines the name on the left of '=', or of a parameter, as a new variable.
  VarRef define_var(const Syntax& target, Type type, Entity::Form form = Entity::Form::kValue);
  VarRef define_param(const Param& param, Type type);
  // Poisons, after a failed statement, the names that it would have defined.
  void poison(const Syntax* target);
  void poison(std::string_view name);
  void poison_line(const Line& line);
  void drop_failed();
  void check_declared_results();
  void name_lone_functions();
  bool names_functions(const Line& line);
  void drop_intrin_parts();
  Expr name(const Syntax& at);
  [[noreturn]] void fail_undefined(const Syntax& at);
  // Reports a name without meaning, also that of which the syntax is an attribute or item.
  void require_defined(const Syntax& at);

  // Returns the canonical form, "T.axis.spatial" or "R.nn.relu", of names with dots; empty for other syntax.
  std::string dotted(const Syntax& at) const;
  std::string resolve(const Syntax& at) const;
  std::string bare_form(const Syntax& at) const;
  bool leaves_out_prefixes() const { return bare_forms_ || (early_ && in_graph_); }
  // Returns the name of the module's function to which `cls.f` or `Module.f` refers; null when it is something else.
  const std::string* function_name(const Syntax& at);
  // Returns the form, function or operator whose name is closest to the path, for a hint; "" when none is close.
  std::string near_form(std::string_view path) const;
  const std::string* function_named(std::string_view name) const;
  const Syntax* keyword(const Syntax& call, std::string_view name) const;
  // Returns positional argument i, or the keyword of that name; null when absent.
  const Syntax* arg(const Syntax& call, size_t i, std::string_view name) const;
  const Syntax& required(const Syntax& call, size_t i, std::string_view name);
  size_t positional(const Syntax& call) const { return call.children.size() - 1; }
  // Returns dotted() of a call's callee; empty for other syntax.
  std::string callee_path(const Syntax& at) const { return is_call(at) ? dotted(*at.children[0]) : ""; }
  // ---- signatures.cc
  // Reads a call with this path: "T.Cast", "R.tuple".
  using Form = Value(const std::string& path, const Syntax& at);
  struct FormRow;
  struct FormEntry;
  static const std::unordered_map<std::string_view, FormEntry>& forms();
  // Returns the names of a form's arguments, those of the positional ones first.
  static const std::vector<std::string_view>& argument_names(const std::string& path);
  // Reads a value that is written as a form; nullopt for other paths.
  std::optional<Value> form_value(const std::string& path, const Syntax& at);
  void check_signature(const std::string& path, const Syntax& call);
  // Reports the arguments that the form does not take; returns whether there are none.
  bool fits_signature(const std::string& path, const Syntax& call);
  // Returns callee_path(), and checks the arguments.
  std::string called(const Syntax& at);
  void check_keywords(const Syntax& call, const std::vector<std::string>& known);

  // ---- parse_literal.cc
  using TextReader = std::string(const Syntax& at);
  TextReader string, name_of_target, placement, type_name, vdevice_name, thread_tag;
  bool is_docstring(const Line& line) const;
  std::optional<int64_t> int_literal(const Syntax& at);
  int64_t constant_int(const Syntax& at);
  bool constant_bool(const Syntax& at);
  DType dtype(const Syntax& at);
  std::optional<DType> dtype_of_value(const Syntax& at);
  AttrValue attr_value(const Syntax& at, bool keep = false);
  std::optional<AttrValue> literal_attr(const Syntax& at, bool keep);
  std::optional<AttrValue> called_attr(const Syntax& at, bool keep);
  AttrValue number_attr(const Syntax& argument, DType dtype);
  AttrValue index_map(const Syntax& at);
  Attrs attrs(const Syntax& at);
  // Adds the attributes of R.func_attr({...}) and of similar calls.
  void add_attrs(const Syntax& call, Attrs& to);
  Attrs optional_attrs(const Syntax* at) { return is_none(at) ? Attrs() : attrs(*at); }
  // Reads annotations of a statement. T.int64(16) is the number 16 for pragmas and the keys of MetaSchedule.
  Attrs annotations(const Syntax* at);
  std::vector<const Syntax*> items(const Syntax& at) const;  // those of a tuple or list; other syntax is one item
  // Returns the result of `read` for each item.
  template <class Items, class T>
  std::vector<T> read_each(const Items& items, T (Parser::*read)(const Syntax&)) {
    return map_each(items, [&](const Syntax* item) { return (this->*read)(*item); });
  }

  // ---- python.cc: the Python around a module
  using PythonReader = std::optional<AttrValue>(const Syntax& at);
  PythonReader python_value;
  // python_arrays.cc: arrays of numpy
  using ArrayReader = std::optional<Tensor>(const Syntax& at);
  ArrayReader array_range, listed_array, python_array, python_number;
  using NamedArrayReader = std::optional<Tensor>(const std::string& name, const Syntax& at);
  NamedArrayReader made_array, random_array;
  std::optional<DType> array_dtype(const Syntax* at, DType otherwise);
  std::optional<std::vector<int64_t>> array_shape(std::span<const Syntax* const> args);
  std::optional<Tensor> reshaped(const Tensor& array, std::span<const Syntax* const> dims);
  using Meaning = std::function<const Syntax*(const Syntax& name)>;
  const Syntax* syntax_of(const std::string& text, const Place& at);
  const Syntax* replaced(const Syntax* at, const Meaning& meaning);
  bool is_python(const Line& line) const;
  void leave_python(const Line& line);
  bool is_schedule_step(const Line& line);
  bool calls_schedule(const Syntax* at) const;
  void report_python();
  const char* computed_hint() const;
  [[noreturn]] void refuse_computed(const Syntax& at, uint32_t line);
  const Line& replaced_line(const Line& line, const Meaning& meaning);
  const Line& with_arrays(const Line& line);
  bool array_line(const Line& line);
  void forget_arrays(const Line& line);
  // ---- parse_te.cc: tensor programs from index expressions
  Expr te_variable(const Syntax& at, std::string name);
  struct TeReader;
  struct ModelTypeReader;  // model_types.cc
  std::unique_ptr<ModelTypes> model_types() const;
  class TopiArguments;   // te_topi.cc
  struct BuilderReader;  // block_builder.cc

  // ---- parse_module.cc
  using LineReader = void(const Line& line);
  using LineTest = bool(const Line& line);  // returns whether it has read the line
  LineReader class_head, module_line, imports, python_line;
  LineTest type_variables;
  Pending read_decorators(const Line& line);
  std::string early_decorator(const Syntax& at) const;
  Pending declare(const Line& line);
  void global_infos(const Syntax& at);
  GlobalInfo global_info(const Syntax& at);
  VDevice vdevice(const Syntax& at);
  std::span<const GlobalInfo> global_infos_of(const std::string& key) const;
  DeviceMesh device_mesh(const Syntax& at);
  LineReader metadata;

  // ---- parse_expr.cc
  // Functions of one signature are declared together.
  using ValueReader = Value(const Syntax& at);
  using ExprReader = Expr(const Syntax& at);
  ValueReader eval, scalar_value, number, property, unary, binary, subscript, call, method_call, constant,
      metadata_constant;
  // call_argument reads a scalar, a string or a buffer; as_argument a leaf.
  ExprReader condition, truth, call_argument, as_argument, callee, tir_vars, external_function;
  Expr expr(const Syntax& at) { return eval(at).expr; }
  Expr scalar(const Syntax& at) { return scalar_value(at).expr; }
  Expr adapt(Value value, DType dtype, const Syntax& at);
  void match_operands(Value& a, Value& b, const Syntax& at);
  Value literal(int64_t value, const Syntax& at);
  Value literal(double value, const Syntax& at);
  // Folds bare numbers, which Python computes before anything has a dtype; nullopt for other operands.
  std::optional<Value> fold_literals(std::string_view op, const Value& a, const Value& b, const Syntax& at);
  using ItemsReader = std::vector<Expr>(const Syntax& at);
  ItemsReader graph_items, spread_items;
  Expr bounded_tuple(std::vector<Expr> items, const Syntax& at);
  Value binary(BinaryOp op, Value a, Value b, const Syntax& at, bool fold);
  Buffer addressed(const Syntax& at, size_t num_indices);
  std::optional<Expr> lane_mask(const Syntax* at);
  Value tuple_item(const Expr& whole, const Syntax& index_at, const Syntax& at);
  Value load(const Buffer& buffer, const Syntax& at);
  std::vector<Expr> indices(const Buffer& buffer, const Syntax& at);
  // Returns the syntax of pointer[indices], which a call spells differently.
  Syntax element_at(const Syntax& call, const Syntax& pointer, const Syntax& indices) const;
  Syntax subscript_of(const Syntax& call, const Syntax& object, std::span<const Syntax* const> indices) const;
  // Turns the last index into a vector of consecutive positions, when it is a scalar.
  void widen_last(std::vector<Expr>& indices, int lanes, const Span& span);
  const Tuple* named_tuple(const Syntax& at);
  std::vector<Expr> sliced(const std::vector<Expr>& items, const Syntax& slice);
  std::vector<const Syntax*> index_items(const Buffer& buffer, const Syntax& at, const char* what);
  Expr slice_index(const Syntax& at);
  std::vector<Range> ranges(const Buffer& buffer, const Syntax& at);
  Range slice(const Syntax& at);
  Expr extent_of(const Expr& min, const Expr& end, const Syntax& at);
  Value tir_call(const std::string& name, const Syntax& at);
  Value dtype_call(DType dtype, const Syntax& at);
  std::vector<const Syntax*> arguments(const Syntax& at);
  Value intrinsic_call(const std::string& name, const Syntax& at);
  Value op_call(const Syntax& at, std::span<const Syntax* const> args);
  Value program_call(const std::string& callee, const Syntax& at);
  Expr lambda(const Syntax& at, const std::vector<DType>& dtypes);
  Value builtin_call(const Builtin& row, const Syntax& at);
  Value access_ptr(const Buffer& buffer, const Syntax& at);
  // Returns the largest number of a dtype (infinite: infinity), or the least.
  Expr limit(DType wanted, bool low, bool infinite, const Syntax& at);
  // Returns the buffer that an expression names; for the name of an allocation, its memory.
  std::optional<Buffer> named_buffer(const Syntax& at);
  std::optional<Value> buffer_property(const Syntax& at);
  std::optional<Value> tensor_property(const Syntax& at);
  std::optional<Value> dtype_test(const Syntax& at);
  Buffer buffer(const Syntax& at);

  Form broadcast_form, cast_form, ceildiv_form, iter_var_form, let_form, limit_form, load_form, logical_form,
      masked_load_form, producer_form, ramp_form, reducer_form, reduction_form, select_form, shuffle_form, string_form,
      target_form, te_variable_form;
  int64_t lanes(const Syntax& at);

  // ---- parse_type.cc
  using TypeReader = Type(const Syntax& at);
  TypeReader type, scalar_type_of, dtensor_type, callable_type;
  Type scalar_type(const Syntax& at, const char* wanted = "a scalar type");
  std::optional<Type> try_type(const Syntax& at);
  std::optional<Type> type_of_named(const Syntax& at);
  // These read a type with or without arguments; `call` is null when there are none.
  using AppliedType = Type(const Syntax* call, const Syntax& at);
  AppliedType tuple_type_of, shape_type_of, tensor_type_of;
  Type container_type(std::string_view path, const Syntax& at);
  std::vector<Expr> dims(const Syntax& at, DType otherwise);
  Expr graph_dim(const Expr& dim, const Syntax& at);
  std::vector<Expr> graph_dims(const Syntax& at);
  Expr dim(const Syntax& at, DType otherwise);
  // Reads an expression in a string; undefined names become dims of the function.
  Expr quoted_dim(const Syntax& at, DType otherwise);
  VarRef define_dim(std::string_view name, DType dtype, const Place& at);
  BufferType buffer_type_of(const Syntax& call, size_t first);

  // ---- parse_prim_func.cc
  struct BlockState;
  struct LoopHead {
    VarRef var;
    Range range;
    const Syntax* target;
  };
  PrimFuncRef prim_func(const Pending& pending);
  void program_params(const Line& line);
  Stmt below_root(std::vector<Stmt> body, Block root, const Line& line);
  Stmt body(const Lines& lines);
  Stmt loop_body(const Lines& lines);
  std::vector<Stmt> stmts(const Lines& lines, size_t first = 0);
  void append(std::vector<Stmt> stmts);
  void tir_line(const Lines& lines, size_t& index);
  void body_starts();
  LineReader augmented_line, tir_assert, tir_assign, tir_call_line, tir_condition, tir_for, tir_jump, tir_with,
      unpack_scalars;
  void evaluate_line(const std::optional<Expr>& value, const Line& line);
  bool head_form(const std::string& path, const Syntax& call, const Line& line);
  void vector_store(const Syntax& call);
  void pointer_store(const Syntax& call);
  void reduction_step(const Syntax& reducer, const Syntax& call);
  Stmt block(const Line& line, const Syntax& call, const Syntax* target);
  void early_axes(const Syntax& domains, const Syntax& targets);
  void bind_axis(const Syntax& call);
  // Gives a value to each axis of a block of 2020 that binds none, and returns the loops that this needs.
  std::vector<LoopHead> complete_axes(BlockState& state, const Syntax& at);
  std::vector<BufferRegion> regions(const Syntax& call);
  BufferRegion region(const Syntax& at);

  // ---- parse_assign.cc
  std::optional<Type> free_var_type(const Syntax& at, bool annotated);
  LineTest define_free_vars, define_axis, names_module;
  void add_axis(const Syntax& target, Range domain, std::optional<DType> dtype, IterKind kind, Expr value,
                const std::string& suffix = {});
  void remap_axes(const std::vector<const Syntax*>& targets, const Syntax& call, std::optional<DType> dtype);
  Range axis_domain(const Syntax& at, DType wanted);
  bool define_buffer(const Syntax& target, const Syntax& call);
  void match_param(const Syntax& target, const Syntax& call);
  void window(const Syntax& target, const Syntax& call, const Syntax& source);
  void store(const Syntax& target, const Syntax& value_at, std::optional<Value> value, const Syntax* mask = nullptr);
  // Binds the name to the value for the rest of the block, or assigns to it where the dialect has assignment.
  void assign_scalar(const Syntax& target, const Value& value, const Type& type, const Place& at);

  // ---- parse_scalars.cc
  void bind_scalar(const Syntax& target, const Value& value, const Type& type, const Place& at);
  void read_scalar(const Syntax& at, const Expr& var);
  void declare_cell(const Syntax& target, DType dtype);
  void find_cells(const Lines& lines, std::set<std::string_view> visible);

  // ---- parse_scoped.cc
  // The loops of a `for`: all loops of a grid, else one.
  struct LoopHeads {
    std::vector<LoopHead> heads;
    ForKind kind = ForKind::kSerial;
    std::string thread;
    Attrs annotations;
    std::optional<Expr> step;

    void add(const Syntax& target, std::string name, Range range, const Span& at) {
      VarRef var = make_var(std::move(name), prim_type(dtype_of(range.extent)), at);
      heads.push_back({var, std::move(range), &target});
    }
  };
  LoopHeads loop_heads(const Line& line);
  LoopHeads grid_heads(const Line& line);
  bool takes_several(const Syntax& target, const Line& line) const;
  LoopHeads range_head(const Line& line, ForKind kind);
  Range loop_range(const Syntax* start, const Syntax& stop, const Syntax& at);
  std::optional<Expr> loop_step(const Syntax& at, DType dtype);
  // Reads a form that holds for the statements that `rest` reads: those below `with`, or the rest of the block.
  using Rest = std::function<std::vector<Stmt>()>;
  enum class Style : uint8_t { kWith, kConcise };
  bool scoped_form(const Syntax& call, const Syntax* target, const Line& line, Style style, const Rest& rest);
  void with_items(const Line& line, size_t first);
  void branch_frame(const Line& line, const Syntax& call);
  Stmt attr_stmt(const Syntax& call, const Line& line, const Rest& rest);
  Stmt launch_thread(const Syntax& call, const Syntax* target, const Rest& rest);
  Stmt thread_loop(std::string name, std::string thread, Expr extent, const Syntax& at, const Rest& rest);
  void realize(const Syntax& call);
  void let_statement(const Syntax& call, const Syntax* target, const Syntax& value_at, const Line& line);
  void allocate(const Syntax& call, const Syntax& target);
  Tensor allocated_contents(const Syntax& call, const BufferType& type);
  Stmt assertion(const Syntax& condition, const Syntax* message, const Line& line);

  // ---- parse_function.cc and parse_call.cc
  Signature read_signature(const Line& line);
  // Defines the param of this number and returns it; nullopt where it is left to a later reader.
  using ParamReader = std::function<std::optional<VarRef>(size_t i)>;
  std::vector<std::optional<VarRef>> read_params(const Line& line, const char* form, const ParamReader& first,
                                                 const ParamReader& second);
  FunctionRef graph_function(const Pending& pending, Signature signature, bool nested);
  struct Body {
    std::vector<BindingBlock> blocks;
    bool in_dataflow = false;
    bool outputs_given = false;  // R.output of the current dataflow block was read
    bool outputs_sound = true;
    std::optional<Expr> result;
    std::optional<Expr> block_result;  // what a return inside of the last dataflow block gave
    Attrs attrs;
    bool impure = false;
  };
  void relax_lines(const Lines& lines);
  LineReader relax_line, relax_assign, relax_call_line, relax_if, relax_return, dataflow, dataflow_return,
      nested_function, output, unpack;
  void nested_program(const Pending& pending);
  void refine_measured(const Syntax& measured, const Type& cast, const Syntax& at);
  bool names_new_dim(const Syntax& annotation) const;
  std::optional<Binding> match_binding(const Syntax& at, const std::string& name, std::optional<Type> annotated);
  void bind_to(const Syntax& target, Expr value, Type type);
  Expr relax_branch(const Lines& lines, const Line& line, std::string& target, std::optional<Type>& annotation);
  void bind(Binding binding);
  Expr leaf(Value value, const Syntax& at);
  // Reads a value, which gets this type when none can be inferred.
  Value eval_as(std::optional<Type> wanted, const Syntax& at);
  Value relax_call(const std::string& name, const Syntax& at);
  Form applied_form, call_tir_form, device_form, distributed_form, node_form, packed_form, tuple_form, value_form;
  std::vector<const Syntax*> operator_arguments(const OpRow& row, const Syntax& at, bool& sound);
  Value operator_call(const OpRow& row, const Syntax& at);
  void complete_reshape(Call& call, const Syntax& at);
  Value tensor_operator(std::string_view op, Value a, Value b, const Syntax& at);
  // Makes a number beside a tensor a constant of the tensor's dtype.
  void lift_number(Value& value, const Value& tensor, std::string_view op, const Syntax& at);
  AttrValue attribute(const OpAttr& attr, const Syntax& at);
  Expr operator_input(const OpInput* input, const Syntax& at);
  Value function_call(Expr callee, const Syntax& at);
  void set_type_args(const Syntax* types, Call& call);
  Type with_dim_facts(Type type) const;
  Value typed_call(Call call, const Syntax& at);
  Value typed_call(OpName op, std::vector<Expr> args, const Syntax& at, Attrs attrs = {});
  Expr called_program(const Syntax& at, bool packed, bool early);
  void call_tir_attributes(const std::string& path, const Syntax& at, Call& call);
  std::vector<Type> early_outputs(const Syntax& shapes, const Syntax* dtypes, std::optional<DType> otherwise);
  Value shape_first(const std::string& path, const Syntax& at);
  // ---- parse_constant.cc
  Tensor hex_tensor(const Syntax& at, const std::vector<int64_t>& shape, DType dtype);
  std::vector<AttrValue> elements_of(const Syntax& at, std::vector<int64_t>& shape);
  Tensor tensor_of(const std::vector<AttrValue>& elements, const std::vector<int64_t>& shape, DType dtype,
                   const Syntax& at);

  std::shared_ptr<const Origin> origin_;
  const OpTable& ops_;
  Diagnostics& diagnostics_;
  std::deque<SyntaxTree> trees_;  // the ones that are needed to the end, and the current one
  SyntaxTree* tree_ = nullptr;
  mutable const Syntax* dotted_at_ = nullptr;  // the last argument of dotted(), and its result
  mutable std::string dotted_path_;
  IRModule module_;
  std::vector<Pending> pending_;
  size_t failures_ = 0;
  mutable size_t counted_ = 0, reported_ = 0;          // of the diagnostics: those looked at, and the errors among them
  bool lines_sound_ = true;                            // those of the definition being read
  std::map<std::string, Diagnostic> wrong_results_;    // functions that do not return what they declare
  std::set<std::string> failed_;                       // functions with errors
  std::set<std::string, std::less<>> unknown_;         // the failed functions whose types are not known
  std::set<std::string> broken_infos_;                 // keys of global infos with errors; "": all of them
  std::map<std::string, Type, std::less<>> declared_;  // functions of the module and their types
  std::map<std::string, DType> program_results_;       // by the name of a tensor program that returns a value
  std::set<std::string> members_;                      // the functions of the class
  std::string class_name_ = "Module";
  bool in_class_ = false;
  bool decorated_class_ = false;        // its functions have decorators, too
  std::string wanted_module_;           // the class to read; "": the only one
  std::set<std::string> intrin_parts_;  // programs that TensorIntrin.register names
  std::vector<std::string> others_;     // the definitions that were left out for it
  std::map<std::string, DType, std::less<>> type_variables_;
  // Of the Python around the module: names that it computes and the lines, and statements left out.
  // By name, the array that it means now: the name under which definitions have it.
  std::map<std::string, std::string, std::less<>> array_names_;
  struct PythonArray {
    const Syntax* value;
    int64_t line;
  };
  std::map<std::string, PythonArray, std::less<>> arrays_;
  std::map<std::string, uint32_t, std::less<>> computed_;
  std::set<uint32_t> unread_lines_;                        // of statements that could not be read
  std::map<uint32_t, std::string_view> python_functions_;  // those that nothing calls, by line
  std::optional<Place> python_from_;
  std::shared_ptr<SyntaxTree> python_tree_;          // the functions of Python that are written out
  std::set<std::string, std::less<>> schedules_;     // names of tvm.tir.Schedule objects
  std::set<std::string, std::less<>> step_results_;  // names of what steps on them gave
  std::vector<NamedFunction> renamed_;               // as Python around the functions names them
  std::map<std::string_view, std::string_view> function_aliases_;
  std::vector<int64_t> python_lines_;
  std::vector<Diagnostic> python_errors_;  // of syntax in what is Python, still untold
  std::set<std::string> made_texts_;       // of syntax that the text does not have
  std::unique_ptr<TeReader> te_;
  std::unique_ptr<BuilderReader> builder_;
  std::set<std::string> built_;  // functions that Python builds
  bool before_purity_ = false;   // the text is of 2022: its functions may have effects without saying so
  std::string metadata_text_;
  const Syntax* metadata_ = nullptr;
  std::optional<std::map<std::string, Tensor>> side_tensors_;
  std::map<std::string, std::string, std::less<>> prefixes_;
  Scopes scopes_;
  std::map<std::string, std::string> hidden_;  // names that went out of scope, and why

  // ---- State of the function being read
  bool in_graph_ = false;
  DType default_int_ = kInt64;
  bool bare_forms_ = false;    // forms stand without prefix: grid(16, 16) in place of T.grid(16, 16)
  bool in_te_ = false;         // in te.compute, where a tensor may be called: A(i, j)
  bool flat_indices_ = false;  // one index of a buffer of several dims is that of its elements in row-major order
  bool early_ = false;         // types without prefix: dims need no quotes, and functions no `cls.`
  bool quoted_ = false;        // inside of a quoted dim: unknown names become dims
  // Tensor programs.
  std::vector<std::optional<VarRef>> params_;
  std::map<std::string, size_t, std::less<>> handles_;  // param name to position
  Attrs func_attrs_;
  std::map<std::string, const Syntax*, std::less<>> reducers_;  // by name, T.comm_reducer(...)
  std::deque<Expr> slices_;                                     // of tuples of te's indices: i[:-1]
  bool mutable_scalars_ = false;                                // the dialect in which `x = e` assigns
  std::set<std::string, std::less<>> cells_;                    // names that are assigned more than once in it
  // A name that is bound to a value. Its reads and bindings, and the loops around, have numbers in the text's order.
  struct BoundScalar {
    uint32_t line;
    size_t bound_at, last_read = 0;
    std::optional<uint32_t> hidden_in = {};  // the line in an inner block that binds the name, too
  };
  std::unordered_map<const NodeHeader*, BoundScalar> bound_scalars_;
  std::vector<size_t> loop_starts_;
  size_t scalar_time_ = 0;
  std::vector<BlockState*> blocks_;
  std::vector<Stmt>* out_ = nullptr;  // the statements that are being read are appended here
  std::vector<Stmt> root_allocations_;
  bool has_blocks_ = false;  // of the program that is being read
  void add_undefined(const Expr& var) { undefined_.emplace(var.get(), var); }
  std::unordered_map<const NodeHeader*, Expr> undefined_;  // variables that no parameter or window defines yet
  std::unordered_map<const NodeHeader*, Range> loops_;
  int statement_depth_ = 0;
  // Graph functions.
  Body* body_ = nullptr;
  std::optional<Type> wanted_;  // the annotation of the binding being read
};

// The block whose body is being read.
struct Parser::BlockState {
  explicit BlockState(std::string name) : block{.name = std::move(name), .body = no_op()} {}
  Block block;
  std::set<std::string> given;             // the forms at its head that occurred: "T.reads"
  bool at_head = true;                     // nothing but axes, annotations and allocations so far
  bool early = false;                      // its axes stand in T.block([16, T.reduce_axis(0, 16)])
  std::set<const NodeHeader*> bound = {};  // the axes of these that T.bind gave a value
  std::vector<VarRef> loops = {};          // those that are being read, outermost first
};

}  // namespace relaxc::text
