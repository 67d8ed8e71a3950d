// The one symbol of librelaxc_builtins.so, which vm/shipped_libraries.cc opens.
#include "support/version.h"
#include "vm/error.h"
#include "vm/shipped_libraries.h"

namespace relaxc::vm {

// Calls a row; its exception becomes a value.
static BuiltinFailure call_row(const Builtin& row, BuiltinContext& context, std::span<const Value> arguments,
                               Value& result) noexcept {
  using Kind = BuiltinFailure::Kind;
  try {
    try {
      result = row(context, arguments);
      return {};
    } catch (const FormError& error) {
      return {Kind::kForm, error.what()};
    } catch (const OutOfMemory& error) {
      return {Kind::kOutOfMemory, error.what()};
    } catch (const std::bad_alloc&) {
      return {Kind::kOutOfMemory, "out of memory"};
    } catch (const std::exception& error) {
      return {Kind::kOther, error.what()};
    }
  } catch (...) {  // memory is too short for the message
    return {Kind::kOutOfMemory, {}};
  }
}

}  // namespace relaxc::vm

extern "C" [[gnu::visibility("default")]] const relaxc::vm::BuiltinLibrary* relaxc_builtins_library() {
  using namespace relaxc;
  static const vm::BuiltinLibrary library{kVersion, kCommit, vm::relaxc_builtins, vm::call_row};
  return &library;
}
