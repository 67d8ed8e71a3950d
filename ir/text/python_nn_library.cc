// The tensors, modules and effects of tvm.relax.frontend.nn, and the export of a model.
#include "ir/text/python_nn.h"

namespace relaxc::text {

const std::string_view kNnLibrary = R"python(
def library():
    # ---- Tensors and parameters

    class Tensor:
        @staticmethod
        def placeholder(shape, dtype, name=""):
            return R.Tensor(shape, dtype)

        @staticmethod
        def from_const(data):
            return R.const(data)

        @staticmethod
        def from_scalar(data, dtype):
            return R.const(data, dtype)

        def reshape(self, *shape):
            if len(shape) == 1 and isinstance(shape[0], tuple):
                shape = shape[0]
            if len(shape) == 1 and isinstance(shape[0], list):
                shape = shape[0]
            return R.reshape(self, shape)

        def permute_dims(self, *axes):
            if len(axes) == 1 and isinstance(axes[0], list):
                axes = axes[0]
            return R.permute_dims(self, axes)

        def repeat(self, repeats, axis=None):
            return R.repeat(self, repeats, axis)

        def astype(self, dtype):
            return R.astype(self, dtype)

        def maximum(self, other):
            return R.maximum(self, other)

        def minimum(self, other):
            return R.minimum(self, other)

    class Parameter:
        def __init__(self, shape, dtype=None):
            self.shape = [shape] if isinstance(shape, int) else shape
            self.dtype = "float32" if dtype is None else dtype
            self.data = None
            self.attrs = {}
            self.variable = None

        def to(self, dtype=None):
            if dtype is not None:
                self.dtype = dtype

        def astype(self, dtype):
            return R.astype(self, dtype)

        @property
        def ndim(self):
            return len(self.shape)

    # ---- Modules

    class Module:
        def __init__(self):
            pass

        def __call__(self, *args, **kwargs):
            return self.forward(*args, **kwargs)

        def named_parameters(self, prefix=""):
            found = []
            for name, value in attributes(self):
                add_parameters(prefix + name, value, found)
            return found

        def named_effects(self, prefix=""):
            found = []
            for name, value in attributes(self):
                add_effects(prefix + name, value, found)
            return found

        def parameters(self):
            return [value for name, value in self.named_parameters()]

        def state_dict(self):
            return dict_of(self.named_parameters())

        def to(self, dtype=None):
            if dtype is not None:
                for name, value in attributes(self):
                    if isinstance(value, Module) or isinstance(value, Parameter) or isinstance(value, Effect):
                        value.to(dtype=dtype)
                if hasattr(self, "dtype") and isinstance(self.dtype, str):
                    self.dtype = dtype

        def export_tvm(self, spec, debug=False, allow_extern=False):
            if isinstance(spec, ModuleSpec):
                spec = spec.methods
            parameters = self.named_parameters()
            effects = self.named_effects()
            if len(effects) > 0:
                export_effects(effects)
            if debug:
                effects = [("_io", Effect())] + effects
            for name, inputs in spec.items():
                export(self, name, inputs, parameters, effects)
            module = exported_module()
            if allow_extern:
                return module, parameters, []
            return module, parameters

        def jit(self, spec, *args, **kwargs):
            self.export_tvm(spec)
            return exported_module()

    class ModuleSpec:
        def __init__(self, methods):
            self.methods = methods

        @staticmethod
        def from_raw(spec, module):
            return ModuleSpec(spec)

    class TensorSpec:
        def __init__(self, shape, dtype="float32"):
            self.shape = shape
            self.dtype = dtype

    class ObjectSpec:
        def __init__(self, object_type=None):
            self.object_type = object_type

    class TupleSpec:
        def __init__(self, name, elements):
            self.name = name
            self.elements = elements

    def add_parameters(name, value, found):
        if isinstance(value, Parameter):
            found.append((name, value))
        elif isinstance(value, ModuleList):
            for i, item in enumerate(value.modules):
                add_parameters(name + "." + str(i), item, found)
        elif isinstance(value, ModuleDict):
            for key, item in value.modules.items():
                add_parameters(name + "." + key, item, found)
        elif isinstance(value, Module):
            found.extend(value.named_parameters(name + "."))

    def add_effects(name, value, found):
        if isinstance(value, Effect):
            found.append((name, value))
        elif isinstance(value, ModuleList):
            for i, item in enumerate(value.modules):
                add_effects(name + "." + str(i), item, found)
        elif isinstance(value, ModuleDict):
            for key, item in value.modules.items():
                add_effects(name + "." + key, item, found)
        elif isinstance(value, Module):
            found.extend(value.named_effects(name + "."))

