// The boundary of a piece of work that has a name for the user: a pass, a node of a model, a call of the C++ API.
#pragma once
#include <string>
#include <utility>

namespace relaxc {

// Rethrows the exception that is being handled; to be called in a `catch (...)`. An InternalError gets another line,
// "in <where>". Any other exception of the C++ library (a bad index, a bad optional, a failed system call that nobody
// handled) is a bug of relaxc, and its text says nothing to a user: it becomes an InternalError. Errors of the user's
// input, errors of a run, and std::bad_alloc (memory is short) are rethrown unchanged.
[[noreturn]] void throw_on(const std::string& where);

// guarded([&] { return "pass 'fuse'"; }, work) returns the result of work(); exceptions are rethrown as above.
template <class Where, class Work>
decltype(auto) guarded(const Where& where, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    throw_on(where());
  }
}

}  // namespace relaxc
