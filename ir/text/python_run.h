// Runs the Python around the definitions of a text, as far as it can be known without Python, and returns the
// statements that are left, in which every name of Python has its value:
//
//   def make(n):                                    # run where it is called
//       @T.prim_func                                # @T.prim_func
//       def p(A: T.Buffer((n,), "float32"), ...)    # def p(A: T.Buffer((8,), "float32"), ...)
//   rows = 4
//   make(rows * 2)
//   sch = tvm.tir.Schedule(Module)                  # as it stands
//
// Statements are run in order, in scopes as Python has them. Names mean values: numbers, texts, lists, functions with
// the scope of their definition, or syntax, for what the reader makes later (a program, a tensor of te, a schedule). A
// statement whose effect is not known is left as it is, and what it may change is "computed by Python" from then on:
// a definition that names it gets an error, never an old value.
#pragma once
#include <memory>

#include "ir/text/model_types.h"
#include "ir/text/python_lines.h"
#include "ir/text/python_value.h"

namespace relaxc::text {

// A scope of Python: the module, the call of a function, a comprehension. That of a definition or a lambda which is
// written out (`writes`) has no values: its names stand for themselves.
struct PythonScope {
  PythonScope* parent = nullptr;
  bool writes = false;
  bool of_comprehension = false;
  std::set<std::string_view> own = {};          // the names that are bound in it
  std::map<std::string_view, bool> outer = {};  // declared: global (true) or nonlocal
  std::map<std::string_view, PythonValue> values = {};
};

struct PythonFunction {
  const Line* line = nullptr;  // of a lambda: null
  const Syntax* lambda = nullptr;
  PythonScope* scope = nullptr;
  std::vector<PythonResult> defaults = {};  // by param
  std::vector<Diagnostic> errors = {};      // of its syntax
  bool used = false, active = false;
  bool is_macro = false;       // @T.macro: its statements are those of a program
  bool captures = false;       // of a macro: its names mean what they mean where it is called
  std::string_view name = {};  // under which te knows it, with the values in `captured`
  std::string captured = {};
  PythonClass* owner = nullptr;  // of a method
  bool of_library = false;       // of python_nn.cc
};

class Python {
 public:
  Python(const Source& source, Diagnostics& diagnostics,
         std::unique_ptr<ModelTypes> types = std::make_unique<ModelTypes>());
  // As SyntaxReader::next. `withheld`: the statement that was read comes later, or not at all.
  bool next(SyntaxTree& tree, Lines& out);
  bool in_class() const { return !ended_ && reader_.in_class(); }
  bool withheld() const { return withheld_; }
  // Returns functions of Python that the last statements name, such as those of R.emit_te.
  Lines take_functions() { return std::exchange(functions_out_, {}); }
  // Returns the functions that nothing calls, by their lines: their params have no values.
  const std::map<uint32_t, std::string_view>& uncalled() const { return uncalled_; }
  // Returns the errors of models that could not be exported.
  std::vector<Diagnostic> take_errors() { return std::exchange(model_errors_, {}); }
  // Returns the first macro of the text.
  const std::optional<Place>& macro() const { return macro_; }
  // Returns the first statement that is left out since Python runs too long; what follows may be incomplete.
  const std::optional<Place>& exceeded() const { return exceeded_; }
  // Owns what the statements are made of.
  const std::shared_ptr<SyntaxTree>& kept() const { return kept_; }

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue, kReturn };
  struct Args {
    std::vector<PythonValue> positional = {};
    std::vector<Place> places = {};
    std::vector<std::pair<std::string_view, PythonValue>> named = {};
    std::map<std::string_view, PythonValue> by_name = {};  // params that the reader gives their values
    bool complete = true;                                  // nothing is spread that is not known
  };
  // What a name means: a value, the name itself where it is written out, a local name that has no value yet, or none.
  struct Found {
    const PythonValue* value = nullptr;
    bool own = false, unbound = false, of_module = false;
  };
  using Kind = PythonValue::Kind;

  // ---- python_run.cc: statements
  void statement(const Line& line);
  void member(const Line& line);
  void add_volatile(const Line& line);
  void report_limit(const Place& at);
  Flow run(const Lines& lines);
  Flow run(const Line& line);
  Flow run_known(const Line& line);
  Flow expression(const Line& line);
  Flow augmented(const Line& line);
  Flow loop(const Line& line);
  Flow branch(const Line& line);
  Flow with(const Line& line);
  Flow attempt(const Line& line);
  Flow attempt_steps(const Line& line);
  bool names_schedule(const PythonEffects& effects);
  static bool holds_clause(const Line& line, std::string_view text);
  static const Line* clause_for(const Line& line, std::string_view type);
  Flow left_as_it_is(const Line& line);
  void forget_arguments(const Line& line);
  void write(const Line& line);
  const Line& assignment(const Place& at, std::string_view name, const PythonValue& value);

