// Pages for browsers in tests: they are made, taken apart, and opened in a browser where there is one.
#pragma once
#include <string>

#include "ir/attrs.h"
#include "tests/folder.h"

namespace relaxc::test {

// Returns the data that the page holds for its scripts, and the long texts, which it holds compressed.
Attrs data_of_page(const std::string& page);
Attrs texts_of_page(const std::string& page);
const AttrList& list_at(const Attrs& entries, const std::string& key);
const Attrs& entries_at(const Attrs& entries, const std::string& key);

// Makes pages of models, profiles and comparisons.
struct PageFolder : Folder {
  PageFolder();
  // A model with hostile names whose product, sum and relu are one kernel, behind which a pool follows.
  std::string hostile_model() const;
  // Runs relaxc with these words, which have to make the file, and returns it.
  std::string made(const std::string& file, const std::vector<std::string>& words) const;
};
inline constexpr const char* kHostileName = "</script><script>document.title=\"taken\"</script>\x01\"'&<b>";

// Returns the first of the browsers that is installed; "" without one.
std::string browser();
// Opens the page, whose address may end in "#settings", and returns its elements after its scripts have run.
std::string opened_page(const Folder& folder, const std::string& address);
// Opens it, and writes what a person sees, 1280 by 800 pixels, to a file (.png).
void show_page(const Folder& folder, const std::string& address, const std::string& picture);

}  // namespace relaxc::test
