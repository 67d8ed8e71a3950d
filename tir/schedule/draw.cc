#include "tir/schedule/draw.h"

#include <algorithm>
#include <array>

#include "ir/text/names.h"
#include "ir/text/printer.h"
#include "support/joined.h"
#include "support/printable.h"
#include "tir/edit/blocks.h"
#include "tir/program.h"
#include "tir/schedule/freedom.h"

namespace relaxc {

using namespace scheduling;

namespace {

std::string bytes_text(int64_t bytes) {
  if (bytes < 10240) return fmt::format("{} B", bytes);
  if (bytes < 10240 * 1024) return fmt::format("{} KiB", (bytes + 512) / 1024);
  return fmt::format("{} MiB", (bytes + (512 << 10)) >> 20);
}

std::string number_text(const Expr& e) {
  auto number = as_int(e);
  return number ? fmt::format("{}", *number) : print_plain(e);
}

// Display columns of text in UTF-8.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string text_of(const LoopReduction& reduction) {
  return fmt::format("{}, in {}", reduction.what, reduction.in_order ? "this order" : "any order");
}

bool is_certain(const CarriedAccess& carried) {
  return carried.how != Meets::kMayLoad && carried.how != Meets::kMayStore;
}
std::string text_of(const CarriedAccess& carried) {
  const std::string access = print_plain(load(carried.buffer, carried.indices));
  const int64_t apart = std::abs(carried.distance.value_or(0));
  const std::string when = apart == 0 ? carried.distance ? "this iteration" : "another iteration"
                                      : fmt::format("{} iteration{} {}", apart, apart == 1 ? "" : "s",
                                                    *carried.distance > 0 ? "before" : "later");
  switch (carried.how) {
    case Meets::kCarried:
      return fmt::format("carried: {} of {}", access, when);
    case Meets::kStored:
      return fmt::format("stored again: {} of {}", access, when);
    case Meets::kShared:
      return "shared by all iterations: " + access;
    case Meets::kMayLoad:
      return fmt::format("{} may be an element that another iteration stores", access);
    case Meets::kMayStore:
      return fmt::format("{} may be an element that another iteration stores, too", access);
  }
  return "";
}

// Says what is known to stand against iterations in any order, and in a sentence below what may do so.
struct DependenceText {
  std::string known, note;
};
template <class Freedom>
DependenceText dependence_text(const Freedom& freedom) {
  if (!freedom.dependence) return {"independent", freedom.effect.value_or("")};
  std::vector<std::string> parts, notes;
  auto add = [&](const std::string& part) {
    if (std::ranges::count(parts, part) == 0) parts.push_back(part);
  };
  for (const auto& reduction : freedom.reductions) add(text_of(reduction));
  for (const CarriedAccess& carried : freedom.carried) {
    if (is_certain(carried)) add(text_of(carried));
    if (!is_certain(carried) && !std::ranges::count(notes, text_of(carried))) notes.push_back(text_of(carried));
  }
  if (freedom.effect) notes.push_back(*freedom.effect);
  if (!parts.empty()) return {joined(parts, "; "), joined(notes, "; ")};
  if (!notes.empty()) return {"dependent", joined(notes, "; ")};
  // No access stands against another order, and yet a schedule may not change it: an axis is opaque, for instance.
  return {"independent", *freedom.dependence};
}

std::string padded(const std::string& text, size_t columns) { return text + std::string(columns - width(text), ' '); }

std::string name_of(const TreeNode* loop) { return loop->name(); }
std::string name_of(const Ref<For>& loop) { return loop->var->name; }

// A row of the table, and a sentence below it.
struct FreedomRow {
  std::array<std::string, 5> cells;
  std::string note = {};
};
template <class Freedom>
FreedomRow row_of(const Freedom& freedom) {
  auto stride_text = [](const AccessStride& access) {
    return fmt::format("{} {}", access.buffer->name, access.stride ? number_text(*access.stride) : "varies");
  };
  std::string others = joined(freedom.exchanged, [](const auto& loop) { return name_of(loop); });
  DependenceText iterations = dependence_text(freedom);
  return {{name_of(freedom.loop), iterations.known, freedom.dependence ? "no" : "yes",
           joined(freedom.strides, stride_text), others.empty() ? "-" : others},
          iterations.note};
}

// Returns a row for each loop with what a schedule may do to it.
std::string freedom_table(const std::string& name, const PrimFuncRef& function) {
  Workspace workspace(IRModule{{{name, function}}, {}, {}});
  std::vector<FreedomRow> rows = {{{"loop", "iterations", "vectorize", "strides", "reorder with"}}};
  std::vector<LoopFreedom> freedoms = find_freedoms(workspace);
  for (const TreeNode* node : subtree(workspace.tree().root())) {
    auto around_blocks = std::ranges::find(freedoms, node, &LoopFreedom::loop);
    if (around_blocks != freedoms.end()) rows.push_back(row_of(*around_blocks));
    const Stmt* plain = node->leaf ? &*node->leaf : node->is_leaf_block() ? &node->block->body : nullptr;
    if (!plain) continue;
    const std::vector<MatchBuffer> windows = node->leaf ? std::vector<MatchBuffer>() : node->block->match_buffers;
    for (const PlainLoopFreedom& freedom : find_plain_freedoms(*plain, windows, node->tree->facts))
      rows.push_back(row_of(freedom));
  }
  if (rows.size() == 1) return "";
  std::array<size_t, 5> columns = {};
  for (FreedomRow& row : rows) {
    for (size_t c = 0; c < columns.size(); ++c) {
      row.cells[c] = printable(row.cells[c], std::string::npos);
      columns[c] = std::max(columns[c], width(row.cells[c]));
    }
  }
  std::string out;
  for (const FreedomRow& row : rows) {
    std::string line = "  ";
    for (size_t c = 0; c + 1 < columns.size(); ++c) line += padded(row.cells[c], columns[c] + 2);
    out += line + row.cells.back() + '\n';
    if (!row.note.empty()) out += "    " + printable(row.note, std::string::npos) + '\n';
  }
  return out;
}

class Drawer {
 public:
  std::string draw(const std::string& name, const PrimFuncRef& function) {
    function_ = function;
    auto text_of = [](const VarRef& param) {
      const BufferType* buffer = param.type().as<BufferType>();
      return fmt::format("{} {}", param->name, buffer ? buffer_text(*buffer) : print_type(param.type()));
    };
    lines_.push_back({fmt::format("{}({})", name, joined(function->params, text_of)), ""});
    program(function, "");
    size_t column = 0;
    for (Line& line : lines_) {
      // Names of buffers may come from a model.
      line = {printable(line.text, std::string::npos), printable(line.note, std::string::npos)};
      if (!line.note.empty()) column = std::max(column, width(line.text));
    }
    std::string out;
    for (const Line& line : lines_) {
      out += line.text;
      if (!line.note.empty()) out += std::string(column + 3 - width(line.text), ' ') + line.note;
      out += '\n';
    }
    return out + freedom_table(name, function);
  }

