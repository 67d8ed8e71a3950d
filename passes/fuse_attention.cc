// Expects: call_tirs (compose). Guarantees: two products with a softmax between them, and what is computed from the
// first one element by element, are one tensor program, whose rule (tir/rules/attention.cc) never has all scores in
// memory:
//
//   s = q . k^T        panels = k in panels of a tile's columns (a call_tir of its own; of many values, too)
//   c = s / 8 + mask   out = attention(q, panels, mask, v), of the blocks
//   p = softmax(c)       s = q . panels; c = s / 8 + mask; m = row maxima of c; e = exp(c - m); z = row sums of e;
//   o = p . v            o = e . v; out = o / z
//
// The division comes after the second product, where a row has fewer elements, as in FlashAttention (Dao et al., 2022);
// where others read the softmax first, it stays in its place. Operands are read behind the transposes, repetitions and
// reshapes that exporters put before products, as long as vectors stay contiguous; of the result, a transpose of the
// other axes is part of the program. All is float32. Few queries, as in a step of a decoder, are two
// products that read keys and values where they lie, without panels. Where there may be a past, and the run decides how
// many queries there are, it chooses: the attention is an If.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ops/common.h"
#include "passes/find_attention.h"
#include "passes/graph_decisions.h"
#include "tir/compute.h"
#include "tir/program.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

class AttentionFuser {
 public:
  AttentionFuser(IRModule& module, const PassContext& context, const std::vector<Binding>& bindings,
                 const VarSet& used_outside)
      : module_(module), context_(context), bindings_(bindings), finder_(bindings, module, used_outside) {}

  std::vector<Binding> run() {
    // By the binding whose place they take. In a chain of products and softmaxes each product belongs to one of them,
    // and no operand is inside of another.
    std::map<size_t, Chosen> found;
    std::unordered_set<size_t> members, results;
    for (size_t i = 0; i < bindings_.size(); ++i) {
      std::optional<Attention> attention = finder_.find(i);
      if (!attention) continue;
      const std::string algorithm = algorithm_for(*attention);
      if (algorithm == "separate") continue;
      const std::vector<size_t> all = attention->members();
      auto is_inside = [&](size_t i) { return members.contains(i) && !results.contains(i); };
      auto is_taken = [&](size_t i) { return members.contains(i); };
      if (std::ranges::any_of(all, is_taken) || std::ranges::any_of(finder_.sources_of(*attention), is_inside))
        continue;
      members.insert(all.begin(), all.end());
      results.insert(all.back());
      found.emplace(all.back(), Chosen{std::move(*attention), algorithm});
    }
    if (found.empty()) return bindings_;
    std::vector<Binding> result;
    for (size_t i = 0; i < bindings_.size(); ++i) {
      if (auto it = found.find(i); it != found.end()) emit_chosen(it->second, result);
      if (!members.contains(i)) result.push_back(bindings_[i]);
    }
    return result;
  }

 private:
  struct Chosen {
    Attention attention;
    std::string algorithm;
  };
  const VarRef& var(size_t i) const { return bindings_[i].var; }

  // Decides whether one program is worth it: the keys are copied into panels, which each row reads once.
  std::string algorithm_for(const Attention& found) const {
    std::vector<std::string> names = {"matmul", "nn.softmax"};
    for (size_t i : {found.scores, found.softmax, found.output}) {
      names.push_back(finder_.node(i)->call.name());
      if (kernel_of(names.back(), context_)) return "separate";
    }
    auto is_named = [&](const ScheduleRule& rule) {
      return std::ranges::count(names, rule.function) > 0 || std::ranges::count(names, operator_of(rule, context_)) > 0;
    };
    if (std::ranges::any_of(context_.schedules, is_named)) return "separate";
    if (context_.target.vector_lanes(kFloat32.bits) < cost_model::kFewestLanes) return "separate";
    auto extent = [](const IterVar& axis) { return as_int(axis.domain.extent); };
    if (!extent(found.first.depth) || !extent(found.second.column)) return "separate";
    const auto queries = extent(found.first.row), keys = extent(found.first.column);
    const bool has_few_keys = keys.value_or(INT32_MAX) < cost_model::kFewestKeys;
    const bool has_few_queries = queries.value_or(INT32_MAX) < cost_model::kFewestQueries;
    // A text attends to itself as a whole; fewer queries than keys are those behind a past.
    const bool may_have_past = !queries && !keys && !equal_extents(found.first.row, found.first.column);
    const char* formula = has_few_keys      ? "separate"
                          : has_few_queries ? "direct"
                          : may_have_past   ? "by_length"
                                            : "fused";
    const AttrValue chosen = decide("attention_algorithm", "algorithm", var(found.softmax), context_,
                                    {"fused", "direct", "by_length", "separate"}, formula);
    return *chosen.as<std::string>();
  }
  static bool equal_extents(const IterVar& a, const IterVar& b) {
    return equal_dims(a.domain.extent, b.domain.extent) == Verdict::kProven;
  }

