#include "tests/text/random_module.h"

#include <limits>
#include <random>

#include "ir/builder.h"
#include "ir/intrinsics.h"
#include "ir/regions.h"
#include "tests/ops/samples.h"
#include "tir/compute.h"

namespace relaxc::test {

namespace {

constexpr DType kDTypes[] = {
    kFloat32,          kInt32,         kInt64,         kBool,          kFloat64, DType::float_(16),
    DType::bfloat16(), DType::int_(8), DType::uint(8), DType::uint(16)};

// Programs count in any of these; a graph's dims are int64.
constexpr DType kDimDTypes[] = {kInt64, kInt32, kInt64, kInt32, DType::int_(16), DType::uint(8), DType::uint(32)};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t count) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T, size_t N>
  const T& of(const T (&items)[N]) {
    return items[below(N)];
  }
  template <class T>
  const T& of(const std::vector<T>& items) {
    return items[static_cast<size_t>(below(static_cast<int64_t>(items.size())))];
  }
  DType dtype() { return of(kDTypes); }
  int64_t integer() { return chance(80) ? below(9) - 3 : static_cast<int64_t>(engine_()); }
  double real() {
    constexpr double kOdd[] = {0.0, -0.0, 0.1, -1.5, 1e-30, 65504, 3.0, std::numeric_limits<double>::infinity()};
    return chance(60) ? of(kOdd) : static_cast<double>(integer()) / 7;
  }
  Attrs annotations() {
    Attrs attrs;
    if (chance(75)) return attrs;
    attrs.set("pragma_unroll", below(3));
    if (chance(50)) attrs.set("user.layout.hint", std::string("a \"quoted\"\nname"));
    if (chance(30)) attrs.set("user.tile", std::vector<int64_t>{1, below(8), -2});
    if (chance(30)) attrs.set("user.exact", true);
    if (chance(30)) attrs.set("user.scale", 0.25);
    if (chance(20)) attrs.set("user.wide", int_imm(integer(), kInt64));
    if (chance(20))
      attrs.set("user.halves",
                AttrList{AttrValue(float_imm(0.5, DType::float_(16))), AttrValue(int_imm(below(100), DType::uint(8)))});
    return attrs;
  }

 private:
  std::mt19937_64 engine_;
};

// ---- Tensor programs

class ProgramMaker {
 public:
  explicit ProgramMaker(Random& random) : random_(random) {}

  PrimFuncRef make_program(const std::string& name) {
    PrimFunc function{.params = {}, .body = no_op(), .attrs = {}};
    for (int64_t i = 0; i <= random_.below(2); ++i)
      dims_.push_back(make_var(i ? "m" : "n", prim_type(random_.of(kDimDTypes))));
    for (int64_t i = 0; i <= random_.below(3); ++i) {
      buffers_.push_back(buffer(fmt::format("B{}", i), true));
      function.params.push_back(buffers_.back());
    }
    // Dims that no buffer binds are params themselves.
    std::vector<VarRef> bound;
    for (const Buffer& b : buffers_) {
      for (const Expr& dim : buffer_type(b).shape) {
        if (dim.is<Var>()) bound.push_back(cast<Var>(dim));
      }
    }
    for (const VarRef& dim : dims_) {
      bool known = std::any_of(bound.begin(), bound.end(), [&](const VarRef& other) { return same_node(other, dim); });
      if (!known) function.params.push_back(dim);
      ints_.push_back(dim);
    }
    if (random_.chance(30)) {
      VarRef scalar = make_var("k", prim_type(random_.dtype()));
      function.params.push_back(scalar);
      scalars_.push_back(scalar);
    }
    if (random_.chance(80)) function.attrs.set("global_symbol", name);
    if (random_.chance(20)) function.attrs.set("tir.noalias", true);
    function.body = root_block({}, statements(3));
    return make_prim_func(std::move(function));
  }