    def type_of(name, spec):
        if is_type(spec):
            return spec
        if isinstance(spec, TensorSpec):
            return R.Tensor(spec.shape, spec.dtype)
        if isinstance(spec, ObjectSpec):
            return R.Object
        if isinstance(spec, TupleSpec) or isinstance(spec, tuple) or isinstance(spec, list):
            elements = spec.elements if isinstance(spec, TupleSpec) else spec
            return R.Tuple([type_of(name, each) for each in elements])
        return R.Shape([name])

    def input_of(name, spec):
        if is_type(spec):
            return function_param(name, spec)
        if isinstance(spec, TupleSpec) or isinstance(spec, tuple) or isinstance(spec, list):
            elements = spec.elements if isinstance(spec, TupleSpec) else spec
            variable = function_param(name, type_of(name, spec))
            return [variable[i] for i in range(len(elements))]
        if isinstance(spec, TensorSpec) or isinstance(spec, ObjectSpec):
            return function_param(name, type_of(name, spec))
        return function_dim(name, type_of(name, spec))

    # The function that makes the effects, which the others take and return.
    def export_effects(effects):
        begin_function("_initialize_effect")
        end_function(tuple([effect.make() for name, effect in effects]), 0)

    def export(model, name, inputs, parameters, effects):
        begin_function(name)
        modes = inputs["$"] if "$" in inputs else {}
        given = {}
        for key, each in inputs.items():
            if key != "$":
                given[key] = input_of(key, each)
        count = len(given)
        effect_mode = modes.get("effect_mode", "plain")
        if effect_mode == "packed":
            packed = function_param("packed_effects", R.Tuple([R.Object for key, each in effects]))
            count = count + 1
            for i, (key, each) in enumerate(effects):
                each.cache = packed[i]
        elif effect_mode == "plain":
            count = count + len(effects)
            for key, each in effects:
                each.cache = function_param(key, R.Object)
        mode = modes.get("param_mode", "plain")
        if mode == "packed":
            types = [R.Tensor(each.shape, each.dtype) for key, each in parameters]
            packed = function_param("packed_params", R.Tuple(types))
            for i, (key, each) in enumerate(parameters):
                each.variable = packed[i]
        elif mode == "plain":
            for key, each in parameters:
                each.variable = function_param(key, R.Tensor(each.shape, each.dtype))
        result = getattr(model, name)(**given)
        if effect_mode != "none" and len(effects) > 0:
            result = (result, tuple([each.cache for key, each in effects]))
        end_function(result, count)

    # ---- Effects

    class Effect:
        def __init__(self):
            self.cache = None

        def to(self, dtype=None):
            pass

    class KVCache(Effect):
        def __init__(self, init_seq_len, unit_shape, dtype=None):
            self.init_seq_len = init_seq_len
            self.unit_shape = list(unit_shape)
            self.dtype = "float32" if dtype is None else dtype
            self.cache = None

        def to(self, dtype=None):
            if dtype is not None:
                self.dtype = dtype

        def make(self):
            shape = [self.init_seq_len] + self.unit_shape
            return R.call_pure_packed("vm.builtin.attention_kv_cache_create", R.zeros(shape, self.dtype),
                                      R.shape(shape), R.prim_value(0), sinfo_args=[R.Object])

        def append(self, new_element):
            self.cache = R.call_pure_packed("vm.builtin.attention_kv_cache_append", self.cache, new_element,
                                            sinfo_args=[R.Object])

        def view(self, seq_len):
            shape = [seq_len] + self.unit_shape
            return R.call_pure_packed("vm.builtin.attention_kv_cache_view", self.cache, R.shape(shape),
                                      sinfo_args=[R.Tensor(shape, self.dtype)])

    # ---- Lists of modules

    class ModuleList(Module):
        def __init__(self, modules):
            self.modules = list(modules)

        def to(self, dtype=None):
            for module in self.modules:
                module.to(dtype=dtype)

        def append(self, module):
            self.modules.append(module)

        def forward(self, x):
            for module in self.modules:
                x = module(x)
            return x

    class ModuleDict(Module):
        def __init__(self, modules=None):
            self.modules = {} if modules is None else dict(**modules)

        def to(self, dtype=None):
            for module in self.modules.values():
                module.to(dtype=dtype)

        def keys(self):
            return self.modules.keys()

        def values(self):
            return self.modules.values()

        def items(self):
            return self.modules.items()

        def get(self, key, default=None):
            return self.modules.get(key, default)

