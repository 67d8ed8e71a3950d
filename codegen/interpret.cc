#include "codegen/interpret.h"

#include <algorithm>

#include "ir/arith.h"
#include "ir/attr_names.h"
#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "vm/error.h"

namespace relaxc::codegen {

struct InterpretedKernels::Program {
  std::string name;
  PrimFuncRef function;
  std::unique_ptr<Interpreter> interpreter;
  std::vector<bool> is_new;  // for each buffer: it is newly allocated when the kernel is called
};

// Finds, for each program, the tensors of a call that are newly allocated.
static std::map<std::string, std::vector<bool>> find_new_tensors(const IRModule& module) {
  std::map<std::string, std::vector<bool>> result;
  std::unordered_set<const NodeHeader*> fresh;
  for (const auto& [name, function] : module.functions) {
    auto graph = try_cast<Function>(function);
    if (!graph) continue;
    for_each_binding((*graph)->body, [&](const Binding& binding) {
      bool allocates =
          as_call(binding.value, ops::kBuiltinAllocTensor) || as_call(binding.value, ops::kMemoryAllocTensor);
      if (allocates) fresh.insert(binding.var.get());
      if (auto kernel = as_kernel_call(binding.value, module); kernel && kernel->callee.is<GlobalVar>()) {
        std::vector<bool> is_new;
        for (const Expr& tensor : kernel->tensors) is_new.push_back(fresh.contains(tensor.get()));
        result.emplace(kernel->name(), std::move(is_new));
      }
      if (const Call* call = binding.value.as<Call>()) {
        for (const Expr& arg : call->args) fresh.erase(arg.get());
      }
    });
  }
  return result;
}

// Returns the C functions that graph functions and tensor programs call.
static std::set<std::string> called_functions(const IRModule& module) {
  std::set<std::string> result;
  for (const auto& [_, function] : module.functions)
    walk(
        function, [&](const ExternFunc& callee) { result.insert(callee.symbol); },
        [&](const Ref<Call>& call) {
          const std::string& name = op_name(call);
          bool is_extern = name == ops::kCallExtern || name == ops::kCallPureExtern;
          const StringImm* symbol = is_extern ? call->args.at(0).as<StringImm>() : nullptr;
          if (symbol) result.insert(symbol->value);
        });
  return result;
}

LinkedFunctions load_linked(const IRModule& module, const std::vector<std::string>& files, const Target& target) {
  if (files.empty()) return {};
  const std::set<std::string> called = called_functions(module), defined = functions_of(files);
  KernelObjects objects{.target = target, .names = {}, .objects = {}, .linked = files};
  std::ranges::set_intersection(called, defined, std::back_inserter(objects.linked_kernels));
  if (objects.linked_kernels.empty()) return {};
  return {objects.linked_kernels, backend_of(target).load(objects)};
}

void LinkedFunctions::add_to(vm::Registry& registry) const {
  for (const std::string& name : names) {
    if (!registry.has(name)) registry.add_kernel(name, code->find(name));
  }
}

InterpretedKernels::InterpretedKernels(const IRModule& module, const InterpretOptions& options, LinkedFunctions linked)
    : linked_(std::move(linked)) {
  std::map<std::string, std::vector<bool>> new_tensors = find_new_tensors(module);
  for (const auto& [name, program] : programs_of(module)) {
    const std::vector<bool>& is_new = new_tensors.try_emplace(name, program->params.size(), false).first->second;
    InterpretOptions copy = options;
    copy.find_function = [linked = linked_](const std::string& name) {
      void* function = linked.code ? reinterpret_cast<void*>(linked.code->find(name)) : nullptr;
      for (const auto& library : linked.libraries) function = function ? function : library->find_symbol(name);
      return function;
    };
    copy.check_unwritten = options.check_unwritten && !program->attrs.get_bool(attr_names::kIsScheduled, false);
    programs_.emplace(kernel_symbol(name),
                      std::make_unique<Program>(name, program, std::make_unique<Interpreter>(program, copy), is_new));
  }
}
InterpretedKernels::~InterpretedKernels() = default;

vm::Kernel InterpretedKernels::find(const std::string& symbol) {
  const std::unique_ptr<Program>* found = find_value(programs_, symbol);
  if (!found) return nullptr;
  return [this, program = found->get()](const relaxc_kernel_args* args) -> int32_t {
    std::string problem;
    try {
      std::lock_guard lock(mutex_);
      call(*program, *args);
      return 0;
    } catch (const CompileError& error) {  // no exception crosses a kernel's boundary
      // One line, as compiled kernels report it.
      const Diagnostic& first = error.diagnostics().front();
      std::string place = to_string(first.span);
      problem = place.empty() ? first.message : fmt::format("{} ({})", first.message, place);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    args->context->report(args->context, problem.c_str(), nullptr, 0);
    return 1;
  };
}

void InterpretedKernels::call(Program& program, const relaxc_kernel_args& args) {
  const PrimFuncRef& function = program.function;
  const std::vector<Buffer> buffers = buffer_params(function);
  KernelCall kernel{.callee = global_var(program.name, object_type()), .has_destinations = true};
  kernel.tensors.assign(buffers.begin(), buffers.end());
  for (size_t i = 0; i < scalar_arguments(function).size(); ++i) kernel.scalars.push_back(int_imm(args.scalars[i]));
  const KernelMatch match = match_kernel(kernel, function);
  // The scalar params come first; the dims that buffers bind follow.
  const std::span<const int64_t> scalars(args.scalars, function->params.size() - buffers.size());
  std::vector<Tensor> tensors;
  for (const KernelOperand& operand : match.operands) {
    std::vector<int64_t> shape;
    for (const std::optional<Expr>& dim : dims_in_call(match, operand)) {
      std::optional<int64_t> size = dim ? as_int(simplify(*dim)) : std::nullopt;
      RELAXC_CHECK(size, "expected arguments of '{}' that determine dim {} of '{}'", program.name, shape.size(),
                   operand.param->name);
      shape.push_back(*size);
    }
    DType dtype = buffer_type(operand.param).dtype;
    tensors.push_back(Tensor::view(std::move(shape), dtype, args.data[tensors.size()], nullptr));
  }
  Memory& memory = memory_[std::this_thread::get_id()];
  std::vector<WrittenBytes> fresh(tensors.size());
  std::vector<WrittenBytes*> written(tensors.size(), nullptr);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const char* at = static_cast<const char*>(tensors[i].raw());
    if (!program.is_new[i]) {
      Unwritten* known = find_value(memory, at);
      if (known && std::ssize(known->written) == tensors[i].bytes()) written[i] = &known->written;
      continue;
    }
    forget(memory, at, tensors[i].bytes());
    fresh[i].assign(static_cast<size_t>(tensors[i].bytes()), 0);
    std::fill_n(static_cast<char*>(tensors[i].raw()), tensors[i].bytes(), '\xff');
    written[i] = &fresh[i];
  }
  program.interpreter->set_packed_functions(
      [context = args.context](const char* name, std::span<const relaxc_value> values, relaxc_value& result) {
        return context->call_packed(context, name, values.data(), static_cast<int32_t>(values.size()), &result);
      });
  program.interpreter->run(tensors, scalars, written);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!program.is_new[i]) continue;
    if (std::find(fresh[i].begin(), fresh[i].end(), 0) == fresh[i].end()) continue;
    std::string buffer = fmt::format("buffer '{}' of '{}'", buffers[i]->name, program.name);
    memory.insert_or_assign(static_cast<const char*>(tensors[i].raw()), Unwritten{std::move(fresh[i]), buffer});
  }
}

