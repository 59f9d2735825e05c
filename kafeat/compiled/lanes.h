/* SIMD vectors of BYTES bytes for one precision. A vector holds one column of LANES rows, each row in its own lane. All
 * lanes go through the same operations, so the results of a row do not depend on its position or on other rows. */

typedef REAL OF(Lanes) __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));
typedef WORD OF(Words) __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));
enum { OF(LANES) = BYTES / sizeof(REAL) };

/* Transpose LANES vectors in place, as a square matrix. Pairs of vectors exchange blocks of 1, then 2, 4, … lanes. */
INLINE void OF(transpose)(OF(Lanes) *v) {
#if defined(__clang__)
    REAL turned[OF(LANES)][OF(LANES)];
    for (int i = 0; i < OF(LANES); i++)
        for (int j = 0; j < OF(LANES); j++) turned[j][i] = v[i][j];
    memcpy(v, turned, sizeof turned);
#else
    static const WORD places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    OF(Words) lane = *(const OF(Words) *)places;
    for (int half = 1; half < OF(LANES); half *= 2) {
        OF(Words) other = (lane & half) * (OF(LANES) / half); /* lanes of b are numbered after those of a */
        for (int i = 0; i < OF(LANES); i++)
            if (!(i & half)) {
                OF(Lanes) a = v[i], b = v[i + half];
                v[i] = __builtin_shuffle(a, b, (lane & ~half) + other);
                v[i + half] = __builtin_shuffle(a, b, (lane | half) + other);
            }
    }
#endif
}

/* Load `rows` ≤ LANES rows X (rows, d) so that inputs[i] is the vector of column i. Copies of the first row fill the
 * lanes without a row. */
INLINE void OF(gather)(const REAL *X, ptrdiff_t rows, ptrdiff_t d, OF(Lanes) *inputs) {
    ptrdiff_t i = 0;
    for (; i + OF(LANES) <= d; i += OF(LANES)) {
        OF(Lanes) block[OF(LANES)];
        for (int lane = 0; lane < OF(LANES); lane++)
            block[lane] = *(const OF(Lanes) *)(X + (lane < rows ? lane : 0) * d + i);
        OF(transpose)(block);
        memcpy(inputs + i, block, sizeof block);
    }
    for (; i < d; i++)
        for (int lane = 0; lane < OF(LANES); lane++) ((REAL *)(inputs + i))[lane] = X[(lane < rows ? lane : 0) * d + i];
}

/* Store output j of `rows` ≤ LANES rows, outputs[j], at out[row·by_row + j·by_output]. True if one is not finite. */
INLINE int OF(spread)(
    const OF(Lanes) *outputs, ptrdiff_t rows, ptrdiff_t count, REAL *out, ptrdiff_t by_row, ptrdiff_t by_output
) {
    OF(Lanes) nothing = {0};
    ptrdiff_t j = 0;
    for (ptrdiff_t k = 0; k < count; k++) nothing += outputs[k] * 0; /* NaN or infinity times 0 is NaN */
    for (; by_output == 1 && j + OF(LANES) <= count; j += OF(LANES)) {
        OF(Lanes) block[OF(LANES)];
        memcpy(block, outputs + j, sizeof block);
        OF(transpose)(block);
        for (ptrdiff_t row = 0; row < rows; row++) *(OF(Lanes) *)(out + row * by_row + j) = block[row];
    }
    for (; by_row == 1 && rows == OF(LANES) && j < count; j++) *(OF(Lanes) *)(out + j * by_output) = outputs[j];
    for (; j < count; j++)
        for (ptrdiff_t row = 0; row < rows; row++) out[row * by_row + j * by_output] = ((const REAL *)(outputs + j))[row];
    for (int lane = 0; lane < OF(LANES); lane++)
        if (nothing[lane] != 0) return 1;
    return 0;
}
