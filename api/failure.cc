#include "api/failure.h"

#include <new>

#include "vm/error.h"

namespace relaxc::api {

static relaxc_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUnsupported:
      return RELAXC_UNSUPPORTED;
    case ErrorKind::kUsage:
      return RELAXC_USAGE;
    case ErrorKind::kInvalid:
    case ErrorKind::kDoesNotFit:
      return RELAXC_INVALID;
  }
  return RELAXC_INTERNAL;
}

static Failure failure_of_current(relaxc_status otherwise) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure;
  } catch (const CompileError& error) {
    return {status_of(error.kind()), error.what(), error.diagnostics()};
  } catch (const Cancelled& error) {
    return {RELAXC_CANCELLED, error.what()};
  } catch (const OutOfMemory& error) {
    return {RELAXC_OUT_OF_MEMORY, error.what()};
  } catch (const UsageError& error) {
    return {RELAXC_USAGE, error.what()};
  } catch (const WriteError& error) {
    return {RELAXC_WRITE_FAILED, error.what()};
  } catch (const RuntimeError& error) {
    return {otherwise, error.what()};
  } catch (const std::bad_alloc&) {
    return {RELAXC_OUT_OF_MEMORY, "out of memory"};
  } catch (const std::exception& error) {
    return {RELAXC_INTERNAL, error.what()};
  } catch (...) {
    return {RELAXC_INTERNAL, "a callback of the host threw an exception, which it must not"};
  }
}

Failure caught_failure(relaxc_status otherwise) noexcept {
  try {
    return failure_of_current(otherwise);
  } catch (...) {  // memory is too short for the message
    return {RELAXC_OUT_OF_MEMORY};
  }
}

}  // namespace relaxc::api