// Drops the records of all memory that overlaps [begin, begin + bytes), because that memory is reused now.
void InterpretedKernels::forget(Memory& memory, const char* begin, int64_t bytes) {
  std::erase_if(memory, [&](const auto& item) {
    const char* end = item.first + item.second.written.size();
    return std::less<>()(item.first, begin + bytes) && std::less<>()(begin, end);
  });
}

void InterpretedKernels::begins() {
  std::lock_guard lock(mutex_);
  memory_.erase(std::this_thread::get_id());
}

void InterpretedKernels::ends(const vm::Value& result) {
  std::lock_guard lock(mutex_);
  check_result(memory_[std::this_thread::get_id()], result, "the result");
}

void InterpretedKernels::check_result(const Memory& memory, const vm::Value& result, const std::string& name) const {
  if (const vm::Tuple* tuple = result.get_if<vm::Tuple>()) {
    size_t count = 0;
    for (const vm::Value& field : tuple->fields()) check_result(memory, field, fmt::format("result {}", count++));
  }
  const Tensor* tensor = result.get_if<Tensor>();
  const Unwritten* known = tensor ? find_value(memory, static_cast<const char*>(tensor->raw())) : nullptr;
  if (!known) return;
  const WrittenBytes& written = known->written;
  int64_t byte = std::find(written.begin(), written.end(), 0) - written.begin();
  if (byte >= tensor->bytes()) return;
  throw_runtime_error("{}, {}: element {} was never written; it comes from {}", name, describe(*tensor),
                      byte / tensor->dtype().bytes() * tensor->dtype().per_byte(), known->buffer);
}

}  // namespace relaxc::codegen
