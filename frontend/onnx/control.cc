// Control flow. If becomes a branch of the graph (or one of its sides, when the condition is known). Loop and Scan
// become loops of the graph, or are written out where they carry sequences.
#include <map>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/loop.h"
#include "ir/text/printer.h"
#include "support/temporarily.h"

namespace relaxc::onnx_import {

namespace {

// Gives a sequence or optional that is not there the type of the items of another value, whose dims stay open.
void learn_item_type(const Value& value, const ValueData& other) {
  if (!(value->is_sequence && value->items.empty()) && !value->is_none) return;
  std::vector<Type> types;
  if (other.is_sequence && value->is_sequence) {
    for (const Value& item : other.items) {
      if (auto type = item->type()) types.push_back(*type);
    }
    if (types.empty() && other.item_type) types.push_back(*other.item_type);
  } else if (auto type = other.type()) {
    if (const OptionalType* optional = type->as<OptionalType>()) type = optional->item;
    const SequenceType* sequence = type->as<SequenceType>();
    if (sequence || !value->is_sequence) types.push_back(value->is_sequence ? sequence->item : *type);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    Type type = without_dims(types[i], [](const VarRef&) { return true; });
    value->item_type = i == 0 ? type : common_type(*value->item_type, type);
  }
}

// Builds what no graph keeps, to see the types of values. Errors end it; they are reported where the graph is built.
void in_trial(Node& n, const std::function<void(Node& inner)>& build) {
  ModelContext& context = n.graph().context();
  Temporarily diagnostics(context.diagnostics, Diagnostics());
  Temporarily trial(context.is_trial, true);
  Builder builder(context.ops);
  builder.set_span(n.span());
  builder.begin_dataflow();
  GraphImporter graph(n.graph(), builder);
  Node inner(graph, n.proto(), n.row(), n.opset(), {}, n.span());
  KnownInside known(context.known);
  try {
    build(inner);
  } catch (const CompileError&) {
  }
}

}  // namespace

// One branch, whose values become expressions when those of the other one are known, too.
class Branch {
 public:
  Branch(Node& n, const char* side) : n_(n), builder_(n.graph().context().ops), body_(n.graph(), start(n, builder_)) {
    body_.branch = std::string(side) + "/";
    KnownInside known(n.graph().context().known);
    for (const Value& value : body_.import_subgraph(n.attr_graph(side))) {
      if (value->poisoned) throw CompileError({});  // reported where it failed
      values_.push_back(value);
    }
  }
  explicit Branch(Node& n) : n_(n), builder_(n.graph().context().ops), body_(n.graph(), start(n, builder_)) {}
  // Imports nodes and gives their results. The first one is the If at which they split, or has it in it; the If becomes
  // this side of it.
  void go_on(GraphImporter& outer, const RanksDiffer& split, bool side, const GraphImporter::Nodes& nodes,
             std::span<const int> order, const std::vector<std::string>& results) {
    KnownInside known(outer.context().known);
    auto& context = outer.context();
    auto chosen_side = split.dim ? context.chosen_side : std::optional(std::pair(split.node, side));
    auto decided_dims = context.decided_dims;
    if (split.dim) decided_dims.emplace_back(*split.dim, side);
    Temporarily chosen(context.chosen_side, std::move(chosen_side));
    Temporarily decided(context.decided_dims, std::move(decided_dims));
    GraphImporter rest(outer, builder_);
    rest.place = outer.place;
    rest.splits_ = outer.splits_ + 1;
    rest.outputs_ = results;
    rest.add_in_order(nodes, order);
    for (const std::string& name : results) {
      values_.push_back(rest.find(name));
      if (!values_.back()) n_.fail("graph output '{}' is not defined", printable(name));
      if (values_.back()->poisoned) throw CompileError({});  // reported where it failed
    }
  }
  // A value that is not there has the type of the one that the other branch has in its place.
  void learn_types(const Branch& other) {
    for (size_t i = 0; i < values_.size(); ++i) learn_item_type(values_[i], *other.values_[i]);
  }
  // Returns the branch as a SeqExpr of its outputs.
  Expr finish() {
    auto result = [&](const Value& value) { return body_.leaf_of(value, n_.span()); };
    return finish(map_each(values_, result));
  }
  // Returns a branch that ends the run with the message where the condition has this value, and has the types of the
  // other branch; nullopt where these are not those of tensors of known ranks.
  std::optional<Expr> finish_with_error(const Expr& condition, bool side, const std::string& message,
                                        const Type& types) {
    Expr taken = builder_.op("astype", {condition}, CastAttrs{kInt64});
    taken = builder_.op("inspect.tensor_item", {taken}, TensorItemAttrs{0}, "taken");
    body_.require_equal(taken, int_imm(side ? 0 : 1), message);
    const TupleType* several = types.as<TupleType>();
    std::vector<Expr> results;
    for (const Type& type : several ? several->items : std::vector<Type>{types}) {
      auto dtype = tensor_dtype(type);
      if (!dtype || dtype->is_string() || known_rank(type) < 0) return std::nullopt;
      const std::vector<Expr>* dims = known_shape(type);
      std::vector<Expr> shape = dims ? *dims : std::vector<Expr>(static_cast<size_t>(known_rank(type)), int_imm(0));
      results.push_back(builder_.op("zeros", {shape_expr(std::move(shape))}, FillAttrs{*dtype}));
    }
    return finish(std::move(results));
  }

