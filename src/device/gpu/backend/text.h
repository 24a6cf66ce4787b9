/* Texts for GPUs that lie in files of their own and are built into the library: NAME is
 * src/device/gpu/NAME.cl, prelude_NAME is src/device/gpu/prelude/NAME.cl or src/kernel/prelude_NAME.h. A new
 * file is one line here. */
#ifndef WEFT_DEVICE_GPU_BACKEND_TEXT_H
#define WEFT_DEVICE_GPU_BACKEND_TEXT_H

#define WEFT__GPU_TEXTS(X)                                                                                   \
    X(prelude_opencl)                                                                                        \
    X(prelude_cuda)                                                                                          \
    X(prelude_common)                                                                                        \
    X(prelude_kernels)                                                                                       \
    X(prelude_tensor)                                                                                        \
    X(prelude_links)                                                                                         \
    X(prelude_overloads)                                                                                     \
    X(prelude_words)                                                                                         \
    X(prelude_vectors)                                                                                       \
    X(prelude_access)                                                                                        \
    X(prelude_access_vectors)                                                                                \
    X(prelude_access_f64)                                                                                    \
    X(prelude_half)                                                                                          \
    X(prelude_int)                                                                                           \
    X(prelude_integers)                                                                                      \
    X(prelude_f32)                                                                                           \
    X(prelude_f64)                                                                                           \
    X(prelude_angle)                                                                                         \
    X(prelude_random)                                                                                        \
    X(move)                                                                                                  \
    X(storage)                                                                                               \
    X(attention_common)                                                                                      \
    X(attention_items)                                                                                       \
    X(attention_tensor)                                                                                      \
    X(attention_vectors)                                                                                     \
    X(recurrent)                                                                                             \
    X(scatter)                                                                                               \
    X(scan)                                                                                                  \
    X(order)                                                                                                 \
    X(update)                                                                                                \
    X(conv_direct)                                                                                           \
    X(conv_direct_sum)                                                                                       \
    X(image)                                                                                                 \
    X(matmul)                                                                                                \
    X(matmul_vectors)                                                                                        \
    X(matmul_tiles)                                                                                          \
    X(matmul_tensor)                                                                                         \
    X(matmul_rows)                                                                                           \
    X(matmul_sum)

#define WEFT__TEXT_(name) extern const char weft__text_##name[];
WEFT__GPU_TEXTS(WEFT__TEXT_)
#undef WEFT__TEXT_

#endif
