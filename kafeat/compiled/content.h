/* The hash a₀ + Σ a_j·b_j mod 2^64 of each row of X (rows, d). b_j are the bits of x_j in float32, with −0 as 0, and the
 * same bits for every NaN. */
VERSIONS void KAFEAT(content_sums)(const REAL *X, ptrdiff_t rows, ptrdiff_t d, const uint64_t *a, uint64_t *sums) {
    for (ptrdiff_t i = 0; i < rows; i++, X += d) {
        uint64_t sum = a[0];
        for (ptrdiff_t j = 0; j < d; j++) {
            float x = (float)X[j] + 0.0f;
            uint32_t b = x == x ? bits_f32(x) : 0x7fc00000u;
            sum += b * a[j + 1];
        }
        sums[i] = sum;
    }
}
