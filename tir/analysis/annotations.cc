#include "tir/analysis/annotations.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/nearest.h"

namespace relaxc {

namespace {

using namespace annotations;

// An annotation of TVM's (tir/stmt.h, namespace attr) for other machines or for its search.
constexpr Annotation ignored(const char* name, AnnotatedPlace place, const char* doc) {
  return {name, place, kAny, "", doc};
}
constexpr Annotation kRows[] = {
#define X(constant, ...) constant,
    RELAXC_ANNOTATIONS(X)
#undef X
        ignored("pragma_*", kLoop, "TVM's pragmas of loops"),
    ignored("software_pipeline_stage", kLoop, "TVM's software pipelines"),
    ignored("software_pipeline_order", kLoop, "the same"),
    ignored("software_pipeline_async_stages", kLoop, "the same"),
    ignored("meta_schedule.*", kAnywhere, "notes of TVM's MetaSchedule"),
    ignored("schedule_rule", kBlock, "TVM's rule for the block"),
    ignored("layout_free_placeholders", kBlock, "buffers whose layout TVM may choose"),
    ignored("layout_free_buffers", kBlock, "buffers whose layout TVM may choose"),
    ignored("script_parsing_detect_access", kBlock, "TVM's parser infers the regions"),
    ignored("require_block_var_bound_predicate", kBlock, "TVM's axes that need a condition"),
    ignored("warp_execution", kAnywhere, "runs on all threads of a warp"),
    ignored("vector_bytes", kBlock, "the width of a copy to shared memory"),
    ignored("local_stage", kBlock, "a copy to shared memory goes through registers"),
    ignored("manifest_shared_memory_local_stage", kBlock, "the same"),
    ignored("permuted_layout", kBlock, "a layout of shared memory without bank conflicts"),
    ignored("thread_extent", kBlock, "the number of threads"),
    ignored("virtual_thread", kLoop, "virtual threads"),
    ignored("hand_threaded", kAnywhere, "threads are bound by hand"),
    ignored("volatile_scope", kAnywhere, "accesses are volatile"),
    ignored("user.*", kAnywhere, "free for notes of users"),
};

template <class T>
bool is(const AttrValue& value) {
  return value.as<T>();
}
template <class T>
bool is_list_of(const AttrValue& value) {
  const AttrList* list = value.as<AttrList>();
  return list && std::ranges::all_of(*list, is<T>);
}

// A row for each kind of value, in the order of the enum.
struct ValueRow {
  const char* text;
  bool (*takes)(const AttrValue&);
};
constexpr ValueRow kValues[] = {
    {"True or False", is<bool>},
    {"a whole number", is<int64_t>},
    {"a string", is<std::string>},
    {"a list of buffers' names", is_list_of<std::string>},
    {"a buffer's name and a number of rows",
     [](const AttrValue& value) {
       const AttrList* list = value.as<AttrList>();
       return list && list->size() == 2 && is<std::string>((*list)[0]) && is<int64_t>((*list)[1]);
     }},
    {"a list of whole numbers", is_list_of<int64_t>},
    {"a list of [buffer, axis, factor, offset]",
     [](const AttrValue& value) {
       auto is_row = [](const AttrValue& item) {
         return is_list_of<int64_t>(item) && item.as<AttrList>()->size() == 4;
       };
       return is<AttrList>(value) && std::ranges::all_of(*value.as<AttrList>(), is_row);
     }},
    {"any value", [](const AttrValue&) { return true; }},
};
const ValueRow& row_of(AnnotationValue value) { return kValues[static_cast<size_t>(value)]; }

}  // namespace

bool Annotation::takes(const AttrValue& given) const { return row_of(value).takes(given); }

const Annotation* find_annotation(std::string_view name) {
  for (const Annotation& row : kRows) {
    std::string_view known = row.name;
    bool matches = known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1)) : name == known;
    if (matches) return &row;
  }
  return nullptr;
}

std::string nearest_annotation(std::string_view name) {
  std::vector<std::string> names;
  for (const Annotation& row : kRows) names.push_back(row.name);
  return find_annotation(name) ? "" : nearest(name, names);
}

std::string_view to_string(AnnotationValue value) { return row_of(value).text; }

std::string_view to_string(AnnotatedPlace place) {
  constexpr std::string_view kTexts[] = {"a loop", "a block", "an allocation", "any place"};
  return kTexts[static_cast<size_t>(place)];
}

std::string describe_annotations() {
  std::string out;
  for (const Annotation& row : kRows) {
    std::string reader = *row.reader ? fmt::format("read by {}", row.reader) : "ignored";
    out += fmt::format("{:<34} of {}: {}; {}\n    {}\n", row.name, to_string(row.place), to_string(row.value), reader,
                       row.doc);
  }
  return out;
}

}  // namespace relaxc
