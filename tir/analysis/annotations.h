// The annotations of loops, blocks and allocations, TVM's attributes of tensor programs and keys of T.attr: the name of
// each, its value, and its reader. `annotate` and lowering refuse a name that is close to one in the table
// (annotations.cc); of one that is not known a warning says that it has no effect.
#pragma once
#include <algorithm>
#include <string>

#include "ir/attrs.h"

namespace relaxc {

enum class AnnotatedPlace : uint8_t { kLoop, kBlock, kAllocation, kFunction, kAnywhere };
enum class AnnotationValue : uint8_t {
  kFlag,
  kInt,
  kString,
  kStrings,
  kLayouts,
  kStringsAndInts,
  kInts,
  kLists,
  kSwitch,
  kAny
};

struct Annotation {
  const char* name;  // a trailing '*' matches any suffix
  AnnotatedPlace place;
  AnnotationValue value;
  const char* reader;  // the file that reads it; empty if none does: it is kept and printed
  const char* doc;
  // It asks for, or says, something that has no effect here: a program that has it gets a warning. Other rows without a
  // reader say in `doc` what does their work.
  bool is_unused = false;
  // Returns whether a value is of this row's kind.
  bool takes(const AttrValue& given) const;
};

// A row's name as a template argument.
struct AnnotationName {
  char text[48] = {};
  template <size_t kSize>
  consteval AnnotationName(const char (&name)[kSize]) {
    std::copy_n(name, kSize, text);
  }
};
// Returns the name, as in annotation<"prefetch">(). A name that has no row does not link, so readers ask for theirs.
template <AnnotationName kName>
const char* annotation();

// Returns null when no annotation has that name. Beside those that something here reads there are TVM's, which are kept
// and printed, and a prefix that is free for users.
const Annotation* find_annotation(std::string_view name);
// Returns all of them as --list-annotations shows them.
std::string describe_annotations();
// Returns whether the name, which no annotation has, is close to a known one.
bool is_misspelt(std::string_view name);
// Returns the message for a name that no annotation has.
std::string unknown_annotation(std::string_view name);
// Returns a text such as "True or False".
std::string_view to_string(AnnotationValue value);
// Returns a text such as "a loop".
std::string_view to_string(AnnotatedPlace place);

}  // namespace relaxc
