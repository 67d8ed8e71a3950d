#include "vm/verifier.h"

#include <algorithm>
#include <map>
#include <set>

#include "vm/operands.h"

namespace relaxc::vm {

namespace {

constexpr int64_t kMaxRegisters = int64_t{1} << 20;
constexpr int64_t kMaxArguments = int64_t{1} << 16;
// The limit on the bits of all states that the dataflow keeps at once, whatever hostile code asks for.
constexpr uint64_t kMaxStateBits = uint64_t{1} << 31;
constexpr size_t kMaxMessages = 20;

// The set of written registers (first bits) and slots (the bits after them).
class WrittenSet {
 public:
  explicit WrittenSet(size_t size) : bits_((size + 63) / 64) {}
  bool contains(size_t i) const { return (bits_[i / 64] >> (i % 64) & 1) != 0; }
  void insert(size_t i) { bits_[i / 64] |= uint64_t{1} << (i % 64); }
  void erase(size_t i) { bits_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  void intersect(const WrittenSet& other) {
    for (size_t w = 0; w < bits_.size(); ++w) bits_[w] &= other.bits_[w];
  }
  bool includes(const WrittenSet& other) const {
    return std::ranges::equal(bits_, other.bits_, [](uint64_t a, uint64_t b) { return (b & ~a) == 0; });
  }

 private:
  std::vector<uint64_t> bits_;
};

class FunctionVerifier {
 public:
  FunctionVerifier(const Executable& executable, const Function& function, std::vector<std::string>& messages)
      : executable_(executable), function_(function), messages_(messages) {}

  void run() {
    if (!check_frame() || !decode_all() || !check_operands()) return;
    check_dataflow();
  }

 private:
  struct Located {
    size_t offset;
    Instruction instruction;
  };

  // Returns false.
  template <class... Args>
  bool report(FormatString<Args...> pattern, const Args&... args) {
    return report_pattern(pattern.text, format_arguments(args...));
  }
  bool report_pattern(std::string_view pattern, std::span<const FormatArgument> arguments) {
    ok_ = false;
    if (messages_.size() >= kMaxMessages) return false;
    std::string place = formatted("function '{}'", function_.name);
    if (current_ != nullptr)
      place += formatted(", word {} ({})", current_->offset, info(current_->instruction.op).name);
    messages_.push_back(formatted("{}: {}", place, formatted_text(pattern, arguments)));
    return false;
  }

  int64_t num_slots() const { return std::ssize(function_.slot_names); }
  size_t slot_bit(Word slot) const { return static_cast<size_t>(function_.num_registers + slot); }

  bool check_frame() {
    int64_t num_inputs = std::ssize(function_.inputs);
    if (function_.code_begin < 0 || function_.code_begin > function_.code_end ||
        function_.code_end > std::ssize(executable_.code))
      return report("words {} to {} are not in the code of {} words", function_.code_begin, function_.code_end,
                    executable_.code.size());
    if (function_.num_registers < num_inputs || function_.num_registers > kMaxRegisters)
      return report("{} registers, expected {} to {}", function_.num_registers, num_inputs, kMaxRegisters);
    for (const ValueInfo& info : function_.inputs) check_parts(info);
    for (const ValueInfo& info : function_.outputs) check_parts(info);
    for (size_t i = 0; i < function_.places.size(); i += 2) {
      bool is_pair = i + 1 < function_.places.size();
      if (is_pair && function_.places[i + 1] != -1)
        check_index(function_.places[i + 1], executable_.strings.size(), "place");
      if (!is_pair) report("{} words of places, expected pairs", function_.places.size());
    }
    return num_slots() <= kMaxRegisters || report("{} slots, expected at most {}", num_slots(), kMaxRegisters);
  }

  // A sequence has the type of its items, and a map those of a key and a value. The reader bounds the depth.
  void check_parts(const ValueInfo& info) {  // NOLINT: bounded
    bool is_sequence = info.kind == ValueKind::kSequence, is_map = info.kind == ValueKind::kMap;
    size_t expected = is_sequence ? 1 : is_map ? 2 : info.fields.size();
    if (info.fields.size() != expected)
      report("a {} has {} parts in its type, expected {}", to_string(info.kind), info.fields.size(), expected);
    for (const ValueInfo& field : info.fields) check_parts(field);
  }

  bool decode_all() {
    auto code = executable_.code_of(function_);
    for (size_t offset = 0; offset < code.size();) {
      auto decoded = decode(code, offset);
      if (!decoded) return report("word {} is not an instruction", offset);
      starts_.insert(static_cast<Word>(offset));
      instructions_.push_back({offset, std::move(decoded->instruction)});
      offset = decoded->next;
    }
    Opcode last = instructions_.empty() ? Opcode::kMove : instructions_.back().instruction.op;
    return last == Opcode::kRet || last == Opcode::kJump || last == Opcode::kFail ||
           report("the code does not end in ret, jump or fail");
  }

