# cmake -DOUTPUT=FILE.cc "-DFILES=a;b" -P embed_files.cmake: writes a C++ file that holds the texts of these files as raw
# strings, by their names without folders (tools/page.h).
set(rows)
set(strings)
set(number 0)
foreach(file IN LISTS FILES)
  file(READ ${file} text)
  string(FIND "${text}" ")relaxc_file\"" delimiter)
  if(NOT delimiter EQUAL -1)
    message(FATAL_ERROR "${file} holds the end of a raw string: choose another delimiter in cmake/embed_files.cmake")
  endif()
  get_filename_component(name ${file} NAME)
  string(APPEND strings "static constexpr char kText${number}[] = R\"relaxc_file(")
  string(APPEND strings "${text}" ")relaxc_file\";\n")
  string(APPEND rows "    {\"${name}\", {kText${number}, sizeof kText${number} - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"tools/page.h\"\n\n${strings}\nnamespace relaxc::tools {\n
const std::array<PageFile, ${number}> kFiles{{\n${rows}}};
std::span<const PageFile> page_files() { return kFiles; }\n\n}  // namespace relaxc::tools\n")
