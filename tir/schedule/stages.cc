#include "tir/schedule/stages.h"

#include <algorithm>

#include "ir/regions.h"
#include "tir/compute.h"

namespace relaxc {

std::vector<Expr> Stage::extents() const {
  std::vector<Expr> result;
  for (const IterVar& axis : axes) result.push_back(axis.domain.extent);
  return result;
}

bool StagedProgram::is_intermediate(const Buffer& buffer) const {
  return std::any_of(intermediates.begin(), intermediates.end(), [&](const Buffer& b) { return same_node(b, buffer); });
}

std::vector<size_t> StagedProgram::readers(const Buffer& buffer) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < stages.size(); ++i) {
    Accesses accesses = find_accesses(stages[i].block->body, stages[i].block->init);
    bool reads = std::any_of(accesses.reads.begin(), accesses.reads.end(),
                             [&](const BufferRegion& r) { return same_node(r.buffer, buffer); });
    if (reads) result.push_back(i);
  }
  return result;
}

namespace {

std::optional<Stage> find_stage(const Stmt& nest) {
  std::vector<const For*> loops;
  Stmt inner = nest;
  while (const For* loop = inner.as<For>()) {
    if (loop->kind != ForKind::kSerial || !loop->annotations.empty() || !is_int(loop->min, 0)) return std::nullopt;
    loops.push_back(loop);
    inner = loop->body;
  }
  auto block = try_cast<Block>(inner);
  if (!block || (*block)->predicate || !(*block)->alloc_buffers.empty() || !(*block)->match_buffers.empty())
    return std::nullopt;
  if ((*block)->iter_vars.size() != loops.size()) return std::nullopt;
  Stage stage{{}, 0, *block};
  for (IterKind kind : {IterKind::kSpatial, IterKind::kReduce}) {
    for (const IterVar& axis : (*block)->iter_vars) {
      if (axis.kind != kind) continue;
      auto loop = std::find_if(loops.begin(), loops.end(), [&](const For* l) { return same_node(l->var, axis.value); });
      if (loop == loops.end() || !is_int(axis.domain.min, 0)) return std::nullopt;
      if (!structural_equal((*loop)->extent, axis.domain.extent)) return std::nullopt;
      stage.axes.push_back(axis);
      if (kind == IterKind::kSpatial) ++stage.num_spatial;
    }
  }
  if (stage.axes.size() != loops.size()) return std::nullopt;  // scan or opaque axes
  return stage;
}

}  // namespace

std::optional<StagedProgram> find_stages(const PrimFuncRef& function) {
  StagedProgram program{function, {}, {}};
  Stmt body = function->body;
  if (const Block* root = body.as<Block>()) {
    if (root->iter_vars.empty() && !root->init && root->match_buffers.empty() && !root->predicate) {
      bool is_root = root->body.is<Seq>() || root->body.is<For>() || root->body.is<Block>();
      if (is_root) {
        program.intermediates = root->alloc_buffers;
        body = root->body;
      }
    }
  }
  std::vector<Stmt> nests = {body};
  if (const Seq* list = body.as<Seq>()) nests = list->stmts;
  for (const Stmt& nest : nests) {
    std::optional<Stage> stage = find_stage(nest);
    if (!stage) return std::nullopt;
    program.stages.push_back(std::move(*stage));
  }
  return program;
}

PrimFuncRef replace_stages(const StagedProgram& program, std::vector<Stmt> nests) {
  Stmt body = seq(std::move(nests));
  std::unordered_set<const NodeHeader*> used;
  walk(
      body, [&](const BufferLoad& load) { used.insert(load.buffer.get()); },
      [&](const BufferStore& store) { used.insert(store.buffer.get()); });
  std::vector<Buffer> buffers = program.intermediates;
  std::erase_if(buffers, [&](const Buffer& buffer) { return !used.contains(buffer.get()); });
  PrimFunc copy = *program.function;
  copy.body = root_block(std::move(buffers), body);
  copy.attrs.set("tir.is_scheduled", true);
  return make_prim_func(std::move(copy), program.function.span());
}

