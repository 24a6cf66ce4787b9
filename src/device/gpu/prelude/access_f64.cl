/* Where the device has f64. Before it: words.cl and access.cl; after it: kernel/prelude_f64.h. */
#ifndef W_VECTORS
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
W_ONE(f64, double, double, p[i], p[i] = v)
W_FN double w_sel_f64(int c, double x, double y) { return c ? x : y; }
#else
W_SIXTEEN(f64, double, double, double16, vload16(0, p), vstore16(v, 0, p))
W_FN double16 w_sel_f64(int16 c, double16 x, double16 y) { return select(y, x, convert_long16(-c)); }
#endif
W_ODD(f64, W_F64, W_V(convert_double))