 private:
  static Builder& start(Node& n, Builder& builder) {
    builder.set_span(n.span());
    builder.begin_dataflow();
    return builder;
  }
  Expr finish(std::vector<Expr> results) {
    return builder_.finish(results.size() == 1 ? results[0] : tuple(std::move(results)));
  }
  Node& n_;
  Builder builder_;
  GraphImporter body_;
  std::vector<Value> values_;
};

namespace {

// Returns whether tensors of both branches have ranks that are known and differ.
bool ranks_differ(const Type& a, const Type& b) {
  const TupleType *items = a.as<TupleType>(), *others = b.as<TupleType>();
  if (!items || !others) return known_rank(a) >= 0 && known_rank(b) >= 0 && known_rank(a) != known_rank(b);
  return !std::ranges::equal(items->items, others->items, std::not_fn(ranks_differ));
}

// Checks the type that values of both branches have. Dims and ranks that differ are left unknown.
void check_branches(Node& n, const Type& common, const Type& a, const Type& b) {
  if (const TupleType* several = common.as<TupleType>()) {
    for (size_t i = 0; i < several->items.size(); ++i)
      check_branches(n, several->items[i], a.as<TupleType>()->items[i], b.as<TupleType>()->items[i]);
    return;
  }
  bool is_open = common.is<ObjectType>() || (common.is<TensorType>() && !tensor_dtype(common));
  if (is_open) n.fail("the branches have different types, {} and {}", print_type(a), print_type(b));
}
// Returns the flag, when it is known.
std::optional<int64_t> known_flag(Node& n, const Value& value) {
  const KnownTensor* contents = n.graph().known(value);
  return contents ? contents->only_int() : std::nullopt;
}

// Returns a result of an If with variables for its dims, but for those that both branches give it.
Expr with_common_dims(Node& n, const Expr& x, const Type& a, const Type& b) {
  const std::vector<Expr>*dims = known_shape(a), *others = known_shape(b);
  std::vector<std::optional<Expr>> common;
  for (size_t d = 0; dims && others && d < dims->size(); ++d) {
    bool is_common = d < others->size() && structural_equal((*dims)[d], (*others)[d]);
    common.push_back(is_common ? std::optional((*dims)[d]) : std::nullopt);
  }
  return with_measured_dims(n, x, common);
}

// Emits an If of these branches and returns its outputs.
Outputs emit_if(Node& n, const Expr& condition, const Expr& then_branch, const Expr& else_branch) {
  const Type &a = then_branch.type(), &c = else_branch.type(), type = common_type(a, c);
  check_branches(n, type, a, c);
  Builder& b = n.builder();
  b.end_dataflow({});  // a block has no branches
  Expr result = b.emit(make(If{condition, then_branch, else_branch}, type, n.span()));
  b.begin_dataflow();
  const TupleType* several = type.as<TupleType>();
  if (!several) return {n.of(with_common_dims(n, result, a, c))};
  Outputs outputs;
  for (size_t i = 0; i < several->items.size(); ++i) {
    Expr item = b.emit(tuple_get(result, static_cast<int64_t>(i)));
    outputs.push_back(n.of(with_common_dims(n, item, a.as<TupleType>()->items[i], c.as<TupleType>()->items[i])));
  }
  return outputs;
}

// Emits the branches of the If and returns their outputs.
Outputs joined_branches(Node& n, const RanksDiffer& split, Branch& then_side, Branch& else_side, bool may_split) {
  then_side.learn_types(else_side);
  else_side.learn_types(then_side);
  Expr then_branch = then_side.finish(), else_branch = else_side.finish();
  if (may_split && ranks_differ(then_branch.type(), else_branch.type())) throw split;
  return emit_if(n, split.condition, then_branch, else_branch);
}

Outputs if_node(Node& n) {
  const onnx::GraphProto &then_graph = n.attr_graph("then_branch"), &else_graph = n.attr_graph("else_branch");
  if (then_graph.output_size() != else_graph.output_size())
    n.fail("the branches have {} and {} outputs", then_graph.output_size(), else_graph.output_size());
  auto known = known_flag(n, n.value(0));
  auto& chosen = n.graph().context().chosen_side;
  if (chosen && chosen->first == &n.proto()) {
    known = chosen->second;
    chosen.reset();  // the node may be imported again, as that of another call of a function
  }
  if (known) {
    GraphImporter side(n.graph(), n.builder());
    side.is_side = true, side.branch = *known ? "then_branch/" : "else_branch/";
    return side.import_subgraph(*known ? then_graph : else_graph);
  }
  Branch then_side(n, "then_branch"), else_side(n, "else_branch");
  Expr condition = n.reshape(n.tensor(0), {});
  return joined_branches(n, {&n.proto(), condition}, then_side, else_side, n.graph().may_split());
}

Value stacked(Node& n, const std::vector<Value>& slices, int64_t axis) {
  if (std::ranges::any_of(slices, is_text))
    return n.container_op("sequence.concat", {n.leaf(n.sequence(slices))},
                          write_attrs(SequenceConcatAttrs{axis, true}));
  std::vector<Expr> parts;
  for (const Value& slice : slices) {
    Expr x = n.tensor(slice);
    axis = n.axis(axis, std::ssize(n.shape_of(x)) + 1);
    parts.push_back(n.with_new_axis(x, axis));
  }
  return n.of(join(n, parts, axis));
}

// Inlines one iteration. An error in it has been reported where it is.
std::vector<Value> run_body(GraphImporter& graph, const onnx::GraphProto& body, const std::vector<Value>& arguments) {
  std::vector<Value> results = GraphImporter(graph, graph.builder()).import_subgraph(body, arguments);
  for (const Value& value : results) {
    if (value->poisoned) throw CompileError({});
  }
  return results;
}

// A loop as ONNX has it: the body maps (i, condition, carried values) to (condition, carried values, rows).
class Loop {
 public:
  explicit Loop(Node& n) : n_(n), body_(n.attr_graph("body")) {
    carried_ = n.inputs() > 2 ? n.inputs() - 2 : 0;
    const int state = static_cast<int>(carried_) + 1, rows = body_.output_size() - state;
    if (body_.input_size() != state + 1) n.fail("the body has {} inputs, expected {}", body_.input_size(), state + 1);
    if (rows < 0) n.fail("the body has {} outputs, expected at least {}", body_.output_size(), state);
    rows_ = static_cast<size_t>(rows);
    for (size_t i = 0; i < carried_; ++i) state_.push_back(n.value(i + 2));
    first_ = n.has(1) ? known_flag(n, n.value(1)) : 1;
    if (!n.has(0)) return;
    if (auto known = n.constant_ints(0); known && known->size() != 1)
      n.fail("the trip count has {} elements, expected 1", known->size());
    trips_ = n.scalar_int(0);
  }

