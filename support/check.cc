#include "support/check.h"

namespace relaxc {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(
      fmt::format("internal error at {}:{}: {}{}{}", file, line, condition, message.empty() ? "" : ": ", message));
}

}  // namespace relaxc
