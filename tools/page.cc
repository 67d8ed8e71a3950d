#include "tools/page.h"

#include <fmt/format.h>
#include <zlib.h>

#include "support/base64.h"
#include "support/check.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::tools {

namespace {

std::string_view page_file(std::string_view name) {
  const PageFile* file = find_item(page_files(), name, &PageFile::name);
  RELAXC_CHECK(file, "no file '{}' among the parts of pages", name);
  return file->text;
}

std::string replaced(std::string_view text, char character, std::string_view by) {
  std::string result;
  for (char c : text) {
    if (c == character) {
      result += by;
    } else {
      result += c;
    }
  }
  return result;
}

// Returns text for an element of a page: names come from models, which may be hostile.
std::string html_text(std::string_view text) { return replaced(replaced(printable(text), '&', "&amp;"), '<', "&lt;"); }

// A "<" stands only in strings of JSON, and could end the element there ("</script>").
std::string json_in_html(std::string_view json) { return replaced(json, '<', "\\u003c"); }

std::string gzipped(std::string_view text) {
  constexpr int kWindowOfGzip = 15 + 16, kMemoryLevel = 8;
  z_stream stream{};
  int status = deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kWindowOfGzip, kMemoryLevel, Z_DEFAULT_STRATEGY);
  RELAXC_CHECK(status == Z_OK, "zlib starts, got status {}", status);
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  status = deflate(&stream, Z_FINISH);
  deflateEnd(&stream);
  RELAXC_CHECK(status == Z_STREAM_END, "zlib compresses the texts of a page, got status {}", status);
  result.resize(stream.total_out);
  return result;
}

std::string script(std::string_view text) { return fmt::format("<script>\n{}\n</script>\n", text); }

}  // namespace

std::string html_of(const Page& page) {
  // The policy forbids the browser what the page does not do: to load anything.
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
      "style-src 'unsafe-inline'\">\n<title>{}</title>\n<!--\n{}-->\n<style>\n{}</style>\n</head>\n<body>\n"
      "<main id=\"page\"></main>\n<script type=\"application/json\" id=\"data\">{}</script>\n"
      "<script type=\"text/plain\" id=\"texts\">{}</script>\n",
      html_text(page.title), page_file("d3_licence.txt"), page_file("style.css"), json_in_html(page.json),
      to_base64(gzipped(page.texts)));
  html += script(page_file("d3.min.js")) + script(page_file("common.js"));
  for (const char* name : page.scripts) html += script(page_file(name));
  return html + "</body>\n</html>\n";
}

}  // namespace relaxc::tools