  Outputs convert() {
    auto known = trips_ ? as_int(*trips_) : std::nullopt;
    bool is_never = known == 0 || first_ == 0, is_once = known == 1 && first_;
    if (is_once || (is_never && rows_ == 0)) return written_out(known);
    try {
      return as_loop();
    } catch (const CarriedRankChanges& found) {  // each iteration has another body
      constexpr int64_t kMostWritten = 64;
      if (known && *known <= kMostWritten && first_) return written_out(known);
      refuse_ranks(n_, found, body_.input(static_cast<int>(found.which) + 2).name(), kMostWritten);
    }
  }

 private:
  // Runs the body on the state before an iteration, which is one that happens.
  std::vector<Value> run(GraphImporter& graph, Value i, const std::vector<Value>& state) const {
    std::vector<Value> arguments = {std::move(i), n_.of(KnownTensor{kBool, {}, {bool_imm(true)}})};
    arguments.insert(arguments.end(), state.begin(), state.end());
    return run_body(graph, body_, arguments);
  }

  Outputs as_loop() {
    learn_item_types();
    std::vector<Expr> carried = map_each(state_, [&](const Value& value) { return n_.leaf(value); });
    Expr trips = trips_ ? named_if_long(n_, n_.simplify(max(*trips_, int_imm(0))), "trips")
                        : int_imm(std::numeric_limits<int64_t>::max());
    auto body = [&](Node& inner, const Expr& i, const std::vector<Expr>& values) {
      std::vector<Value> state = map_each(values, [&](const Expr& value) { return inner.of(value); });
      std::vector<Value> results = run(inner.graph(), inner.of(KnownTensor{kInt64, {}, {i}}), state);
      LoopStep step;
      if (first_ != 1 || known_flag(inner, results[0]) != 1)
        step.condition = inner.reshape(inner.tensor(results[0]), {});
      for (size_t k = 0; k < carried_; ++k) {
        learn_item_type(results[k + 1], *state[k]);
        step.carried.push_back(inner.leaf(results[k + 1]));
      }
      for (size_t k = 0; k < rows_; ++k) step.rows.push_back(inner.tensor(results[carried_ + 1 + k]));
      return step;
    };
    auto first = [&] { return n_.has(1) ? n_.reshape(n_.tensor(1), {}) : n_.scalar(1, kBool); };
    return map_each(emit_loop(n_, trips, carried, body, first), [&](const Expr& value) { return n_.of(value); });
  }