  // ---- python_define.cc: definitions, imports, and functions that nothing calls
  void forget_decorated(const Line& line);
  void define(const Line& line);
  void write_definition(const Line& line);
  void define_class(const Line& line);
  void imports(const Line& line);
  void run_only();
  void run_unused();
  void run_unused(PythonFunction& function);
  void run_broken(const Line& line);

  // ---- python_class.cc: classes and objects
  bool follows_class(const Line& line);
  bool makes_objects(const Line& line) const;
  bool opens_class(const Line& line);
  void close_class();
  void bind_class(const Line& line);
  PythonValue member(const Syntax& at, const PythonValue& owner);
  PythonValue invoke(const PythonValue& function, Args args);
  PythonValue instantiate(PythonClass& type, const Args& args);
  PythonResult named_tuple(const Args& args);
  PythonResult data_fields(std::string_view name, const Args& args);
  void set_fields(PythonClass& type, PythonObject& object, const Args& args);
  PythonValue default_of(const PythonValue& value);
  PythonValue base_object();
  void set_member(const PythonValue& owner, std::string_view name, const PythonValue& value);
  PythonResult reflection(std::string_view name, const Args& args, const Place& at);
  bool sets_attribute(const Syntax& at);

  // ---- python_nn.cc: what relax.frontend.nn makes
  struct Exported {  // a function that is being made
    Line* function = nullptr;
    Lines dims = {}, body = {};
    Lines* outside = nullptr;
  };
  PythonScope& library();
  PythonResult library_value(std::string_view path);
  void require_in_library(const PythonValue& function, const Place& at);
  void require_decided(const PythonValue& condition, const Place& at);
  PythonResult tensor_method(const PythonValue& object, std::string_view name);
  PythonResult intrinsic(std::string_view name, const Args& args, const Place& at);
  PythonValue begin_function(std::string_view name, const Place& at);
  PythonValue function_param(std::string_view name, const PythonValue& type, const Place& at);
  PythonValue end_function(const PythonValue& result, const PythonValue& inputs, const Place& at);
  const Syntax& relax_form(std::string_view name, const Place& at);
  const Syntax& relax_call(std::string_view name, const std::vector<const Syntax*>& args, const Place& at);
  bool is_exporting() const { return !exported_.empty(); }
  bool in_model() const { return is_exporting() && te_functions_ == 0 && binders_.empty(); }
  std::optional<Type> type_of(const Syntax& at);
  PythonResult dtype_of(const Syntax& at);
  PythonResult model_dims(const PythonValue& shape);
  std::optional<bool> equal_dims(const PythonValue& a, const PythonValue& b);
  void note_tensor(std::string_view name, const Syntax& value);
  PythonValue dim_of(const PythonValue& shape, const PythonValue& index, const Place& at);
  PythonValue shaped(const PythonValue& tensor, const Place& at);
  bool report_stuck(const Place& at);
  bool expand_shape(const Syntax& target, const PythonValue& value, const Place& at);

  // ---- python_assign.cc: assignments
  Flow assign(const Line& line);
  void assign_to(const Syntax& target, const PythonValue& value, const Place& at, const Syntax* annotation = nullptr);
  void write_assignment(const Syntax& target, const PythonValue& value, const Place& at, const Syntax* annotation);
  PythonValue named(const PythonValue& value, std::string_view hint, const Place& at);
  void note_library(const PythonValue& value, std::string_view name);
  bool is_tensor_library(std::string_view root) const;
  bool is_te_tensor(const Syntax& at) const;
  bool is_axis_around(const Syntax& at) const;
  bool is_array(const Syntax& at) const;
  PythonResult array_property(const Syntax& array, std::string_view name);
  bool is_plain(const PythonValue& value) const;

  // ---- python_scope.cc: names, functions, effects
  PythonScope& module_scope() { return scopes_.front(); }
  Found find(std::string_view name);
  PythonScope& scope_of(std::string_view name);
  const Syntax* path_of_tvm(std::string_view path, const Place& at);
  PythonValue value_of(const Syntax& at);
  PythonValue of_library(PythonValue named, const Place& at);
  PythonValue name_value(std::string_view name, const Place& at);
  bool is_captured(const PythonValue& value) const;
  void bind(std::string_view name, PythonValue value);
  void add_aliases(const PythonValue& value);
  std::string_view fresh(std::string_view name);
  std::string_view written_name(std::string_view name);
  PythonValue function_value(const Line* line, const Syntax* lambda);
  static std::vector<Param> params_of(const PythonFunction& function);
  void bind_params(const PythonFunction& function, const Args& args, PythonScope& scope);
  PythonValue call(PythonFunction& function, const Args& args);
  void forget(std::string_view name, const Place& at);
  void forget_value(const PythonValue& value, const Place& at);
  void forget_effects(const PythonEffects& effects, PythonScope* scope, const Place& at, int depth = 0);
  void forget_effects(PythonFunction& function, const Place& at, int depth);
  void forget_defaults(const PythonFunction& function, const Place& at);
  void forget_everything(const Place& at);
  void forget_call(const PythonValue& function, const Args& args, const Place& at);