 private:
  Buffer buffer(const std::string& name, bool is_param) {
    std::vector<Expr> shape;
    for (int64_t d = random_.below(4); d > 0; --d) {
      if (random_.chance(50)) {
        shape.push_back(int_imm(random_.below(9), random_.chance(50) ? kInt32 : kInt64));
      } else {
        const VarRef& dim = random_.of(dims_);
        shape.push_back(is_param || random_.chance(50) ? Expr(dim) : dim * 2 + 1);
      }
    }
    constexpr const char* kScopes[] = {"global", "global", "local", "shared"};
    return make_buffer(name, random_.dtype(), std::move(shape), is_param ? "global" : random_.of(kScopes));
  }

  // Everything defined in `work` is out of scope after it.
  template <class F>
  auto scoped(F&& work) {
    size_t buffers = buffers_.size(), ints = ints_.size(), scalars = scalars_.size();
    auto result = work();
    buffers_.resize(buffers, buffers_.front());
    ints_.erase(ints_.begin() + static_cast<int64_t>(ints), ints_.end());
    scalars_.erase(scalars_.begin() + static_cast<int64_t>(scalars), scalars_.end());
    return result;
  }

  Stmt statements(int depth) {
    return scoped([&] {
      std::vector<Stmt> list;
      for (int64_t i = random_.below(3); i >= 0; --i) list.push_back(statement(depth, list));
      return seq(std::move(list));
    });
  }

  Stmt statement(int depth, std::vector<Stmt>& before) {
    switch (depth > 0 ? random_.below(13) : random_.below(4)) {
      case 0:
      case 1:
      case 2:
        return store_somewhere();
      case 3:
        return evaluate(expr(random_.dtype(), 2));
      case 4:
      case 5:
        return for_loop(depth);
      case 6:
        return make(While{condition(2), statements(depth - 1)});
      case 7: {
        std::optional<Stmt> otherwise;
        Expr test = condition(2);
        Stmt then_body = statements(depth - 1);
        if (random_.chance(50)) otherwise = statements(depth - 1);
        return make(IfThenElse{test, then_body, otherwise});
      }
      case 8: {
        Expr value = expr(random_.dtype(), 2);
        VarRef var = make_var("v", value.type());
        before.push_back(make(Bind{var, value}));
        scalars_.push_back(var);
        return store_somewhere();
      }
      case 9: {
        Buffer memory = buffer("memory", false);
        before.push_back(make(AllocBuffer{memory, random_.annotations()}));
        buffers_.push_back(memory);
        return store_somewhere();
      }
      case 10:
        switch (random_.below(3)) {
          case 0:
            return make(Assert{condition(1), {"it does not hold: \"n\""}});
          case 1:
            return make(Assert{condition(1), {}});
          default:
            return make(Assert{condition(1), {"expected ", "", "4"}, "ValueError"});
        }
      case 11:
        return block_nest(depth);
      default:
        return make(AttrStmt{random_.chance(70) ? int_imm(0, kInt32) : combiner(), "pragma_hint", expr(kInt32, 1),
                             statements(depth - 1)});
    }
  }

  // T.comm_reducer(lambda x, y: x + y, [T.float32(0)])
  Expr combiner() {
    VarRef x = make_var("x", prim_type(kFloat32)), y = make_var("y", prim_type(kFloat32));
    Expr sum = make(Lambda{{x, y}, {binary(BinaryOp::kAdd, x, y)}}, object_type());
    return intrinsic("tir.comm_reducer", {sum, float_imm(0)}, DType::handle());
  }

  Stmt for_loop(int depth) {
    return scoped([&] {
      DType dtype = random_.of(kDimDTypes);
      VarRef var = make_var("i", prim_type(dtype));
      constexpr ForKind kKinds[] = {ForKind::kSerial,   ForKind::kSerial,     ForKind::kParallel,
                                    ForKind::kUnrolled, ForKind::kVectorized, ForKind::kThreadBinding};
      For loop{.var = var,
               .min = int_imm(random_.chance(70) ? 0 : random_.below(4), dtype),
               .extent = random_.chance(50) ? int_imm(random_.below(8), dtype) : cast_to(random_.of(dims_), dtype),
               .kind = random_.of(kKinds),
               .thread = {},
               .annotations = random_.annotations(),
               .body = no_op()};
      if (loop.kind == ForKind::kThreadBinding) loop.thread = "blockIdx.x";
      bool is_serial = loop.kind == ForKind::kSerial;
      if (is_serial && random_.chance(25)) loop.step = int_imm(random_.below(3) + 2, dtype);
      ints_.push_back(var);
      loop.body = statements(depth - 1);
      if (is_serial && random_.chance(30)) {
        const char* leave = random_.chance(50) ? "tir.break_loop" : "tir.continue_loop";
        Stmt jump = evaluate(intrinsic(leave, {}, DType::void_()));
        loop.body = seq({loop.body, make(IfThenElse{condition(1), jump, std::nullopt})});
      }
      return make(std::move(loop));
    });
  }

