/* The functions of f64 in the op table. They call the library functions that C and OpenCL C share; see
 * prelude_f32.h. W_F64 is double. There is no include guard. */

W_FN W_F64 w_abs_f64(W_F64 a) { return fabs(a); }
W_FN W_I32 w_isnan_f64(W_F64 a) { return w_bool(a != a); }
W_FN W_I32 w_isinf_f64(W_F64 a) { return w_bool(fabs(a) == HUGE_VAL); }

/* NaN wins. */
W_FN W_F64 w_max_f64(W_F64 a, W_F64 b) {
    W_F64 m = a > b ? a : b;
    return a != a ? a : m;
}
W_FN W_F64 w_min_f64(W_F64 a, W_F64 b) {
    W_F64 m = a < b ? a : b;
    return a != a ? a : m;
}
W_FN W_F64 w_sign_f64(W_F64 a) { return a > 0 ? 1.0 : (a < 0 ? -1.0 : a); }
W_FN W_F64 w_round_f64(W_F64 a) { return rint(a); }
W_FN W_F64 w_floor_f64(W_F64 a) { return floor(a); }
W_FN W_F64 w_ceil_f64(W_F64 a) { return ceil(a); }
W_FN W_F64 w_trunc_f64(W_F64 a) { return trunc(a); }

W_FN W_F64 w_sqrt_f64(W_F64 a) { return sqrt(a); }
W_FN W_F64 w_rsqrt_f64(W_F64 a) { return 1.0 / sqrt(a); }
W_FN W_F64 w_recip_f64(W_F64 a) { return 1.0 / a; }

W_FN W_F64 w_exp_f64(W_F64 x) { return exp(x); }
W_FN W_F64 w_exp2_f64(W_F64 x) { return exp2(x); }
W_FN W_F64 w_expm1_f64(W_F64 x) { return expm1(x); }
W_FN W_F64 w_log_f64(W_F64 x) { return log(x); }
W_FN W_F64 w_log2_f64(W_F64 x) { return log2(x); }
W_FN W_F64 w_log1p_f64(W_F64 x) { return log1p(x); }
W_FN W_F64 w_sin_f64(W_F64 x) { return sin(x); }
W_FN W_F64 w_cos_f64(W_F64 x) { return cos(x); }
W_FN W_F64 w_tanh_f64(W_F64 x) { return tanh(x); }
W_FN W_F64 w_erf_f64(W_F64 x) { return erf(x); }
W_FN W_F64 w_pow_f64(W_F64 x, W_F64 y) { return pow_f64(x, y); }
W_FN W_F64 w_hypot_f64(W_F64 x, W_F64 y) { return hypot_f64(x, y); }
W_FN W_F64 w_atan2_f64(W_F64 y, W_F64 x) { return atan2_f64(y, x); }
W_FN W_F64 w_sigmoid_f64(W_F64 x) {
    W_F64 e = exp(-fabs(x));
    return (x >= 0 ? 1.0 : e) / (1.0 + e);
}

#define W_SQRT_HALF_F64   0.70710678118654752440
#define W_PHI_0           0.39894228040143267794 /* 1 / sqrt(2 pi) */
#define W_TWICE_SQRT_2_PI 1.59576912160573071176
#define W_GELU_CUBE       0.044715

W_FN W_F64 w_gelu_f64(W_F64 x) { return x * (0.5 * erfc(-x * W_SQRT_HALF_F64)); }
W_FN W_F64 w_gelu_slope_f64(W_F64 x) {
    return 0.5 * erfc(-x * W_SQRT_HALF_F64) + x * (exp(-0.5 * x * x) * W_PHI_0);
}
W_FN W_F64 w_gelu_tanh_f64(W_F64 x) {
    return 0.5 * x * (1.0 + tanh(0.5 * W_TWICE_SQRT_2_PI * (x + W_GELU_CUBE * x * x * x)));
}
W_FN W_F64 w_gelu_tanh_slope_f64(W_F64 x) {
    W_F64 t = x < -20 ? -20.0 : x;
    t = t > 20 ? 20.0 : t;
    W_F64 e = exp(-W_TWICE_SQRT_2_PI * (t + W_GELU_CUBE * t * t * t)), s = 1.0 / (1.0 + e) + (x - x);
    return s + s * (e * s) * t * (W_TWICE_SQRT_2_PI * (1.0 + 3 * W_GELU_CUBE * t * t));
}

/* Remainder with the sign of the divisor, exact. */
W_FN W_F64 w_div_f64(W_F64 a, W_F64 b) { return a / b; }
W_FN W_F64 w_mod_f64(W_F64 a, W_F64 b) {
    W_F64 r = fmod_f64(a, b);
    return r == 0 ? copysign(0.0, b) : ((r < 0) != (b < 0) ? r + b : r);
}