  // A sequence that is empty before the first iteration has the items that an iteration inserts: a trial tells them.
  void learn_item_types() {
    auto is_empty = [](const Value& value) { return value->is_sequence && value->items.empty(); };
    if (std::ranges::none_of(state_, is_empty)) return;
    in_trial(n_, [&](Node& inner) {
      Value i = inner.of(KnownTensor{kInt64, {}, {make_var("i", prim_type(kInt64))}});
      std::vector<Value> results = run(inner.graph(), i, state_);
      for (size_t k = 0; k < carried_; ++k) learn_item_type(state_[k], *results[k + 1]);
    });
  }

  // Imports the body in place of the one iteration, or of none.
  Outputs written_out(std::optional<int64_t> trips) {
    std::vector<std::vector<Value>> slices(rows_);
    std::optional<int64_t> condition = first_;
    for (int64_t i = 0; !trips || i < *trips; ++i) {
      if (condition == 0) break;
      std::vector<Value> results = run(n_.graph(), n_.of(KnownTensor{kInt64, {}, {int_imm(i)}}), state_);
      condition = known_flag(n_, results[0]);
      if (!condition && i + 1 < trips.value_or(0))
        n_.unsupported("a carried value changes its rank, and the condition of the next iteration is not known");
      for (size_t k = 0; k < carried_; ++k) state_[k] = results[k + 1];
      for (size_t k = 0; k < rows_; ++k) slices[k].push_back(results[carried_ + 1 + k]);
    }
    for (const auto& list : slices) state_.push_back(stacked(n_, list, 0));
    return state_;
  }

