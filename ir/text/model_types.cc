// Infers the types of a model's tensors as the reader of the module does, by one whose errors and results are dropped.
#include "ir/text/model_types.h"

#include "ir/text/parse_te.h"

namespace relaxc::text {

struct Parser::ModelTypeReader : ModelTypes {
  explicit ModelTypeReader(const Parser& parser) : outer(parser) {}

  void begin() override {
    scope.reset();
    make_reader(reader);
    reader->prefixes_ = outer.prefixes_;
    reader->in_graph_ = true;
    reader->default_int_ = kInt64;
    for (const Line* each : functions) reader->te_->function(*each);
    body = {};
    body.in_dataflow = true;
    reader->body_ = &body;
    scope.emplace(reader->scopes_);
  }
  void param(std::string_view name, const Syntax& at) override {
    Temporarily quoted(reader->quoted_, true);
    define(name, [&] { return Expr(make_var(std::string(name), reader->type(at), reader->span(at))); });
  }
  void bind(std::string_view name, const Syntax& at) override {
    if (reader) define(name, [&] { return read(at); });
  }
  void function(const Line& line) override {
    functions.push_back(&line);
    if (reader) reader->te_->function(line);
  }
  void array(std::string_view name, const Syntax& value) override {
    Parser& in = numbers();
    in.arrays_.insert_or_assign(std::string(name), PythonArray{&value, 0});
  }
  std::optional<Tensor> array_value(const Syntax& at) override {
    std::optional<Tensor> result;
    numbers().guarded([&] { result = numbers().python_array(at); });
    return result;
  }
  std::optional<Expr> value(const Syntax& at) override {
    std::optional<Expr> result;
    if (reader) reader->guarded([&] { result = read(at); });
    return result;
  }

  Parser& numbers() {
    if (!of_arrays) make_reader(of_arrays);
    return *of_arrays;
  }
  void make_reader(std::optional<Parser>& made) {
    made.emplace(outer.origin_, outer.ops_, ignored);
    made->tree_ = &made->trees_.emplace_back();
    made->python_tree_ = outer.python_tree_;
  }
  // A call of a tensor program states its result; the program is read later.
  Expr read(const Syntax& at) {
    const bool calls_program = is_call(at) && at.children[0]->text.starts_with("call_tir") && at.children.size() > 1;
    if (calls_program) reader->declared_.emplace(std::string(at.children[1]->text), object_type());
    return reader->leaf(reader->eval(at), at);
  }
  // A name whose value cannot be read is a tensor of which nothing is known.
  void define(std::string_view name, const std::function<Expr()>& make_value) {
    std::optional<Expr> made;
    reader->guarded([&] { made = make_value(); });
    reader->define(name, made ? *made : make_var(std::string(name), make(TensorType{}), Span()));
  }

  const Parser& outer;
  Diagnostics ignored;
  std::optional<Parser> reader, of_arrays;
  Body body;
  std::optional<NameScope<Scopes>> scope;
  Lines functions;
};

std::unique_ptr<ModelTypes> Parser::model_types() const { return std::make_unique<ModelTypeReader>(*this); }

}  // namespace relaxc::text
