/* Products of signs and Walsh–Hadamard transforms of LANES rows, for one precision and vectors of BYTES bytes. */

/* One butterfly: two vectors become their sum and their difference. */
INLINE void OF(pair)(OF(Lanes) *a, OF(Lanes) *b) {
    OF(Lanes) old = *a;
    *a = old + *b;
    *b = old - *b;
}

/* Three levels of butterflies on 8 vectors that are `step` apart, so that each vector is loaded only once. */
INLINE void OF(levels)(OF(Lanes) *x, ptrdiff_t step) {
    OF(Lanes) v[8];
    for (int i = 0; i < 8; i++) v[i] = x[i * step];
    for (int width = 1; width < 8; width *= 2)
        for (int i = 0; i < 8; i++)
            if (!(i & width)) OF(pair)(v + i, v + i + width);
    for (int i = 0; i < 8; i++) x[i * step] = v[i];
}

/* The Walsh–Hadamard transform over n vectors in place. n is a power of two. */
INLINE void OF(butterflies)(OF(Lanes) *x, ptrdiff_t n) {
    ptrdiff_t step = 1;
    for (; 8 * step <= n; step *= 8)
        for (ptrdiff_t first = 0; first < n; first += 8 * step)
            for (ptrdiff_t i = first; i < first + step; i++) OF(levels)(x + i, step);
    for (; 2 * step <= n; step *= 2)
        for (ptrdiff_t first = 0; first < n; first += 2 * step)
            for (ptrdiff_t i = first; i < first + step; i++) OF(pair)(x + i, x + i + step);
}

/* One layer: permute the numbers if `from` is not null, multiply them by factors, and transform them. */
INLINE void OF(layer)(OF(Lanes) *x, ptrdiff_t p, const REAL *factors, const int64_t *from, OF(Lanes) *spare) {
    for (ptrdiff_t j = 0; from && j < p; j++) spare[j] = x[from[j]];
    for (ptrdiff_t j = 0; j < p; j++) x[j] = (from ? spare : x)[j] * factors[j];
    OF(butterflies)(x, p);
}

/* The angles of rows X (rows, d), in blocks of p frequencies: H diag(f_L) Π … H diag(f_1) x, where zeros follow the d
 * inputs. `first` holds f_1 (blocks, d), and `factors` holds f_2 to f_L (blocks, layers, p). Π moves number
 * permutations[j] to j; `permutations` (blocks, p) is null if Π is the identity. The results are multiplied by `radii`
 * (m). The angle of row i and frequency j is at angles[i·by_row + j·by_frequency]. `buffer` has room for (2p + d)·LANES
 * numbers. */
OF_MACHINES void KAFEAT(structured)(
    const REAL *X, ptrdiff_t rows, ptrdiff_t d, ptrdiff_t p, ptrdiff_t layers, ptrdiff_t m, const REAL *first,
    const REAL *factors, const int64_t *permutations, const REAL *radii, REAL *angles, ptrdiff_t by_row,
    ptrdiff_t by_frequency, REAL *buffer
) {
    OF(Lanes) *x = (OF(Lanes) *)buffer, *spare = x + p, *inputs = spare + p;
    for (ptrdiff_t i = 0; i < rows; i += OF(LANES)) {
        ptrdiff_t here = rows - i < OF(LANES) ? rows - i : OF(LANES);
        OF(gather)(X + i * d, here, d, inputs);
        for (ptrdiff_t start = 0, block = 0; start < m; start += p, block++) {
            ptrdiff_t wanted = m - start < p ? m - start : p;
            for (ptrdiff_t j = 0; j < d; j++) x[j] = inputs[j] * first[block * d + j];
            memset(x + d, 0, (size_t)(p - d) * sizeof *x);
            OF(butterflies)(x, p);
            for (ptrdiff_t layer = 0; layer < layers; layer++)
                OF(layer)(x, p, factors + (block * layers + layer) * p, permutations ? permutations + block * p : 0, spare);
            for (ptrdiff_t j = 0; j < wanted; j++) x[j] *= radii[start + j];
            OF(spread)(x, here, wanted, angles + i * by_row + start * by_frequency, by_row, by_frequency);
        }
    }
}
