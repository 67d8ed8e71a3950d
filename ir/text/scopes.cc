#include "ir/text/scopes.h"

#include <algorithm>

namespace relaxc::text {

void Scopes::leave() {
  for (Stacks::value_type* named : scopes_.back()) named->second.pop_back();
  scopes_.pop_back();
  // The names of a function are erased after it, so that the next one does not pay for them.
  if (scopes_.size() == 1) std::erase_if(stacks_, [](const auto& named) { return named.second.empty(); });
}

void Scopes::define(std::string_view name, Entity entity) {
  auto found = stacks_.find(name);
  if (found == stacks_.end()) found = stacks_.try_emplace(std::string(name)).first;
  std::vector<Definition>& stack = found->second;
  if (!stack.empty() && stack.back().depth == scopes_.size()) {
    stack.back().entity = std::move(entity);
  } else {
    stack.push_back({scopes_.size(), std::move(entity)});
    scopes_.back().push_back(&*found);
  }
}

void Scopes::define_outermost(std::string_view name, Entity entity) {
  size_t depth = std::min<size_t>(2, scopes_.size());
  auto found = stacks_.try_emplace(std::string(name)).first;
  if (!found->second.empty()) return;
  found->second.push_back({depth, std::move(entity)});
  scopes_[depth - 1].push_back(&*found);
}

const Entity* Scopes::find_here(std::string_view name) const {
  auto found = stacks_.find(name);
  bool here = found != stacks_.end() && !found->second.empty() && found->second.back().depth == scopes_.size();
  return here ? &found->second.back().entity : nullptr;
}

std::map<std::string, Entity> Scopes::here() const {
  std::map<std::string, Entity> result;
  for (const Stacks::value_type* named : scopes_.back()) result.emplace(named->first, named->second.back().entity);
  return result;
}

const Entity* Scopes::find(std::string_view name) const {
  auto found = stacks_.find(name);
  return found == stacks_.end() || found->second.empty() ? nullptr : &found->second.back().entity;
}

std::map<std::string, const Entity*> Scopes::visible() const {
  std::map<std::string, const Entity*> result;
  for (const auto& [name, stack] : stacks_) {
    if (!stack.empty()) result.emplace(name, &stack.back().entity);
  }
  return result;
}

}  // namespace relaxc::text
