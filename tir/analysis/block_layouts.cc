#include "tir/analysis/block_layouts.h"

#include "tir/analysis/annotations.h"
#include "tir/analysis/nests.h"

namespace relaxc {

namespace {

std::optional<size_t> lane_in(const Layout& layout, char axis) {
  const std::vector<size_t> parts = layout.parts_of(layout.axes().find(axis));
  return parts.size() > 1 ? std::optional(parts.back()) : std::nullopt;
}

}  // namespace

std::optional<size_t> BlockLayouts::lane_of_spatial(char axis) const { return lane_in(spatial, axis); }
std::optional<size_t> BlockLayouts::lane_of_reduced(char axis) const {
  auto lane = lane_in(reduced, axis);
  return lane ? std::optional(spatial.dims().size() + *lane) : std::nullopt;
}

AttrList layouts_attr(const BlockLayouts& layouts) {
  AttrList texts = {layouts.spatial.text(), layouts.reduced.text()};
  for (const Layout& operand : layouts.operands) texts.emplace_back(operand.text());
  return texts;
}

std::optional<BlockLayouts> layouts_of(const Block& block) {
  const AttrValue* value = block.annotations.find(annotation<"layouts">());
  std::vector<std::string> texts;
  if (!value || !from_attr(*value, texts) || texts.size() < 2) return std::nullopt;
  std::vector<Layout> layouts;
  for (const std::string& text : texts) {
    auto layout = Layout::parse(text);
    if (!layout) return std::nullopt;
    layouts.push_back(*layout);
  }
  const auto spatial = axes_of(block, IterKind::kSpatial), reduced = axes_of(block, IterKind::kReduce);
  const size_t count = spatial.size() + reduced.size();
  if (std::ssize(spatial) != layouts[0].rank() || std::ssize(reduced) != layouts[1].rank()) return std::nullopt;
  for (size_t d = 0; d < count; ++d) {
    if (block.iter_vars[d].kind != (d < spatial.size() ? IterKind::kSpatial : IterKind::kReduce)) return std::nullopt;
  }
  return BlockLayouts{layouts[0], layouts[1], {layouts.begin() + 2, layouts.end()}};
}

}  // namespace relaxc