  // ---- Merging

  Expr emit(std::vector<Binding>& bindings, const Expr& value, const std::string& name) const {
    VarRef result = make_var(name, value.type(), value.span());
    bindings.push_back({value, std::nullopt, result});
    return result;
  }
  static Buffer input(ComputeBuilder& b, const std::string& name, const Expr& tensor) {
    return b.input(name, *tensor_dtype(tensor.type()), *known_shape(tensor.type()));
  }
  // Returns the element of the buffer with these values for axes.
  static Expr load_at(const Buffer& buffer, const TensorElement& element, const VarMap& axes) {
    return load(buffer, map_each(element.at, [&](const Expr& index) { return substitute(index, axes); }));
  }
  static VarMap axes_at(const ProductForm& product, Axes i, const Expr& depth) {
    VarMap result = {{product.depth.var.get(), depth}};
    for (size_t d = 0; d < product.batch.size(); ++d) result.emplace(product.batch[d].var.get(), i[d]);
    result.emplace(product.row.var.get(), i[i.size() - 2]);
    result.emplace(product.column.var.get(), i.back());
    return result;
  }

  // The right operand of a product, and the columns of a tile of the product.
  struct Right {
    const ProductForm& product;
    const TensorElement& element;
    int64_t columns;
  };
  Right keys_of(const Attention& found) const {
    const int lanes = context_.target.vector_lanes(kFloat32.bits);
    return {found.first, found.key, choose_column_tile(std::nullopt, lanes).columns()};
  }
  Right values_of(const Attention& found) const {
    const int lanes = context_.target.vector_lanes(kFloat32.bits);
    return {found.second, found.value, choose_column_tile(as_int(found.second.column.domain.extent), lanes).columns()};
  }
  // Returns the dims of the operand that are neither columns nor depth, and not a single element of it.
  static std::vector<size_t> batch_dims(const Right& of) {
    std::vector<size_t> dims;
    for (size_t d = 0; d < of.element.at.size(); ++d) {
      const bool is_axis = d == dim_of(of.element, of.product.column) || d == dim_of(of.element, of.product.depth);
      if (!is_axis && !as_int(of.element.at[d])) dims.push_back(d);
    }
    return dims;
  }
  // Copies the operand into panels [..., column / columns, depth, column % columns], the last one with zeros at its
  // end.
  Expr pack(const Right& of, const std::string& name, const Span& span, std::vector<Binding>& bindings) const {
    const std::vector<size_t> dims = batch_dims(of);
    const std::vector<Expr>& shape = *known_shape(of.element.tensor.type());
    const Expr &extent = of.product.column.domain.extent, columns = int_imm(of.columns);
    std::vector<Expr> packed = map_each(dims, [&](size_t d) { return shape[d]; });
    const Expr panels = simplify(floor_div(extent + (of.columns - 1), columns));
    packed.insert(packed.end(), {panels, of.product.depth.domain.extent, columns});
    ComputeBuilder b;
    Buffer x = input(b, name + "s", of.element.tensor);
    Buffer result = b.compute("T_" + name + "_panels", kFloat32, packed, [&](Axes i) {
      std::vector<Expr> at = of.element.at;
      for (size_t n = 0; n < dims.size(); ++n) at[dims[n]] = i[n];
      const Expr column = i[dims.size()] * columns + i.back();
      at[*dim_of(of.element, of.product.column)] = column;
      at[*dim_of(of.element, of.product.depth)] = i[dims.size() + 1];
      const Expr value = load(x, at);
      const bool divides = Analyzer().can_prove_equal(floor_mod(extent, columns), int_imm(0));
      return divides ? value : if_then_else(column < extent, value, zero(kFloat32));
    });
    Expr call = make_call_tir(module_, name + "_panels", b.finish({result}), {of.element.tensor},
                              {tensor_type(packed, kFloat32)}, span);
    return emit(bindings, call, "panels");
  }
  // Returns the element of these panels that the product reads at these axes.
  static Expr load_panels(const Buffer& panels, const Right& of, const VarMap& axes) {
    std::vector<Expr> at = map_each(batch_dims(of), [&](size_t d) { return substitute(of.element.at[d], axes); });
    const Expr& column = axes.at(of.product.column.var.get());
    at.insert(at.end(),
              {floor_div(column, of.columns), axes.at(of.product.depth.var.get()), floor_mod(column, of.columns)});
    return load(panels, at);
  }
  PrimFuncRef scores_program(const Attention& found, const Expr& panels) const {
    ComputeBuilder b;
    Buffer q = input(b, "query", found.query.tensor), k = input(b, "panels", panels);
    return b.finish({b.reduce("scores", kFloat32, *known_shape(var(found.scores).type()),
                              {found.first.depth.domain.extent}, zero(kFloat32), combine_sum, [&](Axes i, Axes r) {
                                const VarMap axes = axes_at(found.first, i, r[0]);
                                return load_at(q, found.query, axes) * load_panels(k, keys_of(found), axes);
                              })});
  }
  static PrimFuncRef batch_reshape_program(const Expr& x, const Expr& result) {
    ComputeBuilder b;
    Buffer in = input(b, "x", x);
    const std::vector<Expr>& shape = *known_shape(result.type());
    return b.finish({b.compute("T_reshape", kFloat32, shape, [&](Axes i) {
      return load(in, *index_before_reshape(i, shape, *known_shape(x.type())));
    })});
  }

