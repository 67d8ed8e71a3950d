#include "tools/profile_page.h"

#include <fmt/format.h>

#include "support/printable.h"
#include "tools/page.h"

namespace relaxc::tools {

std::string profile_page(const std::string& model, const std::string& figures) {
  return html_of({.title = "profile of " + model,
                  .scripts = {"table.js", "roofline.js", "bars.js", "memory.js", "profile.js"},
                  .json = fmt::format("{{\"model\": {}, \"figures\": {}}}", json_string(model), figures)});
}

std::string comparison_page(const std::string& title, const std::string& comparison) {
  return html_of({.title = title, .scripts = {"table.js", "compare.js"}, .json = comparison});
}

}  // namespace relaxc::tools
