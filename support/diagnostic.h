// Errors of the user's input: the model, IR text, flags, an artifact, a tensor. Parser, importer and verifier collect
// many diagnostics; when work cannot go on, CompileError carries them to the tool's main() or the API boundary.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "support/formatted.h"
#include "support/span.h"

namespace relaxc {

enum class Severity : uint8_t { kError, kWarning };
// kInvalid: the input is wrong (exit code 1). kUnsupported: the input may be right, but relaxc cannot compile it yet
// (exit code 3). kDoesNotFit: a step of a schedule does not fit its program (exit code 1, when nothing catches it).
// kUsage: a setting of the caller names something that does not exist, a target, pass, function or dim (exit code 2).
enum class ErrorKind : uint8_t { kInvalid, kUnsupported, kDoesNotFit, kUsage };

struct Diagnostic {
  Severity severity = Severity::kError;
  ErrorKind kind = ErrorKind::kInvalid;
  Span span = {};
  std::string message = {};             // lower case, no period, expected and actual values
  std::vector<std::string> notes = {};  // each printed as "note: ..."; the last one may be the command that helps
};

// Returns "place: error: message", the source line with a caret when the text is known, then the notes, one per line.
std::string to_string(const Diagnostic& diagnostic);

// Returns the span's source line with a caret line under it, each indented; empty when the text is not available.
std::string source_excerpt(const Span& span);

class CompileError : public std::exception {
 public:
  explicit CompileError(std::vector<Diagnostic> diagnostics);
  const char* what() const noexcept override { return text_.c_str(); }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  // Returns the first of kUnsupported, kInvalid and kUsage that one of the errors is, else kDoesNotFit.
  ErrorKind kind() const;

 private:
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

// Gives the span to the diagnostics that have no place. They come from helpers that do not know one.
std::vector<Diagnostic> with_place(std::vector<Diagnostic> diagnostics, const Span& span);

// Throws a CompileError of one diagnostic: fail(span, "weight has {} input channels, expected {}", a, b).
[[noreturn]] void throw_error(ErrorKind kind, const Span& span, std::string message);
// The same, with the text of the pattern. One call of it is all that the places of errors contain.
[[noreturn, gnu::cold]] void throw_pattern(ErrorKind kind, const Span& span, std::string_view pattern,
                                           std::span<const FormatArgument> arguments);
template <class... Args>
[[noreturn]] void fail(const Span& span, FormatString<Args...> pattern, const Args&... args) {
  throw_pattern(ErrorKind::kInvalid, span, pattern.text, format_arguments(args...));
}
template <class... Args>
[[noreturn]] void fail_unsupported(const Span& span, FormatString<Args...> pattern, const Args&... args) {
  throw_pattern(ErrorKind::kUnsupported, span, pattern.text, format_arguments(args...));
}
template <class... Args>
[[noreturn]] void fail_to_fit(const Span& span, FormatString<Args...> pattern, const Args&... args) {
  throw_pattern(ErrorKind::kDoesNotFit, span, pattern.text, format_arguments(args...));
}

template <class... Args>
[[noreturn]] void fail_usage(const Span& span, FormatString<Args...> pattern, const Args&... args) {
  throw_pattern(ErrorKind::kUsage, span, pattern.text, format_arguments(args...));
}

// Collects the diagnostics of a phase that can go on after an error.
class Diagnostics {
 public:
  template <class... Args>
  Diagnostic& error(const Span& span, FormatString<Args...> pattern, const Args&... args) {
    return add({Severity::kError, ErrorKind::kInvalid, span, formatted(pattern, args...), {}});
  }
  template <class... Args>
  Diagnostic& warning(const Span& span, FormatString<Args...> pattern, const Args&... args) {
    return add({Severity::kWarning, ErrorKind::kInvalid, span, formatted(pattern, args...), {}});
  }
  Diagnostic& add(Diagnostic diagnostic);
  bool has_errors() const;
  const std::vector<Diagnostic>& all() const { return all_; }
  void throw_if_errors() const;

 private:
  std::vector<Diagnostic> all_;
};

}  // namespace relaxc