  // ---- python_eval.cc: expressions
  PythonValue eval(const Syntax& at);
  PythonValue slice(const Syntax& at);
  PythonValue named_expression(const Syntax& at);
  PythonValue literal(const Syntax& at);
  PythonValue format_text(const Syntax& at, std::string_view text);
  PythonValue conditional(const Syntax& at);
  std::optional<bool> compared(std::string_view op, const PythonValue& a, const PythonValue& b);
  PythonValue bool_value(const Syntax& at);
  PythonValue collection(const Syntax& at);
  PythonValue dictionary(const Syntax& at);
  PythonValue comprehension(const Syntax& at);
  void clauses(const Syntax& at, size_t clause, std::vector<PythonValue>& out);
  enum class Use : uint8_t { kValue, kCalled };
  PythonValue attribute(const Syntax& at, const PythonValue& object, Use use = Use::kValue);
  PythonValue subscript(const Syntax& at);
  Args arguments(const Syntax& at);
  PythonValue called(const Syntax& at);
  PythonResult global_var(const PythonValue& module, std::string_view method, const Args& args, const Place& at);
  void run_for_reader(std::string_view form, Args& args, const Place& at);
  void as_workload(PythonValue& function, Args& args);
  PythonResult is_instance(const PythonValue& value, const PythonValue& type);
  PythonResult builtin(const PythonValue& function, const Args& args, const Place& at);
  PythonResult applied(const PythonValue& function, const Args& args);

  // ---- python_tensors.cc: the ranks and dtypes of tensors
  PythonValue expanded(const PythonValue& value);
  std::optional<std::vector<PythonValue>> items_of(const PythonValue& value);
  std::optional<int64_t> rank_of_stage(const Args& args);
  std::optional<int64_t> rank_made_by(const Syntax& value);
  PythonResult dtype_made_by(const Syntax& value);
  PythonResult known_dim(const PythonValue& shape, int64_t i) const;
  void note_dims(std::string_view name, const Syntax& value);
  PythonResult rank_of(const Syntax& at);
  PythonResult rank_of_operator(std::string_view name, std::span<const Syntax* const> args, const Syntax& at);
  PythonResult widest_rank(std::span<const Syntax* const> parts);
  void note_rank(std::string_view name, const Syntax& value);

  // ---- python_library.cc: functions that call others, scripts without arguments, tests
  PythonResult call_value(const PythonValue& function, const Args& args);
  PythonResult higher_order(std::string_view name, const Args& args);
  PythonResult library_constant(std::string_view path);
  PythonResult of_environment(std::string_view name, const Args& args);
  void give_test_values(PythonFunction& function);
  static bool is_callable_alone(const PythonFunction& function);

  // ---- python_write.cc: values as syntax, and syntax with the values of its names
  const Syntax* lift(const PythonValue& value, const Place& at, bool as_lambda = false);
  const Syntax* lift_function(PythonFunction& function, const Place& at, bool as_lambda);
  const Syntax* lambda_of(PythonFunction& function, const Place& at);
  void keep_function(const Line& line);
  std::string_view function_for_te(PythonFunction& function);
  void run_for_te(Args& args, const Place& at);
  bool calls_function(const PythonFunction& function);
  const Line& return_line(const Syntax* value, const Place& at);
  void note_param(std::string_view name, const Syntax& value);
  bool mentions_values(const Syntax* at);
  const Syntax* written(const Syntax* at);
  const Line& written(const Line& line);

  // ---- python_statements.cc: tvm.tir.ir_builder
  const Syntax& program_call(std::string_view name, const std::vector<const Syntax*>& args, const Place& at);
  static PythonValue argument_of(const Args& args, size_t i, std::string_view name);
  PythonValue frame(LineKind kind, const Syntax* value, const Place& at);
  Flow with_frame(const PythonValue& value, const Syntax* target, const Line& with);
  PythonValue range_frame(const Args& args, const Place& at);
  PythonValue allocated(const Args& args, const Place& at);
  PythonValue build_statement(std::string_view method, const Args& args, const Place& at);
  PythonValue shapes_of(Args& args);
  void run_extern(Args& args, const Place& at);

