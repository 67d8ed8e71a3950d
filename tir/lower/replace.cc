#include "tir/lower/replace.h"

namespace relaxc {

Stmt redirect(const Stmt& body, const Redirection& to) {
  auto redirected = [&](auto access) -> std::optional<decltype(access)> {
    std::optional<Buffer> buffer = to(access.buffer, access.indices);
    if (buffer) access.buffer = *buffer;
    return buffer ? std::optional(std::move(access)) : std::nullopt;
  };
  return rewrite(
      body,
      [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
        auto copy = redirected(*load);
        return copy ? std::optional<Expr>(make(std::move(*copy), load.type(), load.span())) : std::nullopt;
      },
      [&](const Ref<BufferStore>& store) -> std::optional<Stmt> {
        auto copy = redirected(*store);
        return copy ? std::optional<Stmt>(make(std::move(*copy), store.span())) : std::nullopt;
      });
}

Stmt replace_nodes(const Stmt& body, const VarMap& by) {
  class Replacer final : public Rewriter {
   public:
    explicit Replacer(const VarMap& by) : by_(by) {}
    Expr expr(const Expr& e) override {
      auto it = by_.find(e.get());
      return it == by_.end() ? Rewriter::expr(e) : it->second;
    }

   private:
    const VarMap& by_;
  };
  return Replacer(by).stmt(body);
}

}  // namespace relaxc
