#include "tir/analysis/annotations.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/nearest.h"

namespace relaxc {

namespace {

// Of TVM (tir/stmt.h, namespace attr), for other machines or for its own search.
constexpr Annotation ignored(const char* name, AnnotatedPlace place, const char* doc) {
  return {name, place, AnnotationValue::kAny, "", doc};
}
constexpr Annotation kForeign[] = {
    ignored("pragma_*", AnnotatedPlace::kLoop, "TVM's pragmas of loops"),
    ignored("software_pipeline_*", AnnotatedPlace::kLoop, "TVM's software pipelines"),
    ignored("meta_schedule.*", AnnotatedPlace::kAny, "notes of TVM's MetaSchedule"),
    ignored("schedule_rule", AnnotatedPlace::kBlock, "TVM's rule for the block"),
    ignored("layout_free_placeholders", AnnotatedPlace::kBlock, "buffers whose layout TVM may choose"),
    ignored("layout_free_buffers", AnnotatedPlace::kBlock, "buffers whose layout TVM may choose"),
    ignored("script_parsing_detect_access", AnnotatedPlace::kBlock, "TVM's parser infers the regions"),
    ignored("require_block_var_bound_predicate", AnnotatedPlace::kBlock, "axes of TVM that need a condition"),
    ignored("warp_execution", AnnotatedPlace::kAny, "runs on all threads of a warp"),
    ignored("vector_bytes", AnnotatedPlace::kBlock, "the width of a copy to shared memory"),
    ignored("local_stage", AnnotatedPlace::kBlock, "a copy to shared memory goes through registers"),
    ignored("manifest_shared_memory_local_stage", AnnotatedPlace::kBlock, "the same"),
    ignored("permuted_layout", AnnotatedPlace::kBlock, "a layout of shared memory without bank conflicts"),
    ignored("thread_extent", AnnotatedPlace::kBlock, "the number of threads"),
    ignored("virtual_thread", AnnotatedPlace::kLoop, "virtual threads"),
    ignored("hand_threaded", AnnotatedPlace::kAny, "threads are bound by hand"),
    ignored("volatile_scope", AnnotatedPlace::kAny, "accesses are volatile"),
    ignored("user.*", AnnotatedPlace::kAny, "free for notes of users"),
};

std::vector<Annotation> make_rows() {
#define X(constant, ...) annotations::constant,
  std::vector<Annotation> rows = {RELAXC_ANNOTATIONS(X)};
#undef X
  rows.insert(rows.end(), std::begin(kForeign), std::end(kForeign));
  return rows;
}

template <class T>
bool is_list_of(const AttrValue& value) {
  const AttrList* list = value.as<AttrList>();
  return list && std::all_of(list->begin(), list->end(), [](const AttrValue& item) { return item.as<T>() != nullptr; });
}

}  // namespace

bool Annotation::takes(const AttrValue& given) const {
  const AttrList* list = given.as<AttrList>();
  switch (value) {
    case AnnotationValue::kFlag:
      return given.as<bool>();
    case AnnotationValue::kInt:
      return given.as<int64_t>();
    case AnnotationValue::kString:
      return given.as<std::string>();
    case AnnotationValue::kStrings:
      return is_list_of<std::string>(given);
    case AnnotationValue::kStringAndInt:
      return list && list->size() == 2 && (*list)[0].as<std::string>() && (*list)[1].as<int64_t>();
    case AnnotationValue::kInts:
      return is_list_of<int64_t>(given);
    case AnnotationValue::kLists:
      return is_list_of<AttrList>(given);
    case AnnotationValue::kAny:
      return true;
  }
  return false;
}

std::span<const Annotation> all_annotations() {
  static const std::vector<Annotation> kRows = make_rows();
  return kRows;
}

const Annotation* find_annotation(std::string_view name) {
  for (const Annotation& row : all_annotations()) {
    std::string_view known = row.name;
    bool matches = known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1)) : name == known;
    if (matches) return &row;
  }
  return nullptr;
}

std::string nearest_annotation(std::string_view name) {
  std::vector<std::string> names;
  for (const Annotation& row : all_annotations()) names.push_back(row.name);
  return find_annotation(name) ? "" : nearest(name, names);
}

std::string_view to_string(AnnotationValue value) {
  switch (value) {
    case AnnotationValue::kFlag:
      return "True or False";
    case AnnotationValue::kInt:
      return "a whole number";
    case AnnotationValue::kString:
      return "a string";
    case AnnotationValue::kStrings:
      return "a list of buffers' names";
    case AnnotationValue::kStringAndInt:
      return "a buffer's name and a number of rows";
    case AnnotationValue::kInts:
      return "a list of whole numbers";
    case AnnotationValue::kLists:
      return "a list of lists";
    case AnnotationValue::kAny:
      return "any value";
  }
  return {};
}

std::string_view to_string(AnnotatedPlace place) {
  switch (place) {
    case AnnotatedPlace::kLoop:
      return "a loop";
    case AnnotatedPlace::kBlock:
      return "a block";
    case AnnotatedPlace::kAllocation:
      return "an allocation";
    case AnnotatedPlace::kAny:
      return "any place";
  }
  return {};
}

std::string describe_annotations() {
  std::string out;
  for (const Annotation& row : all_annotations()) {
    std::string reader = *row.reader ? fmt::format("read by {}", row.reader) : "ignored";
    out += fmt::format("{:<34} of {}: {}; {}\n    {}\n", row.name, to_string(row.place), to_string(row.value), reader,
                       row.doc);
  }
  return out;
}

}  // namespace relaxc