  // Loops around a block with an axis for each.
  Stmt block_nest(int depth) {
    return scoped([&] {
      Block block{fmt::format("block{}", random_.below(3)), {}, {}, {}, {}, {}, {}, {}, {}, no_op()};
      std::vector<VarRef> loops;
      constexpr IterKind kKinds[] = {IterKind::kSpatial, IterKind::kSpatial, IterKind::kReduce, IterKind::kScan,
                                     IterKind::kOpaque};
      std::vector<VarRef> reduced;
      for (int64_t d = random_.below(3); d >= 0; --d) {
        DType dtype = random_.of(kDimDTypes);
        Expr extent = random_.chance(50) ? int_imm(random_.below(7), dtype) : cast_to(random_.of(dims_), dtype);
        loops.push_back(make_var("i", prim_type(dtype)));
        VarRef axis = make_var("vi", prim_type(dtype));
        IterKind kind = random_.of(kKinds);
        block.iter_vars.push_back({axis, {int_imm(0, dtype), extent}, kind, loops.back()});
        (kind == IterKind::kReduce ? reduced : ints_).push_back(axis);
      }
      bool outer = std::exchange(in_block_, true);
      if (!reduced.empty() && random_.chance(60)) block.init = store_somewhere();
      ints_.insert(ints_.end(), reduced.begin(), reduced.end());
      if (random_.chance(25)) block.predicate = Expr(loops[0]) < int_imm(5, dtype_of(loops[0]));
      block.annotations = random_.annotations();
      if (random_.chance(25)) {
        block.alloc_buffers.push_back(buffer("cache", false));
        buffers_.push_back(block.alloc_buffers.back());
      }
      block.body = depth > 1 ? statements(depth - 2) : store_somewhere();
      in_block_ = outer;
      Accesses accesses = find_accesses(block.body, block.init);
      auto outside = [&](std::vector<BufferRegion>& regions) {
        std::erase_if(regions, [&](const BufferRegion& region) {
          return !block.alloc_buffers.empty() && same_node(region.buffer, block.alloc_buffers[0]);
        });
      };
      outside(accesses.reads);
      outside(accesses.writes);
      block.reads = accesses.reads;
      block.writes = accesses.writes;
      std::vector<IterVar> axes = block.iter_vars;
      Stmt result = make(std::move(block));
      for (size_t d = loops.size(); d-- > 0;) result = loop(loops[d], axes[d].domain.extent, result);
      return result;
    });
  }

  std::vector<Expr> indices(const Buffer& b) {
    std::vector<Expr> result;
    for (size_t d = 0; d < buffer_type(b).shape.size(); ++d) {
      if (in_block_ && random_.chance(95)) {  // what the declared regions are known to hold, or cannot be decided
        result.push_back(random_.chance(40) ? int_imm(0, kInt32) : Expr(ints_.back()));
      } else if (in_block_) {
        result.push_back(cast_to(
            relaxc::load(buffers_.front(), std::vector<Expr>(buffer_type(buffers_.front()).shape.size(), int_imm(0))),
            kInt32));
      } else if (random_.chance(30)) {
        result.push_back(int_imm(random_.below(3), random_.chance(50) ? kInt32 : kInt64));
      } else if (random_.chance(70)) {
        result.push_back(random_.of(ints_));
      } else {
        result.push_back(expr(random_.chance(50) ? kInt32 : kInt64, 1));
      }
    }
    return result;
  }

