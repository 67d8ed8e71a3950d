// The interpreter's compiled form: a tree of small objects with the variables resolved to slots. Private to
// tir/interpret/.
//
// Vectors are evaluated lane by lane: expressions are pure, so lane l of a vector expression is the expression
// evaluated with frame.lane = l, where Ramp and vector variables read the lane and everything else passes it on.
#pragma once
#include <array>
#include <memory>
#include <unordered_map>

#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/temporarily.h"
#include "tir/interpret/interpreter.h"
#include "tir/tile_forms.h"

namespace relaxc::interpreter {

// An integer or bool (sign- or zero-extended), a float, or the bytes of a complex number.
union Word {
  int64_t i;
  double f;
  std::array<uint64_t, 2> bits;
  Word() : i(0) {}
  Word(std::integral auto value) : i(static_cast<int64_t>(value)) {}
  Word(std::floating_point auto value) : f(value) {}
};

// A buffer in scope: dims and strides are known numbers. Index arithmetic counts elements (vectors of dtype.lanes).
struct BufferState {
  char* data = nullptr;
  int64_t capacity = 0;  // elements at data
  DType dtype;           // of an element
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
  std::vector<uint64_t> storage;  // of an allocation
  // One flag per byte at data: whether the program has written it. Null where the contents came from outside.
  uint8_t* written = nullptr;
  std::vector<uint8_t> written_storage;  // of an allocation
  int64_t depth = 0;                     // of the block that made it; 0 for params

  // Returns where an element is; several that are packed share a byte.
  int64_t byte_of(int64_t element) const { return element / dtype.per_byte() * dtype.bytes(); }
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

// A matrix register: kTileRows rows of kTileBytes.
using TileRegister = std::array<char, size_t{kTileRows} * kTileBytes>;

struct Frame {
  std::vector<Word> slots;
  std::vector<BufferState> buffers;
  const InterpretOptions* options = nullptr;
  const PackedFunctions* packed = nullptr;
  int64_t steps_left = 0, alloc_bytes_left = 0;
  int64_t lane = 0;
  std::array<TileRegister, kTiles> tiles = {};
  // Set by break and continue until the innermost loop has read it, and by a return; the statements in between stop.
  enum class Leave : uint8_t { kNo, kBreak, kContinue, kReturn } leave = Leave::kNo;
  bool result_unused = false;             // the side of a select that is not taken may read what was never written
  int64_t depth = 0;                      // of running blocks
  const RunningBlock* running = nullptr;  // only with check_regions; null in blocks that declare nothing
};

// A scalar expression, or one lane of a vector one. code() makes one of a function Frame& -> Word.
struct Code {
  virtual ~Code() = default;
  virtual Word word(Frame&) const = 0;
  int64_t as_int(Frame& frame) const { return word(frame).i; }
  double as_float(Frame& frame) const { return word(frame).f; }
};
using CodePtr = std::unique_ptr<Code>;
template <class F>
CodePtr code(F evaluate) {
  struct Closure final : Code {
    F evaluate;
    explicit Closure(F f) : evaluate(std::move(f)) {}
    Word word(Frame& frame) const override { return evaluate(frame); }
  };
  return std::make_unique<Closure>(std::move(evaluate));
}

// A statement. step() makes one of a function of the frame; counted() makes one that counts against the step limit.
struct Step {
  virtual ~Step() = default;
  virtual void run(Frame&) const = 0;
};
using StepPtr = std::unique_ptr<Step>;
template <class F>
StepPtr step(F execute) {
  struct Closure final : Step {
    F execute;
    explicit Closure(F f) : execute(std::move(f)) {}
    void run(Frame& frame) const override { execute(frame); }
  };
  return std::make_unique<Closure>(std::move(execute));
}
inline void count(Frame& frame, const Span& span) {
  if (--frame.steps_left < 0) fail(span, "interpreter: the step limit is reached");
}
template <class F>
StepPtr counted(const Span& span, F execute) {
  return step([span, execute = std::move(execute)](Frame& frame) {
    count(frame, span);
    execute(frame);
  });
}

// These read and write one element in memory, a lane of the dtype.
Word read_element(const char* at, DType dtype);
void write_element(char* at, DType dtype, Word value);

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape);

// A dim, stride or offset of a buffer whose memory comes from elsewhere: it binds its variable where that is new, and
// must have the stated value.
struct BufferNumber {
  Expr value;
  size_t place;  // among the dims, the strides and the offset
  int slot;      // of the variable to bind, or -1
  CodePtr expected = nullptr;
  void bind(Frame& frame, const BufferState& state) const;
  void check(Frame& frame, const BufferState& state, const char* role, const Buffer& buffer) const;