  Node& n_;
  const onnx::GraphProto& body_;
  size_t carried_ = 0, rows_ = 0;
  std::vector<Value> state_;
  std::optional<Expr> trips_;     // absent: any number
  std::optional<int64_t> first_;  // the condition of the first iteration, if it is known
};
Outputs loop_node(Node& n) { return Loop(n).convert(); }

// Maps sequences item by item; other inputs are the same for each item.
class SequenceMap {
 public:
  explicit SequenceMap(Node& n) : n_(n), body_(n.attr_graph("body")) {
    for (size_t i = 0; i < n.inputs(); ++i) inputs_.push_back(n.value(i));
    if (!is_sequence(inputs_[0])) n.fail("input 0 is {}, expected a sequence", kind_text(*inputs_[0]));
    if (body_.input_size() != static_cast<int>(n.inputs()))
      n.fail("the body has {} inputs, expected {}", body_.input_size(), n.inputs());
  }

  Outputs convert() {
    constexpr size_t kMostWritten = 16;  // items that are known, each with a body for its dims
    size_t length = inputs_[0]->items.size();
    auto is_known = [&](const Value& input) {
      return !is_sequence(input) || (input->is_sequence && input->items.size() == length);
    };
    return length <= kMostWritten && std::ranges::all_of(inputs_, is_known) ? written_out(length) : as_loop();
  }

 private:
  static bool is_sequence(const Value& value) { return kind_text(*value) == "a sequence"; }
  Outputs written_out(size_t length) {
    std::vector<std::vector<Value>> items(static_cast<size_t>(body_.output_size()));
    for (size_t i = 0; i < length; ++i) {
      auto argument = [&](const Value& input) { return is_sequence(input) ? input->items.at(i) : input; };
      std::vector<Value> results = run_body(n_.graph(), body_, map_each(inputs_, argument));
      for (size_t k = 0; k < items.size(); ++k) items[k].push_back(results.at(k));
    }
    return map_each(items, [&](const std::vector<Value>& list) { return n_.sequence(list); });
  }
  std::vector<Value> run(Node& inner, const Expr& i) {
    auto argument = [&](const Value& input) {
      return is_sequence(input) ? inner.container_op("sequence.at", {inner.leaf(input), i}) : input;
    };
    return run_body(inner.graph(), body_, map_each(inputs_, argument));
  }
  Outputs as_loop() {
    std::vector<Value> results(static_cast<size_t>(body_.output_size()));
    for (Value& value : results) value = n_.sequence({});
    in_trial(n_, [&](Node& inner) {
      std::vector<Value> items = run(inner, make_var("i", prim_type(kInt64)));
      for (size_t k = 0; k < results.size(); ++k) learn_item_type(results[k], *inner.sequence({items.at(k)}));
    });
    Expr trips = n_.builder().op("sequence.length", {n_.leaf(inputs_[0])});
    auto body = [&](Node& inner, const Expr& i, const std::vector<Expr>& carried) {
      std::vector<Value> items = run(inner, i);
      LoopStep step;
      for (size_t k = 0; k < carried.size(); ++k)
        step.carried.push_back(inner.builder().op("sequence.insert", {carried[k], inner.leaf(items.at(k))}));
      return step;
    };
    auto empty = map_each(results, [&](const Value& value) { return n_.leaf(value); });
    return map_each(emit_loop(n_, trips, empty, body), [&](const Expr& value) { return n_.of(value); });
  }

