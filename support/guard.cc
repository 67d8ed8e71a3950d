#include "support/guard.h"

#include <functional>
#include <ios>
#include <optional>
#include <system_error>
#include <typeinfo>
#include <variant>

#include "support/check.h"

namespace relaxc {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(
      formatted("internal error at {}:{}: {}{}{}", file, line, condition, message.empty() ? "" : ": ", message));
}

namespace {

template <class... Kinds>
bool is_any_of(const std::exception& error) {
  return (dynamic_cast<const Kinds*>(&error) || ...);
}

}  // namespace

void throw_on(const std::string& where) {
  try {
    throw;
  } catch (const InternalError& error) {
    throw InternalError(formatted("{}\n  in {}", error.what(), where));
  } catch (const std::exception& error) {
    // The types are listed, since the errors that relaxc throws on purpose derive from the library's types, too.
    bool is_bug = is_any_of<std::logic_error, std::system_error, std::range_error, std::overflow_error,
                            std::underflow_error, std::bad_cast, std::bad_typeid, std::bad_optional_access,
                            std::bad_variant_access, std::bad_function_call>(error);
    if (!is_bug) throw;
    throw InternalError(formatted("internal error: {}\n  in {}", error.what(), where));
  }
}

}  // namespace relaxc
