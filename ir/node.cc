#include "ir/node.h"

#include "ir/module.h"

namespace relaxc {

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