  Stmt store_somewhere() {
    const Buffer target = random_.of(buffers_);
    DType dtype = buffer_type(target).dtype;
    std::vector<Expr> at = indices(target);
    if (!at.empty() && random_.chance(15)) {  // a vector
      constexpr int64_t kLanes = 4;
      for (Expr& index : at) index = random_.of(ints_);  // they stand there twice, so they define nothing
      at.back() = ramp(cast_to(at.back(), kInt32), int_imm(1, kInt32), kLanes);
      BufferStore payload{target, broadcast(expr(dtype, 2), kLanes), at, std::nullopt};
      if (random_.chance(50)) {
        payload.value = relaxc::load(target, at);
        payload.predicate = broadcast(condition(1), kLanes);
      }
      return make(std::move(payload));
    }
    return store(target, expr(dtype, 3), std::move(at));
  }

  Expr condition(int depth) { return expr(kBool, depth); }

  Expr immediate(DType dtype) {
    if (dtype.is_bool()) return bool_imm(random_.chance(50));
    if (dtype.is_float()) return float_imm(random_.real(), dtype);
    int64_t value = random_.integer();
    return int_imm(fold_int(BinaryOp::kAdd, value, 0, dtype).value_or(0), dtype);
  }

  Expr expr(DType dtype, int depth) {
    if (depth <= 0 || random_.chance(15)) return leaf(dtype);
    switch (random_.below(8)) {
      case 0:
        return leaf(dtype);
      case 1:
        return select(condition(depth - 1), expr(dtype, depth - 1), expr(dtype, depth - 1));
      case 2:
        return if_then_else(condition(depth - 1), expr(dtype, depth - 1), expr(dtype, depth - 1));
      case 3: {
        DType from = random_.dtype();
        if (from == dtype) return leaf(dtype);
        return cast_to(expr(from, depth - 1), dtype);
      }
      case 4:
        if (random_.chance(30)) {
          Expr value = expr(random_.dtype(), depth - 1);
          VarRef var = make_var("t", value.type());
          scalars_.push_back(var);
          Expr body = expr(dtype, depth - 1);
          scalars_.pop_back();
          return let(var, value, body);
        }
        [[fallthrough]];
      default:
        return operation(dtype, depth - 1);
    }
  }

  Expr leaf(DType dtype) {
    std::vector<Expr> choices;
    for (const std::vector<VarRef>* list : {&ints_, &scalars_}) {
      for (const VarRef& var : *list) {
        if (dtype_of(var) == dtype) choices.push_back(var);
      }
    }
    if (!choices.empty() && random_.chance(60)) return random_.of(choices);
    for (int tries = 0; tries < 2 && !in_index_; ++tries) {
      const Buffer& b = random_.of(buffers_);
      if (buffer_type(b).dtype != dtype) continue;
      in_index_ = true;
      Expr result = relaxc::load(b, indices(b));
      in_index_ = false;
      return result;
    }
    return immediate(dtype);
  }

  Expr operation(DType dtype, int depth) {
    if (dtype.is_bool()) {
      constexpr BinaryOp kCompare[] = {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT,
                                       BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE};
      if (random_.chance(20)) return not_(condition(depth));
      if (random_.chance(30))
        return binary(random_.chance(50) ? BinaryOp::kAnd : BinaryOp::kOr, condition(depth), condition(depth));
      DType operand = random_.chance(50) ? kInt32 : kFloat32;
      return binary(random_.of(kCompare), expr(operand, depth), expr(operand, depth));
    }
    if (random_.chance(25)) {
      for (int tries = 0; tries < 8; ++tries) {
        const Intrinsic& row =
            intrinsics()[static_cast<size_t>(random_.below(static_cast<int64_t>(intrinsics().size())))];
        if (row.result != Intrinsic::Result::kSame || (dtype.is_integral() && !row.integer)) continue;
        std::vector<Expr> args;
        for (int i = 0; i < row.arity; ++i) args.push_back(expr(dtype, depth));
        return intrinsic(row.name, std::move(args), dtype);
      }
    }
    constexpr BinaryOp kNumbers[] = {BinaryOp::kAdd,      BinaryOp::kSub,      BinaryOp::kMul,
                                     BinaryOp::kDiv,      BinaryOp::kMin,      BinaryOp::kMax,
                                     BinaryOp::kTruncMod, BinaryOp::kFloorDiv, BinaryOp::kFloorMod};
    constexpr BinaryOp kIntegers[] = {BinaryOp::kBitAnd, BinaryOp::kBitOr, BinaryOp::kBitXor, BinaryOp::kShiftLeft,
                                      BinaryOp::kShiftRight};
    BinaryOp op = dtype.is_integral() && random_.chance(25) ? random_.of(kIntegers) : random_.of(kNumbers);
    return binary(op, expr(dtype, depth), expr(dtype, depth));
  }

