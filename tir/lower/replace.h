#pragma once
#include "ir/visit.h"

namespace relaxc {

// Returns the buffer that an access goes to instead, and changes the indices accordingly; nullopt: it stays.
using Redirection = std::function<std::optional<Buffer>(const Buffer& buffer, std::vector<Expr>& indices)>;
// Returns the statement with its loads and stores redirected.
Stmt redirect(const Stmt& body, const Redirection& to);

// Returns the statement with expressions replaced that are found by identity.
Stmt replace_nodes(const Stmt& body, const VarMap& by);

}  // namespace relaxc