  Node& n_;
  const onnx::GraphProto& body_;
  std::vector<Value> inputs_;
};
Outputs sequence_map(Node& n) { return SequenceMap(n).convert(); }

// Strings go through a Scan as positions in pools.
Value as_moved(Node& n, const Value& strings) {
  return make_value({.strings = n.graph().moved(strings, n.span()), .home = &n.builder()});
}
// Returns the strings with what `change` makes of their positions.
Value with_positions(Node& n, const Value& strings, const std::function<Expr(const Expr&)>& change) {
  MovedStrings moved = n.graph().moved(strings, n.span());
  return make_value(
      {.strings = MovedStrings{n.of(change(n.tensor(moved.positions))), moved.pool}, .home = &n.builder()});
}
// Returns x[..., at, ...] without that axis.
Value slice_of(Node& n, const Value& x, int64_t axis, const Expr& at) {
  if (!is_text(x)) return n.of(n.pick(n.tensor(x), axis, at));
  return with_positions(n, x, [&](const Expr& positions) { return n.pick(positions, axis, at); });
}

// Imports a Scan. Sequences are cut along an axis, and each step's slices and the carried state go through the body.
class Scan {
 public:
  explicit Scan(Node& n) : at_(&n), body_(n.attr_graph("body")), batched_(n.opset() < 9) {
    size_t first = batched_ ? 1 : 0;
    const int64_t scanned = n.required_int("num_scan_inputs");
    if (scanned < 1 || scanned > static_cast<int64_t>(n.inputs()) - static_cast<int64_t>(first))
      n.fail("{} inputs, and num_scan_inputs is {}", n.inputs(), scanned);
    scanned_ = static_cast<size_t>(scanned);
    carried_ = n.inputs() - first - scanned_;
    if (body_.output_size() < static_cast<int>(carried_)) n.fail("the body has {} outputs", body_.output_size());
    scan_outputs_ = static_cast<size_t>(body_.output_size()) - carried_;
    if (batched_ && n.has(0)) n.unsupported("sequence lengths");
    auto later = [&](const char* name, size_t count) {
      return batched_ ? Ints(count, 0) : n.attr_ints(name, count, 0);
    };
    in_axes_ = later("scan_input_axes", scanned_);
    in_reversed_ = n.attr_ints(batched_ ? "directions" : "scan_input_directions", scanned_, 0);
    out_axes_ = later("scan_output_axes", scan_outputs_);
    out_reversed_ = later("scan_output_directions", scan_outputs_);
    for (size_t k = 0; k < carried_; ++k) state_.push_back(n.value(first + k));
    for (size_t k = 0; k < scanned_; ++k) sequences_.push_back(n.value(first + carried_ + k));
  }

  Outputs convert() {
    if (!batched_) return run(state_, sequences_);
    return map_each(of_batch(), [&](const Expr& rows) { return n().of(rows); });
  }

 private:
  using Ints = std::vector<int64_t>;
  Node& n() { return *at_; }

  // Scans the elements of the batch one after the other. Their results are the rows of the outer loop.
  std::vector<Expr> of_batch() {
    const Expr batch = n().dim(1 + carried_, 0);
    for (size_t k = 1; k < carried_ + scanned_; ++k)
      n().require_equal(n().dim(1 + k, 0), batch, "batch sizes of states and scan inputs");
    auto body = [&](Node& inner, const Expr& b, const std::vector<Expr>&) {
      Temporarily inside(at_, &inner);
      auto part = [&](const Value& x) { return slice_of(inner, x, 0, b); };
      std::vector<Value> one = run(map_each(state_, part), map_each(sequences_, part));
      return LoopStep{.carried = {}, .rows = map_each(one, [&](const Value& value) { return inner.tensor(value); })};
    };
    return emit_loop(n(), batch, {}, body);
  }

