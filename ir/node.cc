#include "ir/node.h"

#include "ir/module.h"

namespace relaxc {

#define X(name) static_assert(lists_all_members<name>(), "fields() does not list each member once, under its name");
RELAXC_NODE_KINDS(X)
#undef X

const char* kind_name(NodeKind kind) {
  switch (kind) {
#define X(name)           \
  case NodeKind::k##name: \
    return #name;
    RELAXC_NODE_KINDS(X)
#undef X
  }
  return "?";
}

void destroy_node(const NodeHeader* node) {
  switch (node->kind) {
#define X(name)                                 \
  case NodeKind::k##name:                       \
    delete static_cast<const Box<name>*>(node); \
    return;
    RELAXC_NODE_KINDS(X)
#undef X
  }
}

}  // namespace relaxc
