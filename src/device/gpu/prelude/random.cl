/* Computes a block of Philox 4x32-10, with the bits of base/random.c: the random words of four adjacent elements. Words
 * 0 to 3 of the key are the Philox key and the step. */
W_FN void w_random_block(const W_GLOBAL int *key, ulong block, W_U32 *word) {
    W_U32 c0 = convert_uint(block), c1 = convert_uint(block >> 32), c2 = (W_U32)((uint)key[2]),
          c3 = (W_U32)((uint)key[3]);
    uint k0 = (uint)key[0], k1 = (uint)key[1];
    for (int round = 0; round < 10; round++) {
        W_U32 h0 = mul_hi(c0, (W_U32)(0xD2511F53u)), l0 = c0 * 0xD2511F53u;
        W_U32 h1 = mul_hi(c2, (W_U32)(0xCD9E8D57u)), l1 = c2 * 0xCD9E8D57u;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
}
/* Returns 32 random bits for an element: a word of its block. Words 4 and 5 of the key are the number of the first
 * element. */
W_FN W_I32 w_random(const W_GLOBAL int *key, ulong element) {
    ulong n = element + ((ulong)(uint)key[4] | (ulong)(uint)key[5] << 32);
    W_U32 words[4];
    w_random_block(key, n >> 2, words);
    W_U32 word = convert_uint(n) & 3u;
    W_U32 low = (word & 1u) != 0 ? words[1] : words[0], high = (word & 1u) != 0 ? words[3] : words[2];
    return w_sig((word & 2u) != 0 ? high : low);
}