  // ---- python_macro.cc: macros of programs, modules in strings
  PythonValue macro_value(const Line& line);
  PythonResult called_function(const Line& line);
  Lines emitted(PythonFunction& function, const Syntax& at);
  bool is_visible(std::string_view name);
  Lines expanded(const PythonValue& macro, const Syntax& call);
  Lines inlined(const PythonValue& function, const Line& line);
  Lines written(const Lines& lines);
  PythonResult from_source(const PythonValue& source);

  Source source_;
  SyntaxReader reader_;
  Diagnostics& diagnostics_;
  std::shared_ptr<SyntaxTree> kept_ = std::make_shared<SyntaxTree>();
  PythonHeap heap_{*kept_};
  std::deque<PythonScope> scopes_ = std::deque<PythonScope>(1);
  std::deque<PythonFunction> functions_;
  std::deque<PythonClass> classes_;
  Line* open_class_ = nullptr;      // whose statements are being read
  PythonScope* library_ = nullptr;  // that of python_nn.cc, once it is needed
  std::deque<Exported> exported_;
  std::unique_ptr<ModelTypes> types_;
  struct Tensor {
    PythonResult dtype, rank;
  };
  std::map<std::string_view, Tensor> tensors_;  // of functions of te in models, by their names
  std::vector<Diagnostic> model_errors_;
  std::string stuck_why_, stuck_note_;
  std::optional<Place> stuck_;  // the innermost statement of a model that is not known
  Place call_place_{};          // of the innermost call
  PythonScope* scope_ = &scopes_.front();
  std::map<std::string_view, std::string_view> libraries_;  // of imports: the path of a name
  std::set<std::string_view> taken_;                        // names that written statements bind
  std::set<std::string_view> definitions_;                  // of those the ones of definitions
  std::set<std::string_view> aliased_;                      // of those the ones that other names of Python mean, too
  std::set<std::string_view> libraries_made_;  // of those the ones that tvm made: it changes no list, and is not None
  std::set<std::string_view> schedules_;
  std::set<std::string_view> arrays_;          // names of arrays of numpy
  std::set<std::string_view> te_tensors_;      // names of tensors that te or topi made
  std::map<std::string_view, int64_t> ranks_;  // of tensors of te and of relax.Var, by their names
  std::map<std::string_view, std::vector<std::optional<int64_t>>> shapes_;
  std::map<std::string_view, std::string_view> dtypes_;  // of such tensors
  std::map<std::string_view, int64_t> numbers_;          // of fresh names
  std::map<std::string_view, uint32_t> volatile_;        // names that what is not modelled may change at any time
  std::vector<PythonScope*> binders_;                    // the definitions and lambdas that are being written
  std::vector<PythonFunction*> order_;                   // the functions of the module
  std::map<uint32_t, std::string_view> uncalled_;
  std::optional<Place> exceeded_, macro_;
  // The number of definitions so far, and that at which a name was written: a definition that is read later names it.
  size_t written_definitions_ = 0;
  std::map<std::string_view, size_t> written_at_;
  PythonValue assigned_;  // by the last assignment
  PythonFunction* running_ = nullptr;
  Lines* out_ = nullptr;
  Lines functions_out_;
  std::vector<Diagnostic> errors_;  // of the statement that was read
  PythonResult returned_;
  std::string* captured_ = nullptr;  // the values in what is being written
  int64_t versions_ = 0;
  bool has_module_ = false;              // the text has a program, or te's definitions
  bool worth_ = false;                   // some name means something else than itself
  bool writes_ = true;                   // statements can be written: not inside of an expression
  bool writes_around_ = false;           // they can be written before the statement around a lambda
  bool may_raise_ = false;               // something that is not modelled was run
  std::vector<Line*> frames_;            // heads of statements that Python builds, by their numbers
  int statements_ = 0;                   // functions that build statements of a program, and are being run
  std::optional<int64_t> element_rank_;  // how many indices lambda *i of a te.compute gets
  int calls_ = 0, depth_ = 0, loops_ = 0, te_functions_ = 0, macros_ = 0, lambdas_ = 0;
  bool withheld_ = false, ended_ = false;
};

// Returns whether the value is `ib.for_range(0, n)` or a similar frame around statements.
bool is_frame(const PythonValue& value);
// Returns whether a decorator leaves the function as it is, or only says when a test runs, and with which params.
bool is_test_decorator(const Syntax& decorator);
// Returns whether the statement defines a macro of programs.
bool is_macro(const Line& line);
// Returns whether the expression is tvm.tir.decl_buffer(shape, dtype, name), without strides or the like.
bool is_plain_buffer(const Syntax& at);
// Returns the node with other children; its places stay.
PythonValue node_like(const Syntax& at, const std::vector<const Syntax*>& children, PythonHeap& heap,
                      const std::vector<Syntax::Keyword>& keywords = {});
// Returns whether the expression makes something that must be made once: an axis, a tensor.
bool makes_tensor(const Syntax& at);

}  // namespace relaxc::text