  // Powers below 2^-115 are 0, so that their products with values are not too small for normal numbers, either.
  static constexpr double kLeastPower = -80;
  // The softmax: powers of each row, and the sums of these; the quotient where others read it before the product.
  struct Rows {
    Buffer powers, sums;
  };
  static Rows softmax_rows(ComputeBuilder& b, const Buffer& x, const std::vector<Expr>& shape) {
    const std::vector<Expr> rows(shape.begin(), shape.end() - 1), row = {shape.back()};
    auto in_row = [](const Buffer& buffer, Axes i, const Expr& k) {
      std::vector<Expr> at(i.begin(), i.end());
      at.push_back(k);
      return load(buffer, at);
    };
    auto of_row = [](const Buffer& buffer, Axes i) { return load(buffer, {i.begin(), i.end() - 1}); };
    Buffer maxima = b.reduce("T_softmax_maxelem", kFloat32, rows, row, lowest(kFloat32), combine_max,
                             [&](Axes i, Axes r) { return in_row(x, i, r[0]); });
    Buffer powers = b.compute("T_softmax_exp", kFloat32, shape,
                              [&](Axes i) { return power_in_softmax(at(x, i) - of_row(maxima, i), kLeastPower); });
    Buffer sums = b.reduce("T_softmax_expsum", kFloat32, rows, row, zero(kFloat32), combine_sum,
                           [&](Axes i, Axes r) { return in_row(powers, i, r[0]); });
    return {powers, sums};
  }
  // A sum of powers is at least 1, that of the largest element; without elements it is 0, and the product stays 0.
  static Expr inverse_of(const Buffer& sums, const std::vector<Expr>& at) {
    const Expr sum = load(sums, {at.begin(), at.end() - 1});
    return binary(BinaryOp::kDiv, one(kFloat32), max(sum, one(kFloat32)));
  }
  static PrimFuncRef softmax_program(const Expr& x) {
    ComputeBuilder b;
    const std::vector<Expr>& shape = *known_shape(x.type());
    const Rows rows = softmax_rows(b, input(b, "x", x), shape);
    return b.finish({b.compute("T_softmax_norm", kFloat32, shape,
                               [&](Axes i) { return at(rows.powers, i) * inverse_of(rows.sums, i); })});
  }
  // Returns the program of the second product, of the values or panels of them, and of the softmax of x, or where
  // `is_divided` of x itself.
  PrimFuncRef output_program(const Attention& found, const Expr& x, const std::optional<Expr>& panels,
                             bool is_divided) const {
    ComputeBuilder b;
    Buffer weights = input(b, "x", x);
    Buffer v = input(b, "value", panels.value_or(found.value.tensor));
    std::optional<Buffer> sums;
    if (!is_divided) {
      const Rows rows = softmax_rows(b, weights, *known_shape(x.type()));
      weights = rows.powers;
      sums = rows.sums;
    }
    std::vector<Expr> shape = *known_shape(x.type());
    shape.back() = found.second.column.domain.extent;
    Buffer product = b.reduce("attention", kFloat32, shape, {found.second.depth.domain.extent}, zero(kFloat32),
                              combine_sum, [&](Axes i, Axes r) {
                                std::vector<Expr> row(i.begin(), i.end() - 1);
                                row.push_back(r[0]);
                                const VarMap axes = axes_at(found.second, i, r[0]);
                                const Expr value =
                                    panels ? load_panels(v, values_of(found), axes) : load_at(v, found.value, axes);
                                return load(weights, row) * value;
                              });
    // The place of an element of the result in the product: its axes have the order of the weights.
    std::vector<const IterVar*> order;
    for (const IterVar& axis : found.second.batch) order.push_back(&axis);
    order.insert(order.end(), {&found.second.row, &found.second.column});
    const VarRef& result = var(found.transposed.value_or(found.output));
    auto place_of_result = [&](Axes i) {
      std::vector<Expr> at(i.begin(), i.end());
      if (found.transposed) at = finder_.source_of({result, at})->at;
      VarMap axes;
      for (size_t d = 0; d < at.size(); ++d) axes.emplace(found.second.spatial[d].var.get(), at[d]);
      return map_each(order, [&](const IterVar* axis) { return axes.at(axis->var.get()); });
    };
    bool is_in_order = !found.transposed;
    for (size_t d = 0; d < order.size(); ++d)
      is_in_order = is_in_order && same_node(order[d]->var, found.second.spatial[d].var);
    if (!sums && is_in_order) return b.finish({product});
    return b.finish({b.compute("T_attention", kFloat32, *known_shape(result.type()), [&](Axes i) {
      const std::vector<Expr> place = place_of_result(i);
      const Expr value = load(product, place);
      return sums ? value * inverse_of(*sums, place) : value;
    })});
  }