  void check_index(Word index, size_t size, std::string_view what) {
    if (index < 0 || index >= static_cast<Word>(size)) report("{} {} is out of range, there are {}", what, index, size);
  }

  // Elements of other kinds may have any value; decode() has checked the operators.
  void check_element(ElementKind kind, Word value, Opcode op) {
    struct Table {
      ElementKind kind;
      size_t size;
      std::string_view what;
    };
    const Table tables[] = {{ElementKind::kRegister, static_cast<size_t>(function_.num_registers), "register"},
                            {ElementKind::kSlot, function_.slot_names.size(), "slot"},
                            {ElementKind::kConstant, executable_.constants.size(), "constant"},
                            {ElementKind::kKernel, executable_.kernels.size(), "kernel"},
                            {ElementKind::kBuiltin, executable_.builtins.size(), "builtin"},
                            {ElementKind::kFunction, executable_.functions.size(), "function"},
                            {ElementKind::kString, executable_.strings.size(), "string"},
                            {ElementKind::kLabel, executable_.strings.size(), "label"}};
    bool is_absent = kind == ElementKind::kLabel && value == -1;
    for (const Table& table : tables) {
      if (kind == table.kind && !is_absent) check_index(value, table.size, table.what);
    }
    if (kind == ElementKind::kDType) check_dtype(value, op);
    if (kind == ElementKind::kTarget && !starts_.contains(value))
      report("target {} is not an instruction of the function", value);
  }
  void check_dtype(Word word, Opcode op) {
    if (word == kAnyDType && op == Opcode::kCheckTensor) return;
    auto dtype = unpack_dtype(word);
    if (dtype && dtype->is_string() && op != Opcode::kCheckTensor)
      report("strings are made by functions, not allocated");
    if (!dtype || dtype->lanes != 1) report("dtype word {} is not an element type", word);
  }

  // Checks argument counts, which the rows do not state. `at` are the words of an instruction whose operands are sound.
  void check_arity(const Word* at) {
    Opcode op = static_cast<Opcode>(*at);
    if (op == Opcode::kCallKernel) check_kernel_call(Operands<Opcode::kCallKernel>(at));
    if (op == Opcode::kCall) check_call(Operands<Opcode::kCall>(at));
    if (op == Opcode::kMakeClosure) check_closure(Operands<Opcode::kMakeClosure>(at));
    if (op == Opcode::kNewTensor) check_output(Operands<Opcode::kNewTensor>(at).word<"output">());
  }
  void check_kernel_call(Operands<Opcode::kCallKernel> call) {
    const KernelInfo& kernel = executable_.kernels[static_cast<size_t>(call.word<"kernel">())];
    auto tensors = static_cast<int64_t>(call.list<"tensors">().size);
    auto scalars = static_cast<int64_t>(call.list<"scalars">().size);
    if (tensors != kernel.num_tensors || scalars != kernel.num_scalars)
      report("kernel '{}' is called with {} tensors and {} scalars, expected {} and {}", kernel.symbol, tensors,
             scalars, kernel.num_tensors, kernel.num_scalars);
  }
  void check_call(Operands<Opcode::kCall> call) {
    const Function& callee = executable_.functions[static_cast<size_t>(call.word<"function">())];
    size_t arguments = call.list<"arguments">().size;
    if (arguments != callee.inputs.size())
      report("function '{}' is called with {} arguments, expected {}", callee.name, arguments, callee.inputs.size());
  }
  void check_closure(Operands<Opcode::kMakeClosure> closure) {
    const Function& function = executable_.functions[static_cast<size_t>(closure.word<"function">())];
    size_t captured = closure.list<"captured">().size;
    if (captured > function.inputs.size())
      report("a closure of '{}' captures {} values, expected at most {}", function.name, captured,
             function.inputs.size());
  }
  void check_output(Word output) {
    if (output < -1 || output >= static_cast<Word>(function_.outputs.size()))
      report("output {} is out of range, there are {}", output, function_.outputs.size());
  }

  bool check_operands() {
    for (const Located& located : instructions_) {
      current_ = &located;
      bool before = ok_;
      ok_ = true;
      const Instruction& instruction = located.instruction;
      for (const Operand& operand : instruction.operands)
        for_each_element(operand,
                         [&](ElementInfo element, Word value) { check_element(element.kind, value, instruction.op); });
      if (ok_) check_arity(executable_.code_of(function_).data() + located.offset);
      ok_ = ok_ && before;
    }
    current_ = nullptr;
    return ok_;
  }

  // ---- Dataflow: see the rule in verifier.h. ----

  std::optional<Word> target_of(const Instruction& instruction) const {
    auto target = std::ranges::find(instruction.operands, OperandKind::kTarget, &Operand::kind);
    return target == instruction.operands.end() ? std::nullopt : std::optional(target->words[0]);
  }