  Random& random_;
  std::vector<VarRef> dims_, ints_, scalars_;
  std::vector<Buffer> buffers_;
  bool in_index_ = false, in_block_ = false;
};

// ---- Graph functions

class GraphMaker {
 public:
  GraphMaker(const OpTable& ops, IRModule& module, Random& random)
      : ops_(ops), module_(module), random_(random), builder_(std::make_unique<Builder>(ops)) {}

  // A param of a type that no operator asks for.
  void unusual_param() {
    Type tensor = tensor_type({int_imm(6), int_imm(4)}, random_.dtype());
    params_.push_back(make_var("callable", make(FuncType{std::vector<Type>{tensor, object_type()}, tensor})));
    params_.push_back(make_var("sharded", make(DTensorType{tensor, {{2, 2}, {0, 1, 2, 3}}, "S[1], R"})));
  }

  FunctionRef make_graph(const std::string& name, const std::vector<const OpRow*>& rows) {
    std::vector<OpSample> samples;
    for (const OpRow* row : rows) take(*row, samples);
    bool dataflow = pure_ && random_.chance(60);
    if (dataflow) builder_->begin_dataflow();
    for (const OpSample& sample : samples) emit(sample);
    if (random_.chance(50)) values_.push_back(builder_->emit(random_constant(), "c"));
    if (random_.chance(40)) call_program();
    if (random_.chance(40)) cast_something();
    if (random_.chance(30)) values_.push_back(builder_->emit(shape_expr({int_imm(2), int_imm(random_.below(9))}), "s"));
    if (dataflow) builder_->end_dataflow({});
    if (random_.chance(30)) branch(samples);
    if (random_.chance(20)) unusual_param();
    Expr body = result();
    Function function{
        .params = params_, .body = builder_->finish(body), .result = body.type(), .pure = pure_, .attrs = {}};
    if (random_.chance(80)) function.attrs.set("global_symbol", name);
    return make_function(std::move(function));
  }

 private:
  void take(const OpRow& row, std::vector<OpSample>& samples) {
    auto sample = sample_call(ops_, row, static_cast<uint64_t>(random_.below(12)));
    if (!sample) return;
    for (const auto& [name, function] : sample->functions) {
      if (module_.find(name)) return;  // another one of that name is there
    }
    module_.functions.insert(sample->functions.begin(), sample->functions.end());
    params_.insert(params_.end(), sample->params.begin(), sample->params.end());
    pure_ = pure_ && row.pure;
    samples.push_back(std::move(*sample));
  }
  void emit(const OpSample& sample) {
    Type type = infer_call_type(sample.call, {}, ops_);
    Expr value = builder_->emit(make(Call(sample.call), type), "y");
    if (!type.is<TupleType>()) return values_.push_back(value);
    if (!type.as<TupleType>()->items.empty()) values_.push_back(builder_->emit(tuple_get(value, 0), "item"));
  }

  Expr random_constant() {
    DType dtype = random_.dtype();
    std::vector<int64_t> shape;
    for (int64_t d = random_.below(3); d > 0; --d) shape.push_back(random_.below(4));
    Tensor data = Tensor::empty(shape, dtype);
    for (int64_t i = 0; i < data.size(); ++i) {
      if (dtype.is_float()) {
        data.set_double(i, random_.real());
      } else {
        data.set_double(i, static_cast<double>(random_.below(2)));
      }
    }
    return constant(std::move(data));
  }

