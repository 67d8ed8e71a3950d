// The interpreter's compiled form: a tree of small objects with the variables resolved to slots. Private to
// tir/interpret/.
//
// Vectors are evaluated lane by lane: expressions are pure, so lane l of a vector expression is the expression
// evaluated with frame.lane = l, where Ramp and vector variables read the lane and everything else passes it on.
#pragma once
#include <cstring>
#include <memory>
#include <unordered_map>

#include "ir/visit.h"
#include "support/diagnostic.h"

namespace relaxc::interpreter {

union Word {
  int64_t i;
  double f;
};

// A buffer in scope: dims and strides are known numbers. Index arithmetic counts elements (vectors of dtype.lanes).
struct BufferState {
  char* data = nullptr;
  int64_t capacity = 0;  // elements at data
  int64_t element_bytes = 1;
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
  std::vector<uint64_t> storage;  // of an allocation
  // One flag per byte at data: whether the program has written it. Null where the contents came from outside.
  uint8_t* written = nullptr;
  std::vector<uint8_t> written_storage;  // of an allocation
  int64_t depth = 0;                     // of the block that made it; 0 for params
};

// The elements that the innermost running block declares to access, evaluated.
struct DeclaredRegion {
  int slot;
  bool is_write;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // begin, end
};
struct RunningBlock {
  const std::string* name;
  bool has_init;
  std::vector<DeclaredRegion> regions;
};

struct Frame {
  std::vector<Word> slots;
  std::vector<BufferState> buffers;
  int64_t lane = 0;
  int64_t steps_left = INT64_MAX;
  int64_t alloc_bytes_left = 0;
  // Set by break and continue until the innermost loop has read it; the statements in between stop.
  enum class Leave : uint8_t { kNo, kBreak, kContinue } leave = Leave::kNo;
  bool reverse_parallel_loops = false;
  bool check_regions = false;
  bool check_unwritten = true;            // InterpretOptions
  bool result_unused = false;             // the side of a select that is not taken may read what was never written
  int64_t depth = 0;                      // of running blocks
  const RunningBlock* running = nullptr;  // only with check_regions; null in blocks that declare nothing
};

// A scalar expression, or one lane of a vector one. Integers and bools answer as_int (sign- or zero-extended),
// floats as_float.
struct Code {
  virtual ~Code() = default;
  virtual int64_t as_int(Frame&) const { RELAXC_CHECK(false, "not an integer expression"); }
  virtual double as_float(Frame&) const { RELAXC_CHECK(false, "not a float expression"); }
};
using CodePtr = std::unique_ptr<Code>;

struct Step {
  virtual ~Step() = default;
  virtual void run(Frame&) const = 0;
};
using StepPtr = std::unique_ptr<Step>;
// Counts a statement against the step limit.
struct Counted : Step {
  Span span;
  explicit Counted(Span s) : span(std::move(s)) {}
  void count(Frame& frame) const {
    if (--frame.steps_left < 0) fail(span, "interpreter: the step limit is reached");
  }
};

// value rounded to the (element) float dtype, to nearest even, once.
double round_float(double value, DType dtype);
// value wrapped into the integer dtype, in the representation of Code::as_int.
inline int64_t wrap_int(int64_t value, DType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64) return value;
  int shift = 64 - dtype.bits;
  uint64_t shifted = static_cast<uint64_t>(value) << shift;
  return dtype.is_uint() ? static_cast<int64_t>(shifted >> shift) : static_cast<int64_t>(shifted) >> shift;
}

// One element in memory.
Word read_element(const char* at, DType dtype);
void write_element(char* at, DType dtype, Word value);

// The dims, strides and offset of a buffer as code.
struct BufferCode {
  Buffer buffer;
  int slot;
  std::vector<CodePtr> shape, strides;
  CodePtr offset;                       // null: 0
  int source = -1;                      // a view: the buffer whose memory it is
  std::optional<Tensor> contents = {};  // what the memory holds at first
};

class Compiler {
 public:
  // checks_regions: blocks evaluate what they declare to access.
  explicit Compiler(bool checks_regions) : checks_regions_(checks_regions) {}
  CodePtr expr(const Expr& expr);
  StepPtr stmt(const Stmt& stmt);

  // A new slot for the variable (`lanes` consecutive ones for a vector).
  int define(const VarRef& var);
  bool is_defined(const VarRef& var) const { return slots_.contains(var.get()); }
  int slot(const VarRef& var, const Span& span) const;
  int define_buffer(const Buffer& buffer);
  int buffer_slot(const Buffer& buffer, const Span& span) const;
  BufferCode buffer_code(const Buffer& buffer, int slot);

  int slot_count() const { return slot_count_; }
  int buffer_count() const { return buffer_count_; }

 private:
  CodePtr binary_code(const Binary& node, const Expr& whole);
  CodePtr reinterpret(const Expr& value, DType dtype);
  CodePtr llvm_code(const Call& node, const Expr& whole);
  CodePtr call_code(const Call& node, const Expr& whole);
  // ---- stmt.cc
  StepPtr store_step(const BufferStore& node, const Span& span);
  StepPtr for_step(const For& node, const Span& span);
  StepPtr evaluate_step(const Evaluate& node, const Span& span);
  StepPtr alloc_step(const AllocBuffer& node, const Span& span);
  // ---- block.cc
  StepPtr block_step(const Block& block, const Span& span);
  StepPtr window_step(const MatchBuffer& match, const Span& span);

  bool checks_regions_;
  std::unordered_map<const NodeHeader*, int> slots_, buffer_slots_;
  int slot_count_ = 0, buffer_count_ = 0;
};

// Sets shape, strides (dense when the buffer gives none) and memory of an allocated buffer.
void allocate(Frame& frame, const BufferCode& code);

// Where an element is, and the flags of its bytes (BufferState::written).
struct Place {
  char* at;
  uint8_t* written;
};

// An element access: index checks and address computation, shared by loads and stores.
struct Access {
  Buffer buffer;
  int slot;
  std::vector<CodePtr> indices;
  int index_lanes;    // of the last index
  CodePtr predicate;  // null: all lanes
  DType dtype;        // the buffer's element
  Span span;
  bool is_write = false;

  bool active(Frame& frame) const { return !predicate || predicate->as_int(frame) != 0; }
  // The lane's element, which must be in range.
  Place place(Frame& frame) const;
  // Its value, which must have been written.
  Word read(Frame& frame) const;
  void write(const Place& place, Word value) const;

 private:
  void check_declared(Frame& frame) const;
  // "[1, 2]".
  std::string position(Frame& frame) const;
};
Access make_access(Compiler& compiler, const Buffer& buffer, const std::vector<Expr>& indices,
                   const std::optional<Expr>& predicate, const Span& span);

}  // namespace relaxc::interpreter