    # Replaces parts of a model, as quantization does.
    class Mutator:
        def visit_module(self, name, node):
            return self.visit(name, node)

        def visit_modulelist(self, name, node):
            return self.visit(name, node)

        def visit_moduledict(self, name, node):
            return self.visit(name, node)

        def visit_effect(self, name, node):
            return self.visit(name, node)

        def visit_param(self, name, node):
            return node

        def visit_part(self, name, node):
            if isinstance(node, ModuleList):
                return self.visit_modulelist(name, node)
            if isinstance(node, ModuleDict):
                return self.visit_moduledict(name, node)
            if isinstance(node, Module):
                return self.visit_module(name, node)
            if isinstance(node, Effect):
                return self.visit_effect(name, node)
            return self.visit_param(name, node) if isinstance(node, Parameter) else node

        def visit(self, name, node):
            prefix = name + "." if name else ""
            if isinstance(node, ModuleList):
                for i in range(len(node.modules)):
                    node.modules[i] = self.visit_part(prefix + str(i), node.modules[i])
            elif isinstance(node, ModuleDict):
                for key in list(node.modules.keys()):
                    node.modules[key] = self.visit_part(prefix + key, node.modules[key])
            else:
                for key, value in attributes(node):
                    set_attribute(node, key, self.visit_part(prefix + key, value))
            return node

    # The cache of a model, which the run gives it.
    class PagedKVCache:
        def attention_with_fused_qkv(self, layer_id, qkv, num_qo_heads, sm_scale):
            b, s, h, d = qkv.shape
            values = R.reshape(qkv, (b * s, h, d))
            result = R.call_dps_packed("vm.builtin.attention_kv_cache_attention_with_fused_qkv",
                                       (self, R.prim_value(layer_id), R.prim_value(sm_scale), values),
                                       out_sinfo=R.Tensor((b * s, num_qo_heads, d), dtype_of(qkv)))
            return R.reshape(result, (b, s, num_qo_heads, d))

        def get_query_positions(self, total_length):
            return R.call_pure_packed("vm.builtin.attention_kv_cache_get_query_positions", self,
                                      sinfo_args=[R.Tensor((total_length,), "int32")])

    # Functions of a library in C, which the run gets by their names.
    class ExternModule(Module):
        def __init__(self, symbols):
            self.symbols = symbols

        def __getitem__(self, name):
            def call(*args):
                return extern(name, list(args), self.symbols[name](*args))
            return call

    class ObjectModule(ExternModule):
        def __init__(self, symbols, filepath=None):
            self.symbols = symbols

    class SourceModule(ExternModule):
        def __init__(self, symbols, source_code=None, source_format=None, compile_options=None, compiler=None,
                     output_format="obj"):
            self.symbols = symbols

    class Sequential(ModuleList):
        def __init__(self, *modules):
            self.modules = list(modules)

    # ---- tvm.relax.testing.nn, of 2022: layers in a function of a BlockBuilder

    def testing_Placeholder(shape, dtype="float32", name="data"):
        return R.Var(name, R.Tensor(shape, dtype))

    class testing_Parameter:
        def __init__(self, shape, dtype="float32", name="param"):
            self.variable = R.Var(name, R.Tensor(shape, dtype))

    class testing_Module:
        def __call__(self, *args, **kwargs):
            return self.forward(*args, **kwargs)

        def parameters(self):
            found = []
            for name, value in attributes(self):
                add_testing_parameters(value, found)
            return found

    def add_testing_parameters(value, found):
        if isinstance(value, testing_Parameter):
            found.append(value.variable)
        elif isinstance(value, testing_Module):
            found.extend(value.parameters())
        elif isinstance(value, list):
            for each in value:
                add_testing_parameters(each, found)

    class testing_Sequential(testing_Module):
        def __init__(self, *modules):
            self.modules = list(modules)

        def forward(self, x):
            for module in self.modules:
                x = module(x)
            return x

    class testing_ReLU(testing_Module):
        def forward(self, x):
            return R.nn.relu(x)

    class testing_LogSoftmax(testing_Module):
        def forward(self, x):
            return R.nn.log_softmax(x)

    class testing_Linear(testing_Module):
        def __init__(self, in_features, out_features, bias=True):
            self.weight = testing_Parameter((in_features, out_features), name="linear_weight")
            self.bias = testing_Parameter((out_features,), name="linear_bias") if bias else None

        def forward(self, x):
            x = R.matmul(x, self.weight)
            if self.bias is not None:
                x = R.add(x, self.bias)
            return x
)python";

}  // namespace relaxc::text
