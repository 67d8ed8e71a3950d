// The reader of te definitions outside of a module, and of the programs made of them. Internal to ir/text/.
#pragma once
#include "ir/text/parsing.h"

namespace relaxc::text {

struct Parser::TeReader {
  explicit TeReader(Parser& parser) : in(parser) {}
  // Return whether the statement was read. `defines`: the caller keeps its syntax.
  bool defines(const Line& line);
  bool creates(const Line& line);
  // Reads C = T.compute((n, m), lambda i, j: ...) and k = T.reduce_axis((0, n)) in a tensor program.
  bool in_program(const Line& line);
  // Keeps a function of Python that computes with te; the caller keeps its syntax.
  bool function(const Line& line);
  Value emit(const Syntax& at);
  // Returns the expression of te's variables that the name stands for, as in top = tir.floordiv(h, 2); null for others.
  const Syntax* scalar_named(std::string_view name) const;
  // Adds the program to the module, unless it has an equal one, and returns its name.
  std::string add_program(const std::string& wanted, const PrimFuncRef& program);
  // Adds the programs to the module.
  void finish();

 private:
  struct Definition {
    const Line* line;
    std::vector<size_t> needs;  // earlier definitions whose names it uses
  };
  struct Created {
    PrimFuncRef program;
    std::string symbol;
    Place at;
    std::string key;     // which definitions it is made of
    bool again = false;  // tvm.lower(s, [A]) before tvm.build(s, [A])
  };
  void add_beside(const Created& created);
  struct Axis {
    VarRef var;
    Range domain;
  };
  // A stage of the program: its buffers, and the loops that compute them; absent for placeholders.
  struct Stage {
    std::vector<Buffer> buffers = {};
    std::optional<Stmt> stmt = {};
    bool reads_itself = false;  // te.scan, te.extern: what it reads of its own buffers it has written
  };
  struct Loop {
    VarRef var;
    IterVar axis;
  };
  using Combine = std::function<std::vector<Expr>(const std::vector<Expr>& before, const std::vector<Expr>& value)>;
  // The values of a stage at one point; of a reduction, what they are combined with.
  struct Pieces {
    std::vector<Expr> values, identity;
    Combine combine;
  };

