// A file KEY.kernel has a line with a hash of the key and of the result, and then the result.
#include "codegen/kernel_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <mutex>

#include <fmt/format.h>

#include "codegen/build_id.h"
#include "codegen/cache_folder.h"
#include "vm/content_hash.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/output_file.h"

namespace relaxc::codegen {

namespace {

class KernelFiles final : public ResultStore {
 public:
  explicit KernelFiles(KernelFilesOptions options) : options_(std::move(options)), folder_(options_.folder) {}
  ~KernelFiles() override {
    if (kept_ > 0) trim_folder(folder_, kKernelSuffix, options_.most_bytes, options_.most_files);
    if (options_.at_end && found_ + kept_ > 0) options_.at_end(found_, kept_);
  }

  std::optional<std::string> find(const std::string& key) override {
    const std::string path = file_of(key);
    try {
      if (!is_cached_file(path) || !is_safe()) return std::nullopt;
      const auto file = vm::MappedFile::open(path);
      const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) return std::nullopt;
      std::string result(text.substr(end + 1));
      if (text.substr(0, end) != seal_of(key, result)) return std::nullopt;
      utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
      ++found_;
      return result;
    } catch (const RuntimeError&) {  // another process may have removed it
      return std::nullopt;
    }
  }

  void keep(const std::string& key, std::string_view result) override {
    try {
      make_private_folder(folder_);
      if (!is_safe()) return;
      const std::string path = file_of(key);
      make_way(path);
      vm::write_file(path, fmt::format("{}\n{}", seal_of(key, result), result));
      ++kept_;
    } catch (const RuntimeError& error) {
      std::call_once(failed_, [&] {
        if (options_.on_failure) options_.on_failure(error.what());
      });
    }
  }

 private:
  std::string file_of(const std::string& key) const {
    return fmt::format("{}/{}{}", folder_, vm::ContentHash().add(compiler_build()).add(key).digest(), kKernelSuffix);
  }
  static std::string seal_of(const std::string& key, std::string_view result) {
    return vm::ContentHash().add(key).add(result).digest();
  }
  // Returns whether only this user can write to the folder, which exists.
  bool is_safe() {
    std::call_once(checked_, [this] {
      try {
        check_private_folder(folder_);
        is_safe_ = true;
      } catch (const RuntimeError&) {
      }
    });
    return is_safe_;
  }

  const KernelFilesOptions options_;
  const std::string& folder_;
  std::once_flag checked_, failed_;
  bool is_safe_ = false;
  std::atomic<size_t> found_ = 0, kept_ = 0;
};

}  // namespace

std::shared_ptr<ResultStore> kernel_files(KernelFilesOptions options) {
  return std::make_shared<KernelFiles>(std::move(options));
}

}  // namespace relaxc::codegen
