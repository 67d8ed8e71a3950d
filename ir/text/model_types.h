// Types of values while Python is run: arrays of NumPy, and a model's tensors, whose types the reader infers. A model
// asks for them before the module is read: b, s, d = x.shape; if x.ndim == 1; x.astype(y.dtype). Internal to ir/text/.
#pragma once
#include <memory>
#include <optional>

#include "ir/expr.h"
#include "ir/text/syntax.h"
#include "vm/tensor.h"

namespace relaxc::text {

// This one knows nothing.
class ModelTypes {
 public:
  virtual ~ModelTypes() = default;
  // Begins a function, whose names are new.
  virtual void begin() {}
  virtual void param(std::string_view /*name*/, const Syntax& /*type*/) {}
  virtual void bind(std::string_view /*name*/, const Syntax& /*value*/) {}
  // A function of te, which the model's R.emit_te calls.
  virtual void function(const Line& /*line*/) {}
  // An array of numpy, and what it holds; nullopt where that is not known.
  virtual void array(std::string_view /*name*/, const Syntax& /*value*/) {}
  virtual std::optional<Tensor> array_value(const Syntax& /*at*/) { return std::nullopt; }
  // Returns the value of an expression, of which the type and the dims in it are known; nullopt where it has an error.
  virtual std::optional<Expr> value(const Syntax& /*at*/) { return std::nullopt; }
};

}  // namespace relaxc::text