  // ---- Products that read their operands where they lie

  // Returns the product as a call with these elements in place of its operands.
  Expr direct_product(const std::string& name, const ProductForm& product, const TensorElement& left,
                      const TensorElement& right, const VarRef& result) {
    ComputeBuilder b;
    Buffer x = input(b, "left", left.tensor), y = input(b, "right", right.tensor);
    Buffer sums = b.reduce(name, kFloat32, *known_shape(result.type()), {product.depth.domain.extent}, zero(kFloat32),
                           combine_sum, [&](Axes i, Axes r) {
                             VarMap axes = {{product.depth.var.get(), r[0]}};
                             for (size_t d = 0; d < i.size(); ++d) axes.emplace(product.spatial[d].var.get(), i[d]);
                             return load_at(x, left, axes) * load_at(y, right, axes);
                           });
    const PrimFuncRef program = with_op_name(b.finish({sums}), "matmul");
    return make_call_tir(module_, name, program, {left.tensor, right.tensor}, {result.type()}, result.span());
  }
  // Appends all members, the last one under another variable.
  void emit_direct(const Attention& found, const VarRef& as, std::vector<Binding>& bindings) {
    std::vector<size_t> members = found.members();
    std::ranges::sort(members);
    for (size_t i : members) {
      Binding binding = bindings_[i];
      if (i == found.scores) binding.value = direct_product("scores", found.first, found.query, found.key, var(i));
      if (i == found.output)
        binding.value = direct_product("weighted_values", found.second, found.second.left, found.value, var(i));
      if (i == members.back()) binding.var = as;
      bindings.push_back(std::move(binding));
    }
  }
  // Appends an If: a run of few queries reads keys in place, one of many copies them into panels first.
  void emit_by_length(const Attention& found, const VarRef& result, std::vector<Binding>& bindings) {
    auto branch = [&](const char* name, auto&& fill) {
      std::vector<Binding> inside;
      const VarRef value = make_var(name, result.type(), result.span());
      fill(value, inside);
      return seq_expr({{true, std::move(inside), {value}}}, value, result.span());
    };
    const Expr few = branch("few", [&](const VarRef& value, auto& inside) { emit_direct(found, value, inside); });
    const Expr many = branch("many", [&](const VarRef& value, auto& inside) { merge(found, value, inside); });
    const Expr is_few = found.first.row.domain.extent < int_imm(cost_model::kFewestQueries);
    const Expr condition = emit(bindings, is_few, "has_few_queries");
    bindings.push_back({make(If{condition, few, many}, result.type(), result.span()), std::nullopt, result});
  }
  void emit_chosen(const Chosen& chosen, std::vector<Binding>& bindings) {
    const Attention& found = chosen.attention;
    const VarRef& result = var(found.members().back());
    if (chosen.algorithm == "fused") merge(found, result, bindings);
    if (chosen.algorithm == "direct") emit_direct(found, result, bindings);
    if (chosen.algorithm == "by_length") emit_by_length(found, result, bindings);
  }

