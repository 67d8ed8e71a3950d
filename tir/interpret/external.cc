// Calls of functions outside of the program: C functions by name, and functions of the host.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/lists.h"
#include "tir/interpret/internal.h"
#include "vm/bytecode.h"

namespace relaxc::interpreter {

namespace {

// A function has written what its arguments point to, as far as anybody knows.
void mark_written(const Frame& frame, const char* at) {
  MemoryAt memory = memory_at(frame, at);
  if (memory.written) std::memset(memory.written, 1, static_cast<size_t>(memory.bytes));
}

// The conventions of x86-64 and AArch64 pass integers and floats in two rows of registers, whatever the order of the
// parameters. So a function can be called as one that takes all registers of both rows.
constexpr size_t kIntegers = 6, kFloats = 8;
template <class Result, size_t... kI, size_t... kF>
Result call_registers(void* function, const int64_t* integers, const double* floats, std::index_sequence<kI...>,
                      std::index_sequence<kF...>) {
  using Function =
      Result (*)(decltype(static_cast<void>(kI), int64_t{})..., decltype(static_cast<void>(kF), double{})...);
  return reinterpret_cast<Function>(function)(integers[kI]..., floats[kF]...);
}

struct ExternCall {
  void* function;
  DType result;
  std::vector<CodePtr> args;
  std::vector<DType> dtypes;
  std::vector<std::string> texts;  // of the arguments that are strings

  Word operator()(Frame& frame) const {
    int64_t integers[kIntegers] = {};
    double floats[kFloats] = {};
    size_t num_integers = 0, num_floats = 0;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!args[i]) {
        integers[num_integers++] = word_of(texts[i].c_str()).i;
        continue;
      }
      Word value = args[i]->word(frame);
      if (dtypes[i].is_handle()) mark_written(frame, pointer_of(value));
      if (!dtypes[i].is_float()) {
        integers[num_integers++] = value.i;
      } else if (dtypes[i].bits == 64) {
        floats[num_floats++] = value.f;
      } else {  // the low half of the register
        uint64_t bits = std::bit_cast<uint32_t>(static_cast<float>(value.f));
        floats[num_floats++] = std::bit_cast<double>(bits);
      }
    }
    auto call = [&]<class Result>() {
      return call_registers<Result>(function, integers, floats, std::make_index_sequence<kIntegers>(),
                                    std::make_index_sequence<kFloats>());
    };
    if (result.is_void()) {
      call.template operator()<void>();
      return {};
    }
    if (result.is_float())
      return result.bits == 64 ? call.template operator()<double>()
                               : static_cast<double>(call.template operator()<float>());
    int64_t value = call.template operator()<int64_t>();
    return result.is_handle() ? value : wrap_int(value, result.element());
  }
};

}  // namespace

CodePtr Compiler::extern_code(const Call& node, const Expr& whole) {
  const StringImm* symbol = node.args[0].as<StringImm>();
  if (!symbol) fail(whole.span(), "{} takes the name of a C function", op_name(whole));
  ExternCall call{nullptr, dtype_of(whole), {}, {}, {}};
  if (options_.find_function) call.function = options_.find_function(symbol->value);
  if (!call.function) call.function = dlsym(RTLD_DEFAULT, symbol->value.c_str());
  if (!call.function)
    fail(whole.span(), "the external function '{}' is not in this process; link the file that has it in (--link)",
         symbol->value);
  size_t num_floats = 0;
  for (size_t i = 1; i < node.args.size(); ++i) {
    const Expr& arg = node.args[i];
    const StringImm* text = arg.as<StringImm>();
    bool is_buffer = arg.type().is<BufferType>();
    DType dtype = text || is_buffer ? DType::handle() : dtype_of(arg);
    if (dtype.is_float() && dtype.bits < 32)
      fail_unsupported(whole.span(), "C functions take no {}; cast it to float32", to_string(dtype));
    num_floats += dtype.is_float();
    call.texts.push_back(text ? text->value : "");
    call.args.push_back(text ? nullptr : expr(is_buffer ? buffer_data(cast<Var>(arg)) : arg));
    call.dtypes.push_back(dtype);
  }
  if (num_floats > kFloats || call.args.size() - num_floats > kIntegers)
    fail_unsupported(whole.span(), "interpreter: '{}' takes more than {} integers and pointers, or {} floats",
                     symbol->value, kIntegers, kFloats);
  return code(std::move(call));
}

