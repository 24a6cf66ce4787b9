/*
kernel map_add_relu (rows 8, 12)
  arg0 f32 in 96
  arg1 f32 in 16
  arg2 f32 out 96
  v0 f32 = load arg0[i0*12 + i1]
  v1 f32 = load arg1[i1]
  v2 f32 = add v0, v1
  v3 f32 = relu v2
  store arg2[i0*12 + i1] = v3
*/
#define S float
typedef struct w_epilogue {
    long arg1_at, arg2_at;
    int s0_i0;
} w_epilogue;
#define EPILOGUE_POINTERS const W_GLOBAL float *arg1_, W_GLOBAL float *arg2_,
#define EPILOGUE_NAMES arg1_, arg2_,
/* map_add_relu */
W_FN void epilogue(w_i64 row, int column, S value, EPILOGUE_POINTERS const w_epilogue of) {
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int s0_i0 = of.s0_i0;
    const int i0 = (int)row;
    const int i1 = column;
    const float v0 = value;
    const float v1 = arg1[i1];
    const float v2 = v0 + v1;
    const float v3 = w_max_f32(v2, (float)0);
    arg2[i0*s0_i0 + i1] = v3;
}

