// Reads the two forms of te that compute more than an expression: te.scan, and te.extern.
#include <algorithm>
#include <ranges>

#include "ir/arith.h"
#include "ir/text/parse_te.h"
#include "ir/text/python_lines.h"
#include "ir/visit.h"
#include "support/joined.h"

namespace relaxc::text {

namespace {

bool reads(const Stmt& stmt, const std::unordered_set<const NodeHeader*>& buffers) {
  bool found = false;
  walk(stmt, [&](const BufferLoad& load) { found = found || buffers.contains(load.buffer.get()); });
  return found;
}

// Returns the nest of a stage with the first axis of its blocks in order: a step reads what the steps before it wrote.
Stmt in_order(const Stmt& stmt) {
  if (const For* loop = stmt.as<For>()) {
    For result = *loop;
    result.body = in_order(loop->body);
    return make(std::move(result), stmt.span());
  }
  Block block = *stmt.as<Block>();
  block.iter_vars[0].kind = IterKind::kScan;
  return make(std::move(block), stmt.span());
}

}  // namespace

void Parser::TeReader::check_scan(const std::vector<VarRef>& inits, const std::vector<VarRef>& updates,
                                  const std::vector<VarRef>& states, const Syntax& call) {
  if (inits.size() != updates.size() || inits.size() != states.size())
    in.fail(call, "te.scan takes as many initial values as updates and states");
  auto same = [](const Expr& a, const Expr& b) { return structural_equal(a, b); };
  for (size_t i = 0; i < states.size(); ++i) {
    const std::vector<Expr>&of_init = buffer_type(inits[i]).shape, &of_update = buffer_type(updates[i]).shape;
    const std::vector<Expr>& of_state = buffer_type(states[i]).shape;
    bool fits = !of_state.empty() && of_init.size() == of_state.size() &&
                std::ranges::equal(of_update, of_state, same) &&
                std::ranges::equal(of_init | std::views::drop(1), of_state | std::views::drop(1), same);
    if (!fits)
      in.fail(call,
              "the state of te.scan has the shape of its update, and that of its initial value behind the first dim");
  }
}

// Returns the loop over the rows behind the first ones.
static Stmt rows_behind(For loop, const Expr& first, std::vector<Stmt> steps, const Span& span) {
  loop.min = cast_to(first, dtype_of(loop.extent));
  loop.extent = simplify(loop.extent - loop.min);
  loop.body = seq(std::move(steps), span);
  return make(std::move(loop), span);
}

// Reads tvm.te.scan(init, update, state): the rows of the state from the first one that init does not give are those of
// update, one after the other. The stages between the state and update are computed in the same loop.
std::vector<Expr> Parser::TeReader::scan(const Syntax& call) {
  auto tensors = [&](size_t i, const char* name) {
    return map_each(in.items(in.required(call, i, name)), [&](const Syntax* item) {
      Expr value = in.expr(*item);
      if (!value.is<Var>() || !value.type().is<BufferType>()) in.fail(*item, "expected a tensor");
      return cast<Var>(value);
    });
  };
  std::vector<VarRef> inits = tensors(0, "init"), updates = tensors(1, "update"),
                      states = tensors(2, "state_placeholder");
  check_scan(inits, updates, states, call);
  const Syntax* stated = in.arg(call, 4, "name");
  std::string name = stated ? in.string(*stated) : "scan";
  std::unordered_set<const NodeHeader*> of_state;
  VarMap results;
  Stage scan{.reads_itself = true};
  for (size_t i = 0; i < states.size(); ++i) {
    const BufferType& type = buffer_type(states[i]);
    std::string own = states.size() == 1 ? name : fmt::format("{}_v{}", name, i);
    scan.buffers.push_back(make_buffer(own, type.dtype, type.shape, "global", in.span(call)));
    of_state.insert(states[i].get());
    for (const VarRef& same : {states[i], inits[i], updates[i]}) results.insert_or_assign(same.get(), scan.buffers[i]);
  }
  auto is_one_of = [](const Stage& stage, const std::vector<VarRef>& buffers) {
    return std::ranges::any_of(buffers, [&](const VarRef& each) { return same_node(each, stage.buffers[0]); });
  };
  std::vector<Stmt> stmts, steps;
  std::vector<Stage> others;
  std::optional<For> loop;
  for (Stage& stage : stages_) {
    bool is_update = is_one_of(stage, updates), is_init = is_one_of(stage, inits);
    if (is_one_of(stage, states)) continue;
    if (is_init && !stage.stmt) in.fail(call, "te.scan takes a stage of te.compute as initial value");
    bool in_loop = stage.stmt && !is_init && (is_update || reads(*stage.stmt, of_state));
    if (!in_loop && !is_init) {
      others.push_back(std::move(stage));
      continue;
    }
    Stmt stmt = substitute(*stage.stmt, results);
    if (is_init) {
      stmts.push_back(stmt);
      continue;
    }
    for (const Buffer& buffer : stage.buffers) of_state.insert(buffer.get());
    if (!is_update) scan.buffers.insert(scan.buffers.end(), stage.buffers.begin(), stage.buffers.end());
    const For* own = stmt.as<For>();
    if (!own) in.fail(call, "te.scan takes stages of te.compute as updates");
    if (!loop) loop = *own;
    if (!structural_equal(own->extent, loop->extent))
      in.fail(call, "'{}' reads the state of te.scan, and has another first dim", stage.buffers[0]->name);
    steps.push_back(substitute(in_order(own->body), {{own->var.get(), loop->var}}));
  }
  if (stmts.size() != inits.size() || !loop)
    in.fail(call, "te.scan takes stages of te.compute as initial values and updates");
  stmts.push_back(rows_behind(*loop, buffer_type(inits[0]).shape[0], std::move(steps), in.span(call)));
  scan.stmt = seq(std::move(stmts), in.span(call));
  stages_ = std::move(others);
  stages_.push_back(std::move(scan));
  return {stages_.back().buffers.begin(), stages_.back().buffers.begin() + std::ssize(states)};
}

// Reads te.extern((n, m), [A, B], lambda ins, outs: tvm.tir.call_packed("f", ins[0], outs[0])), or a function whose
// statements Python has built.
std::vector<Expr> Parser::TeReader::external(const Syntax& call) {
  const Syntax &shape = in.required(call, 0, "shape"), &function = in.required(call, 2, "fcompute");
  std::vector<const Syntax*> inputs = in.items(in.required(call, 1, "inputs"));
  const Line* const* known = is_name(function) ? find_value(functions_, function.text) : nullptr;
  const Line* statements = known && is_decorated(**known, kExternStatements) ? *known : nullptr;
  if (!statements && (function.kind != SyntaxKind::kLambda || function.children.size() != 3))
    in.fail({function, {}, "write them as @T.prim_func"},
            "te.extern with statements that Python builds (tvm.tir.ir_builder) needs an interpreter");
  const Syntax *stated = in.arg(call, 4, "dtype"), *named = in.arg(call, 3, "name");
  std::string name = named ? in.string(*named) : "extern";
  bool many = is_list(shape) && !shape.children.empty() && is_list(*shape.children[0]);
  std::vector<const Syntax*> shapes = many ? in.items(shape) : std::vector{&shape};
  Stage stage{.reads_itself = true};
  Block block{.name = unique(name), .body = no_op()};
  for (const Syntax* input : inputs) {
    Expr value = in.expr(*input);
    if (!value.is<Var>() || !value.type().is<BufferType>()) in.fail(*input, "expected a tensor");
    block.reads.push_back({cast<Var>(value), map_each(buffer_type(cast<Var>(value)).shape, whole_range)});
  }
  bool fits = is_none(stated) || !is_list(*stated) || stated->children.size() == shapes.size();
  if (!fits) in.fail(*stated, "{} dtypes for {} outputs", stated->children.size(), shapes.size());
  if (is_none(stated) && inputs.empty()) in.fail(call, "argument 'dtype' is missing");
  for (size_t i = 0; i < shapes.size(); ++i) {
    DType dtype = is_none(stated) ? buffer_type(block.reads[0].buffer).dtype
                                  : in.dtype(is_list(*stated) ? *stated->children[i] : *stated);
    std::string own = shapes.size() > 1 ? fmt::format("{}_v{}", name, i) : name;
    stage.buffers.push_back(make_buffer(own, dtype, in.dims(*shapes[i], kInt32), "global", in.span(call)));
    block.writes.push_back({stage.buffers[i], map_each(buffer_type(stage.buffers[i]).shape, whole_range)});
  }
  NameScope scope(in.scopes_);
  Temporarily te(in.in_te_, false);
  block.body = statements ? extern_statements(*statements, block, call) : extern_call(function, inputs, stage.buffers);
  stage.stmt = make(std::move(block), in.span(call));
  stages_.push_back(std::move(stage));
  return map_each(stages_.back().buffers, [](const Buffer& buffer) -> Expr { return buffer; });
}

// Reads the one call of a lambda, whose params are lists of the tensors.
Stmt Parser::TeReader::extern_call(const Syntax& function, const std::vector<const Syntax*>& inputs,
                                   const std::vector<Buffer>& outputs) {
  Syntax &ins = in.tree_->node(), &outs = in.tree_->node();
  for (Syntax* list : {&ins, &outs}) {
    static_cast<Place&>(*list) = function;
    list->kind = SyntaxKind::kTuple;
  }
  ins.children.assign(inputs.begin(), inputs.end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    Syntax& output = in.tree_->node();
    static_cast<Place&>(output) = function;
    output.kind = SyntaxKind::kName;
    output.text = in.tree_->text(fmt::format("outs[{}]", i));
    in.define(output.text, outputs[i]);
    outs.children.push_back(&output);
  }
  const Syntax* body = in.replaced(function.children[2], [&](const Syntax& at) -> const Syntax* {
    return at.text == function.children[0]->text ? &ins : at.text == function.children[1]->text ? &outs : nullptr;
  });
  std::string path = callee(*body);
  if (path != "T.call_packed" && path != "T.call_extern")
    in.fail(*body, "te.extern is read with one call of tvm.tir.call_packed or tvm.tir.call_extern");
  return relaxc::evaluate(in.eval(*body).expr, in.span(*body));
}

// Reads the statements that Python has built, in a block of their memory.
Stmt Parser::TeReader::extern_statements(const Line& function, Block& block, const Syntax& call) {
  std::vector<Buffer> tensors;
  for (const auto* regions : {&block.reads, &block.writes}) {
    for (const BufferRegion& region : *regions) tensors.push_back(region.buffer);
  }
  if (tensors.size() != function.params.size())
    in.fail(call, "the function of te.extern takes {} tensors, got {}", function.params.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) in.define(function.params[i].name, tensors[i]);
  BlockState outside(""), state("");
  std::vector<Stmt> outer;
  Temporarily out(in.out_, &outer);
  Temporarily flat(in.flat_indices_, true);
  size_t before = in.errors();
  in.blocks_.push_back(&outside);
  in.blocks_.push_back(&state);
  std::vector<Stmt> stmts = in.stmts(function.body);
  in.blocks_.resize(in.blocks_.size() - 2);
  if (in.errors() != before) throw Failed();
  block.alloc_buffers = std::move(state.block.alloc_buffers);
  return seq(std::move(stmts), in.span(call));
}

// The text has definitions, but nothing says of which tensors a program is to be made: of those that no other uses.
void Parser::TeReader::create_default() {
  std::set<size_t> used;
  for (const Definition& each : definitions_) {
    if (!lists_tensors(*each.line->value)) used.insert(each.needs.begin(), each.needs.end());
  }
  std::vector<const Syntax*> inputs, outputs;
  for (size_t i = 0; i < definitions_.size(); ++i) {
    const Line& line = *definitions_[i].line;
    std::string path = callee(*line.value);
    bool is_input = path == "T.placeholder";
    bool computes = !is_input && defines_tensors(*line.value);
    for (const Syntax* target : is_input || computes ? in.items(*line.target) : std::vector<const Syntax*>()) {
      auto latest = is_name(*target) ? latest_.find(target->text) : latest_.end();
      if (latest == latest_.end() || latest->second != i) continue;
      if (is_input) inputs.push_back(target);
      if (computes && !used.contains(i)) outputs.push_back(target);
    }
  }
  if (outputs.empty()) return;
  std::set<size_t> needed = needs_of(outputs, *outputs[0]);
  std::erase_if(inputs, [&](const Syntax* input) { return !needed.contains(latest_.find(input->text)->second); });
  // The state of a scan is not an input.
  for (const Definition& each : definitions_) {
    if (callee(*each.line->value) != "T.scan") continue;
    for (const Syntax* state : in.items(in.required(*each.line->value, 2, "state_placeholder")))
      std::erase_if(inputs, [&](const Syntax* input) { return input->text == state->text; });
  }
  std::vector<const Syntax*> names = inputs;
  names.insert(names.end(), outputs.begin(), outputs.end());
  create(names, *outputs[0], false);
  std::vector<std::string_view> given = map_each(names, [](const Syntax* name) { return name->text; });
  in.diagnostics_.warning(in.span(*outputs[0]), "no te.create_prim_func says which tensors the program has; it gets {}",
                          joined(given));
}

}  // namespace relaxc::text