  Expr length_of(const std::vector<Value>& sequences) {
    std::optional<Expr> length;
    for (size_t k = 0; k < scanned_; ++k) {
      const Type type = sequences[k]->type().value();
      const std::vector<Expr>* shape = known_shape(type);
      if (!shape) n().unsupported("a scan input of unknown rank");
      in_axes_[k] = n().axis(in_axes_[k], std::ssize(*shape));
      const Expr& size = (*shape)[in_axes_[k]];
      if (length) n().require_equal(*length, size, "the lengths of scan inputs");
      if (!length) length = size;
    }
    return *length;
  }
  // Runs the steps for one batch element, or for the only one. Returns the last state, then the stacked outputs.
  std::vector<Value> run(const std::vector<Value>& state, std::vector<Value> sequences) {
    for (Value& sequence : sequences) {
      if (is_text(sequence)) sequence = as_moved(n(), sequence);
    }
    Expr length = length_of(sequences);
    auto body = [&](Node& inner, const Expr& i, const std::vector<Expr>& carried) {
      std::vector<Value> arguments = map_each(carried, [&](const Expr& value) { return inner.of(value); });
      for (size_t k = 0; k < scanned_; ++k) {
        Expr at = in_reversed_[k] ? inner.simplify(length - 1 - i) : i;
        arguments.push_back(slice_of(inner, sequences[k], in_axes_[k], at));
      }
      std::vector<Value> results = run_body(inner.graph(), body_, arguments);
      auto tensors = [&](size_t from, size_t count) {
        return map_each(std::span(results).subspan(from, count),
                        [&](const Value& value) { return inner.tensor(value); });
      };
      return LoopStep{.carried = tensors(0, carried_), .rows = tensors(carried_, scan_outputs_)};
    };
    std::vector<Expr> first = map_each(state, [&](const Value& value) { return n().tensor(value); });
    std::vector<Value> results =
        map_each(emit_loop(n(), length, first, body), [&](const Expr& result) { return n().of(result); });
    for (size_t k = 0; k < scan_outputs_; ++k) results[carried_ + k] = laid_out(results[carried_ + k], k);
    return results;
  }
  // Gives the rows of an output, which are stacked along axis 0, the order and the axis that the node says.
  Value laid_out(const Value& rows, size_t output) {
    auto lay_out = [&](Expr x) {
      if (out_reversed_[output]) x = n().op("flip", {x}, AxisAttrs{.axis = 0});
      int64_t rank = std::ssize(n().shape_of(x)), axis = n().axis(out_axes_[output], rank);
      std::vector<int64_t> axes = int_range(1, rank);
      axes.insert(axes.begin() + axis, 0);
      return n().transpose(x, axes);
    };
    if (!is_text(rows)) return n().of(lay_out(n().tensor(rows)));
    if (!out_reversed_[output] && out_axes_[output] == 0) return rows;
    return with_positions(n(), rows, lay_out);
  }

