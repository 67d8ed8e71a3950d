// The reader of statements on relax.BlockBuilder. Internal to ir/text/.
#pragma once
#include "ir/text/parsing.h"

namespace relaxc::text {

inline constexpr const char *kRelaxPrefix = "$R", *kProgramPrefix = "$T";  // of syntax that the reader makes

struct Parser::BuilderReader {
  explicit BuilderReader(Parser& parser) : in(parser) {}
  // Returns whether the statement was read, whose syntax the caller keeps.
  bool defines(const Line& line);
  const Line* function(const Line& line);
  const Line* built_function(const Line& line);
  Lines frames(const Line& line);  // frame_builder.cc
  bool keeps_expression(const Line& line);
  // Returns the functions that stood inside of the last one.
  Lines take_nested() { return std::exchange(nested_, {}); }

 private:
  struct Var {
    std::string name;
    const Syntax* type;
  };
  std::string_view method(const Syntax* at) const;
  struct Kept {
    const Line* line;
    size_t order;
  };
  const Syntax* type_of_rank(const Syntax& stated);
  const Line& framed_function(const Line& frame);
  void emitted_binding(std::string_view form_name, const Syntax& call, Line& result, Lines& out);
  void note_outputs(Line& block);
  const Syntax* output_of(const Syntax& at);
  Lines framed(const Lines& lines, Line& function);
  const Line& normalized(const Line& line, Line& result);
  void bind_node(const Syntax& binding, Line& result);
  bool uses_graph(const Syntax& at) const;
  void add_blocks(const Syntax& blocks, Lines& out);
  void add_expressions(const Syntax& at, Lines& out);
  void add_needed(const Syntax& at, std::map<size_t, const Line*>& needed);
  const Syntax* early_type(const Syntax& shape, const Syntax& type);
  Syntax& made(SyntaxKind kind, const Place& at);
  Syntax& form(const char* name, const Place& at);
  Lines body(const Lines& lines);
  const Line& statement(const Line& line, std::vector<const Syntax*>& outputs);
  const Syntax* value_of(const Syntax* at);
  const Syntax* with_values(const Syntax* at);
  const Syntax* replaced(const Syntax* at);

  Parser& in;
  std::set<std::string, std::less<>> builders_;
  std::map<std::string, Var, std::less<>> vars_;                   // by their names in Python
  std::map<std::string, const Syntax*, std::less<>> named_types_;  // types under a name of Python
  std::map<std::string, const Syntax*, std::less<>> values_;       // shapes and external functions
  std::map<std::string, const Syntax*, std::less<>> functions_;    // what bb.add_func returns
  std::map<std::string, Kept, std::less<>> expressions_;           // v = relax.op.add(x, y) outside of functions
  std::map<std::string, std::vector<const Syntax*>, std::less<>> outputs_;  // of frames of R.dataflow, by their names
  std::map<std::string, std::string, std::less<>> arguments_;  // the names of T.arg("A", ...), by those in Python
  Lines nested_;
  const Line* making_ = nullptr;                         // the function being read
  std::map<std::string, std::string, std::less<>> own_;  // params of the function being read
};

}  // namespace relaxc::text