 private:
  struct Line {
    std::string text, note;
  };

  void allocations(const Block& block, const std::string& indent) {
    for (const Buffer& buffer : block.alloc_buffers)
      lines_.push_back({fmt::format("{}   + {} {}", indent, buffer->name, buffer_text(buffer_type(buffer))), ""});
  }

  void children(const Nodes& nodes, const std::string& indent) {
    for (TreeNode* node : nodes) one(node, indent, node == nodes.back());
  }

  void program(const PrimFuncRef& function, const std::string& indent) {
    Tree tree(function);
    allocations(*tree.root()->block, indent);
    children(tree.root()->children, indent);
  }

  static std::string loop_text(const For& loop) {
    std::string kind = loop.kind == ForKind::kSerial ? "" : fmt::format("{} ", info(loop.kind).name);
    std::string thread = loop.thread.empty() ? "" : fmt::format(" ({})", loop.thread);
    std::string notes;
    for (const auto& [key, value] : loop.annotations) notes += fmt::format(" {{{}: {}}}", key, to_string(value));
    return fmt::format("{}{} {}{}{}", kind, loop.var->name, number_text(loop.extent), thread, notes);
  }

  void one(TreeNode* node, const std::string& indent, bool last) {
    std::string head = indent + (last ? "└─ " : "├─ "), inner = indent + (last ? "   " : "│  ");
    if (node->is_loop()) {
      lines_.push_back({head + loop_text(*node->loop), footprint(node)});
      return children(node->children, inner);
    }
    if (node->is_block()) {
      auto text_of = [](const IterVar& axis) {
        char letter = info(axis.kind).letter ? info(axis.kind).letter : 'O';
        return fmt::format("{}:{}", letter, axis.var->name);
      };
      std::string condition =
          node->block->predicate ? fmt::format("  where {}", print_plain(*node->block->predicate)) : "";
      lines_.push_back(
          {fmt::format("{}block {}  {}{}", head, node->name(), joined(node->axes(), text_of, " "), condition), ""});
      allocations(*node->block, inner);
      if (node->is_leaf_block() && holds<For>(node->block->body))
        program(with_body(*function_, node->block->body), inner);
      return children(node->children, inner);
    }
    if (const For* loop = node->leaf->as<For>()) {
      lines_.push_back({head + loop_text(*loop), ""});
      return program(with_body(*function_, loop->body), inner);
    }
    if (const IfThenElse* branch = node->leaf->as<IfThenElse>()) {
      lines_.push_back(
          {fmt::format("{}if {}", branch->else_body ? indent + "├─ " : head, print_plain(branch->condition)), ""});
      program(with_body(*function_, branch->then_body), branch->else_body ? indent + "│  " : inner);
      if (!branch->else_body) return;
      lines_.push_back({head + "else", ""});
      return program(with_body(*function_, *branch->else_body), inner);  // each branch is drawn as one
    }
    std::string text = print_stmt(*node->leaf);
    size_t end = text.find('\n');
    lines_.push_back({fmt::format("{}{}{}", head, text.substr(0, end), end + 1 < text.size() ? " ..." : ""), ""});
  }

