// HTML pages of one file each: data, styles, scripts and the library that draws (D3) are inside, and a page asks no
// network for anything. Data flows one way: a struct of C++, its JSON, a script of tools/pages/ that draws it.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace relaxc::tools {

// A file of tools/pages/, or D3. The build writes them into the program (cmake/embed_files.cmake).
struct PageFile {
  std::string_view name, text;
};
std::span<const PageFile> page_files();

struct Page {
  std::string title;
  std::vector<const char*> scripts;  // files of tools/pages/, in order, behind D3 and common.js
  std::string json;                  // the data, which the scripts read
  // Long texts by name, which the page holds compressed: a page of a network has some MB of them.
  std::string texts = "{}";  // JSON
};
std::string html_of(const Page& page);

}  // namespace relaxc::tools