  // Checks that registers and slots are written. A pattern also writes: it may compare a dim that it has bound.
  void read_operand(const Operand& operand, WrittenSet& written) {
    for_each_element(operand, [&](ElementInfo element, Word value) {
      bool is_slot = element.kind == ElementKind::kSlot;
      if (element.effect != Effect::kRead || (!is_slot && element.kind != ElementKind::kRegister)) {
        if (operand.kind == OperandKind::kPattern && is_slot) written.insert(slot_bit(value));
      } else if (is_slot && !written.contains(slot_bit(value))) {
        std::string_view name = function_.slot_names[static_cast<size_t>(value)];
        report("slot s{} ({}) is read before it is written", value, name);
      } else if (!is_slot && !written.contains(static_cast<size_t>(value))) {
        report("register r{} is read before it is written", value);
      }
    });
  }

  void write_operand(const Operand& operand, WrittenSet& written) {
    if (operand.kind == OperandKind::kDst) written.insert(static_cast<size_t>(operand.words[0]));
    if (operand.kind == OperandKind::kDstSlot) written.insert(slot_bit(operand.words[0]));
    if (operand.kind == OperandKind::kReleased) written.erase(static_cast<size_t>(operand.words[0]));
  }

  void check_dataflow() {
    size_t bits = static_cast<size_t>(function_.num_registers) + function_.slot_names.size();
    std::set<Word> backward_targets;
    uint64_t num_targets = 1;
    for (const Located& located : instructions_) {
      auto target = target_of(located.instruction);
      if (!target) continue;
      ++num_targets;
      if (*target <= static_cast<Word>(located.offset)) backward_targets.insert(*target);
    }
    if (num_targets * (bits + 64) > kMaxStateBits) {
      report("too many jumps ({}) for {} registers and slots", num_targets, bits);
      return;
    }

    std::optional<WrittenSet> written(bits);  // nullopt: not reached
    for (size_t i = 0; i < function_.inputs.size(); ++i) written->insert(i);
    std::map<Word, WrittenSet> pending;  // at targets ahead
    std::map<Word, WrittenSet> at_loop_head;
    for (const Located& located : instructions_) {
      current_ = &located;
      Word offset = static_cast<Word>(located.offset);
      if (auto joined = pending.find(offset); joined != pending.end()) {
        if (written) joined->second.intersect(*written);
        written = std::move(joined->second);
        pending.erase(joined);
      }
      if (!written) continue;
      if (backward_targets.contains(offset)) at_loop_head.emplace(offset, *written);

      for (const Operand& operand : located.instruction.operands) read_operand(operand, *written);
      for (const Operand& operand : located.instruction.operands) write_operand(operand, *written);
      if (auto target = target_of(located.instruction)) {
        if (*target > offset) {
          auto [entry, is_new] = pending.emplace(*target, *written);
          if (!is_new) entry->second.intersect(*written);
        } else if (auto head = at_loop_head.find(*target); head == at_loop_head.end()) {
          report("target {} is reached by this jump only", *target);
        } else if (!written->includes(head->second)) {
          report("the jump back to {} leaves a register unwritten that is written when the loop begins", *target);
        }
      }
      Opcode op = located.instruction.op;
      if (op == Opcode::kRet || op == Opcode::kJump || op == Opcode::kFail) written.reset();
    }
    current_ = nullptr;
  }

  const Executable& executable_;
  const Function& function_;
  std::vector<std::string>& messages_;
  std::vector<Located> instructions_;
  std::set<Word> starts_;
  const Located* current_ = nullptr;
  bool ok_ = true;
};

void verify_tables(const Executable& executable, std::vector<std::string>& messages) {
  std::set<std::string_view> names;
  for (const Function& function : executable.functions) {
    if (!names.insert(function.name).second)
      messages.push_back(formatted("function '{}' is defined twice", function.name));
  }
  for (const KernelInfo& kernel : executable.kernels) {
    if (kernel.source == KernelSource::kArtifact && !kernel.symbol.starts_with(kKernelPrefix))
      messages.push_back(formatted("kernel symbol '{}' does not begin with '{}'", kernel.symbol, kKernelPrefix));
    if (kernel.num_tensors < 0 || kernel.num_tensors > kMaxArguments || kernel.num_scalars < 0 ||
        kernel.num_scalars > kMaxArguments) {
      messages.push_back(formatted("kernel '{}' has {} tensors and {} scalars, expected 0 to {}", kernel.symbol,
                                   kernel.num_tensors, kernel.num_scalars, kMaxArguments));
    }
  }
}

}  // namespace

std::vector<std::string> verify(const Executable& executable) {
  std::vector<std::string> messages;
  verify_tables(executable, messages);
  for (const Function& function : executable.functions) {
    if (messages.size() >= kMaxMessages) break;
    FunctionVerifier(executable, function, messages).run();
  }
  return messages;
}

}  // namespace relaxc::vm
