/* For devices with f64. Comes after lanes.cl and access.cl, before kernel/prelude_f64.h. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
W_ONE(f64, double, double, p[i], p[i] = v)
#define fmod_f64(x, y) fmod(x, y)
#define pow_f64(x, y)  pow(x, y)
#define hypot_f64(x, y) hypot(x, y)
#define atan2_f64(y, x) atan2(y, x)
W_FN double w_sel_f64(int c, double x, double y) { return c ? x : y; }
W_ODD(f64, W_F64, convert_double)
