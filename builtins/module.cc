// The one symbol of librelaxc_builtins.so, which vm/shipped_libraries.cc opens.
#include "support/version.h"
#include "vm/error.h"
#include "vm/shipped_libraries.h"

namespace relaxc::vm {

// Calls a row; its exception becomes a failure.
static void call_row(const Builtin& row, BuiltinContext& context, std::span<const Value> arguments,
                     const BuiltinTaker& taker) noexcept {
  using Kind = BuiltinFailure::Kind;
  try {
    taker.result(taker.to, row(context, arguments));
  } catch (const FormError& error) {
    taker.failure(taker.to, Kind::kForm, error.what());
  } catch (const OutOfMemory& error) {
    taker.failure(taker.to, Kind::kOutOfMemory, error.what());
  } catch (const std::bad_alloc&) {
    taker.failure(taker.to, Kind::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    taker.failure(taker.to, Kind::kOther, error.what());
  } catch (...) {
    taker.failure(taker.to, Kind::kOther, "an exception that is none of C++'s library");
  }
}

}  // namespace relaxc::vm

extern "C" [[gnu::visibility("default")]] const relaxc::vm::BuiltinLibrary* relaxc_builtins_library() {
  using namespace relaxc;
  static const vm::BuiltinLibrary library{kVersion, kCommit, vm::relaxc_builtins, vm::call_row};
  return &library;
}
