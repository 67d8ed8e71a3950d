#include "api/profile.h"

#include "vm/formula.h"

namespace relaxc::api {

namespace {

int64_t bytes_of(std::span<const Tensor* const> tensors) {
  int64_t bytes = 0;
  for (const Tensor* tensor : tensors) bytes += tensor->bytes();
  return bytes;
}

relaxc_kernel_record record_of(const vm::KernelEvent& event, const std::string& kernel, const std::string& node,
                               int64_t bytes) {
  return {.size = sizeof(relaxc_kernel_record),
          .kernel = kernel.c_str(),
          .node = node.c_str(),
          .rule = event.info->rule.c_str(),
          .start_ns = event.start_ns,
          .duration_ns = event.duration_ns,
          .operations = vm::evaluate_formula(event.info->operations, event.tensors).value_or(-1),
          .bytes = bytes};
}

}  // namespace

void HostProfiler::on_kernel(const vm::KernelEvent& event) {
  const std::string kernel(event.kernel), node(event.label);
  const relaxc_kernel_record record = record_of(event, kernel, node, bytes_of(event.tensors));
  callback_(user_, &record);
}

void KernelRecords::on_kernel(const vm::KernelEvent& event) {
  kept_.push_back({event, bytes_of(event.tensors), event.tensors.size()});
  kept_.back().event.tensors = {};
  for (const Tensor* tensor : event.tensors) {
    dims_.push_back(tensor->ndim());
    dims_.insert(dims_.end(), tensor->shape().begin(), tensor->shape().end());
  }
}

void KernelRecords::clear() {
  kept_.clear();
  dims_.clear();
  records_.clear();
  texts_.clear();
}

const std::vector<relaxc_kernel_record>& KernelRecords::records() {
  if (records_.size() == kept_.size()) return records_;
  static float none;  // formulas read the dims of tensors only
  const int64_t* next = dims_.data();
  for (Kept& kept : kept_) {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < kept.num_tensors; ++i) {
      const int64_t rank = *next++;
      tensors.push_back(Tensor::view(std::vector(next, next + rank), kFloat32, &none, nullptr));
      next += rank;
    }
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    vm::KernelEvent event = kept.event;
    event.tensors = pointers;
    const std::string& kernel = texts_.emplace_back(event.kernel);
    const std::string& node = texts_.emplace_back(event.label);
    records_.push_back(record_of(event, kernel, node, kept.bytes));
  }
  return records_;
}

}  // namespace relaxc::api