namespace {

struct PackedCall {
  struct Argument {
    relaxc_value_kind kind;
    CodePtr value;                    // null for strings
    std::string text = {};            // of a string
    std::vector<CodePtr> shape = {};  // of a tensor
    DType dtype = {};
    CodePtr offset = nullptr;  // of a tensor, in elements
  };
  std::string name;
  DType result;
  Span span;
  std::vector<Argument> args = {};

  Word operator()(Frame& frame) const {
    std::vector<relaxc_value> values;
    std::vector<std::vector<int64_t>> shapes;
    shapes.reserve(args.size());
    for (const Argument& arg : args) values.push_back(value_of(arg, frame, shapes));
    relaxc_value given{};
    if (!frame.packed || !*frame.packed) fail(span, "interpreter: no function '{}' is registered", name);
    if ((*frame.packed)(name.c_str(), values, given) != 0) fail(span, "the call of '{}' failed", name);
    if (result.is_float()) return given.real;
    return given.integer;
  }

 private:
  static relaxc_value value_of(const Argument& arg, Frame& frame, std::vector<std::vector<int64_t>>& shapes) {
    relaxc_value value{};
    value.kind = arg.kind;
    if (!arg.value) {
      value.pointer = const_cast<char*>(arg.text.c_str());
      return value;
    }
    Word word = arg.value->word(frame);
    if (arg.kind == relaxc_int) value.integer = word.i;
    if (arg.kind == relaxc_float) value.real = word.f;
    if (arg.kind == relaxc_pointer || arg.kind == relaxc_tensor) value.pointer = pointer_of(word);
    if (arg.kind != relaxc_tensor) return value;
    mark_written(frame, pointer_of(word));
    int64_t offset = arg.offset ? arg.offset->as_int(frame) : 0;
    value.pointer = pointer_of(word) + offset / arg.dtype.per_byte() * arg.dtype.bytes();
    value.dtype = static_cast<int32_t>(vm::pack_dtype(arg.dtype));
    shapes.push_back(map_each(arg.shape, [&](const CodePtr& dim) { return dim->as_int(frame); }));
    value.shape = shapes.back().data();
    value.ndim = std::ssize(shapes.back());
    return value;
  }
};

}  // namespace

CodePtr Compiler::packed_code(const Call& node, const Expr& whole) {
  const StringImm* name = node.args[0].as<StringImm>();
  if (!name) fail(whole.span(), "{} takes the name of a function", op_name(whole));
  PackedCall call{name->value, dtype_of(whole), whole.span()};
  for (size_t i = 1; i < node.args.size(); ++i) {
    const Expr& arg = node.args[i];
    if (const StringImm* text = arg.as<StringImm>()) {
      call.args.push_back({relaxc_string, nullptr, text->value});
    } else if (arg.type().is<BufferType>()) {
      const BufferType& type = buffer_type(cast<Var>(arg));
      call.args.push_back({relaxc_tensor, expr(buffer_data(cast<Var>(arg))), "", exprs(type.shape), type.dtype});
    } else if (const Call* array = as_call(arg, ops::kStackMakeArray)) {
      const Call* shape = as_call(array->args[1], ops::kStackMakeShape);
      if (!shape || as_call(array->args[2], ops::kStackMakeShape))
        fail_unsupported(arg.span(), "a tensor with strides as an argument of a packed function");
      call.args.push_back({relaxc_tensor, expr(array->args[0]), "", exprs(shape->args), dtype_of(array->args[4]),
                           expr(array->args[5])});
    } else {
      DType dtype = dtype_of(arg);
      call.args.push_back({dtype.is_handle()  ? relaxc_pointer
                           : dtype.is_float() ? relaxc_float
                                              : relaxc_int,
                           expr(arg)});
    }
  }
  return code(std::move(call));
}

}  // namespace relaxc::interpreter
