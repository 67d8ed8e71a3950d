#include "ir/regions.h"

namespace relaxc {

namespace {

class AccessCollector {
 public:
  explicit AccessCollector(const Stmt& body) {
    walk_nodes(body, [&](const NodeRef& node) {
      visit_children(node, [&](const NodeRef& child, Slot slot) {
        if (child.is<Var>() && slot.role != Role::kField) bound_.insert(child.get());
      });
      return true;
    });
  }

  void add(std::vector<BufferRegion>& regions, const Buffer& buffer, const std::vector<Expr>& indices) {
    if (bound_.contains(buffer.get())) return;
    std::vector<Range> ranges;
    for (size_t d = 0; d < indices.size(); ++d) ranges.push_back(range_of(buffer, d, indices[d]));
    for (BufferRegion& region : regions) {
      if (!same_node(region.buffer, buffer)) continue;
      for (size_t d = 0; d < ranges.size(); ++d) {
        bool same = structural_equal(region.ranges[d].min, ranges[d].min) &&
                    structural_equal(region.ranges[d].extent, ranges[d].extent);
        if (!same) region.ranges[d] = whole(buffer, d);
      }
      return;
    }
    regions.push_back({buffer, std::move(ranges)});
  }

 private:
  static Range whole(const Buffer& buffer, size_t d) {
    const Expr& extent = buffer_type(buffer).shape[d];
    return {int_imm(0, dtype_of(extent)), extent};
  }
  Range range_of(const Buffer& buffer, size_t d, const Expr& index) {
    bool known = dtype_of(index).lanes == 1;
    walk(
        index, [&](const Ref<Var>& var) { known = known && !bound_.contains(var.get()); },
        [&](const BufferLoad&) { known = false; }, [&](const Let&) { known = false; });
    if (!known) return whole(buffer, d);
    return {index, int_imm(1, dtype_of(index))};
  }

  std::unordered_set<const NodeHeader*> bound_;
};

}  // namespace

Accesses find_accesses(const Stmt& body, const std::optional<Stmt>& init) {
  Accesses result;
  AccessCollector collector(init ? seq({*init, body}) : body);
  auto collect = [&](const Stmt& stmt) {
    walk(
        stmt, [&](const BufferLoad& load) { collector.add(result.reads, load.buffer, load.indices); },
        [&](const BufferStore& store) { collector.add(result.writes, store.buffer, store.indices); });
  };
  if (init) collect(*init);
  collect(body);
  if (init) {
    std::erase_if(result.reads, [&](const BufferRegion& read) {
      for (const BufferRegion& write : result.writes) {
        if (same_node(read.buffer, write.buffer)) return true;
      }
      return false;
    });
  }
  return result;
}

}  // namespace relaxc
