#include "tir/schedule/draw.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "support/joined.h"
#include "support/printable.h"
#include "tir/edit/blocks.h"
#include "tir/program.h"

namespace relaxc {

using namespace scheduling;

namespace {

std::string bytes_text(int64_t bytes) {
  if (bytes < 10240) return fmt::format("{} B", bytes);
  if (bytes < 10240 * 1024) return fmt::format("{} KiB", (bytes + 512) / 1024);
  return fmt::format("{} MiB", (bytes + (512 << 10)) >> 20);
}

// Display columns of text in UTF-8.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
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
    return out;
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

  void one(TreeNode* node, const std::string& indent, bool last) {
    std::string head = indent + (last ? "└─ " : "├─ "), inner = indent + (last ? "   " : "│  ");
    if (node->is_loop()) {
      const For& loop = *node->loop;
      std::string kind = loop.kind == ForKind::kSerial ? "" : fmt::format("{} ", info(loop.kind).name);
      std::string thread = loop.thread.empty() ? "" : fmt::format(" ({})", loop.thread);
      std::string notes;
      for (const auto& [key, value] : loop.annotations) notes += fmt::format(" {{{}: {}}}", key, to_string(value));
      lines_.push_back(
          {fmt::format("{}{}{} {}{}{}", head, kind, loop.var->name, print_expr(loop.extent), thread, notes),
           footprint(node)});
      return children(node->children, inner);
    }
    if (node->is_block()) {
      auto text_of = [](const IterVar& axis) {
        char letter = info(axis.kind).letter ? info(axis.kind).letter : 'O';
        return fmt::format("{}:{}", letter, axis.var->name);
      };
      std::string condition =
          node->block->predicate ? fmt::format("  where {}", print_expr(*node->block->predicate)) : "";
      lines_.push_back(
          {fmt::format("{}block {}  {}{}", head, node->name(), joined(node->axes(), text_of, " "), condition), ""});
      allocations(*node->block, inner);
      return children(node->children, inner);
    }
    if (const IfThenElse* branch = node->leaf->as<IfThenElse>()) {
      lines_.push_back(
          {fmt::format("{}if {}", branch->else_body ? indent + "├─ " : head, print_expr(branch->condition)), ""});
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
        dims.push_back(bounded ? fmt::format("{}", most) : print_expr(extent));
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

std::string draw_loops(const std::string& name, const PrimFuncRef& function) { return Drawer().draw(name, function); }

}  // namespace relaxc