  // A call_tir of a program of the module, on params that fit it.
  void call_program() {
    auto it = module_.functions.find("random_program");
    if (it == module_.functions.end()) return;
    auto program = cast<PrimFunc>(it->second);
    VarMap dims;
    std::vector<Expr> tensors, scalars;
    std::vector<Type> outputs;
    std::vector<Buffer> buffers = buffer_params(program);
    for (size_t i = 0; i < buffers.size(); ++i) {
      std::vector<Expr> shape;
      for (const Expr& dim : buffer_type(buffers[i]).shape) {
        if (dim.is<Var>()) dims.emplace(dim.get(), make_dim(dim.as<Var>()->name));
        shape.push_back(dim.is<Var>() ? dims.at(dim.get()) : cast_to(dim, kInt64));
      }
      Type type = tensor_type(std::move(shape), buffer_type(buffers[i]).dtype);
      bool bound = true;  // the last buffer is the output, whose dims the inputs bind
      if (i + 1 == buffers.size()) {
        outputs.push_back(type);
        for (const VarRef& var : free_vars(type)) {
          bool given = false;
          for (const Expr& tensor : tensors) {
            for (const VarRef& other : free_vars(tensor.type())) given = given || same_node(other, var);
          }
          bound = bound && given;
        }
        if (!bound) return;
        continue;
      }
      params_.push_back(make_var("p", type));
      tensors.push_back(params_.back());
    }
    for (const VarRef& param : program->params) {
      if (!param.type().is<PrimType>()) continue;
      if (!dtype_of(param).is_integral()) return;
      scalars.push_back(int_imm(random_.below(5)));
    }
    std::vector<Expr> args = {global_var("random_program", program.type()), tuple(tensors)};
    if (!scalars.empty()) args.push_back(shape_expr(scalars));
    values_.push_back(
        builder_->emit(call(op_ref("relax.call_tir"), std::move(args), {}, outputs[0], {}, outputs), "called"));
  }

  void cast_something() {
    for (const VarRef& param : params_) {
      if (!param.type().is<TensorType>()) continue;
      std::vector<Expr> shape;
      for (int64_t d = std::max<int64_t>(known_rank(param.type()), 0); d > 0; --d) shape.push_back(make_dim("q"));
      if (known_rank(param.type()) < 0) return;
      // Not returned: the result's type must not mention dims of the body.
      builder_->match_cast(param, tensor_type(shape, tensor_dtype(param.type())), "cast");
      return;
    }
  }

  void branch(const std::vector<OpSample>& samples) {
    VarRef condition = make_var("condition", tensor_type({}, kBool));
    params_.push_back(condition);
    auto side = [&] {
      std::unique_ptr<Builder> outer = std::exchange(builder_, std::make_unique<Builder>(ops_));
      auto values = values_;
      for (const OpSample& sample : samples) emit(sample);
      Expr value = builder_->emit(random_scalar(), "side");
      values_ = values;
      Expr body = builder_->finish(value);
      builder_ = std::move(outer);
      return body;
    };
    Expr then_branch = side(), else_branch = side();
    values_.push_back(
        builder_->emit(make(If{condition, then_branch, else_branch}, tensor_type({}, kFloat32)), "either"));
  }
  Expr random_scalar() {
    Tensor data = Tensor::empty({}, kFloat32);
    data.set_double(0, random_.real());
    return constant(std::move(data));
  }

  Expr result() {
    if (values_.empty()) return shape_expr({int_imm(1)});
    if (values_.size() == 1 || random_.chance(40)) return values_.back();
    return tuple(values_);
  }

  const OpTable& ops_;
  IRModule& module_;
  Random& random_;
  std::unique_ptr<Builder> builder_;
  std::vector<VarRef> params_;
  std::vector<Expr> values_;
  bool pure_ = true;
};

}  // namespace

IRModule random_module(const OpTable& ops, uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15u + 1);
  IRModule module;
  if (random.chance(70)) {
    PrimFuncRef program = ProgramMaker(random).make_program("random_program");
    module.functions.emplace("random_program", program);
  }
  size_t count = ops.rows().size();
  std::vector<const OpRow*> rows = {&ops.rows()[seed % count]};
  while (random.chance(50)) rows.push_back(&ops.rows()[static_cast<size_t>(random.below(static_cast<int64_t>(count)))]);
  FunctionRef graph = GraphMaker(ops, module, random).make_graph("main", rows);
  module.functions.emplace("main", graph);
  if (random.chance(20)) module.attrs.set("system_lib_prefix", std::string("lib_"));
  return module;
}

}  // namespace relaxc::test
