// Statements of tensor programs. A Seq is a flat list: Bind and AllocBuffer scope over the statements after them.
#pragma once
#include "ir/expr.h"
#include "support/joined.h"

namespace relaxc {

struct Seq {
  std::vector<Stmt> stmts;
  RELAXC_FIELDS(Seq, stmts);
};

// Stores buffer[indices] = value. As in BufferLoad, at most the last index is a vector; masked lanes are not written.
struct BufferStore {
  Buffer buffer;
  Expr value;
  std::vector<Expr> indices;
  std::optional<Expr> predicate;
  RELAXC_FIELDS(BufferStore, buffer, value, indices, predicate);
};

// parallel: iterations run in any order, on any thread. vectorized: the extent is a constant once lowered, and each
// iteration is a lane. thread_binding: the iterations are bound to the thread axis named by `thread`. launch_thread is
// its lowered form, which names the threads of the kernel that runs.
enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kThreadBinding, kLaunchThread };
inline bool binds_thread(ForKind kind) { return kind == ForKind::kThreadBinding || kind == ForKind::kLaunchThread; }

// for var in [min, min + extent), every step-th (absent: 1; a step is positive). An extent <= 0 runs nothing.
struct For {
  VarRef var;
  Expr min, extent;
  ForKind kind = ForKind::kSerial;
  std::string thread = {};  // thread_binding and launch_thread: "blockIdx.x"
  Attrs annotations = {};
  Stmt body;
  std::optional<Expr> step = {};
  RELAXC_FIELDS(For, min, extent, (binds)var, kind, thread, annotations, body, step);
};
struct While {
  Expr condition;
  Stmt body;
  RELAXC_FIELDS(While, condition, body);
};
struct IfThenElse {
  Expr condition;
  Stmt then_body;
  std::optional<Stmt> else_body;
  RELAXC_FIELDS(IfThenElse, condition, then_body, else_body);
};
// Binds var = value for the rest of the enclosing Seq.
struct Bind {
  VarRef var;
  Expr value;
  RELAXC_FIELDS(Bind, value, (binds)var);
};
// Memory for the rest of the enclosing Seq; `contents`, a Constant, or undefined at first. A buffer over a pointer
// (BufferType::data) gets no memory: it is a view from here on.
struct AllocBuffer {
  Buffer buffer;
  Attrs annotations;
  std::optional<Expr> contents = {};
  RELAXC_FIELDS(AllocBuffer, (binds)buffer, annotations, contents);
};
// break, continue and `return value` are calls of tir.break_loop, tir.continue_loop and tir.ret.
struct Evaluate {
  Expr value;
  RELAXC_FIELDS(Evaluate, value);
};
// When the condition is false the kernel returns an error with the message, its parts joined, in which each `{}` stands
// for one of the values, integers that are evaluated only then. kind: what TVM raises; empty: RuntimeError.
struct Assert {
  Expr condition;
  std::vector<std::string> message;
  std::string kind = {};
  std::vector<Expr> values = {};
  std::string text() const { return joined(message, ""); }
  RELAXC_FIELDS(Assert, condition, message, kind, values);
};
// A named fact about `node` (0: about nothing in particular) in the body that passes agree on (T.attr).
struct AttrStmt {
  Expr node;
  std::string key;
  Expr value;
  Stmt body;
  RELAXC_FIELDS(AttrStmt, node, key, value, body);
};