std::optional<Expr> access_stride(const Buffer& buffer, const std::vector<Expr>& indices, const VarRef& axis,
                                  const Analyzer& facts) {
  bool plain = true;
  Expr position = int_imm(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    walk(indices[d], [&](const BufferLoad&) { plain = false; });
    position = position * cast_to(buffer_type(buffer).shape[d], kInt64) + cast_to(indices[d], kInt64);
  }
  if (!plain) return std::nullopt;
  Expr stepped = substitute(position, {{axis.get(), static_cast<const Expr&>(axis) + 1}});
  Expr stride = facts.simplify(stepped - position);
  bool varies = false;
  walk(stride, [&](const Ref<Var>& var) { varies = varies || same_node(var, axis); });
  if (varies) return std::nullopt;
  return stride;
}

// ---- Inlining

namespace {

// out[i, j, ...] = value, with the axes as indices in order.
bool stores_at_axes(const Stage& stage) {
  const BufferStore* store = stage.single_store();
  if (!store || store->indices.size() != stage.num_spatial) return false;
  for (size_t d = 0; d < stage.num_spatial; ++d) {
    if (!same_node(store->indices[d], stage.axes[d].var)) return false;
  }
  return true;
}

size_t count_loads(const Stage& stage, const Buffer& buffer) {
  size_t count = 0;
  walk(stage.block->body, [&](const BufferLoad& load) { count += same_node(load.buffer, buffer); });
  return count;
}

// Cheap enough to be computed at each of several uses: loads, casts and selects, no arithmetic on data to speak of.
// Index arithmetic costs nothing, but its size is bounded too: each of a chain of x + x doubles it.
bool is_cheap(const Stage& stage) {
  int work = 0, size = 0;
  walk_nodes(stage.single_store()->value, [&](const NodeRef&) { return ++size <= 100; });
  if (size > 100) return false;
  walk(
      stage.single_store()->value, [&](const Ref<Call>& call) { work += op_name(call) == "tir.if_then_else" ? 1 : 10; },
      [&](const Binary& op) { work += dtype_of(op.a).is_float() ? 2 : 0; }, [&](const BufferLoad&) { work += 1; });
  return work <= 5;
}

Stage with_body(const Stage& stage, const Stmt& body) {
  Block copy = *stage.block;
  copy.body = body;
  Accesses accesses = find_accesses(copy.body, copy.init);
  copy.reads = accesses.reads;
  copy.writes = accesses.writes;
  Stage result = stage;
  result.block = make(std::move(copy), stage.block.span());
  return result;
}

Stage inline_into(const Stage& reader, const Stage& producer) {
  const BufferStore* store = producer.single_store();
  Stmt body = rewrite(reader.block->body, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    if (!same_node(load->buffer, store->buffer)) return std::nullopt;
    VarMap axes;
    for (size_t d = 0; d < producer.num_spatial; ++d) axes.emplace(producer.axes[d].var.get(), load->indices[d]);
    return substitute(store->value, axes);
  });
  return with_body(reader, body);
}

}  // namespace

StagedProgram inline_stages(StagedProgram program) {
  for (size_t i = 0; i < program.stages.size();) {
    const Stage& producer = program.stages[i];
    bool candidate =
        !producer.reduces() && stores_at_axes(producer) && program.is_intermediate(producer.single_store()->buffer);
    std::vector<size_t> readers = candidate ? program.readers(producer.single_store()->buffer) : std::vector<size_t>{};
    bool worth = candidate && !readers.empty();
    for (size_t reader : readers) {
      const Stage& stage = program.stages[reader];
      // Statements with loops of their own may read an element any number of times.
      walk(stage.block->body, [&](const For&) { worth = false; }, [&](const While&) { worth = false; });
      // A contraction reads each element many times, and wants its operands in the layout they have.
      if (is_contraction(stage)) worth = false;
      bool repeated = readers.size() > 1 || count_loads(stage, producer.single_store()->buffer) > 1;
      if (repeated && !is_cheap(producer)) worth = false;
      // A window (pooling) reads an element from several outputs.
      if (stage.reduces() && !is_cheap(producer)) {
        bool every_axis_once = true;
        walk(stage.block->body, [&](const BufferLoad& load) {
          if (!same_node(load.buffer, producer.single_store()->buffer)) return;
          for (const Expr& index : load.indices)
            every_axis_once = every_axis_once && (index.is<Var>() || index.is<IntImm>());
        });
        if (!every_axis_once) worth = false;
      }
    }
    if (!worth) {
      ++i;
      continue;
    }
    for (size_t reader : readers) program.stages[reader] = inline_into(program.stages[reader], producer);
    program.stages.erase(program.stages.begin() + static_cast<long>(i));
  }
  return program;
}

}  // namespace relaxc
