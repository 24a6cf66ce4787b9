/* Sine and cosine of any angle. Beyond W_ANGLE_MAX, the bits of 2/pi that matter are multiplied by the 24 bits of x,
 * modulo 4 (Payne and Hanek, 1983). Comes after kernel/prelude_f32.h. */
W_TABLE uint w_two_over_pi[9] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                    0xdb629599u, 0x3c439041u, 0xfe5163abu, 0u}; /* 32 zeros before */
W_FN float w_turn_huge(float x, int turn) {
    int bits = w_bits(x) & 0x7fffffff, place = (bits >> 23) - 150 + 31 - 1; /* first bit of the window */
    ulong mantissa = (ulong)((bits & 0x7fffff) | 0x800000), word[4];
    for (int i = 0; i < 4; i++) word[i] = w_two_over_pi[place / 32 + i];
    int shift = place % 32; /* window of 96 bits, in units of 4 / 2^96 */
    ulong high = (word[0] << 32 | word[1]) << shift | (shift ? word[2] >> (32 - shift) : 0);
    ulong low = (word[2] << 32 | word[3]) << shift >> 32;
    ulong product = mantissa * high + (mantissa * (low & 0xffffffffu) >> 32); /* two top bits: whole quarters */
    long fraction = (long)(product << 2);                                     /* units of pi/2 / 2^64 */
    int n = (int)((product >> 62) + (fraction < 0));
    float y = w_sin_core((float)fraction * 0x1.921fb6p-64f, n + turn);
    return turn == 0 && x < 0 ? -y : y;
}
W_FN bool w_is_huge(float x) { return w_abs_f32(x) > W_ANGLE_MAX && w_abs_f32(x) <= 0x1.fffffep127f; }
W_FN float w_sin_any(float x) { return w_is_huge(x) ? w_turn_huge(x, 0) : w_sin_f32(x); }
W_FN float w_cos_any(float x) { return w_is_huge(x) ? w_turn_huge(x, 1) : w_cos_f32(x); }
#define w_sin_f32 w_sin_any
#define w_cos_f32 w_cos_any
