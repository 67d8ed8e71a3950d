# A residual convolution block and an attention layer with their weights as parameters: what the text benchmark grows.
@I.ir_module
class Module:
    @R.function
    def block(x: R.Tensor(("n", 64, 56, 56), dtype="float32"), w1: R.Tensor((64, 64, 3, 3), dtype="float32"), b1: R.Tensor((64, 1, 1), dtype="float32"), w2: R.Tensor((64, 64, 3, 3), dtype="float32"), b2: R.Tensor((64, 1, 1), dtype="float32")):
        n = T.int64()
        with R.dataflow():
            c1 = R.nn.conv2d(x, w1, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], groups=1)
            a1 = R.add(c1, b1)
            r1 = R.nn.relu(a1)
            c2 = R.nn.conv2d(r1, w2, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], groups=1)
            a2 = R.add(c2, b2)
            s = R.add(a2, x)
            y = R.nn.relu(s)
            p = R.nn.max_pool2d(y, pool_size=[2, 2], strides=[2, 2])
            R.output(p)
        return p

    @R.function
    def main(x: R.Tensor(("batch", "sequence", 256), dtype="float32"), wq: R.Tensor((256, 256), dtype="float32"), wk: R.Tensor((256, 256), dtype="float32"), wv: R.Tensor((256, 256), dtype="float32"), wo: R.Tensor((256, 256), dtype="float32"), gamma: R.Tensor((256,), dtype="float32"), beta: R.Tensor((256,), dtype="float32")):
        batch = T.int64()
        sequence = T.int64()
        with R.dataflow():
            q = R.matmul(x, wq)
            k = R.matmul(x, wk)
            v = R.matmul(x, wv)
            q4 = R.reshape(q, R.shape([batch, sequence, 4, 64]))
            k4 = R.reshape(k, R.shape([batch, sequence, 4, 64]))
            v4 = R.reshape(v, R.shape([batch, sequence, 4, 64]))
            qt = R.permute_dims(q4, axes=[0, 2, 1, 3])
            kt = R.permute_dims(k4, axes=[0, 2, 3, 1])
            vt = R.permute_dims(v4, axes=[0, 2, 1, 3])
            scores = R.matmul(qt, kt)
            scaled = R.multiply(scores, R.const(0.125, "float32"))
            weights = R.nn.softmax(scaled, axis=-1)
            mixed = R.matmul(weights, vt)
            joined = R.permute_dims(mixed, axes=[0, 2, 1, 3])
            flat = R.reshape(joined, R.shape([batch, sequence, 256]))
            out = R.matmul(flat, wo)
            sum = R.add(out, x)
            y = R.nn.layer_norm(sum, gamma, beta, axes=[-1], epsilon=1e-5)
            z = R.nn.gelu(y)
            R.output(z)
        return z