  const Syntax* creation(const Syntax* at);
  const Syntax* global_symbol(const Syntax& at) const;
  bool names_programs(const Syntax* at);
  void rename(size_t program, std::string name);
  size_t create(const Syntax& call);
  size_t create(const std::vector<const Syntax*>& names, const Syntax& call, bool builds);
  void add_tensor_names(const Syntax& list, std::vector<const Syntax*>& names);
  std::set<size_t> needs_of(const std::vector<const Syntax*>& names, const Syntax& call);
  void create_default();
  std::vector<Expr> scan(const Syntax& call);
  void check_scan(const std::vector<VarRef>& inits, const std::vector<VarRef>& updates,
                  const std::vector<VarRef>& states, const Syntax& call);
  std::vector<Expr> external(const Syntax& call);
  Stmt extern_call(const Syntax& function, const std::vector<const Syntax*>& inputs,
                   const std::vector<Buffer>& outputs);
  Stmt extern_statements(const Line& function, Block& block, const Syntax& call);
  PrimFuncRef program(const std::vector<VarRef>& params, const Syntax& call);
  void begin_program();
  void evaluate(const Line& line);
  static bool calls_topi(const Syntax& at);
  static std::string name_in_topi(std::string_view path);
  bool is_scalar(const Syntax& at) const;
  bool lists_tensors(const Syntax& at) const;
  std::vector<Expr> values_of(const Syntax& given, std::string_view target);
  bool makes_stage(const Syntax& at) const;
  bool has_stages(const Syntax& at) const;
  bool is_stage(const Syntax& at);
  bool is_stage_of_all(const Syntax& at, const std::set<std::string_view>& params) const;
  const Syntax& with_stages_first(const Syntax& at);
  const Syntax& element_with_stages_first(const Syntax& at, const std::set<std::string_view>& params);
  const Syntax& stage_name(const Syntax& at);
  const Syntax& with_parts(const Syntax& at, const std::function<const Syntax*(const Syntax*)>& part);
  const Syntax& chosen(const Syntax& at);
  Syntax& made_name(const Place& at, std::string_view name);
  Buffer placeholder(std::string name, DType dtype, std::vector<Expr> shape, const Span& at);
  const Line* const* called_function(const Syntax& at) const;
  std::vector<Expr> run(const Line& function, const Syntax& call);
  std::vector<Expr> run(const Line& function, const std::vector<Expr>& args, const Syntax& at);
  VarRef placeholder_like(const Expr& arg, const Param& param, std::vector<std::pair<Expr, VarRef>>& dims);
  // A program that a function of te makes for a call: its params, the tensors and scalars that it is called with, with
  // the params of the latter, and the names of symbolic dims of the tensors in it.
  struct Emission {
    std::vector<std::pair<Expr, VarRef>> dims, scalars;
    std::vector<VarRef> params;
    std::vector<Expr> tensors, outputs;
  };
  std::vector<Expr> arguments_of(const Syntax& at, const Line& function, const std::string& name);
  std::vector<Expr> inner_arguments(const std::vector<Expr>& args, const Line& function, Emission& made);
  std::vector<std::pair<Expr, VarRef>> define_dims(const Emission& made);
  PrimFuncRef emitted(const std::vector<Expr>& args, const Line& function, const Syntax& at, Emission& made);
  Value emit(const Syntax& at, const Line& function, const std::string& function_name);
  Value emit_lambda(const Syntax& at);
  bool is_scheduled() const;
  const Syntax* with_params(const Syntax* at, Line& function, Syntax& call);
  Value emit_topi(const Syntax& topi_call, const Syntax& at, const std::string& name);
  std::optional<Value> topi(const std::string& name, const Syntax& at, bool of_te);
  std::optional<Value> renamed_topi(const std::string& name, const Syntax& at);
  std::optional<Value> composed_topi(const std::string& name, const Syntax& at, bool of_te);
  const Syntax* with_graph_names(const Syntax& at, VarMap& of_tensors);
  Value full(const OpRow& row, const Syntax& at);
  Buffer dims_stage(const std::string& name, const Syntax& at);
  std::optional<Buffer> product_stage(const std::string& name, const Syntax& at);
  std::vector<Expr> topi_stages(const Syntax& at);
  void add_graph_value(const VarRef& var, const Expr& value, VarMap& of_tensors, const Syntax& at);
  std::vector<Expr> graph_stages(const Expr& value, VarMap& of_tensors, const Syntax& at);
  Buffer reshaped(const Buffer& source, const std::vector<Expr>& shape, const Span& place);
  std::vector<Expr> add_stages(const PrimFuncRef& program, const Call& call, const VarMap& of_tensors,
                               const Span& place);
  std::vector<Expr> inner_values(const Syntax& at);
  bool is_of_tensors(const Syntax& at);
  bool defines_tensors(const Syntax& at) const;
  Expr tensor_arithmetic(const Syntax& at);
  Buffer elementwise(const char* name, const std::vector<Expr>& shape,
                     const std::function<Expr(const std::vector<Expr>&)>& value_at, const Span& place,
                     const std::optional<Expr>& sum_over = {});
  std::string callee(const Syntax& at) const;
  static Loop loop(const std::string& name, const Range& domain, IterKind kind, const Span& at);
  const Stage& compute(const Syntax& call);
  Stage stage_of(const Syntax& function, const Lines& before, const std::string& name, const std::vector<Expr>& shape);
  const Syntax& as_lambda(const Line& function, Lines& before);
  Stmt stores(const std::vector<Buffer>& buffers, std::vector<Expr> values, const std::vector<Expr>& indices,
              const Span& place);
  const Syntax* indices_of(const Syntax& function, const std::vector<Expr>& shape, std::vector<Loop>& loops,
                           std::vector<Expr>& indices);
  Pieces pieces_of(const Syntax& at, std::vector<Loop>& loops);
  void own_reducer(const Syntax& reducer, const Syntax& at, Pieces& pieces);
  static Combine combine_where(const Expr& test, Combine combine);
  std::string unique(const std::string& name);

  Parser& in;
  std::vector<Definition> definitions_;
  std::map<std::string, size_t, std::less<>> latest_;    // by name, the definition that it means now
  std::map<std::string, size_t, std::less<>> programs_;  // by name, a program
  std::vector<Created> created_;
  std::map<std::string, const Line*, std::less<>> functions_;  // those of Python that compute with te
  std::vector<std::pair<std::string, PrimFuncRef>> emitted_;   // the programs of R.emit_te
  int depth_ = 0;
  size_t made_names_ = 0;
  // Of the program that is being made.
  std::vector<Stage> stages_;
  std::vector<Expr> kept_;  // keeps keys of maps alive
  std::unordered_map<const NodeHeader*, Axis> axes_;
  std::map<std::string, const Syntax*, std::less<>> reducers_;
  std::vector<std::string> block_names_;
};

}  // namespace relaxc::text
