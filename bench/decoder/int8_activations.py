# Activations of products with weights of few bits in 8 bits, as in llama.cpp (docs/quantize.md).
S.use("packed_product", activations="int8")
