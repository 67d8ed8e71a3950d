#include "api/profile.h"

#include <cstring>

#include "vm/formula.h"

namespace relaxc::api {

namespace {

int64_t bytes_of(std::span<const Tensor* const> tensors) {
  int64_t bytes = 0;
  for (const Tensor* tensor : tensors) bytes += tensor->bytes();
  return bytes;
}

relaxc_kernel_record record_of(const vm::KernelEvent& event) {
  return {.size = sizeof(relaxc_kernel_record),
          .kernel = nullptr,  // the caller's, as is `node`
          .node = nullptr,
          .rule = event.info->rule.c_str(),
          .start_ns = event.start_ns,
          .duration_ns = event.duration_ns,
          .operations = vm::evaluate_formula(event.info->operations, event.tensors).value_or(-1),
          .bytes = bytes_of(event.tensors)};
}

}  // namespace

void HostProfiler::on_kernel(const vm::KernelEvent& event) {
  const std::string kernel(event.kernel), node(event.label);
  relaxc_kernel_record record = record_of(event);
  record.kernel = kernel.c_str();
  record.node = node.c_str();
  callback_(user_, &record);
}

void KernelRecords::on_kernel(const vm::KernelEvent& event) {
  kept_.push_back(record_of(event));
  texts_.append(event.kernel).push_back('\0');
  texts_.append(event.label).push_back('\0');
}

void KernelRecords::clear() {
  kept_.clear();
  texts_.clear();
}

const std::vector<relaxc_kernel_record>& KernelRecords::records() {
  const char* next = texts_.c_str();
  for (relaxc_kernel_record& record : kept_) {
    for (const char** text : {&record.kernel, &record.node}) {
      *text = next;
      next += std::strlen(next) + 1;
    }
  }
  return kept_;
}

}  // namespace relaxc::api