  // Returns whether values are copied into panels: many that lie apart, as those of heads side by side do, share few
  // places of a cache, and each row of queries reads all of them. (1,500 keys of 8 heads: 58 ms in place, 37 in
  // panels.)
  static bool packs_values(const Attention& found) {
    const auto keys = as_int(found.second.depth.domain.extent);
    const auto key = dim_of(found.value, found.second.depth), column = dim_of(found.value, found.second.column);
    const bool are_apart = *key + 1 != *column || *column + 1 != found.value.at.size();
    return are_apart && keys.value_or(INT64_MAX) >= cost_model::kFewestKeysInPanels;
  }

  void merge(const Attention& found, const VarRef& as, std::vector<Binding>& bindings) {
    ProgramComposer composer;
    const Expr panels = pack(keys_of(found), "key", var(found.scores).span(), bindings);
    std::optional<Expr> values;
    if (packs_values(found)) values = pack(values_of(found), "value", var(found.output).span(), bindings);
    composer.add(scores_program(found, panels), {found.query.tensor, panels}, var(found.scores));
    auto add_member = [&](size_t i) {
      if (const Call* reshaped = finder_.reshape_of(i))
        return composer.add(batch_reshape_program(reshaped->args[0], var(i)), {reshaped->args[0]}, var(i));
      composer.add(finder_.node(i)->call, finder_.node(i)->program, {var(i)});
    };
    std::ranges::for_each(found.before, add_member);
    const Expr& scores = finder_.node(found.softmax)->call.tensors[0];
    const bool is_divided = !found.behind.empty();
    if (is_divided) composer.add(softmax_program(scores), {scores}, var(found.softmax));
    std::ranges::for_each(found.behind, add_member);
    const Expr weights = is_divided ? var(found.behind.back()) : scores;
    const VarRef& result = var(found.transposed.value_or(found.output));
    composer.add(output_program(found, weights, values, is_divided), {weights, values.value_or(found.value.tensor)},
                 result);
    const Span span = span_of_nodes(span_of(bindings_[found.scores]),
                                    map_each(found.members(), [&](size_t i) { return span_of(bindings_[i]); }));
    PrimFuncRef program = with_op_name(composer.finish({result}, span), "attention");
    bindings.push_back(
        {make_call_tir(module_, "attention", program, composer.inputs(), {result.type()}, span), std::nullopt, as});
  }

  IRModule& module_;
  const PassContext& context_;
  const std::vector<Binding>& bindings_;
  AttentionFinder finder_;
};

// Returns the sequence with each If in a block of its own: a dataflow block holds none.
Expr with_branches_apart(const Expr& seq) {
  SeqExpr result = *cast<SeqExpr>(seq);
  std::vector<BindingBlock> blocks;
  for (BindingBlock& block : result.blocks) {
    blocks.push_back({block.dataflow, {}, {}});
    for (Binding& binding : block.bindings) {
      const bool is_branch = block.dataflow && binding.value.is<If>();
      if (is_branch) blocks.push_back({false, {}, {}});
      blocks.back().bindings.push_back(std::move(binding));
      if (is_branch) blocks.push_back({true, {}, {}});
    }
  }
  std::erase_if(blocks, [](const BindingBlock& block) { return block.bindings.empty(); });
  if (blocks.size() == cast<SeqExpr>(seq)->blocks.size()) return seq;
  // It also finds out which values the blocks now give to each other.
  return rewrite_blocks(seq_expr(std::move(blocks), result.body, seq.span()),
                        [](const BindingBlock& block, const VarSet&) { return block.bindings; });
}

// Branches and local functions have blocks of their own.
Expr fuse_sequence(const Expr& seq, IRModule& module, const PassContext& context) {
  const Expr fused = rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet& used_after) {
    std::vector<Binding> bindings = block.bindings;
    for (Binding& binding : bindings)
      binding.value =
          map_sequences(binding.value, [&](const Expr& inner) { return fuse_sequence(inner, module, context); });
    return block.dataflow ? AttentionFuser(module, context, bindings, used_after).run() : bindings;
  });
  return with_branches_apart(fused);
}

}  // namespace

IRModule fuse_attention(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return cast<Function>(
        map_sequences(function, [&](const Expr& body) { return fuse_sequence(body, result, context); }));
  });
}

}  // namespace relaxc