 private:
  int64_t of(const BufferState& state) const;
};

// Pointers are words that hold addresses.
inline char* pointer_of(Word word) { return reinterpret_cast<char*>(static_cast<intptr_t>(word.i)); }
inline Word word_of(const void* pointer) { return reinterpret_cast<intptr_t>(pointer); }

// The memory at an address up to the end of the buffer that holds it; null where it belongs to no buffer in scope.
struct MemoryAt {
  int64_t bytes = 0;
  uint8_t* written = nullptr;
  bool is_known = false;
};
MemoryAt memory_at(const Frame& frame, const char* at);

// Where an element is, and the flags of its bytes (BufferState::written).
struct Place {
  char* at;
  uint8_t* written;
  int64_t part = 0;      // which of the elements in the byte, if they are packed
  bool is_last = false;  // the bits behind it belong to no element
};

// An element access: index checks and address computation, shared by loads and stores.
struct Access {
  Buffer buffer;
  int slot;
  bool is_write;
  std::vector<CodePtr> indices;
  int index_lanes;    // of the last index
  CodePtr predicate;  // null: all lanes
  DType dtype;        // the buffer's element
  Span span;

  bool active(Frame& frame) const { return !predicate || predicate->as_int(frame) != 0; }
  // Returns the place of the lane's element, which must be in range.
  Place place(Frame& frame) const;
  // Returns the element's value, which must have been written.
  Word read(Frame& frame) const;
  void write(const Place& place, Word value) const;

 private:
  void check_declared(Frame& frame) const;
  // Returns "[1, 2]".
  std::string position(Frame& frame) const;
};

class Compiler {
 public:
  explicit Compiler(const InterpretOptions& options) : options_(options) {}
  CodePtr expr(const Expr& expr);
  StepPtr stmt(const Stmt& stmt);

  // Returns a new slot for the variable (`lanes` consecutive ones for a vector).
  int define(const VarRef& var);
  // Does the same for a variable that has no slot yet; returns -1 for other expressions.
  int define_if_new(const Expr& value);
  int define_buffer(const Buffer& buffer) { return buffer_slots_[buffer.get()] = buffer_count_++; }
  // Returns the numbers of the type, dims first, with slots for new variables; set_expected() follows when all have.
  std::vector<BufferNumber> numbers_of(const BufferType& type);
  void set_expected(std::vector<BufferNumber>& numbers);
  // Returns a frame with room for all that is defined.
  Frame frame() const;

 private:
  int slot(const VarRef& var, const Span& span) const;
  int buffer_slot(const Buffer& buffer, const Span& span) const;
  std::vector<CodePtr> exprs(const std::vector<Expr>& list);
  CodePtr binary_code(const Binary& node, const Span& span);
  CodePtr ramp_code(const Ramp& node);
  CodePtr let_code(const Let& node);
  CodePtr reinterpret(const Expr& value, DType dtype);
  CodePtr llvm_code(const Call& node, const Expr& whole);
  // Returns null where the name is not that of an instruction on matrix registers.
  CodePtr tile_code(const std::string& name, const std::vector<Expr>& args, const Span& span);
  CodePtr call_code(const Call& node, const Expr& whole);
  CodePtr shuffle(const Call& node, const Span& span);
  // ---- external.cc
  CodePtr extern_code(const Call& node, const Expr& whole);
  CodePtr packed_code(const Call& node, const Expr& whole);
  // ---- memory.cc
  CodePtr address_code(const Call& node, const Span& span);
  template <class Node>  // BufferLoad or BufferStore
  Access access(const Node& node, const Span& span);
  StepPtr alloc_step(const AllocBuffer& node, const Span& span);
  // ---- stmt.cc
  StepPtr store_step(const BufferStore& node, const Span& span);
  StepPtr for_step(const For& node, const Span& span);
  StepPtr evaluate_step(const Evaluate& node, const Span& span);
  // ---- block.cc
  StepPtr block_step(const Block& block, const Span& span);
  StepPtr window_step(const MatchBuffer& match, const Span& span);

  const InterpretOptions& options_;
  std::unordered_map<const NodeHeader*, int> slots_, buffer_slots_;
  int slot_count_ = 0, buffer_count_ = 0;
};
extern template Access Compiler::access(const BufferLoad&, const Span&);
extern template Access Compiler::access(const BufferStore&, const Span&);

}  // namespace relaxc::interpreter
