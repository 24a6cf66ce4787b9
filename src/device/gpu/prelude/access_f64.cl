/* For devices with f64. Comes after lanes.cl and access.cl, before kernel/prelude_f64.h. */
#ifndef W_VECTORS
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
W_ONE(f64, double, double, p[i], p[i] = v)
#define fmod_f64(x, y) fmod(x, y)
#define pow_f64(x, y)  pow(x, y)
#define hypot_f64(x, y) hypot(x, y)
#define atan2_f64(y, x) atan2(y, x)
W_FN double w_sel_f64(int c, double x, double y) { return c ? x : y; }
#else
/* Lane by lane: PoCL 3.1 computes fmod and pow of vectors wrongly (it returns another lane's value, or 0). */
#undef fmod_f64
#undef pow_f64
#undef hypot_f64
#undef atan2_f64
#define W_LANE_BY_LANE(NAME, f)                                                                              \
    W_FN double16 NAME(double16 x, double16 y) {                                                             \
        double a[16], b[16];                                                                                 \
        vstore16(x, 0, a);                                                                                   \
        vstore16(y, 0, b);                                                                                   \
        for (int i = 0; i < 16; i++) a[i] = f(a[i], b[i]);                                                   \
        return vload16(0, a);                                                                                \
    }
W_LANE_BY_LANE(fmod_f64, fmod)
W_LANE_BY_LANE(pow_f64, pow)
W_LANE_BY_LANE(hypot_f64, hypot)
W_LANE_BY_LANE(atan2_f64, atan2)
W_UNALIGNED(double16, 8)
W_SIXTEEN(f64, double, double, double16, vload16(0, p), w_write(p, v))
W_FN double16 w_sel_f64(int16 c, double16 x, double16 y) { return select(y, x, convert_long16(-c)); }
#endif
W_ODD(f64, W_F64, W_V(convert_double))
