// The rooms and their arrows: the table in ARCHITECTURE.md against every #include.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "tests/catch.h"

namespace fs = std::filesystem;

namespace {

const fs::path kTree = RELAXC_SOURCE_DIR;
const std::set<std::string> kOthers = {"tests", "examples", "bench", "docs", "cmake"};  // folders beside the rooms

struct Room {
  std::string name;
  std::set<std::string> may_include;
};

// `a/` of each table cell `...`.
std::vector<std::string> folders_in(const std::string& cell) {
  std::vector<std::string> result;
  for (size_t begin = 0; (begin = cell.find('`', begin)) != std::string::npos;) {
    size_t end = cell.find('`', begin + 1);
    std::string name = cell.substr(begin + 1, end - begin - 1);
    if (name.ends_with('/') || name.ends_with("/**")) result.push_back(name.substr(0, name.size() - 1));
    begin = end + 1;
  }
  return result;
}

// `tir/**`: the folder and all that are in it.
std::vector<std::string> with_wildcards(const std::vector<std::string>& cell, const std::vector<Room>& above) {
  std::vector<std::string> result;
  for (const std::string& name : cell) {
    if (!name.ends_with("/*")) {
      result.push_back(name);
      continue;
    }
    std::string folder = name.substr(0, name.size() - 2);
    for (const Room& room : above) {
      if (room.name == folder || room.name.starts_with(folder + "/")) result.push_back(room.name);
    }
  }
  return result;
}

// The rows of the table whose head has the column "may include", in order.
std::vector<Room> read_rooms() {
  std::vector<Room> rooms;
  std::ifstream file(kTree / "ARCHITECTURE.md");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('|')) {
      inside = false;
    } else if (line.find("may include") != std::string::npos) {
      inside = true;
    } else if (inside && line.find("---") == std::string::npos) {
      std::istringstream cells(line.substr(1));
      std::string name, doc, allowed;
      std::getline(cells, name, '|');
      std::getline(cells, doc, '|');
      std::getline(cells, allowed, '|');
      std::vector<std::string> own = folders_in(name), list = with_wildcards(folders_in(allowed), rooms);
      REQUIRE(own.size() == 1);
      rooms.push_back({own[0], {list.begin(), list.end()}});
    }
  }
  return rooms;
}

// The rooms and the folders beside them, whose files may include anything.
std::vector<Room> read_all_folders() {
  std::vector<Room> folders = read_rooms();
  for (const std::string& name : kOthers) folders.push_back({name, {}});
  return folders;
}

// The longest folder of the table that the path begins with.
std::string room_of(const std::string& path, const std::vector<Room>& rooms) {
  std::string longest;
  for (const Room& room : rooms) {
    if (path.starts_with(room.name + "/") && room.name.size() > longest.size()) longest = room.name;
  }
  return longest;
}

struct Include {
  std::string file;  // relative to the root
  int line;
  std::string target;  // between the quotes or brackets
  bool quoted;
};

// Calls visit(path, number, line) for each line of the C++ in the rooms.
void for_each_line(const std::vector<Room>& rooms,
                   const std::function<void(const std::string&, int, const std::string&)>& visit) {
  for (const Room& room : rooms) {
    for (const auto& entry : fs::recursive_directory_iterator(kTree / room.name)) {
      std::string extension = entry.path().extension().string();
      if (extension != ".cc" && extension != ".h") continue;
      std::string path = fs::relative(entry.path(), kTree).generic_string();
      if (room_of(path, rooms) != room.name) continue;  // comes with its own room
      std::ifstream file(entry.path());
      int number = 0;
      for (std::string line; std::getline(file, line);) visit(path, ++number, line);
    }
  }
}

std::vector<Include> read_includes(const std::vector<Room>& rooms) {
  std::vector<Include> result;
  for_each_line(rooms, [&](const std::string& path, int number, const std::string& line) {
    size_t hash = line.find_first_not_of(' ');
    if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) return;
    size_t open = line.find_first_of("\"<", hash), close = line.find_first_of("\">", open + 1);
    REQUIRE(close != std::string::npos);
    result.push_back({path, number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  });
  return result;
}

// A path from the edges that comes back to where it begins; empty: there is none.
std::string find_cycle(const std::map<std::string, std::set<std::string>>& edges) {
  std::map<std::string, int> state;  // 1: on the path, 2: done
  std::string cycle;
  std::function<void(const std::string&, const std::string&)> visit = [&](const std::string& at,
                                                                          const std::string& path) {
    if (state[at] == 1 && cycle.empty()) cycle = path;
    if (state[at] != 0) return;
    state[at] = 1;
    auto found = edges.find(at);
    for (const std::string& target : found == edges.end() ? std::set<std::string>() : found->second)
      visit(target, path + " -> " + target);
    state[at] = 2;
  };
  for (const auto& [at, targets] : edges) visit(at, at);
  return cycle;
}

std::string place(const Include& include) {
  return include.file + ":" + std::to_string(include.line) + ": " + include.target;
}

}  // namespace

