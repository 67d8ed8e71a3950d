"""Writes norm_scales.onnx: normalizations whose scale and bias broadcast in all ways, less what ONNX defines them to be."""
import onnx, numpy as np
from onnx import helper as h, TensorProto as T, numpy_helper as nh
nodes=[]; inits=[]; outs=[]
rng=np.random.default_rng(1)
def const(name,a): inits.append(nh.from_array(a.astype(np.float32),name)); return name
def n(op,i,o,**k): nodes.append(h.make_node(op,i,[o],name=o,**k)); return o
for k,(shape,bias,axis) in enumerate([((4,),None,-1),((1,1,4),(1,1,4),-1),((2,1,4),None,-1),((3,4),(1,),1),((1,3,1),(4,),2),((2,3,4),(2,1,1),0),((),(),-1)]):
    s=const(f's{k}',rng.standard_normal(shape)); ins=['x',s]; ref_axes=list(range(axis%3,3))
    if bias is not None: ins.append(const(f'b{k}',rng.standard_normal(bias)))
    y=n('LayerNormalization',ins,f'layer_norm_{k}',axis=axis)
    m=n('ReduceMean',['x'],f'm{k}',axes=ref_axes); d=n('Sub',['x',m],f'd{k}')
    v=n('ReduceMean',[n('Mul',[d,d],f'q{k}')],f'v{k}',axes=ref_axes)
    e=const(f'e{k}',np.array(1e-5)); r=n('Div',[d,n('Sqrt',[n('Add',[v,e],f've{k}')],f'sd{k}')],f'r{k}')
    r=n('Mul',[r,s],f'rs{k}')
    if bias is not None: r=n('Add',[r,ins[2]],f'rb{k}')
    outs.append(n('Sub',[y,r],f'layer_{k}'))
    y=n('SimplifiedLayerNormalization',['x',s],f'rms_norm_{k}',axis=axis)
    v=n('ReduceMean',[n('Mul',['x','x'],f'xx{k}')],f'xv{k}',axes=ref_axes)
    r=n('Mul',[n('Div',['x',n('Sqrt',[n('Add',[v,e],f'xe{k}')],f'xsd{k}')],f'xr{k}'),s],f'xrs{k}')
    outs.append(n('Sub',[y,r],f'rms_{k}'))
vi=lambda a,s: h.make_tensor_value_info(a,T.FLOAT,s)
g=h.make_graph(nodes,'norms',[vi('x',['n',3,4])],[vi(o,None) for o in outs],inits)
m=h.make_model(g,opset_imports=[h.make_opsetid('',17)]); m.ir_version=8
onnx.save(m,'norm_scales.onnx')