  // Returns the regions that the blocks in one iteration touch, buffer by buffer.
  static std::string footprint(TreeNode* loop) {
    Nodes blocks = blocks_below(loop);
    std::vector<Buffer> buffers;
    for (const TreeNode* block : blocks) {
      for (const auto* regions : {&block->block->reads, &block->block->writes}) {
        for (const BufferRegion& region : *regions) {
          if (!contains(buffers, region.buffer)) buffers.push_back(region.buffer);
        }
      }
    }
    std::vector<std::string> parts;
    for (const Buffer& buffer : buffers) {
      auto read = region_at(blocks, buffer, AccessKind::kRead, loop);
      auto write = region_at(blocks, buffer, AccessKind::kWrite, loop);
      std::vector<Range> region = read ? *read : *write;
      std::vector<std::string> dims;
      int64_t size = buffer_type(buffer).dtype.bytes();
      bool known = true;
      for (size_t d = 0; d < region.size(); ++d) {
        const Expr& dim = buffer_type(buffer).shape[d];
        if (read && write) region[d] = hull(region[d], (*write)[d], dim, loop->tree->facts);
        const Expr& own = region[d].extent;
        Expr extent = loop->tree->facts.can_prove(own >= cast_to(dim, dtype_of(own))) ? dim : own;
        int64_t most = constant_above(extent, loop->tree->facts);
        bool bounded = most < (int64_t{1} << 40);
        known = known && bounded;
        if (bounded) size *= most;
        dims.push_back(bounded ? fmt::format("{}", most) : print_plain(extent));
      }
      parts.push_back(
          fmt::format("{} {}{}", buffer->name, joined(dims, "x"), known ? fmt::format(" ({})", bytes_text(size)) : ""));
    }
    return joined(parts);
  }

  std::vector<Line> lines_;
  std::optional<PrimFuncRef> function_;
};

}  // namespace

// Gives buffers of one name numbers, as the program's text does.
static PrimFuncRef with_unique_buffers(const PrimFuncRef& function) {
  text::NameTable names;
  VarMap renamed;
  auto add = [&](const Buffer& buffer) {
    if (!buffer.type().is<BufferType>()) return;
    const std::string name = names.define(buffer);
    if (name != text::identifier(buffer->name))
      renamed.emplace(buffer.get(), make_var(name, buffer.type(), buffer.span()));
  };
  std::ranges::for_each(function->params, add);
  walk(
      function->body, [&](const Block& block) { std::ranges::for_each(block.alloc_buffers, add); },
      [&](const AllocBuffer& allocated) { add(allocated.buffer); });
  if (renamed.empty()) return function;
  Substitution replaced(std::move(renamed));
  PrimFunc copy = *function;
  for (VarRef& param : copy.params) param = replaced.var(param);
  copy.body = replaced.stmt(copy.body);
  return make_prim_func(std::move(copy), function.span());
}

std::string draw_loops(const std::string& name, const PrimFuncRef& function) {
  return Drawer().draw(name, with_unique_buffers(function));
}

}  // namespace relaxc