  Node* at_;  // the node, or its view inside of the loop over a batch
  const onnx::GraphProto& body_;
  bool batched_;  // before opset 9: a leading axis of independent sequences, after the optional lengths
  size_t scanned_, carried_, scan_outputs_;
  Ints in_axes_, in_reversed_, out_axes_, out_reversed_;
  std::vector<Value> state_, sequences_;
};
Outputs scan_node(Node& n) { return Scan(n).convert(); }

}  // namespace

// Imports the nodes behind the If for each of its sides. Of a side where they do not fit, such as an operator that
// takes no tensor of this rank, only the run can tell that it is never taken, so it becomes an error of the run.
Outputs GraphImporter::outputs_of_sides(Node& n, const RanksDiffer& split, const Nodes& nodes,
                                        std::span<const int> order, const std::vector<std::string>& results) {
  Branch then_side(n), else_side(n);
  auto problems_of = [&](Branch& branch, bool side) {
    Temporarily apart(context_.diagnostics, Diagnostics());
    Temporarily trial(context_.is_trial, true);
    try {
      branch.go_on(*this, split, side, nodes, order, results);
    } catch (const CompileError& error) {
      context_.add(error);
    }
    return std::exchange(context_.diagnostics, {});
  };
  const Diagnostics of_then = problems_of(then_side, true), of_else = problems_of(else_side, false);
  if (!of_then.has_errors() && !of_else.has_errors()) {
    for (const Diagnostics* list : {&of_then, &of_else}) context_.add(CompileError(list->all()));  // warnings
    return joined_branches(n, split, then_side, else_side, may_pass_on());
  }
  const bool is_then = of_then.has_errors();
  const std::vector<Diagnostic>& why = (is_then ? of_then : of_else).all();
  if (!of_then.has_errors() || !of_else.has_errors()) {
    auto first = std::ranges::find(why, Severity::kError, &Diagnostic::severity);
    const std::string place =
        first->span.origin ? fmt::format("{} {} ", first->span.origin->op_type, first->span.origin->node) : "";
    const std::string side = split.dim
                                 ? fmt::format("where dim {} {} 1", print_expr(*split.dim), is_then ? "is" : "is not")
                                 : fmt::format("behind the {} branch of", is_then ? "then" : "else");
    const std::string message = fmt::format("{} {} {} the model does not fit together, {}{}", side,
                                            split.node->op_type(), split.node->name(), place, first->message);
    Expr fits = (is_then ? else_side : then_side).finish();
    Branch impossible(n);
    if (auto ends = impossible.finish_with_error(split.condition, is_then, message, fits.type())) {
      context_.add(CompileError((is_then ? of_else : of_then).all()));  // warnings
      if (CompileError(why).kind() == ErrorKind::kUnsupported)
        context_.diagnostics.warning(first->span, "{}; the run ends with an error {}", first->message, side);
      return emit_if(n, split.condition, is_then ? *ends : fits, is_then ? fits : *ends);
    }
  }
  if (!context_.options.failed || context_.is_trial) throw CompileError(why);
  Branch(n).go_on(*this, split, is_then, nodes, order, results);  // reports the nodes
  throw CompileError({});
}

void GraphImporter::split_at(const RanksDiffer& split, const Nodes& nodes, std::span<const int> order) {
  const onnx::NodeProto& node = nodes[order[0]];
  const Span span = span_of(node, order[0]);
  builder_.set_span(span);
  // Results that are defined already stay as they are.
  std::vector<std::string> results;
  for (const std::string& name : outputs_) {
    if (!scope_.contains(name) && !contains(results, name)) results.push_back(name);
  }
  if (results.empty()) return;
  try {
    const ConverterRow& row = *find_converter("", "If", 1);
    Node n(*this, node, row, 1, {}, span);
    std::vector<std::string> inside = context_.nested;
    inside.emplace_back();
    Temporarily nested(context_.nested, std::move(inside));
    Outputs outputs = outputs_of_sides(n, split, nodes, order, results);
    for (size_t i = 0; i < results.size(); ++i) define(results[i], outputs.at(i));
  } catch (const CompileError& error) {
    context_.add(error);
    for (const std::string& name : results) define(name, make_value({.poisoned = true}));
  }
}

std::vector<ConverterRow> control_converters() {
  constexpr const char* kScan =
      "body directions num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions";
  return {
      {"If", 1, 1, 1, if_node, "else_branch then_branch"},
      {"Loop", 1, 2, kAny, loop_node, "body", "", 0b11},
      {"SequenceMap", 17, 1, kAny, sequence_map, "body"},
      {"Scan", 8, 1, kAny, scan_node, kScan, "", 0b1},
      {"Scan", 9, 1, kAny, scan_node, kScan},
  };
}

}  // namespace relaxc::onnx_import
