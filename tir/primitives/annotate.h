#pragma once
#include <algorithm>

#include "tir/analysis/annotations.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Annotate {
  Place block_or_loop;
  std::string ann_key;
  Note ann_val;

  static constexpr PrimitiveInfo kInfo{
      "annotate", "sets an annotation of a block or a loop, which later passes read (tir/analysis/annotations.cc)"};
  static constexpr auto fields() {
    return list(required<&Annotate::block_or_loop>("is annotated"), required<&Annotate::ann_key>("the name"),
                required<&Annotate::ann_val>("the value"));
  }
  void apply(scheduling::Step& step) const {
    scheduling::TreeNode* node = step.place(block_or_loop);
    AttrValue value = ann_val.value;
    value.map_exprs([&](const Expr& e) { return step.number(e); });
    require_row(step, node, value);
    node->annotations().set(ann_key, value);
  }

 private:
  // A buffer that is fetched ahead must be used in the loop; lowering would leave out a name that is not.
  scheduling::Refusal not_used(const scheduling::TreeNode* loop, const AttrValue& value) const {
    bool is_current = ann_key == annotation<"prefetch_current">();
    if (!is_current && ann_key != annotation<"prefetch">() && ann_key != annotation<"prefetch_ahead">())
      return std::nullopt;
    for (const AttrValue& item : *value.as<AttrList>()) {
      auto is_named = [&](const BufferRegion& region) { return item == AttrValue(region.buffer->name); };
      auto uses = [&](const scheduling::TreeNode* block) {
        return std::ranges::any_of(block->block->reads, is_named) ||
               (is_current && std::ranges::any_of(block->block->writes, is_named));
      };
      if (item.as<std::string>() && std::ranges::none_of(blocks_below(loop), uses))
        return message("{}: loop '{}' {} no buffer {}", ann_key, loop, is_current ? "reads or writes" : "reads",
                       to_string(item));
    }
    return std::nullopt;
  }

  // Refuses another place than the annotation's. A name that is nearly a known one and a value of another kind are
  // errors: they fit no program, so nobody who wrote them wants a built-in rule instead.
  void require_row(scheduling::Step& step, scheduling::TreeNode* node, const AttrValue& value) const {
    const Annotation* row = find_annotation(ann_key);
    if (!row && is_misspelt(ann_key)) fail({}, "annotate: {}", unknown_annotation(ann_key));
    if (!row) return;  // TVM keeps any; a warning says that it has no effect
    if (!row->takes(value)) fail({}, "annotate: {} takes {}, got {}", ann_key, to_string(row->value), to_string(value));
    AnnotatedPlace here = node->is_loop() ? AnnotatedPlace::kLoop : AnnotatedPlace::kBlock;
    if (row->place != AnnotatedPlace::kAnywhere && row->place != here)
      step.refuse({node}, "{} takes {} and {}", row->name, to_string(row->place), to_string(row->value));
    step.require(not_used(node, value), node);
    bool has_position = ann_key == annotation<"double_buffer_scope">();
    if (has_position && static_cast<uint64_t>(*value.as<int64_t>()) >= node->block->writes.size())
      step.refuse({node}, "double_buffer_scope takes a block and the position of one of the buffers that it writes");
  }
};

}  // namespace relaxc