TEST_CASE("the table of rooms is in dependency order and complete", "[layering]") {
  std::vector<Room> rooms = read_rooms();
  REQUIRE(rooms.size() >= 9);
  std::set<std::string> above;
  for (const Room& room : rooms) {
    INFO(room.name);
    CHECK(fs::is_directory(kTree / room.name));
    for (const std::string& other : room.may_include) {
      INFO("includes " << other);
      CHECK(above.contains(other));
    }
    above.insert(room.name);
  }
  // Each folder with C++ in it is a room or one of the named others.
  for (const auto& entry : fs::directory_iterator(kTree)) {
    std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.starts_with('.') || name.starts_with("build")) continue;
    INFO(name);
    CHECK((above.contains(name) || kOthers.contains(name)));
  }
}

TEST_CASE("a room includes only the rooms that it may", "[layering]") {
  std::vector<Room> rooms = read_rooms();
  std::map<std::string, std::set<std::string>> allowed;
  for (const Room& room : rooms) {
    allowed[room.name] = room.may_include;
    allowed[room.name].insert(room.name);
  }
  std::vector<Include> includes = read_includes(rooms);
  REQUIRE(includes.size() > 200);
  std::string wrong;
  for (const Include& include : includes) {
    if (!include.quoted) continue;
    bool exists = include.target.find('/') != std::string::npos && fs::exists(kTree / include.target);
    if (!exists) wrong += "\n  " + place(include) + " (give the path from the root)";
    if (exists && !allowed[room_of(include.file, rooms)].contains(room_of(include.target, rooms)))
      wrong += "\n  " + place(include);
  }
  INFO("arrows that ARCHITECTURE.md does not allow:" << wrong);
  CHECK(wrong.empty());
}

TEST_CASE("foreign headers stay in their room", "[layering]") {
  const std::vector<std::pair<std::string, std::string>> homes = {{"llvm/", "codegen/"},
                                                                  {"llvm-c/", "codegen/"},
                                                                  {"lld/", "codegen/"},
                                                                  {"onnx/", "frontend/onnx/"},
                                                                  {"google/protobuf/", "frontend/onnx/"},
                                                                  {"CLI/", "tools/"},
                                                                  {"zlib.h", "tools/"},
                                                                  {"jpeglib.h", "images/"},
                                                                  {"openjpeg.h", "images/"},
                                                                  {"png.h", "images/"},
                                                                  {"tiffio.h", "images/"},
                                                                  {"webp/", "images/"},
                                                                  {"catch2/", "tests/"}};
  std::string wrong;
  std::set<std::string> seen;
  for (const Include& include : read_includes(read_rooms())) {
    if (include.quoted) continue;
    for (const auto& [prefix, home] : homes) {
      if (!include.target.starts_with(prefix)) continue;
      seen.insert(prefix);
      if (!include.file.starts_with(home)) wrong += "\n  " + place(include) + " belongs to " + home;
    }
  }
  INFO("foreign headers in the wrong room:" << wrong);
  CHECK(wrong.empty());
  for (const char* prefix : {"llvm/", "onnx/", "CLI/", "png.h"})
    CHECK(seen.contains(prefix));  // the test still finds them
}

TEST_CASE("files and folders include each other without a cycle", "[layering]") {
  std::map<std::string, std::set<std::string>> files, folders;
  for (const Include& include : read_includes(read_all_folders())) {
    if (!include.quoted) continue;
    // Examples are projects of their own, and include their own headers and generated files.
    if (include.file.starts_with("examples/") && include.target.find('/') == std::string::npos) continue;
    INFO(place(include) << ": give the path from the root");
    CHECK(fs::exists(kTree / include.target));
    files[include.file].insert(include.target);
    std::string from = fs::path(include.file).parent_path().generic_string(),
                to = fs::path(include.target).parent_path().generic_string();
    if (from != to) folders[from].insert(to);
  }
  REQUIRE(folders.size() > 30);
  CHECK(folders.contains("tests/schedule"));
  CHECK(find_cycle(files) == "");
  CHECK(find_cycle(folders) == "");
  CHECK(find_cycle({{"a", {"b"}}, {"b", {"c"}}, {"c", {"a"}}}) == "a -> b -> c -> a");
}

// Two types of one name in one namespace are undefined behaviour, and no compiler sees it when they never meet.
TEST_CASE("no two types share a name in a namespace", "[layering]") {
  std::map<std::string, std::string> homes;  // from the qualified name
  std::vector<std::string> namespaces;
  std::string wrong;
  for_each_line(read_rooms(), [&](const std::string& path, int number, const std::string& line) {
    if (number == 1) namespaces.clear();
    std::istringstream words(line);
    std::string keyword, name, next;
    words >> keyword >> name >> next;
    if (keyword == "namespace") namespaces.push_back(name == "{" ? path : name);  // a nameless one is its file's
    if (line.starts_with("}  // namespace")) namespaces.pop_back();
    bool defines = (line.starts_with("struct ") || line.starts_with("class ")) && (next == "{" || next == ":");
    if (!defines || namespaces.empty()) return;
    std::string qualified;
    for (const std::string& scope : namespaces) qualified += scope + "::";
    auto [home, is_new] = homes.emplace(qualified + name, path);
    if (!is_new && home->second != path) wrong += "\n  " + qualified + name + ": " + home->second + ", " + path;
  });
  INFO("types with two definitions:" << wrong);
  CHECK(wrong.empty());
  CHECK(homes.contains("relaxc::AxisFold"));
}