// [min, min + extent).
struct Range {
  Expr min, extent;
  RELAXC_FIELDS(Range, min, extent);
};
// spatial: iterations are independent. reduce: they combine into the same elements. scan: they run in order.
// opaque: nothing is promised.
enum class IterKind : uint8_t { kSpatial, kReduce, kScan, kOpaque };
// A block's axis: the variable, its domain, and the value that the surrounding loops bind it to.
struct IterVar {
  VarRef var;
  Range domain;
  IterKind kind = IterKind::kSpatial;
  Expr value;
  RELAXC_FIELDS(IterVar, domain, kind, value, (binds)var);
};
struct BufferRegion {
  Buffer buffer;
  std::vector<Range> ranges;
  RELAXC_FIELDS(BufferRegion, buffer, ranges);
};
// A window of another buffer under a new name. `defines` are variables that occur bare in the window's shape, strides
// or offset; they get their values from the source's memory layout.
struct MatchBuffer {
  BufferRegion source;
  Buffer buffer;
  std::vector<VarRef> defines = {};
  RELAXC_FIELDS(MatchBuffer, source, (binds)defines, (binds)buffer);
};
// A unit of computation that schedules move: for each binding of its axes (where the predicate holds) the body reads
// only `reads` and writes only `writes`. init runs before the first iteration of the reduce axes, and once for each
// spatial point when the domain of the reduce axes is empty. (TVM's Block and BlockRealize in one.)
struct Block {
  std::string name;
  std::vector<IterVar> iter_vars = {};
  std::optional<Expr> predicate = {};  // over the surrounding loops' variables; absent: true
  std::vector<BufferRegion> reads = {}, writes = {};
  Attrs annotations = {};
  std::vector<Buffer> alloc_buffers = {};
  std::vector<MatchBuffer> match_buffers = {};
  std::optional<Stmt> init = {};
  Stmt body;
  RELAXC_FIELDS(Block, name, iter_vars, predicate, (binds)alloc_buffers, match_buffers, reads, writes, annotations,
                init, body);
};

// The block around the other blocks of a tensor program, which holds their buffers.
inline constexpr const char* kRootBlock = "root";
inline bool is_root(const Block& block) { return block.name == kRootBlock && block.iter_vars.empty(); }

// Returns [0, extent): the range that covers a dim.
Range whole_range(const Expr& extent);
// Flattens nested Seqs; a single statement is returned without a Seq.
Stmt seq(std::vector<Stmt> stmts, const Span& span = {});
Stmt store(Buffer buffer, Expr value, std::vector<Expr> indices, const Span& span = {});
Stmt evaluate(Expr value, const Span& span = {});
// Returns an empty Seq.
Stmt no_op();
Stmt loop(VarRef var, Expr extent, Stmt body, ForKind kind = ForKind::kSerial, const Span& span = {});

// The names of the kinds of loops and axes, as the text format has them after `T.` and `T.axis.`: one row each.
struct ForKindRow {
  ForKind kind;
  std::string_view name;
};
inline constexpr ForKindRow kForKinds[] = {{ForKind::kSerial, "serial"},
                                           {ForKind::kParallel, "parallel"},
                                           {ForKind::kVectorized, "vectorized"},
                                           {ForKind::kUnrolled, "unroll"},
                                           {ForKind::kThreadBinding, "thread_binding"},
                                           {ForKind::kLaunchThread, "launch_thread"}};
// The thread axes that are known; targets may define others.
inline constexpr std::string_view kThreadAxes[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z", "threadIdx.x",
                                                   "threadIdx.y", "threadIdx.z", "vthread",    "vthread.x",
                                                   "vthread.y",   "vthread.z",   "cthread"};
struct IterKindRow {
  IterKind kind;
  std::string_view name;
  char letter;  // in T.axis.remap; 0: it has none
};
inline constexpr IterKindRow kIterKinds[] = {{IterKind::kSpatial, "spatial", 'S'},
                                             {IterKind::kReduce, "reduce", 'R'},
                                             {IterKind::kScan, "scan", 0},
                                             {IterKind::kOpaque, "opaque", 0}};

constexpr const ForKindRow& info(ForKind kind) { return kForKinds[static_cast<size_t>(kind)]; }
constexpr const IterKindRow& info(IterKind kind) { return kIterKinds[static_cast<size_t>(kind)]; }
template <class Row, size_t kSize>
constexpr auto kind_named(const Row (&rows)[kSize], std::string_view name) -> std::optional<decltype(rows[0].kind)> {
  for (const Row& row : rows) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

}  // namespace relaxc
