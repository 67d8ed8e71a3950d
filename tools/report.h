// What a command found out, for people and as JSON: objects whose members have an order, lists, texts and numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace relaxc::tools {

class Report;
class ReportValue;
using ReportList = std::vector<ReportValue>;

class ReportValue {
 public:
  ReportValue(bool value) : value_(value) {}                      // NOLINT: implicit, as are the others
  ReportValue(double value) : value_(value) {}                    // NOLINT
  ReportValue(std::string value) : value_(std::move(value)) {}    // NOLINT
  ReportValue(const char* value) : value_(std::string(value)) {}  // NOLINT
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  ReportValue(Integer value) : value_(static_cast<int64_t>(value)) {}  // NOLINT
  ReportValue(ReportList value);                                       // NOLINT
  ReportValue(Report value);                                           // NOLINT

  // Return the value where it is of the kind, else null.
  template <class T>
  const T* as() const {
    if constexpr (std::is_same_v<T, Report> || std::is_same_v<T, ReportList>) {
      const auto* shared = std::get_if<std::shared_ptr<const T>>(&value_);
      return shared ? shared->get() : nullptr;
    } else {
      return std::get_if<T>(&value_);
    }
  }
  std::string json() const;
  // Returns it on one line for a person.
  std::string text() const;

 private:
  std::variant<bool, int64_t, double, std::string, std::shared_ptr<const ReportList>, std::shared_ptr<const Report>>
      value_;
};

class Report {
 public:
  using Member = std::pair<std::string, ReportValue>;
  Report() = default;
  Report(std::initializer_list<Member> members) : members_(members) {}
  // Adds a member, or replaces that of the name.
  void set(const std::string& name, ReportValue value);
  const ReportValue* find(std::string_view name) const;
  const std::vector<Member>& members() const { return members_; }
  // Puts the members of these names first, in this order.
  void order(const std::vector<std::string>& names);
  std::string json() const;
  // Returns lines for a person: lists of objects are tables, and what is empty is left out.
  std::string text() const;

 private:
  std::vector<Member> members_;
};

}  // namespace relaxc::tools
